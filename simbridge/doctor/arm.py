"""Checks of the arm behind the controller against the one that the run is for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.operator_confirmation import mounted
from simbridge.backends.preflight import SAME_COG, SAME_MASS, same_tcp, shown_tcp
from simbridge.doctor.finding import Finding, failed, passed, unread, warned
from simbridge.errors import InvalidParameter
from simbridge.resources import robot_files
from simbridge.robot.calibration import calibrated, deviations
from simbridge.robot.cell import Cell
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres
from simbridge.ur.facts import DASHBOARD, PRIMARY, RTDE, Survey, is_model, model_name, successors
from simbridge.ur.primary import is_ursim


def check_model(survey: Survey, robot: Robot) -> Finding:
    """Whether the controller's arm is of the model that --robot says."""
    name = "model"
    if survey.arm is None:
        return unread(name, PRIMARY)
    if survey.state is None:
        return unread(name, RTDE)
    model = model_name(survey.arm.robot_type, survey.state.version[0])
    if model is None:
        return warned(
            name,
            f"the controller does not tell (robot type {survey.arm.robot_type})",
            f"See for yourself that it is a {robot.title}, and look at the calibration below.",
        )
    known = model.lower().replace(" ", "")
    if not is_model(model, robot.title):
        here = f"say --robot {known}" if known in robot_files() else "describe the arm in a file (robots/README.md)"
        return failed(name, f"{model}, not {robot.title}", f"If that is the arm you mean, {here}.")
    if robot.series != survey.state.series:
        return failed(
            name,
            f"{model} of the {survey.state.series}, and {robot.name} says series '{robot.series}'",
            "Correct the series in the robot's file, or name another with --robot.",
        )
    return passed(name, successors(model))


def check_serial_number(survey: Survey, expected: str | None) -> Finding:
    """Whether it is the very arm that the cell file names.

    Args:
        expected: The cell file's; None without one.
    """
    name = "serial number"
    if survey.dashboard is None:
        return unread(name, DASHBOARD)
    found = survey.dashboard.serial_number
    if found is None:
        if expected is None:
            return passed(name, "this software does not tell (before PolyScope 3.12 and 5.6)")
        return warned(name, f"not told; the cell file says {expected}", "Compare it with the plate on the arm's base.")
    if expected is None or found == expected:
        return passed(name, found + ("" if expected is None else ", as in the cell file"))
    return failed(
        name,
        f"{found}, and the cell file says {expected}",
        "This is another arm: give its own cell file, or start one with --write-cell.",
    )


def check_mounting(cell: Cell) -> Finding:
    """What the cell file says of the mounting, which no controller tells."""
    name = "mounting"
    if cell.mounting is None:
        return warned(
            name, "not in the cell file: floor is assumed", "Say it there: --yes needs it, and so does gravity."
        )
    return warned(
        name,
        f"{mounted(cell)}, says the cell file; it cannot be compared",
        "No controller tells its own: look at the pendant (Installation > General > Mounting) and at the arm.",
    )


def check_tcp(survey: Survey, expected: tuple[float, ...] | None) -> Finding:
    """Whether the controller's TCP is the cell file's.

    Args:
        expected: x y z (m) rx ry rz (rad) in the flange; None without a cell file.
    """
    name = "TCP"
    if survey.arm is None:
        return unread(name, PRIMARY)
    found = survey.arm.tcp_offset
    if expected is None or same_tcp(found, expected):
        return passed(name, shown_tcp(found) + ("" if expected is None else ", as in the cell file"))
    return failed(
        name,
        f"{shown_tcp(found)}; the cell file says {shown_tcp(expected)}",
        "One of the two is not the tool that is mounted: correct the pendant's (Installation > General > TCP) or the "
        "cell file.",
    )


def check_payload(survey: Survey, expected: float | None, expected_cog: Sequence[float] | None = None) -> Finding:
    """Whether the controller's payload is the cell file's.

    Args:
        expected: kg; None without a cell file.
        expected_cog: Its centre of gravity in the flange (3,), m; None where it is not said.
    """
    name = "payload"
    if survey.state is None:
        return unread(name, RTDE)
    found = survey.state.payload
    if found is None:
        return warned(
            name,
            "this software does not tell (before PolyScope 3.11 and 5.5)",
            "Look at the pendant: Installation > General > Payload.",
        )
    cog = survey.state.payload_cog
    seen = _shown_payload(found, cog)
    if expected is None:
        return passed(name, seen)
    there = not found or cog is None or expected_cog is None or np.allclose(cog, expected_cog, 0.0, SAME_COG)
    if abs(found - expected) <= SAME_MASS and there:
        return passed(name, f"{seen}, as in the cell file")
    return failed(
        name,
        f"{seen}; the cell file says {_shown_payload(expected, expected_cog)}",
        "A wrong payload ends in protective stops. Correct it at the pendant (Installation > General > "
        "Payload) or in the cell file.",
    )


def _shown_payload(mass: float, cog: Sequence[float] | None) -> str:
    place = "" if not mass or cog is None else f" at {' '.join(millimetres(part) for part in cog)} mm"
    return f"{mass:.3g} kg{place}"


def check_calibration(survey: Survey, robot: Robot) -> Finding:
    """How far this very arm's kinematics are from the robot file's, joint by joint and at the tool at home."""
    name = "calibration"
    if survey.arm is None:
        return unread(name, PRIMARY)
    kind = "nominal (URSim)" if is_ursim(survey.arm.checksum) else "this arm's own"
    try:
        arm = calibrated(robot, survey.arm.kinematics)
    except InvalidParameter as error:
        return failed(name, f"{kind}: {error.value}", f"It must be {error.needed}: name the arm's own with --robot.")
    distance, angle = tool_offset(robot, arm)
    seen = f"{kind}; at home the tool is {millimetres(distance)} mm and {degrees(angle)} deg off the nominal"
    if arm is robot:
        return passed(name, seen)
    rows = [(part.name, millimetres(part.distance), degrees(part.angle)) for part in deviations(robot, arm)]
    return passed(name, seen, (("off the nominal", "mm", "deg"), *rows))


def check_calibration_file(survey: Survey, path: Path, checksum: tuple[int, ...]) -> Finding:
    """Whether the cell file's calibration is that of the controller's arm.

    Args:
        survey: What was read.
        path: The file.
        checksum: That it gives.
    """
    name = "calibration file"
    if survey.arm is None:
        return unread(name, PRIMARY)
    if survey.arm.checksum == checksum:
        return passed(name, f"{path.name} is the controller's")
    return failed(
        name,
        f"{path.name} is not the controller's (another checksum)",
        "It is of another arm, or older than the last calibration: let --write-cell write it anew.",
    )


def tool_offset(robot: Robot, other: Robot) -> tuple[float, float]:
    """How far apart two arms have their flanges, both at the first one's home.

    Returns:
        Distance in m, and angle in rad.
    """
    apart = _flange(robot, robot).actInv(_flange(other, robot))
    return float(np.linalg.norm(apart.translation)), float(np.linalg.norm(pin.log3(apart.rotation)))


def _flange(arm: Robot, at_home_of: Robot) -> pin.SE3:
    pose = pin.SE3.Identity()
    for joint, q in zip(arm.joints, at_home_of.home, strict=True):
        pose = pose * joint.placement * pin.SE3(pin.utils.rotate("z", float(q)), np.zeros(3))
    return pose * arm.tool0
