"""The numbers of a text file whose columns are known."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.reading_progress import with_progress
from simbridge.robot.pose import Array, Flags
from simbridge.text import counted
from simbridge.trajectory.dropped_rows import DroppedRows, lost_samples
from simbridge.trajectory.tables.column_names import strip_quotes
from simbridge.trajectory.tables.table import LONG_STAMP, Columns, Table
from simbridge.trajectory.tables.text_lines import content_of, find_separator, is_number
from simbridge.trajectory.tables.wall_clock import TIMES_OF_DAY, WALL_CLOCK_START

# What stands for a time that is missing.
MISSING_STAMPS = frozenset({"", "nan", "nat"})


class TextRows:
    """The rows of a text file, as they are read line by line.

    Args:
        path: The file, for messages.
        columns: The columns of the file that are read.
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
        # Picks the words of these columns from the fields of a line.
        self._pick = itemgetter(*number_indices)
        # The last of all columns that are read.
        self._last_index = max((*columns.time_indices, *columns.indices))
        # Whether the first row ends in a separator: only then may the others, too.
        self._has_empty_end = False

        # Numbers of the rows so far, one row after the other.
        self._values = array("d")
        # Number of each row's line, from 1.
        self._lines: list[int] = []
        # Words of each row's stamp, if stamps are kept as words.
        self._stamps: list[tuple[str, ...]] = []
        # The line in which each frame is named first.
        self._frames: dict[str, int] = {}
        # Lines of samples that are lost, because one of their fields is empty.
        self._empty_lines: list[int] = []
        # A clause about the last line if it is cut off, else nothing.
        self._cut_off: list[str] = []
        # The words of the first row that every row must have.
        self._constant_words: list[str] = []

    def read(self, lines: Sequence[str], first: int) -> None:
        """Read the lines from an index on.

        Raises:
            InputFileError: A line has another number of fields, or a word where a number should be.
        """
        is_captured = self._columns.width is None
        for number, line in with_progress(self._path, lines, first):
            content = content_of(line)
            if number == len(lines) and self._is_cut_off(content):
                self._cut_off = [f"the file is truncated in line {number}, which is ignored"]
            elif content:
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
        elif columns.width is None and len(fields) <= self._last_index:
            # Motion capture leaves out the fields of a lost sample at the end of a line.
            self._empty_lines.append(number)
            return

        if columns.constant_indices:
            self._check_constant_words(number, fields)
        words = self._pick(fields)
        try:
            numbers = [*map(float, words)]
        except ValueError:
            self._note_empty(number, words)
            return
        if "_" in content and not all(map(is_number, words)):
            self._refuse_word(number, words)

        if self._has_word_stamps:
            stamp = tuple(strip_quotes(fields[i]) for i in columns.time_indices)
            if not MISSING_STAMPS.isdisjoint(map(str.lower, stamp)):
                self._empty_lines.append(number)
                return
            self._stamps.append(stamp)
        self._values.extend(numbers)
        if columns.frame_index is not None:
            self._frames.setdefault(strip_quotes(fields[columns.frame_index]), number)
        self._lines.append(number)

    def _note_empty(self, number: int, words: Sequence[str]) -> None:
        """Note a line of which a word is not a number, if it is empty, else refuse it."""
        filled_words = [word for word in words if word.strip()]
        is_lost = len(filled_words) < len(words) and all(map(is_number, filled_words))
        if not is_lost:
            self._refuse_word(number, words)
        self._empty_lines.append(number)

    def table(self) -> Table:
        """Return the rows that were read as a table, without lost samples.

        Raises:
            InputFileError: A number is not finite, or the poses are in two frames.
        """
        read_numbers = np.frombuffer(self._values).reshape(-1, len(self._names))
        read_lines = np.array(self._lines, dtype=int)

        # For a sample that they have lost, trackers write nan or an empty field. A line with an
        # empty field was not read.
        is_lost: Flags = np.asarray(np.isnan(read_numbers).any(axis=1))
        lost_lines = np.sort([*self._empty_lines, *read_lines[is_lost].tolist()])
        dropped: list[DroppedRows | str] = [*lost_samples(lost_lines), *self._cut_off]
        lines = read_lines[~is_lost]
        if len(lost_lines) and not len(lines):
            self._refuse_all_lost(len(lost_lines), read_numbers)
        numbers = read_numbers[~is_lost]
        self._check_finite(numbers, lines)

        # The index of each sample among all samples of the file, lost ones included: where the time
        # follows from a rate, lost samples take time, too.
        all_lines = np.sort([*read_lines, *self._empty_lines])
        indices = np.searchsorted(all_lines, lines)

        # The first columns are times, unless stamps are kept as words.
        time_count = 0 if self._has_word_stamps else len(self._columns.time_indices)
        stamps: Array | list[tuple[str, ...]] = numbers[:, :time_count].reshape(-1)
        if self._has_word_stamps:
            stamps = [stamp for stamp, lost in zip(self._stamps, is_lost, strict=True) if not lost]
        return Table(
            self._columns,
            stamps,
            numbers[:, time_count:],
            indices,
            lines=lines.tolist(),
            frame=self._frame(),
            dropped=tuple(dropped),
        )

    def _is_cut_off(self, content: str) -> bool:
        """Return whether the last line, if it has no line end, has fewer fields than the others."""
        # Lines of motion capture may end behind the pose.
        width = self._columns.width or self._last_index + 1
        fields = content.split(self._separator)
        return bool(content) and bool(self._lines) and len(fields) < width

    def _check_constant_words(self, number: int, fields: Sequence[str]) -> None:
        """Refuse a line with other names of joints, or another child frame, than the first has."""
        words = [fields[index].strip() for index in self._columns.constant_indices]
        self._constant_words = self._constant_words or words
        if words != self._constant_words:
            reason = (
                f"{self._columns.constant_subject} {quoted_list(words)} here, but "
                f"{quoted_list(self._constant_words)} before; remove such rows"
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
        reason = f"{len(fields)} columns, but {width} are expected, {self._columns.origin}"
        raise InputFileError(self._path, reason, line=number)

    def _check_finite(self, numbers: Array, lines: Array) -> None:
        """Refuse a number that is not finite."""
        not_finite = np.argwhere(~np.isfinite(numbers))
        if len(not_finite):
            row, column = not_finite[0]
            reason = f"{numbers[row, column]} is not a finite number"
            line = int(lines[row])
            raise InputFileError(self._path, reason, line=line, field=self._names[column])

    def _refuse_all_lost(self, count: int, numbers: Array) -> NoReturn:
        """Refuse a file of which every sample is lost.

        Args:
            count: The number of samples.
            numbers: Numbers of the samples (T, k), without the rows of which a field is empty.
        """
        never_there = np.flatnonzero(np.isnan(numbers).all(axis=0))
        names = [self._names[column] for column in never_there.tolist()]
        where = f": {quoted_list(names)} never contains a number" if len(numbers) and names else ""
        reason = f"all of its {counted(count, 'sample')} are lost (nan or empty){where}"
        raise InputFileError(self._path, reason)

    def _frame(self) -> str:
        """Return the frame that the rows name, else that of the format."""
        if len(self._frames) > 1:
            first, second = list(self._frames)[:2]
            reason = (
                f"the frame is {quoted(second)} here, but {quoted(first)} before; "
                "split the file in two"
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
        if is_number(word.replace(",", ".", 1)):
            reason += "; write it with a decimal point"
        elif ":" in word:
            reason += f"; {TIMES_OF_DAY}"
        raise InputFileError(self._path, reason, line=number, field=name) from None


def read_rows(path: str | Path, lines: Sequence[str], columns: Columns, first: int) -> Table:
    """Read the rows of a text file.

    Args:
        path: The file, for messages.
        lines: All lines of the file.
        columns: Which columns are read.
        first: Index of the first line with numbers.
    """
    if first >= len(lines):
        raise InputFileError(path, "it has no samples")

    content = content_of(lines[first])
    separator = "," if columns.width is None else find_separator(content)
    has_word_stamps = len(columns.time_indices) > 1
    if len(columns.time_indices) == 1:
        stamp = _first_stamp(islice(lines, first, None), separator, columns.time_indices[0])
        has_word_stamps = _is_long_or_a_date(stamp)
    rows = TextRows(path, columns, separator, has_word_stamps=has_word_stamps)
    rows.read(lines, first)
    return rows.table()


def _first_stamp(lines: Iterable[str], separator: str | None, index: int) -> str:
    """Return the first stamp that is there; "" if there is none.

    Args:
        lines: Lines with numbers.
        separator: What separates the fields; None for blanks.
        index: The column of the stamps.
    """
    for line in lines:
        fields = content_of(line).split(separator)
        stamp = strip_quotes(fields[index]) if index < len(fields) else ""
        if stamp and stamp.lower() != "nan":
            return stamp
    return ""


def _is_long_or_a_date(stamp: str) -> bool:
    """Return whether a stamp is a time of day, or has more digits than a double should hold."""
    if WALL_CLOCK_START.match(stamp):
        return True
    return stamp.isdecimal() and float(stamp) >= LONG_STAMP
