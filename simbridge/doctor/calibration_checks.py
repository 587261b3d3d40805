"""Checks of the kinematics of the individual arm, and of its calibration files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.controller_arm import SAME_FLANGE
from simbridge.doctor.findings import Finding, failure, success, unknown
from simbridge.errors import InvalidParameter
from simbridge.robot.calibration import calibrate, calibrated_chain, deviations
from simbridge.robot.calibration_difference import largest_difference, ros_difference
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres, milliradians
from simbridge.ur import tables
from simbridge.ur.controller_facts import Survey
from simbridge.ur.primary import is_ursim


def check_calibration(survey: Survey, robot: Robot) -> Finding:
    """Show how far an arm's kinematics deviate from the robot's file.

    They are compared joint by joint, and at the tool at home.
    """
    if survey.arm is None:
        return unknown("calibration", tables.PRIMARY)

    kind = "nominal (URSim's checksum)" if is_ursim(survey.arm.checksum) else "calibrated"
    try:
        arm = calibrate(robot, survey.arm.kinematics)
    except InvalidParameter as error:
        fix = (
            f"The controller's kinematics must be {error.needed}: choose the right robot "
            "with --robot."
        )
        return failure("calibration", f"{kind}: {error.value}", fix)

    distance, angle = tool_offset(robot, arm)
    seen = (
        f"{kind}; at home the tool deviates from nominal by {millimetres(distance)} mm and "
        f"{degrees(angle)} deg"
    )
    if arm is robot:
        return success("calibration", seen)

    heading = ("deviation from nominal", "mm", "deg")
    rows = [
        (part.name, millimetres(part.distance), degrees(part.angle))
        for part in deviations(robot, arm)
    ]
    return Finding("calibration", "pass", seen, table=(heading, *rows))


def check_calibration_file(survey: Survey, path: Path, checksum: tuple[int, ...]) -> Finding:
    """Check that the calibration file of the cell is that of the controller's arm.

    Args:
        survey: The controller's answers on its ports.
        path: Path of the file.
        checksum: Checksum in the file.
    """
    if survey.arm is None:
        return unknown("calibration file", tables.PRIMARY)
    if survey.arm.checksum == checksum:
        return success("calibration file", f"{path.name} is the controller's")
    return failure(
        "calibration file",
        f"{path.name} is not the controller's (another checksum)",
        "It belongs to another arm, or is older than the last calibration: let --write-cell write "
        "it again.",
    )


def check_ros_calibration_file(survey: Survey, path: Path, calibration: RosCalibration) -> Finding:
    """Check that a calibration file of ROS, whose hash cannot be compared, is that of the arm.

    Args:
        survey: The controller's answers on its ports.
        path: Path of the file.
        calibration: Content of the file.
    """
    if survey.arm is None:
        return unknown("calibration file", tables.PRIMARY)
    distance, angle = ros_difference(calibration, survey.arm.kinematics)
    return _compare_flange(path, distance, angle, remedy="let ROS's ur_calibration write it again")


def check_table_of_file(survey: Survey, path: Path, table: DhTable) -> Finding:
    """Check that a table that a calibration file states is that of the controller's arm.

    Args:
        survey: The controller's answers on its ports.
        path: Path of the file.
        table: The arm's table, by UR's calibration.conf.
    """
    if survey.arm is None:
        return unknown("calibration file", tables.PRIMARY)
    reported = calibrated_chain(survey.arm.kinematics)
    flange = pin.SE3.Identity()
    distance, angle = largest_difference(calibrated_chain(table), reported, flange)
    return _compare_flange(path, distance, angle, remedy="copy the controller's file again")


def _compare_flange(path: Path, distance: float, angle: float, *, remedy: str) -> Finding:
    """Return whether a file is the controller's, by how far apart they place the flange.

    Args:
        path: Path of the file.
        distance: Largest distance, m.
        angle: Largest angle, rad.
        remedy: What to do about another arm's file, as a clause.
    """
    difference = f"{millimetres(distance)} mm and {milliradians(angle)} mrad at the flange"
    if max(distance, angle) <= SAME_FLANGE:
        return success("calibration file", f"{path.name} is the controller's, within {difference}")
    return failure(
        "calibration file",
        f"{path.name} is not the controller's: up to {difference}",
        f"It belongs to another arm, or is older than the last calibration: {remedy}.",
    )


def tool_offset(robot: Robot, arm: Robot) -> tuple[float, float]:
    """Return the distance, m, and angle, rad, between the flanges of two arms.

    Both are at the home of the first.
    """
    nominal = tool_frame(replace(robot, tcp=pin.SE3.Identity()), robot.home)
    actual = tool_frame(replace(arm, tcp=pin.SE3.Identity()), robot.home)
    difference = nominal.actInv(actual)
    distance = float(np.linalg.norm(difference.translation))
    angle = float(np.linalg.norm(pin.log3(difference.rotation)))
    return distance, angle
