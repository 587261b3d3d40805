"""Bags: ours are read by rosbags, rosbags' own by us, and unusable ones are refused by name."""

from __future__ import annotations

import bz2
import contextlib
import sqlite3
import struct
import tempfile

import lz4.frame
import numpy as np
import pytest
import zstandard
from rosbags import rosbag1, rosbag2
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from simbridge.errors import InputFileError, OutputError
from simbridge.trajectory import bags, read_trajectory, square, write_bag
from simbridge.trajectory.bag_reader import Bag
from simbridge.trajectory.files import pose_topics, read_bag

POSE = "geometry_msgs/msg/PoseStamped"
TF = "tf2_msgs/msg/TFMessage"


def made(path, messages, ros1: bool = False):
    """A bag by rosbags' own writer."""
    fill(rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9), messages, ros1)
    return path


def fill(writer, messages, ros1: bool) -> None:
    """Messages are (topic, stamp ns, frame, x) for a pose, with a child frame for a transform."""
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    types = store.types
    encode = store.serialize_ros1 if ros1 else store.serialize_cdr
    time = types["builtin_interfaces/msg/Time"]
    point = types["geometry_msgs/msg/Point"]
    turn = types["geometry_msgs/msg/Quaternion"]
    header = types["std_msgs/msg/Header"]
    with writer:
        connections = {}
        for number, (topic, stamp, frame, x, *child) in enumerate(messages):
            kind = TF if child else POSE
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            when = time(*divmod(stamp, 10**9))
            head = header(number, when, frame) if ros1 else header(when, frame)
            rotation = turn(0.0, 0.0, 0.0, 1.0)
            if child:
                move = types["geometry_msgs/msg/Transform"](
                    types["geometry_msgs/msg/Vector3"](x, 0.0, 0.0), rotation
                )
                message = types[TF](
                    [types["geometry_msgs/msg/TransformStamped"](head, child[0], move)]
                )
            else:
                message = types[POSE](
                    head, types["geometry_msgs/msg/Pose"](point(x, 0.0, 0.0), rotation)
                )
            writer.write(connections[topic], number, encode(message, kind))


def poses(topic="/a", frame="base_link", stamps=(0, 10**7, 2 * 10**7)):
    return [(topic, stamp, frame, 0.1 * k) for k, stamp in enumerate(stamps)]


@pytest.mark.parametrize("name", ["square.bag", "square.mcap", "square"])
def test_poses_read_back_bit_for_bit(tmp_path, name: str) -> None:
    trajectory = square()
    write_bag(tmp_path / name, trajectory, topic="/tool")

    again = read_trajectory(tmp_path / name)

    np.testing.assert_array_equal(again.times, trajectory.times)
    np.testing.assert_array_equal(again.poses, trajectory.poses)

    with AnyReader([tmp_path / name]) as reader:
        messages = [
            reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(reader.connections)
        ]

        assert [c.topic for c in reader.connections] == ["/tool"]

    assert [m.pose.position.x for m in messages] == trajectory.poses[:, 0].tolist()
    assert {m.header.frame_id for m in messages} == {"base_link"}


@pytest.mark.parametrize("ros1", [True, False])
def test_bags_of_rosbags_own_writer_are_read(tmp_path, ros1: bool) -> None:
    path = made(tmp_path / ("a.bag" if ros1 else "a"), poses(), ros1)

    trajectory, frame = read_bag(path)

    assert frame == "base_link"
    np.testing.assert_array_equal(trajectory.times, [0.0, 0.01, 0.02])
    np.testing.assert_array_equal(trajectory.poses[:, 0], [0.0, 0.1, 0.2])


def test_several_topics_need_a_choice(tmp_path) -> None:
    path = made(
        tmp_path / "two", poses("/a") + poses("/b")[:2] + [("/tf", 0, "world", 1.0, "tool")]
    )

    with pytest.raises(
        InputFileError, match=r"3 topics of poses; choose one with --topic: /a, /b, /tf:world>tool"
    ) as refusal:
        read_bag(path)

    assert "Frames of tf are chained by --frames PARENT CHILD" in str(refusal.value)
    assert pose_topics(path) == ["/a", "/b", "/tf:world>tool"]
    assert len(read_bag(path, "/b")[0].times) == 2

    with pytest.raises(
        InputFileError, match="there is no '/c' to read; choose one with --topic: /a"
    ):
        read_bag(path, "/c")


def test_a_missing_tf_frame_is_refused(tmp_path) -> None:
    moves = [
        ("/tf", k * 10**7, "base_link", float(k), child)
        for k in range(3)
        for child in ("tool", "camera")
    ]

    path = made(tmp_path / "tf", moves)

    np.testing.assert_array_equal(read_bag(path, "/tf:tool")[0].poses[:, 0], [0.0, 1.0, 2.0])

    with pytest.raises(
        InputFileError,
        match=r"/tf has no transform to the frame 'hand'; choose .*/tf:base_link>tool",
    ):
        read_bag(path, "/tf:hand")


def test_a_late_tf_frame_is_a_candidate(tmp_path) -> None:
    moves = [
        ("/tf", k * 10**6, "base_link", 0.0, "tool" if k < 2_500 else "camera")
        for k in range(2_501)
    ]

    path = made(tmp_path / "tf", moves)

    assert pose_topics(path) == ["/tf:base_link>tool", "/tf:base_link>camera"]

    with pytest.raises(InputFileError, match="it has 2 topics of poses"):
        read_bag(path)


def test_unsorted_stamps_are_sorted_with_a_note(tmp_path) -> None:
    path = made(tmp_path / "late", poses(stamps=(0, 2 * 10**7, 10**7)))

    with pytest.warns(
        UserWarning, match="sorted by their stamps, as 1 message came after later ones"
    ):
        trajectory, _ = read_bag(path)

    np.testing.assert_array_equal(trajectory.poses[:, 0], [0.0, 0.2, 0.1])


def test_the_note_counts_every_late_message(tmp_path) -> None:
    path = made(
        tmp_path / "late", poses(stamps=(0, 5 * 10**7, 10**7, 2 * 10**7, 3 * 10**7, 6 * 10**7))
    )

    with pytest.warns(UserWarning, match="as 3 messages came after later ones"):
        read_bag(path)


@pytest.mark.parametrize("name", ["epoch.bag", "epoch.mcap", "epoch"])
def test_stamps_since_1970_come_back_to_the_nanosecond(tmp_path, name: str) -> None:
    began = 1_763_751_234_123_456_789
    steps = np.arange(50) * 1_999_983
    path = made(tmp_path / "given", poses(stamps=(began + steps).tolist()))

    trajectory, _ = read_bag(path)

    assert trajectory.epoch_ns == began
    np.testing.assert_array_equal(trajectory.times, steps / 1e9)

    moved = trajectory.transformed([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    write_bag(tmp_path / name, moved)

    again, _ = read_bag(tmp_path / name)

    assert again.epoch_ns == began
    np.testing.assert_array_equal(again.times, steps / 1e9)

    with AnyReader([tmp_path / name]) as reader:
        messages = [
            reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(reader.connections)
        ]

    assert [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages] == (
        began + steps
    ).tolist()


def test_two_poses_at_one_instant_are_refused(tmp_path) -> None:
    path = made(tmp_path / "twice", poses(stamps=(10, 10**7, 10**7)))

    with pytest.raises(
        InputFileError, match=r"messages 2 and 3 have two poses for one instant, 0\.01 s"
    ):
        read_bag(path)


def test_a_changing_frame_is_refused(tmp_path) -> None:
    path = made(tmp_path / "moved", poses()[:2] + poses(frame="map")[2:])

    with pytest.raises(
        InputFileError, match="message 3 is in the frame 'map', those before in 'base_link'"
    ):
        read_bag(path)


def test_a_bag_without_poses_is_refused(tmp_path) -> None:
    (tmp_path / "broken.bag").write_bytes(b"#ROSBAG V2.0\nnothing")
    (tmp_path / "broken.mcap").write_bytes(b"\x89MCAP0\r\n")
    (tmp_path / "folder").mkdir()
    for name in ("broken.bag", "broken.mcap", "folder", "none.bag"):
        with pytest.raises(InputFileError, match=name):
            read_bag(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.bag", "a bag of ROS 1"), ("a.mcap", "MCAP"), ("a.db3", "SQLite")]
)
def test_the_error_names_the_expected_kind(tmp_path, name: str, kind: str) -> None:
    (tmp_path / name).write_bytes(np.random.default_rng(1).bytes(4096))

    with pytest.raises(InputFileError, match=f"{name}: it does not begin like .*{kind}"):
        read_bag(tmp_path / name)

    (tmp_path / name).write_bytes(b"")

    with pytest.raises(InputFileError, match="it is empty"):
        read_bag(tmp_path / name)


def test_a_single_tf_frame_needs_no_choice(tmp_path, monkeypatch) -> None:
    path = made(
        tmp_path / "tf", [("/tf", k * 10**7, "/base_link", 0.1 * k, "tool") for k in range(3)]
    )
    decoded = []
    monkeypatch.setattr(Bag, "deserialize", counting(decoded, Bag.deserialize))

    trajectory, frame = read_bag(path)

    np.testing.assert_array_equal(trajectory.poses[:, 0], [0.0, 0.1, 0.2])
    assert (frame, len(decoded)) == ("base_link", 3)


def test_a_bag_is_never_overwritten(tmp_path) -> None:
    write_bag(tmp_path / "a.mcap", square())

    with pytest.raises(OutputError, match="exists already"):
        write_bag(tmp_path / "a.mcap", square())


def test_a_foreign_frame_needs_a_placement(tmp_path, cli) -> None:
    path = made(tmp_path / "map", poses(frame="map"))

    refused = cli("check", path)

    assert refused.status == 2
    assert "frame 'map'" in refused.message
    assert "--transform" in refused.message

    half = np.sqrt(0.5)

    moved = cli(
        "check",
        path,
        "--transform",
        "0.7",
        "0.1",
        "0.3",
        half,
        -half,
        "0",
        "0",
        "--json",
        "--on-limits",
        "limit",
    )

    assert moved.status == 0, moved.err
    assert cli("check", path, "--anchor", "start", "--json", "--on-limits", "limit").status == 0


def test_a_db3_file_is_read_like_its_directory(tmp_path) -> None:
    path = square(side=0.2)
    write_bag(tmp_path / "bag", path)
    (inside,) = (tmp_path / "bag").glob("*.db3")
    (tmp_path / "lone").mkdir()
    lone = inside.rename(tmp_path / "lone" / "lone.db3")

    read, frame = read_bag(lone)

    assert frame == "base_link"
    np.testing.assert_array_equal(read.poses, path.poses)


@pytest.mark.parametrize("mode", ["FILE", "MESSAGE", "STORAGE"])
def test_compressed_bags_of_ros_2_are_read(tmp_path, mode: str) -> None:
    storage = rosbag2.StoragePlugin.MCAP if mode == "STORAGE" else rosbag2.StoragePlugin.SQLITE3
    writer = rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=storage)
    writer.set_compression(rosbag2.CompressionMode[mode], rosbag2.CompressionFormat.ZSTD)
    fill(writer, poses(), ros1=False)

    read, _ = read_bag(tmp_path / "bag")

    np.testing.assert_array_equal(read.poses[:, 0], [0.0, 0.1, 0.2])


@pytest.mark.parametrize("kind", ["BZ2", "LZ4"])
def test_compressed_bags_of_ros_1_are_read(tmp_path, kind: str) -> None:
    writer = rosbag1.Writer(tmp_path / "one.bag")
    writer.set_compression(writer.CompressionFormat[kind])
    fill(writer, poses(), ros1=True)

    read, _ = read_bag(tmp_path / "one.bag")

    np.testing.assert_array_equal(read.poses[:, 0], [0.0, 0.1, 0.2])


def test_too_many_poses_are_refused_early(tmp_path, monkeypatch) -> None:
    path = made(tmp_path / "long", [("/tool", k, "base_link", 0.0) for k in range(2_000)])

    assert len(read_bag(path)[0].times) == 2_000

    decoded = []
    monkeypatch.setattr("simbridge.trajectory.bags.MAX_POSES", 1_000)
    stamped_poses = counting(decoded, bags._stamped_poses)
    monkeypatch.setattr("simbridge.trajectory.bags._stamped_poses", stamped_poses)

    with pytest.raises(InputFileError, match=r"/tool has more than 1,000 poses; split the bag"):
        read_bag(path)

    assert len(decoded) == 1_001


# Hostile bags

ZEROS = bytes(100 << 20)


def compressed_directory(path, mode: str):
    writer = rosbag2.Writer(path, version=9)
    writer.set_compression(rosbag2.CompressionMode[mode], rosbag2.CompressionFormat.ZSTD)
    fill(writer, poses(), ros1=False)
    return path


def test_a_compressed_file_cannot_fill_the_disk(tmp_path, monkeypatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    bag = compressed_directory(tmp_path / "bag", "FILE")
    (inside,) = bag.glob("*.zstd")
    inside.write_bytes(inside.read_bytes() + zstandard.compress(ZEROS))

    with pytest.raises(InputFileError, match="more than 50 times its size when it is decompressed"):
        read_bag(bag)

    assert not list(temporary.iterdir())


def test_a_compressed_message_cannot_fill_memory(tmp_path) -> None:
    bag = compressed_directory(tmp_path / "bag", "MESSAGE")
    (inside,) = bag.glob("*.db3")
    with contextlib.closing(sqlite3.connect(inside)) as database, database:
        database.execute("UPDATE messages SET data = ? WHERE id = 2", (zstandard.compress(ZEROS),))

    with pytest.raises(InputFileError, match="more than 50 times its size when it is decompressed"):
        read_bag(bag)


def mcap_with(path, content: bytes, compression: str):
    """An MCAP file with one more chunk."""
    write_bag(path, square())
    data = zstandard.compress(content) if compression == "zstd" else lz4.frame.compress(content)
    name = compression.encode()
    head = (
        struct.pack("<QQQII", 0, 1, len(content), 0, len(name))
        + name
        + struct.pack("<Q", len(data))
    )
    whole = path.read_bytes()
    begin = 8 + 9 + struct.unpack_from("<Q", whole, 9)[0]
    chunk = struct.pack("<BQ", 6, len(head) + len(data)) + head + data
    path.write_bytes(whole[:begin] + chunk + whole[begin:])
    return path


def test_a_chunk_that_would_fill_memory_is_refused(tmp_path, cli) -> None:
    path = mcap_with(tmp_path / "bomb.mcap", ZEROS, "zstd")

    assert path.stat().st_size < 500_000

    with pytest.raises(InputFileError, match="more than 50 times its size when it is decompressed"):
        read_bag(path)

    refused = cli("inspect", path)

    assert refused.status == 2
    assert "more than 50 times its size" in refused.message


def ros1_record(data: bytes, **fields: bytes) -> bytes:
    pairs = [name.encode() + b"=" + value for name, value in fields.items()]
    header = b"".join(struct.pack("<I", len(pair)) + pair for pair in pairs)
    return struct.pack("<I", len(header)) + header + struct.pack("<I", len(data)) + data


def test_a_ros_1_chunk_cannot_fill_memory(tmp_path) -> None:
    chunk = ros1_record(
        bz2.compress(ZEROS), op=b"\x05", compression=b"bz2", size=struct.pack("<I", len(ZEROS))
    )
    (tmp_path / "bomb.bag").write_bytes(b"#ROSBAG V2.0\n" + chunk)

    with pytest.raises(InputFileError, match="more than 50 times its size when it is decompressed"):
        read_bag(tmp_path / "bomb.bag")


@pytest.mark.parametrize(
    "name", ["{outside}", "../outside/outside_0.db3", "..", "", "a/b/outside_0.db3", "link.db3"]
)
def test_a_path_out_of_the_bag_is_refused(tmp_path, name: str) -> None:
    made(tmp_path / "outside", poses("/secret"))
    bag = made(tmp_path / "bag", poses())
    elsewhere = tmp_path / "outside" / "outside.db3"
    (bag / "link.db3").symlink_to(elsewhere)

    text = (bag / "metadata.yaml").read_text()

    assert text.count("- bag.db3") == 1

    (bag / "metadata.yaml").write_text(
        text.replace("- bag.db3", f"- '{name.format(outside=elsewhere)}'")
    )

    with pytest.raises(InputFileError, match="is not a file in its directory"):
        read_bag(bag)


def test_a_repeated_file_name_is_refused(tmp_path) -> None:
    bag = made(tmp_path / "bag", poses())
    text = (bag / "metadata.yaml").read_text()
    (bag / "metadata.yaml").write_text(text.replace("- bag.db3", "- bag.db3\n  - bag.db3"))

    with pytest.raises(InputFileError, match=r"names 'bag\.db3' twice"):
        read_bag(bag)


ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 1 AS topic_id"
)


@pytest.mark.parametrize(
    "statements",
    [
        [
            "DROP TABLE messages",
            f"CREATE VIEW messages AS {ENDLESS}, i AS timestamp, zeroblob(100) AS data FROM n",
        ],
        [
            "ALTER TABLE messages ADD COLUMN more BLOB GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL"
        ],
    ],
    ids=["view", "column"],
)
def test_a_computing_database_is_refused(tmp_path, statements: list[str]) -> None:
    bag = made(tmp_path / "bag", poses())
    with contextlib.closing(sqlite3.connect(bag / "bag.db3")) as database, database:
        for statement in statements:
            database.execute(statement)

    with pytest.raises(InputFileError, match="that is computed"):
        read_bag(bag)


def test_message_definitions_are_not_followed(tmp_path) -> None:
    # With this one, 2^32 transforms would take no byte of the message.
    path = tmp_path / "empty.bag"
    connection = {"topic": b"/tf", "type": b"tf2_msgs/TFMessage", "md5sum": b"*"}
    inner = ros1_record(
        b"",
        **connection,
        message_definition=b"Nothing[] transforms\n" + b"=" * 80 + b"\nMSG: a/Nothing\n",
    )
    inner = inner[4:-4]  # only the fields
    data = ros1_record(inner, op=b"\x07", conn=b"\0" * 4, topic=b"/tf")
    data += ros1_record(struct.pack("<I", 2**32 - 1), op=b"\x02", conn=b"\0" * 4, time=bytes(8))
    path.write_bytes(
        b"#ROSBAG V2.0\n" + ros1_record(data, op=b"\x05", compression=b"none", size=b"\0" * 4)
    )

    with pytest.raises(InputFileError, match="/tf, message 1 cannot be decoded"):
        read_bag(path)


def counting(calls, function):
    def called(*arguments):
        calls.append(None)
        return function(*arguments)

    return called
