"""Checks that the arm behind the controller is the one that the run is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.controller_setup import SAME_FLANGE
from simbridge.backends.operator_confirmation import mounting_text
from simbridge.backends.preflight import SAME_COG, SAME_MASS, same_tcp, tcp_text
from simbridge.doctor.findings import Finding, failed, passed, unread, warned
from simbridge.errors import InvalidParameter
from simbridge.resources import robot_files
from simbridge.robot.calibration import calibrated, deviations, ros_difference
from simbridge.robot.cell import Cell
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.parts import RosCalibration
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres, milliradians
from simbridge.ur.controller import Survey, is_model, model_name, successors
from simbridge.ur.primary import is_ursim
from simbridge.ur.tables import DASHBOARD, PRIMARY, RTDE


def check_model(survey: Survey, robot: Robot) -> Finding:
    """Whether the controller's arm is of the model chosen with --robot."""
    name = "model"
    if survey.arm is None:
        return unread(name, PRIMARY)
    if survey.state is None:
        return unread(name, RTDE)
    model = model_name(survey.arm.robot_type, survey.state.version[0])
    if model is None:
        return warned(
            name,
            f"not reported by the controller (robot type {survey.arm.robot_type})",
            f"Check yourself that it is a {robot.title}, and look at the calibration below.",
        )
    known = model.lower().replace(" ", "")
    if not is_model(model, robot.title):
        remedy = f"use --robot {known}" if known in robot_files() else "describe the arm in a file (robots/README.md)"
        return failed(name, f"{model}, not {robot.title}", f"If that is the intended arm, {remedy}.")
    if robot.series != survey.state.series:
        return failed(
            name,
            f"{model} of the {survey.state.series}, but the series of {robot.name} is '{robot.series}'",
            "Correct the series in the robot's file, or choose another robot with --robot.",
        )
    return passed(name, successors(model))


def check_serial_number(survey: Survey, expected: str | None) -> Finding:
    """Whether it is the individual arm of the cell file, which expects this serial number (None: any)."""
    name = "serial number"
    if survey.dashboard is None:
        return unread(name, DASHBOARD)
    found = survey.dashboard.serial_number
    if expected is None:
        return passed(name, found or "not reported by this software (before PolyScope 3.12 and 5.6)")
    if found is None:
        fix = "Compare it with the nameplate on the arm's base."
        return warned(name, f"not reported; the cell file says {expected}", fix)
    if found == expected:
        return passed(name, f"{found}, as in the cell file")
    return failed(
        name,
        f"{found}, but the cell file says {expected}",
        "This is another arm: use its own cell file, or create one with --write-cell.",
    )


def check_mounting(cell: Cell) -> Finding:
    """The mounting in the cell file, which cannot be compared with the controller."""
    if cell.mounting is None:
        fix = "Add it: --yes requires it, and gravity depends on it."
        return warned("mounting", "not in the cell file: floor is assumed", fix)
    return warned(
        "mounting",
        f"{mounting_text(cell)} in the cell file; it cannot be read from the controller",
        "Compare it with the pendant (Installation > General > Mounting) and with the arm.",
    )


def check_tcp(survey: Survey, expected: tuple[float, ...] | None) -> Finding:
    """Whether the controller's TCP is that of the cell file: x y z (m) rx ry rz (rad) in the flange (None: any)."""
    name = "TCP"
    if survey.arm is None:
        return unread(name, PRIMARY)
    found = survey.arm.tcp_offset
    if expected is None or same_tcp(found, expected):
        return passed(name, tcp_text(found) + ("" if expected is None else ", as in the cell file"))
    return failed(
        name,
        f"{tcp_text(found)}; the cell file says {tcp_text(expected)}",
        "One of them is not the mounted tool: correct it at the pendant (Installation > General > TCP) or in the cell "
        "file.",
    )


def check_payload(survey: Survey, expected: float | None, expected_cog: Sequence[float] | None = None) -> Finding:
    """Whether the controller's payload is that of the cell file (None: any), kg.

    Its centre of gravity in the flange (3,), m, is compared where both give one.
    """
    name = "payload"
    if survey.state is None:
        return unread(name, RTDE)
    found = survey.state.payload
    if found is None:
        return warned(
            name,
            "not reported by this software (before PolyScope 3.11 and 5.5)",
            "Check it at the pendant: Installation > General > Payload.",
        )
    cog = survey.state.payload_cog
    seen = _payload_text(found, cog)
    if expected is None:
        return passed(name, seen)
    same_cog = not found or cog is None or expected_cog is None or np.allclose(cog, expected_cog, 0.0, SAME_COG)
    if abs(found - expected) <= SAME_MASS and same_cog:
        return passed(name, f"{seen}, as in the cell file")
    return failed(
        name,
        f"{seen}; the cell file says {_payload_text(expected, expected_cog)}",
        "A wrong payload leads to protective stops. Correct it at the pendant (Installation > General > Payload) or in "
        "the cell file.",
    )


def _payload_text(mass: float, cog: Sequence[float] | None) -> str:
    position = "" if not mass or cog is None else f" at {' '.join(millimetres(part) for part in cog)} mm"
    return f"{mass:.3g} kg{position}"


def check_calibration(survey: Survey, robot: Robot) -> Finding:
    """How far this arm's kinematics deviate from the robot file's, joint by joint and at the tool at home."""
    name = "calibration"
    if survey.arm is None:
        return unread(name, PRIMARY)
    kind = "nominal (URSim)" if is_ursim(survey.arm.checksum) else "calibrated"
    try:
        arm = calibrated(robot, survey.arm.kinematics)
    except InvalidParameter as error:
        return failed(
            name, f"{kind}: {error.value}", f"It must be {error.needed}: choose the right robot with --robot."
        )
    distance, angle = tool_offset(robot, arm)
    seen = f"{kind}; at home the tool deviates from nominal by {millimetres(distance)} mm and {degrees(angle)} deg"
    if arm is robot:
        return passed(name, seen)
    rows = [(part.name, millimetres(part.distance), degrees(part.angle)) for part in deviations(robot, arm)]
    return Finding(name, "pass", seen, table=(("deviation from nominal", "mm", "deg"), *rows))


def check_calibration_file(survey: Survey, path: Path, checksum: tuple[int, ...]) -> Finding:
    """Whether the calibration file of the cell, with this checksum, is that of the controller's arm."""
    name = "calibration file"
    if survey.arm is None:
        return unread(name, PRIMARY)
    if survey.arm.checksum == checksum:
        return passed(name, f"{path.name} is the controller's")
    return failed(
        name,
        f"{path.name} is not the controller's (another checksum)",
        "It belongs to another arm, or is older than the last calibration: let --write-cell write it again.",
    )


def check_ros_calibration_file(survey: Survey, path: Path, calibration: RosCalibration) -> Finding:
    """Whether the cell file's calibration, a file of ROS, is that of the controller's arm.

    Args:
        survey: The facts read from the controller.
        path: The file.
        calibration: What it says; its hash cannot be compared.
    """
    name = "calibration file"
    if survey.arm is None:
        return unread(name, PRIMARY)
    distance, angle = ros_difference(calibration, survey.arm.kinematics)
    apart = f"{millimetres(distance)} mm and {milliradians(angle)} mrad at the flange"
    if max(distance, angle) <= SAME_FLANGE:
        return passed(name, f"{path.name} is the controller's, within {apart}")
    return failed(
        name,
        f"{path.name} is not the controller's: up to {apart}",
        "It belongs to another arm, or is older than the last calibration: let ROS's ur_calibration write it again.",
    )


def tool_offset(robot: Robot, other: Robot) -> tuple[float, float]:
    """The difference between the flange poses of two arms, both at the first one's home.

    Returns:
        Distance in m, and angle in rad.
    """
    bare = (replace(arm, tcp=pin.SE3.Identity()) for arm in (robot, other))
    nominal, actual = (tool_frame(arm, robot.home) for arm in bare)
    difference = nominal.actInv(actual)
    return float(np.linalg.norm(difference.translation)), float(np.linalg.norm(pin.log3(difference.rotation)))
