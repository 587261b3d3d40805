"""The data that the loops and steps of the iterative solvers work on, as one record.

Compiled code passes a record as one argument, where an array of its own would be seven. The record
has three parts: what a step reads and fills in, scratch for the step, and what only the loops use.
`simbridge.kernels.records` describes how the sizes of arrays are written.
"""

from __future__ import annotations

from typing import Annotated, Any

from simbridge.kernels.records import allocate_record
from simbridge.robot.pose import Array, Counts

TASK_ROWS = 6
"""Largest number of rows of a task: those of a pose."""
MAX_STRICT = 6
"""Largest number of strict rows that a solver may add to those of the task."""


class DescentIterate:
    """The state of an iteration, for a solver's step to read, and the motions for it to fill."""

    n: int
    """The number of joints."""
    rows: int
    """The number of components of the task; the first columns of `jacobian` belong to them."""

    q: Annotated[Array, "n"]
    """Joint positions, rad or m."""
    jacobian: Annotated[Array, "n", 6]
    """A row per joint and a column per component of the task, SI units.

    A step may project it onto the null space of its own rows. The steepest descent, which may
    replace the step's motion, then respects these rows, too.
    """
    error: Annotated[Array, 6]
    """The clamped error in the order of the columns, m and rad."""

    dq: Annotated[Array, "n"]
    """Filled in by the step: the motion that reduces the error."""
    drift: Annotated[Array, "n"]
    """Filled in by the step, or left zero: a motion within the null space."""
    held: Annotated[Array, "n"]
    """Filled in by the step, or left zero: a motion that is made in any case. Only the step clamp
    shortens it; the other motions get what it leaves of the clamp."""


class Scratch:
    """Arrays for a solver's step. Nothing is kept in them between calls."""

    matrix: Annotated[Array, "system", "system"]
    """The matrix of a linear system."""
    vector: Annotated[Array, "system"]
    """The right-hand side of the system, then its solution."""
    sides: Annotated[Array, 3, "system"]
    """Three right-hand sides of the system, then their solutions."""
    order: Annotated[Counts, "system"]
    """The order of the unknowns of the system."""

    motion: Annotated[Array, "n"]
    """A motion of the joints."""
    task: Annotated[Array, 6]
    """A motion of the tool."""

    joints: Annotated[Array, "side", "side"]
    """Singular vectors in joint space, one per row."""
    tool: Annotated[Array, "side", "side"]
    """Singular vectors in task space, one per row."""
    singular: Annotated[Array, "strict"]
    """Singular values."""

    strict: Annotated[Array, "n", "strict"]
    """Strict rows, transposed."""
    strict_values: Annotated[Array, 2, "strict"]
    """Values of the strict rows, in two parts: see `constraints`."""


class Search:
    """Data that only the loops use: the target, limits, and the result of a motion."""

    placements: Annotated[Array, "frames", 4, 4]
    """The chain; its last frame is the tool's."""
    translation_clamp: float
    """The largest translation error that acts, m; infinite for none."""
    rotation_clamp: float
    """The largest rotation error that acts, rad; infinite for none."""
    step_clamp: float
    """The largest motion of a joint in an iteration, rad or m; infinite for none."""
    rotation_weight: float
    """Weight of a radian against a metre in the cost."""
    difference_step: float
    """The step of each joint for a Jacobian by differences, rad or m."""

    target: Annotated[Array, 12]
    """Position (3) and rotation matrix (9, row by row)."""
    residual: Annotated[Array, 6]
    """Target minus tool in base axes: translation, then the Rodrigues vector. Components that the
    task does not constrain are zero."""
    candidate_error: Annotated[Array, 6]
    """The clamped error at the joint positions after a motion."""
    candidate_jacobian: Annotated[Array, "n", 6]
    """The Jacobian at the joint positions after a motion."""

    q_before: Annotated[Array, "n"]
    """Joint positions before the step."""
    q_before_drift: Annotated[Array, "n"]
    """Joint positions after the step and before the drift."""
    drift: Annotated[Array, "n"]
    """The drift of the step, shortened to the step clamp."""


class Descent:
    """The data of an iterative solver."""

    iterate: DescentIterate
    scratch: Scratch
    search: Search


def allocate_descent(n: int) -> Any:
    """Return an array (1,) with a `Descent` for an arm.

    All its elements are zero, except for the number of joints.

    Args:
        n: Number of joints of the arm.
    """
    # The rows of the task are strict, too.
    strict = TASK_ROWS + MAX_STRICT
    sizes = {
        "n": n,
        "frames": n + 1,
        "strict": strict,
        "system": n + strict,
        # Singular vectors of joint space and of task space are kept in arrays of one size, that of
        # the larger space: the shape is part of an array's type, and one function takes both.
        "side": max(n, strict),
    }
    descents = allocate_record(Descent, sizes)
    descents["iterate"]["n"] = n
    return descents
