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
from simbridge.ik.kernels.step import Buffers, Rules, State, linearize, take_step
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


def cost_of(error: Array, rules: Rules) -> float:
    """The cost of an error (6,), which steps are to reduce."""
    cost = clamped_cost(norm(error, 0), rules.translation_clamp)
    return cost + rules.rotation_weight * clamped_cost(norm(error, 3), rules.rotation_clamp)


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


def linearized_cost(placements: Array, rules: Rules, q: Array, state: State, pull: Array, jacobian: Array) -> float:
    """Linearize at q (n,): the error goes into `state`; returns its cost."""
    linearize(placements, q, state.target, rules.translation_clamp, rules.rotation_clamp, state.error, pull, jacobian)
    return cost_of(state.error, rules)


def largest_difference(one: Array, other: Array) -> float:
    """The largest magnitude in the difference of two vectors."""
    found = 0.0
    for i in range(one.shape[0]):
        found = max(found, abs(one[i] - other[i]))
    return found


def no_null_space_step(
    settings: Any,
    placements: Array,
    rules: Rules,
    q: Array,
    state: State,
    buffers: Buffers,
    pull: Array,
    jacobian: Array,
    cost: float,
) -> None:
    """In the place of `null_space_step`, for solvers without a drift: less to compile."""


def null_space_step(
    settings: Any,
    placements: Array,
    rules: Rules,
    q: Array,
    state: State,
    buffers: Buffers,
    pull: Array,
    jacobian: Array,
    cost: float,
) -> None:
    """Move q by the drift of the step that led to it, at this cost; `pull` and `jacobian` are those of the result."""
    n, drift, base = q.shape[0], state.drift, state.base
    size = 0.0
    for i in range(n):
        size += drift[i] * drift[i]
    if size == 0.0:
        return
    guarded = math.isfinite(rules.step_clamp)
    left = rules.step_clamp - largest_difference(q, state.before)
    if left <= 0.0:
        return
    size *= limit_step(drift, left) ** 2
    copy(q, base)
    scale = 1.0
    while scale >= _MIN_DRIFT:
        for i in range(n):
            q[i] = base[i] + scale * drift[i]
        if linearized_cost(placements, rules, q, state, pull, jacobian) <= cost or not guarded:
            return
        take_step(settings, jacobian, pull, rules.rows, q, buffers, state.correction, state.onward, state.unused)
        limit_step(state.correction, rules.step_clamp)
        surviving, onward = 0.0, 0.0
        for i in range(n):
            q[i] += state.correction[i]
            surviving += (q[i] - base[i]) * drift[i]
            onward += state.onward[i] * drift[i]
        corrected = linearized_cost(placements, rules, q, state, pull, jacobian) <= max(cost, _TOLERATED)
        useful = onward >= 0.0 and surviving >= _SURVIVING * scale * size
        if corrected and useful and largest_difference(q, state.before) <= rules.step_clamp:
            return
        scale *= 0.5
    copy(base, q)
    linearized_cost(placements, rules, q, state, pull, jacobian)
