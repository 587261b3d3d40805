"""The iterative solvers' settings as the command line and a scenario give them: plain data, quick to import."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from simbridge.errors import InvalidParameter
from simbridge.ik.setting_checks import (
    error_clamps_of,
    expand_gain,
    keep,
    number,
    numbers,
    positive,
    step_clamp_of,
    whole,
)

if TYPE_CHECKING:
    from simbridge.ik.solver import Solver
    from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class IterativeParameters:
    """Settings that the iterative solvers share."""

    home: ClassVar[tuple[str, str]]
    """Module and class of the solver."""

    iterations: int = 10
    """Iterations per control period."""
    error_clamp: tuple[float, ...] = (0.2, 0.5)
    """Largest error that acts, m and rad; inf inf for none."""
    step_clamp: float = 0.1
    """Largest joint motion in an iteration, rad (of slides m); inf for none, and then steps may raise the error."""
    task: str = ""
    """What is to be attained: pose, axis (position and tool z) or position; the robot's own if left out."""

    def __post_init__(self) -> None:
        keep(
            self,
            iterations=whole("iterations", self.iterations),
            error_clamp=error_clamps_of(self.error_clamp),
            step_clamp=step_clamp_of(self.step_clamp),
        )

    def build(self, robot: Robot) -> Solver:
        """The solver with these settings.

        Raises:
            InvalidParameter: A setting makes no sense for this robot.
        """
        module, name = self.home
        solver: Solver = getattr(importlib.import_module(module), name)(robot, **vars(self))
        return solver


@dataclass(frozen=True)
class JacobianTransposeParameters(IterativeParameters):
    """Settings of the Jacobian transpose."""

    home: ClassVar[tuple[str, str]] = ("simbridge.ik.jacobian_transpose", "JacobianTranspose")

    iterations: int = 50
    """Iterations per control period."""
    step_length: Literal["paper", "buss-kim"] = "paper"
    """A constant gain that compares to forward dynamics, or the length that lessens the error most."""
    alpha: float = 0.0
    """Of the paper: the constant in place of the twin's inverse mass matrix; 0 computes it for the robot."""
    dt: float = 0.1
    """Of the paper: virtual time step, s."""
    kp: tuple[float, ...] = (50.0,)
    """Of the paper: stiffness: one number for translation, N/m (rotation gets a tenth, N m/rad), or six."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expand_gain("kp", self.kp)
        keep(self, kp=numbers("kp", self.kp), alpha=number("alpha", self.alpha), dt=positive("dt", self.dt))
        if self.step_length not in ("paper", "buss-kim"):
            raise InvalidParameter("solver's step_length", self.step_length, "paper or buss-kim")
        if not (math.isfinite(self.alpha) and self.alpha >= 0.0):
            raise InvalidParameter("solver's alpha", self.alpha, "a positive number, or 0 to compute it")


@dataclass(frozen=True)
class PseudoinverseParameters(IterativeParameters):
    """Settings of the pseudoinverse."""

    home: ClassVar[tuple[str, str]] = ("simbridge.ik.pseudoinverse", "Pseudoinverse")

    alpha: float = 0.5
    """Step gain, above 0 and below 2: the part of the error that an iteration is to remove."""
    cutoff: float = 1e-6
    """Singular values of the Jacobian up to this part of the largest count as zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, alpha=number("alpha", self.alpha), cutoff=positive("cutoff", self.cutoff))
        if not 0.0 < self.alpha < 2.0:
            raise InvalidParameter("solver's alpha", self.alpha, "above 0 and below 2, where steps diverge")


@dataclass(frozen=True)
class DampedLeastSquaresParameters(IterativeParameters):
    """Settings of damped least squares."""

    home: ClassVar[tuple[str, str]] = ("simbridge.ik.damped_least_squares", "DampedLeastSquares")

    damping: float = 0.05
    """lambda, in m (of the translation) and rad (of the rotation) per rad."""
    stiffness: tuple[float, ...] = (0.0,)
    """Joint stiffness beta: the pull of each joint towards its bias angle, one number or one a joint, below 1.
    With a step clamp it acts in what the task leaves free."""
    bias: tuple[float, ...] = ()
    """Bias angles, rad; the robot's home if left out."""
    bias_term: Literal["gradient", "printed"] = "gradient"
    """The pull: 2 beta (q - bias), or beta (q - bias)^2 as printed in the source, which ignores the sign."""
    step_clamp: float = 0.15
    """Largest joint motion in an iteration, rad (of slides m); inf for none, and then steps may raise the error."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(
            self,
            damping=positive("damping", self.damping),
            stiffness=numbers("stiffness", self.stiffness),
            bias=numbers("bias", self.bias),
        )
        if not self.stiffness or not all(0.0 <= beta < 1.0 for beta in self.stiffness):
            raise InvalidParameter("solver's stiffness", self.stiffness, "from 0 to below 1, where joints swing")
        if self.bias_term not in ("gradient", "printed"):
            raise InvalidParameter("solver's bias_term", self.bias_term, "gradient or printed")


@dataclass(frozen=True)
class SelectivelyDampedParameters(IterativeParameters):
    """Settings of selectively damped least squares."""

    home: ClassVar[tuple[str, str]] = ("simbridge.ik.selectively_damped", "SelectivelyDamped")

    largest_angle: float = 0.785
    """gamma_max, the largest joint motion along one singular vector, rad."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, largest_angle=positive("largest_angle", self.largest_angle))


@dataclass(frozen=True)
class FeedbackParameters(IterativeParameters):
    """Settings of feedback inverse kinematics."""

    home: ClassVar[tuple[str, str]] = ("simbridge.ik.feedback", "FeedbackIK")

    gain: tuple[float, ...] = (400.0,)
    """Q, the loop's gain, 1/m^2 (of the rotation 1): one number or six, translation first; one is 1 / damping^2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, gain=numbers("gain", self.gain))
        if len(self.gain) not in (1, 6) or not all(math.isfinite(g) and g > 0.0 for g in self.gain):
            raise InvalidParameter("solver's gain", self.gain, "one positive number, or six")


@dataclass(frozen=True)
class ConstrainedParameters(IterativeParameters):
    """Settings of the constrained step."""

    home: ClassVar[tuple[str, str]] = ("simbridge.ik.constrained", "Constrained")

    posture: tuple[float, ...] = ()
    """The natural posture, rad; the robot's home if left out."""
    weights: tuple[float, ...] = (1.0,)
    """How much each joint's distance from it counts, one number or one a joint, positive."""
    pull: float = 0.05
    """The part of that distance an iteration would cover if nothing were strict, 0 to 1."""
    cutoff: float = 1e-6
    """Rows whose singular value is up to this part of the largest depend on the others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(
            self,
            posture=numbers("posture", self.posture),
            weights=numbers("weights", self.weights),
            pull=number("pull", self.pull),
            cutoff=positive("cutoff", self.cutoff),
        )
        if not self.weights or not all(math.isfinite(w) and w > 0.0 for w in self.weights):
            raise InvalidParameter("solver's weights", self.weights, "positive numbers")
        if not 0.0 <= self.pull <= 1.0:
            raise InvalidParameter("solver's pull", self.pull, "from 0 to 1")
