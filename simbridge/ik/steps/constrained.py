"""The constrained step: strict rows J dq = e, and soft rows A dq = b in what those leave free.

Berns, lecture "Inverse kinematics", University of Kaiserslautern: the Lagrange multipliers' system

    [2 A^T W A  J^T] [  dq  ]   [2 A^T W b]
    [    J       0 ] [lambda] = [    e    ]

with the weights W of the soft rows, which the lecture has for joints only.
"""

from __future__ import annotations

from simbridge.ik.dense import decompose, solve_rank_revealing
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array


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
    rows: int,
    rank: int,
    hessian: Array,
    gradient: Array,
    work: Work,
    dq: Array,
    drift: Array,
    held: Array,
) -> None:
    """Three motions whose sum obeys the strict rows and, of those that do, has the least soft cost.

    `dq` attains one part of what the rows ask for and `held` the other, each with no more than that; `drift` lowers the
    soft cost in what is free. Where as many strict rows as joints are independent they decide alone, and the system is
    not asked.

    Args:
        rows, rank: Of the strict rows, as `independent_rows` left them in `work`; their e, in two
            parts, is in `work.asked`.
        hessian: 2 A^T W A (n, n), its largest entry about one, so that it does not drown the strict rows.
        gradient: 2 A^T W b (n,), on the same scale.
    """
    n = hessian.shape[0]
    if rank == n:
        for j in range(n):
            dq[j], drift[j], held[j] = 0.0, 0.0, 0.0
        for i in range(rank):
            wanted, other = along(i, 0, rows, work), along(i, 1, rows, work)
            for j in range(n):
                dq[j] += wanted * work.joints[i, j]
                held[j] += other * work.joints[i, j]
        return
    kkt, sides, size = work.matrix, work.sides, n + rank
    for a in range(size):
        for b in range(size):
            kkt[a, b] = hessian[a, b] if a < n and b < n else 0.0
    for j in range(n):
        sides[0, j], sides[1, j], sides[2, j] = 0.0, gradient[j], 0.0
    for i in range(rank):
        sides[0, n + i], sides[1, n + i], sides[2, n + i] = along(i, 0, rows, work), 0.0, along(i, 1, rows, work)
        for j in range(n):
            kkt[n + i, j] = work.joints[i, j]
            kkt[j, n + i] = work.joints[i, j]
    solve_rank_revealing(kkt, sides, size, work.order)
    for j in range(n):
        dq[j], drift[j], held[j] = sides[0, j], sides[1, j], sides[2, j]


@compiled
def along(i: int, part: int, rows: int, work: Work) -> float:
    """The motion, rad, along the i-th singular vector that a part of what is asked asks for."""
    motion = 0.0
    for k in range(rows):
        motion += work.tool[i, k] * work.asked[part, k]
    return motion / work.singular[i]
