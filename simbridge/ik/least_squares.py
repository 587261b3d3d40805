"""Solvers whose step is a least-squares solution of J dq = e: the pseudoinverse, and three ways to damp it.

Pseudoinverse      q += alpha J^+ e. Whitney 1969; Buss, "Introduction to inverse kinematics with Jacobian transpose,
                   pseudoinverse and damped least squares methods", 2004; seed tutorial "Inverse kinematics" (step 4).
DampedLeastSquares q += J* e + (J* J - I) z, J* = J^T (J J^T + lambda^2 I)^-1. Haynes, "Exploring inverse kinematics",
                   equation 17; Wampler 1986; Nakamura and Hanafusa 1986.
SelectivelyDamped  each singular direction is damped by as much as it needs. Buss and Kim, "Selectively damped least
                   squares for inverse kinematics", Journal of Graphics Tools 10(3), 2005, for one multibody.
FeedbackIK         q += J^T Q (J J^T Q + I)^-1 e. Pechev, "Inverse kinematics without matrix inversion", ICRA 2008;
                   equation 5 in Scherzinger, Roennau and Dillmann.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import (
    EPSILON,
    decompose,
    joint_gram,
    solve_positive_definite,
    task_gram,
    to_joints,
    to_task,
)
from simbridge.ik.kernels.descent import Buffers
from simbridge.ik.settings import (
    DampedLeastSquaresParameters,
    FeedbackParameters,
    PseudoinverseParameters,
    SelectivelyDampedParameters,
)
from simbridge.robot.pose import Array

# Directions whose singular value is this share of the largest, or less, are free: the task does not constrain them.
_DEPENDENT = 1e-6


class Pseudoinverse(IterativeSolver):
    """The pseudoinverse with a step gain. Settings: see `PseudoinverseParameters`.

    According to the tutorial a larger alpha is faster, and makes the arm jitter when the goal is out of reach. With the
    clamps it does not: a step that raises the error is halved.
    """

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

    Settings: alpha (0 to 1), and the cutoff: singular values at or below this share of the largest count as zero, and
    their directions stay still.
    """
    alpha, cutoff = settings
    n, dq = buffers.n, buffers.dq
    count = decompose(
        buffers.jacobian, n, buffers.rows, buffers.joints, buffers.singular, buffers.tool
    )
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


class SelectivelyDamped(IterativeSolver):
    """Selectively damped least squares. Settings: see `SelectivelyDampedParameters`.

    No damping constant is chosen; the motion along a singular direction may turn no joint further than moves the tool
    by about the error.
    """

    name = "selectively-damped"
    Parameters = SelectivelyDampedParameters
    settings: SelectivelyDampedParameters

    @property
    def description(self) -> str:
        return f"{super().description} (it also finds the start for other solvers)"

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(selectively_damped_step, (self.settings.largest_angle,))


def clamp_factor(vector: Array, n: int, bound: float) -> float:
    """The factor of the paper's ClampMaxAbs: it reduces the largest entry to `bound`, and keeps the direction."""
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(vector[j]))
    return bound / largest if largest > bound else 1.0


def length(vector: Array, start: int, stop: int) -> float:
    """The length of a part of a vector."""
    square = 0.0
    for k in range(start, stop):
        square += vector[k] * vector[k]
    return math.sqrt(square)


def selectively_damped_step(settings: tuple[float], buffers: Buffers) -> None:
    """The sum of the motions along the singular directions, each clamped to its own bound, and clamped as a whole.

    The paper's end effectors are points. Here the tool's translation counts as one and its rotation as another, whose
    position is measured in radians: one radian weighs as one metre, as in the Jacobian. Settings: gamma_max, the
    largest motion of a joint, rad (m, if it slides); the paper's is pi/4.
    """
    (gamma_max,) = settings
    jacobian, rows, dq = buffers.jacobian, buffers.rows, buffers.dq
    n = buffers.n
    split = min(3, rows)
    count = decompose(jacobian, n, rows, buffers.joints, buffers.singular, buffers.tool)
    # The paper's rho, summed over the end effectors: the tool's motion for a unit motion of joint j.
    rho, part = buffers.vector, buffers.motion
    for j in range(n):
        dq[j] = 0.0
        rho[j] = length(jacobian[j], 0, split) + length(jacobian[j], split, rows)
    for i in range(count):
        sigma, u, v = buffers.singular[i], buffers.tool[i], buffers.joints[i]
        if sigma <= 12.0 * EPSILON * buffers.singular[0]:
            break
        along = 0.0
        for k in range(rows):
            along += u[k] * buffers.error[k]
        gain = length(u, 0, split) + length(u, split, rows)
        travel = 0.0
        for j in range(n):
            travel += abs(v[j]) * rho[j]
        travel /= sigma
        gamma = gamma_max * gain / travel if travel > gain else gamma_max
        for j in range(n):
            part[j] = along / sigma * v[j]
        factor = clamp_factor(part, n, gamma)
        for j in range(n):
            dq[j] += factor * part[j]
    factor = clamp_factor(dq, n, gamma_max)
    for j in range(n):
        dq[j] *= factor


class FeedbackIK(IterativeSolver):
    """Feedback inverse kinematics. Settings: see `FeedbackParameters`.

    Pechev's loop drives J dq to e with the gain Q, and converges to this formula. His Q is dynamic, from an offline
    optimization for one arm; here it is constant and diagonal, and with equal gains the method is damped least squares
    with lambda^2 = 1/Q.
    """

    name = "feedback"
    Parameters = FeedbackParameters
    settings: FeedbackParameters
    reliable = False

    def compiled_step(self) -> CompiledStep:
        return CompiledStep(feedback_step, (np.ones(6) * np.array(self.settings.gain),))

    def rotation_weight(self) -> float:
        gain = np.ones(6) * np.array(self.settings.gain)
        return float(gain[3:].mean() / gain[:3].mean())


def feedback_step(settings: tuple[Array], buffers: Buffers) -> None:
    """The motion to which the feedback loop converges, by one solve instead of the loop or an inverse.

    With S = sqrt(Q), Q (J J^T Q + I)^-1 = S (S J J^T S + I)^-1 S, whose matrix is symmetric with no eigenvalue below
    one. Settings: the diagonal of Q (6,), not negative: 1/m^2 for the translation (each joint's motion being in rad), 1
    for the rotation; a component of zero is left out.
    """
    (gain,) = settings
    rows = buffers.rows
    task_gram(buffers.jacobian, buffers.n, rows, buffers.matrix)
    for a in range(rows):
        root = math.sqrt(gain[a])
        buffers.task[a] = root
        buffers.vector[a] = root * buffers.error[a]
        for b in range(a + 1):
            buffers.matrix[a, b] *= root * buffers.task[b]
        buffers.matrix[a, a] += 1.0
    solve_positive_definite(buffers.matrix, buffers.vector, rows)
    for a in range(rows):
        buffers.vector[a] *= buffers.task[a]
    to_joints(buffers.jacobian, buffers.vector, buffers.n, rows, buffers.dq)
