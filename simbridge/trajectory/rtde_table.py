"""The text of a file whose first line names its columns, such as the fields of a controller."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.files.reading import MAX_SAMPLES_TEXT, MIB, open_file, read_bytes
from simbridge.quoting import quoted
from simbridge.reading_progress import report_progress
from simbridge.robot.pose import Array, Counts
from simbridge.text import counted
from simbridge.trajectory.line_blocks import line_blocks
from simbridge.trajectory.tables.text_lines import is_number

GZIP_MAGIC = b"\x1f\x8b"
# Bytes of a file of which the first line is looked at.
HEADER_BYTES = 100_000
# Bytes of a file in which a zero shows that it is not text.
BINARY_CHECK_BYTES = 10_000
# Bytes that are decompressed at a time.
PIECE_BYTES = 1 << 16

# An element of a vector, such as target_q_0, target_q[0] or target_q.0: its name and number.
_ELEMENT = re.compile(r"(.+?)(?:_|\.|)?\[?(\d+)\]?")

# A time of day, such as 09:10:00.002.
_TIME_OF_DAY = re.compile(r"\d:\d\d")


class RtdeTable:
    """The text of a file with a header.

    Args:
        path: The file, compressed with gzip or not.
        vector_names: Names of vectors, whose elements are columns.
        names: Names of all columns, in place of the file's header, which it need not have.

    Attributes:
        path: The file.
        scalars: Index of each column by its name in lower case.
        vectors: Indices of the columns of each vector by its name, where all of its elements are
            there.
        notes: Sentences about what was left out.

    Raises:
        InputFileError: The file cannot be read, or has no header.
    """

    def __init__(
        self, path: Path, vector_names: Collection[str], names: Sequence[str] = ()
    ) -> None:
        self.path = path
        self.notes: list[str] = []
        self._data = self._read_data()

        # The header is the first line that is not blank.
        header_line, header = self._find_header()
        self._separator = find_separator(header)
        first_cells = split_fields(header, self._separator)
        has_header = not all(map(is_number, first_cells))
        if not names and not has_header:
            needed = (
                "timestamp, target_q_0 to target_q_5, target_qd_0 ..., target_qdd_0 ..., "
                "actual_q_0 ..."
            )
            self.refuse(
                f"it has no header: the first line must name the columns, for example {needed}",
                line=header_line,
            )
        if names and len(names) != len(first_cells):
            self.refuse(
                f"--columns names {counted(len(names), 'column')}, but it has {len(first_cells)}",
                line=header_line,
            )

        # Number of columns, and number of the first line behind the header.
        self._width = len(first_cells)
        self._first_line = header_line + 1 if has_header else header_line
        # Index of each column by its name; the first one if several have the same name.
        column_names = names or first_cells
        self.scalars = {name.lower(): i for i, name in reversed(list(enumerate(column_names)))}
        self.vectors = find_vectors(column_names, vector_names)

    def _read_data(self) -> bytes:
        """Read the text of the file, as bytes."""
        data = read_bytes(self.path, MAX_SAMPLES_TEXT)
        if data.startswith(GZIP_MAGIC):
            data, is_whole = decompress_gzip(data, MAX_SAMPLES_TEXT + 1)
            if len(data) > MAX_SAMPLES_TEXT:
                limit = f"{MAX_SAMPLES_TEXT / MIB:g} MiB"
                self.refuse(f"it is larger than {limit} when it is decompressed; split it in two")
            if not is_whole:
                self.notes.append(
                    "the compressed file is truncated or damaged: only the rows before "
                    "that are used"
                )
        if b"\0" in data[:BINARY_CHECK_BYTES]:
            self.refuse("this is a binary file (or UTF-16), not a text file in UTF-8")
        return data

    def _find_header(self) -> tuple[int, str]:
        """Return the number of the first line that is not blank, from 1, and the line."""
        for block in line_blocks(self._data):
            for number, line in enumerate(block.lines, start=block.first):
                if line.strip().strip("#"):
                    return number, line.lstrip("# ")
        self.refuse("it is empty")

    def refuse(self, reason: str, *, line: int | None = None) -> NoReturn:
        """Refuse the file.

        Args:
            reason: What is wrong, as a sentence.
            line: The line at fault, from 1.
        """
        raise InputFileError(self.path, reason, line=line)

    def rows(self, indices: Sequence[int]) -> tuple[Array, Counts]:
        """Read the numbers of some columns.

        A last line without a line end may be cut inside of a number: it is left out.

        Args:
            indices: Indices of the columns.

        Returns:
            The numbers (T, len(indices)), and the line of each row (T,); empty fields are nan.
        """
        values = [np.zeros((0, len(indices)))]
        line_numbers = [np.zeros(0, dtype=np.int64)]
        for rows in self._row_blocks():
            values.append(self._read_rows(rows, indices))
            line_numbers.append(np.array([number for number, _ in rows], dtype=np.int64))
        return np.concatenate(values), np.concatenate(line_numbers)

    def _row_blocks(self) -> Iterator[list[tuple[int, str]]]:
        """Read the lines behind the header that are not blank, block by block.

        Yields:
            The number of each line of a block, from 1, and the line.
        """
        # The last line of a block may be the last one of the file: it waits for the next block.
        rows: list[tuple[int, str]] = []
        for block in line_blocks(self._data):
            numbered = enumerate(block.lines, start=block.first)
            rows += [
                (number, line)
                for number, line in numbered
                if number >= self._first_line and line.strip()
            ]
            if len(rows) > 1:
                yield rows[:-1]
                rows = rows[-1:]
            report_progress(self.path, block.read)

        final_line = block.first + len(block.lines) - 1
        if rows and not self._is_cut_off(*rows[0], final_line):
            yield rows

    def _is_cut_off(self, number: int, line: str, final_line: int) -> bool:
        """Return whether the last line that is not blank may be incomplete, and note it.

        Args:
            number: Number of the line, from 1.
            line: The line.
            final_line: Number of what follows the last line end of the file.
        """
        if number == final_line:
            where = f"line {number}, which has no line end"
            self.notes.append(
                f"the file may be truncated in {where}: only the rows before it are used"
            )
            return True
        if len(split_fields(line, self._separator)) != self._width:
            self.notes.append(
                f"the file is truncated in line {number}: only the rows before it are used"
            )
            return True
        return False

    def _read_rows(self, rows: Sequence[tuple[int, str]], indices: Sequence[int]) -> Array:
        """Read the numbers (T, len(indices)) of some columns of lines.

        Args:
            rows: The number of each line, from 1, and the line.
            indices: Indices of the columns.
        """
        lines = [line for _, line in rows]
        if all(self._count_fields(line) == self._width for line in lines):
            # Numpy reads plain numbers ten times as fast, and refuses all else.
            with contextlib.suppress(ValueError):
                return np.loadtxt(
                    lines, delimiter=self._separator, usecols=indices, comments=None, ndmin=2
                )

        values = array("d")
        for number, line in rows:
            cells = split_fields(line, self._separator)
            if len(cells) != self._width:
                reason = f"{len(cells)} columns, but the header names {self._width}"
                self.refuse(reason, line=number)
            values.extend(self._read_numbers([cells[k] for k in indices], number))
        return np.array(values).reshape(-1, len(indices))

    def _count_fields(self, line: str) -> int:
        """Return the number of fields of a line."""
        if self._separator is None:
            return len(line.split())
        return line.count(self._separator) + 1

    def _read_numbers(self, cells: Sequence[str], line: int) -> list[float]:
        """Return cells as numbers; an empty one is nan."""
        try:
            return [float(cell or "nan") for cell in cells]
        except ValueError:
            if self._has_decimal_commas(cells):
                return self._read_numbers([cell.replace(",", ".") for cell in cells], line)
            wrong = next(cell for cell in cells if cell and not is_number(cell))
            reason = f"{quoted(wrong)} is not a number"
            if _TIME_OF_DAY.search(wrong):
                reason += ": write times in seconds, such as those since the first row"
            self.refuse(reason, line=line)

    def _has_decimal_commas(self, cells: Sequence[str]) -> bool:
        """Return whether numbers are written like 0,5: between semicolons, without any point."""
        text = "".join(cells)
        return self._separator == ";" and "," in text and "." not in text


def read_header(path: Path) -> list[str]:
    """Return the names in the first line of a file, compressed or not.

    Raises:
        InputFileError: The file cannot be opened.
        OSError: It cannot be read.
    """
    with open_file(path) as file:
        data = file.read(HEADER_BYTES)
    if data.startswith(GZIP_MAGIC):
        data, _ = decompress_gzip(data, HEADER_BYTES)
    text = data.decode("utf-8", "replace").lstrip("\ufeff# ")
    first_line = text.split("\n", 1)[0].split("\r", 1)[0]
    return split_fields(first_line, find_separator(first_line))


def decompress_gzip(data: bytes, largest: int) -> tuple[bytes, bool]:
    """Decompress a gzip file as far as it is there.

    Args:
        data: The file.
        largest: Largest size after decompression, bytes.

    Returns:
        The content, and whether the file is not damaged.
    """
    content = bytearray()
    with gzip.open(io.BytesIO(data)) as file:
        try:
            while len(content) < largest:
                piece = file.read1(min(PIECE_BYTES, largest - len(content)))
                if not piece:
                    break
                content += piece
        except (OSError, EOFError, zlib.error):
            return bytes(content), False
    return bytes(content), True


def find_separator(line: str) -> str | None:
    """Return what separates the fields of a line; None: blanks."""
    return next((separator for separator in ";,\t" if separator in line), None)


def split_fields(line: str, separator: str | None) -> list[str]:
    """Return the fields of a line, without blanks and quotation marks around them."""
    return [cell.strip().strip("\"'") for cell in line.strip("\n").split(separator)]


def find_vectors(names: Sequence[str], vector_names: Collection[str]) -> Mapping[str, list[int]]:
    """Return the columns of each vector, in order.

    Args:
        names: Names of all columns.
        vector_names: Names of the vectors that are looked for.

    Returns:
        Indices of the columns by name, of vectors whose elements are numbered from 0, or from 1.
    """
    names_by_lower_case = {name.lower(): name for name in vector_names}
    # The index of each element's column, by the vector's name.
    elements: dict[str, dict[int, int]] = {}
    for index, name in enumerate(names):
        parts = _ELEMENT.fullmatch(name)
        if parts and parts[1].lower() in names_by_lower_case:
            vector = names_by_lower_case[parts[1].lower()]
            elements.setdefault(vector, {}).setdefault(int(parts[2]), index)

    vectors = {}
    for vector, columns in elements.items():
        numbers = sorted(columns)
        from_zero = list(range(len(columns)))
        from_one = list(range(1, len(columns) + 1))
        if numbers in (from_zero, from_one):
            vectors[vector] = [columns[number] for number in numbers]
    return vectors
