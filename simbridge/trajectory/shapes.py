"""Ready-made trajectories: the paper's square, corners and step, pick and place, and the test cube after ISO 9283.

Every function raises InvalidParameter for a parameter out of its range, and InvalidTrajectory for a quaternion that is
not of unit length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.robot.workspace import CENTRE, TOOL_DOWN
from simbridge.trajectory import paths
from simbridge.trajectory.paths import Path, check_laps, check_not_negative, check_positive, vector
from simbridge.trajectory.trace import (
    ConstantOrientation,
    ConstantSpeed,
    MotionLaw,
    concatenate,
    move,
    trace,
)
from simbridge.trajectory.trace import dwell as dwell_at
from simbridge.trajectory.trajectory import Trajectory

# Corners in units of half a side, in the order in which they are visited.
CORNERS = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])

# The test cube's corners in units of half an edge: C1 to C4 are the upper face, C5 to C8 are below them.
_CUBE_CORNERS = np.array(
    [
        [x, y, z]
        for z in (1.0, -1.0)
        for x, y in ((1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0))
    ]
)
# The plane C1-C2-C7-C8 rises away from the base, from the lower near edge to the upper far one.
_CUBE_PLANE = [0, 1, 6, 7]
# Distance of P2 to P5 from the ends of their diagonal, as a share of it.
_CUBE_INSET = 0.1


def square(
    side: float = 0.4,
    centre: ArrayLike = CENTRE,
    speed: float = 0.2,
    rate: float = 100.0,
    laps: int = 1,
    orientation: ArrayLike = TOOL_DOWN,
    corner_radius: float = 0.0,
) -> Trajectory:
    """A square in the xy plane at constant speed, densely sampled (experiment D of the paper).

    It starts at the corner with the smallest x and y and runs along +x, +y, -x and -y. Samples are at k / rate; the
    last one is the start corner again at the instant the laps are complete, also between two such instants. A corner
    between two samples is cut by the interpolation, by less than speed / rate.

    Args:
        side: Length of an edge, m.
        centre: (3,) in base_link, m.
        speed: Along the edges, m/s.
        rate: Of samples, Hz; at least one on every edge.
        laps: Number of laps.
        orientation: A unit quaternion (4,), constant.
        corner_radius: Of rounded corners, m. Then the square begins in the middle of the edge with the smallest y.
    """
    check_positive(side=side, speed=speed, rate=rate)
    check_laps(laps)
    check_not_negative(corner_radius=corner_radius)
    if corner_radius > 0.0:
        rounded = paths.rounded_square(side, centre, corner_radius)
        return trace(
            rounded,
            ConstantSpeed(speed),
            rate,
            ConstantOrientation(orientation),
            laps,
            source="square",
        )
    if speed > rate * side:
        raise InvalidParameter(
            "rate", rate, f"at least speed / side = {speed / side:g} Hz, a sample on every edge"
        )
    last = float(_whole(4 * laps * side * rate / speed))
    k = np.append(np.arange(math.ceil(last), dtype=float), last)
    travelled = _whole(k * speed / (rate * side))
    travelled[-1] = 4 * laps
    edge = np.floor(travelled).astype(int)
    points = _corner_points(side, centre)
    begin, end = points[edge % 4], points[(edge + 1) % 4]
    positions = begin + (travelled - edge)[:, None] * (end - begin)
    return Trajectory(k / rate, _oriented(positions, orientation), source="square")


def corners(
    side: float = 0.4,
    centre: ArrayLike = CENTRE,
    dwell: float = 4.0,
    laps: int = 1,
    orientation: ArrayLike = TOOL_DOWN,
) -> Trajectory:
    """The corners of the square alone, one every `dwell` seconds: sparse targets for a zero-order hold (experiment C).

    Each of the 4 laps + 1 targets, from the start corner back to it, lasts `dwell` s: a further sample repeats the last
    one at its end. Side, centre and orientation are as for `square`.
    """
    check_positive(side=side, dwell=dwell)
    check_laps(laps)
    visits = np.append(np.arange(4 * laps + 1), 0)
    positions = _corner_points(side, centre)[visits % 4]
    return Trajectory(
        dwell * np.arange(len(visits), dtype=float),
        _oriented(positions, orientation),
        source="corners",
    )


def step(
    start_pose: ArrayLike,
    offset: ArrayLike,
    rotation_vector: ArrayLike = (0.0, 0.0, 0.0),
    at: float = 0.5,
    duration: float = 4.0,
) -> Trajectory:
    """One jump from the start pose (7,) to an offset pose, for a zero-order hold (a linear hold makes it a ramp).

    Args:
        start_pose: The pose (7,) until the jump.
        offset: Translation (3,) of the jump in m, in the axes of base_link.
        rotation_vector: Rotation (3,) of the jump in rad, about the axes of base_link; the position is not rotated.
        at: Instant of the jump, s.
        duration: Instant of the last sample, s.
    """
    check_positive(at=at, duration=duration)
    if duration <= at:
        raise InvalidParameter(
            "duration", duration, f"longer than the instant of the step, {at:g} s"
        )
    start = vector("start pose", start_pose, 7)
    turned = pose.multiply(
        pose.quaternions(vector("rotation vector", rotation_vector, 3)), start[3:]
    )
    end = np.concatenate([start[:3] + vector("offset", offset, 3), turned])
    return Trajectory(np.array([0.0, at, duration]), np.stack([start, end, end]), source="step")


def pick_and_place(
    pick: ArrayLike,
    place: ArrayLike,
    lift: float,
    law: MotionLaw,
    dwell: float = 0.5,
    rate: float = 100.0,
) -> Trajectory:
    """One cycle from above the pick pose, to both poses, and back.

    Args:
        pick, place: Poses (7,) where the gripper closes and opens, one not above the other; the tool turns on the way.
        lift: How far above both it travels, along z of base_link, m.
        law: For each of the six moves.
        dwell: Stop at each of the two, s.
        rate: Of samples, Hz.
    """
    check_positive(lift=lift, dwell=dwell)
    up = np.array([0.0, 0.0, lift, 0.0, 0.0, 0.0, 0.0])
    at_pick, at_place = vector("pick", pick, 7), vector("place", place, 7)
    above_pick, above_place = at_pick + up, at_place + up
    return concatenate(
        move(above_pick, at_pick, law, rate),
        dwell_at(at_pick, dwell),
        move(at_pick, above_pick, law, rate),
        move(above_pick, above_place, law, rate),
        move(above_place, at_place, law, rate),
        dwell_at(at_place, dwell),
        move(at_place, above_place, law, rate),
        move(above_place, above_pick, law, rate),
        source="pick and place",
    )


@dataclass(frozen=True)
class IsoCube:
    """The test cube after ISO 9283 (from secondary sources): test poses and paths on its inclined plane.

    Its edges, of this length in m, are along the axes of base_link, in which its centre (3,) is given in m.
    """

    centre: tuple[float, float, float]
    edge: float

    def __post_init__(self) -> None:
        check_positive(edge=self.edge)
        vector("centre", self.centre, 3)

    @cached_property
    def corners(self) -> Array:
        """C1 to C8 (8, 3), m."""
        return np.asarray(self.centre) + 0.5 * self.edge * _CUBE_CORNERS

    @cached_property
    def normal(self) -> Array:
        """The unit normal (3,) of the inclined plane, upwards."""
        return np.array([-np.sqrt(0.5), 0.0, np.sqrt(0.5)])

    @cached_property
    def points(self) -> Array:
        """P1 to P5 (5, 3) in m: the centre, and four points on the plane's diagonals, 10 % of them from the corners.

        P2 to P5 are next to C1, C2, C7 and C8.
        """
        centre = np.asarray(self.centre, dtype=float)
        outer = centre + (1.0 - 2.0 * _CUBE_INSET) * (self.corners[_CUBE_PLANE] - centre)
        return np.concatenate([centre[None], outer])

    def poses(self, orientation: ArrayLike = TOOL_DOWN) -> Array:
        """P1 to P5 as poses (5, 7), all with one orientation (4,)."""
        return _oriented(self.points, orientation)

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
        self,
        law: MotionLaw,
        dwell: float,
        rate: float = 100.0,
        orientation: ArrayLike = TOOL_DOWN,
        laps: int = 1,
    ) -> Trajectory:
        """The cycle for pose accuracy: from a stop at P1 to P5, P4, P3, P2 and P1, repeated, with a stop at each.

        The stops are of `dwell` s; the law is for the moves between two poses, the rate in Hz.
        """
        poses = self.poses(orientation)
        parts = [dwell_at(poses[0], dwell)]
        for begin, end in [(0, 4), (4, 3), (3, 2), (2, 1), (1, 0)] * laps:
            parts += [move(poses[begin], poses[end], law, rate), dwell_at(poses[end], dwell)]
        return concatenate(*parts, source="ISO 9283 cycle")


class PoseSolver(Protocol):
    robot: Robot

    def solve_each(self, targets: ArrayLike, q0: ArrayLike) -> tuple[Array, Array, Any]:
        """Joints, errors and whether each target (K, 7) was attained (K,), each solved from q0 (n,)."""


def largest_cube(
    solver: PoseSolver,
    centre: ArrayLike,
    orientation: ArrayLike = TOOL_DOWN,
    tolerance: float = 0.005,
) -> IsoCube:
    """The largest cube around a point all of whose corners can be attained.

    Only reach counts, neither collisions nor the paths between the corners: check the plan.

    Args:
        solver: Decides what can be attained.
        centre: (3,) in base_link, m.
        orientation: Of the tool at every corner (4,).
        tolerance: Of the edge, m; InvalidParameter if not even a cube of that size can be attained.
    """
    middle = tuple(vector("centre", centre, 3).tolist())
    check_positive(tolerance=tolerance)

    def fits(edge: float) -> bool:
        corners = IsoCube(middle, edge).corners
        poses = np.column_stack([corners, np.tile(vector("orientation", orientation, 4), (8, 1))])
        # One after the other: the first that cannot be attained, which takes the longest, is the last.
        return all(
            bool(solver.solve_each(target[None], solver.robot.home)[2][0]) for target in poses
        )

    if not fits(tolerance):
        raise InvalidParameter("centre", middle, "within reach, with room around it")
    low, high = tolerance, 2.0 * solver.robot.reach
    while high - low > tolerance:
        edge = 0.5 * (low + high)
        low, high = (edge, high) if fits(edge) else (low, edge)
    return IsoCube(middle, low)


def _corner_points(side: float, centre: ArrayLike) -> Array:
    return vector("centre", centre, 3) + 0.5 * side * CORNERS


def _oriented(positions: Array, orientation: ArrayLike) -> Array:
    return np.column_stack(
        [positions, np.tile(vector("orientation", orientation, 4), (len(positions), 1))]
    )


def _whole(values: ArrayLike) -> Array:
    """The values, rounded where they differ from a whole number by a rounding error, so that corners are exact."""
    exact = np.asarray(values, dtype=float)
    nearest = np.round(exact)
    return np.where(np.abs(exact - nearest) < 1e-9, nearest, exact)
