"""The command `simbridge teleop`: opens the device and the session, and shows the state of both."""

from __future__ import annotations

import contextlib
import signal
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from simbridge.cli import terminal
from simbridge.cli.flags import TeleopFlags
from simbridge.cli.option_flags import options_from_flags
from simbridge.cli.status_line import StatusLine, ToolMotionWatch, status_line
from simbridge.cli.view_command import has_desktop
from simbridge.errors import Interrupted, SimbridgeError
from simbridge.ik.callable_solver import load_function
from simbridge.ik.settings import check_solver
from simbridge.planning.options import Options
from simbridge.running.signals import signal_number
from simbridge.sessions.options import LIVE, LiveOptions
from simbridge.teleop import open_device
from simbridge.teleop.device import Device, DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.options import TeleopOptions

if TYPE_CHECKING:
    from simbridge.sessions.session import LiveSession, LiveStatus


def teleop(flags: TeleopFlags) -> int:
    """Drive an arm by a device until its operator ends it.

    Returns:
        The exit status, 0.
    """
    values = vars(flags)
    if flags.solver is not None:
        check_solver(flags.solver)
    options = TeleopOptions(**options_from_flags(values, TeleopOptions))
    on_button = None
    if options.on_button is not None:
        arguments = "a button's name and whether it is pressed"
        on_button = load_function(options.on_button, "button function", arguments)
    session_options = _session_options(values)

    operator_ended = False
    try:
        with contextlib.ExitStack() as resources:
            device = resources.enter_context(_open_device(flags.device, options))
            line = resources.enter_context(status_line())
            session = _make_session(flags, session_options, device=device, line=line)
            session.before_report = partial(_release, resources)
            line.print(*device.guide)

            with session:
                if session.servo_extrapolation:
                    line.print(session.servo_extrapolation)
                if flags.view:
                    _open_view(resources, session, session_options, line)
                watch = ToolMotionWatch()

                def show(status: LiveStatus) -> None:
                    line.show(status, watch.look(session.tool.translation))

                driver = Driver(
                    session, device, options, on_button=on_button, show=show, report=line.note
                )
                operator_ended = _drive(driver)
                line.end()
    except KeyboardInterrupt as error:
        # Ctrl-C once more, while the session ended, which it has done completely.
        number = error.number if isinstance(error, Interrupted) else signal_number(error)
        if not operator_ended or number != signal.SIGINT:
            raise

    print(f"Run:    {session.directory}")
    print(f"Report: {session.directory / 'report.html'}")
    return 0


def _session_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session's options that flags set, checked before a device is looked for."""
    live_options = options_from_flags(values, LiveOptions)
    LiveOptions(**live_options)
    run_options = options_from_flags({name: values[name] for name in LIVE}, Options)
    Options(**run_options)
    return {**live_options, **run_options}


@contextlib.contextmanager
def _open_device(name: str, options: TeleopOptions) -> Iterator[Device]:
    """Open a device until the block ends; print the rule that would give access to it."""
    try:
        with open_device(name, options) as device:
            yield device
    except DeviceError as error:
        if error.rule:
            # As it is, for a file.
            print(error.rule, file=sys.stderr)
        raise


def _make_session(
    flags: TeleopFlags, options: Mapping[str, Any], *, device: Device, line: StatusLine
) -> LiveSession:
    """Return a session, not yet entered.

    Args:
        flags: Its arm, solver, backend and directory.
        options: Fields of `LiveOptions`, and of `Options`, by name.
        device: Suspended while the operator is asked.
        line: Hidden while the operator is asked.
    """

    def ask(facts: Sequence[tuple[str, str]], question: str) -> bool:
        with line.hidden(), device.suspend():
            return terminal.ask(facts, question)

    # Solvers and backends: not for a device that is missing.
    from simbridge.sessions.setup import live  # noqa: PLC0415

    return live(
        flags.backend,
        robot=flags.robot,
        solver=flags.solver,
        out=flags.out,
        ask=ask if sys.stdin.isatty() else None,
        **options,
    )


def _open_view(
    resources: contextlib.ExitStack,
    session: LiveSession,
    options: Mapping[str, Any],
    line: StatusLine,
) -> None:
    """Show the arm of a session in the browser until the resources are closed.

    Args:
        resources: What is closed at the end.
        session: The session, which has begun.
        options: The options of the session, which say what is around the arm.
        line: Prints the page's address.
    """
    # Viser: not without a view.
    from simbridge.browser.session_view import SessionView  # noqa: PLC0415

    run_options = Options(**{name: options[name] for name in LIVE if name in options})
    view = resources.enter_context(SessionView(session, run_options.collision_scene))
    line.print(f"View: {view.url}")
    if has_desktop():
        webbrowser.open(view.url)


def _release(resources: contextlib.ExitStack) -> None:
    """Give the device back, and its port or terminal, before the report is made."""
    resources.close()
    print("Evaluating the session and writing its report.", file=sys.stderr, flush=True)


def _drive(driver: Driver) -> bool:
    """Drive until the device asks to quit, or Ctrl-C; return whether it was Ctrl-C."""
    try:
        driver.run()
    except KeyboardInterrupt as error:
        # Another signal is not how it is meant to end, nor one that ended the session.
        if isinstance(error, SimbridgeError) or signal_number(error) != signal.SIGINT:
            raise
        return True
    return False
