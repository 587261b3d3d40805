"""Postures spread over the joints' ranges, and what they show of an arm."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pinocchio as pin

from simbridge.robot import Task
from simbridge.robot.kinematics import task_jacobians, tool_path
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot

# Postures from which a span is found.
POSTURES = 1000
# Postures at which the directions of a task are counted.
RANK_POSTURES = 8
# Singular values up to this are zero.
RANK_TOLERANCE = 1e-9
# Length that is used of an endless slide, m.
SLIDE_RANGE_M = 2.0


def restart_postures(robot: Robot, count: int) -> Array:
    """Return postures (count, n) to restart a search from.

    They are always the same, spread over the joints' ranges. Of a revolute joint at most one turn
    is used, around zero if it gets there; of an endless slide two metres.
    """
    limits = zip(robot.position_min, robot.position_max, robot.prismatic, strict=True)
    ranges = [_used_range(low, high, slides) for low, high, slides in limits]
    low, high = np.array(ranges).T
    return np.random.default_rng(0).uniform(low, high, (count, robot.n))


def _used_range(low: float, high: float, slides: bool) -> tuple[float, float]:
    """Return the part of a joint's range in which postures are.

    Args:
        low: Lower limit of the joint, rad or m.
        high: Upper limit of the joint, rad or m.
        slides: Whether it is prismatic.
    """
    if slides:
        if not math.isfinite(low):
            low = min(-0.5 * SLIDE_RANGE_M, high - SLIDE_RANGE_M)
        if not math.isfinite(high):
            high = max(0.5 * SLIDE_RANGE_M, low + SLIDE_RANGE_M)
        return low, high

    low_in_turn = max(low, -math.pi)
    high_in_turn = min(high, math.pi)
    if low_in_turn <= high_in_turn:
        return low_in_turn, high_in_turn
    # Wholly beyond half a turn.
    if low > 0.0:
        return low, min(high, low + 2.0 * math.pi)
    return max(low, high - 2.0 * math.pi), high


def span(robot: Robot) -> float:
    """Return the largest distance of the flange from the vertical through the base, m.

    It is found by sampling, without the tool.
    """
    flange = tool_path(robot.with_tcp(pin.SE3.Identity()), restart_postures(robot, POSTURES))
    return float(np.hypot(flange[:, 0], flange[:, 1]).max())


def task_directions(robot: Robot, task: str, rows: slice = slice(6)) -> tuple[int, int]:
    """Return the number of directions of a task that the tool can move in.

    Args:
        robot: The arm.
        task: Name of the task: see `chain.task_rows`.
        rows: Which rows of the task count.

    Returns:
        The number over all postures, and the largest one at a single posture.
    """
    postures = restart_postures(robot, RANK_POSTURES)
    jacobians = task_jacobians(robot.placements, robot.prismatic, postures, task)[:, rows]
    overall = np.linalg.matrix_rank(np.concatenate(list(jacobians), axis=1), tol=RANK_TOLERANCE)
    single = np.linalg.matrix_rank(jacobians, tol=RANK_TOLERANCE).max()
    return int(overall), int(single)


def movable_directions(placements: Array, prismatic: Flags, task: str) -> int:
    """Return in how many independent directions of a task some posture moves the tool.

    For a planar arm's position, 2 of 3.

    Args:
        placements: The chain (n + 1, 4, 4), the last one the tool's.
        prismatic: Which joints slide (n,).
        task: Name of the task: see `chain.task_rows`.
    """
    rng = np.random.default_rng(0)
    postures = rng.uniform(-np.pi, np.pi, (RANK_POSTURES, len(prismatic)))
    jacobians = task_jacobians(placements, prismatic, postures, task)
    columns = np.concatenate(list(jacobians), axis=1)
    return int(np.linalg.matrix_rank(columns, tol=RANK_TOLERANCE))


def controllable_task(robot: Robot) -> Task:
    """Return the robot's task, or as much of it as its joints control at a time.

    A whole pose needs six joints, unless in a plane.
    """
    tasks = get_args(Task)
    # The robot's task, then those that ask for less.
    candidates = tasks[tasks.index(robot.task) :]
    for task in candidates:
        overall, single = task_directions(robot, task)
        if overall == single:
            controllable: Task = task
            return controllable
    return robot.task
