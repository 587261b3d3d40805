"""The constrained step: strict rows J dq = e, and soft rows A dq = b in what those leave free.

Berns, lecture "Inverse kinematics", University of Kaiserslautern: the Lagrange multipliers' system

    [2 A^T W A  J^T] [  dq  ]   [2 A^T W b]
    [    J       0 ] [lambda] = [    e    ]

with the weights W of the soft rows, which the lecture has for joints only.
"""

from __future__ import annotations

from simbridge.ik.arrays import Array
from simbridge.ik.codegen.lazy import compiled
from simbridge.ik.dense import decompose, solve_rank_revealing
from simbridge.ik.steps.work import Work


@compiled
def independent_rows(jacobian: Array, rows: int, cutoff: float, work: Work) -> int:
    """J = U S V^T into `work`, and its numerical rank: V^T dq = S^-1 U^T e are those strict rows that say something.

    They are the same rows when none depends on the others; when some do, they are the independent ones that solve
    J dq = e in the sense of least squares.

    Args:
        jacobian: Of the strict rows, transposed (n, rows or more).
        rows: How many.
        cutoff: Rows whose singular value is at or below this share of the largest count as dependent.
    """
    count = decompose(jacobian, jacobian.shape[0], rows, work.joints, work.singular, work.tool)
    rank = 0
    while rank < count and work.singular[rank] > cutoff * work.singular[0]:
        rank += 1
    return rank


@compiled
def step(
    error: Array,
    beside: Array,
    rows: int,
    rank: int,
    hessian: Array,
    gradient: Array,
    work: Work,
    dq: Array,
    drift: Array,
) -> None:
    """Two motions whose sum obeys the strict rows and, of those that do, has the least soft cost.

    `dq` does what lessens the error, and no more than that; `drift` does all else. Where as many strict rows as joints
    are independent they decide alone, and the system is not asked.

    Args:
        error, beside: The strict rows' e in two parts (rows or more,): of `dq` and of `drift`.
        rows, rank: Of the strict rows, as `independent_rows` left them in `work`.
        hessian: 2 A^T W A (n, n), its largest entry about one, so that it does not drown the strict rows.
        gradient: 2 A^T W b (n,), on the same scale.
    """
    n = hessian.shape[0]
    if rank == n:
        for j in range(n):
            dq[j], drift[j] = 0.0, 0.0
        for i in range(rank):
            wanted, other = _along(i, error, rows, work), _along(i, beside, rows, work)
            for j in range(n):
                dq[j] += wanted * work.joints[i, j]
                drift[j] += other * work.joints[i, j]
        return
    kkt, sides, size = work.matrix, work.sides, n + rank
    for a in range(size):
        for b in range(size):
            kkt[a, b] = hessian[a, b] if a < n and b < n else 0.0
    for j in range(n):
        sides[0, j], sides[1, j] = 0.0, gradient[j]
    for i in range(rank):
        sides[0, n + i], sides[1, n + i] = _along(i, error, rows, work), _along(i, beside, rows, work)
        for j in range(n):
            kkt[n + i, j] = work.joints[i, j]
            kkt[j, n + i] = work.joints[i, j]
    solve_rank_revealing(kkt, sides, size, work.order)
    for j in range(n):
        dq[j], drift[j] = sides[0, j], sides[1, j]


@compiled
def _along(i: int, error: Array, rows: int, work: Work) -> float:
    """The motion, rad, along the i-th singular vector that its part of the error asks for."""
    along = 0.0
    for k in range(rows):
        along += work.tool[i, k] * error[k]
    return along / work.singular[i]
