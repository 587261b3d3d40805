"""Watches a solver's solutions for a target that stays, until they get no nearer to it."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array

# An angle, rad, counts as much as this distance, m.
LEVER = 0.2
# A solution that comes no nearer to the target, by 1 %, within this time, s, is as near as it gets.
PATIENCE_S = 0.5
PROGRESS = 0.01
# A target that stays for this long, s, ...
SETTLING_S = 3.0
# ... and is then approached neither by this fraction nor by this much, m, within `PATIENCE_S`, is
# given up: solvers may creep for minutes, or wander about it.
MIN_APPROACH_FRACTION = 0.5
MIN_APPROACH = 1e-2
# Where the nearest solution is farther away than these, m and rad, the target is out of reach.
REACHED_DISTANCE = 1e-3
REACHED_ANGLE = 1e-2


class SolutionWatch:
    """Watches the solutions for one target.

    Attributes:
        final: The nearest solution (n,), rad, to a target that the solver need not try any more;
            None otherwise.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with another target."""
        self.final: Array | None = None

        # The nearest solution (n,), rad; how far it is, m (angles by their lever); when it came, s.
        self._nearest: Array | None = None
        self._distance = np.inf
        self._nearest_time = 0.0
        # How far it is without the angle, m; and in units of what counts as reached, by distance or
        # angle, whichever is more.
        self._translation = 0.0
        self._unreached = 0.0

        # When the first solution came, s.
        self._begin = 0.0
        # The distance, m, from which the approach is measured, and since when, s.
        self._mark = np.inf
        self._mark_time = 0.0
        # Whether the solutions get no nearer.
        self._is_stuck = False

    def follow(self, now: float, solution: Array, residual: tuple[float, float]) -> Array:
        """Take a solution; return it or, once it gets no nearer, the nearest.

        Args:
            now: s.
            solution: Joint positions (n,), rad.
            residual: How far it is from the target, m and rad.
        """
        translation, angle = residual
        distance = translation + LEVER * angle

        # Note the nearest solution so far, if it is clearly nearer than the last one.
        if self._nearest is None:
            self._begin = now
            self._mark_time = now
        if self._nearest is None or distance < (1.0 - PROGRESS) * self._distance:
            self._nearest = solution
            self._distance = distance
            self._nearest_time = now
            self._translation = translation
            self._unreached = max(translation / REACHED_DISTANCE, angle / REACHED_ANGLE)

        # Give up where the approach has been slow for long.
        if now - self._mark_time > PATIENCE_S:
            approach = self._mark - self._distance
            is_slow = approach < min(MIN_APPROACH_FRACTION * self._mark, MIN_APPROACH)
            gives_up = is_slow and now - self._begin > SETTLING_S
            self.final = self._nearest if gives_up else None
            self._mark = self._distance
            self._mark_time = now

        # Where no solution came nearer for a while, the nearest one holds.
        self._is_stuck = self.final is not None or now - self._nearest_time > PATIENCE_S
        return self._nearest if self._is_stuck else solution

    def out_of_reach(self) -> float | None:
        """Return how far the nearest solution is from a target that is out of reach, m.

        None where the target is not known to be out of reach.
        """
        return self._translation if self._is_stuck and self._unreached > 1.0 else None
