"""Complete an arm by what its controller reports: kinematics and joint limits."""

from __future__ import annotations

import warnings

import numpy as np

from simbridge.backends.controller_model import warn_of_model
from simbridge.robot.calibration import calibrate
from simbridge.robot.calibration_difference import ros_difference
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import millimetres, milliradians
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.errors import ModelMismatch

# Two calibrations are the same arm's if no parameter differs by more than this, m and rad.
SAME_ARM = 1e-6
# A file of ROS may be printed with few digits; two arms of one model differ by millimetres. The
# flange may be off by this, m and rad.
SAME_FLANGE = 2e-5


def complete_arm(
    robot: Robot,
    facts: ControllerFacts,
    *,
    chooses_kinematics: bool,
    warns_of_nominal: bool,
) -> Robot:
    """Return the arm with its controller's joint limits, and mostly with its kinematics.

    Args:
        robot: The arm as it was chosen.
        facts: What the controller reports.
        chooses_kinematics: Whether the user chose the arm's kinematics; they are kept.
        warns_of_nominal: Whether to warn if the user chose nominal kinematics although the arm is
            calibrated.

    Raises:
        ModelMismatch: The given calibration belongs to another arm than the one behind the
            controller.
    """
    warn_of_model(facts, robot)

    arm = robot
    if not chooses_kinematics:
        arm = calibrate(robot, facts.arm.kinematics)
    elif robot.calibration is not None:
        # URSim stands for any arm.
        if not facts.ursim:
            _check_calibration(robot.calibration, facts)
    elif warns_of_nominal and calibrate(robot, facts.arm.kinematics) is not robot:
        # The controller's kinematics are not nominal: they would have changed the arm.
        warnings.warn(
            "The plan uses nominal kinematics, but the arm is calibrated: the tool will be off by "
            "millimetres, which the tracking error does not show. `simbridge doctor` reports by "
            "how much.",
            stacklevel=2,
        )

    if facts.arm.limits is None:
        warnings.warn(
            "The controller does not report joint limits; those of the model are used.",
            stacklevel=2,
        )
        return arm
    return arm.with_limits(facts.arm.limits)


def _check_calibration(calibration: DhTable | RosCalibration, facts: ControllerFacts) -> None:
    """Raise `ModelMismatch` unless a given calibration is that of the arm on the controller."""
    reported = facts.arm.kinematics
    if isinstance(calibration, RosCalibration):
        distance, angle = ros_difference(calibration, reported)
        is_same = max(distance, angle) <= SAME_FLANGE
        offset = f"{millimetres(distance)} mm and {milliradians(angle)} mrad"
        actual = f"different (by up to {offset} at the flange)"
        expected = f"that of the given file ({calibration.hash or 'which has no hash'})"
    else:
        difference = _largest_difference(calibration, reported)
        is_same = difference <= SAME_ARM
        actual = f"different (a parameter by {difference:.2g})"
        expected = "the given one"
    if is_same:
        return

    remedy = (
        "The file belongs to another arm, or is older than the arm's last calibration; leave it "
        "out."
    )
    raise ModelMismatch(facts.host, "calibration", actual=actual, expected=expected, remedy=remedy)


def _largest_difference(calibration: DhTable, reported: DhTable) -> float:
    """Return the largest difference between the parameters of two tables, m or rad."""
    columns = (
        (calibration.theta, reported.theta),
        (calibration.a, reported.a),
        (calibration.d, reported.d),
        (calibration.alpha, reported.alpha),
    )
    return max(float(np.abs(np.subtract(a, b)).max()) for a, b in columns)
