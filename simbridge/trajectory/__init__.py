# ruff: noqa: F401  (the public names)
"""Sampled Cartesian trajectories: paths, motion laws, orientations, shapes, sampling and files."""

from simbridge.robot.workspace import TOOL_DOWN
from simbridge.trajectory import paths
from simbridge.trajectory.bag_writer import write_bag
from simbridge.trajectory.files import read_bag, read_trajectory
from simbridge.trajectory.iso_cube import IsoCube, largest_cube
from simbridge.trajectory.motion_laws import (
    ConstantSpeed,
    MinimumJerk,
    MotionLaw,
    SlowInSlowOut,
    Trapezoid,
)
from simbridge.trajectory.orientations import (
    ConstantOrientation,
    LookAt,
    Orientation,
    PathTangent,
)
from simbridge.trajectory.paper_size import paper_size
from simbridge.trajectory.paths import GeometricPath
from simbridge.trajectory.read_options import Frame, ReadOptions
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.shapes import corners, pick_and_place, square, step
from simbridge.trajectory.singular_lines import elbow_line, shoulder_line, wrist_line
from simbridge.trajectory.trace import concatenate, dwell, move, trace
from simbridge.trajectory.trajectory import Hold, Trajectory
from simbridge.trajectory.writers import write_csv, write_tum
