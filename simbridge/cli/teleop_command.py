"""`simbridge teleop`: opens the device, then the session, and shows the state of both in one line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from simbridge.cli import prompts
from simbridge.cli.commands import given_options
from simbridge.cli.error_reporting import print_note
from simbridge.errors import SimbridgeError
from simbridge.ik.callable_solver import function_named
from simbridge.planning.live.options import LIVE, LiveOptions
from simbridge.planning.options import Options
from simbridge.running.signals import SignalReceived
from simbridge.teleop import open_device
from simbridge.teleop.device import MOVABLE, Device, DeviceError, Status
from simbridge.teleop.drive import Driver
from simbridge.teleop.options import TeleopOptions

_SLOWED = 0.995
"""Below this speed factor a slow-down is shown."""


def teleop(
    device: str, *, robot: str | None, solver: str | None, backend: str, out: str | None, **flags: object
) -> int:
    """Drive an arm by a device until its operator ends it; returns the exit status, 0."""
    options = TeleopOptions(**given_options(flags, TeleopOptions))
    on_button = None
    if options.on_button is not None:
        on_button = function_named(options.on_button, "button function", "a button's name and whether it is pressed")
    session_choices = given_options(flags, LiveOptions)
    choices = given_options({name: flags[name] for name in LIVE})
    # Checked before a device is looked for.
    LiveOptions(**session_choices), Options(**choices)

    with _opened(device, options) as opened, _status_line() as line:

        def ask(shown: Sequence[tuple[str, str]], question: str) -> bool:
            with line.hidden(), opened.suspended():
                return prompts.ask(shown, question)

        from simbridge.running.live_setup import live  # solvers and backends: not for a device that is missing

        operator = ask if sys.stdin.isatty() else None
        made = live(backend, robot=robot, solver=solver, out=out, ask=operator, **session_choices, **choices)
        line.print(*opened.guide)
        with made as session:
            driver = Driver(session, opened, options, on_button=on_button, show=line.show, report=line.note)
            try:
                driver.run()
            except KeyboardInterrupt as error:
                # Ctrl-C is how it is meant to end; another signal is not, nor one that ended the session.
                if isinstance(error, SimbridgeError) or (
                    isinstance(error, SignalReceived) and error.cause != "interrupted"
                ):
                    raise
            line.end()
    print(f"Run:    {session.directory}\nReport: {session.directory / 'report.html'}")
    return 0


@contextlib.contextmanager
def _opened(name: str, options: TeleopOptions) -> Iterator[Device]:
    try:
        with open_device(name, options) as opened:
            yield opened
    except DeviceError as error:
        if error.rule:
            # As it is, for a file.
            print(error.rule, file=sys.stderr)
        raise


class StatusLine:
    """The session's state in the last line of the terminal, on standard error; without a terminal, only notes."""

    def __init__(self, console: Console, live: Live | None) -> None:
        self._console, self._live, self._shown = console, live, ""

    def print(self, *lines: str) -> None:
        """Print lines above it."""
        for text in lines:
            self._console.print(escape(text))

    def note(self, sentence: str) -> None:
        """Print a sentence above it, as other notes are."""
        with self.hidden():
            print_note(sentence)

    def show(self, status: Status) -> None:
        """Show a state, if it is another than the one shown."""
        text = status_text(status)
        if self._live is not None and text.markup != self._shown:
            self._shown = text.markup
            self._live.update(text, refresh=True)

    def end(self) -> None:
        """Show that the session ends, which takes a second or two."""
        if self._live is not None:
            self._live.update(Text("ending: the arm brakes, then the report is written", style="bold"), refresh=True)

    @contextlib.contextmanager
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


def status_text(status: Status) -> Text:
    """State, speed factor and causes; a slow-down stands out."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(status.state, style="bold green" if status.state in MOVABLE else "bold")
    if status.state not in MOVABLE:
        text.append("  not engaged")
    elif status.speed_factor < _SLOWED:
        text.append(f"  speed {100.0 * status.speed_factor:.0f} %", style="bold yellow")
    if status.causes:
        text.append("  " + ", ".join(status.causes), style="yellow")
    return text


@contextlib.contextmanager
def _status_line() -> Iterator[StatusLine]:
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield StatusLine(console, None)
        return
    with Live(Text(""), console=console, auto_refresh=False, transient=True) as live:
        yield StatusLine(console, live)
