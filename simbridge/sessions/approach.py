"""Slowing down towards singularities and obstacles.

Each danger is a number that must not fall below a floor: a distance between two bodies, or the
smallest singular value of the Jacobian. A motion may take away at most the fraction
period/TIME_CONSTANT_S of what is left above the floor in each period. So the arm comes to rest at
the floor, and is free to leave: no threshold switches anything on or off. A motion along a floor
takes a little away now and then, by rounding and by the solver's error: near the floor, and less
and less towards it, every motion may take away a small fraction of its own size.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.robot.collision import MARGIN, CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.robot.robot import Robot
from simbridge.sessions.causes import LiveCause

# Time constant of the approach to a floor, s: at least this, ...
TIME_CONSTANT_S = 0.15
# ... and so many times that of braking from full speed.
BRAKING_FACTOR = 1.1
# The smallest singular value that is approached.
SINGULAR_FLOOR = 0.01
# Of a step's largest joint motion, rad, what it may take away, in m or of the singular value, ...
SLIDING_FRACTION = 0.02
# ... and how far above the floor all of that.
SLIDING_HEIGHT = 1e-3
# A slow-down is named from this factor downwards, ...
NAMED_FACTOR = 0.98
# ... and until it is above this one: the name must not flicker where the motion does not.
UNNAMED_FACTOR = 0.995
# What a number changes by without any approach, by rounding: an arm at a floor is free to move
# along it.
ROUNDING = 1e-9


class ApproachLimit:
    """Limits how fast an arm approaches singularities and obstacles.

    Args:
        robot: The arm.
        collisions: Its bodies and the obstacles.
        period: Control period, s.
        task: What the solver attains: "pose", "axis" or "position".
        braking: How long the fastest joint takes to brake, s.
    """

    def __init__(
        self,
        robot: Robot,
        collisions: CollisionModel,
        period: float,
        *,
        task: str,
        braking: float,
    ) -> None:
        self._robot = robot
        self._collisions = collisions
        # What a period may take away of what is left above a floor.
        self._fraction = period / max(TIME_CONSTANT_S, BRAKING_FACTOR * braking)
        self._data = robot.model.createData()
        self._tcp = robot.model.getFrameId("tcp")

        # How many of the task's directions the arm can move the tool in, and its Jacobian's rows.
        directions = movable_directions(robot.placements, robot.prismatic, task)
        self._direction_count = min(directions, robot.n)
        self._row_count = {"pose": 6, "axis": 5, "position": 3}[task]

        # The last joint positions of which the numbers were computed (n,), rad, and these.
        self._known_q: Array | None = None
        self._known_numbers = np.empty(0)
        # The dangers, by their index, that were named last.
        self._named: set[int] = set()

    @property
    def bodies(self) -> tuple[str, ...]:
        """The names that pairs of bodies have in causes."""
        return tuple(self._collisions.names(i) for i in range(self._collisions.pairs))

    def speed(
        self, q: Array, proposed: Array, *, cartesian: bool
    ) -> tuple[float, tuple[LiveCause, ...]]:
        """Return by which factor a step is to be shortened, 0 to 1, and why.

        Args:
            q: Joint positions before the step (n,), rad.
            proposed: Those after it (n,), rad.
            cartesian: Whether the motion is asked for as poses or twists: only then singularities
                count.
        """
        # The numbers of all dangers (K,), and their floors. The next step usually begins where this
        # one ends.
        before = self._numbers(q)
        after = self._numbers(proposed)
        self._known_q = proposed
        self._known_numbers = after
        floors = np.full(len(after), MARGIN)
        floors[-1] = SINGULAR_FLOOR

        # What the step takes away of each.
        lost = before - after
        if not cartesian:
            lost[-1] = 0.0

        # What it may take away: a fraction of what is above the floor, and some to slide along it.
        above = np.maximum(before - floors, 0.0)
        sliding = (
            SLIDING_FRACTION
            * float(np.abs(proposed - q).max())
            * np.minimum(above / SLIDING_HEIGHT, 1.0)
        )
        allowed = np.maximum(above - SLIDING_HEIGHT, 0.0) * self._fraction + sliding

        # By which factor each danger shortens the step; where nothing is lost there is no quotient.
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(lost > allowed + ROUNDING, allowed / lost, 1.0)

        # Name the dangers that shorten it, by two thresholds.
        slow = np.flatnonzero(factors < UNNAMED_FACTOR).tolist()
        self._named = {i for i in slow if factors[i] < NAMED_FACTOR or i in self._named}
        strongest_first = sorted(self._named, key=lambda i: factors[i])
        causes = tuple(self._cause(i, float(before[i]), q) for i in strongest_first)
        return float(factors.min()), causes

    def _numbers(self, q: Array) -> Array:
        """Return the distance of each pair of bodies, m, and last the smallest singular value."""
        if self._known_q is not None and np.array_equal(q, self._known_q):
            return self._known_numbers
        values, _ = self._singular_values(q)
        smallest = values[self._direction_count - 1] if self._direction_count else np.inf
        return np.append(self._collisions.distances(q), smallest)

    def _singular_values(self, q: Array) -> tuple[Array, Array]:
        """Return the Jacobian's singular values, and their directions in joint space in rows."""
        frame = pin.ReferenceFrame.LOCAL
        jacobian = pin.computeFrameJacobian(self._robot.model, self._data, q, self._tcp, frame)
        _, values, directions = np.linalg.svd(jacobian[: self._row_count])
        return values, directions

    def _cause(self, i: int, value: float, q: Array) -> LiveCause:
        """Return the cause for a danger, by its index and number; a singularity names its joint."""
        if i < self._collisions.pairs:
            return LiveCause("obstacle", self._collisions.names(i), value)
        values, directions = self._singular_values(q)
        direction = directions[min(self._direction_count, len(values)) - 1]
        joint = int(np.argmax(np.abs(direction)))
        return LiveCause("singularity", self._robot.joint_names[joint], value)
