"""The line in the terminal while a plan runs: how far, how long, and how far the tool is off its target."""

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
from simbridge.cli.sparkline import BARS, PLAIN_BARS, sparkline
from simbridge.robot.kinematics import tool_path
from simbridge.text import millimetres

if TYPE_CHECKING:
    from simbridge.backends.backend import ArmState
    from simbridge.running.preparation import Prepared

# How many of the last errors are shown, and how far apart they are at least, s.
LATELY = 16
APART = 0.1


class LiveLine:
    """Made by `live_line`. It steps aside while a person is asked something."""

    def __init__(self, prepared: Prepared, console: Console, repeats: int = 1) -> None:
        self._robot, self._plan = prepared.robot, prepared.plan
        self._bars = BARS if console.encoding.startswith("utf") else PLAIN_BARS
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            TextColumn("{task.completed:.1f} of {task.total:.1f} s"),
            TextColumn("{task.fields[lately]} {task.fields[off]} mm off"),
            TimeElapsedColumn(),
        )
        self.bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
        total = max(self._plan.duration, self._plan.period)
        self._task = self.bar.add_task("Approaching", total=total, off="0", lately=" " * LATELY)
        self._errors: deque[float] = deque(maxlen=LATELY)
        self._shown = 0.0
        self._run, self._repeats, self._at = 1, repeats, 0.0

    @property
    def _tracking(self) -> str:
        return "Tracking" if self._repeats == 1 else f"Tracking {self._run}/{self._repeats}"

    def update(self, state: ArmState) -> None:
        """Show a state, unless the last one was shown just now; one earlier in the plan is the next run's."""
        now = time.monotonic()
        if state.plan_time < self._at:
            self._run += 1
            self._shown = 0.0
            self._errors.clear()
            self.bar.reset(self._task, description=self._tracking, off="0", lately=" " * LATELY)
        self._at = state.plan_time
        if now - self._shown < APART and state.plan_time < self._plan.duration:
            return
        self._shown = now
        due = self._plan.targets[min(round(state.plan_time / self._plan.period), self._plan.samples - 1)]
        attained = tool_path(self._robot, state.q[None])[0]
        self._errors.append(float(np.linalg.norm(attained[:3] - due[:3])))
        self.bar.update(
            self._task,
            completed=state.plan_time,
            off=millimetres(self._errors[-1]),
            lately=sparkline(list(self._errors), LATELY, self._bars),
            description=self._tracking,
            refresh=True,
        )

    def ask(self, shown: Sequence[tuple[str, str]], question: str) -> bool:
        """`prompts.ask`, with the line out of the way."""
        self.bar.stop()
        try:
            return prompts.ask(shown, question)
        finally:
            self.bar.start()
            self.bar.refresh()


@contextmanager
def live_line(prepared: Prepared, *, quiet: bool, repeats: int = 1) -> Iterator[LiveLine | None]:
    """The line, until the last of the repeats ends; None where nobody would see it, or is to."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    line = LiveLine(prepared, console, repeats)
    with line.bar:
        line.bar.refresh()
        yield line
