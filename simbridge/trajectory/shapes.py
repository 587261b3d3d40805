"""The trajectories of the paper's experiments: the square, its corners alone, and the step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory import paths
from simbridge.trajectory.checks import check_laps, check_not_negative, check_positive, vector
from simbridge.trajectory.orientation import TOOL_DOWN, ConstantOrientation
from simbridge.trajectory.timing import ConstantSpeed
from simbridge.trajectory.trace import trace
from simbridge.trajectory.trajectory import Trajectory

# In front of a UR10, at a comfortable height: the square of the paper's experiments C and D.
CENTRE = (0.75, 0.164, 0.30)

# Corners in units of half a side, in the order in which they are visited.
CORNERS = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])


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

    It starts at the corner with the least x and y and runs along +x, +y, -x and -y. Samples are due at k / rate; the
    last one is the start corner again, at the instant at which the laps are complete even if that is between two such
    instants. A corner that falls between two samples is cut by the interpolation, by less than speed / rate.

    Args:
        side: Length of an edge in m.
        centre: Centre (3,) in m, from base_link.
        speed: Speed along the edges in m/s.
        rate: Samples per second, in Hz.
        laps: How many times around.
        orientation: The constant orientation (4,), a unit quaternion.
        corner_radius: Of rounded corners, m. With it the square begins in the middle of the edge with the least y.

    Raises:
        InvalidParameter: A parameter is out of its range, or an edge would have no sample.
        InvalidTrajectory: The orientation is not a unit quaternion.
    """
    check_positive(side=side, speed=speed, rate=rate)
    check_laps(laps)
    check_not_negative(corner_radius=corner_radius)
    if corner_radius > 0.0:
        rounded = paths.rounded_square(side, centre, corner_radius)
        return trace(rounded, ConstantSpeed(speed), rate, ConstantOrientation(orientation), laps, source="square")
    if speed > rate * side:
        raise InvalidParameter("rate", rate, f"at least speed / side = {speed / side:g} Hz, a sample for every edge")
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

    Each of the 4 laps + 1 targets, from the start corner to the start corner again, lasts `dwell`; for the last one to
    last as well, a further sample repeats it at the end.

    Args:
        side: Length of an edge in m.
        centre: Centre (3,) in m, from base_link.
        dwell: How long each corner is held, in s.
        laps: How many times around.
        orientation: The constant orientation (4,), a unit quaternion.

    Raises:
        InvalidParameter: A parameter is out of its range.
        InvalidTrajectory: The orientation is not a unit quaternion.
    """
    check_positive(side=side, dwell=dwell)
    check_laps(laps)
    visits = np.append(np.arange(4 * laps + 1), 0)
    positions = _corner_points(side, centre)[visits % 4]
    return Trajectory(dwell * np.arange(len(visits), dtype=float), _oriented(positions, orientation), source="corners")


def step(
    start_pose: ArrayLike,
    offset: ArrayLike,
    rotation_vector: ArrayLike = (0.0, 0.0, 0.0),
    at: float = 0.5,
    duration: float = 4.0,
) -> Trajectory:
    """One jump from the start pose to an offset pose, for a zero-order hold (a linear hold makes it a ramp).

    Args:
        start_pose: The pose (7,) until the jump.
        offset: Translation (3,) of the jump in m, in the axes of base_link.
        rotation_vector: Rotation (3,) of the jump in rad, about the axes of base_link; the position is not turned.
        at: Instant of the jump in s.
        duration: Instant of the last sample in s.

    Raises:
        InvalidParameter: A parameter is out of its range.
        InvalidTrajectory: The start pose has no unit quaternion.
    """
    check_positive(at=at, duration=duration)
    if duration <= at:
        raise InvalidParameter("duration", duration, f"longer than the instant of the step, {at:g} s")
    start = vector("start pose", start_pose, 7)
    turned = pose.multiply(pose.quaternions(vector("rotation vector", rotation_vector, 3)), start[3:])
    end = np.concatenate([start[:3] + vector("offset", offset, 3), turned])
    return Trajectory(np.array([0.0, at, duration]), np.stack([start, end, end]), source="step")


def _corner_points(side: float, centre: ArrayLike) -> Array:
    return vector("centre", centre, 3) + 0.5 * side * CORNERS


def _oriented(positions: Array, orientation: ArrayLike) -> Array:
    return np.column_stack([positions, np.tile(vector("orientation", orientation, 4), (len(positions), 1))])


def _whole(values: ArrayLike) -> Array:
    """The values, those that miss a whole number by a rounding error made whole, so that corners are met exactly."""
    exact = np.asarray(values, dtype=float)
    nearest = np.round(exact)
    return np.where(np.abs(exact - nearest) < 1e-9, nearest, exact)
