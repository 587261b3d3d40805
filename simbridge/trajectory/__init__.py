"""Sampled Cartesian trajectories: the type; paths, laws and orientations to make them of; sampling; and files."""

from simbridge.trajectory import paths
from simbridge.trajectory.bags import read_bag, write_bag
from simbridge.trajectory.files import Frame, Reading, read_trajectory
from simbridge.trajectory.iso_cube import IsoCube, largest_cube
from simbridge.trajectory.orientation import TOOL_DOWN, Fixed, Orientation, Tangent, Towards
from simbridge.trajectory.paper import paper_size
from simbridge.trajectory.paths import Path
from simbridge.trajectory.pick_and_place import pick_and_place
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.shapes import corners, square, step
from simbridge.trajectory.singular import elbow_line, shoulder_line, wrist_line
from simbridge.trajectory.text import write_csv, write_tum
from simbridge.trajectory.timing import ConstantSpeed, Law, MinimumJerk, SlowInSlowOut, Trapezoid
from simbridge.trajectory.trace import joined, move, still, trace
from simbridge.trajectory.trajectory import Hold, Trajectory

__all__ = [
    "TOOL_DOWN",
    "ConstantSpeed",
    "Fixed",
    "Frame",
    "Hold",
    "IsoCube",
    "Law",
    "MinimumJerk",
    "Orientation",
    "Path",
    "Reading",
    "Sampling",
    "SlowInSlowOut",
    "Tangent",
    "Towards",
    "Trajectory",
    "Trapezoid",
    "corners",
    "elbow_line",
    "joined",
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
    "still",
    "trace",
    "wrist_line",
    "write_bag",
    "write_csv",
    "write_tum",
]
