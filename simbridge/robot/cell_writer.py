"""Write a cell file that explains itself and reads back as the same cell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import tomli_w

from simbridge.errors import OutputFileError
from simbridge.robot.cell import Cell

_HEAD = """\
# A cell: how one arm stands, what it carries and what is around it. docs/cell.md explains every field.
# SI units: m, rad, kg. Rotations are rotation vectors. A line that begins with # is not known, or does not apply.
"""

# Field, what an empty one shows, and what it means.
_FIELDS = (
    ("host", "192.168.1.10", "address of the controller"),
    ("robot", "ur10e", "the arm's model, as `simbridge robots` lists them"),
    ("serial_number", "20195500123", "of the arm, as its controller tells it"),
    ("tcp", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), "tool centre point in tool0: x y z rx ry rz"),
    ("payload", 0.0, "the tool and what it holds"),
    ("payload_cog", (0.0, 0.0, 0.0), "centre of gravity of the payload, in tool0"),
    ("mounting", "floor", 'how base_link stands: "floor", "ceiling", "wall" (its y points down), or a rotation'),
    ("floor", 0.0, 'height in base_link of the surface that the arm stands on, or "none"'),
    ("calibration", "calibration.toml", "kinematics of this very arm, relative to this file"),
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


def cell_values(cell: Cell) -> dict[str, Any]:
    """What a cell says, under the names of its file and without what it leaves out."""
    found = {f.name: getattr(cell, f.name) for f in fields(cell) if f.name != "source"}
    for name, _, _ in _TABLES:
        found[name] = [
            {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(row).items()}
            for row in found[name]
        ]
    return {
        name: list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
        for name, value in found.items()
        if value is not None and value != []
    }


def write_cell(path: str | os.PathLike[str], cell: Cell) -> None:
    """Write a cell with a comment on every field; `load_cell` reads it back equal.

    Raises:
        OutputFileError: The file is there already, or cannot be written.
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
        raise OutputFileError(file, "it is there already, and is not overwritten; choose another name") from None
    except OSError as error:
        raise OutputFileError(file, error.strerror or str(error)) from None


def _relative(calibration: Path, file: Path) -> str:
    """Relative where the calibration lies beside or below the cell file, so that they can move together."""
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
