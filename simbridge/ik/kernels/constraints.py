"""The constrained step: strict rows hold, and soft rows use the remaining freedom of the joints.

See `simbridge.ik.constrained` for the system that is solved.
"""

from __future__ import annotations

from simbridge.ik.kernels.dense import decompose, solve_rank_revealing
from simbridge.ik.kernels.records import Descent
from simbridge.robot.pose import Array


def constrained_step(settings: tuple[Array, Array, float, float], descent: Descent) -> None:
    """Solve the lecture's system: strict rows of the task, and soft rows.

    Args:
        settings: 2 A^T W A (n, n) and 2 A^T W b (n,) of the soft rows at q = 0; how b falls with
            A q (for the natural posture b = pull (posture - q), with A = I); the cutoff of
            dependent rows.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    hessian, gradient, pull, cutoff = settings
    iterate = descent.iterate
    scratch = descent.scratch
    rows = iterate.rows

    for k in range(rows):
        scratch.strict_values[0, k] = iterate.error[k]
        scratch.strict_values[1, k] = 0.0
    rank = independent_rows(iterate.jacobian, rows, cutoff, descent)
    soft_gradient(hessian, gradient, pull, descent)
    solve_constraints(rows, rank, hessian, scratch.motion, descent)


def strict_rows_step(
    settings: tuple[Array, Array, Array, Array, float, float], descent: Descent
) -> None:
    """Solve the system with custom strict rows, which come first.

    Of the task remains what they leave free, so the arm comes to rest in conflicts. Their motion
    and what compensates for it at the tool belong together: if they exceed the clamp, both are
    shortened. Where everything can be satisfied this is the lecture's one system, in which no
    strict row comes before another.

    Args:
        settings: The custom rows (m, n) and what they are to attain (m,), then those of
            `constrained_step`.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    strict, values, hessian, gradient, pull, cutoff = settings
    scratch = descent.scratch
    rows = descent.iterate.rows

    custom = load_custom_rows(strict, values, cutoff, descent)
    for k in range(rows):
        free_task_row(k, custom, cutoff, descent)

    rank = independent_rows(scratch.strict, rows + custom, cutoff, descent)
    soft_gradient(hessian, gradient, pull, descent)
    solve_constraints(rows + custom, rank, hessian, scratch.motion, descent)


def load_custom_rows(strict: Array, values: Array, cutoff: float, descent: Descent) -> int:
    """Write the independent custom strict rows behind the rows of the task.

    The written rows are orthonormal, and stay in `scratch.joints` as well; the values that they are
    to attain are in `scratch.vector`.

    Args:
        strict: The custom rows (m, n).
        values: The values that the rows are to attain (m,).
        cutoff: Rows count as dependent below this fraction of the largest.
        descent: State of the descent, whose scratch is filled in.

    Returns:
        The number of independent rows.
    """
    scratch = descent.scratch
    rows = descent.iterate.rows
    n = descent.iterate.n
    count = strict.shape[0]

    for k in range(count):
        scratch.strict_values[1, k] = values[k]
        for j in range(n):
            scratch.strict[j, k] = strict[k, j]
    independent = independent_rows(scratch.strict, count, cutoff, descent)
    for i in range(independent):
        scratch.vector[i] = along(i, 1, count, descent)

    for i in range(independent):
        scratch.strict_values[0, rows + i] = 0.0
        scratch.strict_values[1, rows + i] = scratch.vector[i]
        for j in range(n):
            scratch.strict[j, rows + i] = scratch.joints[i, j]
    return independent


def free_task_row(k: int, custom: int, cutoff: float, descent: Descent) -> None:
    """Take from a row of the task what custom strict rows leave no freedom for.

    The tool motion of the custom rows is compensated where there is freedom left.

    Args:
        k: The row.
        custom: The number of custom rows, as `load_custom_rows` left them.
        cutoff: A remainder up to this fraction of the row counts as zero.
        descent: Jacobian and scratch change.
    """
    scratch = descent.scratch
    jacobian = descent.iterate.jacobian
    n = descent.iterate.n

    scratch.strict_values[0, k] = descent.iterate.error[k]
    scratch.strict_values[1, k] = 0.0
    square = 0.0
    for j in range(n):
        square += jacobian[j, k] * jacobian[j, k]

    for i in range(custom):
        shared = 0.0
        for j in range(n):
            shared += jacobian[j, k] * scratch.joints[i, j]
        scratch.strict_values[1, k] -= shared * scratch.vector[i]
        for j in range(n):
            jacobian[j, k] -= shared * scratch.joints[i, j]

    # The direction of a remainder that is nearly zero is rounding, and would violate the rows.
    remaining_square = 0.0
    for j in range(n):
        remaining_square += jacobian[j, k] * jacobian[j, k]
    factor = 1.0 if remaining_square > cutoff * cutoff * square else 0.0
    for j in range(n):
        jacobian[j, k] *= factor
        scratch.strict[j, k] = jacobian[j, k]


def soft_gradient(hessian: Array, gradient: Array, pull: float, descent: Descent) -> None:
    """Write 2 A^T W b of the soft rows at the joint positions into `scratch.motion`."""
    q = descent.iterate.q
    soft = descent.scratch.motion
    n = descent.iterate.n
    for i in range(n):
        soft[i] = gradient[i]
        for j in range(n):
            soft[i] -= hessian[i, j] * pull * q[j]


def independent_rows(jacobian: Array, rows: int, cutoff: float, descent: Descent) -> int:
    """Decompose J = U S V^T into the scratch; return its numerical rank.

    V^T dq = S^-1 U^T e are the independent strict rows. They are equivalent to all rows if none
    depends on others; otherwise they solve J dq = e in least squares.

    Args:
        jacobian: J, transposed (n, rows or more).
        rows: The number of rows.
        cutoff: Rows whose singular value is up to this fraction of the largest count as dependent.
        descent: State of the descent, whose scratch is filled in.
    """
    scratch = descent.scratch
    singular = scratch.singular
    count = decompose(jacobian, descent.iterate.n, rows, scratch.joints, singular, scratch.tool)
    rank = 0
    while rank < count and singular[rank] > cutoff * singular[0]:
        rank += 1
    return rank


def solve_constraints(
    rows: int, rank: int, hessian: Array, gradient: Array, descent: Descent
) -> None:
    """Fill in three motions whose sum satisfies the strict rows with the smallest soft cost.

    `dq` attains one part of what the rows demand and `held` the other, each without any motion in
    the null space; `drift` reduces the soft cost in the null space.

    Args:
        rows: The number of strict rows; their e, in two parts, is in `scratch.strict_values`.
        rank: The number of independent ones, as `independent_rows` left them.
        hessian: 2 A^T W A (n, n), its largest entry about one, so that the strict rows are not lost
            in rounding.
        gradient: 2 A^T W b (n,), on the same scale.
        descent: The motions and the scratch are filled.
    """
    if rank == hessian.shape[0]:
        solve_determined(rows, rank, descent)
    else:
        solve_redundant(rows, rank, hessian, gradient, descent)


def solve_determined(rows: int, rank: int, descent: Descent) -> None:
    """Fill in the motions that as many strict rows as joints determine alone, without a system.

    Args:
        rows: The number of strict rows.
        rank: The number of independent ones, which is the number of joints.
        descent: The motions and the scratch are filled.
    """
    iterate = descent.iterate
    joints = descent.scratch.joints
    n = rank

    for j in range(n):
        iterate.dq[j] = 0.0
        iterate.drift[j] = 0.0
        iterate.held[j] = 0.0
    for i in range(rank):
        first_part = along(i, 0, rows, descent)
        second_part = along(i, 1, rows, descent)
        for j in range(n):
            iterate.dq[j] += first_part * joints[i, j]
            iterate.held[j] += second_part * joints[i, j]


def solve_redundant(
    rows: int, rank: int, hessian: Array, gradient: Array, descent: Descent
) -> None:
    """Fill in the motions from one linear system for them and the Lagrange multipliers.

    Args:
        rows: The number of strict rows.
        rank: The number of independent ones, fewer than the joints.
        hessian: 2 A^T W A (n, n); see `solve_constraints`.
        gradient: 2 A^T W b (n,), on the same scale.
        descent: The motions and the scratch are filled.
    """
    iterate = descent.iterate
    joints = descent.scratch.joints
    matrix = descent.scratch.matrix
    # The right-hand sides for `dq`, `drift` and `held`.
    sides = descent.scratch.sides
    n = hessian.shape[0]
    size = n + rank

    for a in range(size):
        for b in range(size):
            matrix[a, b] = hessian[a, b] if a < n and b < n else 0.0
    for j in range(n):
        sides[0, j] = 0.0
        sides[1, j] = gradient[j]
        sides[2, j] = 0.0
    for i in range(rank):
        sides[0, n + i] = along(i, 0, rows, descent)
        sides[1, n + i] = 0.0
        sides[2, n + i] = along(i, 1, rows, descent)
        for j in range(n):
            matrix[n + i, j] = joints[i, j]
            matrix[j, n + i] = joints[i, j]

    solve_rank_revealing(matrix, sides, size, descent.scratch.order)
    for j in range(n):
        iterate.dq[j] = sides[0, j]
        iterate.drift[j] = sides[1, j]
        iterate.held[j] = sides[2, j]


def along(i: int, part: int, rows: int, descent: Descent) -> float:
    """Return the motion, rad, along the i-th singular vector for a part of the strict values."""
    scratch = descent.scratch
    motion = 0.0
    for k in range(rows):
        motion += scratch.tool[i, k] * scratch.strict_values[part, k]
    return motion / scratch.singular[i]
