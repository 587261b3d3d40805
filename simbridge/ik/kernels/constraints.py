"""The constrained step: strict rows hold, and soft rows use the remaining freedom of the joints.

A strict row is a linear equation of the motion: row dq = value. The rows of the task come first,
with the clamped error as values; a solver may add custom ones. `simbridge.ik.constrained` describes
the system that is solved.

The values of the strict rows come in two parts, and the motion is the sum of what attains them.
`iterate.dq` attains the first part, which reduces the error of the task, and may be shortened.
`iterate.held` attains the second part, which the custom rows demand, and is made in any case.
"""

from __future__ import annotations

from simbridge.ik.kernels.dense import decompose, solve_rank_revealing
from simbridge.ik.kernels.records import Descent
from simbridge.robot.pose import Array

# The parts of the values in `scratch.strict_values`, by their index: what `iterate.dq` attains, and
# what `iterate.held` attains.
ERROR_PART = 0
HELD_PART = 1


def constrained_step(settings: tuple[Array, Array, float, float], descent: Descent) -> None:
    """Fill in the motion with the strict rows of the task and soft rows.

    Args:
        settings: 2 A^T W A (n, n) and 2 A^T W b (n,) of the soft rows A dq = b with weights W at
            q = 0; the factor by which b falls with A q (for the natural posture
            b = pull (posture - q), with A = I); the cutoff of dependent rows.
        descent: The descent; its motions `iterate.dq`, `drift` and `held` are filled in.
    """
    hessian, gradient, pull, cutoff = settings
    iterate = descent.iterate
    scratch = descent.scratch
    rows = iterate.rows

    for k in range(rows):
        scratch.strict_values[ERROR_PART, k] = iterate.error[k]
        scratch.strict_values[HELD_PART, k] = 0.0
    rank = independent_rows(iterate.jacobian, rows, cutoff, descent)
    soft_gradient(hessian, gradient, pull, descent)
    solve_constraints(rows, rank, hessian, scratch.motion, descent)


def strict_rows_step(
    settings: tuple[Array, Array, Array, Array, float, float], descent: Descent
) -> None:
    """Fill in the motion with custom strict rows, which take precedence over those of the task.

    The task is pursued only where the custom rows leave freedom, so that the arm comes to rest if
    they conflict. Their motion, and the motion that compensates for it at the tool, are both in
    `iterate.held`, so that a clamp shortens both alike. If all rows can be satisfied, the result is
    the same as without a precedence.

    Args:
        settings: The custom rows (m, n) and their values (m,), followed by the settings of
            `constrained_step`.
        descent: The descent; its motions `iterate.dq`, `drift` and `held` are filled in.
    """
    strict, values, hessian, gradient, pull, cutoff = settings
    scratch = descent.scratch
    rows = descent.iterate.rows

    custom = load_custom_rows(strict, values, cutoff, descent)
    for k in range(rows):
        project_task_row(k, custom, cutoff, descent)

    rank = independent_rows(scratch.strict, rows + custom, cutoff, descent)
    soft_gradient(hessian, gradient, pull, descent)
    solve_constraints(rows + custom, rank, hessian, scratch.motion, descent)


def load_custom_rows(strict: Array, values: Array, cutoff: float, descent: Descent) -> int:
    """Replace the custom strict rows by orthonormal ones, and append these to the rows of the task.

    The orthonormal rows are in `scratch.joints` afterwards, too, and their values in
    `scratch.vector`.

    Args:
        strict: The custom rows (m, n).
        values: Values of the custom rows (m,).
        cutoff: Rows whose singular value is up to this fraction of the largest count as dependent.
        descent: The descent; its scratch is filled in.

    Returns:
        The number of orthonormal rows: of independent custom rows.
    """
    scratch = descent.scratch
    rows = descent.iterate.rows
    n = descent.iterate.n
    count = strict.shape[0]

    # Orthonormalise the custom rows, and find the values of the orthonormal ones. Until then the
    # custom rows stand at the places of the task's rows, which are filled in later.
    for k in range(count):
        scratch.strict_values[HELD_PART, k] = values[k]
        for j in range(n):
            scratch.strict[j, k] = strict[k, j]
    independent = independent_rows(scratch.strict, count, cutoff, descent)
    # Find all values before writing any: that may overwrite values from which others are found.
    for i in range(independent):
        scratch.vector[i] = motion_along(i, HELD_PART, count, descent)

    # Write them after the rows of the task.
    for i in range(independent):
        scratch.strict_values[ERROR_PART, rows + i] = 0.0
        scratch.strict_values[HELD_PART, rows + i] = scratch.vector[i]
        for j in range(n):
            scratch.strict[j, rows + i] = scratch.joints[i, j]
    return independent


def project_task_row(k: int, custom: int, cutoff: float, descent: Descent) -> None:
    """Project a row of the task onto the null space of the custom strict rows.

    What the projection removes is determined by the custom rows. They move the tool along the row
    by (row . w) v, summed over the orthonormal custom rows w with values v. The held part of the
    row's value becomes minus this motion, so that the remaining freedom compensates for it.

    Args:
        k: Index of the row.
        custom: Number of orthonormal custom rows, as `load_custom_rows` returned it.
        cutoff: A projection up to this fraction of the row's length counts as zero.
        descent: The descent; the row of its Jacobian and its scratch are changed.
    """
    scratch = descent.scratch
    jacobian = descent.iterate.jacobian
    n = descent.iterate.n

    scratch.strict_values[ERROR_PART, k] = descent.iterate.error[k]
    scratch.strict_values[HELD_PART, k] = 0.0
    square = 0.0
    for j in range(n):
        square += jacobian[j, k] * jacobian[j, k]

    for i in range(custom):
        component = 0.0
        for j in range(n):
            component += jacobian[j, k] * scratch.joints[i, j]
        scratch.strict_values[HELD_PART, k] -= component * scratch.vector[i]
        for j in range(n):
            jacobian[j, k] -= component * scratch.joints[i, j]

    # A projection that is nearly zero has a direction of rounding, which would violate the custom
    # rows: set it to zero.
    projected_square = 0.0
    for j in range(n):
        projected_square += jacobian[j, k] * jacobian[j, k]
    factor = 1.0 if projected_square > cutoff * cutoff * square else 0.0
    for j in range(n):
        jacobian[j, k] *= factor
        scratch.strict[j, k] = jacobian[j, k]


def soft_gradient(hessian: Array, gradient: Array, pull: float, descent: Descent) -> None:
    """Write 2 A^T W b of the soft rows at the current joint positions into `scratch.motion`.

    Args:
        hessian: 2 A^T W A (n, n).
        gradient: 2 A^T W b at q = 0 (n,).
        pull: The factor by which b falls with A q.
        descent: The descent; its scratch is filled in.
    """
    q = descent.iterate.q
    soft = descent.scratch.motion
    n = descent.iterate.n
    for i in range(n):
        soft[i] = gradient[i]
        for j in range(n):
            soft[i] -= hessian[i, j] * pull * q[j]


def independent_rows(jacobian: Array, rows: int, cutoff: float, descent: Descent) -> int:
    """Decompose rows J = U S V^T into the scratch, and return their numerical rank.

    For J dq = e the independent rows are V^T dq = S^-1 U^T e. They are equivalent to all rows if
    none depends on others; otherwise their solution is that of J dq = e by least squares. V^T is
    written to `scratch.joints`, U^T to `scratch.tool` and S to `scratch.singular`.

    Args:
        jacobian: J, transposed (n, rows or more).
        rows: Number of rows.
        cutoff: Rows whose singular value is up to this fraction of the largest count as dependent.
        descent: The descent; its scratch is filled in.
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

    `dq` attains the error part of the values and `held` the held part. `drift` lies in the null
    space of the strict rows and reduces the soft cost.

    Args:
        rows: Number of strict rows; their values are in `scratch.strict_values`.
        rank: Number of independent rows, as `independent_rows` returned it.
        hessian: 2 A^T W A (n, n), scaled so that its largest entry is about one and the strict rows
            are not lost in rounding.
        gradient: 2 A^T W b (n,), scaled by the same factor as `hessian`.
        descent: The descent; its motions and its scratch are filled in.
    """
    if rank == hessian.shape[0]:
        solve_determined(rows, rank, descent)
    else:
        solve_redundant(rows, rank, hessian, gradient, descent)


def solve_determined(rows: int, rank: int, descent: Descent) -> None:
    """Fill in the motions if there are as many independent strict rows as joints.

    Then the rows determine the motion alone, and there is no null space to drift in.

    Args:
        rows: Number of strict rows.
        rank: Number of independent rows, equal to the number of joints.
        descent: The descent; its motions are filled in.
    """
    iterate = descent.iterate
    # V^T: orthonormal rows that are equivalent to the independent strict rows.
    directions = descent.scratch.joints
    n = rank

    for j in range(n):
        iterate.dq[j] = 0.0
        iterate.drift[j] = 0.0
        iterate.held[j] = 0.0
    for i in range(rank):
        error_motion = motion_along(i, ERROR_PART, rows, descent)
        held_motion = motion_along(i, HELD_PART, rows, descent)
        for j in range(n):
            iterate.dq[j] += error_motion * directions[i, j]
            iterate.held[j] += held_motion * directions[i, j]


def solve_redundant(
    rows: int, rank: int, hessian: Array, gradient: Array, descent: Descent
) -> None:
    """Fill in the motions if there are fewer independent strict rows than joints.

    They are the solutions of one linear system for the joints and the Lagrange multipliers of the
    rows, with a right-hand side for each motion.

    Args:
        rows: Number of strict rows.
        rank: Number of independent rows, fewer than the joints.
        hessian: 2 A^T W A (n, n); see `solve_constraints`.
        gradient: 2 A^T W b (n,), scaled by the same factor as `hessian`.
        descent: The descent; its motions and its scratch are filled in.
    """
    iterate = descent.iterate
    # V^T: orthonormal rows that are equivalent to the independent strict rows.
    directions = descent.scratch.joints
    matrix = descent.scratch.matrix
    # The right-hand sides for `dq`, `drift` and `held`.
    sides = descent.scratch.sides
    n = hessian.shape[0]
    size = n + rank

    # The matrix [[hessian, V], [V^T, 0]].
    for a in range(size):
        for b in range(size):
            matrix[a, b] = hessian[a, b] if a < n and b < n else 0.0
    for j in range(n):
        sides[0, j] = 0.0
        sides[1, j] = gradient[j]
        sides[2, j] = 0.0
    for i in range(rank):
        sides[0, n + i] = motion_along(i, ERROR_PART, rows, descent)
        sides[1, n + i] = 0.0
        sides[2, n + i] = motion_along(i, HELD_PART, rows, descent)
        for j in range(n):
            matrix[n + i, j] = directions[i, j]
            matrix[j, n + i] = directions[i, j]

    solve_rank_revealing(matrix, sides, size, descent.scratch.order)
    for j in range(n):
        iterate.dq[j] = sides[0, j]
        iterate.drift[j] = sides[1, j]
        iterate.held[j] = sides[2, j]


def motion_along(i: int, part: int, rows: int, descent: Descent) -> float:
    """Return the motion along a singular vector in joint space that attains strict values, rad.

    It is an entry of S^-1 U^T e.

    Args:
        i: Index of the singular vector.
        part: Part of the values: ERROR_PART or HELD_PART.
        rows: Number of strict rows.
        descent: The descent, with the rows decomposed in its scratch.
    """
    scratch = descent.scratch
    motion = 0.0
    for k in range(rows):
        motion += scratch.tool[i, k] * scratch.strict_values[part, k]
    return motion / scratch.singular[i]
