"""The Jacobian transpose: the pose error acts on the arm as a force, without inertia.

    q += 0.25 dt^2 alpha J^T Kp e             (step_length "paper")
    q += alpha J^T e                          (step_length "buss-kim")

The first is what the paper compares its solver to (equation 6): Algorithm 1 with the constant alpha
instead of the inverse mass matrix, chosen so that both accelerate the tool alike on average,

    alpha = mean diag(J H^-1 J^T) / mean diag(J J^T)

The second takes the step that would reduce the error most, if the arm were linear (Buss and Kim,
Selectively damped least squares for inverse kinematics, 2005):

    alpha = <e, J J^T e> / <J J^T e, J J^T e>

Wolovich and Elliott, 1984; Balestrino, De Maria and Sciavicco, 1984.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from simbridge.ik.checks import (
    GAINS,
    POSITIVE,
    WHOLE,
    Check,
    as_number,
    choice_of,
    expand_gain,
    is_not_negative,
)
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import to_joints, to_task
from simbridge.ik.kernels.line_search import LEAST_SQUARE
from simbridge.ik.kernels.mathematics import mobility
from simbridge.ik.kernels.records import Descent
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.ik.twin import Twin
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Number of postures over which alpha is averaged.
SAMPLE_POSTURES = 20_000


@dataclass(frozen=True)
class JacobianTransposeParameters(IterativeParameters):
    """Settings of the Jacobian transpose."""

    iterations: int = setting(50, WHOLE, slider=(1, 200))
    step_length: Literal["paper", "buss-kim"] = setting("paper", choice_of("paper", "buss-kim"))
    """paper: a constant gain, comparable to forward dynamics; buss-kim: the step length that reduces the error most."""
    alpha: float = setting(
        0.0, Check(as_number, "a positive number, or 0 to compute it", is_not_negative)
    )
    """For step length paper: the constant that replaces the twin's inverse mass matrix; 0 computes it."""
    dt: float = setting(0.1, POSITIVE, unit="s")
    """For step length paper: virtual time step, s."""
    kp: tuple[float, ...] = setting((50.0,), GAINS, slider=(0.5, 200.0), unit="N/m")
    """For step length paper: stiffness, one number (N/m; rotation gets a tenth, N m/rad) or six."""

    def build(self, robot: Robot) -> JacobianTranspose:
        """Return the solver with these settings."""
        return JacobianTranspose(robot, self)


class JacobianTranspose(IterativeSolver):
    """The Jacobian transpose. Settings: see `JacobianTransposeParameters`."""

    name = "jacobian-transpose"
    Parameters = JacobianTransposeParameters
    settings: JacobianTransposeParameters
    reliable = False
    max_start_iterations = 3000

    @property
    def alpha(self) -> float:
        """The constant that is in use; it has no effect with the step length of Buss and Kim."""
        return self.settings.alpha or paper_alpha(self.robot)

    @property
    def parameters(self) -> dict[str, Any]:
        parameters = super().parameters
        if self.settings.step_length == "paper":
            parameters["alpha"] = self.alpha
        return parameters

    def compiled_step(self) -> CompiledStep:
        """Return the step with a constant gain, or with the length of Buss and Kim."""
        if self.settings.step_length == "buss-kim":
            return CompiledStep(best_length_step, (0.0,))
        gain = np.array(expand_gain("kp", self.settings.kp))
        return CompiledStep(constant_length_step, (0.25 * self.settings.dt**2 * self.alpha, gain))

    def rotation_weight(self) -> float:
        kp = np.array(expand_gain("kp", self.settings.kp))
        # Without stiffness in translation there is nothing to weigh against.
        is_weighted = self.settings.step_length == "paper" and kp[:3].any()
        return float(kp[3:].mean() / kp[:3].mean()) if is_weighted else 1.0


def paper_alpha(robot: Robot) -> float:
    """Return mean diag(J H^-1 J^T) / mean diag(J J^T) over uniformly distributed postures.

    H is the mass matrix of the paper's conditioned twin. The postures are always the same ones,
    from [-pi, pi). UR10: 0.7881; over many such draws 0.7874 (the paper: 0.7885).
    """
    return _alpha(robot.placements.tobytes(), tuple(robot.prismatic))


@lru_cache(maxsize=64)
def _alpha(placements: bytes, prismatic: tuple[bool, ...]) -> float:
    """Return `paper_alpha` of a chain whose placements (n + 1, 4, 4) are given as bytes."""
    chain = np.frombuffer(placements).reshape(-1, 4, 4)
    slides = np.array(prismatic)
    postures = np.random.default_rng(0).uniform(-math.pi, math.pi, (SAMPLE_POSTURES, len(slides)))
    without_inertia, with_twin = mobility(chain, slides, postures, [Twin().numbers])

    # Contiguous along the samples: that fixes the order in which they are summed.
    without_inertia = np.ascontiguousarray(np.moveaxis(without_inertia, 0, -1))
    with_twin = np.ascontiguousarray(np.moveaxis(with_twin, 0, -1))
    return float(np.trace(with_twin).mean() / np.trace(without_inertia).mean())


def constant_length_step(settings: tuple[float, Array], descent: Descent) -> None:
    """Fill in the motion alpha J^T K e.

    Args:
        settings: alpha, and the diagonal of K (6,), not negative.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    alpha, gain = settings
    iterate = descent.iterate
    force = descent.scratch.task

    for k in range(iterate.rows):
        force[k] = alpha * gain[k] * iterate.error[k]
    to_joints(iterate.jacobian, force, iterate.n, iterate.rows, iterate.dq)


def best_length_step(settings: tuple[float], descent: Descent) -> None:
    """Fill in the motion alpha J^T e with the alpha that leaves the smallest error, to first order.

    Args:
        settings: Settings of the solver, which this step does not use.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    iterate = descent.iterate
    error = iterate.error
    motion = descent.scratch.task
    n = iterate.n
    rows = iterate.rows

    to_joints(iterate.jacobian, error, n, rows, iterate.dq)
    to_task(iterate.jacobian, iterate.dq, n, rows, motion)
    along = 0.0
    square = 0.0
    for k in range(rows):
        along += error[k] * motion[k]
        square += motion[k] * motion[k]

    # If the square of the motion is rounding there is no direction to search.
    alpha = along / square if square > LEAST_SQUARE else 0.0
    for j in range(n):
        iterate.dq[j] *= alpha
