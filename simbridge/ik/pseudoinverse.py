"""The pseudoinverse: q += alpha J^+ e.

Whitney 1969; Buss, "Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and
damped least squares methods", 2004; seed tutorial "Inverse kinematics" (step 4).
"""

from __future__ import annotations

from dataclasses import dataclass

from simbridge.ik.checks import POSITIVE, Check, as_number
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import decompose
from simbridge.ik.kernels.records import Descent
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.robot.robot import Robot

_BELOW_TWO = Check(
    as_number, "above 0 and below 2: steps diverge from 2 on", lambda alpha: 0.0 < alpha < 2.0
)


@dataclass(frozen=True)
class PseudoinverseParameters(IterativeParameters):
    """Settings of the pseudoinverse."""

    alpha: float = setting(0.5, _BELOW_TWO, slider=(0.01, 1.99))
    """Step gain, above 0 and below 2: the fraction of the error that an iteration should remove."""
    cutoff: float = setting(1e-6, POSITIVE)
    """Singular values of the Jacobian up to this fraction of the largest count as zero."""

    def build(self, robot: Robot) -> Pseudoinverse:
        """Return the solver with these settings."""
        return Pseudoinverse(robot, self)


class Pseudoinverse(IterativeSolver):
    """The pseudoinverse with a step gain. Settings: see `PseudoinverseParameters`.

    According to the tutorial a larger alpha is faster, and makes the arm jitter when the goal is
    out of reach. With the clamps it does not: a step that raises the error is halved.
    """

    name = "pseudoinverse"
    Parameters = PseudoinverseParameters
    settings: PseudoinverseParameters

    def compiled_step(self) -> CompiledStep:
        """Return the step, with its gain and the cutoff of singular values."""
        return CompiledStep(pseudoinverse_step, (self.settings.alpha, self.settings.cutoff))

    @property
    def cutoff(self) -> float:
        return self.settings.cutoff

    def lag(self, period: float) -> float | None:
        """Return T rho/(1 - rho), s, with rho = (1 - alpha)^N.

        Each iteration leaves 1 - alpha of the error, away from clamps.
        """
        return self._lag_of(1.0 - self.settings.alpha, period)


def pseudoinverse_step(settings: tuple[float, float], descent: Descent) -> None:
    """Fill in the smallest motion that removes, to first order, alpha of the error.

    If it cannot, the motion removes as much as possible.

    Args:
        settings: alpha (0 to 1), and the cutoff: singular values up to this fraction of the largest
            count as zero, and their directions stay still.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    alpha, cutoff = settings
    iterate = descent.iterate
    scratch = descent.scratch
    n = iterate.n
    rows = iterate.rows

    for j in range(n):
        iterate.dq[j] = 0.0

    # The singular vectors u of the tool and v of the joints are the rows of `scratch.tool` and
    # `scratch.joints`, in the order of falling singular values sigma.
    count = decompose(iterate.jacobian, n, rows, scratch.joints, scratch.singular, scratch.tool)
    for i in range(count):
        sigma = scratch.singular[i]
        if sigma <= cutoff * scratch.singular[0]:
            # It counts as zero, and so do the smaller ones that follow.
            return

        # dq += alpha (u . e) / sigma v
        along = 0.0
        for k in range(rows):
            along += scratch.tool[i, k] * iterate.error[k]
        scale = alpha * along / sigma
        for j in range(n):
            iterate.dq[j] += scale * scratch.joints[i, j]
