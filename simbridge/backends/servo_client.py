"""The parent's end of the servo process: start it, give it orders, take its reports, end it in any case."""

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
import time
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

import simbridge
from simbridge import errors
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.state_ring import StateRing
from simbridge.robot.pose import Array
from simbridge.ur import errors as controller_errors
from simbridge.ur.controller import registers_taken, survey
from simbridge.ur.errors import ConnectionLost, RegistersInUse

# ur_rtde's constructor uploads its script and waits up to five seconds for it to run.
CONNECT_TIMEOUT = 15.0  # s
# The arm decelerates, the script ends; then the process is ended by force.
STOP_TIMEOUT = 5.0  # s


class ServoProcess:
    """A servo process, from its start to its end.

    Args:
        orders: What it is told as it starts.
    """

    def __init__(self, orders: ServoConfig) -> None:
        self._orders = orders
        self._buffer = b""
        self._shared: list[int] = []
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simbridge.backends.servo_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # Where the package is: `-m` also looks in the working directory, and nothing there may stand in the way.
            cwd=Path(simbridge.__file__).parent.parent,
            # Ctrl-C reaches the parent alone.
            start_new_session=True,
            bufsize=0,
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def connect(self) -> dict[str, Any]:
        """Wait until it has the controller; its report: joints `q`, and `notes` about what the system refused.

        Raises:
            ControllerError: Whatever kept it.
        """
        self._send(msgspec.to_builtins(self._orders))
        try:
            return self._ready()
        except ConnectionLost:
            self._process.kill()
            # ur_rtde does not tell which of its connections failed.
            for silent in survey(self._orders.host).lost.values():
                raise silent from None
            taken = registers_taken(self._orders.host)
            if taken:
                raise RegistersInUse(self._orders.host, taken) from None
            raise

    def _ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + CONNECT_TIMEOUT
        while (left := deadline - time.monotonic()) > 0.0:
            for event in self.events(left):
                if event["event"] == "ready":
                    return event
        raise ConnectionLost(self._orders.host, 30003, f"the control script did not run within {CONNECT_TIMEOUT:g} s")

    def replay(self, setpoints: Array) -> StateRing:
        """Have it send setpoints (T, n) one a period; the ring gives a state for each."""
        plan = self._memory("setpoints")
        plan.write_bytes(np.ascontiguousarray(setpoints, dtype=np.float64).tobytes())
        # A controller that slows down takes more periods than the plan has.
        return self._play(4 * len(setpoints) + 4096, do="replay", plan=str(plan))

    def live(self, first: Array) -> StateRing:
        """Have it send the setpoints (n,) that are posted in the ring, of which this is the first."""
        return self._play(4096, first, do="live")

    def _play(self, states: int, first: Array | None = None, **order: Any) -> StateRing:
        path = self._memory("states")
        ring = StateRing.create(path, len(self._orders.limits["joint_names"]), states)
        if first is not None:
            ring.post(first)
        self._send({**order, "ring": str(path), "rows": ring.rows})
        return ring

    def _memory(self, name: str) -> Path:
        """A file in memory that has no name: no disk makes the servo process wait, and nothing is left behind when both
        processes are gone, however they went."""
        self._shared.append(os.memfd_create(f"simbridge-{name}"))
        return Path(f"/proc/{os.getpid()}/fd/{self._shared[-1]}")

    def _send(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # That it has died is told by its exit, with the reason.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")

    def events(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """What it reported since the last call.

        Raises:
            ControllerError, GuardViolation, TargetsStopped: What ended it.
        """
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            return []
        data = os.read(self._process.stdout.fileno(), 65536)
        if not data:
            raise self._died()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        events = [json.loads(line) for line in lines]
        for event in events:
            if event["event"] == "error":
                raise _rebuilt(event)
        return events

    def _died(self) -> Exception:
        """What is to be said of a process that ended without a word."""
        status = self._wait(STOP_TIMEOUT)
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f" Its last words: {words[-1][:300]}" if words else ""
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        hint = f"The controller's watchdog stops the arm.{last}"
        return ConnectionLost(self._orders.host, None, f"the servo process {how}", hint)

    def stop(self) -> None:
        """Have it decelerate the arm and end the control script, and wait for its end; by force if it takes too long.

        Raises:
            KeyboardInterrupt: It came meanwhile; the arm has been stopped all the same.
        """
        assert self._process.stdin is not None
        try:
            self._send({"do": "stop"})
        finally:
            try:
                self._process.stdin.close()
                self._wait(STOP_TIMEOUT)
            finally:
                self._close()

    def end_soon(self) -> None:
        """Give it half a second to leave by itself, then end it: it is not to be waited for."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
            return
        self._process.kill()

    def _wait(self, timeout: float) -> int:
        """Its exit status. An impatient second Ctrl-C does not cut the arm's stop short."""
        interrupted = False
        deadline = time.monotonic() + timeout
        while True:
            try:
                status = self._process.wait(max(deadline - time.monotonic(), 0.01))
                break
            except subprocess.TimeoutExpired:
                self._process.kill()
                deadline = time.monotonic() + timeout
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            raise KeyboardInterrupt
        return status

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        while self._shared:
            os.close(self._shared.pop())


def _rebuilt(event: dict[str, Any]) -> Exception:
    """The error that the process reported."""
    kind = getattr(controller_errors, event["error"], None) or getattr(errors, event["error"], None)
    if kind is None or not issubclass(kind, errors.SimbridgeError):
        return errors.InternalError("servo process", event["trace"])
    # Errors keep what they were made with under the same names.
    known = {"message": event["message"], **event["fields"]}
    error: Exception = kind(**{name: known[name] for name in inspect.signature(kind).parameters if name in known})
    error.args = (event["message"],)
    return error
