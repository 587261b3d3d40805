"""Reads the beginning of a text file: comments, the header, its units, and the first numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simbridge.errors import InputFileError
from simbridge.reading_progress import with_progress
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.column_names import strip_quotes
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.named_joints import columns_of
from simbridge.trajectory.tables.roles import NEEDED
from simbridge.trajectory.tables.text_dialects import FirstLine
from simbridge.trajectory.tables.text_lines import (
    comment_of,
    content_of,
    find_separator,
    looks_like_number,
)
from simbridge.trajectory.tables.units import UNIT_SPELLINGS

# Largest number of comments before the numbers that are kept: the last ones.
MAX_COMMENTS = 1000
# Marks of a comment before the numbers besides #: MATLAB's and C's.
OTHER_COMMENT_MARKS = ("% ", "// ")


@dataclass(frozen=True)
class Beginning:
    """The lines before the numbers of a text file, and the first line with numbers.

    Attributes:
        header: The names in the line before the numbers; None if there are none.
        first_line: The first line with numbers.
        comments: Number and text of comments, the last one first.
    """

    header: Header | None
    first_line: FirstLine
    comments: list[tuple[int, str]]


def read_beginning(path: str | Path, lines: Sequence[str]) -> Beginning:
    """Read the comments, the header and the first line with numbers.

    Args:
        path: The file, for messages.
        lines: The lines of the file.

    Raises:
        InputFileError: No line has numbers.
    """
    header = None
    is_indented = False
    comments: deque[tuple[int, str]] = deque(maxlen=MAX_COMMENTS)
    for number, line in with_progress(path, lines):
        # Blank lines are skipped, and comments kept.
        content = content_of(line)
        if not content or content.startswith(OTHER_COMMENT_MARKS):
            comment = comment_of(line) or content.strip(" %/")
            if comment:
                comments.append((number, comment))
            continue

        # The first line of words is the header. A line of units may follow it.
        separator = find_separator(content)
        fields = content.split(separator)
        if header is not None and _are_units(fields, header):
            header = _add_units(header, fields)
            continue
        if header is None and not any(map(looks_like_number, fields)):
            header = Header(path, fields, "header", number)
            is_indented = line.startswith("\t")
            continue

        # Any other line is the first one with numbers. It may have words, too, such as the names of
        # joints: the columns decide whether they belong there.
        first_line = FirstLine(path, number, fields, separator)
        header = _fit_to_columns(header, first_line, is_indented=is_indented)
        return Beginning(header, first_line, [*reversed(comments)])

    if header is not None:
        # If the names are at fault, raise that error: it helps more than the fact that there are no
        # samples. With a rate, names without a time are no fault.
        columns_of(header, Choice.parse(None), rate=1.0)
    raise InputFileError(path, f"it has no samples; it needs lines of {NEEDED}")


def _are_units(fields: Sequence[str], header: Header) -> bool:
    """Return whether a line below a header states the units of its columns, and nothing else."""
    units = [strip_quotes(field).strip("[]()").lower() for field in fields]
    is_empty_or_unit = all(unit in ("", "-") or unit in UNIT_SPELLINGS for unit in units)
    return len(fields) == len(header.names) and is_empty_or_unit and any(units)


def _add_units(header: Header, units: Sequence[str]) -> Header:
    """Return a header with the units of the line below it in its names: "x [mm]"."""
    names = []
    for name, unit in zip(header.names, units, strict=True):
        spelling = strip_quotes(unit).strip("[]()-")
        names.append(f"{name.strip()} [{spelling}]" if spelling else name)
    return replace(header, names=names)


def _fit_to_columns(header: Header | None, line: FirstLine, *, is_indented: bool) -> Header | None:
    """Return a header with a name for each column: an empty name at an end is added or dropped.

    Args:
        header: The header, with the names between its separators; None if there is none.
        line: The first line with numbers.
        is_indented: Whether the header begins with a tab. Before the tab is the empty name of the
            index, as pandas writes it.
    """
    if header is None:
        return None
    if is_indented and len(header.names) == line.count - 1:
        return replace(header, names=["", *header.names])
    if len(header.names) == line.count + 1 and not strip_quotes(header.names[-1]):
        return replace(header, names=header.names[:-1])
    return header
