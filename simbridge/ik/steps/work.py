"""The scratch arrays of a step, made once so that no iteration allocates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.robot.pose import Array, Counts


class Work(NamedTuple):
    """Room for any step of a chain of n joints and m strict rows: six of the task, and one's own."""

    matrix: Array
    """(n + m, n + m): the system to solve."""
    vector: Array
    """(n + m,): its right-hand side and solution."""
    sides: Array
    """(3, n + m): the same, of three systems in one."""
    order: Counts
    """(n + m,): its pivots."""
    motion: Array
    """(n,): a motion of the joints."""
    task: Array
    """(6,): a motion of the tool."""
    joints: Array
    """(m, n): singular vectors in joint space, a row each."""
    singular: Array
    """(m,): singular values."""
    tool: Array
    """(m, m): singular vectors in task space, a row each."""
    rows: Array
    """(n, m): the strict rows, transposed."""
    asked: Array
    """(2, m): what strict rows are to attain, in two parts."""


def work_for(joints: int, rows: int = 6) -> Work:
    """Scratch arrays for a chain of `joints` joints, and for so many strict rows."""
    size = joints + rows
    return Work(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((3, size)),
        np.zeros(size, np.int64),
        np.zeros(joints),
        np.zeros(6),
        np.zeros((rows, joints)),
        np.zeros(rows),
        np.zeros((rows, rows)),
        np.zeros((joints, rows)),
        np.zeros((2, rows)),
    )
