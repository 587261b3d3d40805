"""The line that shows the state of a teleoperated session, on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.markup import escape
from rich.text import Text

from simbridge.cli.error_reporting import print_note
from simbridge.console import Terminal
from simbridge.quoting import visible
from simbridge.teleop.device import MOVABLE

if TYPE_CHECKING:
    from simbridge.sessions.session import LiveStatus

# Below this speed factor a slow-down is shown.
SLOW_FACTOR = 0.995


class StatusLine:
    """The session's state in the last line of the terminal.

    Args:
        console: A console on standard error.
        live: What draws the line; None without a terminal, where only notes are printed.
    """

    def __init__(self, console: Terminal, live: Live | None) -> None:
        self._console = console
        self._live = live
        # The line as it was drawn last, as markup.
        self._markup = ""

    def print(self, *lines: str) -> None:
        """Print lines above it."""
        for text in lines:
            self._console.print(escape(text))

    def note(self, sentence: str) -> None:
        """Print a sentence above it, as other notes are."""
        with self.hidden():
            print_note(sentence)

    def show(self, status: LiveStatus) -> None:
        """Show a state, if it differs from the last one."""
        text = status_text(status)
        if self._live is not None and text.markup != self._markup:
            self._markup = text.markup
            self._live.update(text, refresh=True)

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


def status_text(status: LiveStatus) -> Text:
    """Return state, speed factor and causes as a line, in which a slow-down stands out."""
    can_move = status.state in MOVABLE
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(status.state, style="bold green" if can_move else "bold")

    if not can_move:
        text.append("  not engaged")
    elif status.speed_factor < SLOW_FACTOR:
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
