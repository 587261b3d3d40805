"""What the terminal shows while something runs: lines that are drawn again and again, and questions to the operator.

The progress line of a plan has time on the trajectory, elapsed time, and the tracking error; the status line of
teleoperation the state of the session. All of it is on standard error.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from simbridge.cli.error_reporting import print_note
from simbridge.console import Terminal
from simbridge.quoting import visible
from simbridge.robot.kinematics import tool_path
from simbridge.teleop.device import MOVABLE
from simbridge.text import NO_BREAK, millimetres

if TYPE_CHECKING:
    from simbridge.backends.backend import ArmState
    from simbridge.running.run_setup import Prepared
    from simbridge.sessions.session import LiveStatus

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-:=+*#"

HISTORY = 16
"""Number of recent errors that are shown as bars."""

_NARROW = 72
"""Columns of a terminal that are too few for the whole line."""

REFRESH = 0.1
"""Shortest time between two updates, s."""

SLOWED = 0.995
"""Below this speed factor a slow-down is shown."""


def say(console: Terminal, text: str, *, style: str = "") -> None:
    """Print sentences: broken between words where the width is known, in one line where a program reads them."""
    broken = console.is_terminal or "COLUMNS" in os.environ
    console.print(
        text.replace(NO_BREAK, " "), style=style or None, soft_wrap=not broken, markup=False
    )


def ask(shown: Sequence[tuple[str, str]], question: str) -> bool:
    """Show facts, as names and values, and ask for a yes; anything else is a no."""
    console = Terminal(stderr=True)
    table = Table.grid(padding=(0, 2))
    for name, value in shown:
        table.add_row(escape(name), escape(value))
    console.print(table)
    console.print(f"[bold]{escape(question)}[/bold] Type yes to confirm: ", end="")
    try:
        return input().strip().lower() == "yes"
    except EOFError:
        return False


def choose(what: str, names: Sequence[str]) -> str:
    """Show numbered names and let the operator choose one; asks again until the answer is one of the numbers.

    Raises:
        KeyboardInterrupt: The terminal was closed instead.
    """
    console = Terminal(stderr=True)
    for number, name in enumerate(names, start=1):
        console.print(f"{number}  {escape(name)}")
    while True:
        console.print(f"[bold]Which {what}?[/bold] 1 to {len(names)}: ", end="")
        try:
            answer = input().strip()
        except EOFError:
            raise KeyboardInterrupt from None
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]


def sparkline(values: Sequence[float], width: int, bars: str = BARS) -> str:
    """The last `width` values, none negative, as bars, right-justified: the lowest is zero, the highest the largest."""
    shown = values[-width:]
    largest = max(shown, default=0.0)
    steps = len(bars) - 1
    drawn = (bars[0 if largest == 0.0 else round(steps * value / largest)] for value in shown)
    return "".join(drawn).rjust(width)


class ProgressLine:
    """Made by `progress_line`. It is hidden while the operator is asked something."""

    def __init__(self, prepared: Prepared, console: Terminal, repeats: int = 1) -> None:
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
        self._task = self.bar.add_task(
            "Approaching", total=total, error="0", history=" " * self._width
        )
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
            self.bar.reset(
                self._task, description=self._tracking, error="0", history=" " * self._width
            )
        self._at = state.plan_time
        if now - self._shown < REFRESH and state.plan_time < self._plan.duration:
            return
        self._shown = now
        due = self._plan.targets[
            min(round(state.plan_time / self._plan.period), self._plan.samples - 1)
        ]
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
        """`ask`, with the line hidden."""
        self.bar.stop()
        try:
            return ask(shown, question)
        finally:
            self.bar.start()
            self.bar.refresh()


@contextmanager
def progress_line(
    prepared: Prepared, *, quiet: bool, repeats: int = 1
) -> Iterator[ProgressLine | None]:
    """The line, until the last of the repeats ends; None if it is quiet or standard error is no terminal."""
    console = Terminal(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    line = ProgressLine(prepared, console, repeats)
    with line.bar:
        line.bar.refresh()
        yield line


class StatusLine:
    """The session's state in the last line of the terminal, on standard error; without a terminal, only notes."""

    def __init__(self, console: Terminal, live: Live | None) -> None:
        self._console, self._live, self._shown = console, live, ""

    def print(self, *lines: str) -> None:
        """Print lines above it."""
        for text in lines:
            self._console.print(escape(text))

    def note(self, sentence: str) -> None:
        """Print a sentence above it, as other notes are."""
        with self.hidden():
            print_note(sentence)

    def show(self, status: LiveStatus) -> None:
        """Show a state, if it is another than the one shown."""
        text = status_text(status)
        if self._live is not None and text.markup != self._shown:
            self._shown = text.markup
            self._live.update(text, refresh=True)

    def end(self) -> None:
        """Show that the session ends, which takes a second or two."""
        if self._live is not None:
            self._live.update(
                Text("ending: the arm brakes, then the report is written", style="bold"),
                refresh=True,
            )

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """While something else is printed, or the operator is asked."""
        if self._live is None:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)


def status_text(status: LiveStatus) -> Text:
    """State, speed factor and causes; a slow-down stands out."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(status.state, style="bold green" if status.state in MOVABLE else "bold")
    if status.state not in MOVABLE:
        text.append("  not engaged")
    elif status.speed_factor < SLOWED:
        text.append(f"  speed {100.0 * status.speed_factor:.0f} %", style="bold yellow")
    if status.causes:
        causes = ", ".join(status.causes)
        text.append(f"  {visible(causes)}", style="yellow")
    return text


@contextmanager
def status_line() -> Iterator[StatusLine]:
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield StatusLine(console, None)
        return
    with Live(Text(""), console=console, auto_refresh=False, transient=True) as live:
        yield StatusLine(console, live)
