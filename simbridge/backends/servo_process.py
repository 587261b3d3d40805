"""The servo process, which sends setpoints to a controller and reports its states.

It is started as `python -m simbridge.backends.servo_process`; for a live session,
`simbridge.sessions.process` takes its place.

ur_rtde, one of the two links, holds the GIL while it connects, may crash its process with a
segmentation fault when a controller disappears, and reconnects by itself and continues streaming.
So it runs in a separate process that has deadlines, can be killed, and exits through `os._exit`
without letting ur_rtde clean up after a lost connection. The other link is treated the same way.

The parent sends requests as JSON lines on standard input and reads events as JSON lines from
standard output. When standard input ends, the parent is gone, and the arm is stopped.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simbridge.backends.controller_link import ControllerLink
from simbridge.backends.error_events import error_facts
from simbridge.backends.loop_parent import Parent
from simbridge.backends.low_latency import allow_new_files, minimize_latency
from simbridge.backends.program_watch import ProgramOwner
from simbridge.backends.rtde_link import RtdeLink
from simbridge.backends.servo_config import ServoConfig
from simbridge.backends.servo_loop import ServoLoop
from simbridge.backends.session_state import SessionEvent, SessionState, next_state
from simbridge.backends.state_ring import StateRing
from simbridge.backends.streamed_motion import PlanReplay
from simbridge.backends.tool_watch import ToolWatch
from simbridge.backends.ur_rtde_link import UrRtdeLink
from simbridge.errors import SimbridgeError
from simbridge.planning.guard import Guard
from simbridge.planning.link_choices import LinkName
from simbridge.quoting import as_text
from simbridge.servo.law import ServojLaw
from simbridge.ur.rtde import Package

# The connection to the controller, by the name of the link.
LINKS: Mapping[LinkName, Callable[[ServoConfig], ControllerLink]] = {
    "ur_rtde": UrRtdeLink,
    "rtde": RtdeLink,
}
# How long a stop may take before the system ends the process, s.
STOP_TIMEOUT_S = 2
# How long the start, or one period of the loop, may take before the system ends the process, s:
# longer than any parent waits, for the case that the parent has gone and ur_rtde or a solver never
# returns.
STUCK_TIMEOUT_S = 150


class ServoSession:
    """One connection to the controller, from the configuration to the stop.

    Args:
        config: The controller, and how it is used.
        parent: The parent, which sends requests and receives events.
    """

    def __init__(self, config: ServoConfig, parent: Parent) -> None:
        self._config = config
        self._parent = parent
        self._state = SessionState.CONNECTING
        # The connection to the controller; None until it is made.
        self._link: ControllerLink | None = None
        # The loop that sends setpoints; None until the control script runs.
        self._loop: ServoLoop | None = None

    def run(self) -> None:
        """Serve the parent until it requests a stop or is gone.

        Raises:
            SimbridgeError: The error that ended the motion.
        """
        # Do what takes long; the parent's time limit for connecting begins with the report.
        self._prepare()
        self._parent.report(event="prepared")

        # Connect.
        link = LINKS[self._config.link](self._config)
        self._link = link
        notes = minimize_latency(self._config.priority)

        # Start the control script.
        idle_state = link.check_idle()
        self._change_state(SessionEvent.SENT)
        link.upload()
        link.await_script()

        # Send setpoints.
        loop = self._create_loop(link, idle_state)
        self._loop = loop
        self._change_state(SessionEvent.SCRIPT_RUNS)
        self._parent.report(event="ready", q=loop.measured.tolist(), notes=notes)
        self._serve(loop)

    def _prepare(self) -> None:
        """Do what takes long before the connection is opened; nothing here."""

    def _create_loop(self, link: ControllerLink, idle_state: Package) -> ServoLoop:
        """Return the loop that sends setpoints.

        Args:
            link: The connection to the controller.
            idle_state: The state before the control script was sent.
        """
        config = self._config
        tool = ToolWatch(
            config.host,
            tcp=config.tcp,
            payload=config.payload,
            payload_cog=config.payload_cog,
            before=idle_state,
        )
        return ServoLoop(
            link,
            Guard(config.limits, config.period, config.lookahead),
            config.host,
            ServojLaw(config.period, config.gain, config.lookahead),
            follow_scaling=config.follow_scaling,
            wait_in_pause=config.wait_in_pause,
            tool=tool,
        )

    def _serve(self, loop: ServoLoop) -> None:
        """Go through one control period after another; see `run`."""
        while True:
            # The alarm's default action ends this process if the loop does not get here again.
            signal.alarm(STUCK_TIMEOUT_S)

            for request in self._parent.requests():
                if request["do"] == "stop":
                    return
                self._handle_request(loop, request)
            if self._parent.gone or _sigterm_received:
                return
            self._parent.check_alive()

            loop.run_period()
            self._report_progress(loop)

    def _handle_request(self, loop: ServoLoop, request: dict[str, Any]) -> None:
        """Begin the replay of a plan; the fields are those of `ServoProcess.replay`."""
        joints = len(self._config.limits.joint_names)
        with allow_new_files():
            ring = StateRing(Path(request["ring"]), joints, request["rows"])
            # The plan is mapped, not copied: to copy a plan of an hour would take longer than the
            # script's watchdog allows.
            plan = np.asarray(np.memmap(request["plan"], mode="r"))

        setpoints = plan.view(np.float64).reshape(-1, joints)
        loop.play(PlanReplay(setpoints), ring.write, feedforward=request["feedforward"])
        self._change_state(SessionEvent.PLAY)

    def _report_progress(self, loop: ServoLoop) -> None:
        """Report payloads that were set, a pause and the end of a motion in the last period."""
        while loop.tool.changes:
            payload = loop.tool.changes.popleft()
            self._parent.report(event="payload", mass=payload.mass, cog=payload.cog)

        # One of the two holds in every period: without a meaning in the present state it changes
        # nothing.
        self._change_state(SessionEvent.PAUSE if loop.paused else SessionEvent.RESUME)
        if self._state is SessionState.MOVING and loop.idle:
            self._change_state(SessionEvent.DONE)
            self._parent.report(event="done", **self._missed_counts())

    def _change_state(self, event: SessionEvent) -> None:
        """Go to the state that follows an event, and report a state that is new."""
        before = self._state
        self._state = next_state(before, event)
        if self._state is not before:
            self._parent.report(event="state", state=self._state.value)

    def _missed_counts(self) -> dict[str, int]:
        """Return the missed deadlines and states of the motion; empty before the loop runs."""
        if self._loop is None:
            return {}
        return {
            "missed_deadlines": self._loop.missed_deadlines,
            "missed_states": self._loop.missed_states,
        }

    def end(self, failure: BaseException | None) -> None:
        """Brake, then end the script, whatever has happened.

        A step that fails is reported, and the next one follows.

        Args:
            failure: The error that ended the motion, and is reported already; None after a request.
        """
        self._change_state(SessionEvent.END)

        # A controller that no longer answers must not block this process: the alarm's default
        # action ends it.
        signal.alarm(STOP_TIMEOUT_S)

        steps = (
            ("brake", self._brake),
            ("end the control script", self._stop_script),
        )
        for name, step in steps:
            try:
                step()
            except Exception as error:
                # The step often fails for the reason that ended the motion: that is known.
                if as_text(error) != as_text(failure):
                    self._parent.report(event="failed", step=name, reason=as_text(error))

        self._change_state(SessionEvent.RESTS)
        program = ProgramOwner.UNKNOWN if self._link is None else self._link.program
        self._parent.report(event="stopped", program=program.value, **self._missed_counts())

    def _brake(self) -> None:
        """Bring the arm to rest, if the loop has begun."""
        if self._loop is not None:
            self._loop.brake()

    def _stop_script(self) -> None:
        """End the control script, unless another program has taken its place."""
        if self._link is not None and self._link.program is not ProgramOwner.OTHER:
            self._link.stop()


# Whether this process was asked to end by SIGTERM; set by the signal's handler.
_sigterm_received = False


def _note_sigterm(*_: object) -> None:
    """Handle SIGTERM: the loop ends after its present period."""
    global _sigterm_received
    _sigterm_received = True


def main(session_type: type[ServoSession] = ServoSession) -> int:
    """Serve the parent with the configuration in the first line of standard input.

    Args:
        session_type: The kind of session.

    Returns:
        The exit status.
    """
    parent = Parent()
    # Ctrl-C is handled by the parent, which then requests a stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _note_sigterm)
    signal.alarm(STUCK_TIMEOUT_S)

    config = msgspec.json.decode(parent.read_configuration(), type=ServoConfig)
    session = session_type(config, parent)

    # Whatever ends the session, the arm is braked then.
    failure: BaseException | None = None
    try:
        session.run()
    except BaseException as error:
        failure = error
        parent.report(**error_facts(error))
    session.end(failure)

    # The trace of an error that was not raised on purpose is for whoever corrects it.
    if failure is not None and not isinstance(failure, SimbridgeError):
        sys.excepthook(type(failure), failure, failure.__traceback__)
    return 0 if failure is None else 1


def leave(status: int) -> None:
    """End this process, at once.

    Args:
        status: The exit status.
    """
    sys.stderr.flush()

    # A process that was asked to end by SIGTERM ends by it, so that the parent sees the reason.
    if _sigterm_received:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    # ur_rtde's destructors may hang or reconnect: exit without them.
    os._exit(status)


if __name__ == "__main__":
    leave(main())
