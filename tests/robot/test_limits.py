"""The controller's limits applied to the robot file's."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.errors import InvalidParameter
from simbridge.robot.parts import JointLimits

ROBOT = load_robot("ur10e")


def limits(**changes):
    """Wide limits except for the changes."""
    wide = {
        "position_min": -9.0,
        "position_max": 9.0,
        "max_velocity": 9.0,
        "max_acceleration": 40.0,
    }
    return JointLimits(
        **{name: np.array(changes.get(name, [value] * 6)) for name, value in wide.items()}
    )


def test_wider_limits_change_nothing() -> None:
    arm = ROBOT.with_limits(limits())
    assert arm.joints == ROBOT.joints
    assert (arm.max_acceleration, arm.checksum) == (ROBOT.max_acceleration, ROBOT.checksum)


def test_the_narrower_of_each_limit_applies() -> None:
    low, high = [-2.0, -9.0, -9.0, -9.0, -9.0, -9.0], [9.0, 9.0, 2.5, 9.0, 9.0, 9.0]
    reported = limits(
        position_min=low, position_max=high, max_velocity=[9.0, 9.0, 9.0, 1.0, 9.0, 9.0]
    )
    arm = ROBOT.with_limits(reported)
    assert np.array_equal(arm.position_min, np.maximum(ROBOT.position_min, low))
    assert np.array_equal(arm.position_max, np.minimum(ROBOT.position_max, high))
    assert np.array_equal(arm.max_velocity, np.minimum(ROBOT.max_velocity, reported.max_velocity))
    assert (arm.position_min[0], arm.position_max[2], arm.max_velocity[3]) == (-2.0, 2.5, 1.0)


def test_the_smallest_acceleration_is_planned_with() -> None:
    arm = ROBOT.with_limits(limits(max_acceleration=[40.0, 40.0, 15.0, 40.0, 14.0, 40.0]))
    assert arm.max_acceleration == 14.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position_max": [9.0, -1.5, 9.0, 9.0, 9.0, 9.0]}, "range of shoulder_lift_joint"),
        ({"position_min": [9.0] * 6}, "range of shoulder_pan_joint"),
        ({"max_velocity": [9.0, 9.0, 9.0, 9.0, 0.0, 9.0]}, "speed limit of wrist_2_joint"),
        ({"max_acceleration": [0.0] * 6}, "acceleration limit"),
    ],
)
def test_limits_that_allow_no_motion_are_refused_with_the_joint(changes, words) -> None:
    with pytest.raises(InvalidParameter, match=words):
        ROBOT.with_limits(limits(**changes))


def test_limits_of_another_number_of_joints_are_refused() -> None:
    seven = np.full(7, 9.0)
    with pytest.raises(InvalidParameter, match="7 joints"):
        ROBOT.with_limits(JointLimits(-seven, seven, seven, seven))
