"""Options of the emulated arm: its start posture and its speed limits."""

from __future__ import annotations

import pytest

from simbridge.emulator.arm_options import speed_limits, start_joints
from simbridge.errors import InvalidParameter
from simbridge.robot import load_robot


def test_the_arm_starts_at_home_as_ursim_or_at_joints():
    robot = load_robot("ur10e")

    assert start_joints(robot, "home").tolist() == robot.home.tolist()
    assert start_joints(robot, "ursim").tolist() == [
        -1.6007,
        -1.7271,
        -2.203,
        -0.808,
        1.5951,
        -0.031,
    ]
    assert start_joints(robot, "0.1,-1,1,-1, -1 ,0").tolist() == [0.1, -1.0, 1.0, -1.0, -1.0, 0.0]


@pytest.mark.parametrize("given", ["elsewhere", "1,2,3", "0,0,9,0,0,0", "0,0,nan,0,0,0", ""])
def test_impossible_start_pose_is_refused(given):
    with pytest.raises(InvalidParameter, match="start pose"):
        start_joints(load_robot("ur10e"), given)


@pytest.mark.parametrize(
    ("given", "limits"), [("3.14", (3.14,) * 6), ("2,2,3,3,3,4", (2.0, 2.0, 3.0, 3.0, 3.0, 4.0))]
)
def test_joint_speed_limits_are_one_number_or_one_a_joint(given, limits):
    assert speed_limits(load_robot("ur10e"), given) == limits


@pytest.mark.parametrize("given", ["fast", "1,2", ""])
def test_other_joint_speed_limits_are_refused(given):
    with pytest.raises(InvalidParameter, match="joint speed limit"):
        speed_limits(load_robot("ur10e"), given)
