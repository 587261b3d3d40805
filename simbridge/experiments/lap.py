"""Computes the errors of a solver on its second lap around the moving square."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simbridge.evaluation.metrics.path import contour_error
from simbridge.experiments.arm import rms
from simbridge.experiments.layout import RATE, MovingSquare
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import plain

# Largest delay that is tried, s.
MAX_DELAY_S = 0.8
# Step between the delays that are tried, s.
DELAY_RESOLUTION_S = 0.005


@dataclass(frozen=True)
class Lap:
    """The second lap of one solver with one gain.

    Attributes:
        solver: Name of the solver.
        kp: The gain, N/m; None for a solver without a gain.
        square: The target.
        joints: Joint positions of both laps (2T, n), rad.
        points: Position of the tool (T, 3), m.
        errors: Target minus tool (T, 6): translation in m, rotation vector in rad.
        predicted: RMS error that follows from the solver's lag at the target's speed, m; None if no
            lag is known.
    """

    solver: str
    kp: float | None
    square: MovingSquare
    joints: Array
    points: Array
    errors: Array
    predicted: float | None

    @property
    def name(self) -> str:
        """The solver's name, with the gain if it has one."""
        return self.solver if self.kp is None else f"{self.solver}, kp {plain(self.kp)}"

    @property
    def rms(self) -> float:
        """RMS translation error, m."""
        return rms(self.errors[:, :3])

    @property
    def largest(self) -> float:
        """Largest translation error, m."""
        return float(np.linalg.norm(self.errors[:, :3], axis=1).max())

    @property
    def corner_misses(self) -> Array:
        """Distance from each corner to the nearest position of the tool (4,), m."""
        offsets = self.points - self.square.corners[:, None]
        return np.linalg.norm(offsets, axis=2).min(axis=1)

    @property
    def corner_miss(self) -> float:
        """The largest distance of a corner from the nearest position of the tool, m."""
        return float(self.corner_misses.max())

    @property
    def path_error(self) -> float:
        """RMS contour error, m."""
        square = self.square
        instants = square.times[square.second_lap]
        contour = contour_error(square.times, square.poses[:, :3], instants, self.points)
        return rms(contour.distance[:, np.newaxis])

    @cached_property
    def delay(self) -> float:
        """The delay with which the target comes closest to the tool, s."""
        square = self.square
        instants = square.times[square.second_lap]
        delays = np.arange(0.0, MAX_DELAY_S, DELAY_RESOLUTION_S)

        residuals = []
        for delay in delays:
            shifted = pose.interpolate(square.times, square.poses, instants - delay)
            residuals.append(rms(self.points - shifted[:, :3]))
        return float(delays[np.argmin(residuals)])

    @property
    def acceleration(self) -> float:
        """RMS acceleration of all joints together, rad/s^2."""
        # The second difference, divided by the square of the period.
        second_differences = np.diff(self.joints, 2, axis=0)
        return rms(second_differences[self.square.second_lap] * RATE**2)
