"""Damped least squares: q += J* e + (J* J - I) z, with J* = J^T (J J^T + lambda^2 I)^-1.

Haynes, "Exploring inverse kinematics", equation 17; Wampler 1986; Nakamura and Hanafusa 1986.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from simbridge.ik.checks import NUMBERS, POSITIVE, STEP_CLAMP, Check, as_numbers, choice_of
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import (
    decompose,
    joint_gram,
    solve_positive_definite,
    task_gram,
    to_joints,
    to_task,
)
from simbridge.ik.kernels.records import Descent
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

_BELOW_ONE = Check(
    as_numbers,
    "from 0 to below 1: joints oscillate from 1 on",
    lambda values: len(values) > 0 and all(0.0 <= beta < 1.0 for beta in values),
)

# Directions whose singular value is at most this fraction of the largest are free: the task does
# not constrain them.
DEPENDENT = 1e-6


@dataclass(frozen=True)
class DampedLeastSquaresParameters(IterativeParameters):
    """Settings of damped least squares."""

    damping: float = setting(0.05, POSITIVE, slider=(0.001, 1.0), unit="m/rad")
    """lambda, in m per rad (translation) and rad per rad (rotation)."""
    stiffness: tuple[float, ...] = setting((0.0,), _BELOW_ONE)
    """Joint stiffness beta: one number, or one per joint, below 1; with a step clamp it acts in the null space only."""
    bias: tuple[float, ...] = setting((), NUMBERS, "the robot's home", unit="rad")
    """Bias angles, rad."""
    bias_term: Literal["gradient", "printed"] = setting(
        "gradient", choice_of("gradient", "printed")
    )
    """Stiffness term: 2 beta (q - bias), or beta (q - bias)^2 as printed in the source, which ignores the sign."""
    step_clamp: float = setting(0.15, STEP_CLAMP, slider=(0.005, 1.0), unit="rad")

    def build(self, robot: Robot) -> DampedLeastSquares:
        """Return the solver with these settings."""
        return DampedLeastSquares(robot, self)


class DampedLeastSquares(IterativeSolver):
    """Damped least squares, with joint stiffness and bias angles in the null space.

    Settings: see `DampedLeastSquaresParameters`.

    z = beta (q - bias)^2 is how Haynes prints the bias. That is the cost of the distance from the
    bias angle, not its gradient: it is never negative, so it turns a joint that is below its bias
    angle further away from it. The default is the gradient, z = 2 beta (q - bias);
    `bias_term="printed"` is kept for comparison.

    The damped null space is not exact: as printed, the pull keeps the tool off its target by
    lambda^2 z / sigma. With a step clamp it acts in the true null space (lambda = 0) instead, costs
    no accuracy, and does nothing on an arm without redundant joints; with `step_clamp` infinite it
    is as printed. Haynes clips each joint by itself; here the whole step is shortened, which keeps
    its direction, and so still reduces the error.
    """

    name = "damped-least-squares"
    Parameters = DampedLeastSquaresParameters
    settings: DampedLeastSquaresParameters
    reliable = False

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"bias": self._bias.tolist()}

    @property
    def _bias(self) -> Array:
        """Bias angles (n,), rad."""
        if self.settings.bias:
            return self.for_each_joint("bias", self.settings.bias)
        return self.robot.home

    def compiled_step(self) -> CompiledStep:
        """Return the damped step, or with stiffness the step that also drifts in the null space."""
        damping = self.settings.damping
        no_stiffness = np.zeros(self.robot.n)
        stiffness = self.for_each_joint("stiffness", self.settings.stiffness)
        # Validate the bias even if the stiffness is zero.
        bias = np.array(self._bias)
        if not stiffness.any():
            return CompiledStep(damped_step, (damping, no_stiffness))

        settings = StiffSettings(
            damping=damping,
            stiffness=stiffness,
            bias=bias,
            is_printed=self.settings.bias_term == "printed",
            # With a step clamp, the stiffness acts in the true null space (lambda = 0).
            uses_true_null_space=bool(np.isfinite(self.settings.step_clamp)),
            no_stiffness=no_stiffness,
            no_error=np.zeros(6),
        )
        return CompiledStep(stiff_step, tuple(settings), drifts=True)


class StiffSettings(NamedTuple):
    """Settings of `stiff_step`, which takes them as a plain tuple (see `CompiledStep`).

    Attributes:
        damping: lambda, m (as in J, a metre weighs as a radian).
        stiffness: beta of each joint (n,).
        bias: Bias angles (n,), rad.
        is_printed: Whether the pull z is beta (q - bias)^2, as Haynes prints it, and not its
            gradient.
        uses_true_null_space: Whether the stiffness acts in the true null space, not in the damped
            one.
        no_stiffness: Zeros (n,).
        no_error: Zeros (6,).
    """

    damping: float
    stiffness: Array
    bias: Array
    is_printed: bool
    uses_true_null_space: bool
    no_stiffness: Array
    no_error: Array


def damped_step(settings: tuple[float, Array], descent: Descent) -> None:
    """Fill in the motion without stiffness.

    Args:
        settings: lambda, m, and zeros as stiffness (n,).
        descent: The descent; its motion `iterate.dq` is filled in.
    """
    damping, no_stiffness = settings
    iterate = descent.iterate
    error = iterate.error
    damped_motion(descent, error, damping, no_stiffness, iterate.q, False, iterate.dq)


def stiff_step(settings: StiffSettings, descent: Descent) -> None:
    """Fill in the motion of the task, and the motion of the stiffness as a drift.

    Args:
        settings: The settings, in the order of `StiffSettings`.
        descent: The descent; its motions `iterate.dq` and `iterate.drift` are filled in.
    """
    damping, stiffness, bias, is_printed, uses_true_null_space, no_stiffness, no_error = settings
    iterate = descent.iterate
    damped_motion(descent, iterate.error, damping, no_stiffness, bias, False, iterate.dq)
    if uses_true_null_space:
        null_space_pull(descent, stiffness, bias, is_printed)
    else:
        damped_motion(descent, no_error, damping, stiffness, bias, is_printed, iterate.drift)


def damped_motion(
    descent: Descent,
    error: Array,
    damping: float,
    stiffness: Array,
    posture: Array,
    is_printed: bool,
    dq: Array,
) -> None:
    """Fill in the motion J* e + (J* J - I) z of damped least squares, with a pull z to a posture.

    With J* = J^T (J J^T + lambda^2 I)^-1 and without a pull, it minimizes
    |J dq - e|^2 + lambda^2 |dq|^2. The pull acts in the damped null space. It moves the tool by
    -lambda^2 (J J^T + lambda^2 I)^-1 J z, which is small except near a singularity.

    Args:
        descent: The descent, with the Jacobian J and the joint positions; its scratch is used.
        error: The error e (6,), m and rad.
        damping: lambda, m (as in J, a metre weighs as a radian).
        stiffness: beta (n,), not negative; zeros for no pull. One half removes all of a joint's
            free distance to the posture; more than one diverges.
        posture: Joint positions of the posture (n,), rad.
        is_printed: Whether the pull is z = beta (q - posture)^2, as Haynes prints it, and not its
            gradient.
        dq: Result: the motion (n,), rad.
    """
    jacobian = descent.iterate.jacobian
    matrix = descent.scratch.matrix
    motion = descent.scratch.motion
    task = descent.scratch.task
    n = descent.iterate.n
    rows = descent.iterate.rows

    # The motion is J* (e + J z) - z, so that one linear system is enough.
    posture_gradient(descent, stiffness, posture, is_printed, dq)
    to_task(jacobian, dq, n, rows, task)
    for k in range(rows):
        task[k] += error[k]

    # Solve the smaller one of two equivalent systems, in joint space or in task space. Without
    # damping the larger one would be singular.
    if n < rows:
        joint_gram(jacobian, n, rows, matrix)
        to_joints(jacobian, task, n, rows, motion)
        for j in range(n):
            matrix[j, j] += damping * damping
        solve_positive_definite(matrix, motion, n)
    else:
        task_gram(jacobian, n, rows, matrix)
        for k in range(rows):
            matrix[k, k] += damping * damping
        solve_positive_definite(matrix, task, rows)
        to_joints(jacobian, task, n, rows, motion)
    for j in range(n):
        dq[j] = motion[j] - dq[j]


def null_space_pull(descent: Descent, stiffness: Array, posture: Array, is_printed: bool) -> None:
    """Fill in the drift (J^+ J - I) z: a pull towards a posture in the true null space.

    Args:
        descent: The descent, with the Jacobian J and the joint positions.
        stiffness: beta (n,), not negative.
        posture: Joint positions of the posture (n,), rad.
        is_printed: Whether the pull z is as Haynes prints it; see `posture_gradient`.
    """
    iterate = descent.iterate
    scratch = descent.scratch
    z = scratch.motion
    drift = iterate.drift
    n = iterate.n

    posture_gradient(descent, stiffness, posture, is_printed, z)
    count = decompose(
        iterate.jacobian, n, iterate.rows, scratch.joints, scratch.singular, scratch.tool
    )
    for j in range(n):
        drift[j] = -z[j]
    for i in range(count):
        if scratch.singular[i] <= DEPENDENT * scratch.singular[0]:
            break
        component = 0.0
        for j in range(n):
            component += scratch.joints[i, j] * z[j]
        for j in range(n):
            drift[j] += component * scratch.joints[i, j]


def posture_gradient(
    descent: Descent, stiffness: Array, posture: Array, is_printed: bool, z: Array
) -> None:
    """Fill in the pull z: the gradient 2 beta_i (q_i - posture_i) of beta_i (q_i - posture_i)^2.

    Args:
        descent: The descent, with the joint positions q.
        stiffness: beta (n,), not negative.
        posture: Joint positions of the posture (n,), rad.
        is_printed: Whether z is beta_i (q_i - posture_i)^2 itself, as Haynes prints it.
        z: Result (n,).
    """
    q = descent.iterate.q
    for j in range(descent.iterate.n):
        offset = q[j] - posture[j]
        if is_printed:
            z[j] = stiffness[j] * offset * offset
        else:
            z[j] = 2.0 * stiffness[j] * offset
