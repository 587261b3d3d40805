"""Sampled Cartesian trajectories: the type, common shapes, and the files they are read from and written to."""

from simbridge.trajectory.files import Frame, read_trajectory, write_tum
from simbridge.trajectory.shapes import TOOL_DOWN, corners, square, step
from simbridge.trajectory.trajectory import Hold, Trajectory

__all__ = [
    "TOOL_DOWN",
    "Frame",
    "Hold",
    "Trajectory",
    "corners",
    "read_trajectory",
    "square",
    "step",
    "write_tum",
]
