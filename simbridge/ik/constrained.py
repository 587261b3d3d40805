"""The constrained step: the task is strict, a natural posture is asked for with what joints are left over.

Lecture "Inverse kinematics" (rrlab, University of Kaiserslautern), from "Underdetermined system" to "Optimization:
Algorithm": Lagrange multipliers lead to one linear system for the step and the multipliers,

    [ 2 A^T A   J^T ] [  dq    ]   [ 2 A^T w ]
    [    J       0  ] [ lambda ] = [    e    ]

Rows of J that depend on others ("eliminate redundant parameters", step 3 of the algorithm) are left out.
`Solver.last.dependent_rows` says how many there are where a step has led to. An arm without joints to spare moves as
by its inverse Jacobian.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.iteration import step_for
from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_parameters import ConstrainedParameters
from simbridge.ik.solver import Array
from simbridge.ik.steps.constrained import step


class ConstrainedSettings(NamedTuple):
    """Posture and weights (n,), pull, cut-off, and zeros (6,)."""

    posture: Array
    weights: Array
    pull: float
    cutoff: float
    no_error: Array


@step_for(ConstrainedSettings)
def constrained_step(settings, jacobian, error, rows, q, work, dq, drift):  # type: ignore[no-untyped-def]
    """`steps.constrained.step`, strict and soft rows apart: their sum solves the whole system."""
    s = settings
    step(jacobian, error, rows, q, s.posture, s.weights, 0.0, s.cutoff, work, dq)
    if s.pull > 0.0:
        step(jacobian, s.no_error, rows, q, s.posture, s.weights, s.pull, s.cutoff, work, drift)


class Constrained(IterativeSolver):
    """The constrained step. Settings: see `ConstrainedParameters`."""

    name = "constrained"
    Parameters = ConstrainedParameters
    settings: ConstrainedParameters

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"posture": self._posture.tolist()}

    @property
    def _posture(self) -> Array:
        return self.robot.home if not self.settings.posture else self.for_each_joint("posture", self.settings.posture)

    def kernel_settings(self) -> ConstrainedSettings:
        weights = self.for_each_joint("weights", self.settings.weights)
        s = self.settings
        return ConstrainedSettings(np.array(self._posture), weights, float(s.pull), float(s.cutoff), np.zeros(6))

    def lag(self, period: float) -> float | None:
        """None to speak of: an iteration is to remove the whole error."""
        return self._lag_of(0.0, period)
