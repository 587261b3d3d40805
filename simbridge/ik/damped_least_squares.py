"""Damped least squares, with joint stiffness and bias angles in the null space.

    q += J* e + (J* J - I) z,   J* = J^T (J J^T + lambda^2 I)^-1       (Haynes, "Exploring inverse kinematics", eq. 17)

z = beta (q - bias)^2 is how the report prints the bias. That is the cost of being off the bias angle, not its gradient:
it is never negative, so it turns a joint that is below its bias angle further away from it. The default is the
gradient, z = 2 beta (q - bias); `bias_term="printed"` is there to compare.

The damped null space leaks: as printed, the pull keeps the tool off its target by lambda^2 z / sigma. With a step clamp
it acts in the true null space (lambda = 0) instead, costs no accuracy, and does nothing on an arm without joints to
spare; with `step_clamp` infinite it is as printed.

The report clips each joint to the largest angle change by itself; here the whole step is shortened, which keeps its
direction, and with that the promise that it lessens the error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_settings import DampedLeastSquaresParameters
from simbridge.ik.stepping import step_for
from simbridge.ik.steps.damped_least_squares import ease, step
from simbridge.robot.pose import Array


class DampedSettings(NamedTuple):
    """lambda; and zeros (n,), for no stiffness."""

    damping: float
    no_stiffness: Array


class StiffSettings(NamedTuple):
    """lambda; beta and the bias angles (n,); which z, and whether in the true null space; zeros (n,) and (6,)."""

    damping: float
    stiffness: Array
    bias: Array
    printed: bool
    exact: bool
    no_stiffness: Array
    no_error: Array


@step_for(DampedSettings)
def damped_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.damped_least_squares.step` without stiffness."""
    step(jacobian, error, rows, q, settings.damping, settings.no_stiffness, q, False, work, dq)


@step_for(StiffSettings, drifts=True)
def stiff_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.damped_least_squares.step`, task and null space apart."""
    s = settings
    step(jacobian, error, rows, q, s.damping, s.no_stiffness, s.bias, False, work, dq)
    if s.exact:
        ease(jacobian, rows, q, s.stiffness, s.bias, s.printed, work, drift)
    else:
        step(jacobian, s.no_error, rows, q, s.damping, s.stiffness, s.bias, s.printed, work, drift)


class DampedLeastSquares(IterativeSolver):
    """Damped least squares with joint stiffness. Settings: see `DampedLeastSquaresParameters`."""

    name = "damped-least-squares"
    Parameters = DampedLeastSquaresParameters
    settings: DampedLeastSquaresParameters
    dependable = False

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"bias": self._bias.tolist()}

    @property
    def _bias(self) -> Array:
        return self.robot.home if not self.settings.bias else self.for_each_joint("bias", self.settings.bias)

    def kernel_settings(self) -> DampedSettings | StiffSettings:
        stiffness = self.for_each_joint("stiffness", self.settings.stiffness)
        damping, bias, none = float(self.settings.damping), np.array(self._bias), np.zeros(self.robot.n)
        if not stiffness.any():
            return DampedSettings(damping, none)
        printed, exact = self.settings.bias_term == "printed", bool(np.isfinite(self.settings.step_clamp))
        return StiffSettings(damping, stiffness, bias, printed, exact, none, np.zeros(6))
