"""Tables of poses as text: with a header or without, and of motion capture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.motive import is_motive_export, motive_columns
from simbridge.trajectory.tables.table import Columns, Table
from simbridge.trajectory.tables.text_columns import find_columns
from simbridge.trajectory.tables.text_dialects import SEVEN_NUMBERS, SEVEN_WITH_TIME, flag_of
from simbridge.trajectory.tables.text_lines import check_text_size, lines_of
from simbridge.trajectory.tables.text_rows import read_rows
from simbridge.trajectory.tables.vicon import find_vicon_part, vicon_columns
from simbridge.trajectory.trajectory import UNIT_TOLERANCE


def parse_text(
    path: str | Path,
    text: str,
    choice: Choice,
    *,
    rate: float | None = None,
    body: str | None = None,
) -> Table:
    """Parse the text of a table of poses.

    Args:
        path: Path of the file, for messages.
        text: The content.
        choice: Which columns are used.
        rate: Samples per s, if the table has no time.
        body: Which rigid body of a motion capture export.

    Raises:
        InputFileError: It is not a table of poses; with line and column.
    """
    check_text_size(path, text)
    # Some programs put every field in quotation marks.
    lines = lines_of(text.replace('"', ""))
    captured = _motion_capture(path, lines, choice, body)
    if captured is not None:
        columns, first = captured
        return read_rows(path, lines, columns, first)
    if body is not None:
        raise InputFileError(path, f"a text file has no topic {quoted(body)}; omit --topic")

    columns, first = find_columns(path, lines, choice, rate)
    table = read_rows(path, lines, columns, first)
    _refuse_quaternions_without_time(path, table)
    return table


def _motion_capture(
    path: str | Path, lines: Sequence[str], choice: Choice, body: str | None
) -> tuple[Columns, int] | None:
    """Return the columns of an export of motion capture, and its first line with numbers."""
    if is_motive_export(lines):
        return motive_columns(path, lines, choice, body)
    start = find_vicon_part(path, lines)
    if start is not None:
        return vicon_columns(path, lines, start, choice, body=body)
    return None


def _refuse_quaternions_without_time(path: str | Path, table: Table) -> None:
    """Refuse 7 numbers a line that may be a time and rotation vector, or no time and quaternion."""
    columns = table.columns
    if columns.understood != SEVEN_NUMBERS or columns.rate is not None or len(table.values) < 2:
        return
    norms = np.linalg.norm(table.values[:, 2:], axis=1)
    if (np.abs(norms - 1.0) < UNIT_TOLERANCE).all():
        raise InputFileError(
            path,
            "7 numbers per line may be t x y z rx ry rz, or x y z qx qy qz qw without times, "
            "because the last four form unit quaternions. If they are quaternions, add --rate HZ; "
            f"otherwise add {flag_of(SEVEN_WITH_TIME)}",
            line=table.line(0),
        )
