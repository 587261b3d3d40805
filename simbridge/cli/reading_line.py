"""The line that shows how far the reading or judging of a large file has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from simbridge.quoting import unquoted
from simbridge.reading_progress import reading_shown_by

# A shorter reading shows nothing, s.
QUIET_S = 1.0
# Time between two lines where standard error is not a terminal, s.
LINE_INTERVAL_S = 10.0
# Columns at most for the file's name.
NAME_COLUMNS = 40
ERASE_LINE = "\r\x1b[K"


class ReadingLine:
    """A line on standard error, which is erased when the work ends.

    Where standard error is not a terminal, long work is shown by a new line now and then.
    """

    def __init__(self) -> None:
        # When the reading of the present file began, s (monotonic); None between two.
        self._begin: float | None = None
        # When a line was last written where there is no terminal, s (monotonic).
        self._last_line = time.monotonic()
        self._is_shown = False

    def show(self, path: str, part: float, activity: str = "Reading") -> None:
        """Show how much of the work on a file has been done.

        Args:
            path: Path of the file.
            part: Fraction that has been done, 0 to 1.
            activity: The work, as the first word of the line.
        """
        text = f"{activity} {unquoted(path, NAME_COLUMNS)}: {100.0 * part:.0f} %"
        now = time.monotonic()
        if self._begin is None:
            self._begin = now
        if part >= 1.0:
            self.erase()
            self._begin = None
        elif not sys.stderr.isatty():
            if now - self._last_line >= LINE_INTERVAL_S:
                print(text, file=sys.stderr, flush=True)
                self._last_line = now
        elif now - self._begin >= QUIET_S:
            sys.stderr.write(f"{ERASE_LINE}{text}")
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
    """Show how far the work on a large file has come, while it is done within the block."""
    line = ReadingLine()
    with reading_shown_by(line.show):
        try:
            yield
        finally:
            line.erase()
