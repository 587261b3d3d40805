"""Ready-made trajectories: the paper's square, corners and step, and pick and place.

Every function raises InvalidParameter for a parameter out of its range, and InvalidTrajectory for a
quaternion that is not of unit length.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.workspace import CENTRE, TOOL_DOWN
from simbridge.trajectory.motion_laws import ConstantSpeed, MotionLaw
from simbridge.trajectory.parameters import (
    check_laps,
    check_not_negative,
    check_positive,
    vector,
)
from simbridge.trajectory.paths import rounded_square
from simbridge.trajectory.trace import concatenate, move, trace
from simbridge.trajectory.trace import dwell as dwell_at
from simbridge.trajectory.trajectory import Trajectory

# Corners in units of half a side, in the order in which they are visited.
CORNERS = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
# A number that differs from a whole one by less is that one.
ROUNDING = 1e-9


def square(
    side: float = 0.4,
    centre: ArrayLike = CENTRE,
    speed: float = 0.2,
    rate: float = 100.0,
    laps: int = 1,
    orientation: ArrayLike = TOOL_DOWN,
    corner_radius: float = 0.0,
) -> Trajectory:
    """Return a square in the xy plane at constant speed, densely sampled (paper, experiment D).

    It starts at the corner with the smallest x and y and runs along +x, +y, -x and -y. Sample k is
    at k / rate. The motion ends where it started, when the laps are complete: the last sample has
    that instant, which need not be a multiple of 1 / rate. The samples are joined by straight
    lines, so that a corner between two samples is cut off, by less than speed / rate.

    Args:
        side: Length of an edge, m.
        centre: Centre (3,) in base_link, m.
        speed: Speed along the edges, m/s.
        rate: Samples per second, Hz, so that every edge has at least one.
        laps: Number of laps.
        orientation: A unit quaternion (4,), constant.
        corner_radius: Radius of rounded corners, m. Then the square begins in the middle of the
            edge with the smallest y.
    """
    check_positive(side=side, speed=speed, rate=rate)
    check_laps(laps)
    check_not_negative(corner_radius=corner_radius)
    if corner_radius > 0.0:
        return trace(
            rounded_square(side, centre, corner_radius),
            ConstantSpeed(speed),
            rate=rate,
            orientation=orientation,
            laps=laps,
            source="square",
        )
    if speed > rate * side:
        needed = f"at least speed / side = {speed / side:g} Hz: every edge needs a sample"
        raise InvalidParameter("rate", rate, needed)

    # The samples, by number; the last one need not be whole.
    end = float(_round_to_whole(4 * laps * side * rate / speed))
    samples = np.append(np.arange(math.ceil(end), dtype=float), end)

    # The path so far, in edges.
    travelled = _round_to_whole(samples * speed / (rate * side))
    travelled[-1] = 4 * laps
    edge = np.floor(travelled).astype(int)

    corner_points = _corner_points(side, centre)
    begin = corner_points[edge % 4]
    next_corner = corner_points[(edge + 1) % 4]
    positions = begin + (travelled - edge)[:, None] * (next_corner - begin)
    return Trajectory(samples / rate, with_orientation(positions, orientation), source="square")


def corners(
    side: float = 0.4,
    centre: ArrayLike = CENTRE,
    dwell: float = 4.0,
    laps: int = 1,
    orientation: ArrayLike = TOOL_DOWN,
) -> Trajectory:
    """Return the corners of the square alone: sparse targets for a zero-order hold (experiment C).

    Each of the 4 laps + 1 targets, from the start corner back to it, lasts `dwell` s: a further
    sample repeats the last one at its end. Side, centre and orientation are as for `square`.
    """
    check_positive(side=side, dwell=dwell)
    check_laps(laps)

    visits = np.append(np.arange(4 * laps + 1), 0)
    positions = _corner_points(side, centre)[visits % 4]
    times = dwell * np.arange(len(visits), dtype=float)
    return Trajectory(times, with_orientation(positions, orientation), source="corners")


def step(
    start_pose: ArrayLike,
    offset: ArrayLike,
    rotation_vector: ArrayLike = (0.0, 0.0, 0.0),
    at: float = 0.5,
    duration: float = 4.0,
) -> Trajectory:
    """Return one jump from the start pose (7,) to an offset pose, for a zero-order hold.

    A linear hold makes it a ramp.

    Args:
        start_pose: The pose (7,) until the jump.
        offset: Translation (3,) of the jump in m, in the axes of base_link.
        rotation_vector: Rotation (3,) of the jump in rad, about the axes of base_link; the position
            is not rotated.
        at: Instant of the jump, s.
        duration: Instant of the last sample, s.
    """
    check_positive(at=at, duration=duration)
    if duration <= at:
        raise InvalidParameter("duration", duration, f"longer than the time of the step, {at:g} s")

    start = vector("start pose", start_pose, 7)
    rotation = pose.quaternions(vector("rotation vector", rotation_vector, 3))
    end_quaternion = pose.multiply(rotation, start[3:])
    end = np.concatenate([start[:3] + vector("offset", offset, 3), end_quaternion])
    return Trajectory(np.array([0.0, at, duration]), np.stack([start, end, end]), source="step")


def pick_and_place(
    pick: ArrayLike,
    place: ArrayLike,
    lift: float,
    law: MotionLaw,
    dwell: float = 0.5,
    rate: float = 100.0,
) -> Trajectory:
    """Return one cycle from above the pick pose, to both poses, and back.

    Args:
        pick: Pose (7,) where the gripper closes.
        place: Pose (7,) where it opens, not above or below `pick`; the tool turns on the way.
        lift: How far above both it travels, along z of base_link, m.
        law: The motion law of each of the six moves.
        dwell: Stop at each of the two, s.
        rate: The rate of the samples, Hz.
    """
    check_positive(lift=lift, dwell=dwell)
    up = np.array([0.0, 0.0, lift, 0.0, 0.0, 0.0, 0.0])
    pick = vector("pick", pick, 7)
    place = vector("place", place, 7)
    above_pick = pick + up
    above_place = place + up

    return concatenate(
        move(above_pick, pick, law, rate=rate),
        dwell_at(pick, dwell),
        move(pick, above_pick, law, rate=rate),
        move(above_pick, above_place, law, rate=rate),
        move(above_place, place, law, rate=rate),
        dwell_at(place, dwell),
        move(place, above_place, law, rate=rate),
        move(above_place, above_pick, law, rate=rate),
        source="pick and place",
    )


def with_orientation(positions: Array, orientation: ArrayLike) -> Array:
    """Return positions (K, 3), m, as poses (K, 7) with one orientation (4,)."""
    quaternion = vector("orientation", orientation, 4)
    return np.column_stack([positions, np.tile(quaternion, (len(positions), 1))])


def _corner_points(side: float, centre: ArrayLike) -> Array:
    """Return the corners of the square (4, 3), m."""
    return vector("centre", centre, 3) + 0.5 * side * CORNERS


def _round_to_whole(values: ArrayLike) -> Array:
    """Return the values, rounded where they are whole but for a rounding error.

    So corners are exact.
    """
    exact = np.asarray(values, dtype=float)
    nearest = np.round(exact)
    return np.where(np.abs(exact - nearest) < ROUNDING, nearest, exact)
