"""The pseudoinverse of the Jacobian with a step gain: q += alpha J^+ e, by singular value decomposition.

Whitney, "Resolved motion rate control of manipulators and human prostheses", 1969; Buss, "Introduction to inverse
kinematics with Jacobian transpose, pseudoinverse and damped least squares methods", 2004; seed tutorial "Inverse
kinematics" (step 4, "move by a small step"). According to the tutorial a larger alpha is faster, and makes the arm
jitter when the goal is out of reach. With the clamps it does not: a step that raises the error is halved.
"""

from __future__ import annotations

from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import decompose
from simbridge.ik.kernels.step import Buffers
from simbridge.ik.settings import PseudoinverseParameters


class Pseudoinverse(IterativeSolver):
    """The pseudoinverse with a step gain. Settings: see `PseudoinverseParameters`."""

    name = "pseudoinverse"
    Parameters = PseudoinverseParameters
    settings: PseudoinverseParameters

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(pseudoinverse_step, (self.settings.alpha, self.settings.cutoff))

    @property
    def cutoff(self) -> float:
        return self.settings.cutoff

    def lag(self, period: float) -> float | None:
        """T rho/(1 - rho) with rho = (1 - alpha)^N: each iteration leaves that part of the error, away from clamps."""
        return self._lag_of(1.0 - self.settings.alpha, period)


def pseudoinverse_step(settings: tuple[float, float], buffers: Buffers) -> None:
    """The smallest motion that removes, to first order, the part alpha of the error, or as much of it as possible.

    Args:
        settings: alpha (0 to 1), and the cutoff: singular values at or below this share of the largest count as zero,
            and their directions stay still. Above it the motion grows as the inverse of the singular value, so one
            direction may move 1 / cutoff times as far as the best one.
    """
    alpha, cutoff = settings
    n, dq = buffers.n, buffers.dq
    count = decompose(buffers.jacobian, n, buffers.rows, buffers.joints, buffers.singular, buffers.tool)
    for j in range(n):
        dq[j] = 0.0
    for i in range(count):
        sigma = buffers.singular[i]
        if sigma <= cutoff * buffers.singular[0]:
            return
        along = 0.0
        for k in range(buffers.rows):
            along += buffers.tool[i, k] * buffers.error[k]
        scale = alpha * along / sigma
        for j in range(n):
            dq[j] += scale * buffers.joints[i, j]
