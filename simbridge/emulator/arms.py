"""The command `simbridge emulate`, for one arm or several.

Each arm is a process of its own, on an address of its own.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from simbridge.emulator.options import EmulatorOptions
from simbridge.errors import InvalidParameter
from simbridge.lifeline import lifeline_environment

MAX_ARMS = 64
# Interval at which the processes are checked for one that has ended, s.
STATUS_POLL_S = 0.1
# Time that a process may take to end before it is killed, s.
END_TIMEOUT_S = 5.0


def emulate(*, check: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Run emulated controllers until SIGINT or SIGTERM, or check URScript files without one.

    Several controllers are on successive addresses; all end when one of them does.

    Args:
        check: URScript files; with one or more of them no controller is run.
        as_json: Whether the result of the check is printed as JSON.
        flags: Fields of `EmulatorOptions`.

    Returns:
        The exit status: that of the first arm to end by itself, or 1 if a check has failed; else 0.

    Raises:
        InvalidParameter: The number of arms is out of range, the host is not an address that can be
            counted up from, or JSON is requested without a check.
    """
    options = EmulatorOptions(**flags)
    if as_json and not check:
        raise InvalidParameter("--json", "no --check", "used with --check FILE")

    # A process that only watches others does not import the arm, which takes a quarter of a second.
    if check:
        from simbridge.emulator.program import known_functions  # noqa: PLC0415
        from simbridge.emulator.script_check import check_files  # noqa: PLC0415

        return check_files(check, known_functions(), as_json)
    if options.count == 1:
        from simbridge.emulator.emulate import run_controller  # noqa: PLC0415

        return run_controller(options)

    if not 1 <= options.count <= MAX_ARMS:
        raise InvalidParameter("count", options.count, f"from 1 to {MAX_ARMS}")
    return _run_arms(options)


def _run_arms(options: EmulatorOptions) -> int:
    """Run a process for each arm until a signal, or until one ends; return the exit status."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    arms: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for address in _successive_addresses(options.host, options.count):
            arms[address] = _start_arm(options, address)
        return _watch_arms(arms, stop)
    finally:
        _end_arms(arms)


def _successive_addresses(host: str, count: int) -> list[str]:
    """Return `count` successive addresses, beginning with `host`."""
    try:
        first = ipaddress.ip_address(host)
        return [str(first + i) for i in range(count)]
    except ValueError:
        needed = f"an address with {count - 1} more after it, such as 127.0.0.1"
        raise InvalidParameter("host", host, needed) from None


def _start_arm(options: EmulatorOptions, address: str) -> subprocess.Popen[bytes]:
    """Start the process of one arm; its record of traffic has the address in its name."""
    record = options.record
    if record is not None:
        path = Path(record)
        record = str(path.with_name(f"{path.stem}-{address}{path.suffix}"))

    options = replace(options, count=1, host=address, record=record)
    command = [sys.executable, "-m", "simbridge", "emulate", *options.flags()]
    return subprocess.Popen(command, env={**os.environ, **lifeline_environment()})


def _watch_arms(arms: dict[str, subprocess.Popen[bytes]], stop: threading.Event) -> int:
    """Wait for the event, or until a process ends; return the exit status."""
    while not stop.wait(STATUS_POLL_S):
        for address, process in arms.items():
            status = process.poll()
            if status is None:
                continue

            text = f"The arm on {address} exited with status {status}, so the others were stopped."
            print(text, file=sys.stderr)
            # The exit code of a process that a signal ended is minus the number of the signal.
            return 128 - status if status < 0 else status
    return 0


def _end_arms(arms: dict[str, subprocess.Popen[bytes]]) -> None:
    """End all processes; kill those that do not end in time."""
    for process in arms.values():
        process.terminate()

    for process in arms.values():
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
