"""Feedback inverse kinematics: q += J^T Q (J J^T Q + I)^-1 e.

Pechev, "Inverse kinematics without matrix inversion", ICRA 2008; equation 5 in Scherzinger, Roennau
and Dillmann.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simbridge.ik.checks import Check, are_positive, as_numbers
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import solve_positive_definite, task_gram, to_joints
from simbridge.ik.kernels.descent import Buffers
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

_ONE_OR_SIX = Check(
    as_numbers,
    "one positive number, or six",
    lambda values: len(values) in (1, 6) and are_positive(values),
)


@dataclass(frozen=True)
class FeedbackParameters(IterativeParameters):
    """Settings of feedback inverse kinematics."""

    gain: tuple[float, ...] = setting((400.0,), _ONE_OR_SIX, unit="1/m²")
    """Q, the loop's gain, 1/m^2 (rotation: 1): one number, which is 1 / damping^2, or six, translation first."""

    def build(self, robot: Robot) -> FeedbackIK:
        """Return the solver with these settings."""
        return FeedbackIK(robot, self)


class FeedbackIK(IterativeSolver):
    """Feedback inverse kinematics. Settings: see `FeedbackParameters`.

    Pechev's loop drives J dq to e with the gain Q, and converges to this formula. His Q is dynamic, from an offline
    optimization for one arm; here it is constant and diagonal, and with equal gains the method is damped least squares
    with lambda^2 = 1/Q.
    """

    name = "feedback"
    Parameters = FeedbackParameters
    settings: FeedbackParameters
    reliable = False

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(feedback_step, (np.ones(6) * np.array(self.settings.gain),))

    def rotation_weight(self) -> float:
        gain = np.ones(6) * np.array(self.settings.gain)
        return float(gain[3:].mean() / gain[:3].mean())


def feedback_step(settings: tuple[Array], buffers: Buffers) -> None:
    """The motion to which the feedback loop converges, by one solve instead of the loop or an inverse.

    With S = sqrt(Q), Q (J J^T Q + I)^-1 = S (S J J^T S + I)^-1 S, whose matrix is symmetric with no eigenvalue below
    one. Settings: the diagonal of Q (6,), not negative: 1/m^2 for the translation (each joint's motion being in rad), 1
    for the rotation; a component of zero is left out.
    """
    (gain,) = settings
    rows = buffers.rows
    task_gram(buffers.jacobian, buffers.n, rows, buffers.matrix)
    for a in range(rows):
        root = math.sqrt(gain[a])
        buffers.task[a] = root
        buffers.vector[a] = root * buffers.error[a]
        for b in range(a + 1):
            buffers.matrix[a, b] *= root * buffers.task[b]
        buffers.matrix[a, a] += 1.0
    solve_positive_definite(buffers.matrix, buffers.vector, rows)
    for a in range(rows):
        buffers.vector[a] *= buffers.task[a]
    to_joints(buffers.jacobian, buffers.vector, buffers.n, rows, buffers.dq)
