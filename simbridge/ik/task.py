"""Task masks: how much of the target pose a solver is asked to attain.

    pose      position and rotation, six rows
    axis      position and the direction of the tool's z axis, five rows: the turn about that axis is free
    position  position, three rows

An arm with more joints than its task has rows is redundant: it has a null space to move in.
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge import pose
from simbridge.errors import UnknownName
from simbridge.ik.chain import Array, chain_frames, compiled, pose_error
from simbridge.ik.codegen.mathematics import axis_turn

if TYPE_CHECKING:
    from simbridge.robot import Robot

_axis_turn = compiled(inspect.unwrap(axis_turn))

TASKS = {"pose": 6, "axis": 5, "position": 3}
"""Every task by its name, with the number of its rows."""


def task_of(robot: Robot, name: str | None = None) -> str:
    """The task of that name, or the robot's own.

    Raises:
        UnknownName: There is no such task.
    """
    task = name or robot.task
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    return task


@compiled
def task_error(rows: int, target: Array, rotation: Array, tool: Array, e: Array) -> None:
    """The error (6,) in base axes of which the task sees all: translation, then Rodrigues vector.

    For an axis the Rodrigues vector is the smallest that brings the tool's z axis to the target's; for a position it
    is zero. A component that is masked so exerts no force.

    Args:
        rows: Of the task: 6, 5 or 3.
        target: Pose (7,); only the translation is read.
        rotation: Of the target (3, 3).
        tool: Frame (3, 4).
    """
    if rows == 6:
        pose_error(target, rotation, tool, e)
        return
    for i in range(3):
        e[i] = target[i] - tool[i, 3]
        e[3 + i] = 0.0
    if rows == 3:
        return
    # Opposite axes: half a turn about any axis across will do, such as the tool's x axis.
    e[3], e[4], e[5] = _axis_turn(
        tool[0, 2], tool[1, 2], tool[2, 2],
        rotation[0, 2], rotation[1, 2], rotation[2, 2],
        tool[0, 0], tool[1, 0], tool[2, 0],
    )  # fmt: skip


@compiled
def jacobian_rows(prismatic: NDArray[np.bool_], origins: Array, axes: Array, tool: Array, jacobian: Array) -> None:
    """The geometric Jacobian of the tool in base axes, transposed (n, 6): a row a joint, translation first."""
    for j in range(origins.shape[0]):
        zx, zy, zz = axes[j, 0], axes[j, 1], axes[j, 2]
        if prismatic[j]:
            jacobian[j, 0], jacobian[j, 1], jacobian[j, 2] = zx, zy, zz
            jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = 0.0, 0.0, 0.0
        else:
            rx, ry, rz = tool[0, 3] - origins[j, 0], tool[1, 3] - origins[j, 1], tool[2, 3] - origins[j, 2]
            jacobian[j, 0] = zy * rz - zz * ry
            jacobian[j, 1] = zz * rx - zx * rz
            jacobian[j, 2] = zx * ry - zy * rx
            jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = zx, zy, zz


@compiled
def reduce_rows(rows: int, tool: Array, e: Array, jacobian: Array) -> None:
    """Pack the rows that the task keeps to the front of the error (6,) and of the Jacobian's columns (n, 6).

    Six rows are those of the base axes, and three the translation, so they stay as they are. Of five the last two
    become the rotation about the tool's own x and y axes, which is all of a rotation that moves its z axis.
    """
    if rows != 5:
        return
    x, y = _across(tool, e[3], e[4], e[5])
    e[3], e[4], e[5] = x, y, 0.0
    for j in range(jacobian.shape[0]):
        x, y = _across(tool, jacobian[j, 3], jacobian[j, 4], jacobian[j, 5])
        jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = x, y, 0.0


@compiled
def _across(tool: Array, x: float, y: float, z: float) -> tuple[float, float]:
    """The components of a vector in base axes along the tool's own x and y axes."""
    return (
        tool[0, 0] * x + tool[1, 0] * y + tool[2, 0] * z,
        tool[0, 1] * x + tool[1, 1] * y + tool[2, 1] * z,
    )


def freed(task: str, poses: ArrayLike, like: ArrayLike) -> NDArray[np.float64]:
    """Poses (..., 7) that ask no more than the task does: what it leaves free is taken from the poses `like`.

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
    """What is left of the translation (m) and of the rotation (rad) that the task asks for."""
    translation, rotation = pose.error(freed(task, target, attained), attained)
    return float(np.linalg.norm(translation)), float(np.linalg.norm(rotation))


def task_jacobian(robot: Robot, q: Array, task: str) -> Array:
    """The Jacobian (m, n) of the task's rows at joint positions q (n,); see `reduce_rows`."""
    origins, axes, tool = np.empty((robot.n, 3)), np.empty((robot.n, 3)), np.empty((3, 4))
    jacobian, rows = np.empty((robot.n, 6)), TASKS[task]
    chain_frames(robot.placements, robot.prismatic, np.array(q), origins, axes, tool)
    jacobian_rows(robot.prismatic, origins, axes, tool, jacobian)
    reduce_rows(rows, tool, np.zeros(6), jacobian)
    return jacobian[:, :rows].T


def movable_rows(robot: Robot, task: str) -> int:
    """In how many independent directions of the task some posture can move: 2 of 3 for a planar arm."""
    postures = np.random.default_rng(0).uniform(-math.pi, math.pi, (8, robot.n))
    rows = np.concatenate([task_jacobian(robot, q, task) for q in postures], axis=1)
    return int(np.linalg.matrix_rank(rows, tol=1e-9))
