"""A simulated arm that a live loop moves, one period at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, cast

from simbridge.backends import backend_class
from simbridge.backends.backend import ArmState
from simbridge.backends.state_ring import StateRing
from simbridge.errors import GuardViolation
from simbridge.planning.options import Options
from simbridge.robot.pose import Array
from simbridge.sessions.channel import LiveChannel
from simbridge.sessions.loop import LiveLoop
from simbridge.sessions.motion import LiveMotion
from simbridge.sessions.motion_setup import MotionSetup

if TYPE_CHECKING:  # the registry imports its subclasses
    from simbridge.backends.simulation import SimulationBackend


class SteppedArm:
    """A simulated arm that a live loop moves, one period at a time. A context manager.

    Args:
        setup: The parts of the session's motion.
        motion: The motion that was made of them.
        channel: Memory for inputs and periods.
        ring: Memory for the states of the arm.
        clock: Function that returns the loop's time, s; None for the simulation's own.

    Attributes:
        loop: The loop, which takes orders.
    """

    def __init__(
        self,
        setup: MotionSetup,
        motion: LiveMotion,
        channel: LiveChannel,
        *,
        ring: StateRing,
        clock: Callable[[], float] | None = None,
    ) -> None:
        backend = backend_class(setup.engine)(setup.robot, setup.run_options or Options())
        self._backend = cast("SimulationBackend", backend)
        self._ring = ring
        self._start = setup.start

        # Number of periods so far.
        self._count = 0
        self._clock = clock or (lambda: self._count * setup.period)
        # On the simulation's own clock no time passes in a step.
        self.loop = LiveLoop(motion, channel, setup.period, self._clock, timed=clock is not None)

        # The states of the arm that follows the loop's setpoints; None while it follows none.
        self._states: Generator[ArmState, None, None] | None = None
        # Index of the period of the last setpoint.
        self._position = 0.0
        # When the last setpoint was sent, s of the clock.
        self._sent = 0.0

    def __enter__(self) -> SteppedArm:
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
        """Yield the loop's setpoints (n,), rad, without end."""
        while True:
            setpoint, self._position = self.loop.next(1.0)
            self._sent = self._clock()
            yield setpoint

    def step(self) -> None:
        """Move the arm by one period, and write its state into the ring.

        Raises:
            GuardViolation: A setpoint was refused; the arm is at rest and must be engaged again.
        """
        self._count += 1
        if self._states is None:
            self._states = self._backend.stream(self._setpoints())
        try:
            state = next(self._states)
        except GuardViolation:
            # The stream has ended, and has braked the arm.
            self._states = None
            self._backend.recover()
            self.loop.rest_at(self._backend.read().q)
            raise
        self._write(state)

    def _write(self, state: ArmState) -> None:
        """Write a state into the ring, with the times of this clock."""
        # The numbers and vectors of a row, in the order of `StateRing`. Nothing scales the speed.
        speed_scaling = 1.0
        numbers = (
            state.sequence,
            self._position,
            self._sent,
            self._clock(),
            self._count * self._backend.period,
            speed_scaling,
            state.robot_mode,
            state.safety_mode,
            state.runtime_state,
        )

        unknown = state.q * math.nan
        target = state.controller_target
        velocity = state.controller_target_velocity
        acceleration = state.controller_target_acceleration
        joints = (
            state.q,
            state.qd,
            state.effort,
            unknown if target is None else target,
            unknown if velocity is None else velocity,
            unknown if acceleration is None else acceleration,
            state.command,
        )
        self._ring.write(numbers, joints)
