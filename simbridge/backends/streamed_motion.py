"""What the servo loop sends: a source of setpoints, or a plan; and the samples: states with what was sent."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package

# Back to the plan after a pause: how long the arm rests first (the controller may still be raising its speed), s, and
# then the limits of the way, rad/s and rad/s^2.
_REST, _SPEED, _ACCELERATION = 0.5, 0.2, 1.0

Record = Callable[[tuple[float, ...], tuple[Array, ...]], None]
_VECTORS = ("actual_q", "actual_qd", "effort", "target_q", "target_qd", "target_qdd")


class Motion(Protocol):
    """A source of setpoints.

    Attributes:
        slows_in_gaps: Whether periods without a setpoint slow it down, as they do the arm.
        payload_may_change: Whether it goes on with another payload than at its begin, as a gripper sets it.
    """

    slows_in_gaps: bool
    payload_may_change: bool

    def next(self, rate: float) -> tuple[Array, float]:
        """The setpoint (n,), rad, for the next period, and its position within the plan, in periods.

        Args:
            rate: Fraction of a period by which the plan advances: 1 at full speed, 0 while the controller pauses.
        """
        ...

    def paused(self, at: Array) -> float:
        """The position for a period in which the program is paused, with the arm at rest at joints (n,), rad."""
        ...

    def resumed(self, at: Array, hold: Array, period: float) -> Array:
        """The way (T, n), rad, one period (s) apart, from where the arm was stopped to where it is to be held."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the last setpoint has been returned."""
        ...


class Replay:
    """A plan: setpoints (T, n), rad, one period apart, replayed at the controller's speed.

    At full speed every setpoint is sent as planned, bit for bit; while the controller scales the speed, setpoints are
    interpolated linearly.
    """

    slows_in_gaps = False
    payload_may_change = False

    def __init__(self, setpoints: Array) -> None:
        self._setpoints = setpoints
        self._position = 0.0
        self._begun = False
        self.finished = False

    def next(self, rate: float) -> tuple[Array, float]:
        if self._begun:
            self._position = min(self._position + rate, len(self._setpoints) - 1.0)
        self._begun = True
        index = int(self._position)
        part = self._position - index
        self.finished = index == len(self._setpoints) - 1
        setpoint = self._setpoints[index]
        if part:
            setpoint = setpoint + part * (self._setpoints[index + 1] - setpoint)
        return np.array(setpoint), self._position

    def paused(self, at: Array) -> float:
        return self._position

    def resumed(self, at: Array, hold: Array, period: float) -> Array:
        return way_back(at, hold, period)


def way_back(begin: Array, end: Array, period: float) -> Array:
    """Joint positions (T, n), rad, from rest at one place to rest at another: a fifth-order polynomial of time."""
    distance = float(np.abs(end - begin).max())
    # Its largest velocity is 15/8 of the mean one, its largest acceleration 10/sqrt(3) d/t^2.
    duration = max(1.875 * distance / _SPEED, math.sqrt(5.774 * distance / _ACCELERATION), period)
    times = np.arange(1, math.ceil((_REST + duration) / period) + 1) * period
    u = np.clip((times - _REST) / duration, 0.0, 1.0)[:, np.newaxis]
    return begin + (end - begin) * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)


class Sent(NamedTuple):
    """A setpoint that was sent, and the controller's tick at which it is due."""

    due: int
    sequence: int
    position: float
    sent: float
    command: Array
    scaling: float


class Samples:
    """Matches the controller's states with the setpoints of a motion that were due at them.

    Args:
        record: Takes each sample (`StateRing.write`); None drops them.

    Attributes:
        waiting: Setpoints whose state is still expected.
        missed: Setpoints whose state never arrived.
    """

    def __init__(self, record: Record | None = None) -> None:
        self._record = record
        self.waiting: deque[Sent] = deque()
        self.missed = 0

    def match(self, tick: int, state: Package, arrival: float) -> None:
        """Take a state: its tick, and when it arrived, s."""
        while self.waiting and self.waiting[0].due <= tick:
            sent = self.waiting.popleft()
            if sent.due < tick:
                self.missed += 1
            elif self._record is not None:
                modes = (
                    float(state[name]) for name in ("robot_mode", "safety_mode", "runtime_state")
                )
                times = (
                    float(sent.sequence),
                    sent.position,
                    sent.sent,
                    arrival,
                    state["timestamp"],
                    sent.scaling,
                )
                self._record(
                    (*times, *modes), (*(np.array(state[name]) for name in _VECTORS), sent.command)
                )
