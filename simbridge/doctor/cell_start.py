"""A cell file that begins with what a controller says."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from simbridge.errors import OutputError
from simbridge.resources import robot_files
from simbridge.robot import Six
from simbridge.robot.calibration_file import write_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import write_cell
from simbridge.ur.controller_facts import ControllerFacts


def start_cell(path: Path, facts: ControllerFacts) -> list[Path]:
    """Write a cell file from the controller's facts and, for a real arm, a calibration file.

    The calibration file lies next to the cell file and is named after it: lab.toml and
    lab.calibration.toml. Mounting and obstacles cannot be read from a controller: those fields are
    left out.

    Returns:
        The files that were written.

    Raises:
        OutputError: One of them exists already, or cannot be written.
    """
    calibration = None if facts.ursim else path.with_suffix(".calibration.toml")
    if calibration is not None and calibration.exists():
        reason = "it exists already and is not overwritten; choose another name"
        raise OutputError(calibration, reason)

    model = (facts.model or "").lower().replace(" ", "")
    state = facts.state
    cell = Cell(
        host=facts.host,
        robot=model if model in robot_files() else None,
        serial_number=facts.dashboard.serial_number,
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
