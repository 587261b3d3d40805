"""The servo process: the only place where ur_rtde runs.

It is started as `python -m simbridge.backends.servo_process`, for a live session as `... .live_process servo`.

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
import math
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simbridge.backends.control_script import ProgramOwner, ProgramWatch, control_script
from simbridge.backends.loop_process import (
    Parent,
    error_facts,
    forbid_new_files,
    minimize_latency,
    new_files_allowed,
)
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.servo_loop import ServoLoop
from simbridge.backends.session_state import SessionEvent, SessionState, next_state
from simbridge.backends.state_fields import OPTIONAL_FIELDS, STATE_FIELDS
from simbridge.backends.state_ring import StateRing
from simbridge.backends.streamed_motion import PlanReplay
from simbridge.backends.succession import has_corrupt_number
from simbridge.backends.tool_watch import ToolWatch
from simbridge.errors import SimbridgeError
from simbridge.planning.guard import Guard
from simbridge.quoting import as_text
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw
from simbridge.ur import errors
from simbridge.ur.arm_state import find_stop, read_modes
from simbridge.ur.rtde import Package, RtdeReader
from simbridge.ur.tables import PROGRAM_RUNS, REALTIME, RTDE, RuntimeState

# How long the control script may take to run once it was uploaded.
SCRIPT_TIMEOUT = 5.0  # s
# How long a stop may take before the process exits anyway.
STOP_TIMEOUT = 2  # s
# How long the loop may take to start, or to come round, before the system ends the process: longer than any parent
# waits, for the case that the parent has gone and ur_rtde or a solver never returns.
STUCK_TIMEOUT = 150  # s


def send_without_delay(port: int) -> None:
    """Let what this process sends to a port leave at once, even before the last packet was acknowledged.

    ur_rtde asks for that, but before it connects, and boost then opens another socket without the option. After one
    late command, all others would wait for an acknowledgement, until after the cycle for which they were sent.
    """
    for number in os.listdir("/dev/fd"):
        # The listing's own descriptor is closed by now.
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(number))) as connection:
                if connection.family == socket.AF_INET and connection.getpeername()[1] == port:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class RtdeLink:
    """The controller: commands through ur_rtde, states through our own RTDE reader.

    See `received_states.ControllerLink`.

    Raises:
        ConnectionLost: The controller does not answer.
    """

    def __init__(self, config: ServoConfig) -> None:
        # So that the parent's imports do not load ur_rtde.
        from rtde_control import RTDEControlInterface  # noqa: PLC0415

        self._config = config
        self._watch = ProgramWatch(config.number)
        # The newest state of which the program was followed.
        self._followed: Package | None = None
        self._reader = RtdeReader(config.host, STATE_FIELDS, 1.0 / config.period)
        flags = int(RTDEControlInterface.FLAG_CUSTOM_SCRIPT) | int(
            RTDEControlInterface.FLAG_NO_WAIT
        )
        try:
            self._control = RTDEControlInterface(config.host, 1.0 / config.period, flags)
        except Exception as error:  # ur_rtde raises RuntimeError and other types for any failure
            raise errors.ConnectionLost(
                config.host, RTDE, f"ur_rtde could not connect: {str(error).strip()}"
            ) from None
        send_without_delay(RTDE)
        forbid_new_files()

    @property
    def program(self) -> ProgramOwner:
        """Whose program the controller had in the newest state."""
        return self._watch.program

    def check_idle(self) -> Package:
        """The newest state, in which no program runs.

        Raises:
            ConnectionLost: The controller is silent.
            ProgramRunning: A program runs or is paused.
        """
        states = self._reader.wait(1.0)
        if not states:
            raise errors.ConnectionLost(self._config.host, RTDE, "no state came within 1 s")
        if states[-1]["runtime_state"] in PROGRAM_RUNS:
            raise errors.ProgramRunning(self._config.host, states[-1]["runtime_state"])
        return states[-1]

    def upload(self) -> None:
        """Upload the control script; raises `ConnectionLost` if ur_rtde could not send it."""
        config = self._config
        source = control_script(
            config.number, config.period, config.tcp, config.payload, config.payload_cog
        )
        with new_files_allowed(), open(os.memfd_create("simbridge-script"), "w") as file:
            file.write(source)
            file.flush()
            self._watch = ProgramWatch(config.number, uploaded=True)
            try:
                self._control.setCustomScriptFile(f"/proc/self/fd/{file.fileno()}")
            except RuntimeError as error:
                raise errors.ConnectionLost(
                    self._config.host, REALTIME, f"the script was not sent: {error}"
                ) from None

    def await_script(self) -> None:
        """Wait until the control script runs.

        Raises:
            ArmStopped: The arm was stopped meanwhile.
            ScriptNotStarted: It does not run.
        """
        host, waits = self._config.host, self._config.wait_in_pause
        deadline = time.monotonic() + SCRIPT_TIMEOUT
        ran = False
        while time.monotonic() < deadline:
            for state in self.states(0.02):
                stop = find_stop(state)
                paused = state["runtime_state"] in (RuntimeState.PAUSING, RuntimeState.PAUSED)
                if stop is errors.ProgramStopped and not ran:
                    stop = None
                ran = ran or state["runtime_state"] == RuntimeState.PLAYING
                if paused and waits:
                    deadline = time.monotonic() + SCRIPT_TIMEOUT
                elif paused and stop is None:
                    stop = errors.ProgramPaused
                if stop is not None:
                    raise stop(host, *read_modes(state))
            if self._watch.program is ProgramOwner.OURS:
                self.keep_alive()
                return
        raise errors.ScriptNotStarted(host, SCRIPT_TIMEOUT)

    def keep_alive(self) -> None:
        self._call(self._control.kickWatchdog)

    def states(self, timeout: float) -> list[Package]:
        """The states; raises `ProgramReplaced` if another program runs in place of the control script."""
        states = self._reader.wait(timeout)
        for state in states:
            state["effort"] = state["actual_current"]
            for name in OPTIONAL_FIELDS:
                state.setdefault(name, [math.nan] * len(state["actual_q"]))
            # A state with a corrupt number says nothing of the program; the loop refuses it.
            if self._followed is not None and has_corrupt_number(self._followed, state):
                continue
            self._followed = state
            if self._watch.follow(state) is ProgramOwner.OTHER:
                raise errors.ProgramReplaced(self._config.host, *read_modes(state))
        return states

    def servo(self, q: Array) -> bool:
        config = self._config
        return self._call(
            lambda: self._control.servoJ(
                q.tolist(), 0.0, 0.0, config.period, config.lookahead, config.gain
            )
        )

    def _call(self, command: Callable[[], Any]) -> bool:
        """What a command of ur_rtde returns; raises `ConnectionLost` if ur_rtde has lost the controller."""
        with contextlib.suppress(RuntimeError):
            taken = command()
            # After a connection loss the return value is meaningless.
            if self._control.isConnected():
                return bool(taken)
        raise errors.ConnectionLost(
            self._config.host, RTDE, "the connection for commands has ended"
        )

    def stop(self) -> None:
        """End the script, which brings the arm to rest if it still moves."""
        self._control.stopScript()


class ServoSession:
    """One connection to the controller, from the configuration to the stop."""

    def __init__(self, config: ServoConfig, parent: Parent) -> None:
        self._config, self._parent = config, parent
        self._link: RtdeLink | None = None
        self._loop: ServoLoop | None = None
        self._state = SessionState.CONNECTING

    def _change_state(self, event: SessionEvent) -> None:
        """Go to the next state, and report it."""
        before, self._state = self._state, next_state(self._state, event)
        if self._state is not before:
            self._parent.report(event="state", state=self._state.value)

    def run(self) -> None:
        """Serve the parent until it requests a stop or is gone.

        Raises:
            SimbridgeError: What ended the motion.
        """
        config = self._config
        self._prepare()
        self._link = link = RtdeLink(config)
        notes = minimize_latency(config.priority)
        idle = link.check_idle()
        self._change_state(SessionEvent.SENT)
        link.upload()
        link.await_script()
        guard = Guard(config.limits, config.period, config.lookahead)
        law = ServojLaw(config.period, config.gain, config.lookahead)
        tool = ToolWatch(
            config.host,
            tcp=config.tcp,
            payload=config.payload,
            payload_cog=config.payload_cog,
            before=idle,
        )
        self._loop = loop = ServoLoop(
            link,
            guard,
            config.host,
            law,
            follow_scaling=config.follow_scaling,
            wait_in_pause=config.wait_in_pause,
            tool=tool,
        )
        self._change_state(SessionEvent.SCRIPT_RUNS)
        self._parent.report(event="ready", q=loop.measured.tolist(), notes=notes)
        while True:
            signal.alarm(STUCK_TIMEOUT)
            for request in self._parent.requests():
                if request["do"] == "stop":
                    return
                self._handle_request(loop, request)
            if self._parent.gone or _terminated:
                return
            self._parent.check_alive()
            loop.slot()
            while tool.changes:
                payload = tool.changes.popleft()
                self._parent.report(event="payload", mass=payload.mass, cog=payload.cog)
            self._change_state(SessionEvent.PAUSE if loop.paused else SessionEvent.RESUME)
            if self._state is SessionState.MOVING and loop.idle:
                self._change_state(SessionEvent.DONE)
                self._parent.report(event="done", **self._missed())

    def _prepare(self) -> None:
        """What takes long, before the connection: nothing here."""

    def _handle_request(self, loop: ServoLoop, request: dict[str, Any]) -> None:
        """Begin the motion of a request."""
        joints = len(self._config.limits.joint_names)
        with new_files_allowed():
            ring = StateRing(Path(request["ring"]), joints, request["rows"])
            # It is in memory, and mapped: to copy an hour's plan would take longer than the script's watchdog.
            plan = np.asarray(np.memmap(request["plan"], mode="r"))
        setpoints = plan.view(np.float64).reshape(-1, joints)
        loop.play(PlanReplay(setpoints), ring.write, feedforward=request["feedforward"])
        self._change_state(SessionEvent.PLAY)

    def end(self, failure: BaseException | None) -> None:
        """Brake, then end the script, whatever has happened; a step that fails is reported, unless it did before
        (`failure`), and the next follows."""
        self._change_state(SessionEvent.END)
        # A controller that no longer answers must not block this process: the alarm's default action ends it.
        signal.alarm(STOP_TIMEOUT)
        for name, step in (("brake", self._brake), ("end the control script", self._stop_script)):
            try:
                step()
            except Exception as error:
                if as_text(error) != as_text(failure):
                    self._parent.report(event="failed", step=name, reason=as_text(error))
        self._change_state(SessionEvent.RESTS)
        program = ProgramOwner.UNKNOWN if self._link is None else self._link.program
        self._parent.report(event="stopped", program=program.value, **self._missed())

    def _missed(self) -> dict[str, int]:
        loop = self._loop
        return (
            {}
            if loop is None
            else {"missed_deadlines": loop.missed_deadlines, "missed_states": loop.missed_states}
        )

    def _brake(self) -> None:
        if self._loop is not None:
            self._loop.brake()

    def _stop_script(self) -> None:
        if self._link is not None and self._link.program is not ProgramOwner.OTHER:
            self._link.stop()


_terminated = False


def _terminate(*_: object) -> None:
    global _terminated
    _terminated = True


def main(kind: type[ServoSession] = ServoSession) -> int:
    """Read the configuration from the first line of standard input and serve the parent; returns the exit status."""
    parent = Parent()
    # Ctrl-C is handled by the parent, which then requests a stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    signal.alarm(STUCK_TIMEOUT)
    session = kind(msgspec.json.decode(parent.configuration(), type=ServoConfig), parent)
    failure: BaseException | None = None
    try:
        session.run()
    except BaseException as error:
        failure = error
        parent.report(**error_facts(error))
    session.end(failure)
    if failure is not None and not isinstance(failure, SimbridgeError):
        sys.excepthook(type(failure), failure, failure.__traceback__)
    return 0 if failure is None else 1


def leave(status: int) -> None:
    """End this process."""
    sys.stderr.flush()
    if _terminated:
        # The parent sees what ended this process.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    # ur_rtde's destructors may hang or reconnect: exit without them.
    os._exit(status)


if __name__ == "__main__":
    leave(main())
