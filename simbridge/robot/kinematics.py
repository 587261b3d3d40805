"""Where joint positions put the tool."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.robot.robot import Robot


def tool_path(robot: Robot, joints: ArrayLike) -> NDArray[np.float64]:
    """TCP poses (T, 7) in base_link at joint positions (T, n) in rad; the signs of the quaternions are continuous."""
    return tool_poses(robot.placements, robot.prismatic, joints)


def tool_poses(placements: NDArray[np.float64], prismatic: NDArray[np.bool_], joints: ArrayLike) -> NDArray[np.float64]:
    """The same of a chain: placements (n + 1, 4, 4), the last one the tool's, and which joints slide (n,)."""
    from simbridge.ik.kernels import kernel

    q = np.ascontiguousarray(joints, dtype=float)
    poses = np.empty((len(q), 7))
    kernel.poses(placements, prismatic)(placements, q, np.empty(16), poses)
    return poses


def joint_origins(
    placements: NDArray[np.float64], prismatic: NDArray[np.bool_], joints: ArrayLike
) -> NDArray[np.float64]:
    """Origins (T, n, 3) in base_link, m, of the joints' frames at joint positions (T, n); placements (n + 1, 4, 4)."""
    q = np.asarray(joints, dtype=float)
    total, n = q.shape
    frames, origins = np.tile(np.eye(4), (total, 1, 1)), np.empty((total, n, 3))
    for i in range(n):
        moved = np.tile(np.eye(4), (total, 1, 1))
        if prismatic[i]:
            moved[:, 2, 3] = q[:, i]
        else:
            moved[:, 0, 0] = moved[:, 1, 1] = np.cos(q[:, i])
            moved[:, 1, 0] = np.sin(q[:, i])
            moved[:, 0, 1] = -moved[:, 1, 0]
        # A sliding joint's frame slides along: its origin is where the joint has taken it.
        frames = frames @ placements[i] @ moved
        origins[:, i] = frames[:, :3, 3]
    return origins


def task_jacobians(
    placements: NDArray[np.float64], prismatic: NDArray[np.bool_], joints: ArrayLike, task: str
) -> NDArray[np.float64]:
    """The Jacobians (K, m, n) at joint positions (K, n) of the m rows that a task has, translation first.

    Args:
        placements, prismatic, joints: As for `joint_origins`.
        task: "pose": six rows in base axes. "position": the first three. "axis": these, and the rotation about the
            tool's own x and y axes.
    """
    from simbridge.ik.kernels import kernel
    from simbridge.ik.task import TASKS

    q = np.ascontiguousarray(joints, dtype=float)
    jacobians = np.empty((len(q), TASKS[task], q.shape[1]))
    kernel.jacobians(placements, prismatic, task)(placements, q, jacobians)
    return jacobians


def task_jacobian(robot: Robot, q: ArrayLike, task: str) -> NDArray[np.float64]:
    """The Jacobian (m, n) of a task's rows at one posture q (n,) of a robot: see `task_jacobians`."""
    return task_jacobians(robot.placements, robot.prismatic, np.asarray(q)[None], task)[0]


def movable_directions(placements: NDArray[np.float64], prismatic: NDArray[np.bool_], task: str) -> int:
    """In how many independent directions of a task some posture moves the tool: 2 of 3 for a planar arm's position."""
    postures = np.random.default_rng(0).uniform(-np.pi, np.pi, (8, len(prismatic)))
    found = task_jacobians(placements, prismatic, postures, task)
    return int(np.linalg.matrix_rank(np.concatenate(list(found), axis=1), tol=1e-9))
