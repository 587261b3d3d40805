"""Cell files (docs/cell.md): read strictly, and written so that they explain themselves and read back equal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from simbridge.errors import InvalidParameter, OutputError
from simbridge.robot.cell import Cell
from simbridge.robot.input_file import TomlFile
from simbridge.robot.obstacles import Box, Capsule, Plane, Vector

_HEAD = """\
# A cell: how one arm is mounted, its payload and the obstacles around it. docs/cell.md explains every field.
# SI units: m, rad, kg. Rotations are rotation vectors. A line that begins with # is unknown, or does not apply.
"""

# Field, example value, and meaning.
_FIELDS = (
    ("host", "192.168.1.10", "address of the controller"),
    ("robot", "ur10e", "the arm's model, as `simbridge robots` lists them"),
    ("serial_number", "20195500123", "of the arm, as its controller reports it"),
    ("tcp", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), "tool centre point in tool0: x y z rx ry rz"),
    ("payload", 0.0, "mass of the tool and what it holds"),
    ("payload_cog", (0.0, 0.0, 0.0), "centre of gravity of the payload, in tool0"),
    ("mounting", "floor", 'how base_link is mounted: "floor", "ceiling", "wall" (its y points down), or a rotation'),
    ("floor", 0.0, 'height in base_link of the surface the arm is mounted on, or "none"'),
    ("calibration", "calibration.toml", "kinematics of this individual arm, relative to this file"),
)
_TABLES = (
    (
        "keep_out_boxes",
        "Boxes that no link may come near, in base_link",
        {"name": "table", "centre": (0.8, 0.0, -0.4), "size": (0.6, 1.2, 0.7), "rotation": (0.0, 0.0, 0.0)},
    ),
    (
        "keep_out_planes",
        "Planes behind which no link may go, in base_link: the arm stays on the normal's side",
        {"name": "wall", "point": (-0.5, 0.0, 0.0), "normal": (1.0, 0.0, 0.0)},
    ),
    (
        "tool_capsules",
        "The shape of the tool in tool0: everything within a radius of a line",
        {"start": (0.0, 0.0, 0.0), "end": (0.0, 0.0, 0.15), "radius": 0.05},
    ),
)


class CellFile(msgspec.Struct, forbid_unknown_fields=True):
    host: str | None = None
    robot: str | None = None
    serial_number: str | None = None
    tcp: tuple[float, float, float, float, float, float] | None = None
    payload: float | None = None
    payload_cog: Vector | None = None
    mounting: str | Vector | None = None
    floor: float | str | None = None
    calibration: str | None = None
    keep_out_boxes: tuple[Box, ...] = ()
    keep_out_planes: tuple[Plane, ...] = ()
    tool_capsules: tuple[Capsule, ...] = ()


def load_cell(path: str | os.PathLike[str]) -> Cell:
    """Read a cell (see docs/cell.md for the format).

    Raises:
        InputFileError: The file cannot be read, or a field of it is wrong; names file and field.
    """
    file = TomlFile(Path(path))
    data = file.decode(CellFile)
    given = {name: getattr(data, name) for name in data.__struct_fields__}
    if data.calibration is not None:
        given["calibration"] = Path(os.path.abspath(file.path.parent / data.calibration))
        if not given["calibration"].is_file():
            file.refuse("calibration", f"there is no file {given['calibration']}")
    try:
        return Cell(**given, source=file.path)
    except InvalidParameter as error:
        value = list(error.value) if isinstance(error.value, tuple) else error.value
        file.refuse(error.name, f"this is {value}; it must be {error.needed}")


def cell_values(cell: Cell) -> dict[str, Any]:
    """The fields of a cell that are given, under the names of its file."""
    found = msgspec.to_builtins(cell, enc_hook=str)
    return {name: value for name, value in found.items() if value not in (None, ()) and name != "source"}


def write_cell(path: str | os.PathLike[str], cell: Cell) -> None:
    """Write a cell with a comment on every field; `load_cell` reads it back equal.

    Raises:
        OutputError: The file exists already, or cannot be written.
    """
    file = Path(path)
    values = cell_values(cell)
    if cell.calibration is not None:
        values["calibration"] = _relative(cell.calibration, file)
    text = "\n".join([_HEAD, *_field_lines(values), *_table_lines(values), ""])
    try:
        with open(file, "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise OutputError(file, "it exists already, and is not overwritten; choose another name") from None
    except OSError as error:
        raise OutputError(file, error.strerror or str(error)) from None


def _relative(calibration: Path, file: Path) -> str:
    """Relative if the calibration is in the cell file's folder or below it, so that they can be moved together."""
    whole, folder = Path(os.path.abspath(calibration)), Path(os.path.abspath(file)).parent
    return str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole)


def _text(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_text, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _field_lines(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{'' if name in values else '# '}{name} = {_text(values.get(name, shown))}  # {meaning}"
        for name, shown, meaning in _FIELDS
    ]


def _table_lines(values: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, meaning, shown in _TABLES:
        lines += ["", f"# {meaning}."]
        mark = "" if name in values else "# "
        for row in values.get(name, [shown]):
            lines += [f"{mark}[[{name}]]", *(f"{mark}{key} = {_text(value)}" for key, value in row.items())]
    return lines
