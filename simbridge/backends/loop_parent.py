"""A loop's end of the pipes to the program that started it, and what a loop's process does to keep its deadlines."""

from __future__ import annotations

import gc
import json
import os
import select
import time
import traceback
from typing import Any, TextIO

from simbridge.backends.open_files import new_files_allowed
from simbridge.scheduling import ask_for_priority, ask_for_short_slices, threads

# The parent sends something at least this often, s, or is taken to be halted after the timeout, s.
HEARTBEAT, HEARTBEAT_TIMEOUT = 0.1, 1.0


class Parent:
    """The pipes to and from the parent.

    Attributes:
        gone: Whether the parent has closed a pipe or ended.
    """

    def __init__(self, events: TextIO) -> None:
        self._events = events
        self._buffer = b""
        self._heard = time.monotonic()
        self.gone = False

    @property
    def silence(self) -> float:
        """How long nothing came from it, s."""
        return time.monotonic() - self._heard

    def requests(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """The requests since the last call; an empty line is its heartbeat."""
        if self.gone or not select.select([0], [], [], timeout)[0]:
            return []
        data = os.read(0, 65536)
        self.gone, self._heard = not data, time.monotonic()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines if line]

    def report(self, **facts: Any) -> None:
        """Send an event."""
        try:
            self._events.write(json.dumps(facts) + "\n")
            self._events.flush()
        except OSError:
            self.gone = True


def minimize_latency(priority: int) -> list[str]:
    """Disable garbage collection and request scheduling priority; returns notes on what the system refused."""
    gc.collect()
    gc.freeze()
    gc.disable()
    # Threads are listed by reading a directory.
    with new_files_allowed():
        for thread in threads():
            ask_for_short_slices(thread)
        return ask_for_priority(priority) if priority else []


def error_facts(error: BaseException) -> dict[str, Any]:
    """An error as an event, from which the parent reconstructs it."""
    fields = {name: value for name, value in vars(error).items() if isinstance(value, (int, float, str, type(None)))}
    trace = "".join(traceback.format_exception(error))
    return {"event": "error", "error": type(error).__name__, "message": str(error), "fields": fields, "trace": trace}
