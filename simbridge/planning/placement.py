"""Placements of a recording that bring all of its motion in reach of an arm."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from simbridge.errors import PlanRefused
from simbridge.ik.solver import Solver
from simbridge.planning.reach import spread_evenly
from simbridge.robot import pose
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Trajectory

# What is said before a placement that was searched for.
PLACEMENT_IS_A_GUESS = "The nearest reachable placement (a guess, not taken from your cell):"

# Samples that are solved for each candidate, and for each placement that is suggested.
CANDIDATE_SAMPLES = 12
PLACEMENT_SAMPLES = 200
# Samples that are solved together: one out of reach takes as long as a hundred in reach.
SAMPLES_PER_CHUNK = 4

# Rotations about z, in the order in which they are tried, rad.
ROTATIONS = tuple(math.radians(degrees) for degrees in (0, 45, -45, 90, -90, 135, -135, 180))
# Where the middle of the motion is tried: distances from the first joint, as parts of the reach.
DISTANCES = (0.55, 0.45, 0.65)
# Heights of it, as parts of the reach.
HEIGHTS = (0.2, 0.35, 0.05, 0.5)

# Shifts that are shortened for each rotation.
MAX_SHORTENED = 3
# Shortened and whole shifts that are suggested for each rotation, each.
MAX_SUGGESTED = 2
# Halvings of a shift, to shorten it until the motion is just in reach.
HALVINGS = 5
# A shortened shift stays by this fraction of the whole one inside of the reach.
MARGIN_FRACTION = 0.1
# Smallest distance from the vertical axis that has a direction, m.
LEAST_RADIUS = 1e-9
# Number of decimals of a length in m that is rounded to whole mm.
DECIMALS_OF_MM = 3


class AttainableSpace(NamedTuple):
    """The space of poses that an arm can attain without a collision.

    Attributes:
        solver: Decides what can be reached (`reaching_solver`).
        collisions: The arm's links and what they must not touch.
    """

    solver: Solver
    collisions: CollisionModel

    def holds(self, poses: Array, rotation: Array, shift: Array) -> bool:
        """Return whether the arm attains all of the poses, once they are placed.

        Args:
            poses: Poses (T, 7) in the recording's frame.
            rotation: Quaternion (4,) of the placement.
            shift: Translation of the placement (3,), m.
        """
        robot = self.solver.robot
        placed_poses = pose.compose(np.concatenate([shift, rotation]), poses)

        # Solve in chunks, to end soon if a pose is out of reach.
        start = robot.home
        postures = []
        for k in range(0, len(placed_poses), SAMPLES_PER_CHUNK):
            chunk = placed_poses[k : k + SAMPLES_PER_CHUNK]
            q, _, converged = self.solver.solve_each(chunk, start)
            if not np.all(converged):
                return False
            if (q < robot.position_min).any() or (q > robot.position_max).any():
                return False
            start = q[-1]
            postures.append(q)

        # Each posture is tested by itself. The period only sets the time named in the error, which
        # is not shown.
        try:
            self.collisions.check(np.concatenate(postures), robot.period)
        except PlanRefused:
            return False
        return True

    def candidate_middles(self, middle: Array) -> list[Array]:
        """Return where the middle of a motion could be, so that the arm attains most rotations.

        Args:
            middle: Present middle (3,), m; its direction from the first joint is kept.

        Returns:
            Positions (3,) in base_link, m; the last is home's.
        """
        robot = self.solver.robot
        home = tool_path(robot, robot.home[None])[0, :3]
        has_direction = np.hypot(*middle[:2]) > LEAST_RADIUS
        x, y = middle[:2] if has_direction else home[:2]
        outwards = np.array([x, y]) / max(math.hypot(x, y), LEAST_RADIUS)

        middles = []
        for distance, height in itertools.product(DISTANCES, HEIGHTS):
            middles.append(robot.arm_length * np.array([*(distance * outwards), height]))
        return [*middles, home]


def find_placements(trajectory: Trajectory, space: AttainableSpace) -> Iterator[Array]:
    """Yield placements (7,) that bring all of a motion in reach, the smallest rotation first."""
    count = len(trajectory.poses)
    few_poses = trajectory.poses[spread_evenly(count, CANDIDATE_SAMPLES)]
    many_poses = trajectory.poses[spread_evenly(count, PLACEMENT_SAMPLES)]
    middle = 0.5 * (few_poses[:, :3].min(axis=0) + few_poses[:, :3].max(axis=0))

    for angle in ROTATIONS:
        rotation = np.array([0.0, 0.0, math.sin(angle / 2.0), math.cos(angle / 2.0)])
        turned_middle = pose.rotate(rotation, middle)

        # Shifts that bring the middle to where the arm attains most rotations.
        shifts = [candidate - turned_middle for candidate in space.candidate_middles(turned_middle)]
        full_shifts = [shift for shift in shifts if space.holds(few_poses, rotation, shift)]
        full_shifts = full_shifts[:MAX_SHORTENED]

        # A part of such a shift may suffice.
        short_shifts = [_shorten(space, few_poses, rotation, shift) for shift in full_shifts]
        short_shifts.sort(key=np.linalg.norm)

        # Close to the edge of the reach joints are fast. If the caller refuses the shortest shifts
        # for that, a full one may do. The few poses may have missed one that is out of reach, so
        # more are checked here.
        for shift in (*short_shifts[:MAX_SUGGESTED], *full_shifts[:MAX_SUGGESTED]):
            rounded = np.round(shift, DECIMALS_OF_MM)
            if space.holds(many_poses, rotation, rounded):
                yield np.concatenate([rounded, rotation])


def flag_of(placement: Array | tuple[float, ...]) -> str:
    """Return the values of --transform: x y z in m and the quaternion, with seven decimals."""
    # Adding zero turns -0 into 0.
    return " ".join(f"{round(float(value), 7) + 0.0:.7g}" for value in placement)


def _shorten(space: AttainableSpace, poses: Array, rotation: Array, shift: Array) -> Array:
    """Return the shortest part of a shift (3,), m, that brings poses in reach, with a margin."""
    too_short = 0.0
    sufficient = 1.0
    for _ in range(HALVINGS):
        fraction = 0.5 * (too_short + sufficient)
        if space.holds(poses, rotation, fraction * shift):
            sufficient = fraction
        else:
            too_short = fraction
    return min(sufficient + MARGIN_FRACTION, 1.0) * shift
