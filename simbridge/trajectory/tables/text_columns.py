"""Decides which columns a text file has: by `--columns`, its header, a comment, or its dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_state_text import find_joint_state
from simbridge.trajectory.tables.named_joints import columns_of
from simbridge.trajectory.tables.quaternion_order import refuse_other_dialect, refuse_other_header
from simbridge.trajectory.tables.table import Columns
from simbridge.trajectory.tables.text_beginning import Beginning, read_beginning
from simbridge.trajectory.tables.text_dialects import (
    SEVEN_WITHOUT_TIME,
    TUM,
    dialect_columns,
    find_dialect,
    unknown_layout,
)
from simbridge.trajectory.tables.text_header import (
    find_commented_header,
    is_remark,
    refuse_later_names,
    stated_flag,
)
from simbridge.trajectory.tables.unit_comments import find_commented_units


def find_columns(
    path: str | Path, lines: Sequence[str], choice: Choice, rate: float | None
) -> tuple[Columns, int]:
    """Return the columns of a text file, and the index of its first line with numbers.

    Args:
        path: The file, for messages.
        lines: The lines of the file.
        choice: The columns that the user has chosen.
        rate: Samples per s, if the file has no time.

    Raises:
        InputFileError: Nothing says what the columns are, or two things contradict each other.
    """
    beginning = read_beginning(path, lines)
    columns = _decide_columns(beginning, choice, rate)

    # Comments may state units, except those that are a list of the columns' names.
    remarks = [
        (number, comment)
        for number, comment in reversed(beginning.comments)
        if is_remark(comment, beginning.first_line.count)
    ]
    columns = replace(columns, commented_units=find_commented_units(remarks))

    # Refuse a comment between the rows that names the columns in another order, unless the user has
    # chosen them.
    first = beginning.first_line.number - 1
    if not choice.columns:
        refuse_later_names(path, lines[first:], first, columns)
    return columns, first


def _decide_columns(beginning: Beginning, choice: Choice, rate: float | None) -> Columns:
    """Return the columns by the header, or else by a comment, by the choice, or by the dialect."""
    if choice.arm is not None and not choice.columns:
        joint_state = find_joint_state(beginning.header, beginning.first_line)
        if joint_state is not None:
            columns = columns_of(joint_state.header, choice, rate)
            return replace(columns, constant_indices=joint_state.name_indices)

    if beginning.header is not None:
        columns = columns_of(beginning.header, choice, rate)
        if not choice.columns:
            refuse_other_header(beginning, beginning.header, columns)
        return columns

    line = beginning.first_line
    header = find_commented_header(beginning, choice)
    if header is not None:
        return columns_of(header, choice, rate)
    if choice.columns or choice.asks_for_joints:
        numbers = [str(i + 1) for i in range(line.count)]
        return columns_of(Header(line.path, numbers, "flag --columns", line.number), choice, rate)

    dialect = find_dialect(line, rate)
    if dialect is None:
        raise unknown_layout(line, stated_flag(beginning))
    if dialect in (TUM, SEVEN_WITHOUT_TIME):
        refuse_other_dialect(beginning, dialect)
    return dialect_columns(line, dialect, choice, rate)
