"""The Jacobian transpose: dq = alpha J^T K e, with a given alpha or with the length that leaves the least error.

Wolovich and Elliott, 1984; Balestrino, De Maria and Sciavicco, 1984; equation 6 in Scherzinger, Roennau and Dillmann,
"Inverse kinematics with forward dynamics solvers for sampled motion tracking".
"""

from __future__ import annotations

from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.steps.products import to_joints, to_task
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array


@compiled
def step(jacobian: Array, error: Array, rows: int, q: Array, alpha: float, gain: Array, work: Work, dq: Array) -> None:
    """The transpose's motion with a given length.

    Args:
        alpha: Step length.
        gain: Diagonal of K (6,), not negative.
    """
    for k in range(rows):
        work.task[k] = alpha * gain[k] * error[k]
    to_joints(jacobian, work.task, rows, dq)


@compiled
def step_of_best_length(jacobian: Array, error: Array, rows: int, q: Array, work: Work, dq: Array) -> None:
    """The transpose's motion with the length that leaves, to first order, the least error.

    alpha = <e, J J^T e> / <J J^T e, J J^T e>: Buss, "Introduction to inverse kinematics with Jacobian transpose,
    pseudoinverse and damped least squares methods", 2004.
    """
    to_joints(jacobian, error, rows, dq)
    to_task(jacobian, dq, rows, work.task)
    pull, reach = 0.0, 0.0
    for k in range(rows):
        pull += error[k] * work.task[k]
        reach += work.task[k] * work.task[k]
    # A reach that is zero, or too small for its square to be told from it, has no direction to search.
    alpha = pull / reach if reach > 1e-290 else 0.0
    for j in range(jacobian.shape[0]):
        dq[j] *= alpha
