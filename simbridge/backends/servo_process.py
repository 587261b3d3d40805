"""The servo process: the one place where ur_rtde lives, started as `python -m simbridge.backends.servo_process`.

ur_rtde holds Python's lock while it connects, can end its process by a segmentation fault when a controller goes away,
and reconnects by itself and goes on streaming. So it has a process of its own, which can be given a deadline and be
killed, and which leaves through `os._exit` without letting ur_rtde clean up after a lost connection.

The parent gives orders as JSON lines on standard input and reads reports as JSON lines from standard output. When
standard input ends, the parent is gone: the arm is stopped.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec
import numpy as np

from simbridge.backends.motions import Live, Replay
from simbridge.backends.no_reconnect import forbid_new_files, new_files_allowed
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.servo_loop import ServoLoop
from simbridge.backends.state_ring import StateRing
from simbridge.errors import SimbridgeError
from simbridge.planning.guard import ArmLimits, Guard
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_priority, ask_for_short_slices, threads
from simbridge.ur.errors import ArmStopped, ConnectionLost, ProgramStopped, StaleState
from simbridge.ur.rtde import Package, RtdeReader

STATE = (
    "timestamp",
    "actual_q",
    "actual_qd",
    "actual_current",
    "target_q",
    "speed_scaling",
    "target_speed_fraction",
    "robot_mode",
    "safety_mode",
    "safety_status_bits",
    "runtime_state",
)
# The controller ends the script when nothing came for so long.
WATCHDOG_FREQUENCY = 10.0  # Hz
# Deceleration at the end, rad/s^2 or m/s^2, as ur_rtde's servoStop takes it.
DECELERATION = 4.0
# Longest that a stop may take before the process leaves anyway.
STOP_TIMEOUT = 2  # s


class Parent:
    """The pipes to and from the parent."""

    def __init__(self, reports: TextIO) -> None:
        self._reports = reports
        self._buffer = b""
        self.gone = False

    def orders(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """What the parent said since the last call."""
        if self.gone or not select.select([0], [], [], timeout)[0]:
            return []
        data = os.read(0, 65536)
        self.gone = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def report(self, **facts: Any) -> None:
        """Tell the parent; that it is gone is noticed elsewhere."""
        try:
            self._reports.write(json.dumps(facts) + "\n")
            self._reports.flush()
        except OSError:
            self.gone = True


class RtdeLink:
    """The controller through ur_rtde, its states through a reader of our own.

    Raises:
        ConnectionLost: The controller does not answer, or took no control script.
    """

    def __init__(self, orders: ServoConfig) -> None:
        from rtde_control import RTDEControlInterface

        self._orders = orders
        self._reader = RtdeReader(orders.host, STATE, 1.0 / orders.period).__enter__()
        try:
            self._control = RTDEControlInterface(orders.host, 1.0 / orders.period)
        except Exception as error:  # ur_rtde raises RuntimeError and others for whatever went wrong
            raise ConnectionLost(orders.host, 30004, f"ur_rtde could not begin: {str(error).strip()}") from None
        # A script counts as running as soon as it was sent. The first command is taken when it really runs: it is one
        # that an arm at rest does not mind, for after this nothing waits any more.
        if not self._control.servoStop(DECELERATION):
            raise ConnectionLost(orders.host, 30003, "the control script was sent and takes no commands")

    def set_tool(self) -> None:
        """Set TCP and payload on the controller.

        Raises:
            ProgramStopped: It did not take them.
        """
        orders, done = self._orders, True
        if orders.tcp is not None:
            done = self._control.setTcp(orders.tcp)
        if orders.payload is not None and done:
            done = self._control.setPayload(orders.payload, orders.payload_cog or [0.0, 0.0, 0.0])
        if not done:
            state = self._reader.first()
            raise ProgramStopped(orders.host, state["robot_mode"], state["safety_mode"], state["runtime_state"])

    def watch(self) -> None:
        """From now on the controller ends the script when nothing comes any more.

        Raises:
            ConnectionLost: It did not take the watchdog; nothing may be streamed without.
        """
        if not self._control.setWatchdog(WATCHDOG_FREQUENCY):
            raise ConnectionLost(self._orders.host, 30004, "the control script did not take its watchdog")

    def states(self, timeout: float) -> list[Package]:
        """See `servo_loop.Link`."""
        states = self._reader.wait(timeout)
        for state in states:
            state["effort"] = state["actual_current"]
        return states

    def servo(self, q: Array) -> bool:
        """See `servo_loop.Link`.

        Raises:
            ConnectionLost: ur_rtde has lost the controller.
        """
        o = self._orders
        with contextlib.suppress(RuntimeError):
            taken = self._control.servoJ(q.tolist(), 0.0, 0.0, o.period, o.lookahead, o.gain)
            # What it returns after a loss means nothing.
            if self._control.isConnected():
                return bool(taken)
        raise ConnectionLost(o.host, 30004, "the connection for commands has ended")

    def stop(self) -> None:
        """Bring the arm to rest and end the script."""
        self._control.servoStop(DECELERATION)
        self._control.stopScript()


class Session:
    """One connection, from the first order to the stop."""

    def __init__(self, orders: ServoConfig, parent: Parent) -> None:
        self._orders, self._parent = orders, parent
        self._link: RtdeLink | None = None
        self._watched = False

    def run(self) -> None:
        """Serve the parent until it says stop, or is gone, or something must end it."""
        self._link = link = RtdeLink(self._orders)
        link.set_tool()
        forbid_new_files()
        limits = ArmLimits.of(**self._orders.limits)
        guard = Guard(limits, self._orders.period, self._orders.lookahead)
        loop = ServoLoop(
            link, guard, self._orders.host, self._orders.period, follow_scaling=self._orders.follow_scaling
        )
        self._parent.report(event="ready", q=loop.measured.tolist(), notes=_undisturbed(self._orders.priority))
        playing = False
        while True:
            for order in self._parent.orders():
                if order["do"] == "stop":
                    return
                self._begin(loop, order)
                playing = True
            if self._parent.gone or _terminated:
                return
            loop.slot()
            if playing and loop.idle:
                playing = False
                self._parent.report(
                    event="done", missed_deadlines=loop.missed_deadlines, missed_states=loop.missed_states
                )

    def _begin(self, loop: ServoLoop, order: dict[str, Any]) -> None:
        joints = len(self._orders.limits["joint_names"])
        setpoints = None
        with new_files_allowed():
            ring = StateRing(Path(order["ring"]), joints, order["rows"])
            if order["do"] == "replay":
                # All of it in memory before the first setpoint leaves.
                setpoints = np.fromfile(order["plan"]).reshape(-1, joints)
        if not self._watched:
            assert self._link is not None
            self._link.watch()
            self._watched = True
        loop.play(Live(ring) if setpoints is None else Replay(setpoints), ring.write)

    def stop(self) -> None:
        """The decelerated end, given at most `STOP_TIMEOUT`."""
        if self._link is not None:
            # A controller that answers no more must not keep this process: the default action of the alarm ends it.
            signal.alarm(STOP_TIMEOUT)
            self._link.stop()


_terminated = False


def _terminate(*_: object) -> None:
    global _terminated
    _terminated = True


def _undisturbed(priority: int) -> list[str]:
    """No garbage collection, and the scheduler's favour as far as it is given; what the system refused."""
    gc.collect()
    gc.freeze()
    gc.disable()
    # The system lists the threads in a directory.
    with new_files_allowed():
        for thread in threads():
            ask_for_short_slices(thread)
        return ask_for_priority(priority) if priority else []


def _facts(error: BaseException) -> dict[str, Any]:
    """An error as the parent can make it again."""
    fields = {name: value for name, value in vars(error).items() if isinstance(value, (int, float, str, type(None)))}
    trace = "".join(traceback.format_exception(error))
    return {"event": "error", "error": type(error).__name__, "message": str(error), "fields": fields, "trace": trace}


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the orders from the first line of standard input and serve the parent."""
    reports = os.fdopen(os.dup(1), "w")
    # What ur_rtde prints must not be taken for a report.
    os.dup2(2, 1)
    # Ctrl-C is for the parent, which then tells this process to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    parent = Parent(reports)
    session = Session(msgspec.json.decode(sys.stdin.buffer.raw.readline(), type=ServoConfig), parent)  # type: ignore[union-attr]
    failure: BaseException | None = None
    try:
        session.run()
    except BaseException as error:
        failure = error
        parent.report(**_facts(error))
    try:
        # A controller that is out of reach, or that stopped the arm itself, is told nothing more: its watchdog, or its
        # safety system, has the arm, and every further call into ur_rtde could hang or move something later.
        if not isinstance(failure, (ConnectionLost, StaleState, ArmStopped)):
            session.stop()
        parent.report(event="stopped")
    except BaseException as error:
        parent.report(**_facts(error))
    if failure is not None and not isinstance(failure, SimbridgeError):
        sys.excepthook(type(failure), failure, failure.__traceback__)
    return 0 if failure is None else 1


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # ur_rtde's destructors may hang, or reconnect: leave without them.
    os._exit(status)
