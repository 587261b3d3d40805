"""Selectively damped least squares.

Buss and Kim, "Selectively damped least squares for inverse kinematics", Journal of Graphics Tools 10(3), 2005: the
section on the method, for one multibody. Each singular direction gets a bound of its own on the angles it may turn,
the tighter the more the tool would have to travel for little gain; no damping constant is tuned.
"""

from __future__ import annotations

import math

from simbridge.ik.dense import EPSILON, decompose
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array


@compiled
def _clamp_factor(vector: Array, n: int, bound: float) -> float:
    """The factor of the paper's ClampMaxAbs: it brings the largest entry down to `bound`, and keeps the direction."""
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(vector[j]))
    return bound / largest if largest > bound else 1.0


@compiled
def _length(vector: Array, start: int, stop: int) -> float:
    square = 0.0
    for k in range(start, stop):
        square += vector[k] * vector[k]
    return math.sqrt(square)


@compiled
def step(
    jacobian: Array,
    error: Array,
    rows: int,
    q: Array,
    translation: int,
    gamma_max: float,
    work: Work,
    dq: Array,
) -> None:
    """The sum of the singular directions' motions, each clamped to its own bound, clamped as a whole.

    The paper's end effectors are points. Here the tool's translation counts as one and its rotation as another, whose
    position is measured in radians: one radian weighs as one metre, as it does in the Jacobian.

    Args:
        translation: How many of the used components are translation (the first ones); the rest are rotation.
        gamma_max: The most that a joint moves, rad (m, if it slides). The paper's is pi/4.
    """
    n = jacobian.shape[0]
    split = min(translation, rows)
    count = decompose(jacobian, n, rows, work.joints, work.singular, work.tool)
    # The paper's rho, summed over the end effectors: how far the tool moves as joint j moves by one.
    rho, part = work.vector, work.motion
    for j in range(n):
        dq[j] = 0.0
        rho[j] = _length(jacobian[j], 0, split) + _length(jacobian[j], split, rows)
    for i in range(count):
        sigma, u, v = work.singular[i], work.tool[i], work.joints[i]
        if sigma <= 12.0 * EPSILON * work.singular[0]:
            break
        along = 0.0
        for k in range(rows):
            along += u[k] * error[k]
        gain = _length(u, 0, split) + _length(u, split, rows)
        travel = 0.0
        for j in range(n):
            travel += abs(v[j]) * rho[j]
        travel /= sigma
        gamma = gamma_max * gain / travel if travel > gain else gamma_max
        for j in range(n):
            part[j] = along / sigma * v[j]
        factor = _clamp_factor(part, n, gamma)
        for j in range(n):
            dq[j] += factor * part[j]
    factor = _clamp_factor(dq, n, gamma_max)
    for j in range(n):
        dq[j] *= factor
