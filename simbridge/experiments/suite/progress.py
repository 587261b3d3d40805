"""Shows the progress of the suite on standard error: in one line of a terminal, or line by line."""

from __future__ import annotations

import time
from collections.abc import Callable

from simbridge.console import Terminal

# Shortest time between two lines if standard error is not a terminal, s.
LINE_INTERVAL_S = 10.0
# Shortest time between two updates of the line in a terminal, s.
REFRESH_S = 0.5


class SuiteProgress:
    """The progress of the suite.

    It has no thread, which would take time from the solvers while they are timed. Instead `tick` is
    called between their calls.

    Args:
        total: Number of motions and sets of poses.
        console: Console on standard error.
        clock: Function that returns the time, s (monotonic).
    """

    def __init__(
        self, total: int, console: Terminal, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = total
        self._console = console
        self._clock = clock
        # Time between two updates, s.
        self._interval = REFRESH_S if console.is_terminal else LINE_INTERVAL_S

        # When the suite began, s.
        self._begin = clock()
        # When the next line is due, s.
        self._due = self._begin + self._interval
        # Number of motions and sets that are complete.
        self._done = 0
        # The name of the motion or set that is under way.
        self._current = ""
        # Whether a line stands in the terminal.
        self._is_shown = False

    def keep(self, count: int) -> None:
        """Count the motions and sets that an earlier call of the command has completed."""
        self._done = count

    def begin(self, name: str) -> None:
        """Name the motion or set that begins."""
        self._current = name

    def end(self) -> None:
        """Count the motion or set that was completed."""
        self._done += 1
        self.clear()

    def tick(self) -> None:
        """Show a line if it is due."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + self._interval

        text = f"{self._done}/{self._total}  {self._current}  {now - self._begin:.0f} s"

        if self._console.is_terminal:
            self.clear()
            self._console.print(text[: self._console.width - 1], end="", markup=False)
            self._is_shown = True
        else:
            self._console.print(text, soft_wrap=True, markup=False)

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._is_shown:
            self._console.file.write("\r\x1b[2K")
            self._is_shown = False
