"""Finds how close a motion comes to the limits of the arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.judging.differences import differentiate
from simbridge.judging.log import ControllerLog
from simbridge.judging.logged_motions import Motion
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class Peak:
    """The largest speed or acceleration of a joint in a motion, and how close one is to its limit.

    Attributes:
        value: The largest value of any joint, rad/s or rad/s^2.
        joint: Name of the joint with the largest value.
        at_s: Time of the row with the largest value, s from the log's beginning.
        share: The largest value relative to the limit of its joint, over all joints, as a fraction;
            None if the arm is not known.
        share_joint: Name of the joint that is closest to its limit, which need not be `joint`;
            None if the arm is not known.
    """

    value: float
    joint: str
    at_s: float
    share: float | None
    share_joint: str | None


@dataclass(frozen=True)
class MotionPeaks:
    """The peaks of a motion.

    Attributes:
        speed: The largest joint speed, rad/s: as measured, otherwise of the joint targets.
        acceleration: The largest acceleration of the joint targets, rad/s^2. Its limit is the one
            that the limiter of simbridge keeps, since UR publishes none.
    """

    speed: Peak
    acceleration: Peak


def find_peaks(log: ControllerLog, motion: Motion, robot: Robot | None) -> MotionPeaks:
    """Return the peaks of a motion.

    Args:
        log: The log.
        motion: The motion.
        robot: The arm; None if it is not known.
    """
    rows = motion.rows
    times = log.times[rows]
    velocities = log.joint_velocities[rows]
    measured = velocities if log.actual_qd is None else log.actual_qd[rows]
    if log.target_qdd is not None:
        # Rows without an acceleration cannot be the peak.
        accelerations = np.nan_to_num(log.target_qdd[rows])
    else:
        accelerations = differentiate(times, velocities)

    speed_limits = None
    acceleration_limits = None
    if robot is not None and robot.n == velocities.shape[1]:
        speed_limits = robot.max_velocity
        acceleration_limits = np.full(robot.n, robot.max_acceleration)

    return MotionPeaks(
        speed=_find_peak(times, measured, speed_limits, log.joint_names),
        acceleration=_find_peak(times, accelerations, acceleration_limits, log.joint_names),
    )


def _find_peak(
    times: Array, values: Array, limits: Array | None, joint_names: Sequence[str]
) -> Peak:
    """Return the peak of speeds or accelerations.

    Args:
        times: Instants of the rows (T,), s from the log's beginning.
        values: Velocities, rad/s, or accelerations, rad/s^2, of the joints (T, n).
        limits: Limit of each joint (n,), in the same unit; None if the arm is not known.
        joint_names: Names of the joints, from the base.
    """
    size = np.abs(values)
    row, joint = np.unravel_index(int(np.argmax(size)), size.shape)

    # The joint that comes closest to its limit.
    share: float | None = None
    share_joint: str | None = None
    if limits is not None:
        shares = size.max(axis=0) / limits
        closest = int(np.argmax(shares))
        share = float(shares[closest])
        share_joint = joint_names[closest]

    return Peak(
        value=float(size[row, joint]),
        joint=joint_names[int(joint)],
        at_s=float(times[row]),
        share=share,
        share_joint=share_joint,
    )
