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
from simbridge.ik.kernels.records import Descent
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

    Pechev's loop drives J dq to e with the gain Q, and converges to this formula. His Q is dynamic,
    from an offline optimization for one arm; here it is constant and diagonal, and with equal gains
    the method is damped least squares with lambda^2 = 1/Q.
    """

    name = "feedback"
    Parameters = FeedbackParameters
    settings: FeedbackParameters
    reliable = False

    def compiled_step(self) -> CompiledStep:
        """Return the step to which the feedback loop converges, with its gains."""
        return CompiledStep(feedback_step, (self._six_gains(),))

    def rotation_weight(self) -> float:
        gain = self._six_gains()
        return float(gain[3:].mean() / gain[:3].mean())

    def _six_gains(self) -> Array:
        """Return the diagonal of Q (6,), translation first, 1/m^2 and 1."""
        return np.ones(6) * np.array(self.settings.gain)


def feedback_step(settings: tuple[Array], descent: Descent) -> None:
    """Fill in the motion to which the feedback loop converges.

    It takes one solve instead of the loop or an inverse: with S = sqrt(Q), Q (J J^T Q + I)^-1 is
    S (S J J^T S + I)^-1 S, whose matrix is symmetric with no eigenvalue below one.

    Args:
        settings: The diagonal of Q (6,), not negative: 1/m^2 for the translation (each joint's
            motion being in rad), 1 for the rotation; a component whose gain is zero is left out.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    (gain,) = settings
    iterate = descent.iterate
    matrix = descent.scratch.matrix
    vector = descent.scratch.vector
    roots = descent.scratch.task
    n = iterate.n
    rows = iterate.rows

    # S e, and the lower triangle of S J J^T S + I.
    task_gram(iterate.jacobian, n, rows, matrix)
    for a in range(rows):
        root = math.sqrt(gain[a])
        roots[a] = root
        vector[a] = root * iterate.error[a]
        for b in range(a + 1):
            matrix[a, b] *= root * roots[b]
        matrix[a, a] += 1.0

    # dq = J^T S (S J J^T S + I)^-1 S e
    solve_positive_definite(matrix, vector, rows)
    for a in range(rows):
        vector[a] *= roots[a]
    to_joints(iterate.jacobian, vector, n, rows, iterate.dq)
