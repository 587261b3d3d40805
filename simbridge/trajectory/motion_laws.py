"""Motion laws: how far along a path a motion is at each instant.

A law is defined by its largest speed and fits every path: `law.over(length)` is the motion over
that length. It rises monotonically from 0 to `length`. Every law raises InvalidParameter for a
parameter out of its range.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.trajectory.parameters import check_positive


@dataclass(frozen=True)
class TravelProfile:
    """The arc length that a motion has covered over time.

    Attributes:
        duration: Duration of the motion, s.
        travelled: Returns the arc lengths (K,), m, at instants (K,), s, from 0 to the duration.
    """

    duration: float
    travelled: Callable[[Array], Array]


class MotionLaw(ABC):
    """A relation between arc length and time."""

    @abstractmethod
    def over(self, length: float) -> TravelProfile:
        """Return the profile of a motion over a length, m."""


@dataclass(frozen=True)
class ConstantSpeed(MotionLaw):
    """Constant speed, m/s; starts and stops are velocity jumps."""

    speed: float

    def __post_init__(self) -> None:
        check_positive(speed=self.speed)

    def over(self, length: float) -> TravelProfile:
        return TravelProfile(length / self.speed, lambda t: self.speed * t)


@dataclass(frozen=True)
class Trapezoid(MotionLaw):
    """Constant acceleration, m/s^2, up to a speed, m/s, and the same deceleration.

    Over a short length it is a triangle.
    """

    speed: float
    acceleration: float

    def __post_init__(self) -> None:
        check_positive(speed=self.speed, acceleration=self.acceleration)

    def over(self, length: float) -> TravelProfile:
        # On a short path the speed is not reached: the ramps meet in the middle.
        peak = min(self.speed, math.sqrt(self.acceleration * length))
        ramp = peak / self.acceleration
        duration = ramp + length / peak

        def travelled(t: Array) -> Array:
            # The distance on the rising ramp, at the constant speed, and on the falling ramp, each
            # as far as it has been travelled.
            rising = 0.5 * self.acceleration * np.minimum(t, ramp) ** 2
            level = peak * np.clip(t - ramp, 0.0, duration - 2.0 * ramp)
            remaining = np.maximum(duration - t, 0.0)
            falling = 0.5 * self.acceleration * (ramp**2 - np.minimum(remaining, ramp) ** 2)
            return rising + level + falling

        return TravelProfile(duration, travelled)


@dataclass(frozen=True)
class MinimumJerk(MotionLaw):
    """10 x^3 - 15 x^4 + 6 x^5: minimum jerk from rest to rest (Flash and Hogan 1985).

    The speed, m/s, is the largest, in the middle; 15/8 of the mean.
    """

    speed: float

    def __post_init__(self) -> None:
        check_positive(speed=self.speed)

    def over(self, length: float) -> TravelProfile:
        duration = 1.875 * length / self.speed

        def travelled(t: Array) -> Array:
            x = np.clip(t / duration, 0.0, 1.0)
            return length * x**3 * (10.0 + x * (6.0 * x - 15.0))

        return TravelProfile(duration, travelled)


@dataclass(frozen=True)
class SlowInSlowOut(MotionLaw):
    """An animator's slow-in and slow-out: speed in proportion to the distance from the nearer end.

    After J. Haynes, "Exploring Inverse Kinematics" (University of Bath, 2017), section 3.5, where
    the number of interpolated frames between two key frames is inversely proportional to the tool's
    distance from the target, and bounded to 30 to 100: a speed between 0.3 and 1 of the largest.
    Haynes uses the straight distance, so the arm also slows down wherever its path passes near an
    end; here the distance is along the path, and both ends are treated alike. In both, the motion
    begins and ends at the slowest speed, not at rest.

    Attributes:
        speed: The largest, m/s.
        slowest: Speed at the ends as a fraction of the largest, above 0 and at most 1.
        ramp: Fraction of the length over which the speed would rise from zero to the largest, above
            0, at most a half.
    """

    speed: float
    slowest: float = 0.3
    ramp: float = 0.5

    def __post_init__(self) -> None:
        check_positive(speed=self.speed, slowest=self.slowest, ramp=self.ramp)
        if self.slowest > 1.0:
            raise InvalidParameter("slowest", self.slowest, "at most 1")
        if self.ramp > 0.5:
            raise InvalidParameter("ramp", self.ramp, "at most 0.5: there is a ramp at each end")

    def over(self, length: float) -> TravelProfile:
        ramp_length = self.ramp * length
        slow_length = self.slowest * ramp_length
        slow_speed = self.slowest * self.speed
        growth = self.speed / ramp_length

        # The slowest speed up to `slow_end`, exponential from there to `ramp_end`, the largest up
        # to the middle, s.
        slow_end = slow_length / slow_speed
        ramp_end = slow_end - math.log(self.slowest) / growth
        middle = ramp_end + (0.5 * length - ramp_length) / self.speed

        def first_half(t: Array) -> Array:
            slow = slow_speed * t
            rising = slow_length * np.exp(growth * (np.clip(t, slow_end, ramp_end) - slow_end))
            level = ramp_length + self.speed * (t - ramp_end)
            return np.where(t < slow_end, slow, np.where(t < ramp_end, rising, level))

        def travelled(t: Array) -> Array:
            return np.where(t <= middle, first_half(t), length - first_half(2.0 * middle - t))

        return TravelProfile(2.0 * middle, travelled)
