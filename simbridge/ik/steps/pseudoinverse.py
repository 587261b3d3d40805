"""The pseudoinverse with a step gain: dq = alpha J^+ e.

Whitney, "Resolved motion rate control of manipulators and human prostheses", 1969; Buss, "Introduction to inverse
kinematics with Jacobian transpose, pseudoinverse and damped least squares methods", 2004.
"""

from __future__ import annotations

from simbridge.ik.dense import decompose
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array


@compiled
def step(
    jacobian: Array, error: Array, rows: int, q: Array, alpha: float, cutoff: float, work: Work, dq: Array
) -> None:
    """The smallest motion that brings the tool, to first order, as near as can be to `alpha` of the way.

    Args:
        alpha: Share of the error to remove, 0 to 1.
        cutoff: Singular values at or below this share of the largest count as zero: their directions stay still.
            Between it and one the motion grows as the inverse of the singular value, so one direction may ask for 1 /
            cutoff times what the best one does.
    """
    n = jacobian.shape[0]
    count = decompose(jacobian, n, rows, work.joints, work.singular, work.tool)
    for j in range(n):
        dq[j] = 0.0
    for i in range(count):
        sigma = work.singular[i]
        if sigma <= cutoff * work.singular[0]:
            return
        along = 0.0
        for k in range(rows):
            along += work.tool[i, k] * error[k]
        scale = alpha * along / sigma
        for j in range(n):
            dq[j] += scale * work.joints[i, j]
