"""Task masks: the part of the target pose that a solver is to attain.

    pose      position and rotation, six rows
    axis      position and the direction of the tool's z axis, five rows: the rotation about that axis is free
    position  position, three rows

An arm with more joints than its task has rows is redundant: it can move in the null space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import UnknownName
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.robot import Robot


def task_of(robot: Robot, name: str | None = None) -> str:
    """The task of that name, or the robot's own.

    Raises:
        UnknownName: There is no such task.
    """
    task = name or robot.task
    if task not in TASK_ROWS:
        raise UnknownName("task", task, TASK_ROWS)
    return task


def freed(task: str, poses: ArrayLike, like: ArrayLike) -> NDArray[np.float64]:
    """Poses (..., 7) in which everything that the task leaves free is taken from the poses `like`.

    Their difference from `like` is the task's error: none in rotation for a position; the smallest turn between the
    two z axes for an axis.
    """
    wanted, other = np.asarray(poses, dtype=float), np.asarray(like, dtype=float)
    if task == "pose":
        return wanted
    out = wanted.copy()
    if task == "position":
        out[..., 3:] = other[..., 3:]
        return out
    z = np.array([0.0, 0.0, 1.0])
    # Of the turn from `like` to the pose, in the axes of `like`, that part which is about z is free.
    turn = pose.multiply(pose.conjugate(other[..., 3:]), wanted[..., 3:])
    about_z = turn * np.concatenate([0.0 * z[:2], np.ones(2)])
    size = np.linalg.norm(about_z, axis=-1, keepdims=True)
    about_z = np.where(size > 0.0, about_z / np.where(size > 0.0, size, 1.0), pose.IDENTITY[3:])
    out[..., 3:] = pose.multiply(wanted[..., 3:], pose.conjugate(about_z))
    return out


def residual(task: str, target: ArrayLike, attained: ArrayLike) -> tuple[float, float]:
    """Remaining translation (m) and rotation (rad), in the components that the task constrains."""
    translation, rotation = pose.error(freed(task, target, attained), attained)
    return float(np.linalg.norm(translation)), float(np.linalg.norm(rotation))
