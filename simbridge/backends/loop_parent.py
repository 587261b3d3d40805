"""The parent of a process with a loop, as the loop sees it: requests come, events are reported.

Requests and events are JSON lines; an empty line is the parent's heartbeat.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

from simbridge.ur.errors import ParentLost

# Silence of the parent after which it counts as halted, s. It sends a heartbeat every
# `loop_process.HEARTBEAT_S`.
HEARTBEAT_TIMEOUT_S = 1.0
# How much is read from the pipe at once.
MAX_READ_BYTES = 65_536

STDIN = 0
STDOUT = 1
STDERR = 2


class Parent:
    """The loop's end of the pipes.

    Attributes:
        gone: Whether the parent has closed a pipe or ended.
    """

    def __init__(self) -> None:
        # The pipe for events: a copy of standard output, which becomes standard error. So nothing
        # that a library prints is mistaken for an event.
        self._events = os.fdopen(os.dup(STDOUT), "w")
        os.dup2(STDERR, STDOUT)

        # The start of a line that was read before its end had arrived.
        self._incomplete = b""
        # When something last came from the parent, s (host clock).
        self._last_heard = time.monotonic()
        self.gone = False

    def read_configuration(self) -> bytes:
        """Read the first line that the parent sends; what follows it belongs to `requests`."""
        # It is read without a buffer, so that nothing after the line is read.
        return sys.stdin.buffer.raw.readline()  # type: ignore[union-attr,no-any-return]

    def check_alive(self) -> None:
        """Raise if nothing has come from the parent for too long.

        Raises:
            ParentLost: The parent is halted.
        """
        silence = time.monotonic() - self._last_heard
        if silence > HEARTBEAT_TIMEOUT_S:
            raise ParentLost(silence)

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests since the last call."""
        if self.gone or not select.select([STDIN], [], [], 0.0)[0]:
            return []

        data = os.read(STDIN, MAX_READ_BYTES)
        self._last_heard = time.monotonic()
        # A pipe that is ready to be read but holds nothing was closed.
        self.gone = not data

        lines = (self._incomplete + data).split(b"\n")
        self._incomplete = lines.pop()
        # Heartbeats are empty lines.
        return [json.loads(line) for line in lines if line]

    def report(self, **facts: Any) -> None:
        """Send an event, unless the parent has gone.

        Args:
            facts: The fields of the event; `event` is its name.
        """
        try:
            self._events.write(json.dumps(facts) + "\n")
            self._events.flush()
        except OSError:
            self.gone = True
