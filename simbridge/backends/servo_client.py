"""The parent's end of the servo process: start it, send requests, receive events, measure its timing, end it."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from simbridge import errors
from simbridge.backends.backend import ArmState
from simbridge.backends.control_script import Program
from simbridge.backends.servo_channel import HEARTBEAT, ServoConfig, StateRing
from simbridge.backends.session_state import State
from simbridge.robot.pose import Array
from simbridge.ur import errors as controller_errors
from simbridge.ur.controller import registers_taken, survey
from simbridge.ur.errors import (
    ConnectionLost,
    RegistersInUse,
    RemoteControlDisabled,
    ScriptNotStarted,
    ServoProcessLost,
)
from simbridge.ur.tables import REALTIME

# ur_rtde's constructor uploads its script and waits up to five seconds for it to run.
CONNECT_TIMEOUT = 15.0  # s
# For the arm to decelerate and the script to end; after that the process is killed.
STOP_TIMEOUT = 5.0  # s
# The directory that contains the package.
_PACKAGE_ROOT = Path(__file__).parents[2]


class ServoProcess:
    """A running servo process.

    Args:
        config: Its configuration.

    Attributes:
        reached: The states of the session that it has reported.
        program: Whose program the controller had when it ended.
        failures: What it could not do when it ended, as clauses.
    """

    def __init__(self, config: ServoConfig) -> None:
        self._config = config
        self._buffer = b""
        self._shared: list[int] = []
        self.reached = {State.CONNECTING}
        self.program: Program | None = None
        self.failures: list[str] = []
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simbridge.backends.servo_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # `-m` searches the working directory first: this one holds the package, and nothing that shadows it.
            cwd=_PACKAGE_ROOT,
            # Ctrl-C reaches only the parent.
            start_new_session=True,
            bufsize=0,
        )
        self._ended = threading.Event()

    def _keep_alive(self) -> None:
        """As long as this program runs, the process hears of it."""
        assert self._process.stdin is not None
        while not self._ended.wait(HEARTBEAT):
            try:
                self._process.stdin.write(b"\n")
            except (OSError, ValueError):  # it has ended, or the pipe was closed
                return

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def connect(self) -> dict[str, Any]:
        """Wait until it is connected to the controller.

        Returns:
            Its event: joints `q`, and `notes` about scheduling that the system refused.

        Raises:
            ControllerError: Why it could not connect.
        """
        self._send(msgspec.to_builtins(self._config))
        threading.Thread(target=self._keep_alive, name="simbridge-heartbeat", daemon=True).start()
        try:
            return self._ready()
        except (ConnectionLost, ScriptNotStarted):
            self._process.kill()
            # ur_rtde does not report which of its connections failed.
            found = survey(self._config.host)
            for silent in found.lost.values():
                raise silent from None
            # It ignores a script that is uploaded in local control, and says nothing.
            if found.dashboard is not None and found.dashboard.remote_control is False:
                raise RemoteControlDisabled(self._config.host) from None
            taken = registers_taken(self._config.host)
            if taken:
                raise RegistersInUse(self._config.host, taken) from None
            raise

    def _ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + CONNECT_TIMEOUT
        while (left := deadline - time.monotonic()) > 0.0:
            for event in self.events(left):
                if event["event"] == "ready":
                    return event
        raise ConnectionLost(self._config.host, REALTIME, f"the control script did not run in {CONNECT_TIMEOUT:g} s")

    def replay(self, setpoints: Array, *, feedforward: bool = False) -> StateRing:
        """Send setpoints (T, n), rad, one per period; with feedforward, what makes the arm follow them.

        Returns:
            The ring in which the state of each appears.
        """
        plan = self._memory("setpoints")
        plan.write_bytes(np.ascontiguousarray(setpoints, dtype=np.float64).tobytes())
        # A controller that scales the speed takes more periods than the plan has.
        return self._play(4 * len(setpoints) + 4096, do="replay", plan=str(plan), feedforward=feedforward)

    def live(self, first: Array) -> StateRing:
        """Send live setpoints, beginning with this one (n,), rad.

        Returns:
            The ring to which the next ones are posted, and in which states appear.
        """
        return self._play(4096, first, do="live")

    def _play(self, states: int, first: Array | None = None, **request: Any) -> StateRing:
        path = self._memory("states")
        ring = StateRing.create(path, len(self._config.limits.joint_names), states)
        if first is not None:
            ring.post(first)
        self._send({**request, "ring": str(path), "rows": ring.rows})
        return ring

    def _memory(self, name: str) -> Path:
        """An anonymous file in memory: the servo process never waits for a disk, and nothing is left when both
        processes have ended, even by SIGKILL."""
        self._shared.append(os.memfd_create(f"simbridge-{name}"))
        return Path(f"/proc/{os.getpid()}/fd/{self._shared[-1]}")

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # If the process has ended, `events` raises, with the reason.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")

    def events(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """The events since the last call; waits at most `timeout` s for one.

        Raises:
            ControllerError, GuardViolation, TargetsStopped: What ended the process.
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
            if event["event"] == "state":
                self.reached.add(State(event["state"]))
            elif event["event"] == "failed":
                self.failures.append(f"the servo process could not {event['step']}: {event['reason']}")
            elif event["event"] == "stopped":
                self.program = Program(event["program"])
        for event in events:
            if event["event"] == "error":
                raise reconstruct_error(event)
        return events

    def _exit_error(self) -> Exception:
        """The error for a process that ended without an error event."""
        status = self._wait(STOP_TIMEOUT)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return ServoProcessLost(self._config.host, how, lines[-1][:300] if lines else "")

    def ask_to_stop(self) -> None:
        """Have the arm stopped and the control script ended; returns at once."""
        self._send({"do": "stop"})

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
        self._close()

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

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        while self._shared:
            os.close(self._shared.pop())


def reconstruct_error(event: dict[str, Any]) -> Exception:
    """The error that an event of the servo process describes."""
    kind = getattr(controller_errors, event["error"], None) or getattr(errors, event["error"], None)
    if kind is None or not issubclass(kind, errors.SimbridgeError):
        return errors.InternalError("servo process", event["trace"])
    # The arguments of an error are its attributes.
    known = {"message": event["message"], **event["fields"]}
    error: Exception = kind(**{name: known[name] for name in inspect.signature(kind).parameters if name in known})
    error.args = (event["message"],)
    return error


class LoopTiming:
    """Timing of a servo loop, collected from the states of a stream: 24 bytes a sample.

    Args:
        period: Control period, s.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._sequence, self._sent, self._received = array("q"), array("d"), array("d")
        self._missed = {"missed_deadlines": 0, "missed_states": 0}

    def add(self, state: ArmState) -> None:
        """Add a state."""
        self._sequence.append(state.sequence)
        self._sent.append(state.host_sent)
        self._received.append(state.host_monotonic)

    def add_counts(self, event: dict[str, Any]) -> None:
        """Take the counts of missed deadlines and states from an event of the servo process."""
        self._missed |= {name: int(event[name]) for name in self._missed if name in event}

    def summary(self) -> dict[str, float | int] | None:
        """As in summary.json's `loop`; None before the second setpoint that followed a state.

        A period is the time between two consecutive setpoints. The age of a state is the time from its arrival to a
        setpoint that was sent when it was the newest one.
        """
        sequence, sent, received = np.array(self._sequence), np.array(self._sent), np.array(self._received)
        newest = np.searchsorted(received, sent[1:], side="right") - 1
        counted = (np.diff(sequence) == 1) & (newest >= 0)
        if not counted.any():
            return None
        periods = np.diff(sent)[counted]
        ages = (sent[1:] - received[newest])[counted]
        return {
            "period_mean_s": float(periods.mean()),
            "period_std_s": float(periods.std()),
            "period_p999_s": float(np.quantile(periods, 0.999)),
            "period_max_s": float(periods.max()),
            **self._missed,
            "state_age_mean_s": float(ages.mean()),
        }
