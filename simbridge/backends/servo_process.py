"""The servo process: the only place where ur_rtde runs, started as `python -m simbridge.backends.servo_process`.

ur_rtde holds the GIL while it connects, may crash its process with a segmentation fault when a controller disappears,
and reconnects by itself and continues streaming. So it runs in a separate process that has deadlines, can be killed,
and exits through `os._exit` without letting ur_rtde clean up after a lost connection.

Its reconnection cannot be switched off. A process that can open no further socket cannot reconnect: ur_rtde then
reports the loss. So the limit on open files is lowered as soon as the connection is up.

The parent sends requests as JSON lines on standard input and reads events as JSON lines from standard output. When
standard input ends, the parent is gone, and the arm is stopped.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec
import numpy as np

from simbridge.backends.motion import Live, Replay
from simbridge.backends.servo_channel import OPTIONAL_FIELDS, STATE_FIELDS, ServoConfig, StateRing
from simbridge.backends.servo_loop import ServoLoop
from simbridge.errors import SimbridgeError
from simbridge.planning.guard import Guard
from simbridge.robot.pose import Array
from simbridge.scheduling import ask_for_priority, ask_for_short_slices, threads
from simbridge.servo.law import ServojLaw
from simbridge.ur.errors import ArmStopped, ConnectionLost, ProgramStopped, StaleState
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import REALTIME, RTDE

# The control script ends when nothing arrives for one period of this.
WATCHDOG_FREQUENCY = 10.0  # Hz
# Deceleration at the end, rad/s^2: the argument of ur_rtde's servoStop.
DECELERATION = 4.0
# How long a stop may take before the process exits anyway.
STOP_TIMEOUT = 2  # s
# Open files: the standard streams. Not zero, because poll() watches no more descriptors than the limit.
_NO_MORE_FILES = 3


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


def send_without_delay(port: int) -> None:
    """Let what this process sends to a port leave at once, even before the last packet was acknowledged.

    ur_rtde asks for that, but before it connects, and boost then opens another socket without the option. After one
    late command, all others would wait for an acknowledgement, until after the cycle for which they were sent.
    """
    for number in os.listdir("/dev/fd"):
        # The listing's own descriptor is closed by now, and files are no sockets.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(number))) as connection:
            if connection.getpeername()[1] == port:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Parent:
    """The pipes to and from the parent.

    Attributes:
        gone: Whether the parent has closed a pipe or ended.
    """

    def __init__(self, events: TextIO) -> None:
        self._events = events
        self._buffer = b""
        self.gone = False

    def requests(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """The requests since the last call."""
        if self.gone or not select.select([0], [], [], timeout)[0]:
            return []
        data = os.read(0, 65536)
        self.gone = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def report(self, **facts: Any) -> None:
        """Send an event."""
        try:
            self._events.write(json.dumps(facts) + "\n")
            self._events.flush()
        except OSError:
            self.gone = True


class RtdeLink:
    """The controller: commands through ur_rtde, states through our own RTDE reader.

    Raises:
        ConnectionLost: The controller does not answer, or did not start the control script.
    """

    def __init__(self, config: ServoConfig) -> None:
        from rtde_control import RTDEControlInterface  # so that the parent's imports do not load ur_rtde

        self._config = config
        self._reader = RtdeReader(config.host, STATE_FIELDS, 1.0 / config.period).__enter__()
        try:
            self._control = RTDEControlInterface(config.host, 1.0 / config.period)
        except Exception as error:  # ur_rtde raises RuntimeError and other types for any failure
            raise ConnectionLost(config.host, RTDE, f"ur_rtde could not connect: {str(error).strip()}") from None
        send_without_delay(RTDE)
        # ur_rtde regards a script as running as soon as it was sent. The first command waits until it really runs; the
        # later ones do not wait. So the first is one that has no effect on an arm at rest.
        if not self._control.servoStop(DECELERATION):
            raise ConnectionLost(config.host, REALTIME, "the control script was sent but accepts no commands")

    def set_tool(self) -> None:
        """Configure TCP and payload on the controller.

        Raises:
            ProgramStopped: It did not accept them.
        """
        settings, done = self._config.settings, True
        if settings.tcp is not None:
            done = self._control.setTcp(list(settings.tcp))
        if settings.payload is not None and done:
            done = self._control.setPayload(settings.payload, list(settings.payload_cog or (0.0, 0.0, 0.0)))
        if not done:
            state = self._reader.first()
            raise ProgramStopped(self._config.host, state["robot_mode"], state["safety_mode"], state["runtime_state"])

    def start_watchdog(self) -> None:
        """From now on the controller ends the script when no command arrives for 100 ms.

        Raises:
            ConnectionLost: The watchdog was not accepted; nothing is streamed without it.
        """
        if not self._control.setWatchdog(WATCHDOG_FREQUENCY):
            raise ConnectionLost(self._config.host, RTDE, "the control script did not accept its watchdog")

    def states(self, timeout: float) -> list[Package]:
        """See `servo_loop.Link`."""
        states = self._reader.wait(timeout)
        for state in states:
            state["effort"] = state["actual_current"]
            for name in OPTIONAL_FIELDS:
                state.setdefault(name, [math.nan] * len(state["actual_q"]))
        return states

    def servo(self, q: Array) -> bool:
        """See `servo_loop.Link`.

        Raises:
            ConnectionLost: ur_rtde has lost the controller.
        """
        config, settings = self._config, self._config.settings
        with contextlib.suppress(RuntimeError):
            taken = self._control.servoJ(q.tolist(), 0.0, 0.0, config.period, settings.lookahead, settings.gain)
            # After a connection loss the return value is meaningless.
            if self._control.isConnected():
                return bool(taken)
        raise ConnectionLost(config.host, RTDE, "the connection for commands has ended")

    def stop(self) -> None:
        """Bring the arm to rest and end the script."""
        self._control.servoStop(DECELERATION)
        self._control.stopScript()


class Session:
    """One connection to the controller, from the configuration to the stop."""

    def __init__(self, config: ServoConfig, parent: Parent) -> None:
        self._config, self._parent = config, parent
        self._link: RtdeLink | None = None
        self._loop: ServoLoop | None = None
        self._watched = False

    def run(self) -> None:
        """Serve the parent until it requests a stop or is gone.

        Raises:
            SimbridgeError: What ended the motion.
        """
        config, settings = self._config, self._config.settings
        self._link = link = RtdeLink(config)
        link.set_tool()
        forbid_new_files()
        guard = Guard(config.limits, config.period, settings.lookahead)
        law = ServojLaw(config.period, settings.gain, settings.lookahead)
        self._loop = loop = ServoLoop(link, guard, config.host, law, follow_scaling=settings.follow_scaling)
        self._parent.report(event="ready", q=loop.measured.tolist(), notes=_minimize_latency(settings.priority))
        playing = False
        while True:
            for request in self._parent.requests():
                if request["do"] == "stop":
                    return
                self._begin(loop, request)
                playing = True
            if self._parent.gone or _terminated:
                return
            loop.slot()
            if playing and loop.idle:
                playing = False
                self._parent.report(
                    event="done", missed_deadlines=loop.missed_deadlines, missed_states=loop.missed_states
                )

    def _begin(self, loop: ServoLoop, request: dict[str, Any]) -> None:
        joints = len(self._config.limits.joint_names)
        setpoints = None
        with new_files_allowed():
            ring = StateRing(Path(request["ring"]), joints, request["rows"])
            if request["do"] == "replay":
                # The whole plan is in memory before the first setpoint is sent.
                setpoints = np.fromfile(request["plan"]).reshape(-1, joints)
        if not self._watched:
            assert self._link is not None
            self._link.start_watchdog()
            self._watched = True
        motion = Live(ring) if setpoints is None else Replay(setpoints)
        loop.play(motion, ring.write, feedforward=request.get("feedforward", False))

    def stop(self) -> None:
        """Bring the arm to rest within at most `STOP_TIMEOUT`."""
        if self._link is not None:
            # A controller that no longer answers must not block this process: the alarm's default action ends it.
            signal.alarm(STOP_TIMEOUT)
            if self._loop is not None:
                self._loop.brake()
            self._link.stop()


_terminated = False


def _terminate(*_: object) -> None:
    global _terminated
    _terminated = True


def _minimize_latency(priority: int) -> list[str]:
    """Disable garbage collection and request scheduling priority; returns notes on what the system refused."""
    gc.collect()
    gc.freeze()
    gc.disable()
    # Threads are listed by reading a directory.
    with new_files_allowed():
        for thread in threads():
            ask_for_short_slices(thread)
        return ask_for_priority(priority) if priority else []


def _facts(error: BaseException) -> dict[str, Any]:
    """An error as an event, from which the parent reconstructs it."""
    fields = {name: value for name, value in vars(error).items() if isinstance(value, (int, float, str, type(None)))}
    trace = "".join(traceback.format_exception(error))
    return {"event": "error", "error": type(error).__name__, "message": str(error), "fields": fields, "trace": trace}


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the configuration from the first line of standard input and serve the parent."""
    events = os.fdopen(os.dup(1), "w")
    # Output of ur_rtde must not be mistaken for an event.
    os.dup2(2, 1)
    # Ctrl-C is handled by the parent, which then requests a stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    parent = Parent(events)
    # Unbuffered: what follows the first line belongs to `Parent.requests`.
    line = sys.stdin.buffer.raw.readline()  # type: ignore[union-attr]
    session = Session(msgspec.json.decode(line, type=ServoConfig), parent)
    failure: BaseException | None = None
    try:
        session.run()
    except BaseException as error:
        failure = error
        parent.report(**_facts(error))
    try:
        # Nothing more is sent to a controller that is out of reach or has stopped the arm itself: its watchdog or its
        # safety system is in charge, and any further call into ur_rtde could hang, or move something later.
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
    # ur_rtde's destructors may hang or reconnect: exit without them.
    os._exit(status)
