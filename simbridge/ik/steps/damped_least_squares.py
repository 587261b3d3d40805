"""Damped least squares with joint stiffness: dq = J* e + (J* J - I) z, where J* = J^T (J J^T + lambda^2 I)^-1.

Wampler, 1986; Nakamura and Hanafusa, 1986; the stiffness term is equation 17 of Haynes, "Exploring inverse kinematics",
University of Bath, 2017.
"""

from __future__ import annotations

from simbridge.ik.dense import decompose, solve_positive_definite
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.steps.products import joint_gram, task_gram, to_joints, to_task
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array

# Directions whose singular value is this share of the largest, or less, the task does not hold.
_DEPENDENT = 1e-6


@compiled
def step(
    jacobian: Array,
    error: Array,
    rows: int,
    q: Array,
    damping: float,
    stiffness: Array,
    posture: Array,
    printed: bool,
    work: Work,
    dq: Array,
) -> None:
    """The motion that minimises |J dq - e|^2 + lambda^2 |dq|^2, and a pull towards a posture in what the task leaves
    free.

    The posture's cost is the sum of beta_i (q_i - posture_i)^2 and z its gradient, 2 beta_i (q_i - posture_i). The
    report prints the cost itself in the gradient's place, which is never negative: it always turns a joint the same
    way, and away from the posture if the joint is below it. The damped null space leaks: the pull moves the tool by
    -lambda^2 (J J^T + lambda^2 I)^-1 J z, which is small except near a singularity.

    Args:
        damping: lambda, m (as in J, a metre weighs as a radian). With zero the normal equations of a singular
            Jacobian leave out the dependent components.
        stiffness: beta (n,), not negative; zeros for none. A half removes the whole of a joint's free distance to the
            posture; more than one diverges.
        posture: The joint positions (n,) to be pulled to.
        printed: Take the report's z, beta_i (q_i - posture_i)^2, for comparison.
    """
    n = jacobian.shape[0]
    _pull(q, stiffness, posture, printed, dq)
    # J* e + J* J z - z takes one solve: J* (e + J z) - z.
    to_task(jacobian, dq, rows, work.task)
    for k in range(rows):
        work.task[k] += error[k]
    # The smaller of the two equal systems: the larger one is singular but for the damping.
    if n < rows:
        joint_gram(jacobian, rows, work.matrix)
        to_joints(jacobian, work.task, rows, work.motion)
        for j in range(n):
            work.matrix[j, j] += damping * damping
        solve_positive_definite(work.matrix, work.motion, n)
    else:
        task_gram(jacobian, rows, work.matrix)
        for k in range(rows):
            work.matrix[k, k] += damping * damping
        solve_positive_definite(work.matrix, work.task, rows)
        to_joints(jacobian, work.task, rows, work.motion)
    for j in range(n):
        dq[j] = work.motion[j] - dq[j]


@compiled
def ease(
    jacobian: Array, rows: int, q: Array, stiffness: Array, posture: Array, printed: bool, work: Work, drift: Array
) -> None:
    """The pull towards the posture alone, in the true null space: (J^+ J - I) z, with z as of `step`."""
    _pull(q, stiffness, posture, printed, work.motion)
    count = decompose(jacobian, jacobian.shape[0], rows, work.joints, work.singular, work.tool)
    for j in range(q.shape[0]):
        drift[j] = -work.motion[j]
    for i in range(count):
        if work.singular[i] <= _DEPENDENT * work.singular[0]:
            break
        along = 0.0
        for j in range(q.shape[0]):
            along += work.joints[i, j] * work.motion[j]
        for j in range(q.shape[0]):
            drift[j] += along * work.joints[i, j]


@compiled
def _pull(q: Array, stiffness: Array, posture: Array, printed: bool, z: Array) -> None:
    for j in range(q.shape[0]):
        off = q[j] - posture[j]
        z[j] = stiffness[j] * off * off if printed else 2.0 * stiffness[j] * off
