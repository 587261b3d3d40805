"""A cell file begun from what a controller tells of its arm."""

from __future__ import annotations

from pathlib import Path

from simbridge.errors import OutputError
from simbridge.resources import robot_files
from simbridge.robot.calibration import write_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import write_cell
from simbridge.ur.facts import ControllerFacts


def start_cell(path: Path, facts: ControllerFacts) -> list[Path]:
    """Write a cell file with what the controller tells, and a calibration file beside it for a real arm.

    How the arm is mounted and what is around it no controller tells: those fields are left out.

    Args:
        path: Of the cell file; the other's name is made from it: lab.toml and lab.calibration.toml.
        facts: What the controller told.

    Returns:
        The files written.

    Raises:
        OutputError: One of them is there already, or cannot be written.
    """
    calibration = None if facts.ursim else path.with_suffix(".calibration.toml")
    if calibration is not None and calibration.exists():
        raise OutputError(calibration, "it is there already, and is not overwritten; choose another name")
    model = (facts.model or "").lower().replace(" ", "")
    state = facts.state
    cell = Cell(
        host=facts.host,
        robot=model if model in robot_files() else None,
        serial_number=facts.serial_number,
        tcp=_six(facts.arm.tcp_offset.tolist()),
        payload=state.payload,
        payload_cog=state.payload_cog,
        calibration=calibration,
    )
    write_cell(path, cell)
    if calibration is None:
        return [path]
    write_calibration(calibration, facts.arm.kinematics, facts.arm.checksum)
    return [path, calibration]


def _six(values: list[float]) -> tuple[float, float, float, float, float, float]:
    x, y, z, rx, ry, rz = values
    return x, y, z, rx, ry, rz
