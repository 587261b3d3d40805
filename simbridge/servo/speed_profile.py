"""The speed along a path over time: ramps of constant acceleration, and constant speed.

movej follows it exactly (`simbridge.servo.movej`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

# A ramp within a path may have no length; dividing by this instead gives no infinity, rad or m.
SHORTEST_RAMP = 1e-300


class Phase(NamedTuple):
    """A part of a profile with constant acceleration.

    Attributes:
        begin: Time at which it begins, s.
        distance: Distance covered by then, rad or m.
        speed: Speed at its beginning, rad/s or m/s.
        acceleration: Constant acceleration, rad/s^2 or m/s^2.
    """

    begin: float
    distance: float
    speed: float
    acceleration: float


class SpeedProfile:
    """Distance over time along a path, to rest at its end.

    Args:
        length: Length of the path, rad or m.
        acceleration: Largest acceleration, rad/s^2 or m/s^2.
        speed: Largest speed, above zero, rad/s or m/s.
        duration: Duration, s; above zero it takes precedence, and the speed follows from it.
        max_speed: Upper limit of the speed whatever the duration.
        begin_speed: The speed at the start, rad/s or m/s; not negative.
        through: The distance up to which it does not brake; it then brakes evenly to the end.

    Attributes:
        length: Length of the path, rad or m.
        duration: Time from start to rest, s.
    """

    def __init__(
        self,
        length: float,
        acceleration: float,
        speed: float,
        *,
        duration: float = 0.0,
        max_speed: float = math.inf,
        begin_speed: float = 0.0,
        through: float = 0.0,
    ) -> None:
        self.length = length
        self.duration = 0.0
        self._phases: list[Phase] = []
        if length <= 0.0:
            return

        if duration > 0.0:
            speed, acceleration = _pace_for_duration(length, acceleration, duration)
        speed = min(speed, max_speed)

        # Where braking begins, and the speed between the ramps. This speed is above zero, as the
        # largest speed is.
        if through <= 0.0:
            # The move must be able to brake, right from the start if it began too fast.
            attainable = math.sqrt(length * acceleration + 0.5 * begin_speed**2)
            peak = min(speed, attainable)
            braking = max(acceleration, 0.5 * max(peak, begin_speed) ** 2 / length)
            peak = begin_speed if braking > acceleration else peak
            through = length - 0.5 * peak**2 / braking
        else:
            # Over the distance `through` it approaches the largest speed as far as the acceleration
            # allows, from below or, if it began faster, from above.
            change = 2.0 * acceleration * through
            if speed > begin_speed:
                peak = min(math.sqrt(begin_speed**2 + change), speed)
            else:
                peak = max(math.sqrt(max(0.0, begin_speed**2 - change)), speed)

        # Accelerate, or slow down, to the peak; keep it; brake.
        ramp = abs(peak - begin_speed) / acceleration
        self._add_phase(ramp, begin_speed, math.copysign(acceleration, peak - begin_speed))
        constant = max(0.0, through - 0.5 * (begin_speed + peak) * ramp) / peak
        self._add_phase(constant, peak, 0.0)
        braking_distance = length - through
        deceleration = 0.5 * peak**2 / max(braking_distance, SHORTEST_RAMP)
        self._add_phase(2.0 * braking_distance / peak, peak, -deceleration)

    def _add_phase(self, duration: float, speed: float, acceleration: float) -> None:
        """Append a phase, if it has a duration, s."""
        if duration > 0.0:
            distance, _ = self._evaluate(self.duration)
            self._phases.append(Phase(self.duration, distance, speed, acceleration))
            self.duration += duration

    def _phase(self, time: float) -> Phase | None:
        """Return the phase under way after `time` s; None before the first."""
        for phase in reversed(self._phases):
            if time >= phase.begin:
                return phase
        return None

    def _evaluate(self, time: float) -> tuple[float, float]:
        """Return distance and speed after `time` s, as the phase of that time has them."""
        phase = self._phase(time)
        if phase is None:
            return 0.0, 0.0
        t = time - phase.begin
        distance = phase.distance + t * (phase.speed + 0.5 * t * phase.acceleration)
        return distance, phase.speed + t * phase.acceleration

    def distance(self, time: float) -> float:
        """Return the distance covered after `time` s, rad or m."""
        if time >= self.duration:
            return self.length
        distance, _ = self._evaluate(time)
        return min(distance, self.length)

    def speed(self, time: float) -> float:
        """Return the speed after `time` s, rad/s or m/s."""
        if time >= self.duration:
            return 0.0
        _, speed = self._evaluate(time)
        return speed

    def acceleration(self, time: float) -> float:
        """Return the acceleration of the phase under way after `time` s, rad/s^2 or m/s^2.

        The last phase lasts on: a controller's target_qdd is still that of the brakes in the cycle
        in which the arm comes to rest.
        """
        phase = self._phase(time)
        return 0.0 if phase is None else phase.acceleration


def _pace_for_duration(length: float, acceleration: float, duration: float) -> tuple[float, float]:
    """Return speed and acceleration for a path that takes a duration, s.

    Half the time to accelerate, half to brake, unless the acceleration allows less.
    """
    # The speed is the smaller root of v^2 - a T v + a L = 0, written without the difference of two
    # numbers that are nearly equal if the path is short.
    speed_without_braking = acceleration * duration
    root = math.sqrt(max(0.0, speed_without_braking**2 - 4.0 * acceleration * length))
    speed = 2.0 * acceleration * length / (speed_without_braking + root)
    return speed, max(acceleration, 4.0 * length / duration**2)
