"""results.csv as text: a line for each row, its cells safe to open in a spreadsheet, and the reading of both.

The file may have been edited since it was written. What programs for tables change without changing the content is
read as it was: quotation marks, line ends, a byte order mark, blank lines. Everything else is refused with its line.
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

# Bytes; a row that simbridge writes has some thousands.
MAX_LINE = 1 << 20
# A spreadsheet takes a text that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# In front of a text that is no formula, and of one that begins with an apostrophe itself.
APOSTROPHE = "'"


def protect(cell: str) -> str:
    """A cell as it is written: a text that a spreadsheet would calculate gets an apostrophe in front."""
    if cell.startswith(APOSTROPHE):
        return APOSTROPHE + cell
    if cell.startswith(FORMULA_STARTS) and not is_number(cell):
        return APOSTROPHE + cell
    return cell


def unprotect(cell: str) -> str:
    """A cell as it was before `protect`."""
    return cell.removeprefix(APOSTROPHE)


def is_number(cell: str) -> bool:
    """Whether a cell is a number, infinity and NaN included."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def as_number(cell: str) -> float:
    """The number in a cell; NaN where there is none."""
    return float(cell) if is_number(cell) else math.nan


def encode_row(cells: Iterable[object]) -> bytes:
    """A row as a line of the file, which `read_rows` reads whatever its cells hold.

    Line breaks within cells become blanks. Null characters and halves of characters, such as bytes of a file name that
    are no text, become escapes.
    """
    protected = (protect(str(cell)) for cell in cells)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        [" ".join(cell.splitlines()) for cell in protected]
    )
    return text.getvalue().replace("\0", "\\x00").encode(errors="backslashreplace")


def decode_rows(lines: Iterable[bytes]) -> Iterator[list[str]]:
    """The cells of lines that `encode_row` has made."""
    for cells in csv.reader(line.decode() for line in lines):
        yield [unprotect(cell) for cell in cells]


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a file, the header first, each with the number of its line.

    Rows without content are left out, and so is a last one without a line end, which a power cut may have left
    unfinished.

    Raises:
        InputFileError: The file cannot be read, is not text in UTF-8, or is no table; or a row has more or fewer cells
            than the header.
    """
    with open_file(path) as file:
        lines = _TextLines(path, file)
        reader = csv.reader(lines, strict=True)
        width: int | None = None
        while True:
            first_line = lines.number + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if lines.is_cut and first_line == lines.number:
                    return
                raise InputFileError(
                    path, f"this is not a row of cells: {error}", line=first_line
                ) from None

            if not any(cell.strip() for cell in cells):
                continue
            if lines.is_cut and width is not None:
                # The last cell may lack digits, and would still be a number.
                return
            width = width or len(cells)
            if len(cells) != width:
                reason = f"the row {cells[0]} has {len(cells)} cells, and the header {width}: it was edited"
                raise InputFileError(path, reason, line=first_line)
            yield first_line, [unprotect(cell) for cell in cells]


class _TextLines:
    """The lines of a file as text, for `csv.reader`.

    Attributes:
        number: Of the line that was read last, counted from 1.
        is_cut: Whether it has no line end.
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
            raise InputFileError(
                self._path, f"a line is longer than {MAX_LINE} bytes", line=self.number
            )

        try:
            text = line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if self.is_cut and self.number > 1:
                raise StopIteration from None
            raise InputFileError(
                self._path, f"it is not text in UTF-8: {error}", line=self.number
            ) from None
        if "\0" in text:
            if self.is_cut and self.number > 1:
                raise StopIteration
            raise InputFileError(self._path, "this is a binary file (or UTF-16)", line=self.number)
        return text
