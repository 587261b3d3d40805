"""Bags that are written are read by rosbags and by us."""

from __future__ import annotations

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from simbridge.errors import OutputError
from simbridge.trajectory import read_trajectory, square, write_bag
from simbridge.trajectory.files import read_bag
from tests.trajectory.ros_bags import pose_messages, write_rosbag

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("name", ["epoch.bag", "epoch.mcap", "epoch"])
def test_stamps_since_1970_come_back_to_the_nanosecond(tmp_path, name: str) -> None:
    began = 1_763_751_234_123_456_789
    steps = np.arange(50) * 1_999_983
    path = write_rosbag(tmp_path / "given", pose_messages(stamps=(began + steps).tolist()))

    trajectory, _ = read_bag(path)

    assert trajectory.epoch_ns == began
    np.testing.assert_array_equal(trajectory.times, steps / 1e9)

    moved = trajectory.transform([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
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


def test_a_bag_is_never_overwritten(tmp_path) -> None:
    write_bag(tmp_path / "a.mcap", square())

    with pytest.raises(OutputError, match="already exists"):
        write_bag(tmp_path / "a.mcap", square())
