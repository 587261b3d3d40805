"""A table of poses as it is in a file: its numbers, what they are, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot.pose import Array
from simbridge.trajectory.dropped_rows import DroppedRows
from simbridge.trajectory.tables.roles import is_joint_role
from simbridge.trajectory.tables.unit_comments import CommentedUnit

MAX_COLUMNS = 10_000
# Whole stamps from here on are kept whole: divided, they would be rounded to more than 0.01 ns.
LONG_STAMP = 10**14
# Begins the refusal of rows of another frame that moves.
CHILD_FRAME_IS = "the child frame is"


@dataclass(frozen=True)
class Columns:
    """The columns of a table of poses.

    Attributes:
        roles: The role of each column that is read: POSITION, then QUATERNION, ROTATION_VECTOR or
            MATRIX; or the joints of an arm, j1, j2, ...
        names: The names of these columns, as the table has them; in the order of the roles.
        indices: The places of these columns in a row, counted from 0; in the order of the roles.
        units: The units of these columns, "" if none is stated; in the order of the roles.
        times: The names of the columns of time: one; two for s and ns, or for date and time of day;
            none where the rate is known.
        time_indices: The places of the columns of time in a row, counted from 0.
        is_date_and_time: Whether two columns of time are a date and a time of day.
        time_unit: The unit of the time; "" if none is stated.
        understood: What names the columns, for the line that says how a file was read: "header
            names px..".
        origin: Origin of the columns for messages: "as the header in line 1 names".
        width: Number of columns of every line; None if lines may be shorter.
        frame_index: Place of the column that names the poses' frame; None if there is none.
        frame: The poses' frame, where the format defines it.
        rate: Samples per s; None if times are in the file.
        is_in_pendant_base: Whether they are a controller's TCP poses, which are in the pendant's
            base.
        constant_indices: Columns whose words must be those of the first row in every row.
        constant_subject: What these words are, for the refusal of other words.
        metres_by: The format that defines seconds and metres; "" if the numbers decide.
        commented_units: The units that comments state, by the kind of quantity: "length", "angle"
            and "time".
    """

    roles: tuple[str, ...]
    names: tuple[str, ...]
    indices: tuple[int, ...]
    units: tuple[str, ...]
    times: tuple[str, ...]
    time_indices: tuple[int, ...]
    understood: str
    time_unit: str = ""
    is_date_and_time: bool = False
    width: int | None = None
    origin: str = "as the header names"
    frame_index: int | None = None
    frame: str = ""
    rate: float | None = None
    is_in_pendant_base: bool = False
    metres_by: str = ""
    commented_units: Mapping[str, CommentedUnit] = field(default_factory=dict)
    constant_indices: tuple[int, ...] = ()
    constant_subject: str = "its joints are"

    @property
    def are_joints(self) -> bool:
        """True if the columns are joint positions, False if they are poses."""
        return is_joint_role(self.roles[0])


@dataclass(frozen=True, eq=False)
class Table:
    """The numbers of a table of poses or joint positions, as in the file.

    Attributes:
        columns: What the numbers are.
        stamps: One number or datetime64 a row (T,), or the words of its columns of time, a tuple a
            row.
        values: Position and rotation, or joint positions (T, k), in the order of the columns'
            roles.
        rows: Place of each row (T,) in the file, counted from 0, with those that were left out.
        lines: The line of each row; empty where a file has no lines.
        frame: The frame of the poses; "" if the table names none.
        dropped: The rows that were left out.
    """

    columns: Columns
    stamps: Array | NDArray[np.datetime64] | Sequence[tuple[str, ...]]
    values: Array
    rows: NDArray[np.intp]
    lines: Sequence[int] = ()
    frame: str = ""
    dropped: tuple[DroppedRows | str, ...] = ()

    def line(self, row: int) -> int | None:
        """Return the line of a row, counted from 1; None if a file has no lines."""
        return self.lines[row] if len(self.lines) else None

    def row_number(self, row: int) -> int:
        """Return which row of the file a row is, counted from 1."""
        return int(self.rows[row]) + 1


def check_column_count(path: str | Path, count: int, line: int | None = None) -> None:
    """Refuse a table of more than MAX_COLUMNS columns."""
    if count > MAX_COLUMNS:
        reason = f"it has {count:,} columns; at most {MAX_COLUMNS:,} are read"
        raise InputFileError(path, reason, line=line)
