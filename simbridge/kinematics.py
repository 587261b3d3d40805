"""Where joint positions put the tool."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge import pose
from simbridge.robot import Robot


def tool_path(robot: Robot, joints: ArrayLike) -> NDArray[np.float64]:
    """TCP poses (T, 7) in base_link at joint positions (T, n) in rad; the signs of the quaternions are continuous."""
    from simbridge.ik.kernels import tool_poses

    return tool_poses(robot.placements, robot.prismatic, np.ascontiguousarray(joints, dtype=float))


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
    from simbridge.ik.kernels import tool_jacobian, tool_poses
    from simbridge.ik.task import TASKS

    q = np.ascontiguousarray(joints, dtype=float)
    whole = np.stack([tool_jacobian(placements, prismatic, one) for one in q])
    if task != "axis":
        return whole[:, : TASKS[task]]
    turns = tool_poses(placements, prismatic, q)[:, 3:]
    axes = np.stack([pose.rotate(turns, np.tile(axis, (len(q), 1))) for axis in np.eye(3)[:2]], axis=1)
    across = axes @ whole[:, 3:]
    return np.concatenate([whole[:, :3], across], axis=1)


def movable_directions(placements: NDArray[np.float64], prismatic: NDArray[np.bool_], task: str) -> int:
    """In how many independent directions of a task some posture moves the tool: 2 of 3 for a planar arm's position."""
    postures = np.random.default_rng(0).uniform(-np.pi, np.pi, (8, len(prismatic)))
    found = task_jacobians(placements, prismatic, postures, task)
    return int(np.linalg.matrix_rank(np.concatenate(list(found), axis=1), tol=1e-9))
