"""How close a motion comes to the limits of the arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.judging.log import ControllerLog
from simbridge.judging.motions import Motion, differentiate, joint_velocities
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class Peak:
    """The largest value of a joint's quantity in a motion.

    Attributes:
        value: The value, rad/s or rad/s^2.
        joint: Index of the joint, from 0.
        at_s: Time of its row, s from the log's beginning.
        limit: The arm's limit of it; None if the arm is not known.
        share: The value as a fraction of the limit; None if the arm is not known.
    """

    value: float
    joint: int
    at_s: float
    limit: float | None
    share: float | None


@dataclass(frozen=True)
class Peaks:
    """The peaks of a motion.

    Attributes:
        speed: The joint speed that is largest as a fraction of its limit, rad/s.
        acceleration: The same of joint accelerations, rad/s^2. Their limit is the one that the
            limiter of simbridge keeps, since UR publishes none.
    """

    speed: Peak
    acceleration: Peak


def find_peaks(log: ControllerLog, motion: Motion, robot: Robot | None) -> Peaks:
    """Return the peaks of a motion.

    Args:
        log: The log.
        motion: The motion.
        robot: The arm; None if it is not known.
    """
    rows = motion.rows
    times = log.times[rows]
    velocities = joint_velocities(log)[rows]
    if log.target_qdd is not None:
        accelerations = np.nan_to_num(log.target_qdd[rows])
    else:
        accelerations = differentiate(times, velocities)

    has_limits = robot is not None and robot.n == velocities.shape[1]
    speed_limits = robot.max_velocity if has_limits and robot is not None else None
    acceleration_limits = None
    if has_limits and robot is not None:
        acceleration_limits = np.full(robot.n, robot.max_acceleration)
    return Peaks(
        speed=_peak(times, velocities, speed_limits),
        acceleration=_peak(times, accelerations, acceleration_limits),
    )


def _peak(times: Array, values: Array, limits: Array | None) -> Peak:
    """Return the peak of values (T, n) relative to limits (n,), or the largest value."""
    size = np.abs(values)
    compared = size if limits is None else size / limits
    row, joint = np.unravel_index(int(np.argmax(compared)), size.shape)
    return Peak(
        value=float(size[row, joint]),
        joint=int(joint),
        at_s=float(times[row]),
        limit=None if limits is None else float(limits[joint]),
        share=None if limits is None else float(compared[row, joint]),
    )
