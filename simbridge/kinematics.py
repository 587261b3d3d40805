"""Where joint positions put the tool."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.robot import Robot


def tool_path(robot: Robot, joints: ArrayLike) -> NDArray[np.float64]:
    """TCP poses (T, 7) in base_link at joint positions (T, n) in rad; the signs of the quaternions are continuous."""
    from simbridge.ik.kernels import tool_poses

    return tool_poses(robot.placements, robot.prismatic, np.ascontiguousarray(joints, dtype=float))
