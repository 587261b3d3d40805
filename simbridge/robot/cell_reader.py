"""Read a cell file: strict, and every complaint names the field and its line."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from simbridge.errors import InvalidParameter
from simbridge.robot.cell import Cell
from simbridge.robot.cell_format import CellFile
from simbridge.robot.load import read_text
from simbridge.robot.obstacles import Box, Capsule, Plane
from simbridge.robot.toml_checks import Checker
from simbridge.robot.toml_decoding import decoded


def load_cell(path: str | os.PathLike[str]) -> Cell:
    """Read a cell (see docs/cell.md for the format).

    Raises:
        InputFileError: The file cannot be read, or a field of it is wrong; names file, line and field.
    """
    file = Path(path)
    check = Checker(file, read_text(file))
    data = decoded(check, CellFile)
    given = {name: value for name, value in msgspec.structs.asdict(data).items() if value is not msgspec.UNSET}
    given["keep_out_boxes"] = tuple(Box(**msgspec.structs.asdict(box)) for box in data.keep_out_boxes)
    given["keep_out_planes"] = tuple(Plane(**msgspec.structs.asdict(plane)) for plane in data.keep_out_planes)
    given["tool_capsules"] = tuple(Capsule(**msgspec.structs.asdict(part)) for part in data.tool_capsules)
    if isinstance(data.calibration, str):
        calibration = Path(os.path.abspath(file.parent / data.calibration))
        if not calibration.is_file():
            check.refuse("calibration", f"there is no file {calibration}")
        given["calibration"] = calibration
    try:
        return Cell(**given, source=file)
    except InvalidParameter as error:
        value = list(error.value) if isinstance(error.value, tuple) else error.value
        check.refuse(error.name, f"this is {value}; it must be {error.needed}")
