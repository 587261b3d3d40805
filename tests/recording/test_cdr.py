"""The messages of the log, compared with the independent implementation of CDR in rosbags."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from simbridge.recording.ros_messages import DEFINITIONS, joint_state, pose_stamped, status
from tests.properties import few_examples

pytestmark = pytest.mark.shares_setup

JOINT_STATE, _, POSE_STAMPED, STATUS, _ = DEFINITIONS
# A CDR string ends at its first NUL.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
SECONDS = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 10**9 - 1))
NAMES = st.lists(TEXTS, min_size=1, max_size=12)


def vectors(shape):
    return arrays(np.float64, shape, elements=st.floats(allow_nan=True, allow_infinity=True))


@pytest.fixture(scope="module")
def ros():
    """A type store with only our own definitions."""
    store = get_typestore(Stores.EMPTY)
    for name, text in DEFINITIONS.items():
        store.register(get_types_from_msg(text, name))
    return store


def header(ros, seconds, frame_id):
    stamp = ros.types["builtin_interfaces/msg/Time"](sec=seconds[0], nanosec=seconds[1])
    return ros.types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame_id)


def test_standard_messages_are_those_of_ros_2(ros):
    official = get_typestore(Stores.ROS2_JAZZY)

    names = [name for name in ros.fielddefs if not name.startswith("simbridge_msgs/")]

    assert {JOINT_STATE, POSE_STAMPED} < set(names)
    for name in names:
        _, fields = ros.fielddefs[name]
        _, official_fields = official.fielddefs[name]
        assert fields == official_fields, name


@pytest.mark.slow
@few_examples(20)
@given(st.data(), TEXTS, NAMES, SECONDS)
def test_joint_states_are_packed_as_by_ros(ros, data, frame_id, names, seconds):
    numbers = [data.draw(vectors(len(names))) for _ in range(3)]
    message = ros.types[JOINT_STATE](header(ros, seconds, frame_id), names, *numbers)
    layout = joint_state(frame_id, names, "q", velocity="qd", effort="tau")

    packed = layout.pack(seconds, *numbers)

    assert packed == bytes(ros.serialize_cdr(message, JOINT_STATE))


@few_examples(20)
@given(st.data(), TEXTS, NAMES, SECONDS)
def test_positions_alone_are_packed_as_by_ros(ros, data, frame_id, names, seconds):
    position = data.draw(vectors(len(names)))
    no_numbers = np.empty(0)
    message = ros.types[JOINT_STATE](
        header(ros, seconds, frame_id), names, position, no_numbers, no_numbers
    )

    packed = joint_state(frame_id, names, "q").pack(seconds, position)

    assert packed == bytes(ros.serialize_cdr(message, JOINT_STATE))


@given(TEXTS, SECONDS, vectors(7))
def test_a_pose_ends_with_its_scalar(ros, frame_id, seconds, pose):
    packed = pose_stamped(frame_id, "target").pack(seconds, pose)

    read = ros.deserialize_cdr(packed, POSE_STAMPED)
    p = read.pose.position
    q = read.pose.orientation
    assert np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w]).tobytes() == pose.tobytes()
    assert read.header.frame_id == frame_id
    assert read.header.stamp.sec == seconds[0]
    assert read.header.stamp.nanosec == seconds[1]


@given(
    TEXTS,
    SECONDS,
    st.integers(-(2**63), 2**63 - 1),
    vectors(4),
    st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 3),
    st.booleans(),
)
def test_a_status_keeps_every_number(ros, frame_id, seconds, index, numbers, modes, limited):
    packed = status(frame_id).pack(seconds, (index, *numbers.tolist(), *modes, limited))

    read = ros.deserialize_cdr(packed, STATUS)
    floats = np.array([read.stamp, read.plan_time, read.speed_scaling, read.host_monotonic])
    assert floats.tobytes() == numbers.tobytes()
    assert read.index == index
    assert read.limited == limited
    assert (read.robot_mode, read.safety_mode, read.runtime_state) == modes
    assert packed == bytes(ros.serialize_cdr(read, STATUS))


@few_examples(20)
@given(st.data(), NAMES)
def test_messages_of_ros_become_arrays(ros, data, names):
    count = data.draw(st.integers(0, 5))
    expected_columns = {
        name: data.draw(vectors((count, len(names)))) for name in ("q", "qd", "tau")
    }
    messages = []
    for k, numbers in enumerate(zip(*expected_columns.values(), strict=True)):
        message = ros.types[JOINT_STATE](header(ros, (k, 8), "base_link"), names, *numbers)
        messages.append(bytes(ros.serialize_cdr(message, JOINT_STATE)))
    layout = joint_state("base_link", names, "q", velocity="qd", effort="tau")

    columns = layout.unpack(messages)

    assert columns["sec"].tolist() == list(range(count))
    for name, expected in expected_columns.items():
        assert columns[name].shape == (count, len(names))
        assert columns[name].tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "names", [["shoulder", "elbow_"], ["shoulder"], ["shoulder", "elbow", "wrist"]]
)
def test_messages_of_other_joints_are_refused(names):
    foreign = joint_state("base_link", names, "q").pack((0, 0), [0.0] * len(names))
    layout = joint_state("base_link", ["shoulder", "elbow"], "q")

    with pytest.raises(ValueError, match="message"):
        layout.unpack([foreign])


def test_other_names_of_one_length_are_refused():
    foreign = joint_state("base_link", ["elbow", "wrist"], "q").pack((0, 0), [1.0, 2.0])
    layout = joint_state("base_link", ["wrist", "elbow"], "q")

    with pytest.raises(ValueError, match="different names"):
        layout.unpack([foreign])


@pytest.mark.parametrize(
    "groups", [([1.0], [1.0, 2.0, 3.0]), ([1.0, 2.0], [[1.0], [2.0]]), ([1.0, 2.0], ["1", "2"])]
)
def test_numbers_that_do_not_fit_are_refused(groups):
    layout = joint_state("base_link", ["shoulder", "elbow"], "q", velocity="qd")

    with pytest.raises(ValueError, match=r"^qd?: "):
        layout.pack((0, 0), *groups)
