"""The scratch arrays of a step, made once so that no iteration allocates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.ik.arrays import Array, Counts


class Work(NamedTuple):
    """Room for any step of a chain of n joints and a task of up to six components."""

    matrix: Array
    """(n + 6, n + 6): the system to solve."""
    vector: Array
    """(n + 6,): its right-hand side and solution."""
    sides: Array
    """(2, n + 6): the same, of two systems in one."""
    order: Counts
    """(n + 6,): its pivots."""
    motion: Array
    """(n,): a motion of the joints."""
    task: Array
    """(6,): a motion of the tool."""
    joints: Array
    """(6, n): singular vectors in joint space, a row each."""
    singular: Array
    """(6,): singular values."""
    tool: Array
    """(6, 6): singular vectors in task space, a row each."""


def work_for(joints: int, rows: int = 6) -> Work:
    """Scratch arrays for a chain of `joints` joints, and for so many strict rows."""
    size = joints + rows
    return Work(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((2, size)),
        np.zeros(size, np.int64),
        np.zeros(joints),
        np.zeros(6),
        np.zeros((rows, joints)),
        np.zeros(rows),
        np.zeros((rows, rows)),
    )
