"""The line that shows the progress of a plan: time on the trajectory, elapsed time, and the error.

It is on standard error.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from simbridge.cli import terminal
from simbridge.console import Terminal
from simbridge.robot.kinematics import tool_path
from simbridge.text import millimetres

if TYPE_CHECKING:
    from simbridge.backends.backend import ArmState
    from simbridge.running.run_setup import Prepared

# Characters for values from zero to the largest.
BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-:=+*#"
# Number of recent errors that are shown as bars; half of it in a narrow terminal.
HISTORY = 16
# Shortest time between two updates, s.
REFRESH_S = 0.1


def sparkline(values: Sequence[float], width: int, bars: str = BARS) -> str:
    """Draw the last values as bars, right-justified.

    Args:
        values: None of them negative.
        width: Number of characters.
        bars: The first character stands for zero, the last for the largest value.
    """
    recent = values[-width:]
    largest = max(recent, default=0.0)
    if largest == 0.0:
        return (bars[0] * len(recent)).rjust(width)

    steps = len(bars) - 1
    drawn = [bars[round(steps * value / largest)] for value in recent]
    return "".join(drawn).rjust(width)


class ProgressLine:
    """The progress of a plan, or of several repeats of it.

    It is hidden while the operator is asked something.

    Args:
        prepared: The plan and its robot.
        console: A console on standard error.
        repeats: How often the plan is run.
    """

    def __init__(self, prepared: Prepared, console: Terminal, repeats: int = 1) -> None:
        self._robot = prepared.robot
        self._plan = prepared.plan
        self._repeats = repeats

        is_narrow = console.width < terminal.NARROW_COLUMNS
        self._width = HISTORY // 2 if is_narrow else HISTORY
        self._bars = BARS if console.encoding.startswith("utf") else ASCII_BARS

        columns: list[ProgressColumn] = [TextColumn("{task.description}")]
        if not is_narrow:
            columns.append(BarColumn(bar_width=12))
        columns += [
            TextColumn("{task.completed:.1f} of {task.total:.1f} s"),
            TextColumn("{task.fields[history]} error {task.fields[error]} mm"),
            TimeElapsedColumn(),
        ]
        self.bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self.bar.add_task(
            "Starting",
            total=max(self._plan.duration, self._plan.period),
            error="0",
            history=" " * self._width,
        )

        # Distances of the tool from its target, m.
        self._errors: deque[float] = deque(maxlen=HISTORY)
        # When the line was drawn last, s (monotonic).
        self._last_update = 0.0
        # Number of the run, and its time on the plan, s.
        self._run = 1
        self._plan_time = 0.0

    @property
    def _description(self) -> str:
        """The text in front of the bar while the plan is run."""
        return "Tracking" if self._repeats == 1 else f"Tracking {self._run}/{self._repeats}"

    def update(self, state: ArmState) -> None:
        """Show a state, but not more often than every REFRESH_S seconds.

        If the plan time is earlier than that of the previous state, the next run has begun.
        """
        now = time.monotonic()
        if state.plan_time < self._plan_time:
            self._begin_next_run()
        self._plan_time = state.plan_time

        is_at_end = state.plan_time >= self._plan.duration
        if now - self._last_update < REFRESH_S and not is_at_end:
            return
        self._last_update = now

        self._errors.append(self._tracking_error(state))
        self.bar.update(
            self._task,
            completed=state.plan_time,
            error=millimetres(self._errors[-1]),
            history=sparkline(list(self._errors), self._width, self._bars),
            description=self._description,
            refresh=True,
        )

    def _begin_next_run(self) -> None:
        self._run += 1
        self._last_update = 0.0
        self._errors.clear()
        self.bar.reset(
            self._task, description=self._description, error="0", history=" " * self._width
        )

    def _tracking_error(self, state: ArmState) -> float:
        """Return the distance of the tool from the target of its plan time, m."""
        sample = min(round(state.plan_time / self._plan.period), self._plan.samples - 1)
        target = self._plan.targets[sample]
        attained = tool_path(self._robot, state.q[None])[0]
        return float(np.linalg.norm(attained[:3] - target[:3]))

    def ask(self, facts: Sequence[tuple[str, str]], question: str) -> bool:
        """Ask the operator, with the line hidden; see `terminal.ask`."""
        self.bar.stop()
        try:
            return terminal.ask(facts, question)
        finally:
            self.bar.update(self._task, description="Approaching")
            self.bar.start()
            self.bar.refresh()


@contextmanager
def progress_line(
    prepared: Prepared, *, quiet: bool, repeats: int = 1
) -> Iterator[ProgressLine | None]:
    """Show the line until the last of the repeats ends.

    Yields:
        The line; None if it is quiet, or standard error is no terminal.
    """
    console = Terminal(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return

    line = ProgressLine(prepared, console, repeats)
    with line.bar:
        line.bar.refresh()
        yield line
