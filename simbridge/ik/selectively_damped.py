"""Selectively damped least squares: each singular direction is damped by as much as it needs.

Buss and Kim, "Selectively damped least squares for inverse kinematics", Journal of Graphics Tools
10(3), 2005, for one multibody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from simbridge.ik.checks import POSITIVE
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import EPSILON, decompose
from simbridge.ik.kernels.records import Descent
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Fraction of the largest singular value that is rounding.
ROUNDING = 12.0 * EPSILON


@dataclass(frozen=True)
class SelectivelyDampedParameters(IterativeParameters):
    """Settings of selectively damped least squares."""

    largest_angle: float = setting(0.785, POSITIVE, slider=(0.01, 1.57), unit="rad")
    """gamma_max, the largest joint motion along one singular vector, rad."""

    def build(self, robot: Robot) -> SelectivelyDamped:
        """Return the solver with these settings."""
        return SelectivelyDamped(robot, self)


class SelectivelyDamped(IterativeSolver):
    """Selectively damped least squares. Settings: see `SelectivelyDampedParameters`.

    No damping constant is chosen; the motion along a singular direction may turn no joint further
    than moves the tool by about the error.
    """

    name = "selectively-damped"
    Parameters = SelectivelyDampedParameters
    settings: SelectivelyDampedParameters

    @property
    def description(self) -> str:
        return f"{super().description} (it also finds the start for other solvers)"

    def compiled_step(self) -> CompiledStep:
        """Return the step, with the largest motion along a singular vector."""
        return CompiledStep(selectively_damped_step, (self.settings.largest_angle,))


def selectively_damped_step(settings: tuple[float], descent: Descent) -> None:
    """Fill in the sum of the motions along the singular directions.

    Each is clamped to its own bound, and their sum as a whole. The paper's end effectors are
    points. Here the tool's translation counts as one and its rotation as another, whose position is
    measured in radians: one radian weighs as one metre, as in the Jacobian.

    Args:
        settings: gamma_max, the largest motion of a joint, rad (m, if it slides); the paper's is
            pi/4.
        descent: State of the descent, whose motion `iterate.dq` is filled in.
    """
    (gamma_max,) = settings
    iterate = descent.iterate
    scratch = descent.scratch
    jacobian = iterate.jacobian
    dq = iterate.dq
    n = iterate.n
    rows = iterate.rows
    # Components of the task before this index are translation, the others rotation.
    split = min(3, rows)
    # Here a row of the Jacobian belongs to a joint, so the left vectors are those of joint space.
    count = decompose(jacobian, n, rows, scratch.joints, scratch.singular, scratch.tool)

    # The paper's rho, summed over the end effectors: how far a unit motion of each joint moves the
    # tool.
    rho = scratch.vector
    for j in range(n):
        dq[j] = 0.0
        rho[j] = length(jacobian[j], 0, split) + length(jacobian[j], split, rows)

    motion = scratch.motion
    for i in range(count):
        # A motion of the joints along v moves the tool along u, sigma times as far.
        sigma = scratch.singular[i]
        u = scratch.tool[i]
        v = scratch.joints[i]
        # The singular values are sorted: from here on they are rounding.
        if sigma <= ROUNDING * scratch.singular[0]:
            break

        # The component of the error along u.
        error_along = 0.0
        for k in range(rows):
            error_along += u[k] * iterate.error[k]

        # The paper's N: how far the tool moves in all for a unit error along u. Its M: how far all
        # joints by themselves would move the tool for it. The more these motions cancel one
        # another, the smaller is the bound gamma on the motion of a joint.
        net_travel = length(u, 0, split) + length(u, split, rows)
        total_travel = 0.0
        for j in range(n):
            total_travel += abs(v[j]) * rho[j]
        total_travel /= sigma
        gamma = gamma_max
        if total_travel > net_travel:
            gamma = gamma_max * net_travel / total_travel

        for j in range(n):
            motion[j] = error_along / sigma * v[j]
        factor = clamp_factor(motion, n, gamma)
        for j in range(n):
            dq[j] += factor * motion[j]

    factor = clamp_factor(dq, n, gamma_max)
    for j in range(n):
        dq[j] *= factor


def clamp_factor(vector: Array, n: int, bound: float) -> float:
    """Return the factor of the paper's ClampMaxAbs.

    It reduces the largest of n entries to a bound, and keeps the direction.
    """
    magnitude = 0.0
    for j in range(n):
        magnitude = max(magnitude, abs(vector[j]))
    return bound / magnitude if magnitude > bound else 1.0


def length(vector: Array, start: int, stop: int) -> float:
    """Return the length of a part of a vector."""
    square = 0.0
    for k in range(start, stop):
        square += vector[k] * vector[k]
    return math.sqrt(square)
