"""Trajectories made of paths, motion laws and orientations; parts joined to longer ones.

Everything here raises InvalidParameter for a parameter out of its range, and InvalidTrajectory for
a quaternion that is not of unit length.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.workspace import TOOL_DOWN
from simbridge.trajectory.motion_laws import MotionLaw
from simbridge.trajectory.orientations import ConstantOrientation, Orientation
from simbridge.trajectory.parameters import check_laps, check_positive, vector
from simbridge.trajectory.paths import GeometricPath, line
from simbridge.trajectory.trajectory import Trajectory

# An end that differs from a sample by less is that sample, in samples.
ROUNDING = 1e-9
# How far apart the end of a part and the start of the next may be, m and rad.
JOIN_TOLERANCE = 1e-6


def trace(
    path: GeometricPath,
    law: MotionLaw,
    rate: float = 100.0,
    orientation: Orientation | ArrayLike = TOOL_DOWN,
    laps: int = 1,
    source: str = "path",
) -> Trajectory:
    """Sample a path with a motion law and an orientation.

    Samples are at k / rate; the last one is the end of the path at the instant it is reached, also
    between two such instants. A corner between two samples is cut by the interpolation.

    Args:
        path: The path of one lap.
        law: The motion over the whole length of all laps.
        rate: The rate of the samples, Hz.
        orientation: Orientation of the tool; a quaternion (4,) is a constant one.
        laps: Number of laps; more than one need a closed path.
        source: Name of the trajectory, for messages.
    """
    check_positive(rate=rate)
    check_laps(laps)
    if laps > 1 and not path.closed:
        raise InvalidParameter("laps", laps, "1: the path does not end at its start")
    if not isinstance(orientation, Orientation):
        orientation = ConstantOrientation(orientation)

    motion = law.over(laps * path.length)
    periods = motion.duration * rate
    times = np.arange(math.ceil(periods - ROUNDING), dtype=float) / rate
    times = np.append(times, motion.duration)

    # The arc length since the start, and within the lap; the last sample is the end of the last
    # lap.
    travelled = np.clip(motion.travelled(times), 0.0, laps * path.length)
    travelled[-1] = laps * path.length
    complete_laps = np.minimum(np.floor(travelled / path.length), laps - 1)
    in_lap = travelled - path.length * complete_laps

    positions = path.position(in_lap)
    if path.closed:
        positions[-1] = path.position(np.zeros(1))[0]
    rotations = orientation.of(positions, path.tangent(in_lap))
    return Trajectory(times, np.column_stack([positions, rotations]), source=source)


def move(
    start: ArrayLike, end: ArrayLike, law: MotionLaw, rate: float = 100.0, source: str = "move"
) -> Trajectory:
    """Move in a straight line between poses (7,) at different positions.

    The tool rotates in proportion to the distance. The rate of the samples is in Hz.
    """
    ends = Trajectory(
        np.array([0.0, 1.0]), np.stack([vector("start", start, 7), vector("end", end, 7)]), source
    )
    path = line(ends.poses[0, :3], ends.poses[1, :3])
    straight = trace(path, law, rate, ConstantOrientation(ends.start[3:]), source=source)

    progress = np.linalg.norm(straight.poses[:, :3] - ends.start[:3], axis=1) / path.length
    rotations = pose.interpolate(ends.times, ends.poses, progress)[:, 3:]
    poses = np.column_stack([straight.poses[:, :3], rotations])
    return Trajectory(straight.times, poses, source=source)


def dwell(at: ArrayLike, duration: float) -> Trajectory:
    """Stay at one pose `at` (7,) for `duration` s."""
    check_positive(duration=duration)
    poses = np.tile(vector("pose", at, 7), (2, 1))
    return Trajectory(np.array([0.0, duration]), poses, source="still")


def concatenate(*parts: Trajectory, source: str = "joined") -> Trajectory:
    """Join trajectories one after another.

    Each begins within 1 um and 1e-6 rad of the last pose of the one before.
    """
    if not parts:
        raise InvalidParameter("parts", "none", "one or more trajectories")

    times = [parts[0].elapsed]
    poses = [parts[0].poses]
    for index, part in enumerate(parts[1:], start=1):
        end = poses[-1][-1]
        start = part.start
        distance = float(np.linalg.norm(end[:3] - start[:3]))
        angle = 2.0 * float(np.arccos(min(1.0, abs(end[3:] @ start[3:]))))
        if distance > JOIN_TOLERANCE or angle > JOIN_TOLERANCE:
            gap = (
                f"{distance * 1e3:.3g} mm and {math.degrees(angle):.3g} degrees from the end of "
                "the previous one"
            )
            raise InvalidParameter(f"start of part {index}", gap, "that end")

        times.append(times[-1][-1] + part.elapsed[1:])
        poses.append(part.poses[1:])
    return Trajectory(np.concatenate(times), np.concatenate(poses), source=source)
