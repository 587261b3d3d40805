"""The progress line in the terminal while a plan runs: time on the trajectory, elapsed time, and the tracking error."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from simbridge.cli import prompts
from simbridge.robot.kinematics import tool_path
from simbridge.text import millimetres

if TYPE_CHECKING:
    from simbridge.backends.backend import ArmState
    from simbridge.running.run_setup import Prepared

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-:=+*#"

HISTORY = 16
"""Number of recent errors that are shown as bars."""

_NARROW = 72
"""Columns of a terminal that are too few for the whole line."""

REFRESH = 0.1
"""Shortest time between two updates, s."""


def sparkline(values: Sequence[float], width: int, bars: str = BARS) -> str:
    """The last `width` values, none negative, as bars, right-justified: the lowest is zero, the highest the largest."""
    shown = values[-width:]
    largest = max(shown, default=0.0)
    steps = len(bars) - 1
    drawn = (bars[0 if largest == 0.0 else round(steps * value / largest)] for value in shown)
    return "".join(drawn).rjust(width)


class ProgressLine:
    """Made by `progress_line`. It is hidden while the operator is asked something."""

    def __init__(self, prepared: Prepared, console: Console, repeats: int = 1) -> None:
        self._robot, self._plan = prepared.robot, prepared.plan
        self._bars = BARS if console.encoding.startswith("utf") else ASCII_BARS
        narrow = console.width < _NARROW
        self._width = HISTORY // 2 if narrow else HISTORY
        columns = (
            TextColumn("{task.description}"),
            *([] if narrow else [BarColumn(bar_width=12)]),
            TextColumn("{task.completed:.1f} of {task.total:.1f} s"),
            TextColumn("{task.fields[history]} error {task.fields[error]} mm"),
            TimeElapsedColumn(),
        )
        self.bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
        total = max(self._plan.duration, self._plan.period)
        self._task = self.bar.add_task("Approaching", total=total, error="0", history=" " * self._width)
        self._errors: deque[float] = deque(maxlen=HISTORY)
        self._shown = 0.0
        self._run, self._repeats, self._at = 1, repeats, 0.0

    @property
    def _tracking(self) -> str:
        return "Tracking" if self._repeats == 1 else f"Tracking {self._run}/{self._repeats}"

    def update(self, state: ArmState) -> None:
        """Show a state, but not more often than every REFRESH seconds; an earlier plan time begins the next run."""
        now = time.monotonic()
        if state.plan_time < self._at:
            self._run += 1
            self._shown = 0.0
            self._errors.clear()
            self.bar.reset(self._task, description=self._tracking, error="0", history=" " * self._width)
        self._at = state.plan_time
        if now - self._shown < REFRESH and state.plan_time < self._plan.duration:
            return
        self._shown = now
        due = self._plan.targets[min(round(state.plan_time / self._plan.period), self._plan.samples - 1)]
        attained = tool_path(self._robot, state.q[None])[0]
        self._errors.append(float(np.linalg.norm(attained[:3] - due[:3])))
        self.bar.update(
            self._task,
            completed=state.plan_time,
            error=millimetres(self._errors[-1]),
            history=sparkline(list(self._errors), self._width, self._bars),
            description=self._tracking,
            refresh=True,
        )

    def ask(self, shown: Sequence[tuple[str, str]], question: str) -> bool:
        """`prompts.ask`, with the line hidden."""
        self.bar.stop()
        try:
            return prompts.ask(shown, question)
        finally:
            self.bar.start()
            self.bar.refresh()


@contextmanager
def progress_line(prepared: Prepared, *, quiet: bool, repeats: int = 1) -> Iterator[ProgressLine | None]:
    """The line, until the last of the repeats ends; None if it is quiet or standard error is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    line = ProgressLine(prepared, console, repeats)
    with line.bar:
        line.bar.refresh()
        yield line
