"""A process with a loop, as its parent sees it: it is started, asked, listened to, and ended.

Requests and events are JSON lines; an empty line is the parent's heartbeat. The loop's end of the
pipes is in loop_parent.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from simbridge.backends.error_events import reconstruct_error
from simbridge.lifeline import lifeline_environment
from simbridge.ur.errors import ServoProcessLost

# How often the parent sends something, so that the loop knows that it is not halted.
HEARTBEAT_S = 0.1
# The servo process gives up after 100 ms without states; if it says nothing at all for this long,
# it is killed.
MAX_SILENCE_S = 0.8
# How long a loop may take to import and compile what it needs, s.
START_TIMEOUT_S = 120.0
# How long the process may take to brake the arm, to end the script and to exit; after that it is
# killed.
STOP_TIMEOUT_S = 5.0
# How much is read from a pipe at once.
MAX_READ_BYTES = 65_536
# How much of the last line on standard error is quoted for a process that ended by itself.
MAX_QUOTED_CHARACTERS = 300

# The directory that contains the package.
PACKAGE_ROOT = Path(__file__).parents[2]


class LoopProcess:
    """A running process with a loop, seen from its parent.

    Args:
        module: The module that it runs.
        name: The controller's address or "the simulation", for messages.
        arguments: Arguments of the module.

    Attributes:
        failures: What the process could not do when it ended, as clauses.
        counts: What the process had missed when it ended, as `LoopTiming.add_counts` takes it.
    """

    def __init__(self, module: str, name: str, *arguments: str) -> None:
        self._name = name
        # The start of a line that was read before its end had arrived.
        self._incomplete = b""
        # Descriptors of the memory that both processes see.
        self._shared: list[int] = []
        self.failures: list[str] = []
        self.counts: dict[str, Any] = {}
        # What the process reported together with an error, or between the last call of `events` and
        # its end.
        self.last_events: list[dict[str, Any]] = []

        # The process's standard error: a file, which it never has to wait for.
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # `-m` searches the working directory first: this one holds the package, and nothing
            # that shadows it.
            cwd=PACKAGE_ROOT,
            env={**os.environ, **lifeline_environment()},
            # Ctrl-C reaches only the parent.
            start_new_session=True,
            bufsize=0,
        )
        # Set when the process was asked to stop: no further heartbeat is due.
        self._is_stopping = threading.Event()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def keep_alive(self) -> None:
        """Let the process know that this program is running, for as long as it is."""
        threading.Thread(target=self._beat, name="simbridge-heartbeat", daemon=True).start()

    def _beat(self) -> None:
        """Send a heartbeat every 0.1 s until the process ends (in a thread of its own)."""
        assert self._process.stdin is not None
        while not self._is_stopping.wait(HEARTBEAT_S):
            try:
                self._process.stdin.write(b"\n")
            except (OSError, ValueError):  # it has ended, or the pipe was closed
                return

    def create_memory(self, name: str) -> Path:
        """Return the path of a new anonymous file in memory, which both processes can open.

        The servo process never waits for a disk, and nothing is left when both processes have
        ended, even by SIGKILL.

        Args:
            name: Name of the content, as the system's list of open files shows it.
        """
        descriptor = os.memfd_create(f"simbridge-{name}")
        self._shared.append(descriptor)
        return Path(f"/proc/{os.getpid()}/fd/{descriptor}")

    def send(self, request: dict[str, Any]) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        # If the process has ended, `events` raises, with the reason.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")

    def events(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """Return the events since the last call.

        Args:
            timeout: How long to wait for one, s.

        Raises:
            ControllerError, GuardViolation: What ended the process.
        """
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            return []
        data = os.read(self._process.stdout.fileno(), MAX_READ_BYTES)
        if not data:
            raise self._exit_error()
        return self._take(data)

    def _take(self, data: bytes) -> list[dict[str, Any]]:
        """Return the events in what was read from the pipe; raise the error that one describes.

        Events that came with an error are kept in `last_events`.
        """
        lines = (self._incomplete + data).split(b"\n")
        self._incomplete = lines.pop()
        events = [json.loads(line) for line in lines]

        # All are noted, also those after an error.
        for event in events:
            self._note(event)
        errors = [event for event in events if event["event"] == "error"]
        if errors:
            self.last_events += [event for event in events if event not in errors]
            raise reconstruct_error(errors[0])
        return events

    def _note(self, event: dict[str, Any]) -> None:
        """Remember what an event says of the end."""
        if event["event"] == "failed":
            self.failures.append(f"the servo process could not {event['step']}: {event['reason']}")
        elif event["event"] == "stopped":
            self.counts = event

    def _exit_error(self) -> Exception:
        """Return the error for a process that ended without an error event."""
        status = self._wait(STOP_TIMEOUT_S)
        if status < 0:
            exit_text = f"was killed by {signal.Signals(-status).name}"
        else:
            exit_text = f"ended with status {status}"

        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last_line = lines[-1][:MAX_QUOTED_CHARACTERS] if lines else ""
        return ServoProcessLost(self._name, exit_text, last_line)

    def ask_to_stop(self) -> None:
        """Ask for the arm to be stopped and the control script ended; return at once."""
        self.send({"do": "stop"})

    def stop(self) -> None:
        """Stop the arm and the control script, and wait for the process to end.

        The process is killed if that takes too long.
        """
        assert self._process.stdin is not None
        # Do nothing if it was stopped before.
        if self._process.stdin.closed and self._process.poll() is not None:
            return

        # Ask it to stop, and wait for its end. A negative status names the signal that ended it.
        self.ask_to_stop()
        self._is_stopping.set()
        self._process.stdin.close()
        status = self._wait(STOP_TIMEOUT_S)
        if status < 0:
            self.failures.append(f"the servo process was ended by {signal.Signals(-status).name}")
        self._take_remaining_events()

        # Release the pipes and the memory.
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        while self._shared:
            os.close(self._shared.pop())

    def kill(self) -> None:
        """End a process that no longer does anything; `stop` cleans up after it."""
        self._process.kill()

    def _take_remaining_events(self) -> None:
        """Take the events that the process sent before it ended."""
        assert self._process.stdout is not None
        # Read only what is there: the pipe has no end while another process holds it open.
        while select.select([self._process.stdout], [], [], 0.0)[0]:
            data = os.read(self._process.stdout.fileno(), MAX_READ_BYTES)
            if not data:
                return
            # An error among them is the one that ended the motion, and is known.
            with contextlib.suppress(Exception):
                self.last_events += self._take(data)

    def _wait(self, timeout: float) -> int:
        """Return the exit status; kill the process when the time, s, is over."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.failures.append(f"the servo process did not end within {timeout:g} s")
            self._process.kill()
            return self._process.wait()


class SilenceWatch:
    """Notices when a loop has gone silent."""

    def __init__(self) -> None:
        # When something was last heard, s (host clock).
        self._last_heard = time.monotonic()
        # Whether it was silent for too long at the last check.
        self._was_silent = False

    def hear(self) -> None:
        """Note that something was heard."""
        self._last_heard = time.monotonic()

    def excess(self) -> float:
        """Return how long nothing was heard, s, if that is too long; else 0.

        It is too long only the second time in a row: after the first, what came while this program
        was halted is read.
        """
        silence = time.monotonic() - self._last_heard
        was_silent = self._was_silent
        self._was_silent = silence > MAX_SILENCE_S
        return silence if was_silent and self._was_silent else 0.0
