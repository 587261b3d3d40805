"""Measures a solver along a motion, from its joint positions.

docs/metrics.md has the formulas.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.metrics.delays import delay, motion_through
from simbridge.experiments.arm import pose_errors, rms
from simbridge.experiments.suite.results import LimitShares, PoseErrors, WorstMoment
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Ratio of the jerk limit to the acceleration limit, 1/s. UR publishes no jerk limit; this is the
# ratio of the limits that Franka publishes for the Panda (7500 rad/s^3 to 15 rad/s^2).
JERK_PER_ACCELERATION = 500.0
# Number of steps from which a jerk can be computed.
MIN_JERK_STEPS = 3

# Largest change of a joint within one period that is not a jump, rad (m for a slide).
JUMP = 0.5
# Largest distance by which a target moves within one period without a jump, m.
TARGET_JUMP_DISTANCE = 0.1
# Largest angle by which a target turns within one period without a jump, rad.
TARGET_JUMP_ANGLE = 0.5
# Time after a jump of the target in which joints may jump, too, s.
TARGET_JUMP_TIME = 0.1

# Time before and after the largest error that is kept, s.
WORST_MOMENT_S = 0.5
# Largest number of samples that are kept of this time.
MAX_WORST_SAMPLES = 100
# Decimals of the times, s, and positions, m, of these samples: a picture shows no more.
WORST_DECIMALS = 6


def jerk_limit(robot: Robot) -> float:
    """Return the jerk limit of every joint, rad/s^3."""
    return JERK_PER_ACCELERATION * robot.max_acceleration


def summarize_errors(errors: Array) -> PoseErrors:
    """Return RMS and maximum of errors (K, 6): translations in m, rotation vectors in rad."""
    return PoseErrors(
        rms_m=rms(errors[:, :3]),
        max_m=float(np.linalg.norm(errors[:, :3], axis=1).max()),
        rms_rad=rms(errors[:, 3:]),
        max_rad=float(np.linalg.norm(errors[:, 3:], axis=1).max()),
    )


def limit_shares(robot: Robot, joints: Array) -> LimitShares | None:
    """Return joint speed, acceleration and jerk as shares of their limits; None for too few steps.

    They are computed from the differences of successive joint positions.

    Args:
        robot: The arm, with the limits.
        joints: Joint positions (K + 1, n), rad: the start, then one row for each step.
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
    """Return whether the target jumps at each sample, or has jumped shortly before (K,).

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
        in_reach: Whether each target (K,) is within reach.

    Returns:
        The share; None unless the target is out of reach for at least three periods in a row.
    """
    # Acceleration i is from the joint positions i to i + 2, of which the last two belong to the
    # targets i and i + 1, and the first to target i - 1. All three must be out of reach.
    accelerations = np.diff(joints, 2, axis=0) / robot.period**2
    is_outside = ~in_reach[:-1] & ~in_reach[1:]
    is_outside[1:] &= ~in_reach[:-2]
    is_outside[:1] = False
    if not is_outside.any():
        return None
    return float(np.sqrt(np.mean((accelerations[is_outside] / robot.max_acceleration) ** 2)))


def measure_drift(joints: Array, samples_per_lap: int) -> float | None:
    """Return the largest change of a joint from the end of the first lap to that of the last, rad.

    Args:
        joints: Joint positions (K, n), rad, one row for each step.
        samples_per_lap: Number of samples from the end of a lap to the end of the next.

    Returns:
        The change; None for fewer than two laps.
    """
    lap_ends = joints[samples_per_lap::samples_per_lap]
    if len(lap_ends) < 2:
        return None
    return float(np.abs(lap_ends[-1] - lap_ends[0]).max())


def measure_lag(period: float, ideal: Array, tool: Array) -> float | None:
    """Return the delay of the tool behind the ideal motion, s; None if it cannot be determined.

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
    distances = np.linalg.norm(targets[:, :3] - tool[:, :3], axis=1)
    worst = int(np.argmax(distances))
    margin = round(WORST_MOMENT_S / period)
    first = max(0, worst - margin)
    end = min(len(tool), worst + margin + 1)

    # Keep every stride-th sample, the worst one among them.
    stride = math.ceil((end - first) / MAX_WORST_SAMPLES)
    offset = (worst - first) % stride
    samples = np.arange(first + offset, end, stride)
    return WorstMoment(
        time_s=worst * period,
        times_s=(samples * period).round(WORST_DECIMALS).tolist(),
        target_m=targets[samples, :3].round(WORST_DECIMALS).tolist(),
        tool_m=tool[samples, :3].round(WORST_DECIMALS).tolist(),
    )


def measure_errors(robot: Robot, poses: Array, joints: Array) -> PoseErrors:
    """Return the errors of joint positions (K, n), rad, against poses (K, 7)."""
    return summarize_errors(pose_errors(robot, poses, joints))
