"""The command `simbridge teleop`: opens the device and the session, and shows the state of both."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence

from simbridge.cli import terminal
from simbridge.cli.option_flags import options_from_flags
from simbridge.cli.status_line import status_line
from simbridge.errors import Interrupted, SimbridgeError
from simbridge.ik.callable_solver import load_function
from simbridge.planning.options import Options
from simbridge.running.signals import number_of
from simbridge.sessions.options import LIVE, LiveOptions
from simbridge.teleop import open_device
from simbridge.teleop.device import Device, DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.options import TeleopOptions


def teleop(
    device: str,
    *,
    robot: str | None,
    solver: str | None,
    backend: str,
    out: str | None,
    **flags: object,
) -> int:
    """Drive an arm by a device until its operator ends it.

    Returns:
        The exit status, 0.
    """
    options = TeleopOptions(**options_from_flags(flags, TeleopOptions))
    on_button = None
    if options.on_button is not None:
        arguments = "a button's name and whether it is pressed"
        on_button = load_function(options.on_button, "button function", arguments)

    # Checked before a device is looked for.
    live_options = options_from_flags(flags, LiveOptions)
    LiveOptions(**live_options)
    run_options = options_from_flags({name: flags[name] for name in LIVE}, Options)
    Options(**run_options)

    operator_ended = False
    try:
        with contextlib.ExitStack() as stack:
            opened = stack.enter_context(_open_device(device, options))
            line = stack.enter_context(status_line())

            def ask(facts: Sequence[tuple[str, str]], question: str) -> bool:
                with line.hidden(), opened.suspend():
                    return terminal.ask(facts, question)

            def release() -> None:
                """Give the device back, and its port or terminal, before the report is made."""
                stack.close()
                print("Evaluating the session and writing its report.", file=sys.stderr, flush=True)

            # Solvers and backends: not for a device that is missing.
            from simbridge.sessions.setup import live  # noqa: PLC0415

            session = live(
                backend,
                robot=robot,
                solver=solver,
                out=out,
                ask=ask if sys.stdin.isatty() else None,
                **live_options,
                **run_options,
            )
            session.before_report = release
            line.print(*opened.guide)

            with session:
                driver = Driver(
                    session, opened, options, on_button=on_button, show=line.show, report=line.note
                )
                try:
                    driver.run()
                except KeyboardInterrupt as error:
                    # Ctrl-C is how it is meant to end; another signal is not, nor one that ended
                    # the session.
                    if isinstance(error, SimbridgeError) or number_of(error) != signal.SIGINT:
                        raise
                    operator_ended = True
                line.end()
    except KeyboardInterrupt as error:
        # Ctrl-C once more, while the session ended, which it has done completely.
        number = error.number if isinstance(error, Interrupted) else number_of(error)
        if not operator_ended or number != signal.SIGINT:
            raise

    print(f"Run:    {session.directory}")
    print(f"Report: {session.directory / 'report.html'}")
    return 0


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
