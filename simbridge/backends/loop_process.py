"""A loop in a process of its own: both ends of the pipes to it, and what it does to keep its deadlines.

Requests and events are JSON lines; an empty line is the parent's heartbeat.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import gc
import json
import mmap
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from simbridge import errors
from simbridge.lifeline import lifeline_environment
from simbridge.quoting import as_text
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_priority, ask_for_short_slices, threads
from simbridge.ur.errors import ParentLost, ServoProcessLost

# The parent sends something at least this often, s, or is taken to be halted after the timeout, s.
HEARTBEAT, HEARTBEAT_TIMEOUT = 0.1, 1.0
# The servo process gives up after 100 ms without states; if it says nothing at all for this long, it is killed.
SILENCE = 0.8  # s
# For the arm to decelerate and the script to end; after that the process is killed.
STOP_TIMEOUT = 5.0  # s
# The directory that contains the package.
_PACKAGE_ROOT = Path(__file__).parents[2]
# A field of an error that is larger than this, in bytes, is sent to the parent as text.
MAX_FIELD_BYTES = 65_536
# Open files: the standard streams. Not zero, because poll() watches no more descriptors than the limit.
_NO_MORE_FILES = 3


class LoopProcess:
    """A running process with a loop, seen from its parent.

    Args:
        module: What it runs.
        name: Where the arm is, for messages.
        arguments: Of the module.

    Attributes:
        failures: What it could not do when it ended, as clauses.
        counts: What it had missed by then, as `LoopTiming.add_counts` takes it.
    """

    def __init__(self, module: str, name: str, *arguments: str) -> None:
        self._name = name
        self._buffer = b""
        self._shared: list[int] = []
        self.failures: list[str] = []
        self.counts: dict[str, Any] = {}
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # `-m` searches the working directory first: this one holds the package, and nothing that shadows it.
            cwd=_PACKAGE_ROOT,
            env={**os.environ, **lifeline_environment()},
            # Ctrl-C reaches only the parent.
            start_new_session=True,
            bufsize=0,
        )
        self._ended = threading.Event()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def keep_alive(self) -> None:
        """Let the process hear, as long as this program runs, that it does."""
        threading.Thread(target=self._beat, name="simbridge-heartbeat", daemon=True).start()

    def _beat(self) -> None:
        assert self._process.stdin is not None
        while not self._ended.wait(HEARTBEAT):
            try:
                self._process.stdin.write(b"\n")
            except (OSError, ValueError):  # it has ended, or the pipe was closed
                return

    def create_memory(self, name: str) -> Path:
        """An anonymous file in memory: the servo process never waits for a disk, and nothing is left when both
        processes have ended, even by SIGKILL."""
        self._shared.append(os.memfd_create(f"simbridge-{name}"))
        return Path(f"/proc/{os.getpid()}/fd/{self._shared[-1]}")

    def send(self, request: dict[str, Any]) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        # If the process has ended, `events` raises, with the reason.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")

    def events(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """The events since the last call; waits at most `timeout` s for one.

        Raises:
            ControllerError, GuardViolation: What ended the process.
        """
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            return []
        data = os.read(self._process.stdout.fileno(), 65536)
        if not data:
            raise self._exit_error()
        return self._received(data)

    def _received(self, data: bytes) -> list[dict[str, Any]]:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        events = [json.loads(line) for line in lines]
        for event in events:
            self._note(event)
        for event in events:
            if event["event"] == "error":
                raise reconstruct_error(event)
        return events

    def _note(self, event: dict[str, Any]) -> None:
        """Remember what an event says of the end."""
        if event["event"] == "failed":
            self.failures.append(f"the servo process could not {event['step']}: {event['reason']}")
        elif event["event"] == "stopped":
            self.counts = event

    def _exit_error(self) -> Exception:
        """The error for a process that ended without an error event."""
        status = self._wait(STOP_TIMEOUT)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        how = (
            f"was killed by {signal.Signals(-status).name}"
            if status < 0
            else f"ended with status {status}"
        )
        return ServoProcessLost(self._name, how, lines[-1][:300] if lines else "")

    def ask_to_stop(self) -> None:
        """Ask for the arm to be stopped and the control script ended; returns at once."""
        self.send({"do": "stop"})

    def stop(self) -> None:
        """Stop the arm and the control script and wait for the process to end; kill it if that takes too long."""
        assert self._process.stdin is not None
        if self._process.stdin.closed and self._process.poll() is not None:
            return
        self.ask_to_stop()
        self._ended.set()
        self._process.stdin.close()
        status = self._wait(STOP_TIMEOUT)
        if status < 0:
            self.failures.append(f"the servo process was ended by {signal.Signals(-status).name}")
        self._take_the_rest()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        while self._shared:
            os.close(self._shared.pop())

    def kill(self) -> None:
        """End a process that does nothing any more; `stop` cleans up after it."""
        self._process.kill()

    def _take_the_rest(self) -> None:
        """The events that the process sent before it ended."""
        assert self._process.stdout is not None
        # Not until the end of the pipe: somebody else may hold it open.
        while select.select([self._process.stdout], [], [], 0.0)[0]:
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                return
            # The error that ended the motion is known.
            with contextlib.suppress(Exception):
                self._received(data)

    def _wait(self, timeout: float) -> int:
        """Wait for the exit status; kill the process when the time is over."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.failures.append(f"the servo process did not end within {timeout:g} s")
            self._process.kill()
            return self._process.wait()


def map_numbers(path: Path | None, count: int) -> Array:
    """Numbers (count,) in a file, or, without one, in memory of this process alone."""
    if path is None:
        return np.frombuffer(mmap.mmap(-1, 8 * count), dtype=np.float64)
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 8 * count), dtype=np.float64)


class SilenceWatch:
    """Notices when nothing is heard from a loop any more."""

    def __init__(self) -> None:
        self._before = False
        self.hear()

    def hear(self) -> None:
        """Something was heard."""
        self._heard = time.monotonic()

    def excess(self) -> float:
        """How long nothing was heard, s, if that is too long; else 0. It is only the second time in a row: after the
        first, what came while this program was halted is read."""
        silent = time.monotonic() - self._heard
        before, self._before = self._before, silent > SILENCE
        return silent if before and self._before else 0.0


class Parent:
    """The loop's end of the pipes.

    Attributes:
        gone: Whether the parent has closed a pipe or ended.
    """

    def __init__(self) -> None:
        self._events = os.fdopen(os.dup(1), "w")
        # What a library prints must not be mistaken for an event.
        os.dup2(2, 1)
        self._buffer = b""
        self._heard = time.monotonic()
        self.gone = False

    def configuration(self) -> bytes:
        """The first line that the parent sends; what follows it belongs to `requests`."""
        return sys.stdin.buffer.raw.readline()  # type: ignore[union-attr,no-any-return]

    def check_alive(self) -> None:
        """Raise if nothing has come from the parent for too long.

        Raises:
            ParentLost: It is halted.
        """
        silence = time.monotonic() - self._heard
        if silence > HEARTBEAT_TIMEOUT:
            raise ParentLost(silence)

    def requests(self) -> list[dict[str, Any]]:
        """The requests since the last call."""
        if self.gone or not select.select([0], [], [], 0.0)[0]:
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


def error_facts(error: BaseException) -> dict[str, Any]:
    """An error as an event, from which the parent reconstructs it (`reconstruct_error`)."""
    trace = "".join(traceback.format_exception(error))
    facts = {"event": "error", "error": type(error).__name__, "trace": trace[-MAX_FIELD_BYTES:]}
    if isinstance(error, errors.SimbridgeError):
        # A class of the user's may fail in any way, and the arm is braked only after this.
        with contextlib.suppress(Exception):
            facts["pickled"] = base64.b64encode(_pickled_error(error)).decode()
    return facts


def _pickled_error(error: errors.SimbridgeError) -> bytes:
    """The error with all its fields; those that cannot be sent to another process are sent as text."""
    sendable = copy.copy(error)
    sendable.args = tuple(value if _is_sendable(value) else as_text(value) for value in error.args)
    for name, value in vars(error).items():
        if not _is_sendable(value):
            setattr(sendable, name, as_text(value))
    return pickle.dumps(sendable)


def _is_sendable(value: object) -> bool:
    """Whether another process can unpickle a value, and it is not too large to be sent by the loop."""
    # Whatever a user gave may be among the fields, and what cannot be pickled fails in many ways.
    try:
        pickled = pickle.dumps(value)
        pickle.loads(pickled)
    except Exception:
        return False
    return len(pickled) <= MAX_FIELD_BYTES


def reconstruct_error(event: dict[str, Any]) -> Exception:
    """The error that an event describes (`error_facts`); an `InternalError` for one that was not raised on purpose."""
    try:
        error = pickle.loads(base64.b64decode(event["pickled"]))
    except Exception:
        return errors.InternalError("servo process", event["trace"])
    return cast(Exception, error)


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


def forbid_new_files() -> None:
    """From now on this process opens no file and no socket; open ones stay open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_NO_MORE_FILES, most))


@contextlib.contextmanager
def new_files_allowed() -> Iterator[None]:
    """Files can be opened again within the block."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
