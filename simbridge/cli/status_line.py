"""The line that shows the state of a teleoperated session, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from simbridge.cli.error_reporting import print_note
from simbridge.console import Terminal
from simbridge.quoting import visible
from simbridge.robot.pose import Array
from simbridge.teleop.device import MOVABLE

if TYPE_CHECKING:
    from simbridge.sessions.session import LiveStatus

# Below this speed factor a slow-down is shown.
SLOW_FACTOR = 0.995
# How often the line is drawn again while only the tool moves, s.
REDRAW_INTERVAL_S = 0.1
# How often a line is printed where there is no terminal, s: while the arm is engaged.
PRINT_INTERVAL_S = 5.0


class ToolMotion(NamedTuple):
    """The position of the tool and its speed.

    Attributes:
        position: Position of the TCP in base_link (3,), m.
        speed: Speed of the TCP, m/s.
    """

    position: Array
    speed: float


class ToolMotionWatch:
    """Measures how fast the tool moves, from its positions.

    Args:
        clock: Monotonic, s.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The position (3,), m, from which the speed is measured, and when it was seen, s.
        self._begin: Array | None = None
        self._begin_time = 0.0
        # The speed that was measured last, m/s.
        self._speed = 0.0

    def look(self, position: Array) -> ToolMotion:
        """Return the motion of the tool, which is at a position (3,), m, now."""
        now = self._clock()
        if self._begin is None:
            self._begin = position
            self._begin_time = now
        elapsed = now - self._begin_time
        if elapsed >= REDRAW_INTERVAL_S:
            self._speed = float(np.linalg.norm(position - self._begin)) / elapsed
            self._begin = position
            self._begin_time = now
        return ToolMotion(position, self._speed)


class StatusLine:
    """The session's state in the last line of the terminal; without one, a line now and then.

    Args:
        console: A console on standard error.
        live: What draws the line; None without a terminal.
        clock: Monotonic, s.
    """

    def __init__(
        self, console: Terminal, live: Live | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._live = live
        self._clock = clock
        # The state and the kinds of causes that were shown last.
        self._shown: tuple[str, ...] = ()
        # When the line is drawn or printed again, s.
        self._due = 0.0
        # Whether the arm was engaged when its state was shown last.
        self._was_movable = False

    def print(self, *lines: str) -> None:
        """Print lines above it."""
        for text in lines:
            self._console.print(escape(text))

    def note(self, sentence: str) -> None:
        """Print a sentence above it, as other notes are."""
        with self.hidden():
            print_note(sentence)

    def show(self, status: LiveStatus, tool: ToolMotion | None = None) -> None:
        """Show a state, and where the tool is.

        What changes by itself, such as a position, is drawn at intervals; a change of the state at
        once.
        """
        now = self._clock()
        if self._live is None:
            self._print_now_and_then(now, status, tool)
            return

        shown = (status.state, *(str(cause).partition(" ")[0] for cause in status.causes))
        if shown == self._shown and now < self._due:
            return
        self._shown = shown
        self._due = now + REDRAW_INTERVAL_S
        self._live.update(status_text(status, tool, self._console.width), refresh=True)

    def _print_now_and_then(self, now: float, status: LiveStatus, tool: ToolMotion | None) -> None:
        """Print a line at intervals while the arm is engaged."""
        is_movable = status.state in MOVABLE
        if is_movable and not self._was_movable:
            self._due = now + PRINT_INTERVAL_S
        self._was_movable = is_movable
        if is_movable and now >= self._due:
            self._due = now + PRINT_INTERVAL_S
            self._console.print(escape(status_text(status, tool).plain), soft_wrap=True)

    def end(self) -> None:
        """Show that the session ends, which takes a second or two."""
        if self._live is not None:
            ending = "ending: the arm brakes, then the report is written"
            self._live.update(Text(ending, style="bold"), refresh=True)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while something else is printed, or the operator is asked."""
        if self._live is None:
            yield
            return

        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)


def status_text(
    status: LiveStatus, tool: ToolMotion | None = None, columns: int | None = None
) -> Text:
    """Return state, tool, speed factor and causes as a line, in which a slow-down stands out.

    Args:
        status: The state of the session.
        tool: The motion of the tool; None to leave it out.
        columns: Width of the terminal. Where the line is longer, the tool's position gives way to
            the causes. None for any width.
    """
    head = _head(status)
    tail = _tail(status)
    speed = Text("") if tool is None else Text(f"  {1e3 * tool.speed:.0f} mm/s")
    position = Text("")
    if tool is not None:
        x, y, z = (1e3 * tool.position).tolist()
        position.append(f"  x {x:.0f} y {y:.0f} z {z:.0f} mm")

    length = len(head) + len(position) + len(speed) + len(tail)
    if columns is not None and length > columns and status.causes:
        position = Text("")
    text = Text(no_wrap=True, overflow="ellipsis")
    for part in (head, position, speed, tail):
        text.append_text(part)
    return text


def _head(status: LiveStatus) -> Text:
    """Return the state, and whether it must be engaged first."""
    can_move = status.state in MOVABLE
    text = Text()
    text.append(status.state, style="bold green" if can_move else "bold")
    if not can_move:
        text.append("  not engaged")
    return text


def _tail(status: LiveStatus) -> Text:
    """Return the speed factor where it is low, and the causes."""
    text = Text()
    if status.state in MOVABLE and status.speed_factor < SLOW_FACTOR:
        text.append(f"  speed {100.0 * status.speed_factor:.0f} %", style="bold yellow")
    if status.causes:
        causes = ", ".join(map(str, status.causes))
        text.append(f"  {visible(causes)}", style="yellow")
    return text


@contextmanager
def status_line() -> Iterator[StatusLine]:
    """Show a status line until the block ends."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield StatusLine(console, None)
        return

    with Live(Text(""), console=console, auto_refresh=False, transient=True) as live:
        yield StatusLine(console, live)
