"""A simulated controller and connection, on a simulated clock; it records what is sent."""

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


class VirtualClock:
    """A clock of the host that advances only during waits.

    Args:
        lateness: How much longer than requested each wait takes, s; 0 by default.
    """

    def __init__(self, lateness: Callable[[], float] = lambda: 0.0) -> None:
        self.now = 0.0
        self._lateness = lateness

    def monotonic(self) -> float:
        """s."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds + self._lateness()


class OnTheWire(NamedTuple):
    """A setpoint that was sent.

    Attributes:
        time: By the host's clock, s.
        tick: The controller's newest tick at that time: the setpoint is in force at the next one.
        setpoint: Joint positions (n,), rad.
    """

    time: float
    tick: int
    setpoint: Array


class FakeLink:
    """A controller whose arm is at the newest setpoint at each tick, or obeys servoj. See `ControllerLink`.

    Args:
        clock: The host's.
        q: Initial joint positions (n,), rad.
        period: Control period, s.
        drift: Fraction by which the controller's clock is faster than the host's.
        delay: Transport delay of the state of a tick, s; None if it never arrives. States keep their order.
        changes: Fields of the state that change at a tick.
        corrupted: Fields of the state of one tick that are not true: only that state has them.
        freezes: How long the controller's clock stands still before a tick, s.
        law: Of servoj, if the arm obeys it.
        lag: How many cycles an arm that obeys servoj gets its commands late.

    Attributes:
        sent: The setpoints that were sent, in order.
        arrivals: When each state arrived, by the host's clock, s.
        motions: Of an arm that obeys servoj, after each tick since the first setpoint.
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
        self._joints, self._lag = None if law is None else ServojJoints(law, q), lag
        self._clock, self._period = clock, period
        self._host_period = period / (1.0 + drift)
        self._delay, self._changes, self._freezes = delay, changes or {}, freezes or {}
        self._corrupted = corrupted or {}
        self._fields: Package = {
            "actual_q": tuple(np.asarray(q, dtype=float).tolist()),
            "actual_qd": (0.0,) * len(q),
            "effort": (0.0,) * len(q),
            "speed_scaling": 1.0,
            "target_speed_fraction": 1.0,
            "robot_mode": 7,
            "safety_mode": 1,
            "safety_status_bits": 1,
            "runtime_state": 2,
        }
        self._tick, self._next_tick_at = 0, 0.0
        self._travelling: deque[tuple[float, Package]] = deque()
        self._last_arrival = 0.0
        self.sent: list[OnTheWire] = []
        self.arrivals: list[float] = []
        self.motions: list[JointMotion] = []

    def states(self, timeout: float) -> list[Package]:
        """See `ControllerLink`."""
        end = self._clock.now + timeout
        while not self._travelling and self._next_tick_at <= end:
            self._make_tick()
        first = self._travelling[0][0] if self._travelling else end
        self._clock.sleep(max(min(first, end) - self._clock.now, 0.0))
        self._run_until(self._clock.now)
        arrived = []
        while self._travelling and self._travelling[0][0] <= self._clock.now:
            arrival, state = self._travelling.popleft()
            self.arrivals.append(arrival)
            arrived.append(state)
        return arrived

    def servo(self, q: Array) -> bool:
        """See `ControllerLink`. Setpoints are accepted while the program runs, or is paused at the pendant."""
        self._run_until(self._clock.now)
        self.sent.append(OnTheWire(self._clock.now, self._tick - 1, np.array(q)))
        return find_stop(self._fields) is None

    def keep_alive(self) -> None:
        """See `ControllerLink`."""
        self._run_until(self._clock.now)

    def _run_until(self, time: float) -> None:
        while self._next_tick_at <= time:
            self._make_tick()

    def _make_tick(self) -> None:
        tick, at = self._tick, self._next_tick_at
        playing = self._fields["runtime_state"] == 2 and find_stop(self._fields) is None
        if self.sent and playing:
            q = self.sent[-1].setpoint
            if self._joints is not None:
                arrived = (
                    sent.setpoint for sent in reversed(self.sent) if sent.tick + self._lag < tick
                )
                self._joints.command(next(arrived, self._joints.q))
                q = self._joints.step()
                self.motions.append(self._joints.motion)
            self._fields["actual_q"] = tuple(q.tolist())
        elif self._joints is not None:
            # The controller brakes the arm, here at once.
            self._joints.reset(self._joints.q, np.zeros_like(self._joints.q))
        self._fields.update(self._changes.get(tick, {}))
        q = self._fields["actual_q"]
        delay = self._delay(tick)
        if delay is not None:
            self._last_arrival = max(self._last_arrival, at + delay)
            still = (0.0,) * len(q)
            state = {**self._fields, "timestamp": tick * self._period, "target_q": q}
            state |= {"target_qd": still, "target_qdd": still}
            if self._joints is not None:
                names = ("target_q", "target_qd", "target_qdd")
                state |= dict(zip(names, map(tuple, self._joints.motion), strict=True))
            state |= self._corrupted.get(tick, {})
            self._travelling.append((self._last_arrival, state))
        self._tick = tick + 1
        self._next_tick_at = at + self._host_period + self._freezes.get(tick + 1, 0.0)
