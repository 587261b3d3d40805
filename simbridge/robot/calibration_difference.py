"""The largest differences between the tool poses that two calibrations give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from simbridge.robot.calibration import calibrated_chain, joint_frames
from simbridge.robot.parts import DhTable, RosCalibration
from simbridge.robot.pose import Array

# Random joint positions at which two chains are compared.
COMPARED_POSTURES = 4000


def largest_difference(
    first: Sequence[pin.SE3], second: Sequence[pin.SE3], tcp: pin.SE3
) -> tuple[float, float]:
    """Return how far two chains of revolute joints place the same tool apart, at worst.

    Args:
        first: n + 1 frames, as of `calibrated_chain`.
        second: The frames of the other chain.
        tcp: The tool centre point, in tool0.

    Returns:
        Distance, m, and angle, rad: not necessarily at the same joint positions.
    """
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (COMPARED_POSTURES, len(first) - 1))
    turns = np.zeros((*q.shape, 4, 4))
    turns[..., 0, 0] = np.cos(q)
    turns[..., 1, 1] = turns[..., 0, 0]
    turns[..., 1, 0] = np.sin(q)
    turns[..., 0, 1] = -turns[..., 1, 0]
    turns[..., 2, 2] = 1.0
    turns[..., 3, 3] = 1.0

    first_tools = _tool_poses(first, turns, tcp)
    second_tools = _tool_poses(second, turns, tcp)
    distances = np.linalg.norm(first_tools[:, :3, 3] - second_tools[:, :3, 3], axis=1)
    # |R - S| (Frobenius) is 2 sqrt(2) sin(angle / 2): exact for small angles, too.
    matrices = first_tools[:, :3, :3] - second_tools[:, :3, :3]
    half_sines = np.linalg.norm(matrices, axis=(1, 2)) / np.sqrt(8.0)
    return float(distances.max()), float(2.0 * np.arcsin(min(half_sines.max(), 1.0)))


def _tool_poses(chain: Sequence[pin.SE3], turns: Array, tcp: pin.SE3) -> Array:
    """Return the tool's poses (T, 4, 4) for the turns (T, n, 4, 4) of a chain's joints."""
    tool = np.eye(4)
    for i, frame in enumerate(chain[:-1]):
        tool = tool @ frame.homogeneous @ turns[:, i]
    poses: Array = tool @ (chain[-1] * tcp).homogeneous
    return poses


def ros_difference(calibration: RosCalibration, table: DhTable) -> tuple[float, float]:
    """Return how far a file of ROS places the flange from where a controller's table does.

    The file is read as it was printed or as ROS's URDF reads it, whichever is nearer.

    Returns:
        Distance, m, and angle, rad, at worst.
    """
    flange = pin.SE3.Identity()
    reported = calibrated_chain(table)
    differences = []
    for as_printed in (True, False):
        chain = [*joint_frames(calibration, as_printed=as_printed), flange]
        differences.append(largest_difference(chain, reported, flange))
    return min(differences)
