"""The states of a controller as the servo loop receives them, and one that shows a stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simbridge.backends.motion_samples import MotionSamples
from simbridge.backends.servo_link import ServoLink
from simbridge.backends.state_supply import StateSupply
from simbridge.backends.succession import MAX_STEP_S, check_state, check_succession
from simbridge.ur.arm_state import find_stop
from simbridge.ur.errors import ArmNotReady, ImplausibleState, ProgramStopped, StaleState
from simbridge.ur.rtde import Package

# After this time without a newer state a motion ends.
STALE_S = 0.1
# How long to wait for the first state, and for the control script to run.
FIRST_STATE_TIMEOUT_S = 1.0
# How long to wait for the cause of a stop when only its effects have been seen.
CAUSE_TIMEOUT_S = 0.1
# What a stop looks like before its cause is seen: a safety stop also ends the program.
STOPS_WITHOUT_CAUSE = (None, ProgramStopped, ArmNotReady)


class HostClock(Protocol):
    """The host's clock."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class ReceivedStates:
    """Receives a controller's states, and refuses those that cannot follow the one before.

    Args:
        link: The connection to the controller.
        host: The controller's address, for messages.
        period: Control period, s.
        max_velocity: The joints' limits (n,), rad/s.
        clock: The host's clock.

    Attributes:
        newest: The newest state.
        arrival: When the newest state arrived, s (host clock).
        stop: The state that shows a stop; None if none has. The next state may no longer show it.
        samples: Matches the states with the setpoints of the motion.
        supply: Measures whether states come often enough.
        is_braking: Whether the arm is being braked: states that cannot be used are then skipped,
            not refused.
    """

    def __init__(
        self,
        link: ServoLink,
        host: str,
        period: float,
        *,
        max_velocity: Sequence[float],
        clock: HostClock,
    ) -> None:
        self._link = link
        self._host = host
        self._period = period
        self._max_velocity = max_velocity
        self._clock = clock

        self.newest: Package = {}
        self.arrival = 0.0
        self.stop: Package | None = None
        self.samples = MotionSamples()
        self.supply = StateSupply(host, period)
        self.is_braking = False

    def await_first(self) -> None:
        """Wait for a state in which the control script runs; older states are skipped.

        Raises:
            StaleState: No state came.
            ImplausibleState: The state is not one that an arm can have.
        """
        # A script that does not run in time is not refused here: the state shows a stop, which the
        # loop checks first.
        begin = self._clock.monotonic()
        state: Package = {}
        while not state or find_stop(state) is ProgramStopped:
            if self._clock.monotonic() - begin >= FIRST_STATE_TIMEOUT_S:
                break
            states = self._link.states(STALE_S)
            if states:
                state = states[-1]

        if not state:
            raise StaleState(self._host, 0.0, self._clock.monotonic() - begin)
        check_state(self._host, state)
        self._keep(state)
        self.arrival = self._clock.monotonic()

    def tick(self) -> int:
        """Return the controller's tick of the newest state."""
        return self._tick(self.newest)

    def receive(self, timeout: float) -> bool:
        """Receive the states that come within a timeout, and match them with setpoints.

        Args:
            timeout: How long to wait for a state, s.

        Returns:
            Whether a newer state has come.

        Raises:
            ImplausibleState: A state cannot follow the last one, and the arm is not being braked.
            StaleState: The controller's clock has advanced by too much at once, and as much time
                has passed on this computer.
        """
        # The link itself may refuse what it reads. An arm that is being braked does not need it:
        # braking must go on.
        try:
            states = self._link.states(timeout)
        except ImplausibleState:
            if not self.is_braking:
                raise
            states = []

        # How long no newer state had come until now, s.
        arrival = self._clock.monotonic()
        silence = arrival - self.arrival

        is_newer = False
        for state in states:
            # Ignore older states; this comparison is false for nan, too.
            if not state["timestamp"] > self.newest["timestamp"]:
                continue
            if not self._can_follow(state, silence):
                continue

            # Keep the state; together with the setpoint that was due at its tick it is a sample.
            is_newer = True
            self.arrival = arrival
            self._keep(state)
            self.samples.match(self._tick(state), state, arrival)

        if is_newer:
            self.supply.add_arrival(arrival)
        return is_newer

    def check_fresh(self) -> None:
        """Raise `StaleState` if no newer state has come for too long."""
        silence = self._clock.monotonic() - self.arrival
        if silence > STALE_S:
            raise StaleState(self._host, self.newest["timestamp"], silence)

    def await_cause(self) -> Package:
        """Return the state that shows a stop, if possible its cause.

        The cause may become visible a little later than its effects.
        """
        end = self._clock.monotonic() + CAUSE_TIMEOUT_S
        while not self._shows_cause():
            remaining = end - self._clock.monotonic()
            if remaining <= 0.0:
                break
            self.receive(remaining)
        return self.stop or self.newest

    def _can_follow(self, state: Package, silence: float) -> bool:
        """Return whether to accept a newer state.

        Args:
            state: The state.
            silence: How long no newer state had come before it, s (host clock).

        Raises:
            ImplausibleState, StaleState: As in `receive`.
        """
        try:
            check_succession(self._host, self.newest, state, self._max_velocity)
        except ImplausibleState:
            # Skip it if the motion ends anyway: the arm is braked, or a stop was seen.
            if self.is_braking or self.stop is not None:
                return False

            # The gap matches our own silence: both computers may have been suspended. Report
            # missing states, not a corrupt clock.
            step = state["timestamp"] - self.newest["timestamp"]
            if silence > STALE_S and MAX_STEP_S < step < silence + STALE_S:
                raise StaleState(self._host, self.newest["timestamp"], silence) from None
            raise
        return True

    def _keep(self, state: Package) -> None:
        """Make this the newest state, and remember it if it shows a stop or its cause."""
        self.newest = state
        if find_stop(state) is not None and not self._shows_cause():
            self.stop = state

    def _shows_cause(self) -> bool:
        """Return whether the cause of a stop was seen."""
        return self.stop is not None and find_stop(self.stop) not in STOPS_WITHOUT_CAUSE

    def _tick(self, state: Package) -> int:
        return round(state["timestamp"] / self._period)
