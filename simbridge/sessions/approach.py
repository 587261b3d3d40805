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

# Shortest time constant of the approach to a floor, s.
TIME_CONSTANT_S = 0.15
# The time constant is at least this many times the time of braking from full speed.
BRAKING_FACTOR = 1.1
# The smallest singular value that is approached.
SINGULAR_FLOOR = 0.01
# Along a floor a step may lower a number by this fraction of its largest joint motion: m, or units
# of the singular value, per rad.
SLIDING_FRACTION = 0.02
# Lower than this above the floor, m or units of the singular value, a step may lower it by less, in
# proportion to the height.
SLIDING_HEIGHT = 1e-3
# A danger that shortens the step below this factor is named, until it no longer shortens it: the
# name must not flicker.
NAMED_FACTOR = 0.9999
# A number changes by up to this through rounding alone: an arm at a floor is free to move along it.
ROUNDING = 1e-9


class ApproachLimit:
    """Limits how fast an arm approaches singularities and obstacles.

    Args:
        robot: The arm.
        collisions: The arm's bodies and the obstacles.
        period: Control period, s.
        task: What the solver attains: "pose", "axis" or "position".
        braking_time: How long the fastest joint takes to brake from its limit, s.
    """

    def __init__(
        self,
        robot: Robot,
        collisions: CollisionModel,
        period: float,
        *,
        task: str,
        braking_time: float,
    ) -> None:
        self._robot = robot
        self._collisions = collisions
        # Fraction of a number's height above its floor that a period may take away.
        self._fraction = period / max(TIME_CONSTANT_S, BRAKING_FACTOR * braking_time)
        self._data = robot.model.createData()
        self._tcp = robot.model.getFrameId("tcp")

        # Number of the task's directions in which the arm can move the tool.
        directions = movable_directions(robot.placements, robot.prismatic, task)
        self._direction_count = min(directions, robot.n)
        # Number of the Jacobian's rows, in the tool's frame, that concern the task. An axis is
        # indifferent to turns about the tool's z, the last row.
        self._row_count = {"pose": 6, "axis": 5, "position": 3}[task]

        # The joint positions (n,), rad, whose numbers were computed last; None before.
        self._known_q: Array | None = None
        # These numbers (K,).
        self._known_numbers = np.empty(0)
        # Indices of the dangers that were named last.
        self._named: set[int] = set()

    @property
    def bodies(self) -> tuple[str, ...]:
        """The names that pairs of bodies have in causes."""
        return tuple(self._collisions.names(i) for i in range(self._collisions.pairs))

    def speed(
        self, q: Array, proposed: Array, *, cartesian: bool
    ) -> tuple[float, tuple[LiveCause, ...]]:
        """Return the factor by which a step is to be shortened, 0 to 1, and the causes.

        Args:
            q: Joint positions before the step (n,), rad.
            proposed: Joint positions after it (n,), rad.
            cartesian: Whether the motion is asked for as poses or twists: only then singularities
                count.
        """
        # The numbers of all dangers (K,) before and after the step. Keep the latter: the next step
        # usually begins where this one ends.
        before = self._numbers(q)
        after = self._numbers(proposed)
        self._known_q = proposed
        self._known_numbers = after

        # By how much the step lowers each number. The last one is the singular value.
        decrease = before - after
        if not cartesian:
            decrease[-1] = 0.0

        # How far each number is above its floor.
        floors = np.full(len(after), MARGIN)
        floors[-1] = SINGULAR_FLOOR
        height = np.maximum(before - floors, 0.0)

        # The step may lower it by a fraction of this height, and by a little to slide along the
        # floor.
        largest_motion = float(np.abs(proposed - q).max())
        sliding = SLIDING_FRACTION * largest_motion * np.minimum(height / SLIDING_HEIGHT, 1.0)
        allowed = np.maximum(height - SLIDING_HEIGHT, 0.0) * self._fraction + sliding

        # The factor by which each danger shortens the step. A quotient by 0 is not used.
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(decrease > allowed + ROUNDING, allowed / decrease, 1.0)

        # Name the dangers that shorten the step; those that only just do if they were named before.
        named = set()
        for i in np.flatnonzero(factors < 1.0).tolist():
            if factors[i] < NAMED_FACTOR or i in self._named:
                named.add(i)
        self._named = named

        strongest_first = sorted(self._named, key=lambda i: factors[i])
        causes = tuple(self._cause(i, float(before[i]), q) for i in strongest_first)
        return float(factors.min()), causes

    def _numbers(self, q: Array) -> Array:
        """Return the distance of each pair of bodies, m, and last the smallest singular value."""
        if self._known_q is not None and np.array_equal(q, self._known_q):
            return self._known_numbers

        # Singular values come in descending order: beyond those of the directions in which the arm
        # can move at all, they are always 0.
        smallest = np.inf
        if self._direction_count:
            values = np.linalg.svd(self._task_jacobian(q), compute_uv=False)
            smallest = values[self._direction_count - 1]
        return np.append(self._collisions.distances(q), smallest)

    def _task_jacobian(self, q: Array) -> Array:
        """Return the rows of the Jacobian (R, n) that concern the task, in the tool's frame."""
        frame = pin.ReferenceFrame.LOCAL
        jacobian = pin.computeFrameJacobian(self._robot.model, self._data, q, self._tcp, frame)
        rows: Array = jacobian[: self._row_count]
        return rows

    def _cause(self, i: int, value: float, q: Array) -> LiveCause:
        """Return the cause that names a danger.

        Args:
            i: Index of the danger: of the pair of bodies, or the last one, the singularity.
            value: Distance of the bodies, m, or the smallest singular value.
            q: Joint positions (n,), rad.
        """
        if i < self._collisions.pairs:
            return LiveCause.of("obstacle", self._collisions.names(i), value)

        # A singularity names the joint that moves most in the direction that it takes away. The
        # directions in joint space are the rows of the third factor.
        _, values, directions = np.linalg.svd(self._task_jacobian(q))
        direction = directions[min(self._direction_count, len(values)) - 1]
        joint = int(np.argmax(np.abs(direction)))
        return LiveCause.of("singularity", self._robot.joint_names[joint], value)
