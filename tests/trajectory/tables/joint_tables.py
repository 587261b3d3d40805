"""Tables of joint positions, and the arms whose joints they are."""

from __future__ import annotations

import numpy as np

import simbridge
from simbridge.planning.scenario import load_scenario
from simbridge.trajectory.read_options import ReadOptions

ROBOT = simbridge.load_robot("ur10e")
TIMES = np.arange(100) * 0.02
JOINTS = np.array([0.5, -1.9, -1.8, 0.6, 1.4, -3.5]) + np.outer(
    TIMES, [0.1, 0.2, -0.1, 0.05, 0.1, 0.3]
)


def write_table(path, names, columns, *, comment=""):
    """Write a CSV of these columns, with exact numbers."""
    header = ",".join(names)
    np.savetxt(
        path,
        np.column_stack(columns),
        fmt="%.17g",
        delimiter=",",
        header=header,
        comments=comment,
    )
    return path


def read(path, robot=ROBOT, **options):
    """Read a file as `simbridge run` does."""
    return load_scenario(path, robot, ReadOptions(**options)).trajectory
