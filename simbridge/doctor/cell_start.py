"""A cell file that begins with what a controller says."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from simbridge.backends.controller_model import robot_file_name
from simbridge.errors import OutputError
from simbridge.resources import robot_files
from simbridge.robot import Six
from simbridge.robot.calibration_file import write_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import write_cell
from simbridge.robot.robot import Robot
from simbridge.ur.controller_facts import ControllerFacts
from simbridge.ur.primary import is_ursim


def start_cell(path: Path, facts: ControllerFacts, robot: Robot) -> list[Path]:
    """Write a cell file from the controller's facts and, for a real arm, a calibration file.

    The calibration file lies next to the cell file and is named after it: lab.toml and
    lab.calibration.toml. Mounting and obstacles cannot be read from a controller: those fields are
    left out.

    Args:
        path: The cell file to write.
        facts: Facts of the controller.
        robot: The chosen arm; it decides between arms that the controller cannot tell apart.

    Returns:
        The files that were written.

    Raises:
        OutputError: One of the files exists already, or cannot be written.
    """
    is_nominal = is_ursim(facts.arm.checksum)
    calibration = None if is_nominal else path.with_suffix(".calibration.toml")
    if calibration is not None and calibration.exists():
        reason = "it already exists and is not overwritten; choose another name"
        raise OutputError(calibration, reason)

    state = facts.state
    cell = Cell(
        host=facts.host,
        robot=_robot_name(facts, robot),
        serial_number=facts.pendant.serial_number,
        tcp=cast(Six, tuple(facts.arm.tcp_offset.tolist())),
        payload=state.payload,
        payload_cog=state.payload_cog,
        calibration=calibration,
    )
    write_cell(path, cell)

    if calibration is None:
        return [path]
    write_calibration(calibration, facts.arm.kinematics, facts.arm.checksum)
    return [path, calibration]


def _robot_name(facts: ControllerFacts, robot: Robot) -> str | None:
    """Return the name in robots/ of a controller's arm; None if it is unknown, or a user's file."""
    models = facts.models
    if robot.ur_model in models:
        is_users_file = robot.source not in robot_files().values()
        return None if is_users_file else robot.name
    return robot_file_name(models[0]) if models else None
