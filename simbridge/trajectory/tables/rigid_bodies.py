"""The columns of rigid bodies in an export of motion capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.roles import POSITION
from simbridge.trajectory.tables.table import Columns

# Lines at the beginning of an export in which its header is, at most.
HEADER_LINES = 12


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


def body_columns(
    path: str | Path,
    indices: Mapping[str, int],
    rotation: tuple[str, ...],
    *,
    units: Mapping[str, str],
    choice: Choice,
    program: str,
    body: str,
    frame: str,
    rate: float | None = None,
) -> Columns:
    """Return the columns of a rigid body.

    Args:
        path: The file, for messages.
        indices: The body's columns by role.
        rotation: The roles of its rotation.
        units: By role, as the file states them.
        choice: What `--columns` says; its units go before the file's.
        program: That wrote the file, for the line that says how it was read.
        body: The body's name.
        frame: The name of the poses' frame.
        rate: Samples per s: then the first column counts samples; else the second is the time.
    """
    roles = (*POSITION, *rotation)
    if any(role not in indices for role in roles):
        raise InputFileError(path, "a rigid body has no position or no rotation: export both")

    stated = {**units, **choice.units}
    return Columns(
        roles=roles,
        names=roles,
        indices=tuple(indices[role] for role in roles),
        units=tuple(stated.get(role, "") for role in roles),
        times=("Frame",) if rate else ("Time",),
        time_indices=(0,) if rate else (1,),
        time_unit="s",
        understood=f"{program}, '{body}'",
        frame=frame,
        rate=rate,
    )
