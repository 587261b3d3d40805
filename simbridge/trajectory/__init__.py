"""Sampled Cartesian trajectories: the type; paths, laws and orientations to make them of; sampling; and files."""

from simbridge.deprecated import renamed
from simbridge.trajectory import paths
from simbridge.trajectory.bags import read_bag, write_bag
from simbridge.trajectory.files import Frame, ReadOptions, read_trajectory
from simbridge.trajectory.iso_cube import IsoCube, largest_cube
from simbridge.trajectory.orientation import TOOL_DOWN, ConstantOrientation, LookAt, Orientation, PathTangent
from simbridge.trajectory.paper import paper_size
from simbridge.trajectory.paths import Path
from simbridge.trajectory.pick_and_place import pick_and_place
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.shapes import corners, square, step
from simbridge.trajectory.singular import elbow_line, shoulder_line, wrist_line
from simbridge.trajectory.text import write_csv, write_tum
from simbridge.trajectory.timing import ConstantSpeed, MinimumJerk, MotionLaw, SlowInSlowOut, Trapezoid
from simbridge.trajectory.trace import concatenate, dwell, move, trace
from simbridge.trajectory.trajectory import Hold, Trajectory

__all__ = [
    "TOOL_DOWN",
    "ConstantOrientation",
    "ConstantSpeed",
    "Frame",
    "Hold",
    "IsoCube",
    "LookAt",
    "MinimumJerk",
    "MotionLaw",
    "Orientation",
    "Path",
    "PathTangent",
    "ReadOptions",
    "Sampling",
    "SlowInSlowOut",
    "Trajectory",
    "Trapezoid",
    "concatenate",
    "corners",
    "dwell",
    "elbow_line",
    "largest_cube",
    "move",
    "paper_size",
    "paths",
    "pick_and_place",
    "read_bag",
    "read_trajectory",
    "shoulder_line",
    "square",
    "step",
    "trace",
    "wrist_line",
    "write_bag",
    "write_csv",
    "write_tum",
]


def __getattr__(name: str) -> object:
    return renamed(__name__, name)
