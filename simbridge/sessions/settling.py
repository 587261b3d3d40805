"""Watches a solver's solutions for a target that stays, until they get no nearer to it."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array

# The lever of angles, m: a radian counts as much as this distance.
LEVER = 0.2
# Solutions that come no nearer to the target within this time, s, are as near as they get.
PATIENCE_S = 0.5
# A solution is nearer than another one if its distance is smaller by this fraction.
PROGRESS = 0.01
# The time, s, after which a target may be given up. Solvers may creep for minutes, or wander about
# the target.
SETTLING_S = 3.0
# The target is then given up if, within `PATIENCE_S`, the solutions approach it neither by this
# fraction of the distance ...
MIN_APPROACH_FRACTION = 0.5
# ... nor by this distance, m.
MIN_APPROACH = 1e-2
# A target is out of reach if the nearest solution is farther away than this, m, ...
REACHED_DISTANCE = 1e-3
# ... or turned from the target by more than this, rad.
REACHED_ANGLE = 1e-2


class SolutionWatch:
    """Watches the solutions for one target.

    Attributes:
        final: The nearest solution (n,), rad, to a target that the solver need no longer try; None
            otherwise.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with another target."""
        self.final: Array | None = None

        # The nearest solution so far (n,), rad; None before the first.
        self._nearest: Array | None = None
        # When the nearest solution came, s.
        self._nearest_time = 0.0
        # Distance of the nearest solution from the target, m, angles included by their lever.
        self._distance = np.inf
        # Distance (m) and angle (rad) of the nearest solution from the target.
        self._residual = (0.0, 0.0)
        # The larger ratio of these two to `REACHED_DISTANCE` and `REACHED_ANGLE`: the target counts
        # as reached up to 1.
        self._unreached = 0.0

        # When the first solution came, s.
        self._begin = 0.0
        # The distance at the last measurement of the approach, m.
        self._measured_distance = np.inf
        # When the approach was last measured, s.
        self._measured_at = 0.0
        # Whether the solutions come no nearer.
        self._is_stuck = False

    def follow(self, now: float, solution: Array, residual: tuple[float, float]) -> Array:
        """Note the next solution, and return the one to use.

        Args:
            now: The loop's clock, s.
            solution: Joint positions (n,), rad.
            residual: Distance (m) and angle (rad) of the solution from the target.

        Returns:
            The solution itself; or the nearest one so far, once solutions come no nearer (n,), rad.
        """
        translation, angle = residual
        distance = translation + LEVER * angle

        # Note the nearest solution so far, if it is clearly nearer than the last one.
        if self._nearest is None:
            self._begin = now
            self._measured_at = now
        if self._nearest is None or distance < (1.0 - PROGRESS) * self._distance:
            self._nearest = solution
            self._distance = distance
            self._nearest_time = now
            self._residual = residual
            self._unreached = max(translation / REACHED_DISTANCE, angle / REACHED_ANGLE)

        # Measure the approach at intervals; once it is slow, give the target up.
        if now - self._measured_at > PATIENCE_S:
            approach = self._measured_distance - self._distance
            slow_approach = min(MIN_APPROACH_FRACTION * self._measured_distance, MIN_APPROACH)
            is_slow = approach < slow_approach
            gives_up = is_slow and now - self._begin > SETTLING_S
            self.final = self._nearest if gives_up else None
            self._measured_distance = self._distance
            self._measured_at = now

        # If no solution has come nearer for a while, use the nearest one.
        self._is_stuck = self.final is not None or now - self._nearest_time > PATIENCE_S
        return self._nearest if self._is_stuck else solution

    def out_of_reach(self) -> tuple[float, float] | None:
        """Return how far the nearest solution is from a target out of reach, m and rad.

        None if the target is not known to be out of reach.
        """
        return self._residual if self._is_stuck and self._unreached > 1.0 else None
