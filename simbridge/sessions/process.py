"""The processes that live sessions start: one for a controller, and one for a simulated arm.

`python -m simbridge.sessions.process servo` is the servo process of a live session: it makes the
setpoints itself, from inputs that the parent posts. It is not in `servo_process.py` because it
loads solvers and collision shapes, which a replay does not need. With `simulation` instead, a
simulated arm is paced by the wall clock; requests and events are those of the servo process.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from pathlib import Path
from typing import Any

from simbridge.backends.error_events import error_facts
from simbridge.backends.loop_parent import Parent
from simbridge.backends.low_latency import allow_new_files, minimize_latency
from simbridge.backends.servo_loop import ServoLoop
from simbridge.backends.servo_process import ServoSession, leave, main
from simbridge.backends.session_state import SessionEvent
from simbridge.backends.state_ring import StateRing
from simbridge.errors import GuardViolation
from simbridge.ik.faults import solver_failure
from simbridge.lifeline import end_with_parent
from simbridge.sessions.channel import LiveChannel
from simbridge.sessions.loop import LiveLoop, OrderRequest
from simbridge.sessions.motion_setup import MotionSetup, unpickle_setup
from simbridge.sessions.stepped_arm import SteppedArm

# A period that begins later than by this fraction of a period counts as missed.
MISSED_FRACTION = 0.5


class LiveServoSession(ServoSession):
    """A session whose setpoints come from a live motion."""

    def _prepare(self) -> None:
        """Load the motion, and compile it, before the controller is connected to."""
        assert self._config.live is not None
        setup = unpickle_setup(Path(self._config.live).read_bytes())
        self._solver_name = setup.solver_name
        self._motion = setup.motion()
        self._live: LiveLoop | None = None

    def run(self) -> None:
        """See `ServoSession.run`."""
        try:
            super().run()
        except KeyboardInterrupt as error:
            raise solver_failure(self._solver_name, error) from error

    def _handle_request(self, loop: ServoLoop, request: dict[str, Any]) -> None:
        """Begin the session, or pass on an order."""
        if self._live is not None:
            self._live.requests.append(OrderRequest.of_message(request))
            return

        config = self._config
        joints = len(config.limits.joint_names)
        self._motion.rest_at(loop.measured)
        with allow_new_files():
            channel = LiveChannel(Path(request["channel"]), joints)
            ring = StateRing(Path(request["ring"]), joints, request["rows"])

        self._live = LiveLoop(
            self._motion,
            channel,
            config.period,
            time.monotonic,
            late=lambda: loop.slowed,
            other_payload=lambda: loop.tool.payload.mass if loop.tool.has_other_payload else None,
        )
        self._parent.report(event="session", subjects=list(self._motion.subjects))
        loop.play(self._live, ring.write, feedforward=config.feedforward)
        self._change_state(SessionEvent.PLAY)


def _serve(parent: Parent) -> None:
    """Move a simulated arm by the wall clock until the parent asks for the end, or is gone.

    Raises:
        SimbridgeError: What ended the session.
    """
    config = json.loads(parent.read_configuration())
    setup = unpickle_setup(Path(config["live"]).read_bytes())
    try:
        _simulate(parent, config, setup)
    except KeyboardInterrupt as error:
        raise solver_failure(setup.solver_name, error) from error


def _simulate(parent: Parent, config: dict[str, Any], setup: MotionSetup) -> None:
    """Move the arm of a setup period by period; see `_serve`."""
    motion = setup.motion()
    joints = setup.robot.n
    channel = LiveChannel(Path(config["channel"]), joints)
    ring = StateRing(Path(config["ring"]), joints, config["rows"])
    notes = minimize_latency(config["priority"])

    with SteppedArm(setup, motion, channel, ring=ring, clock=time.monotonic) as arm:
        parent.report(event="session", subjects=list(motion.subjects), notes=notes)
        # When the next period begins, s.
        deadline = time.monotonic()
        # Number of periods that began too late.
        missed = 0
        while not parent.gone:
            # Carry out the parent's requests.
            for request in parent.requests():
                if request["do"] == "stop":
                    parent.report(
                        event="stopped", program="none", missed_deadlines=missed, missed_states=0
                    )
                    return
                arm.loop.requests.append(OrderRequest.of_message(request))
            parent.check_alive()

            # A refused setpoint stops the arm. The loop goes on, so that it may be engaged again.
            try:
                arm.step()
            except GuardViolation as error:
                parent.report(**(error_facts(error) | {"event": "refused"}))

            # Wait for the next period. A loop that is late begins at once with the newest of the
            # periods that are due, and those that are due by then count as missed.
            deadline += setup.period
            lateness = time.monotonic() - deadline
            if lateness > MISSED_FRACTION * setup.period:
                due = max(1, math.ceil(lateness / setup.period))
                missed += due
                deadline += (due - 1) * setup.period
            time.sleep(max(0.0, deadline - time.monotonic()))


def simulate() -> int:
    """Serve the parent of a simulated arm.

    Returns:
        The exit status.
    """
    parent = Parent()
    # Ctrl-C is handled by the parent, so that a KeyboardInterrupt here is one that the solver
    # raises.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _serve(parent)
    except Exception as error:
        parent.report(**error_facts(error))
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "servo":
        leave(main(LiveServoSession))
    # A simulation ends with its parent at once, even where a solver never returns. The servo
    # process does not do this: it brakes the arm first.
    end_with_parent()
    sys.exit(simulate())
