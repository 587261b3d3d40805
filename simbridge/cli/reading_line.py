"""The line that shows how far the reading of a large file has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from simbridge.quoting import unquoted
from simbridge.reading_progress import reading_shown_by

# A shorter reading shows nothing, s.
QUIET_S = 1.0
# Columns at most for the file's name.
NAME_COLUMNS = 40
ERASE_LINE = "\r\x1b[K"


class ReadingLine:
    """A line on standard error, where that is a terminal; it is erased when the reading ends."""

    def __init__(self) -> None:
        # When the reading of the present file began, s (monotonic); None between two.
        self._begin: float | None = None
        self._is_shown = False

    def show(self, path: str, part: float) -> None:
        """Show how much of a file has been read.

        Args:
            path: Path of the file.
            part: Fraction that has been read, 0 to 1.
        """
        now = time.monotonic()
        if self._begin is None:
            self._begin = now
        if part >= 1.0:
            self.erase()
            self._begin = None
        elif now - self._begin >= QUIET_S and sys.stderr.isatty():
            sys.stderr.write(
                f"{ERASE_LINE}Reading {unquoted(path, NAME_COLUMNS)}: {100.0 * part:.0f} %"
            )
            sys.stderr.flush()
            self._is_shown = True

    def erase(self) -> None:
        """Erase the line, if there is one."""
        if self._is_shown:
            sys.stderr.write(ERASE_LINE)
            sys.stderr.flush()
            self._is_shown = False


@contextmanager
def reading_line() -> Iterator[None]:
    """Show how far a large file has been read, while one is read within the block."""
    line = ReadingLine()
    with reading_shown_by(line.show):
        try:
            yield
        finally:
            line.erase()
