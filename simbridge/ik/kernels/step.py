"""The interface between the loops of the iterative solvers and one solver's step.

A solver's step is a plain function, compiled together with the loops:

    def step(settings, jacobian, error, rows, q, buffers, dq, drift, held)

- `settings`: a tuple of numbers and arrays, from the solver's `kernel_settings()`;
- `jacobian` (n, 6): a row per joint, a column per component of the task; SI units;
- `error` (6,): the clamped error in the order of the columns, m and rad;
- `rows`: the number of components that the task has; those come first;
- `q` (n,): joint positions;
- `buffers`: scratch arrays, which keep nothing between calls;
- `dq` (n,): result: the motion that is to reduce the error;
- `drift` (n,): result, may be left zero: a motion within the null space;
- `held` (n,): result, may be left zero: a motion that is made in any case. Only the step clamp shortens it, and the
  rest gets what the clamp leaves.

A step may remove from the Jacobian what its own rows leave no freedom for; the steepest descent, which may replace the
step, then keeps to these rows as well. Finite input has to give finite output, singular or not; the loops clamp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simbridge.robot.pose import Array, Counts


class Rules(NamedTuple):
    """What the loops comply with, whatever the solver.

    Attributes:
        rows: Of the task.
        strict: Rows that the buffers have to hold: six, and a solver's own strict ones.
        translation_clamp, rotation_clamp: The largest error that acts, m and rad; infinite for none.
        step_clamp: The largest motion of a joint in an iteration, rad or m; infinite for none.
        rotation_weight: Weight of a radian against a metre in the cost.
    """

    rows: int
    strict: int
    translation_clamp: float
    rotation_clamp: float
    step_clamp: float
    rotation_weight: float


class Buffers(NamedTuple):
    """Scratch arrays of a step, for n joints and m strict rows.

    Attributes:
        matrix: (n + m, n + m): the system to solve.
        vector: (n + m,): its right-hand side and solution.
        sides: (3, n + m): the same for three right-hand sides.
        order: (n + m,): its pivots.
        motion: (n,): a motion of the joints.
        task: (6,): a motion of the tool.
        joints: (m, n): singular vectors in joint space, one per row.
        singular: (m,): singular values.
        tool: (m, m): singular vectors in task space, one per row.
        rows: (n, m): strict rows, transposed.
        wanted: (2, m): what the strict rows are to attain, in two parts.
    """

    matrix: Array
    vector: Array
    sides: Array
    order: Counts
    motion: Array
    task: Array
    joints: Array
    singular: Array
    tool: Array
    rows: Array
    wanted: Array


class State(NamedTuple):
    """Arrays of the loops, for n joints.

    Attributes:
        target: Position (3) and rotation matrix (9, row by row).
        error: Target minus tool (6,) in base axes: translation, then the Rodrigues vector. Components that the task
            does not constrain are zero.
        pull, other_pull: The clamped error in the task's rows (6,), before and after a step.
        jacobian, other_jacobian: In the task's rows (n, 6), a row per joint, before and after a step.
        dq, drift, held: Results of the step (n,).
        before: Joint positions before the step (n,).
        base, correction, onward, unused: For `null_space_step` (n,).
    """

    target: Array
    error: Array
    pull: Array
    other_pull: Array
    jacobian: Array
    other_jacobian: Array
    dq: Array
    drift: Array
    held: Array
    before: Array
    base: Array
    correction: Array
    onward: Array
    unused: Array


def allocate_buffers(n: int, m: int) -> Buffers:
    """Scratch arrays for n joints and m strict rows."""
    return Buffers(
        np.zeros((n + m, n + m)),
        np.zeros(n + m),
        np.zeros((3, n + m)),
        np.zeros(n + m, np.int64),
        np.zeros(n),
        np.zeros(6),
        np.zeros((m, n)),
        np.zeros(m),
        np.zeros((m, m)),
        np.zeros((n, m)),
        np.zeros((2, m)),
    )


def allocate_state(n: int) -> State:
    """Arrays of the loops for n joints."""
    return State(
        np.zeros(12),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6),
        np.zeros((n, 6)),
        np.zeros((n, 6)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )


def linearize(
    placements: Array,
    q: Array,
    target: Array,
    translation_clamp: float,
    rotation_clamp: float,
    error: Array,
    pull: Array,
    jacobian: Array,
) -> None:
    """Error and Jacobian at q (n,), as in `State`. Stands for the generated function: see `source.linearize`."""
    raise NotImplementedError


def take_step(
    settings: Any,
    jacobian: Array,
    error: Array,
    rows: int,
    q: Array,
    buffers: Buffers,
    dq: Array,
    drift: Array,
    held: Array,
) -> None:
    """Stands for a solver's step."""
    raise NotImplementedError
