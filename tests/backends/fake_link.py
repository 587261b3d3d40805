"""A simulated controller and its connection, on a simulated clock; it records what is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.joints import ServojJoints
from simbridge.servo.law import JointMotion, ServojLaw
from simbridge.ur.arm_state import find_stop
from simbridge.ur.rtde import Package

# Values of fields of a controller's state.
ROBOT_RUNNING = 7
SAFETY_NORMAL = 1
PROGRAM_PLAYING = 2


class VirtualClock:
    """A clock of the host that advances only during waits.

    Args:
        lateness: Returns how much longer than requested the next wait takes, s; 0 by default.

    Attributes:
        now: The current time, s.
    """

    def __init__(self, lateness: Callable[[], float] = lambda: 0.0) -> None:
        self.now = 0.0
        self._lateness = lateness

    def monotonic(self) -> float:
        """Return the current time, s."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds + self._lateness()


class SentSetpoint(NamedTuple):
    """A setpoint that was sent.

    Attributes:
        time: Host time, s.
        tick: The controller's newest tick at that time: the setpoint is in force at the next one.
        setpoint: Joint positions (n,), rad.
    """

    time: float
    tick: int
    setpoint: Array


class StateOnItsWay(NamedTuple):
    """A state that the controller has sent.

    Attributes:
        arrival: Host time at which it arrives, s.
        fields: Its fields by name.
    """

    arrival: float
    fields: Package


class FakeLink:
    """A controller whose arm is at the newest setpoint at each tick, or obeys servoj.

    It implements `ServoLink`.

    Args:
        clock: The host's clock.
        q: Initial joint positions (n,), rad.
        period: Control period, s.
        drift: Fraction by which the controller's clock is faster than the host's.
        delay: Returns the transport delay of a tick's state, s, or None if it never arrives.
            States keep their order.
        changes: Fields of the state that change at a tick and keep their values.
        corrupted: Fields of the state of one tick that are not true: only that state has them.
        freezes: Durations for which the controller's clock stands still before a tick, s.
        law: The law of servoj, if the arm obeys it.
        lag: Number of cycles by which an arm that obeys servoj gets its commands late.

    Attributes:
        sent: The setpoints that were sent, in order.
        arrivals: Host times at which the states arrived, s.
        motions: The motion of an arm that obeys servoj, after each tick since the first setpoint.
    """

    def __init__(
        self,
        clock: VirtualClock,
        q: Array,
        period: float,
        *,
        drift: float = 0.0,
        delay: Callable[[int], float | None] = lambda tick: 0.0,
        changes: Mapping[int, Mapping[str, Any]] | None = None,
        corrupted: Mapping[int, Mapping[str, Any]] | None = None,
        freezes: Mapping[int, float] | None = None,
        law: ServojLaw | None = None,
        lag: int = 0,
    ) -> None:
        self._clock = clock
        self._period = period
        # The controller's period by the host's clock, s.
        self._host_period = period / (1.0 + drift)
        self._delay = delay
        self._changes = changes or {}
        self._corrupted = corrupted or {}
        self._freezes = freezes or {}
        self._joints = None if law is None else ServojJoints(law, q)
        self._lag = lag

        at_rest = (0.0,) * len(q)
        self._fields: Package = {
            "actual_q": tuple(np.asarray(q, dtype=float).tolist()),
            "actual_qd": at_rest,
            "effort": at_rest,
            "speed_scaling": 1.0,
            "target_speed_fraction": 1.0,
            "robot_mode": ROBOT_RUNNING,
            "safety_mode": SAFETY_NORMAL,
            "safety_status_bits": 1,
            "runtime_state": PROGRAM_PLAYING,
        }

        # The number of the next tick, and its time by the host's clock, s.
        self._tick = 0
        self._next_tick_at = 0.0
        self._travelling: deque[StateOnItsWay] = deque()
        self._last_arrival = 0.0

        self.sent: list[SentSetpoint] = []
        self.arrivals: list[float] = []
        self.motions: list[JointMotion] = []

    def states(self, timeout: float) -> list[Package]:
        """Wait for the next state, and return those that have arrived. See `ServoLink`."""
        # Wait until the next state arrives, or the time is over.
        end = self._clock.now + timeout
        while not self._travelling and self._next_tick_at <= end:
            self._make_tick()
        next_arrival = self._travelling[0].arrival if self._travelling else end
        self._clock.sleep(max(min(next_arrival, end) - self._clock.now, 0.0))

        # The wait may have taken longer: other states may have arrived meanwhile.
        self._run_until(self._clock.now)
        states = []
        while self._travelling and self._travelling[0].arrival <= self._clock.now:
            state = self._travelling.popleft()
            self.arrivals.append(state.arrival)
            states.append(state.fields)

        return states

    def servo(self, q: Array) -> bool:
        """Send a setpoint, and return whether it was accepted. See `ServoLink`.

        Setpoints are accepted while the program runs, or is paused at the pendant.
        """
        self._run_until(self._clock.now)
        self.sent.append(SentSetpoint(self._clock.now, self._tick - 1, np.array(q)))
        return find_stop(self._fields) is None

    def keep_alive(self) -> None:
        """Feed the script's watchdog without a setpoint. See `ServoLink`."""
        self._run_until(self._clock.now)

    def _run_until(self, time: float) -> None:
        """Make the ticks up to a time of the host's clock, s."""
        while self._next_tick_at <= time:
            self._make_tick()

    def _make_tick(self) -> None:
        """Move the arm, send the state of this tick, and schedule the next one."""
        tick = self._tick
        time = self._next_tick_at
        self._move_arm(tick)
        self._fields.update(self._changes.get(tick, {}))
        self._send_state(tick, time)
        self._tick = tick + 1
        self._next_tick_at = time + self._host_period + self._freezes.get(tick + 1, 0.0)

    def _move_arm(self, tick: int) -> None:
        """Move the arm to where it is at this tick."""
        playing = self._fields["runtime_state"] == PROGRAM_PLAYING
        if self.sent and playing and find_stop(self._fields) is None:
            if self._joints is None:
                q = self.sent[-1].setpoint
            else:
                self._joints.command(self._command_in_force(tick))
                q = self._joints.step()
                self.motions.append(self._joints.motion)
            self._fields["actual_q"] = tuple(q.tolist())
        elif self._joints is not None:
            # The controller brakes the arm, here at once.
            self._joints.reset(self._joints.q, np.zeros_like(self._joints.q))

    def _command_in_force(self, tick: int) -> Array:
        """Return the newest setpoint that has reached servoj at this tick, or where the arm is."""
        assert self._joints is not None
        for sent in reversed(self.sent):
            if sent.tick + self._lag < tick:
                return sent.setpoint
        return self._joints.q

    def _send_state(self, tick: int, time: float) -> None:
        """Send the state of this tick, unless it is lost.

        Args:
            tick: The tick.
            time: Its time by the host's clock, s.
        """
        delay = self._delay(tick)
        if delay is None:
            return

        q = self._fields["actual_q"]
        at_rest = (0.0,) * len(q)
        state = {
            **self._fields,
            "timestamp": tick * self._period,
            "target_q": q,
            "target_qd": at_rest,
            "target_qdd": at_rest,
        }
        if self._joints is not None:
            motion = self._joints.motion
            state["target_q"] = tuple(motion.q)
            state["target_qd"] = tuple(motion.qd)
            state["target_qdd"] = tuple(motion.qdd)
        state |= self._corrupted.get(tick, {})

        self._last_arrival = max(self._last_arrival, time + delay)
        self._travelling.append(StateOnItsWay(self._last_arrival, state))
