"""Inverse kinematics of many postures at once, by damped least squares in plain numpy.

It needs no compiled solver, and nothing but the arm's chain.
"""

from __future__ import annotations

import math

import numpy as np

from simbridge.robot import pose
from simbridge.robot.kinematics import task_jacobians, tool_path
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot

MAX_ITERATIONS = 50
DAMPING = 1e-4
# What counts as attained, m and rad.
TOLERANCE = 1e-4
# Largest error that an iteration works on, m and rad.
MAX_ERROR = 0.3
# Part of the way to the middle of the ranges that a redundant arm goes in an iteration.
CENTRING_GAIN = 0.1


def solve_postures(
    robot: Robot,
    start: Array,
    targets: Array,
    *,
    tolerance: float = TOLERANCE,
    centring_gain: float = CENTRING_GAIN,
) -> tuple[Array, Flags]:
    """Solve postures for targets.

    Args:
        robot: The arm; its task is what the postures attain.
        start: Postures that the iterations begin from (T, n), rad.
        targets: Poses (T, 7).
        tolerance: What counts as attained, m and rad.
        centring_gain: Part of the way to the middle of the ranges that a redundant arm goes in an
            iteration.

    Returns:
        Postures (T, n), and which of them attain their target (T,).
    """
    q = start.copy()
    # Indices of the postures that have not attained their target.
    open_postures = np.arange(len(start))
    for _ in range(MAX_ITERATIONS):
        error = _task_errors(robot, q[open_postures], targets[open_postures])
        is_missed = np.abs(error).max(axis=1) > tolerance
        open_postures = open_postures[is_missed]
        error = error[is_missed]
        if not len(open_postures):
            break

        jacobian = posture_jacobians(robot, q[open_postures])
        transpose = jacobian.transpose(0, 2, 1)
        rows = jacobian.shape[1]
        inverse = transpose @ np.linalg.inv(jacobian @ transpose + DAMPING * np.eye(rows))

        # A redundant arm is drawn to the middle of its ranges.
        centring = np.zeros_like(q[open_postures])
        if robot.n > rows:
            centring = centring_gain * (middle_posture(robot) - q[open_postures])
        by_centring = (jacobian @ centring[:, :, None])[:, :, 0]
        remaining = np.clip(error, -MAX_ERROR, MAX_ERROR) - by_centring
        step = (inverse @ remaining[:, :, None])[:, :, 0]
        q[open_postures] = np.clip(
            q[open_postures] + centring + step, robot.position_min, robot.position_max
        )

    is_attained = np.abs(_task_errors(robot, q, targets)).max(axis=1) <= tolerance
    return q, is_attained


def posture_jacobians(robot: Robot, q: Array) -> Array:
    """Return the Jacobians (T, m, n) of the robot's task at postures (T, n)."""
    return task_jacobians(robot.placements, robot.prismatic, q, robot.task)


def middle_posture(robot: Robot) -> Array:
    """Return the middle of the joints' ranges (n,), of at most a turn around zero."""
    low = np.clip(robot.position_min, -math.pi, math.pi)
    high = np.clip(robot.position_max, -math.pi, math.pi)
    return 0.5 * (low + high)


def _task_errors(robot: Robot, q: Array, targets: Array) -> Array:
    """Return what remains to targets (T, 7) at postures (T, n).

    Returns:
        Errors (T, m), m and rad, in the rows of `chain.task_rows`.
    """
    attained = tool_path(robot, q)
    translation, rotation = pose.error(targets, attained)
    if robot.task == "position":
        return translation
    if robot.task == "axis":
        # The direction of the target's z axis in the attained frame.
        z = np.array([0.0, 0.0, 1.0])
        direction = pose.rotate(pose.conjugate(attained[:, 3:]), pose.rotate(targets[:, 3:], z))
        return np.concatenate([translation, np.cross(z, direction)[:, :2]], axis=1)
    return np.concatenate([translation, rotation], axis=1)
