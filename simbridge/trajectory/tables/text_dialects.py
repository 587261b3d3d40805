"""Text without a header: the dialects that the number of fields tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.text import counted
from simbridge.trajectory.tables.choice import Choice, columns_flag
from simbridge.trajectory.tables.roles import (
    MATRIX,
    NEEDED,
    NO_ROTATION,
    POSITION,
    QUATERNION,
    QUATERNION_W_FIRST,
    ROTATION_VECTOR,
)
from simbridge.trajectory.tables.table import CHILD_FRAME_IS, LONG_STAMP, Columns
from simbridge.trajectory.tables.text_lines import is_number, looks_like_number
from simbridge.trajectory.trajectory import UNIT_TOLERANCE

# Where POSITION and MATRIX are in the first three rows of a homogeneous matrix.
MATRIX_ROW_INDICES = (3, 7, 11, 0, 1, 2, 4, 5, 6, 8, 9, 10)
KITTI_COUNT = 12
TUM_COUNT = 8
# Columns of EuRoC's and ASL's state_groundtruth_estimate0.
EUROC_COUNT = 17

SEVEN_NUMBERS = "no header, 7 numbers"


@dataclass(frozen=True)
class Dialect:
    """A layout of lines without a header.

    Attributes:
        name: Name of the layout, for the line that says how a file was read.
        roles: The roles of the columns in `indices`.
        indices: Places of these columns in a row, counted from 0.
        times: The names of the columns of time.
        frame_index: The column that names the poses' frame; None if there is none.
        child_index: The column that names the frame that moves; None if there is none.
        metres_by: The format's name, where it defines seconds and metres; "" if it does not.
    """

    name: str
    roles: tuple[str, ...]
    indices: tuple[int, ...]
    times: tuple[str, ...] = ("t",)
    frame_index: int | None = None
    child_index: int | None = None
    metres_by: str = ""


TUM = Dialect("no header, as TUM", POSITION + QUATERNION, tuple(range(1, 8)))
SEVEN_WITH_TIME = Dialect(SEVEN_NUMBERS, POSITION + ROTATION_VECTOR, tuple(range(1, 7)))
SEVEN_WITHOUT_TIME = Dialect(SEVEN_NUMBERS, POSITION + QUATERNION, tuple(range(7)), times=())
KITTI = Dialect(
    "no header, as KITTI", POSITION + MATRIX, MATRIX_ROW_INDICES, times=(), metres_by="KITTI"
)


def _ros2_echo(message: str, first: int) -> Dialect:
    """Return the dialect of a message whose pose begins at a field."""
    return Dialect(
        f"ros2 topic echo of {message}",
        POSITION + QUATERNION,
        tuple(range(first, first + 7)),
        times=("sec", "nanosec"),
        frame_index=2,
        child_index=3 if first > 3 else None,
    )


# What `ros2 topic echo --csv` prints, by the number of fields and the places of words among them:
# sec, nanosec, frame_id (and child_frame_id), and the fields of the message.
ROS2_ECHO = {
    (10, (2,)): _ros2_echo("PoseStamped", 3),
    (46, (2,)): _ros2_echo("PoseWithCovarianceStamped", 3),
    (11, (2, 3)): _ros2_echo("TransformStamped", 4),
    (89, (2, 3)): _ros2_echo("Odometry", 4),
}


@dataclass(frozen=True)
class FirstLine:
    """The first line with numbers.

    Attributes:
        path: The file, for messages.
        number: Number of the line, counted from 1.
        fields: Fields of the line.
        separator: What separates them; None for blanks.
    """

    path: str | Path
    number: int
    fields: Sequence[str]
    separator: str | None

    @property
    def count(self) -> int:
        """The number of fields, without an empty one behind a separator at the end."""
        has_empty_end = len(self.fields) > 1 and not self.fields[-1].strip()
        return len(self.fields) - 1 if has_empty_end else len(self.fields)

    @property
    def words(self) -> tuple[int, ...]:
        """The places of the fields that are not numbers."""
        fields = self.fields[: self.count]
        return tuple(i for i, field in enumerate(fields) if not looks_like_number(field))

    def error(self, reason: str) -> InputFileError:
        """Return the error about the file's layout."""
        return InputFileError(self.path, reason, line=self.number)


def find_dialect(line: FirstLine, rate: float | None) -> Dialect | None:
    """Return the dialect of a file without a header; None if it is in none of them.

    Args:
        line: First line of the file with numbers.
        rate: Samples per s, if the file has no time.

    Raises:
        InputFileError: The file needs the rate, or may be of two dialects.
    """
    count = line.count
    message = ROS2_ECHO.get((count, line.words))
    if message is not None:
        return message
    if count == TUM_COUNT:
        _refuse_if_like_euroc(line)
        return TUM
    if count == len(SEVEN_WITHOUT_TIME.indices):
        return SEVEN_WITH_TIME if rate is None else SEVEN_WITHOUT_TIME
    if count != KITTI_COUNT:
        return None
    if rate is None:
        raise line.error(
            "files with 12 numbers per line, such as KITTI's, have no times: add --rate HZ, the "
            "samples per second"
        )
    return KITTI


def _refuse_if_like_euroc(line: FirstLine) -> None:
    """Refuse lines that may be EuRoC's, without its header: TUM's stamps are in seconds."""
    stamp = line.fields[0]
    has_nanoseconds = is_number(stamp) and float(stamp) >= LONG_STAMP
    is_named_tum = Path(line.path).suffix.lower() == ".tum"
    if has_nanoseconds and not is_named_tum:
        raise line.error(
            "8 numbers per line, with times in nanoseconds, may be the EuRoC format without its "
            "header (w is the first number of the quaternion) or the TUM format (w is the last). "
            f"State which it is: {flag_of(TUM, is_w_first=True)} or {flag_of(TUM)}"
        )


def unknown_layout(line: FirstLine, stated_flag: str) -> InputFileError:
    """Return the error about a file that is of no dialect, with the nearest.

    Args:
        line: First line of the file with numbers.
        stated_flag: The flag --columns that follows from what a comment says; "" if none says it.
    """
    count = line.count
    among = f", {counted(len(line.words), 'word')} among them" if line.words else ""
    nearest = "Add a header"
    start = _find_pose(line)
    if start is not None:
        nearest = (
            f"Add a header, or give the columns by number: if columns {start + 1} to "
            f"{start + TUM_COUNT} are in TUM's order, with w last, add "
            f"{flag_of(TUM, start=start)}; if in EuRoC's, with w first, add "
            f"{flag_of(TUM, start=start, is_w_first=True)}"
        )
    if count == EUROC_COUNT:
        nearest = (
            "17 columns are those of EuRoC's ground truth, but the header is missing: if that is "
            f"what it is, add {flag_of(TUM, is_w_first=True)}"
        )
    if stated_flag:
        nearest = f"If a comment names the columns, add {stated_flag}"
    rotation = f". {NO_ROTATION}" if count in (3, 4) else ""
    return line.error(
        f"{count} columns{among}; without a header 8 or 7 are expected: {NEEDED}, 12 (KITTI, with "
        "--rate HZ), or `ros2 topic echo --csv` of PoseStamped (10), TransformStamped (11), "
        f"PoseWithCovarianceStamped (46) or Odometry (89). {nearest}{rotation}"
    )


def _find_pose(line: FirstLine) -> int | None:
    """Return where 8 numbers that may be a time and a pose begin: first, or behind an index.

    Returns:
        The index of the first of them; None if no four numbers are a unit quaternion there.
    """
    for start in range(min(2, line.count - TUM_COUNT + 1)):
        quaternion = line.fields[start + 4 : start + TUM_COUNT]
        if all(map(is_number, quaternion)):
            norm = math.hypot(*map(float, quaternion))
            if abs(norm - 1.0) < UNIT_TOLERANCE:
                return start
    return None


def flag_of(dialect: Dialect, *, start: int = 0, is_w_first: bool = False) -> str:
    """Return the flag --columns that reads lines without a header as a dialect reads them.

    Args:
        dialect: One whose columns follow each other: TUM's, or that of 7 numbers per line.
        start: Index of the first column.
        is_w_first: Whether the flag reads w as the first number of the quaternion instead.
    """
    rotation = QUATERNION_W_FIRST if is_w_first else dialect.roles[3:]
    roles = (*dialect.times, *POSITION, *rotation)
    indices = range(start, start + len(roles))
    return columns_flag(roles, [str(index + 1) for index in indices], indices)


def dialect_columns(
    line: FirstLine, dialect: Dialect, choice: Choice, rate: float | None
) -> Columns:
    """Return the columns of a dialect, with the units that were chosen."""
    time_indices = tuple(range(len(dialect.times)))
    return Columns(
        roles=dialect.roles,
        names=dialect.roles,
        indices=dialect.indices,
        units=tuple(choice.units.get(role, "") for role in dialect.roles),
        times=dialect.times,
        time_indices=time_indices,
        time_unit=choice.units.get("t", ""),
        width=line.count,
        origin=f"as in line {line.number}",
        understood=dialect.name,
        frame_index=dialect.frame_index,
        constant_indices=() if dialect.child_index is None else (dialect.child_index,),
        constant_subject=CHILD_FRAME_IS,
        rate=None if time_indices else rate,
        metres_by=dialect.metres_by,
    )
