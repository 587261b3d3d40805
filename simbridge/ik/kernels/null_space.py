"""Costs, clamps, and the motion within the null space, for the loops of the iterative solvers.

A null-space motion (`drift`) raises the error beyond the linear model; a step of the solver corrects that at once. The
drift is accepted only if most of it survives the correction, and if it does not lead past the point from which the
solver would move back: a stretched arm that would bend towards its posture and be stretched again stays as it is. Step,
drift and correction together move no joint further than the clamp. Without a clamp nothing is checked: the plain
method.
"""

from __future__ import annotations

import math
from typing import Any

from simbridge.ik.kernels.dense import copy
from simbridge.ik.kernels.step import Buffers, linearize, take_step
from simbridge.robot.pose import Array

# The cost (half a squared error, m and rad) of a micrometre: what a drift may cost.
_TOLERATED = 5e-13
# The smallest part of a drift that is tried, and the part that has to survive its correction: more than the half that a
# single step leaves of the bend of a stretched arm, since there Newton's method only halves what is left.
_MIN_DRIFT, _SURVIVING = 2.0**-8, 0.75


def norm(e: Array, first: int) -> float:
    """The length of three components of a vector."""
    return math.sqrt(e[first] * e[first] + e[first + 1] * e[first + 1] + e[first + 2] * e[first + 2])


def clamped_cost(size: float, clamp: float) -> float:
    """The cost whose gradient is an error clamped to a length: half a square, and linear beyond the clamp."""
    return 0.5 * size * size if size <= clamp else clamp * (size - 0.5 * clamp)


def cost_of(buffers: Buffers) -> float:
    """The cost of the residual, which steps are to reduce."""
    cost = clamped_cost(norm(buffers.residual, 0), buffers.translation_clamp)
    return cost + buffers.rotation_weight * clamped_cost(norm(buffers.residual, 3), buffers.rotation_clamp)


def largest(step: Array) -> float:
    """The largest magnitude in a vector."""
    found = 0.0
    for i in range(step.shape[0]):
        found = max(found, abs(step[i]))
    return found


def limit_step(step: Array, clamp: float) -> float:
    """Shorten a step so that no joint moves further than the clamp; returns the part of it that is left."""
    most, total = largest(step), 0.0
    for i in range(step.shape[0]):
        total += step[i]
    scale = 1.0 if most <= clamp else clamp / most
    for i in range(step.shape[0]):
        # A step that is not finite becomes none.
        step[i] = scale * step[i] if math.isfinite(total) else 0.0
    return scale


def linearized_cost(buffers: Buffers) -> float:
    """Linearize at `buffers.q`: error and Jacobian there, and the residual; returns its cost."""
    linearize(
        buffers.placements,
        buffers.q,
        buffers.target,
        buffers.translation_clamp,
        buffers.rotation_clamp,
        buffers.difference_step,
        buffers.residual,
        buffers.error_there,
        buffers.jacobian_there,
    )
    return cost_of(buffers)


def adopt(buffers: Buffers) -> None:
    """Where the last motion has led becomes where the step begins."""
    copy(buffers.error_there, buffers.error)
    for j in range(buffers.q.shape[0]):
        for k in range(6):
            buffers.jacobian[j, k] = buffers.jacobian_there[j, k]


def largest_difference(one: Array, other: Array) -> float:
    """The largest magnitude in the difference of two vectors."""
    found = 0.0
    for i in range(one.shape[0]):
        found = max(found, abs(one[i] - other[i]))
    return found


def no_null_space_step(settings: Any, buffers: Buffers, cost: float) -> None:
    """In the place of `null_space_step`, for solvers without a drift: less to compile."""


def null_space_step(settings: Any, buffers: Buffers, cost: float) -> None:
    """Move `buffers.q` by the drift of the step that led to it, at this cost, and linearize again."""
    q, way, base, clamp = buffers.q, buffers.way, buffers.base, buffers.step_clamp
    n = q.shape[0]
    size = 0.0
    for i in range(n):
        way[i] = buffers.drift[i]
        size += way[i] * way[i]
    if size == 0.0:
        return
    guarded = math.isfinite(clamp)
    left = clamp - largest_difference(q, buffers.before)
    if left <= 0.0:
        return
    size *= limit_step(way, left) ** 2
    copy(q, base)
    scale = 1.0
    while scale >= _MIN_DRIFT:
        for i in range(n):
            q[i] = base[i] + scale * way[i]
        if linearized_cost(buffers) <= cost or not guarded:
            return
        # The correction is its motion, and its drift where the solver would move on.
        adopt(buffers)
        take_step(settings, buffers)
        limit_step(buffers.dq, clamp)
        surviving, onward = 0.0, 0.0
        for i in range(n):
            q[i] += buffers.dq[i]
            surviving += (q[i] - base[i]) * way[i]
            onward += buffers.drift[i] * way[i]
        corrected = linearized_cost(buffers) <= max(cost, _TOLERATED)
        useful = onward >= 0.0 and surviving >= _SURVIVING * scale * size
        if corrected and useful and largest_difference(q, buffers.before) <= clamp:
            return
        scale *= 0.5
    copy(base, q)
    linearized_cost(buffers)
