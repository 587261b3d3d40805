"""The constrained step: strict rows J dq = e, and soft rows that ask for a natural posture in what those leave free.

Berns, lecture "Inverse kinematics", University of Kaiserslautern: the Lagrange multipliers' system

    [2 A^T A  J^T] [  dq  ]   [2 A^T w]
    [   J      0 ] [lambda] = [   e   ]

whose soft rows A dq = w are here sqrt(weight_i) dq_i = sqrt(weight_i) pull (posture_i - q_i).
"""

from __future__ import annotations

from simbridge.ik.chain import Array, compiled
from simbridge.ik.dense import decompose, solve_rank_revealing
from simbridge.ik.steps.work import Work

CUTOFF = 1e-9
"""A cut-off that drops what is singular to rounding and keeps every row that is merely near it."""


@compiled
def step(
    jacobian: Array,
    error: Array,
    rows: int,
    q: Array,
    posture: Array,
    weights: Array,
    pull: float,
    cutoff: float,
    work: Work,
    dq: Array,
) -> int:
    """The motion that obeys the strict rows and, of those that do, has the least soft cost.

    The strict rows go in as V^T dq = S^-1 U^T e, with J = U S V^T. Those are the same rows when none depends on the
    others; when some do, they are the independent ones that solve J dq = e in the sense of least squares.

    Args:
        posture: The natural joint positions (n,).
        weights: How much each joint's distance from its natural motion counts (n,), not negative; zero for not at all.
        pull: Share of the way to the posture that an iteration asks for, 0 to 1; with zero the joints would rather
            rest.
        cutoff: Rows whose singular value is at or below this share of the largest count as dependent.

    Returns:
        The number of dependent strict rows, rows less the rank; zero when all are obeyed.
    """
    n = jacobian.shape[0]
    count = decompose(jacobian, n, rows, work.joints, work.singular, work.tool)
    rank = 0
    while rank < count and work.singular[rank] > cutoff * work.singular[0]:
        rank += 1
    heaviest = 0.0
    for j in range(n):
        heaviest = max(heaviest, weights[j])
    # The weights matter only against each other; their size must not drown the strict rows.
    scale = 2.0 / heaviest if heaviest > 0.0 else 0.0
    kkt, solution, size = work.matrix, work.vector, n + rank
    for a in range(size):
        for b in range(size):
            kkt[a, b] = 0.0
    for j in range(n):
        kkt[j, j] = scale * weights[j]
        solution[j] = scale * weights[j] * pull * (posture[j] - q[j])
    for i in range(rank):
        along = 0.0
        for k in range(rows):
            along += work.tool[i, k] * error[k]
        solution[n + i] = along / work.singular[i]
        for j in range(n):
            kkt[n + i, j] = work.joints[i, j]
            kkt[j, n + i] = work.joints[i, j]
    solve_rank_revealing(kkt, solution, size, work.order)
    for j in range(n):
        dq[j] = solution[j]
    return rows - rank
