"""The numbers of a text file whose columns are known."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.reading_progress import with_progress
from simbridge.robot.pose import Array, Flags
from simbridge.trajectory.dropped_rows import dropped_rows
from simbridge.trajectory.tables.column_names import bare
from simbridge.trajectory.tables.table import LONG_STAMP, Columns, Table
from simbridge.trajectory.tables.text_lines import content_of, find_separator, is_number
from simbridge.trajectory.tables.wall_clock import TIMES_OF_DAY, WALL_CLOCK_START


class TextRows:
    """The rows of a text file, as they are read line by line.

    Args:
        path: The file, for messages.
        columns: Which of its columns are read.
        separator: What separates the fields; None for blanks.
        has_word_stamps: Whether stamps are kept as words: they are times of day, whole numbers too
            long for a double, or in two columns.
    """

    def __init__(
        self, path: str | Path, columns: Columns, separator: str | None, *, has_word_stamps: bool
    ) -> None:
        self._path = path
        self._columns = columns
        self._separator = separator
        self._has_word_stamps = has_word_stamps

        # The columns that are numbers, and their names.
        number_indices = columns.indices
        self._names = columns.names
        if not has_word_stamps:
            number_indices = (*columns.time_indices, *columns.indices)
            self._names = (*columns.times, *columns.names)
        self._pick = itemgetter(*number_indices)
        self._last_index = max((*columns.time_indices, *columns.indices))
        # Whether lines end in a separator: the first one does.
        self._has_empty_end = False

        # Numbers of the rows so far, one row after the other, and the line of each row.
        self._values = array("d")
        self._lines: list[int] = []
        self._stamps: list[tuple[str, ...]] = []
        # The line in which each frame is named first.
        self._frames: dict[str, int] = {}
        # Lines without a pose.
        self._empty_lines: list[int] = []
        # The words that every row must have, as the first one has them.
        self._constant_words: list[str] = []

    def read(self, lines: Sequence[str], first: int) -> None:
        """Read the lines from an index on.

        Raises:
            InputFileError: A line has another number of fields, or a word where a number should be.
        """
        is_captured = self._columns.width is None
        for number, line in with_progress(self._path, lines, first):
            content = content_of(line)
            if content:
                self._read_row(number, content)
            elif is_captured and self._lines:
                # Vicon writes the markers below the objects.
                break

    def _read_row(self, number: int, content: str) -> None:
        """Read the line of a number: most of the time is spent here."""
        columns = self._columns
        fields = content.split(self._separator)
        if columns.width is not None and len(fields) != columns.width:
            fields = self._other_fields(number, content, fields)
        elif columns.width is None and not self._has_pose(fields):
            self._empty_lines.append(number)
            return

        if columns.constant_indices:
            self._check_constant_words(number, fields)
        words = self._pick(fields)
        try:
            numbers = [*map(float, words)]
        except ValueError:
            # What is wrong is analysed only when something is.
            if not self._is_without_pose(fields):
                self._refuse_word(number, words)
            self._empty_lines.append(number)
            return
        if "_" in content and not all(map(is_number, words)):
            self._refuse_word(number, words)

        self._values.extend(numbers)
        if self._has_word_stamps:
            self._stamps.append(tuple(bare(fields[i]) for i in columns.time_indices))
        if columns.frame_index is not None:
            self._frames.setdefault(bare(fields[columns.frame_index]), number)
        self._lines.append(number)

    def table(self) -> Table:
        """Return what was read.

        Raises:
            InputFileError: A number is not finite, or the poses are in two frames.
        """
        numbers = np.frombuffer(self._values).reshape(-1, len(self._names))
        lines = np.array(self._lines, dtype=int)
        time_count = 0 if self._has_word_stamps else len(self._columns.time_indices)

        # What trackers write for a sample that they have lost.
        is_lost: Flags = np.asarray(np.isnan(numbers[:, time_count:]).all(axis=1))
        lacking = "without joint positions" if self._columns.are_joints else "without a pose"
        dropped = [
            *dropped_rows("row", self._empty_lines, detail=lacking),
            *dropped_rows("lost sample", lines[is_lost].tolist(), detail="of nan"),
        ]
        numbers = numbers[~is_lost]
        rows = np.searchsorted(np.sort([*lines, *self._empty_lines]), lines[~is_lost])
        lines = lines[~is_lost]
        self._check_finite(numbers, lines)

        stamps: Array | list[tuple[str, ...]] = numbers[:, :time_count].reshape(-1)
        if self._has_word_stamps:
            stamps = [stamp for stamp, lost in zip(self._stamps, is_lost, strict=True) if not lost]
        return Table(
            self._columns,
            stamps,
            numbers[:, time_count:],
            rows,
            lines=lines.tolist(),
            frame=self._frame(),
            dropped=tuple(dropped),
        )

    def _has_pose(self, fields: Sequence[str]) -> bool:
        """Return whether all fields that are read are filled."""
        return len(fields) > self._last_index and all(map(str.strip, self._pick(fields)))

    def _is_without_pose(self, fields: Sequence[str]) -> bool:
        """Return whether all fields of the values are empty, as pandas writes rows of nan."""
        return not any(fields[index].strip() for index in self._columns.indices)

    def _check_constant_words(self, number: int, fields: Sequence[str]) -> None:
        """Refuse a line whose constant words, the names of joints, are not those of the first."""
        words = [fields[index].strip() for index in self._columns.constant_indices]
        self._constant_words = self._constant_words or words
        if words != self._constant_words:
            reason = (
                f"its joints are {quoted_list(words)} here, {quoted_list(self._constant_words)} "
                "before; leave such rows out"
            )
            raise InputFileError(self._path, reason, line=number)

    def _other_fields(self, number: int, content: str, fields: list[str]) -> list[str]:
        """Return the fields of a line that has a separator at its end, or tabs around nothing."""
        width = self._columns.width
        between_tabs = content.split("\t")
        if self._separator is None and len(between_tabs) == width:
            return between_tabs

        is_first = not self._lines and not self._empty_lines
        ends_empty = len(fields) - 1 == width and not fields[-1].strip()
        if ends_empty and (is_first or self._has_empty_end):
            self._has_empty_end = True
            return fields[:-1]
        reason = f"{len(fields)} columns where {width} are expected, {self._columns.origin}"
        raise InputFileError(self._path, reason, line=number)

    def _check_finite(self, numbers: Array, lines: Array) -> None:
        """Refuse a number that is not finite."""
        not_finite = np.argwhere(~np.isfinite(numbers))
        if len(not_finite):
            row, column = not_finite[0]
            reason = f"{numbers[row, column]} is not a finite number"
            line = int(lines[row])
            raise InputFileError(self._path, reason, line=line, field=self._names[column])

    def _frame(self) -> str:
        """Return the frame that the rows name, else that of the format."""
        if len(self._frames) > 1:
            first, second = list(self._frames)[:2]
            reason = (
                f"the frame is {quoted(second)} here, {quoted(first)} before; cut the file in two"
            )
            line = self._frames[second]
            raise InputFileError(self._path, reason, line=line, field="frame_id")
        return next(iter(self._frames), self._columns.frame)

    def _refuse_word(self, number: int, words: Sequence[str]) -> NoReturn:
        """Refuse the first of these words that is not a number."""
        name, word = next(
            pair for pair in zip(self._names, words, strict=True) if not is_number(pair[1])
        )
        word = word.strip()
        reason = f"{quoted(word)} is not a number"
        if not word:
            reason = "a number is missing; leave such rows out"
        if is_number(word.replace(",", ".", 1)):
            reason += "; write it with a decimal point"
        elif ":" in word:
            reason += f"; {TIMES_OF_DAY}"
        raise InputFileError(self._path, reason, line=number, field=name) from None


def read_rows(path: str | Path, lines: Sequence[str], columns: Columns, first: int) -> Table:
    """Read the rows of a text file.

    Args:
        path: The file, for messages.
        lines: All of its lines.
        columns: Which columns are read.
        first: Index of the first line with numbers.
    """
    if first >= len(lines):
        raise InputFileError(path, "it has no samples")

    content = content_of(lines[first])
    separator = "," if columns.width is None else find_separator(content)
    has_word_stamps = len(columns.time_indices) > 1 or (
        len(columns.time_indices) == 1
        and _is_long_or_a_date(content.split(separator), columns.time_indices[0])
    )
    rows = TextRows(path, columns, separator, has_word_stamps=has_word_stamps)
    rows.read(lines, first)
    return rows.table()


def _is_long_or_a_date(fields: Sequence[str], index: int) -> bool:
    """Return whether a stamp is a time of day, or has more digits than a double should hold."""
    word = bare(fields[index]) if index < len(fields) else ""
    if WALL_CLOCK_START.match(word):
        return True
    return word.isdecimal() and float(word) >= LONG_STAMP
