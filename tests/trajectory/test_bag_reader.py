"""Bags of every kind are read within limits, and hostile ones refused."""

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

from simbridge.errors import InputFileError
from simbridge.trajectory import bag_poses, square, write_bag
from simbridge.trajectory.files import read_bag
from tests.trajectory.ros_bags import fill, pose_messages, write_rosbag

pytestmark = pytest.mark.slow


def counting(calls, function):
    def called(*arguments):
        calls.append(None)
        return function(*arguments)

    return called


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
    fill(writer, pose_messages(), ros1=False)

    read, _ = read_bag(tmp_path / "bag")

    np.testing.assert_array_equal(read.poses[:, 0], [0.0, 0.1, 0.2])


@pytest.mark.parametrize("kind", ["BZ2", "LZ4"])
def test_compressed_bags_of_ros_1_are_read(tmp_path, kind: str) -> None:
    writer = rosbag1.Writer(tmp_path / "one.bag")
    writer.set_compression(writer.CompressionFormat[kind])
    fill(writer, pose_messages(), ros1=True)

    read, _ = read_bag(tmp_path / "one.bag")

    np.testing.assert_array_equal(read.poses[:, 0], [0.0, 0.1, 0.2])


def test_too_many_poses_are_refused_early(tmp_path, monkeypatch) -> None:
    path = write_rosbag(tmp_path / "long", [("/tool", k, "base_link", 0.0) for k in range(2_000)])

    assert len(read_bag(path)[0].times) == 2_000

    decoded = []
    monkeypatch.setattr("simbridge.trajectory.bag_poses.MAX_POSES", 1_000)
    stamped_poses = counting(decoded, bag_poses.stamped_poses)
    monkeypatch.setattr("simbridge.trajectory.bag_topics.stamped_poses", stamped_poses)

    with pytest.raises(InputFileError, match=r"/tool has more than 1,000 poses; split the bag"):
        read_bag(path)

    assert len(decoded) == 1_001


ZEROS = bytes(100 << 20)


def compressed_directory(path, mode: str):
    writer = rosbag2.Writer(path, version=9)
    writer.set_compression(rosbag2.CompressionMode[mode], rosbag2.CompressionFormat.ZSTD)
    fill(writer, pose_messages(), ros1=False)
    return path


def test_a_compressed_file_cannot_fill_the_disk(tmp_path, monkeypatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    bag = compressed_directory(tmp_path / "bag", "FILE")
    (inside,) = bag.glob("*.zstd")
    inside.write_bytes(inside.read_bytes() + zstandard.compress(ZEROS))

    with pytest.raises(InputFileError, match="decompresses to more than 50 times its size"):
        read_bag(bag)

    assert not list(temporary.iterdir())


def test_a_compressed_message_cannot_fill_memory(tmp_path) -> None:
    bag = compressed_directory(tmp_path / "bag", "MESSAGE")
    (inside,) = bag.glob("*.db3")
    with contextlib.closing(sqlite3.connect(inside)) as database, database:
        database.execute("UPDATE messages SET data = ? WHERE id = 2", (zstandard.compress(ZEROS),))

    with pytest.raises(InputFileError, match="decompresses to more than 50 times its size"):
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

    with pytest.raises(InputFileError, match="decompresses to more than 50 times its size"):
        read_bag(path)

    refused = cli("inspect", path)

    assert refused.status == 2
    assert "more than 50 times its size" in refused.message


def ros1_record(data: bytes, **fields: bytes) -> bytes:
    pairs = [name.encode() + b"=" + value for name, value in fields.items()]
    header = b"".join(struct.pack("<I", len(pair)) + pair for pair in pairs)
    return struct.pack("<I", len(header)) + header + struct.pack("<I", len(data)) + data


def test_a_ros_1_chunk_cannot_fill_memory(tmp_path) -> None:
    # More than 50 times its size and 16 MiB; bz2 takes a second for all of them.
    zeros = ZEROS[: 24 << 20]
    chunk = ros1_record(
        bz2.compress(zeros), op=b"\x05", compression=b"bz2", size=struct.pack("<I", len(zeros))
    )
    (tmp_path / "bomb.bag").write_bytes(b"#ROSBAG V2.0\n" + chunk)

    with pytest.raises(InputFileError, match="decompresses to more than 50 times its size"):
        read_bag(tmp_path / "bomb.bag")


@pytest.mark.parametrize(
    "name", ["{outside}", "../outside/outside_0.db3", "..", "", "a/b/outside_0.db3", "link.db3"]
)
def test_a_path_out_of_the_bag_is_refused(tmp_path, name: str) -> None:
    write_rosbag(tmp_path / "outside", pose_messages("/secret"))
    bag = write_rosbag(tmp_path / "bag", pose_messages())
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
    bag = write_rosbag(tmp_path / "bag", pose_messages())
    text = (bag / "metadata.yaml").read_text()
    (bag / "metadata.yaml").write_text(text.replace("- bag.db3", "- bag.db3\n  - bag.db3"))

    with pytest.raises(InputFileError, match=r"refers to 'bag\.db3' twice"):
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
            (
                "ALTER TABLE messages ADD COLUMN more BLOB GENERATED ALWAYS AS "
                "(zeroblob(1000000000)) VIRTUAL"
            )
        ],
    ],
    ids=["view", "column"],
)
def test_a_computing_database_is_refused(tmp_path, statements: list[str]) -> None:
    bag = write_rosbag(tmp_path / "bag", pose_messages())
    with contextlib.closing(sqlite3.connect(bag / "bag.db3")) as database, database:
        for statement in statements:
            database.execute(statement)

    with pytest.raises(InputFileError, match="computed"):
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
