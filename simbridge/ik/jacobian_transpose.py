"""The Jacobian transpose: the error pulls the arm as a force, and what is in its way has no inertia.

    q += 0.25 dt^2 alpha J^T Kp e             (step_length "paper")
    q += alpha J^T e                          (step_length "buss-kim")

The first is what the paper compares its solver to (Scherzinger, Roennau and Dillmann, equation 6): Algorithm 1 with the
constant alpha in place of the inverse mass matrix, chosen so that both accelerate the tool alike on average,

    alpha = mean diag(J H^-1 J^T) / mean diag(J J^T)

The second takes the step that lessens the error most, were the arm linear (Buss and Kim, Selectively damped least
squares for inverse kinematics, 2005): alpha = <e, J J^T e> / <J J^T e, J J^T e>.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_settings import JacobianTransposeParameters
from simbridge.ik.kernels.kernel import mobility
from simbridge.ik.setting_checks import expand_gain
from simbridge.ik.stepping import step_for
from simbridge.ik.steps.jacobian_transpose import step, step_of_best_length
from simbridge.ik.twin import Twin
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

_SAMPLES = 20_000


class GivenLength(NamedTuple):
    """alpha and the gains K (6,) of the error's components."""

    alpha: float
    gain: Array


class BestLength(NamedTuple):
    """Nothing is to be set."""


@step_for(GivenLength)
def given_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.jacobian_transpose.step`."""
    step(jacobian, error, rows, q, settings.alpha, settings.gain, work, dq)


@step_for(BestLength)
def best_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.jacobian_transpose.step_of_best_length`."""
    step_of_best_length(jacobian, error, rows, q, work, dq)


class JacobianTranspose(IterativeSolver):
    """The Jacobian transpose. Settings: see `JacobianTransposeParameters`.

    Attributes:
        alpha: The constant that is in use; of no effect with the length of Buss and Kim.
    """

    name = "jacobian-transpose"
    Parameters = JacobianTransposeParameters
    settings: JacobianTransposeParameters
    dependable = False
    patience = 3000

    @property
    def alpha(self) -> float:
        return self.settings.alpha or paper_alpha(self.robot)

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | ({"alpha": self.alpha} if self.settings.step_length == "paper" else {})

    def kernel_settings(self) -> GivenLength | BestLength:
        if self.settings.step_length == "buss-kim":
            return BestLength()
        return GivenLength(0.25 * self.settings.dt**2 * self.alpha, np.array(expand_gain("kp", self.settings.kp)))

    def rotation_weight(self) -> float:
        kp = np.array(expand_gain("kp", self.settings.kp))
        # Without any pull on the translation there is nothing to weigh against.
        paper = self.settings.step_length == "paper" and kp[:3].any()
        return float(kp[3:].mean() / kp[:3].mean()) if paper else 1.0


def paper_alpha(robot: Robot, samples: int = _SAMPLES) -> float:
    """mean diag(J H^-1 J^T) / mean diag(J J^T) over joint positions uniform in [-pi, pi), always the same ones.

    H is the mass matrix of the paper's conditioned twin. UR10: 0.7881; over many such draws 0.7874 (the paper: 0.7885).
    """
    return _alpha(robot.placements.tobytes(), robot.prismatic.tobytes(), samples)


@lru_cache(maxsize=64)
def _alpha(placements: bytes, prismatic: bytes, samples: int) -> float:
    chain, slides = np.frombuffer(placements).reshape(-1, 4, 4), np.frombuffer(prismatic, dtype=bool)
    q = np.random.default_rng(0).uniform(-math.pi, math.pi, (samples, len(slides)))
    plain, conditioned = mobility(chain, slides, q, Twin())
    return float(np.trace(conditioned).mean() / np.trace(plain).mean())
