"""The data that the iterative solvers' loops and steps work on, as one record.

It is one record, since each of its arrays by itself would be seven arguments of every function that
it passes through. Its parts are apart: what a step reads and fills, its scratch, and what the loops
keep for themselves. See `simbridge.kernels.records` for how the sides of arrays are written.
"""

from __future__ import annotations

from typing import Annotated, Any

from simbridge.kernels.records import allocate_record
from simbridge.robot.pose import Array, Counts

MAX_STRICT = 6
"""Strict rows that a solver may add to the six of the task."""


class DescentIterate:
    """The state of an iteration, for a solver's step to read, and the motions for it to fill."""

    n: int
    """The number of joints."""
    rows: int
    """The number of components that the task has; those come first."""

    q: Annotated[Array, "n"]
    """Joint positions, rad or m."""
    jacobian: Annotated[Array, "n", 6]
    """A row per joint and a column per component of the task, SI units.

    A step may remove what its own rows leave no freedom for; the steepest descent, which may
    replace the step, then keeps to these rows, too.
    """
    error: Annotated[Array, 6]
    """The clamped error in the order of the columns, m and rad."""

    dq: Annotated[Array, "n"]
    """To fill: the motion that is to reduce the error."""
    drift: Annotated[Array, "n"]
    """To fill, or left zero: a motion within the null space."""
    held: Annotated[Array, "n"]
    """To fill, or left zero: a motion that is made in any case. Only the step clamp shortens it; it
    leaves the rest of the clamp to the others."""


class Scratch:
    """Arrays for a solver's step, which keep nothing between calls."""

    matrix: Annotated[Array, "system", "system"]
    """A system to solve."""
    vector: Annotated[Array, "system"]
    """Its right-hand side, then its solution."""
    sides: Annotated[Array, 3, "system"]
    """Three right-hand sides at once, then their solutions."""
    order: Annotated[Counts, "system"]
    """The order of its unknowns."""

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
    """Desired values of the strict rows, in two parts."""


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
    """The clamped error where a motion leads."""
    candidate_jacobian: Annotated[Array, "n", 6]
    """The Jacobian where a motion leads."""

    q_before: Annotated[Array, "n"]
    """Joint positions before the step."""
    q_before_drift: Annotated[Array, "n"]
    """Joint positions after the step, and before the drift."""
    drift: Annotated[Array, "n"]
    """The drift as the step gave it, within the step clamp."""


class Descent:
    """All that an iterative solver works on."""

    iterate: DescentIterate
    scratch: Scratch
    search: Search


def allocate_descent(n: int) -> Any:
    """Return an array (1,) of a `Descent` for n joints, all zero but their number."""
    strict = 6 + MAX_STRICT
    sizes = {
        "n": n,
        "frames": n + 1,
        "strict": strict,
        "system": n + strict,
        # The larger of joint and task space: singular vectors of either space have one shape, since
        # it is part of an array's type, and one function takes both.
        "side": max(n, strict),
    }
    descents = allocate_record(Descent, sizes)
    descents["iterate"]["n"] = n
    return descents
