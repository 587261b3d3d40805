"""Damped least squares: q += J* e + (J* J - I) z, with J* = J^T (J J^T + lambda^2 I)^-1.

Haynes, "Exploring inverse kinematics", equation 17; Wampler 1986; Nakamura and Hanafusa 1986.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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
from simbridge.ik.kernels.descent import Buffers
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

_BELOW_ONE = Check(
    as_numbers,
    "from 0 to below 1, where joints swing",
    lambda values: len(values) > 0 and all(0.0 <= beta < 1.0 for beta in values),
)

# Directions whose singular value is this share of the largest, or less, are free: the task does not constrain them.
_DEPENDENT = 1e-6


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
    """Damped least squares, with joint stiffness and bias angles in the null space. Settings: see
    `DampedLeastSquaresParameters`.

    z = beta (q - bias)^2 is how Haynes prints the bias. That is the cost of the distance from the bias angle, not its
    gradient: it is never negative, so it turns a joint that is below its bias angle further away from it. The default
    is the gradient, z = 2 beta (q - bias); `bias_term="printed"` is kept for comparison.

    The damped null space is not exact: as printed, the pull keeps the tool off its target by lambda^2 z / sigma. With a
    step clamp it acts in the true null space (lambda = 0) instead, costs no accuracy, and does nothing on an arm
    without joints to spare; with `step_clamp` infinite it is as printed. Haynes clips each joint by itself; here the
    whole step is shortened, which keeps its direction, and so still reduces the error.
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
        return (
            self.robot.home
            if not self.settings.bias
            else self.for_each_joint("bias", self.settings.bias)
        )

    def compiled_step(self) -> CompiledStep:
        stiffness = self.for_each_joint("stiffness", self.settings.stiffness)
        damping, bias, none = self.settings.damping, np.array(self._bias), np.zeros(self.robot.n)
        if not stiffness.any():
            return CompiledStep(damped_step, (damping, none))
        printed, exact = (
            self.settings.bias_term == "printed",
            bool(np.isfinite(self.settings.step_clamp)),
        )
        settings = (damping, stiffness, bias, printed, exact, none, np.zeros(6))
        return CompiledStep(stiff_step, settings, drifts=True)


def damped_step(settings: tuple[float, Array], buffers: Buffers) -> None:
    """The motion without stiffness. Settings: lambda, and zeros (n,)."""
    damping, no_stiffness = settings
    damped_motion(buffers, buffers.error, damping, no_stiffness, buffers.q, False, buffers.dq)


def stiff_step(
    settings: tuple[float, Array, Array, bool, bool, Array, Array], buffers: Buffers
) -> None:
    """The motion of the task, and that of the stiffness as a drift.

    Settings: lambda; beta and the bias angles (n,); whether z is as printed; whether it acts in the true null space;
    zeros (n,) and (6,).
    """
    damping, stiffness, bias, printed, exact, no_stiffness, no_error = settings
    damped_motion(buffers, buffers.error, damping, no_stiffness, bias, False, buffers.dq)
    if exact:
        null_space_pull(buffers, stiffness, bias, printed)
    else:
        damped_motion(buffers, no_error, damping, stiffness, bias, printed, buffers.drift)


def damped_motion(
    buffers: Buffers,
    error: Array,
    damping: float,
    stiffness: Array,
    posture: Array,
    printed: bool,
    dq: Array,
) -> None:
    """The motion that minimizes |J dq - e|^2 + lambda^2 |dq|^2, with a pull towards a posture in the damped null space.

    The pull moves the tool by -lambda^2 (J J^T + lambda^2 I)^-1 J z, which is small except near a singularity.

    Args:
        damping: lambda, m (as in J, a metre weighs as a radian).
        stiffness: beta (n,), not negative; zeros for none. One half removes all of a joint's free distance to the
            posture (n,); more than one diverges.
        printed: Take Haynes's z.
    """
    jacobian, rows, n = buffers.jacobian, buffers.rows, buffers.n
    posture_gradient(buffers, stiffness, posture, printed, dq)
    # J* e + J* J z - z takes one solve: J* (e + J z) - z.
    to_task(jacobian, dq, n, rows, buffers.task)
    for k in range(rows):
        buffers.task[k] += error[k]
    # The smaller of the two equivalent systems: the larger one is singular except for the damping.
    if n < rows:
        joint_gram(jacobian, n, rows, buffers.matrix)
        to_joints(jacobian, buffers.task, n, rows, buffers.motion)
        for j in range(n):
            buffers.matrix[j, j] += damping * damping
        solve_positive_definite(buffers.matrix, buffers.motion, n)
    else:
        task_gram(jacobian, n, rows, buffers.matrix)
        for k in range(rows):
            buffers.matrix[k, k] += damping * damping
        solve_positive_definite(buffers.matrix, buffers.task, rows)
        to_joints(jacobian, buffers.task, n, rows, buffers.motion)
    for j in range(n):
        dq[j] = buffers.motion[j] - dq[j]


def null_space_pull(buffers: Buffers, stiffness: Array, posture: Array, printed: bool) -> None:
    """The pull towards the posture alone, in the true null space: (J^+ J - I) z, with z as in `damped_motion`."""
    n, drift = buffers.n, buffers.drift
    posture_gradient(buffers, stiffness, posture, printed, buffers.motion)
    count = decompose(
        buffers.jacobian, n, buffers.rows, buffers.joints, buffers.singular, buffers.tool
    )
    for j in range(n):
        drift[j] = -buffers.motion[j]
    for i in range(count):
        if buffers.singular[i] <= _DEPENDENT * buffers.singular[0]:
            break
        along = 0.0
        for j in range(n):
            along += buffers.joints[i, j] * buffers.motion[j]
        for j in range(n):
            drift[j] += along * buffers.joints[i, j]


def posture_gradient(
    buffers: Buffers, stiffness: Array, posture: Array, printed: bool, z: Array
) -> None:
    """z (n,): 2 beta_i (q_i - posture_i), the gradient of beta_i (q_i - posture_i)^2, or this itself as printed."""
    for j in range(buffers.n):
        off = buffers.q[j] - posture[j]
        z[j] = stiffness[j] * off * off if printed else 2.0 * stiffness[j] * off
