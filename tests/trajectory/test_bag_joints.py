"""Bags of JointState, written by rosbags: joints are matched by their names."""

from __future__ import annotations

import numpy as np
import pytest
from rosbags import rosbag1, rosbag2

from simbridge.errors import InputFileError
from simbridge.trajectory.files import pose_topics
from tests.trajectory.ros_bags import pose_messages, store_of, write_rosbag
from tests.trajectory.tables.joint_tables import JOINTS, ROBOT, TIMES, read

pytestmark = pytest.mark.slow

JOINT_STATE = "sensor_msgs/msg/JointState"
NAMES = list(ROBOT.joint_names)
START_NS = 1_700_000_000_000_000_000
STAMPS = [START_NS + round(time * 1e9) for time in TIMES]


def messages_of(names=NAMES, joints=JOINTS, *, topic="/joint_states", stamps=STAMPS):
    """Return messages as `write_joints` takes them."""
    return [(topic, stamp, names, row) for stamp, row in zip(stamps, joints, strict=True)]


def write_joints(path, messages, *, ros1=False):
    """Write a bag; messages are (topic, stamp ns, names, positions), recorded 20 ms apart."""
    store = store_of(ros1)
    types = store.types
    time = types["builtin_interfaces/msg/Time"]
    header = types["std_msgs/msg/Header"]
    encode = store.serialize_ros1 if ros1 else store.serialize_cdr
    writer = rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9)
    with writer:
        connections = {}
        for number, (topic, stamp, names, positions) in enumerate(messages):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, JOINT_STATE, typestore=store)
            when = time(*divmod(stamp, 10**9))
            head = header(number, when, "") if ros1 else header(when, "")
            nothing = np.zeros(0)
            message = types[JOINT_STATE](
                head, list(names), np.array(positions, dtype=float), nothing, nothing
            )
            recorded = 10**9 + number * 20_000_000
            writer.write(connections[topic], recorded, encode(message, JOINT_STATE))
    return path


@pytest.mark.parametrize("ros1", [True, False])
def test_joints_are_matched_by_their_names(tmp_path, ros1):
    order = np.argsort(NAMES)
    messages = messages_of([NAMES[joint] for joint in order], JOINTS[:, order])
    path = write_joints(tmp_path / ("joints.bag" if ros1 else "joints"), messages, ros1=ros1)

    motion = read(path)

    assert np.array_equal(motion.joints, JOINTS)
    assert motion.epoch_ns == START_NS
    assert motion.times == pytest.approx(TIMES)


def test_other_joints_are_left_out_with_a_note(tmp_path):
    joints = np.column_stack([np.full(len(TIMES), 0.02), JOINTS])
    path = write_joints(tmp_path / "joints", messages_of(["finger", *NAMES], joints))

    with pytest.warns(UserWarning, match="finger were ignored: ur10e does not have them"):
        motion = read(path)

    assert np.array_equal(motion.joints, JOINTS)


def test_messages_of_a_gripper_are_left_out_with_a_note(tmp_path):
    gripper = [("/joint_states", START_NS + 1, ["finger"], [0.02])]
    path = write_joints(tmp_path / "joints", [*gripper, *messages_of(), *gripper])

    with pytest.warns(UserWarning, match="2 messages without a joint of the arm left out"):
        motion = read(path)

    assert np.array_equal(motion.joints, JOINTS)


def test_names_may_have_a_prefix(tmp_path):
    path = write_joints(tmp_path / "joints", messages_of([f"left_{name}" for name in NAMES]))

    assert np.array_equal(read(path).joints, JOINTS)


def test_two_arms_in_a_message_are_refused(tmp_path):
    names = [f"{side}_{name}" for side in ("left", "right") for name in NAMES]
    path = write_joints(tmp_path / "joints", messages_of(names, np.hstack([JOINTS, JOINTS])))

    with pytest.raises(InputFileError, match="not those of ur10e"):
        read(path)


def test_a_missing_joint_is_refused(tmp_path):
    path = write_joints(tmp_path / "joints", messages_of(NAMES[1:], JOINTS[:, 1:]))

    with pytest.raises(InputFileError, match="message 1 has the joints shoulder_lift_joint"):
        read(path)


def test_joints_of_another_arm_are_refused(tmp_path):
    names = [f"panda_joint{joint}" for joint in range(1, 7)]
    path = write_joints(tmp_path / "joints", messages_of(names))

    with pytest.raises(InputFileError, match="has the joints panda_joint1"):
        read(path)


def test_one_of_several_topics_is_chosen(tmp_path):
    messages = [*messages_of(), *messages_of(topic="/targets", joints=JOINTS + 0.1)]
    path = write_joints(tmp_path / "joints", messages)

    with pytest.raises(InputFileError, match="choose one with --topic: /joint_states, /targets"):
        read(path)

    assert np.array_equal(read(path, topic="/targets").joints, JOINTS + 0.1)
    assert set(pose_topics(path)) == {"/joint_states", "/targets"}


def test_without_stamps_times_of_recording_count(tmp_path):
    path = write_joints(tmp_path / "joints", messages_of(stamps=[0] * len(TIMES)))

    assert read(path).times == pytest.approx(TIMES)
    assert read(path).read_as.endswith("times of recording")
    assert read(path, rate=100.0).times == pytest.approx(TIMES / 2.0)


def test_late_messages_are_sorted_with_a_note(tmp_path):
    messages = messages_of()
    messages[3], messages[4] = messages[4], messages[3]
    path = write_joints(tmp_path / "joints", messages)

    with pytest.warns(UserWarning, match="1 message came after later ones"):
        motion = read(path)

    assert np.array_equal(motion.joints, JOINTS)


def test_messages_of_nan_are_left_out_with_a_note(tmp_path):
    joints = JOINTS.copy()
    joints[20] = np.nan
    path = write_joints(tmp_path / "joints", messages_of(joints=joints))

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(message 21\)"):
        motion = read(path)

    assert np.array_equal(motion.joints, np.delete(JOINTS, 20, axis=0))


def test_two_positions_at_one_instant_are_refused(tmp_path):
    messages = [*messages_of(), ("/joint_states", STAMPS[7], NAMES, JOINTS[8])]
    path = write_joints(tmp_path / "joints", messages)

    with pytest.raises(InputFileError, match="messages 8 and 101 have two joint positions"):
        read(path)


def test_names_and_positions_must_fit(tmp_path):
    path = write_joints(tmp_path / "joints", messages_of(joints=JOINTS[:, :5]))

    with pytest.raises(InputFileError, match="has 6 names and 5 positions"):
        read(path)


def test_a_bag_of_poses_has_no_joints(tmp_path):
    path = write_rosbag(tmp_path / "poses", pose_messages())

    assert read(path).joints is None
    with pytest.raises(InputFileError, match="no topics of joint positions"):
        read(path, column="joints")
