"""The columns of rigid bodies in an export of motion capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.roles import POSITION
from simbridge.trajectory.tables.table import Columns

# Lines at the beginning of an export in which its header is, at most.
HEADER_LINES = 12


@dataclass(frozen=True)
class RigidBody:
    """A rigid body in an export.

    Attributes:
        name: Name of the body.
        program: The program that wrote the file, for the line that says how it was read.
        frame: The name of the poses' frame.
        indices: The body's columns by role.
        rotation: The roles of its rotation.
        units: Units by role, as the file states them.
        rate: Samples per s: then the first column counts samples; else the second is the time.
    """

    name: str
    program: str
    frame: str
    indices: Mapping[str, int]
    rotation: tuple[str, ...]
    units: Mapping[str, str]
    rate: float | None = None


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of CSV."""
    return [cell.strip() for cell in line.split(",")]


def find_frame_line(header: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the line of axes, which begins with "Frame"; None if there is none."""
    return next((i for i, cells in enumerate(header) if cells[0] == "Frame"), None)


def choose_body(path: str | Path, names: Sequence[str], body: str | None) -> str:
    """Return the name of the body that is read: the chosen one, or the only one.

    Raises:
        InputFileError: There are several and none is chosen, or there is no such body.
    """
    if body is None and len(names) == 1:
        return names[0]
    if body is not None and body in names:
        return body
    fault = f"it has {len(names)} rigid bodies"
    if body is not None:
        fault = f"there is no rigid body {quoted(body)}"
    reason = f"{fault}; choose one with --topic: {quoted_list(names)}"
    raise InputFileError(path, reason, field="topic")


def body_columns(path: str | Path, body: RigidBody, choice: Choice) -> Columns:
    """Return the columns of a rigid body.

    Args:
        path: The file, for messages.
        body: The body.
        choice: What `--columns` says; its units go before the file's.
    """
    roles = (*POSITION, *body.rotation)
    if any(role not in body.indices for role in roles):
        raise InputFileError(path, "a rigid body lacks its position or rotation: export both")

    units = {**body.units, **choice.units}
    return Columns(
        roles=roles,
        names=roles,
        indices=tuple(body.indices[role] for role in roles),
        units=tuple(units.get(role, "") for role in roles),
        times=("Frame",) if body.rate else ("Time",),
        time_indices=(0,) if body.rate else (1,),
        time_unit="s",
        understood=f"{body.program}, '{body.name}'",
        frame=body.frame,
        rate=body.rate,
    )
