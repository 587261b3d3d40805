"""CSV exports of Vicon's Tracker and Nexus: objects and segments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.rigid_bodies import (
    HEADER_LINES,
    RigidBody,
    body_columns,
    cells_of,
    choose_body,
    find_frame_line,
)
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, ROTATION_VECTOR
from simbridge.trajectory.tables.table import Columns
from simbridge.trajectory.tables.units import UNIT_SPELLINGS

# The first cells of parts with poses, and of others that may come before them.
POSE_PARTS = ("objects", "segments")
OTHER_PARTS = ("devices", "joints", "model outputs", "trajectories")
# The roles of Vicon's axes.
POSITION_AXES = ("tx", "ty", "tz")
ROTATION_AXES = ("rx", "ry", "rz")
# Lines of a header at least: part, rate, bodies, axes, units.
MIN_HEADER_LINES = 5
# The first column with a pose, behind Frame and Sub Frame.
FIRST_POSE_COLUMN = 2


def find_vicon_part(path: str | Path, lines: Sequence[str]) -> int | None:
    """Return the index of the line in which the poses of an export of Vicon begin.

    Returns:
        The index; None if the text is not such an export.

    Raises:
        InputFileError: The text is such an export, but has no poses.
    """
    part = _part_name(lines[0])
    if len(lines) < MIN_HEADER_LINES or not _is_rate(lines[1]):
        return None
    if part in POSE_PARTS:
        return 0
    if part not in OTHER_PARTS:
        return None

    start = next((i for i, line in enumerate(lines) if _part_name(line) in POSE_PARTS), None)
    if start is None:
        reason = (
            f"Vicon's export contains only {part}: export objects or segments, which have poses"
        )
        raise InputFileError(path, reason)
    is_complete = len(lines) - start >= MIN_HEADER_LINES and _is_rate(lines[start + 1])
    return start if is_complete else None


def _part_name(line: str) -> str:
    """Return the name of a part of an export, from its first line."""
    return cells_of(line)[0].lower()


def _is_rate(line: str) -> bool:
    """Return whether a line states the samples per s."""
    return line.rstrip(", ").replace(".", "", 1).isdecimal()


def vicon_columns(
    path: str | Path, lines: Sequence[str], start: int, choice: Choice, *, body: str | None
) -> tuple[Columns, int]:
    """Return the columns of an export, and the index of its first line with numbers.

    Args:
        path: The file, for messages.
        lines: Lines of the file.
        start: Index of the line in which the poses' part begins.
        choice: What `--columns` says.
        body: The object that is read; None for the only one.

    Raises:
        InputFileError: The export has no such object, or the object's rotations may be Euler
            angles.
    """
    header = [cells_of(line) for line in lines[start : start + HEADER_LINES]]
    axes_line = find_frame_line(header)
    if axes_line is None or axes_line + 1 >= len(header):
        reason = "its header lacks the line 'Frame,Sub Frame,...' of Vicon's exports"
        raise InputFileError(path, reason)

    bodies = _columns_of_bodies(header, axes_line)
    name = choose_body(path, list(bodies), body)
    axes = bodies[name]
    is_vector = "rw" not in axes
    if is_vector and not set(ROTATION_VECTOR) <= set(choice.columns):
        raise InputFileError(
            path,
            "RX RY RZ may be rotation vectors or Euler angles; the file does not say which. If "
            "they are rotation vectors, add --columns rx=RX,ry=RY,rz=RZ; otherwise export "
            "quaternions (RX RY RZ RW)",
            line=start + axes_line + 1,
        )

    rotation = ROTATION_VECTOR if is_vector else QUATERNION
    rotation_axes = ROTATION_AXES if is_vector else (*ROTATION_AXES, "rw")
    indices = {
        role: axes[axis]
        for role, axis in zip((*POSITION, *rotation), (*POSITION_AXES, *rotation_axes), strict=True)
        if axis in axes
    }
    rigid_body = RigidBody(
        name=name,
        program="Vicon",
        frame="Vicon",
        indices=indices,
        rotation=rotation,
        units=_units(header[axes_line + 1], indices),
        rate=float(lines[start + 1].rstrip(", ")),
    )
    return body_columns(path, rigid_body, choice), start + axes_line + 2


def _columns_of_bodies(
    header: Sequence[Sequence[str]], axes_line: int
) -> dict[str, dict[str, int]]:
    """Return the columns of each object by axis; its name stands above the first of them."""
    names = header[axes_line - 1]
    bodies: dict[str, dict[str, int]] = {}
    name = ""
    for index, axis in enumerate(header[axes_line]):
        if index < FIRST_POSE_COLUMN:
            continue
        if index < len(names) and names[index]:
            name = names[index]
        bodies.setdefault(name, {})[axis.lower()] = index
    return bodies


def _units(units_line: Sequence[str], indices: dict[str, int]) -> dict[str, str]:
    """Return the units that the line below the axes states, by role."""
    units = {}
    for role, index in indices.items():
        written = units_line[index] if index < len(units_line) else ""
        if role not in QUATERNION:
            units[role] = UNIT_SPELLINGS.get(written.lower(), "")
    return units
