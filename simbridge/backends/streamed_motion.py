"""The source of the setpoints that the servo loop sends, such as a plan that is replayed."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from simbridge.robot.pose import Array

# After a pause: how long the arm rests before it is led back, s. The controller may still be
# raising its speed.
REST_BEFORE_RETURN_S = 0.5
# Largest velocity of a joint in the motion that leads back, rad/s.
RETURN_SPEED = 0.2
# Largest acceleration of a joint in it, rad/s^2.
RETURN_ACCELERATION = 1.0
# Largest velocity and acceleration of the fifth-order polynomial s(u) = 10 u^3 - 15 u^4 + 6 u^5
# from 0 to 1, for u from 0 to 1: 15/8 and 10/sqrt(3).
PEAK_VELOCITY = 1.875
PEAK_ACCELERATION = 5.774


class StreamedMotion(Protocol):
    """A source of setpoints.

    Attributes:
        slows_in_gaps: Whether periods without a setpoint slow it down, as they do the arm.
        payload_may_change: Whether it goes on with another payload than at its beginning, as a
            gripper sets it.
    """

    slows_in_gaps: bool
    payload_may_change: bool

    def next(self, rate: float) -> tuple[Array, float]:
        """Return the setpoint (n,), rad, of the next period, and its position in the plan, periods.

        Args:
            rate: Fraction of a period by which the plan advances: 1 at full speed, 0 while the
                controller pauses.
        """
        ...

    def pause(self, q: Array) -> float:
        """Return the position in the plan, in periods, of a period in which the program is paused.

        Args:
            q: Joint positions at which the arm rests meanwhile (n,), rad.
        """
        ...

    def lead_back(self, q: Array, hold: Array, period: float) -> Array:
        """Return the setpoints (T, n), rad, that lead from a pause back to the motion.

        Args:
            q: Joint positions at which the arm was stopped (n,), rad.
            hold: Joint positions at which the motion was to be (n,), rad.
            period: Control period, s.
        """
        ...

    @property
    def finished(self) -> bool:
        """True once the last setpoint has been returned."""
        ...


class PlanReplay:
    """A plan that is replayed at the controller's speed.

    At full speed every setpoint is sent as planned, bit for bit; while the controller scales the
    speed, setpoints are interpolated linearly.

    Args:
        setpoints: Joint positions (T, n), rad, one a period.
    """

    slows_in_gaps = False
    payload_may_change = False

    def __init__(self, setpoints: Array) -> None:
        self._setpoints = setpoints
        # Position of the last setpoint in the plan, in periods.
        self._position = 0.0
        # Whether the first setpoint has been returned.
        self._has_begun = False
        self.finished = False

    def next(self, rate: float) -> tuple[Array, float]:
        # The first setpoint is returned as it is; from then on the position advances, to the end.
        if self._has_begun:
            self._position = min(self._position + rate, len(self._setpoints) - 1.0)
        self._has_begun = True

        # Between two setpoints, interpolate.
        index = int(self._position)
        fraction = self._position - index
        self.finished = index == len(self._setpoints) - 1

        setpoint = self._setpoints[index]
        if fraction:
            setpoint = setpoint + fraction * (self._setpoints[index + 1] - setpoint)
        return np.array(setpoint), self._position

    def pause(self, q: Array) -> float:
        return self._position

    def lead_back(self, q: Array, hold: Array, period: float) -> Array:
        return return_path(q, hold, period)


def return_path(begin: Array, end: Array, period: float) -> Array:
    """Return a slow motion (T, n), rad, from rest to rest, by a fifth-order polynomial of time.

    Args:
        begin: Joint positions (n,), rad, at which the arm first rests for `REST_BEFORE_RETURN_S`.
        end: Joint positions (n,), rad.
        period: Control period, s.
    """
    # The shortest duration, s, in which the joint that moves farthest keeps both limits.
    distance = float(np.abs(end - begin).max())
    duration = max(
        PEAK_VELOCITY * distance / RETURN_SPEED,
        math.sqrt(PEAK_ACCELERATION * distance / RETURN_ACCELERATION),
        period,
    )

    # The fraction of this duration that has passed, 0 to 1, at each period's end.
    samples = math.ceil((REST_BEFORE_RETURN_S + duration) / period)
    times = np.arange(1, samples + 1) * period
    u = np.clip((times - REST_BEFORE_RETURN_S) / duration, 0.0, 1.0)[:, np.newaxis]
    return begin + (end - begin) * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
