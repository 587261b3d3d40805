"""The law by which a UR controller's movej turns two joint positions into joint targets.

The joints move in a straight line in joint space. The joint that turns farthest has a trapezoid of
speed: it accelerates, keeps its speed, and brakes, each at exactly the given values. Target
positions and velocities are the continuous trapezoid's at the end of each cycle.

The law was found in recordings of one real UR5 (8 ms cycle; 1.4 and 25 rad/s^2, 1.05 and 3.2
rad/s), which it repeats to the last recorded digit, 1e-6 rad: docs/validation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.servo.law import JointMotion
from simbridge.servo.speed_profile import SpeedProfile

# Fraction of a cycle up to which a move that ends after the end of a cycle ends with it.
EDGE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class MovejLaw:
    """The law of movej on a controller with one cycle.

    Attributes:
        cycle: Length of the controller's cycle, s.
        acceleration: Acceleration of the joint that turns farthest, rad/s^2.
        speed: Largest speed of the joint that turns farthest, rad/s.

    Raises:
        InvalidParameter: Acceleration or speed is not positive.
    """

    cycle: float
    acceleration: float
    speed: float

    def __post_init__(self) -> None:
        pace = [("acceleration", self.acceleration, "rad/s^2"), ("speed", self.speed, "rad/s")]
        for name, value, unit in pace:
            if not 0.0 < value < math.inf:
                raise InvalidParameter(f"movej {name}", f"{value:g} {unit}", "positive and finite")

    def follow(self, start: Array, goal: Array) -> JointMotion:
        """Predict the joint targets of a move that begins with a cycle.

        Args:
            start: Joint positions at rest (n,), rad.
            goal: Joint positions to move to (n,), rad.

        Returns:
            Joint targets at the end of each cycle, up to the first at rest at the goal. The
            accelerations are those at the end of the cycle, as a controller reports them.
        """
        start = np.asarray(start, dtype=float)
        travel = np.asarray(goal, dtype=float) - start
        length = float(np.abs(travel).max())
        profile = SpeedProfile(length, self.acceleration, self.speed)

        cycles = math.ceil(profile.duration / self.cycle - EDGE_TOLERANCE)
        times = self.cycle * np.arange(1, cycles + 1)
        # What each joint turns by while the one that turns farthest turns by 1 rad.
        direction = travel / length if length > 0.0 else np.zeros_like(travel)

        distances = np.array([profile.distance(time) for time in times])
        speeds = np.array([profile.speed(time) for time in times])
        accelerations = np.array([profile.acceleration(time) for time in times])
        return JointMotion(
            q=start + np.outer(distances, direction),
            qd=np.outer(speeds, direction),
            qdd=np.outer(accelerations, direction),
        )
