"""A simulated arm in a live session: on a clock that the caller moves, or paced by the wall clock in its own process.

Started as `python -m simbridge.backends.simulated_session` it is that process: it reads requests and reports events as
the servo process does.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.backend import ArmState
from simbridge.backends.live_channel import LiveChannel
from simbridge.backends.live_loop import LiveLoop, LiveSetup, Request, unpickled
from simbridge.backends.loop_process import Parent, error_facts, minimize_latency
from simbridge.backends.servo_channel import StateRing
from simbridge.errors import GuardViolation
from simbridge.planning.live.motion import LiveMotion
from simbridge.planning.options import Options
from simbridge.robot.pose import Array

if TYPE_CHECKING:  # the registry imports it
    from simbridge.backends.pybullet import PyBulletBackend

# A period that begins later than this share of itself is missed.
_LATE = 0.5


class SimulatedArm:
    """A simulated arm that a live loop (`loop`, which takes orders) moves, one period at a time. A context manager.

    Args:
        setup: Of the session.
        motion: Made of it.
        channel: Inputs and periods.
        ring: Takes the states.
        clock: The loop's, s; None for the simulation's own.
    """

    def __init__(
        self,
        setup: LiveSetup,
        motion: LiveMotion,
        channel: LiveChannel,
        ring: StateRing,
        clock: Callable[[], float] | None = None,
    ) -> None:
        made = backend_class(SIMULATION)(setup.robot, setup.run_options or Options())
        self._backend = cast("PyBulletBackend", made)
        self._ring, self._count, self._start = ring, 0, setup.start
        self._clock = clock or (lambda: self._count * setup.period)
        self.loop = LiveLoop(motion, channel, setup.period, self._clock, timed=clock is not None)
        self._states: Generator[ArmState, None, None] | None = None

    def __enter__(self) -> SimulatedArm:
        self._backend.__enter__()
        if self._start is not None:
            self._backend.place(self._start)
        self.loop.rest_at(self._backend.read().q)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._states is not None:
            # Closing the stream brakes the arm.
            self._states.close()
        self._backend.__exit__()

    def _setpoints(self) -> Iterator[Array]:
        while True:
            setpoint, self._position = self.loop.next(1.0)
            self._sent = self._clock()
            yield setpoint

    def step(self) -> None:
        """One period.

        Raises:
            GuardViolation: A setpoint was refused; the arm is at rest and must be engaged again.
        """
        self._count += 1
        if self._states is None:
            self._states = self._backend.stream(self._setpoints())
        try:
            state = next(self._states)
        except GuardViolation:
            self._states = None
            self._backend.recover()
            self.loop.rest_at(self._backend.read().q)
            raise
        unknown = state.q * math.nan
        modes = (state.robot_mode, state.safety_mode, state.runtime_state)
        times = (state.sequence, self._position, self._sent, self._clock(), self._count * self._backend.period)
        targets = (state.controller_target, state.controller_target_velocity, state.controller_target_acceleration)
        self._ring.write(
            (*times, 1.0, *modes),
            (state.q, state.qd, state.effort, *(unknown if v is None else v for v in targets), state.command),
        )


def _serve(parent: Parent) -> None:
    """Move a simulated arm by the wall clock until the parent asks for the end, or is gone.

    Raises:
        SimbridgeError: What ended the session.
    """
    request = json.loads(parent.configuration())
    setup = unpickled(Path(request["live"]).read_bytes())
    motion, n = setup.motion(), setup.robot.n
    channel = LiveChannel(Path(request["channel"]), n)
    ring = StateRing(Path(request["ring"]), n, request["rows"])
    notes = minimize_latency(request["priority"])
    with SimulatedArm(setup, motion, channel, ring, time.monotonic) as arm:
        parent.report(event="session", subjects=list(motion.subjects), notes=notes)
        deadline, missed = time.monotonic(), 0
        while not parent.gone:
            for request in parent.requests():
                if request["do"] == "stop":
                    parent.report(event="stopped", program="none", missed_deadlines=missed, missed_states=0)
                    return
                arm.loop.requests.append(Request.received(request))
            parent.check_alive()
            try:
                arm.step()
            except GuardViolation as error:
                parent.report(**(error_facts(error) | {"event": "refused"}))
            deadline += setup.period
            late = time.monotonic() - deadline
            if late > _LATE * setup.period:
                skipped = max(1, math.ceil(late / setup.period))
                missed, deadline = missed + skipped, deadline + (skipped - 1) * setup.period
            time.sleep(max(0.0, deadline - time.monotonic()))


def main() -> int:
    """Serve the parent; returns the exit status."""
    parent = Parent()
    try:
        _serve(parent)
    except Exception as error:
        parent.report(**error_facts(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
