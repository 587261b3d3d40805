"""Where joint positions put the tool."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
