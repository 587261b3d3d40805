"""Poses in bags: of which topic, message and frame, and at which times."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from rosbags import rosbag2

from simbridge import load_robot, load_scenario
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.trajectory.bag_reader import Bag
from simbridge.trajectory.files import pose_topics, read_bag
from simbridge.trajectory.read_options import ReadOptions
from tests.trajectory.ros_bags import EPOCH, STEP, Maker, pose_messages, write_rosbag

pytestmark = pytest.mark.slow


def counting(calls, function):
    def called(*arguments):
        calls.append(None)
        return function(*arguments)

    return called


@pytest.mark.parametrize("ros1", [True, False])
def test_bags_of_rosbags_own_writer_are_read(tmp_path, ros1: bool) -> None:
    path = write_rosbag(tmp_path / ("a.bag" if ros1 else "a"), pose_messages(), ros1)

    trajectory, frame = read_bag(path)

    assert frame == "base_link"
    np.testing.assert_array_equal(trajectory.times, [0.0, 0.01, 0.02])
    np.testing.assert_array_equal(trajectory.poses[:, 0], [0.0, 0.1, 0.2])


def test_several_topics_need_a_choice(tmp_path) -> None:
    path = write_rosbag(
        tmp_path / "two",
        pose_messages("/a") + pose_messages("/b")[:2] + [("/tf", 0, "world", 1.0, "tool")],
    )

    with pytest.raises(
        InputFileError, match=r"3 topics of poses; choose one with --topic: /a, /b, /tf:world>tool"
    ) as refusal:
        read_bag(path)

    assert "To chain tf frames, use --frames PARENT CHILD" in str(refusal.value)
    assert pose_topics(path) == ["/a", "/b", "/tf:world>tool"]
    assert len(read_bag(path, "/b")[0].times) == 2

    with pytest.raises(
        InputFileError, match="there is no topic '/c' to read; choose one with --topic: /a"
    ):
        read_bag(path, "/c")


def test_a_missing_tf_frame_is_refused(tmp_path) -> None:
    moves = [
        ("/tf", k * 10**7, "base_link", float(k), child)
        for k in range(3)
        for child in ("tool", "camera")
    ]

    path = write_rosbag(tmp_path / "tf", moves)

    np.testing.assert_array_equal(read_bag(path, "/tf:tool")[0].poses[:, 0], [0.0, 1.0, 2.0])

    with pytest.raises(
        InputFileError,
        match=r"/tf has no transform to the frame 'hand'; choose .*/tf:base_link>tool",
    ):
        read_bag(path, "/tf:hand")


def test_a_motion_beside_tf_needs_no_choice(tmp_path, make) -> None:
    messages = [("/goal", make.pose(9.0))]
    for t, x in zip(stamps(), X, strict=True):
        joint = (t, "base_link", "shoulder", (x, 0.0, 0.0, *QUARTER))
        messages += [("/tool", make.stamped(t, x)), ("/tf", make.transforms(joint))]
    path = make.write(tmp_path / "a", messages)

    motion, _ = read_bag(path)

    assert motion.read_as.endswith("topic /tool, in the frame base_link")
    assert pose_topics(path) == ["/tool"]


def test_a_goal_beside_moving_tf_needs_a_choice(tmp_path, make) -> None:
    messages = [("/goal", make.stamped(EPOCH, 0.5))]
    for t in stamps():
        messages.append(("/tf", make.transforms((t, "base_link", "tool", (0.5, 0, 0, *QUARTER)))))
    path = make.write(tmp_path / "a", messages)

    with pytest.raises(InputFileError, match="--topic: /tf:base_link>tool, /goal"):
        read_bag(path)


def test_a_still_transform_is_no_motion(tmp_path, make) -> None:
    messages = [("/tf_static", make.transforms((0, "base_link", "table", (1, 0, 0, *QUARTER))))]
    messages += [("/tool", make.pose(x)) for x in X]

    motion, _ = read_bag(make.write(tmp_path / "a", messages))

    assert motion.read_as.endswith("topic /tool, times of recording")


def test_topics_without_stamps_are_listed(tmp_path, make) -> None:
    messages = [("/plain", make.pose(9.0)), ("/tool", make.stamped(EPOCH, 0.5))]
    path = make.write(tmp_path / "a", messages)

    with pytest.raises(InputFileError, match=r"choose one with --topic: /tool, /plain"):
        read_bag(path, "/other")

    assert read_bag(path, "/plain")[0].poses[0, 0] == 9.0


@pytest.mark.parametrize("part", ["position", "orientation"])
def test_a_lost_pose_leaves_a_gap(tmp_path, make, part: str) -> None:
    messages = [("/tool", make.stamped(t, x)) for t, x in zip(stamps(), X, strict=True)]
    _, lost = messages[2]
    getattr(lost.pose, part).x = np.nan

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(message 3\)"):
        motion, _ = read_bag(make.write(tmp_path / "a", messages))

    np.testing.assert_allclose(motion.times, [0.0, 0.02, 0.06, 0.08])


def test_a_repeated_message_is_left_out(tmp_path) -> None:
    messages = pose_messages()
    path = write_rosbag(tmp_path / "twice", [*messages[:2], *messages[1:]])

    with pytest.warns(UserWarning, match=r"1 repeated pose left out \(message 3\)"):
        motion, _ = read_bag(path)

    np.testing.assert_array_equal(motion.poses[:, 0], [0.0, 0.1, 0.2])


def test_a_late_tf_frame_is_a_candidate(tmp_path) -> None:
    moves = [
        ("/tf", k * 10**6, "base_link", 0.0, "tool" if k < 2_500 else "camera")
        for k in range(2_501)
    ]

    path = write_rosbag(tmp_path / "tf", moves)

    assert pose_topics(path) == ["/tf:base_link>tool", "/tf:base_link>camera"]

    with pytest.raises(InputFileError, match="it has 2 topics of poses"):
        read_bag(path)


def test_unsorted_stamps_are_sorted_with_a_note(tmp_path) -> None:
    path = write_rosbag(tmp_path / "late", pose_messages(stamps=(0, 2 * 10**7, 10**7)))

    with pytest.warns(
        UserWarning,
        match=r"samples sorted by their timestamps: 1 message came after later ones \(message 3\)",
    ):
        trajectory, _ = read_bag(path)

    np.testing.assert_array_equal(trajectory.poses[:, 0], [0.0, 0.2, 0.1])


def test_the_note_counts_every_late_message(tmp_path) -> None:
    path = write_rosbag(
        tmp_path / "late",
        pose_messages(stamps=(0, 5 * 10**7, 10**7, 2 * 10**7, 3 * 10**7, 6 * 10**7)),
    )

    with pytest.warns(UserWarning, match=r"3 messages came after later ones \(messages 3 to 5\)"):
        read_bag(path)


def test_two_poses_at_one_instant_are_refused(tmp_path) -> None:
    path = write_rosbag(tmp_path / "twice", pose_messages(stamps=(10, 10**7, 10**7)))

    with pytest.raises(
        InputFileError, match=r"messages 2 and 3 have two poses with the same timestamp, 0\.01 s"
    ):
        read_bag(path)


def test_a_changing_frame_is_refused(tmp_path) -> None:
    path = write_rosbag(tmp_path / "moved", pose_messages()[:2] + pose_messages(frame="map")[2:])

    with pytest.raises(
        InputFileError, match="message 3 is in the frame 'map', earlier ones in 'base_link'"
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

    with pytest.raises(InputFileError, match=f"{name}: it does not start like .*{kind}"):
        read_bag(tmp_path / name)

    (tmp_path / name).write_bytes(b"")

    with pytest.raises(InputFileError, match="it is empty"):
        read_bag(tmp_path / name)


def test_a_single_tf_frame_needs_no_choice(tmp_path, monkeypatch) -> None:
    path = write_rosbag(
        tmp_path / "tf", [("/tf", k * 10**7, "/base_link", 0.1 * k, "tool") for k in range(3)]
    )
    decoded = []
    monkeypatch.setattr(Bag, "deserialize", counting(decoded, Bag.deserialize))

    trajectory, frame = read_bag(path)

    np.testing.assert_array_equal(trajectory.poses[:, 0], [0.0, 0.1, 0.2])
    assert frame == "base_link"
    assert len(decoded) == 3


def test_a_foreign_frame_needs_a_placement(tmp_path, cli) -> None:
    path = write_rosbag(tmp_path / "map", pose_messages(frame="map"))

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


X = 0.5 + 0.01 * np.arange(5)


@pytest.fixture
def make():
    return Maker()


def stamps():
    return [EPOCH + k * STEP for k in range(len(X))]


@pytest.mark.parametrize("ros1", [True, False])
def test_the_poses_of_odometry_are_read(tmp_path, ros1: bool) -> None:
    make = Maker(ros1)
    messages = [("/odom", make.odometry(t, x)) for t, x in zip(stamps(), X, strict=True)]

    motion, frame = read_bag(make.write(tmp_path / ("a.bag" if ros1 else "a"), messages))

    assert frame == "odom"
    assert motion.epoch_ns == EPOCH
    np.testing.assert_array_equal(motion.poses[:, 0], X)
    np.testing.assert_array_equal(motion.times, 0.02 * np.arange(5))
    assert motion.read_as == "5 poses, 50 Hz, topic /odom, in the frame odom"


@pytest.mark.parametrize("ros1", [True, False])
@pytest.mark.parametrize("kind", ["Pose", "PoseWithCovariance", "Transform"])
def test_stampless_poses_have_recording_times(tmp_path, kind: str, ros1: bool) -> None:
    make = Maker(ros1)

    def of(x: float):
        if kind == "Transform":
            return make.of(
                f"geometry_msgs/msg/{kind}",
                make.of("geometry_msgs/msg/Vector3", x, 0.1, 0.3),
                make.turn(),
            )
        covered = kind == "PoseWithCovariance"
        return (
            make.of(f"geometry_msgs/msg/{kind}", make.pose(x), np.zeros(36))
            if covered
            else make.pose(x)
        )

    messages = [("/tool", of(x)) for x in X]

    motion, frame = read_bag(make.write(tmp_path / ("a.bag" if ros1 else "a"), messages))

    assert frame == ""
    assert motion.epoch_ns == EPOCH
    np.testing.assert_array_equal(motion.poses[:, :3], [(x, 0.1, 0.3) for x in X])
    np.testing.assert_array_equal(motion.times, 0.001 * np.arange(5))
    assert motion.read_as.endswith("topic /tool, times of recording")


def test_simultaneous_stampless_poses_need_a_rate(tmp_path, make) -> None:
    store = make.store
    path = tmp_path / "a"
    with rosbag2.Writer(path, version=9) as writer:
        connection = writer.add_connection("/tool", "geometry_msgs/msg/Pose", typestore=store)
        for k, x in enumerate(X):
            message = store.serialize_cdr(make.pose(x), "geometry_msgs/msg/Pose")
            writer.write(connection, EPOCH + k // 2 * 10**7, message)

    with pytest.raises(
        InputFileError,
        match=r"messages 1 and 2 have two poses with the same timestamp.*with --rate HZ",
    ):
        read_bag(path)

    motion, _ = read_bag(path, rate=200.0)

    np.testing.assert_allclose(motion.times, 0.005 * np.arange(5), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kind", ["stamped", "tf"])
def test_a_stampless_pose_is_no_candidate(tmp_path, make, kind: str) -> None:
    messages = [("/goal", make.pose(9.0))]
    for t, x in zip(stamps(), X, strict=True):
        link = (t, "base_link", "tool", (x, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0))
        messages.append(
            ("/tf", make.transforms(link)) if kind == "tf" else ("/tool", make.stamped(t, x))
        )

    path = make.write(tmp_path / "a", messages)

    assert pose_topics(path) == ["/tf:base_link>tool" if kind == "tf" else "/tool"]

    motion, _ = read_bag(path)

    np.testing.assert_array_equal(motion.poses[:, 0], X)
    np.testing.assert_array_equal(motion.times, 0.02 * np.arange(5))
    # It can be named.
    assert read_bag(path, "/goal")[0].poses[0, 0] == 9.0


def test_a_rate_replaces_the_recording_time(tmp_path, make) -> None:
    path = make.write(tmp_path / "a", [("/goal", make.pose(0.5))])

    assert "times of recording" in read_bag(path)[0].read_as
    assert "times of recording" not in read_bag(path, rate=10.0)[0].read_as


def path_of(make, count: int, stamped: bool = True):
    pose_messages = [
        make.stamped(t if stamped else 0, x, "") for t, x in zip(stamps()[:count], X, strict=False)
    ]
    return make.of("nav_msgs/msg/Path", make.header(EPOCH, "base_link"), pose_messages)


def test_the_last_path_is_the_motion(tmp_path, make) -> None:
    motion, frame = read_bag(
        make.write(tmp_path / "a", [("/path", path_of(make, count)) for count in (1, 3, 5)])
    )

    assert frame == "base_link"
    np.testing.assert_array_equal(motion.poses[:, 0], X)
    np.testing.assert_array_equal(motion.times, 0.02 * np.arange(5))


def test_a_path_without_stamps_needs_the_rate(tmp_path, make) -> None:
    path = make.write(tmp_path / "a", [("/path", path_of(make, 5, stamped=False))])

    with pytest.raises(
        InputFileError,
        match=r"the 5 poses of the one message of /path have no timestamps: add --rate HZ",
    ):
        read_bag(path)

    np.testing.assert_allclose(read_bag(path, rate=10.0)[0].times, 0.1 * np.arange(5))


def array_of(make, stamp: int, xs):
    return make.of(
        "geometry_msgs/msg/PoseArray", make.header(stamp, "base_link"), [make.pose(x) for x in xs]
    )


def test_a_pose_array_is_a_motion(tmp_path, make) -> None:
    path = make.write(tmp_path / "a", [("/poses", array_of(make, EPOCH, X))])

    with pytest.raises(InputFileError, match="add --rate HZ"):
        read_bag(path)

    motion, _ = read_bag(path, rate=50.0)

    np.testing.assert_array_equal(motion.poses[:, 0], X)


def test_of_many_pose_arrays_one_index_is_chosen(tmp_path, make) -> None:
    messages = [("/poses", array_of(make, t, [9.0, x])) for t, x in zip(stamps(), X, strict=True)]
    path = make.write(tmp_path / "a", messages)

    with pytest.raises(
        InputFileError,
        match=r"5 messages of several poses each; choose one of them: --topic /poses:0",
    ):
        read_bag(path)

    np.testing.assert_array_equal(read_bag(path, "/poses:1")[0].poses[:, 0], X)

    with pytest.raises(InputFileError, match="no pose '2'"):
        read_bag(path, "/poses:2")


def test_a_rate_for_poses_with_stamps_is_refused(tmp_path, make) -> None:
    path = make.write(
        tmp_path / "a", [("/a", make.stamped(t, x)) for t, x in zip(stamps(), X, strict=True)]
    )

    with pytest.raises(InputFileError, match="have timestamps; omit --rate"):
        read_bag(path, rate=50.0)


QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))


def tf(make, path):
    """world > base (still, turned), world > camera (still), camera > tool (moving); base is known
    at twice the rate.
    """
    still = [("/tf_static", make.transforms((0, "world", "camera", (1.0, 0.0, 0.0, *QUARTER))))]
    moving = []
    for k in range(10):
        when = EPOCH + k * STEP // 2
        moving.append(
            ("/tf", make.transforms((when, "world", "base", (0.0, 0.01 * k, 0.0, *QUARTER))))
        )
        if k % 2 == 0:
            moving.append(
                ("/tf", make.transforms((when, "camera", "tool", (0.1 * k, 0, 0, 0, 0, 0, 1))))
            )
    return make.write(path, still + moving)


def test_frames_are_chained_over_still_and_moving_transforms(tmp_path, make) -> None:
    path = tf(make, tmp_path / "a")

    assert len(pose_topics(path)) == 3

    with pytest.warns(UserWarning, match=r"1 pose after the last transform from camera to tool"):
        motion, frame = read_bag(path, frames=("base", "tool"))

    assert frame == "base"
    assert motion.read_as.endswith("tf from base to tool, in the frame base")

    quarter = pin.SE3(pin.Quaternion(np.array(QUARTER)).matrix(), np.zeros(3))

    # The tool is known until 80 ms, the base every 10 ms: nine instants, the tool's between its
    # samples interpolated.
    np.testing.assert_allclose(motion.times, 0.01 * np.arange(9))

    for k, tool_pose in enumerate(motion.poses):
        base = pin.SE3(quarter.rotation, np.array([0.0, 0.01 * k, 0.0]))
        camera = pin.SE3(quarter.rotation, np.array([1.0, 0.0, 0.0]))
        expected = base.inverse() * camera * pin.SE3(np.eye(3), np.array([0.1 * k, 0.0, 0.0]))

        np.testing.assert_allclose(tool_pose[:3], expected.translation, atol=1e-9)
        np.testing.assert_allclose(
            pin.Quaternion(tool_pose[3:]).matrix(), expected.rotation, atol=1e-9
        )


def test_unconnected_frames_are_refused(tmp_path, make) -> None:
    path = tf(make, tmp_path / "a")

    with pytest.raises(
        InputFileError, match=r"does not connect the frames 'base' and 'hand'.*base, camera, tool"
    ):
        read_bag(path, frames=("base", "hand"))


def test_frames_are_placed_like_poses(tmp_path, make) -> None:
    path = tf(make, tmp_path / "a")
    robot = load_robot("ur10")

    # What is called base moves, so that it need not be UR's base frame.
    with pytest.raises(InputFileError, match="its poses are in the frame 'world'") as refusal:
        load_scenario(path, robot, ReadOptions(frames=("world", "tool")))

    assert "add --base-frame base --frame base;" in str(refusal.value)

    reading = ReadOptions(frames=("world", "tool"), transform=(0.0,) * 6 + (1.0,))

    assert load_scenario(path, robot, reading).trajectory.start[0] == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"frames": ("a",)}, {"frames": ("a", "b"), "topic": "/tf"}])
def test_frames_are_two_and_without_a_topic(options) -> None:
    with pytest.raises(InvalidParameter, match="--frames must be"):
        ReadOptions(**options)
