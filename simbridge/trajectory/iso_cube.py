"""The test cube after ISO 9283: its test poses, its paths, and the largest one within reach.

Every function raises InvalidParameter for a parameter out of its range, and InvalidTrajectory for a
quaternion that is not of unit length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.robot.workspace import TOOL_DOWN
from simbridge.trajectory import paths
from simbridge.trajectory.motion_laws import MotionLaw
from simbridge.trajectory.parameters import check_positive, vector
from simbridge.trajectory.paths import GeometricPath
from simbridge.trajectory.shapes import with_orientation
from simbridge.trajectory.trace import concatenate, move
from simbridge.trajectory.trace import dwell as dwell_at
from simbridge.trajectory.trajectory import Trajectory

# Corners in units of half an edge: C1 to C4 are the upper face, C5 to C8 are below them.
UNIT_CORNERS = np.array(
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
PLANE_CORNERS = [0, 1, 6, 7]
# Distance of P2 to P5 from the ends of their diagonal, as a fraction of it.
INSET = 0.1
# The moves of the cycle for pose accuracy, by index of the poses P1 to P5.
CYCLE = [(0, 4), (4, 3), (3, 2), (2, 1), (1, 0)]


@dataclass(frozen=True)
class IsoCube:
    """The test cube after ISO 9283 (from secondary sources): poses and paths on its inclined plane.

    Attributes:
        centre: Centre (3,) in base_link, m.
        edge: Length of its edges, m, which are along the axes of base_link.
    """

    centre: tuple[float, float, float]
    edge: float

    def __post_init__(self) -> None:
        check_positive(edge=self.edge)
        vector("centre", self.centre, 3)

    @cached_property
    def corners(self) -> Array:
        """C1 to C8 (8, 3), m."""
        return np.asarray(self.centre) + 0.5 * self.edge * UNIT_CORNERS

    @cached_property
    def normal(self) -> Array:
        """The unit normal (3,) of the inclined plane, upwards."""
        return np.array([-np.sqrt(0.5), 0.0, np.sqrt(0.5)])

    @cached_property
    def points(self) -> Array:
        """P1 to P5 (5, 3) in m: the centre, and a point next to each end of the plane's diagonals.

        P2 to P5 are next to C1, C2, C7 and C8, at 10 % of the diagonal.
        """
        centre = np.asarray(self.centre, dtype=float)
        outer = centre + (1.0 - 2.0 * INSET) * (self.corners[PLANE_CORNERS] - centre)
        return np.concatenate([centre[None], outer])

    def poses(self, orientation: ArrayLike = TOOL_DOWN) -> Array:
        """Return P1 to P5 as poses (5, 7), all with one orientation (4,)."""
        return with_orientation(self.points, orientation)

    def line(self) -> GeometricPath:
        """Return the diagonal from P2 to P4."""
        return paths.line(self.points[1], self.points[3])

    def rectangle(self) -> GeometricPath:
        """Return the path P2, P3, P4, P5 and back to P2."""
        return paths.polyline(list(self.points[1:]), closed=True)

    def circle(self, share: float = 0.8) -> GeometricPath:
        """Return a circle around P1 in the inclined plane; its diameter is `share` of the edge."""
        check_positive(share=share)
        return paths.circle(0.5 * share * self.edge, self.centre, self.normal)

    def cycle(
        self,
        law: MotionLaw,
        dwell: float,
        rate: float = 100.0,
        orientation: ArrayLike = TOOL_DOWN,
        laps: int = 1,
    ) -> Trajectory:
        """Return the cycle for pose accuracy: P1, P5, P4, P3, P2 and P1, with a stop at each.

        Args:
            law: The motion law between two poses.
            dwell: Duration of each stop, s.
            rate: The rate of the samples, Hz.
            orientation: The tool's (4,).
            laps: Number of cycles.
        """
        poses = self.poses(orientation)
        parts = [dwell_at(poses[0], dwell)]
        for begin, end in CYCLE * laps:
            parts.append(move(poses[begin], poses[end], law, rate=rate))
            parts.append(dwell_at(poses[end], dwell))
        return concatenate(*parts, source="ISO 9283 cycle")


class PoseSolver(Protocol):
    """A solver that can say whether a pose is attained."""

    robot: Robot

    def solve_each(self, targets: ArrayLike, q0: ArrayLike) -> tuple[Array, Array, Any]:
        """Solve each target (K, 7) from q0 (n,).

        Returns:
            Joints, errors, and whether each target was attained (K,).
        """


def largest_cube(
    solver: PoseSolver,
    centre: ArrayLike,
    orientation: ArrayLike = TOOL_DOWN,
    tolerance: float = 0.005,
) -> IsoCube:
    """Return the largest cube around a point whose corners can all be attained.

    The edge is found by bisection. Only the corners are solved: a motion between them may still
    collide or leave a joint's range, which the plan check finds.

    Args:
        solver: The solver that decides whether a corner can be attained.
        centre: Centre of the cube (3,) in base_link, m.
        orientation: Orientation of the tool at every corner, a quaternion (4,).
        tolerance: How much longer the edge might be at most, m.

    Raises:
        InvalidParameter: The corners of a cube with edges as long as the tolerance cannot be
            attained.
    """
    x, y, z = vector("centre", centre, 3).tolist()
    check_positive(tolerance=tolerance)

    def is_attainable(edge: float) -> bool:
        corner_poses = with_orientation(IsoCube((x, y, z), edge).corners, orientation)
        # A corner out of reach takes much longer to solve than others: the first one decides.
        for corner_pose in corner_poses:
            _, _, attained = solver.solve_each(corner_pose[None], solver.robot.home)
            if not attained[0]:
                return False
        return True

    if not is_attainable(tolerance):
        raise InvalidParameter("centre", (x, y, z), "within reach, with some clearance around it")

    # The edge of a cube that can be attained, and that of one that cannot, m: the edges of a cube
    # within reach are shorter than twice the arm.
    attainable = tolerance
    too_large = 2.0 * solver.robot.arm_length
    while too_large - attainable > tolerance:
        edge = 0.5 * (attainable + too_large)
        if is_attainable(edge):
            attainable = edge
        else:
            too_large = edge
    return IsoCube((x, y, z), attainable)
