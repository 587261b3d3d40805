"""Encodes and decodes results.csv: a line for each row, with cells that are safe in a spreadsheet.

The file may have been edited since it was written. Quotation marks, line ends, a byte order mark
and blank lines, which programs for tables change, make no difference. Any other fault is refused
with the number of its line.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from simbridge.errors import InputFileError
from simbridge.files.reading import open_file

# Largest length of a line, bytes; a row that simbridge writes has some thousands.
MAX_LINE = 1 << 20
# Beginnings of texts that a spreadsheet takes for formulas.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Mark in front of a text that is not a formula, or that begins with an apostrophe itself.
APOSTROPHE = "'"
PROTECTED_STARTS = (APOSTROPHE, *FORMULA_STARTS)


def protect(cell: str) -> str:
    """Return a cell as it is written: with an apostrophe if a spreadsheet would calculate it."""
    if not cell.startswith(PROTECTED_STARTS) or is_number(cell):
        return cell
    return APOSTROPHE + cell


def is_number(cell: str) -> bool:
    """Return whether a cell is a number, infinity and NaN included."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def as_number(cell: str) -> float:
    """Return the number in a cell; NaN if the cell does not hold a number."""
    return float(cell) if is_number(cell) else math.nan


def encode_row(cells: Iterable[object]) -> bytes:
    """Return a row as a line of the file, which `read_rows` reads whatever its cells hold.

    Line breaks within cells become blanks. Null characters, and bytes of file names that are not
    text, become escapes.
    """
    texts = [protect(str(cell)) for cell in cells]
    if not "".join(texts).isprintable():
        # Python 3.10 refuses to write a null character.
        texts = [" ".join(text.replace("\0", "\\x00").splitlines()) for text in texts]

    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(texts)
    return buffer.getvalue().encode(errors="backslashreplace")


def decode_rows(lines: Iterable[bytes]) -> Iterator[list[str]]:
    """Yield the cells of lines that `encode_row` has written."""
    for cells in csv.reader(line.decode() for line in lines):
        yield unprotect(cells)


def unprotect(cells: Iterable[str]) -> list[str]:
    """Return cells as they were before `protect`."""
    return [cell.removeprefix(APOSTROPHE) for cell in cells]


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a file, the header first, each with the number of its line.

    Rows without content are left out, and so is a last row without a line end, which a power cut
    may have left unfinished.

    Raises:
        InputFileError: The file cannot be read, is not text in UTF-8, or is not a table; or a row
            has more or fewer cells than the header.
    """
    with open_file(path) as file:
        lines = _TextLines(path, file)
        header_length: int | None = None
        for first_line, cells in _split_rows(path, lines):
            is_blank = not any(cell.strip() for cell in cells)
            if is_blank:
                continue
            if header_length is None:
                header_length = len(cells)
            elif lines.is_cut:
                # The last cell may lack digits, and would still be a number.
                return

            if len(cells) != header_length:
                reason = (
                    f"row {cells[0]} has {len(cells)} cells, but the header has {header_length}: "
                    "the file was edited"
                )
                raise InputFileError(path, reason, line=first_line)
            yield first_line, unprotect(cells)


def _split_rows(path: Path, lines: _TextLines) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of cells, each with the number of its first line.

    Raises:
        InputFileError: A row cannot be split; a last row without a line end is ignored instead.
    """
    reader = csv.reader(lines, strict=True)
    while True:
        first_line = lines.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # A power cut may have left the last row unfinished.
            if lines.is_cut and first_line == lines.number:
                return
            reason = f"this is not a CSV row: {error}"
            raise InputFileError(path, reason, line=first_line) from None
        yield first_line, cells


class _TextLines:
    """The lines of a file as text, for `csv.reader`.

    Args:
        path: Path of the file, for errors.
        file: The file, open for reading.

    Attributes:
        number: Number of the line that was read last, counted from 1; 0 before the first.
        is_cut: Whether the line that was read last has no line end.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.number = 0
        self.is_cut = False
        self._path = path
        self._file = file

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MAX_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.is_cut = not line.endswith(b"\n")
        if len(line) > MAX_LINE:
            raise self._refusal(f"a line is longer than {MAX_LINE} bytes")

        # A last line that a power cut left unfinished ends the file, whatever it holds.
        is_unfinished = self.is_cut and self.number > 1
        try:
            # The file may begin with a byte order mark.
            text = line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if is_unfinished:
                raise StopIteration from None
            raise self._refusal(f"it is not text in UTF-8: {error}") from None

        if "\0" in text:
            if is_unfinished:
                raise StopIteration
            raise self._refusal("this is a binary file (or UTF-16)")
        return text

    def _refusal(self, reason: str) -> InputFileError:
        """Return the error that refuses the line that was read last."""
        return InputFileError(self._path, reason, line=self.number)
