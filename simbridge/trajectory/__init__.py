# ruff: noqa: F401  (the public names)
"""Sampled Cartesian trajectories: paths, timing laws, orientations, ready-made shapes, sampling and files."""

from simbridge.robot.workspace import TOOL_DOWN
from simbridge.trajectory import paths
from simbridge.trajectory.files import Frame, ReadOptions, read_bag, read_trajectory
from simbridge.trajectory.fitted import elbow_line, paper_size, shoulder_line, wrist_line
from simbridge.trajectory.paths import Path
from simbridge.trajectory.shapes import IsoCube, corners, largest_cube, pick_and_place, square, step
from simbridge.trajectory.trace import (
    ConstantOrientation,
    ConstantSpeed,
    LookAt,
    MinimumJerk,
    MotionLaw,
    Orientation,
    PathTangent,
    SlowInSlowOut,
    Trapezoid,
    concatenate,
    dwell,
    move,
    trace,
)
from simbridge.trajectory.trajectory import Hold, Sampling, Trajectory
from simbridge.trajectory.writers import write_bag, write_csv, write_tum
