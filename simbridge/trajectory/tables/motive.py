"""CSV exports of OptiTrack's Motive: rigid bodies and bones, with rotations as quaternions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.rigid_bodies import (
    HEADER_LINES,
    RigidBody,
    body_columns,
    cells_of,
    choose_body,
    find_frame_line,
)
from simbridge.trajectory.tables.roles import POSITION, QUATERNION
from simbridge.trajectory.tables.table import Columns
from simbridge.trajectory.tables.units import UNIT_SPELLINGS

FIRST_CELL = "format version"
# What has poses.
BODY_TYPES = ("Rigid Body", "Bone")
DEFAULT_LENGTH_UNIT = "Meters"


def is_motive_export(lines: Sequence[str]) -> bool:
    """Return whether a text is an export of Motive."""
    return cells_of(lines[0])[0].lower() == FIRST_CELL


def motive_columns(
    path: str | Path, lines: Sequence[str], choice: Choice, body: str | None
) -> tuple[Columns, int]:
    """Return the columns of an export, and the index of its first line with numbers.

    Args:
        path: The file, for messages.
        lines: Lines of the file.
        choice: What `--columns` says.
        body: The rigid body that is read; None for the only one.

    Raises:
        InputFileError: The export has no such body, or the body's rotations are not quaternions.
    """
    header = [cells_of(line) for line in lines[:HEADER_LINES]]
    settings = dict(zip(header[0][::2], header[0][1::2], strict=False))
    rotation_type = settings.get("Rotation Type", "Quaternion")
    if rotation_type != "Quaternion":
        raise InputFileError(
            path,
            f"its rotations have the type {quoted(rotation_type)}; export them with the type "
            "Quaternion",
            line=1,
        )

    axes_line = find_frame_line(header)
    types_line = next(
        (i for i, cells in enumerate(header) if not set(BODY_TYPES).isdisjoint(cells)), None
    )
    if axes_line is None or types_line is None:
        reason = "it has no rigid body: export rigid bodies, with the header"
        raise InputFileError(path, reason)

    bodies = _columns_of_bodies(header, types_line, axes_line)
    name = choose_body(path, list(bodies), body)
    length = settings.get("Length Units", DEFAULT_LENGTH_UNIT).lower()
    # The frame of Motive has y up: it must be placed.
    rigid_body = RigidBody(
        name=name,
        program="Motive",
        frame="OptiTrack",
        indices=bodies[name],
        rotation=QUATERNION,
        units=dict.fromkeys(POSITION, UNIT_SPELLINGS.get(length, "")),
    )
    return body_columns(path, rigid_body, choice), axes_line + 1


def _columns_of_bodies(
    header: Sequence[Sequence[str]], types_line: int, axes_line: int
) -> dict[str, dict[str, int]]:
    """Return the columns of each body by role, from the header's lines of types to axes.

    Args:
        header: The cells of the header's lines.
        types_line: Index of the line with the type of each column's object; the next line has the
            objects' names.
        axes_line: Index of the line with the axes; the line before it says Position or Rotation.
    """
    rows = zip(
        header[types_line],
        header[types_line + 1],
        header[axes_line - 1],
        header[axes_line],
        strict=False,
    )
    bodies: dict[str, dict[str, int]] = {}
    for index, (type_name, name, group, axis) in enumerate(rows):
        if type_name not in BODY_TYPES:
            continue
        if group == "Position":
            bodies.setdefault(name, {})[axis.lower()] = index
        elif group == "Rotation":
            bodies.setdefault(name, {})[f"q{axis.lower()}"] = index
    return bodies
