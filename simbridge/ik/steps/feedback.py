"""Feedback inverse kinematics: dq = J^T Q (J J^T Q + I)^-1 e.

Pechev, "Inverse kinematics without matrix inversion", ICRA 2008; equation 5 in Scherzinger, Roennau and Dillmann,
"Inverse kinematics with forward dynamics solvers for sampled motion tracking". Pechev's Q is dynamic and comes from
an optimisation off line; here it is constant and diagonal, and the velocity demand is the error, to be removed in one
iteration.
"""

from __future__ import annotations

import math

from simbridge.ik.dense import solve_positive_definite
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.steps.products import task_gram, to_joints
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array


@compiled
def step(jacobian: Array, error: Array, rows: int, q: Array, gain: Array, work: Work, dq: Array) -> None:
    """The motion that the feedback loop settles at, found by a solve rather than by running the loop or by an inverse.

    With S = sqrt(Q), Q (J J^T Q + I)^-1 = S (S J J^T S + I)^-1 S, whose matrix is symmetric with no eigenvalue below
    one. For Q = I / lambda^2 this is damped least squares.

    Args:
        gain: Diagonal of Q (6,), not negative: 1/m^2 for the translation (each joint's motion being in rad), none for
            the rotation. The more, the less error is left; a component of zero is left out.
    """
    task_gram(jacobian, rows, work.matrix)
    for a in range(rows):
        root = math.sqrt(gain[a])
        work.task[a] = root
        work.vector[a] = root * error[a]
        for b in range(a + 1):
            work.matrix[a, b] *= root * work.task[b]
        work.matrix[a, a] += 1.0
    solve_positive_definite(work.matrix, work.vector, rows)
    for a in range(rows):
        work.vector[a] *= work.task[a]
    to_joints(jacobian, work.vector, rows, dq)
