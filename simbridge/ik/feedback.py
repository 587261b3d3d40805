"""Feedback inverse kinematics: q += J^T Q (J J^T Q + I)^-1 e.

Pechev, "Inverse kinematics without matrix inversion", ICRA 2008; equation 5 in Scherzinger, Roennau and Dillmann,
"Inverse kinematics with forward dynamics solvers for sampled motion tracking". Pechev's loop drives J dq to e with the
gain Q, and converges to this formula. His Q is dynamic, from an offline optimization for one arm; here it is constant
and diagonal, and with equal gains the method is damped least squares with lambda^2 = 1/Q.
"""

from __future__ import annotations

import math

import numpy as np

from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import solve_positive_definite, task_gram, to_joints
from simbridge.ik.kernels.step import Work
from simbridge.ik.settings import FeedbackParameters, fallback_solver
from simbridge.ik.solver import Solver
from simbridge.robot.pose import Array


class FeedbackIK(IterativeSolver):
    """Feedback inverse kinematics. Settings: see `FeedbackParameters`."""

    name = "feedback"
    Parameters = FeedbackParameters
    settings: FeedbackParameters

    @property
    def reaching(self) -> Solver:
        return fallback_solver(self.robot, self.task)

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(feedback_step, (np.ones(6) * np.array(self.settings.gain),))

    def rotation_weight(self) -> float:
        gain = np.ones(6) * np.array(self.settings.gain)
        return float(gain[3:].mean() / gain[:3].mean())


def feedback_step(settings: tuple[Array], work: Work) -> None:
    """The motion to which the feedback loop converges, by one solve instead of the loop or an inverse.

    With S = sqrt(Q), Q (J J^T Q + I)^-1 = S (S J J^T S + I)^-1 S, whose matrix is symmetric with no eigenvalue below
    one. For Q = I / lambda^2 this is damped least squares.

    Args:
        settings: The diagonal of Q (6,), not negative: 1/m^2 for the translation (each joint's motion being in rad), 1
            for the rotation. The larger it is, the less error remains; a component of zero is left out.
    """
    (gain,) = settings
    rows = work.rows
    task_gram(work.jacobian, work.n, rows, work.matrix)
    for a in range(rows):
        root = math.sqrt(gain[a])
        work.task[a] = root
        work.vector[a] = root * work.error[a]
        for b in range(a + 1):
            work.matrix[a, b] *= root * work.task[b]
        work.matrix[a, a] += 1.0
    solve_positive_definite(work.matrix, work.vector, rows)
    for a in range(rows):
        work.vector[a] *= work.task[a]
    to_joints(work.jacobian, work.vector, work.n, rows, work.dq)
