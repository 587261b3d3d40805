"""Pure functions that measure a solver along a motion, from its joint positions.

docs/metrics.md gives the formulas.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.metrics.delays import delay, motion_through
from simbridge.experiments.arm import pose_errors, rms
from simbridge.experiments.suite.results import LimitShares, PoseErrors, WorstMoment
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Jerk limit over acceleration limit, 1/s. UR publishes no jerk limit; this is the ratio of the
# limits that Franka publishes for every joint of the Panda (7500 rad/s^3 to 15 rad/s^2).
JERK_PER_ACCELERATION = 500.0
# Samples that a jerk needs: the start, and three steps.
MIN_JERK_STEPS = 3

# A joint that turns by more than this within one period (rad, or m for a slide) jumps ...
JUMP = 0.5
# ... and it is a flip unless the target itself has moved by more than these, m and rad, within the
# time before, s.
TARGET_JUMP_DISTANCE = 0.1
TARGET_JUMP_ANGLE = 0.5
TARGET_JUMP_TIME = 0.1

# Time before and after the largest error that is kept, s, and the number of samples at most.
WORST_MOMENT_S = 0.5
MAX_WORST_SAMPLES = 100
# Decimals of their times and positions, s and m: a picture shows no more.
WORST_DECIMALS = 6


def jerk_limit(robot: Robot) -> float:
    """Return the jerk limit of every joint, rad/s^3."""
    return JERK_PER_ACCELERATION * robot.max_acceleration


def summarize_errors(errors: Array) -> PoseErrors:
    """Return RMS and maximum of errors (K, 6): translations in m, Rodrigues vectors in rad."""
    return PoseErrors(
        rms_m=rms(errors[:, :3]),
        max_m=float(np.linalg.norm(errors[:, :3], axis=1).max()),
        rms_rad=rms(errors[:, 3:]),
        max_rad=float(np.linalg.norm(errors[:, 3:], axis=1).max()),
    )


def limit_shares(robot: Robot, joints: Array) -> LimitShares | None:
    """Return joint speed, acceleration and jerk as shares of their limits.

    They are differences of successive joint positions.

    Args:
        robot: The arm, with the limits.
        joints: Joint positions (K + 1, n), rad: the start, then one row for each step.

    Returns:
        The shares; None where there are too few steps for a jerk.
    """
    if len(joints) <= MIN_JERK_STEPS:
        return None

    speeds = np.diff(joints, axis=0) / robot.period
    accelerations = np.diff(speeds, axis=0) / robot.period
    jerks = np.diff(accelerations, axis=0) / robot.period
    acceleration_shares = accelerations / robot.max_acceleration
    return LimitShares(
        speed=float(np.max(np.abs(speeds) / robot.max_velocity)),
        acceleration=float(np.max(np.abs(acceleration_shares))),
        acceleration_rms=float(np.sqrt(np.mean(acceleration_shares**2))),
        jerk=float(np.max(np.abs(jerks)) / jerk_limit(robot)),
    )


def excess_over_position_limits(robot: Robot, joints: Array) -> float:
    """Return the largest excess of joint positions (K, n) over a limit, rad; 0 within them."""
    excess = np.maximum(robot.position_min - joints, joints - robot.position_max)
    return max(0.0, float(excess.max()))


def count_flips(robot: Robot, targets: Array, joints: Array) -> int:
    """Count the periods in which a joint jumps although the target does not.

    Args:
        robot: The arm.
        targets: The targets (K, 7).
        joints: Joint positions (K + 1, n), rad: the start, then one row for each step.
    """
    jumps = np.abs(np.diff(joints, axis=0)).max(axis=1) > JUMP
    return int(np.count_nonzero(jumps & ~target_jumps(targets, robot.period)))


def target_jumps(targets: Array, period: float) -> NDArray[np.bool_]:
    """Return at which samples (K,) the target jumps, or has jumped shortly before.

    Args:
        targets: The targets (K, 7), one per period.
        period: Control period, s.
    """
    translations, rotations = pose.error(targets[1:], targets[:-1])
    is_far = np.linalg.norm(translations, axis=1) > TARGET_JUMP_DISTANCE
    is_turned = np.linalg.norm(rotations, axis=1) > TARGET_JUMP_ANGLE

    jumps = np.zeros(len(targets), dtype=bool)
    periods_after = round(TARGET_JUMP_TIME / period)
    for sample in np.flatnonzero(is_far | is_turned) + 1:
        jumps[sample : sample + periods_after + 1] = True
    return jumps


def measure_chatter(robot: Robot, joints: Array, in_reach: NDArray[np.bool_]) -> float | None:
    """Return the RMS joint acceleration while the target is out of reach, as a share of the limit.

    Args:
        robot: The arm, with the limit.
        joints: Joint positions (K + 1, n), rad: the start, then one row for each step.
        in_reach: Which targets (K,) are within reach.

    Returns:
        The share; None where the target is out of reach for less than three periods in a row.
    """
    # An acceleration belongs to the middle one of three successive joint positions.
    accelerations = np.diff(joints, 2, axis=0) / robot.period**2
    is_outside = ~in_reach[:-1] & ~in_reach[1:]
    # Three successive targets out of reach.
    is_outside[1:] &= ~in_reach[:-2]
    is_outside[:1] = False
    if not is_outside.any():
        return None
    return float(np.sqrt(np.mean((accelerations[is_outside] / robot.max_acceleration) ** 2)))


def measure_drift(joints: Array, samples_per_lap: int) -> float | None:
    """Return the largest change of a joint from the end of the first lap to that of the last, rad.

    Args:
        joints: Joint positions (K, n), rad, one row for each step.
        samples_per_lap: Number of samples from the end of a lap to that of the next.

    Returns:
        The change; None where less than two laps were made.
    """
    ends = joints[samples_per_lap::samples_per_lap]
    if len(ends) < 2:
        return None
    return float(np.abs(ends[-1] - ends[0]).max())


def measure_lag(period: float, ideal: Array, tool: Array) -> float | None:
    """Return the delay of the tool behind the ideal motion, s; None where it has none.

    Args:
        period: Control period, s.
        ideal: Poses (K, 7) of the ideal motion.
        tool: Poses (K, 7) of the tool.
    """
    times = period * np.arange(len(tool))
    return delay(times, motion_through(times, ideal), tool, part="position")


def cut_worst_moment(period: float, targets: Array, tool: Array) -> WorstMoment:
    """Return target and tool around the largest distance between them.

    Args:
        period: Control period, s.
        targets: The targets (K, 7).
        tool: Poses (K, 7) of the tool.
    """
    worst = int(np.argmax(np.linalg.norm(targets[:, :3] - tool[:, :3], axis=1)))
    margin = round(WORST_MOMENT_S / period)
    first = max(0, worst - margin)
    last = min(len(tool), worst + margin + 1)

    # Every stride-th sample, the worst one among them.
    stride = -(-(last - first) // MAX_WORST_SAMPLES)
    offset = (worst - first) % stride
    samples = np.arange(first + offset, last, stride)
    return WorstMoment(
        time_s=worst * period,
        times_s=(samples * period).round(WORST_DECIMALS).tolist(),
        target_m=targets[samples, :3].round(WORST_DECIMALS).tolist(),
        tool_m=tool[samples, :3].round(WORST_DECIMALS).tolist(),
    )


def measure_errors(robot: Robot, poses: Array, joints: Array) -> PoseErrors:
    """Return the errors of joint positions (K, n), rad, against poses (K, 7)."""
    return summarize_errors(pose_errors(robot, poses, joints))
