"""The test cube after ISO 9283, with its inclined plane and the poses P1 to P5 (after secondary sources)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.ik.solver import Solver
from simbridge.robot.pose import Array
from simbridge.trajectory import paths
from simbridge.trajectory.checks import check_positive, vector
from simbridge.trajectory.orientation import TOOL_DOWN
from simbridge.trajectory.paths import Path
from simbridge.trajectory.timing import MotionLaw
from simbridge.trajectory.trace import concatenate, move
from simbridge.trajectory.trace import dwell as dwell_at
from simbridge.trajectory.trajectory import Trajectory

# In units of half an edge: C1 to C4 are the upper face, C5 to C8 lie below them.
_CORNERS = np.array(
    [
        [1.0, -1.0, 1.0],
        [1.0, 1.0, 1.0],
        [-1.0, 1.0, 1.0],
        [-1.0, -1.0, 1.0],
        [1.0, -1.0, -1.0],
        [1.0, 1.0, -1.0],
        [-1.0, 1.0, -1.0],
        [-1.0, -1.0, -1.0],
    ]
)
# The plane C1-C2-C7-C8 rises away from the base, from the lower near edge to the upper far one.
_PLANE = [0, 1, 6, 7]
# P2 to P5 lie this share of a diagonal in from its ends.
_INSET = 0.1


@dataclass(frozen=True)
class IsoCube:
    """A cube with edges along the axes of base_link, and the test poses and paths on its inclined plane.

    Attributes:
        centre: (3,) in m, from base_link.
        edge: m.

    Raises:
        InvalidParameter: One of them is out of its range.
    """

    centre: tuple[float, float, float]
    edge: float

    def __post_init__(self) -> None:
        check_positive(edge=self.edge)
        vector("centre", self.centre, 3)

    @cached_property
    def corners(self) -> Array:
        """C1 to C8 (8, 3), m."""
        return np.asarray(self.centre) + 0.5 * self.edge * _CORNERS

    @cached_property
    def normal(self) -> Array:
        """The unit normal (3,) of the inclined plane, upwards."""
        return np.array([-np.sqrt(0.5), 0.0, np.sqrt(0.5)])

    @cached_property
    def points(self) -> Array:
        """P1 to P5 (5, 3) in m: the centre, and four points on the plane's diagonals, 10 % of them from the corners.

        P2 to P5 stand by C1, C2, C7 and C8.
        """
        centre = np.asarray(self.centre, dtype=float)
        outer = centre + (1.0 - 2.0 * _INSET) * (self.corners[_PLANE] - centre)
        return np.concatenate([centre[None], outer])

    def poses(self, orientation: ArrayLike = TOOL_DOWN) -> Array:
        """P1 to P5 as poses (5, 7), all with one orientation (4,)."""
        return np.column_stack([self.points, np.tile(vector("orientation", orientation, 4), (5, 1))])

    def line(self) -> Path:
        """The diagonal from P2 to P4."""
        return paths.line(self.points[1], self.points[3])

    def rectangle(self) -> Path:
        """P2, P3, P4, P5 and back to P2."""
        return paths.polyline(list(self.points[1:]), closed=True)

    def circle(self, share: float = 0.8) -> Path:
        """A circle around P1 in the inclined plane, with a diameter of `share` of the edge."""
        check_positive(share=share)
        return paths.circle(0.5 * share * self.edge, self.centre, self.normal)

    def cycle(
        self, law: MotionLaw, dwell: float, rate: float = 100.0, orientation: ArrayLike = TOOL_DOWN, laps: int = 1
    ) -> Trajectory:
        """P5 to P4 to P3 to P2 to P1, over and over, with a stop at each: the cycle for pose accuracy.

        It begins at P1 and stops there first.

        Args:
            law: For the moves between two poses.
            dwell: How long it stops at each pose, s.
            rate: Samples per second, in Hz.
            orientation: (4,), a unit quaternion.
            laps: How many cycles.
        """
        poses = self.poses(orientation)
        parts = [dwell_at(poses[0], dwell)]
        for begin, end in [(0, 4), (4, 3), (3, 2), (2, 1), (1, 0)] * laps:
            parts += [move(poses[begin], poses[end], law, rate), dwell_at(poses[end], dwell)]
        return concatenate(*parts, source="ISO 9283 cycle")


def largest_cube(
    solver: Solver, centre: ArrayLike, orientation: ArrayLike = TOOL_DOWN, tolerance: float = 0.005
) -> IsoCube:
    """The largest cube around a point all of whose corners can be attained.

    Only reach counts, neither collisions nor what lies between the corners: have the plan checked.

    Args:
        solver: Its `solve_each` judges.
        centre: (3,) in m, from base_link.
        orientation: Of the tool at every corner (4,).
        tolerance: To which the edge is found, m.

    Raises:
        InvalidParameter: Not even a cube of that size can be attained.
    """
    middle = tuple(vector("centre", centre, 3).tolist())
    check_positive(tolerance=tolerance)

    def fits(edge: float) -> bool:
        corners = IsoCube(middle, edge).corners
        poses = np.column_stack([corners, np.tile(vector("orientation", orientation, 4), (8, 1))])
        # One after the other: the first that cannot be attained, which costs the most, ends it.
        return all(bool(solver.solve_each(target[None], solver.robot.home)[2][0]) for target in poses)

    if not fits(tolerance):
        raise InvalidParameter("centre", middle, "within reach, with room around it")
    low, high = tolerance, 2.0 * solver.robot.reach
    while high - low > tolerance:
        edge = 0.5 * (low + high)
        low, high = (edge, high) if fits(edge) else (low, edge)
    return IsoCube(middle, low)
