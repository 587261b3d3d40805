"""The file of a cell: read strictly, and written so that it explains itself and reads back equal.

See docs/cell.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import tomli_w

from simbridge.errors import InvalidParameter, describe_requirement
from simbridge.files.toml_file import TomlFile
from simbridge.files.writing import write_file
from simbridge.quoting import quoted
from simbridge.robot.cell import Cell

# The first lines of a cell file.
HEAD = (
    "# A cell: how one arm is mounted, its payload and the obstacles around it. "
    "docs/cell.md explains every field.\n"
    "# SI units: m, rad, kg. Rotations are rotation vectors. "
    "A line that begins with # is unknown, or does not apply.\n"
)

# Types that a cell file has instead of the cell's own.
FILE_TYPES = {"floor": float | str | None, "calibration": str | None}
CellFile = msgspec.defstruct(
    "CellFile",
    [
        (
            cell_field.name,
            FILE_TYPES.get(cell_field.name, get_type_hints(Cell)[cell_field.name]),
            cell_field.default,
        )
        for cell_field in fields(Cell)
        if cell_field.metadata
    ],
    forbid_unknown_fields=True,
)


def load_cell(path: str | os.PathLike[str]) -> Cell:
    """Read a cell (see docs/cell.md for the format).

    Raises:
        InputFileError: The file cannot be read, or a field is wrong; names the field.
    """
    file = TomlFile(Path(path))
    values = msgspec.structs.asdict(file.decode(CellFile))

    if values["calibration"] is not None:
        calibration = Path(os.path.abspath(file.path.parent / values["calibration"]))
        if not calibration.is_file():
            file.refuse("calibration", f"file not found: {calibration}")
        values["calibration"] = calibration

    try:
        return Cell(**values, source=file.path)
    except InvalidParameter as error:
        # Show the value as the file writes it: a list in brackets, a text in quotes.
        value = list(error.value) if isinstance(error.value, tuple) else error.value
        shown = quoted(value) if isinstance(value, str) else str(value)
        # This always raises.
        file.refuse(error.name, describe_requirement(error.needed, shown))


def cell_values(cell: Cell) -> dict[str, Any]:
    """Return the fields of a cell that have a value, under the names of its file."""
    values = msgspec.to_builtins(cell, enc_hook=str)
    return {
        name: value
        for name, value in values.items()
        if value not in (None, ()) and name != "source"
    }


def write_cell(path: str | os.PathLike[str], cell: Cell) -> None:
    """Write a cell to a new file with a comment on every field; `load_cell` reads it back equal.

    Raises:
        OutputError: The file exists, or cannot be written.
    """
    values = cell_values(cell)
    if cell.calibration is not None:
        # Relative if it is in the cell file's folder or below it, so that they can be moved
        # together.
        calibration = Path(os.path.abspath(cell.calibration))
        folder = Path(os.path.abspath(path)).parent
        if calibration.is_relative_to(folder):
            calibration = calibration.relative_to(folder)
        values["calibration"] = str(calibration)
    write_file(path, "\n".join([HEAD, *_lines(values), ""]).encode(), overwrite=False)


def _as_toml(value: Any) -> str:
    """Return a value as TOML, in one line."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_as_toml, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _lines(values: Mapping[str, Any]) -> list[str]:
    """Return every field with its meaning, then every table.

    One that has no value is an example behind a comment mark.
    """
    lines = []
    tables = []
    for cell_field in fields(Cell):
        name = cell_field.name
        mark = "" if name in values else "# "
        meaning = cell_field.metadata.get("meaning")
        if "rule" in cell_field.metadata:
            value = values.get(name, cell_field.metadata["example"])
            lines.append(f"{mark}{name} = {_as_toml(value)}  # {meaning}")
        elif "rules" in cell_field.metadata:
            tables += ["", f"# {meaning}."]
            for row in values.get(name, [cell_field.metadata["example"]]):
                tables.append(f"{mark}[[{name}]]")
                tables += [f"{mark}{key} = {_as_toml(value)}" for key, value in row.items()]
    return lines + tables
