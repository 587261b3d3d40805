"""Feedback inverse kinematics: q += J^T Q (J J^T Q + I)^-1 e.

Pechev, "Inverse kinematics without matrix inversion", ICRA 2008; equation 5 of Scherzinger, Roennau and Dillmann.
Pechev's loop drives J dq to e with the gain Q, and what it settles at is this formula. His Q is dynamic, from an
optimisation off line for one arm; here it is constant and diagonal, and with equal gains the method is damped least
squares with lambda^2 = 1/Q.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_settings import FeedbackParameters
from simbridge.ik.stepping import step_for
from simbridge.ik.steps.feedback import step
from simbridge.robot.pose import Array


class FeedbackSettings(NamedTuple):
    """Diagonal of Q (6,)."""

    gain: Array


@step_for(FeedbackSettings)
def feedback_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.feedback.step`."""
    step(jacobian, error, rows, q, settings.gain, work, dq)


class FeedbackIK(IterativeSolver):
    """Feedback inverse kinematics. Settings: see `FeedbackParameters`."""

    name = "feedback"
    Parameters = FeedbackParameters
    settings: FeedbackParameters
    dependable = False

    def kernel_settings(self) -> FeedbackSettings:
        return FeedbackSettings(np.ones(6) * np.array(self.settings.gain))

    def rotation_weight(self) -> float:
        gain = np.ones(6) * np.array(self.settings.gain)
        return float(gain[3:].mean() / gain[:3].mean())
