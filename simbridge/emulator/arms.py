"""The command `simbridge emulate`, for one arm or several: each is a process of its own, on an address of its own."""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from simbridge.errors import InvalidParameter
from simbridge.lifeline import lifeline_environment

MAX_ARMS = 64
_INTERVAL = 0.1  # s, at which the processes are looked at
_END_TIMEOUT = 5.0  # s


def emulate(
    count: int, host: str, record: str | None, check: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """Run this many emulated controllers, on this and the next addresses, until SIGINT or SIGTERM, or until one ends.

    Args:
        record: File for their traffic; of several arms, each has the arm's address in its name.
        check, as_json, options: See `simbridge.emulator.emulate.emulate`.

    Returns:
        The exit status: that of the first to end by itself, else 0.

    Raises:
        InvalidParameter: So many are not possible, `host` is not an address from which others can be counted, or
            JSON is asked for without a check.
    """
    if as_json and not check:
        raise InvalidParameter("flag --json", "given", "used with --check FILE")
    if count == 1 or check:
        # A parent of several needs nothing of what an arm consists of.
        # A quarter of a second.
        from simbridge.emulator.emulate import emulate as one  # noqa: PLC0415

        return one(host=host, record=record, check=check, as_json=as_json, **options)
    if not 1 <= count <= MAX_ARMS:
        raise InvalidParameter("count", count, f"from 1 to {MAX_ARMS}")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    arms = {}
    try:
        for address in _addresses(host, count):
            command = [sys.executable, "-m", "simbridge", "emulate", "--host", address]
            if record is not None:
                path = Path(record)
                command += ["--record", str(path.with_name(f"{path.stem}-{address}{path.suffix}"))]
            for name, value in options.items():
                if value is not None and value is not False:
                    command += [
                        f"--{name.replace('_', '-')}",
                        *([] if value is True else [str(value)]),
                    ]
            arms[address] = subprocess.Popen(command, env={**os.environ, **lifeline_environment()})
        while not stop.wait(_INTERVAL):
            for address, process in arms.items():
                if (status := process.poll()) is not None:
                    text = f"The arm on {address} has ended with status {status}, so the others were stopped."
                    print(text, file=sys.stderr)
                    return 128 - status if status < 0 else status
        return 0
    finally:
        for process in arms.values():
            process.terminate()
        for process in arms.values():
            try:
                process.wait(_END_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _addresses(host: str, count: int) -> list[str]:
    try:
        first = ipaddress.ip_address(host)
        return [str(first + i) for i in range(count)]
    except ValueError:
        raise InvalidParameter(
            "host", host, f"an address with {count - 1} more after it, such as 127.0.0.1"
        ) from None
