"""The pseudoinverse of the Jacobian with a step gain: q += alpha J^+ e, by singular value decomposition.

Seed tutorial "Inverse kinematics" (step 4, "move by a small step"): the larger alpha, the faster, and the more the arm
jitters when the goal is out of its reach. It need not: with the clamps on a step that raises the error is halved.
"""

from __future__ import annotations

from typing import NamedTuple

from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_settings import PseudoinverseParameters
from simbridge.ik.stepping import step_for
from simbridge.ik.steps.pseudoinverse import step


class PseudoinverseSettings(NamedTuple):
    """Step gain, and the share of the largest singular value up to which others count as zero."""

    alpha: float
    cutoff: float


@step_for(PseudoinverseSettings)
def pseudoinverse_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.pseudoinverse.step`."""
    step(jacobian, error, rows, q, settings.alpha, settings.cutoff, work, dq)


class Pseudoinverse(IterativeSolver):
    """The pseudoinverse with a step gain. Settings: see `PseudoinverseParameters`."""

    name = "pseudoinverse"
    Parameters = PseudoinverseParameters
    settings: PseudoinverseParameters

    def kernel_settings(self) -> PseudoinverseSettings:
        return PseudoinverseSettings(float(self.settings.alpha), float(self.settings.cutoff))

    @property
    def cutoff(self) -> float:
        return self.settings.cutoff

    def lag(self, period: float) -> float | None:
        """T rho/(1 - rho) with rho = (1 - alpha)^N: each iteration leaves that part of the error, away from clamps."""
        return self._lag_of(1.0 - self.settings.alpha, period)
