"""The loops of the iterative solvers, compiled around the linearization of a chain and the step of a solver.

With a finite step clamp a step must reduce the error by a tenth of what it predicts (Armijo's rule): it is halved until
it does. Where a sixteenth of it still does not, or where the clamp leaves less of it than that, the steepest descent is
taken. Otherwise a target out of reach makes every solver of this family chatter about the stretched arm, where the
Jacobian predicts more than the arm can do (the jitter that tutorials note, and that a smaller gain only slows).

A motion within the null space (`drift`) raises the error beyond the linear model; a step of the solver corrects that at
once. The drift is accepted only if most of it survives the correction, and if it does not lead past the point from
which the solver would move back: a stretched arm that would bend towards its posture and be stretched again stays as it
is. Step, drift and correction together move no joint further than the clamp. Without a clamp nothing is checked: the
plain method.

A solver's step is a plain function, compiled together with the loops:

    def step(settings, buffers)

- `settings`: a tuple of numbers and arrays, from the solver's `compiled_step()`;
- `buffers`: a record with the arrays that the step reads, those that it fills, and scratch: see `allocate_buffers`.

A step may remove from `buffers.jacobian` what its own rows leave no freedom for; the steepest descent, which may
replace the step, then keeps to these rows, too. Finite input must give finite output, singular or not; the loops clamp.

One record instead of its arrays, because each array is seven arguments of every function that it passes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from simbridge.ik.kernels.dense import aim, copy, largest, norm
from simbridge.ik.kernels.mathematics import Structure, generate_linearize
from simbridge.kernels.compile import Kernel, kernel, module_text
from simbridge.kernels.expression import Generated
from simbridge.robot.pose import Array

# Parts of a step: below the first another direction is better, below the second it is as good as none.
_SHORT, _SHORTEST = 2.0**-4, 2.0**-12
# The share of the predicted reduction of the cost that a step must attain (Armijo).
_SHARE = 0.1
# The cost (half a squared error, m and rad) of a nanometre; and of a micrometre, which is what a drift may cost.
_ROUNDING, _TOLERATED = 1e-18, 5e-13
# The smallest part of a drift that is tried, and the part that has to survive its correction: more than the half that a
# single step leaves of the bend of a stretched arm, since there Newton's method only halves what is left.
_MIN_DRIFT, _SURVIVING = 2.0**-8, 0.75
# A sum below this share of its parts is rounding.
_CANCELLED = 1e-9
# What is being tried: nothing, the solver's step, or the steepest descent.
_NOTHING, _STEP, _STEEPEST = 0, 1, 2

Buffers: TypeAlias = Any
"""The record, as compiled code sees it: `buffers.dq[0]`."""

MAX_STRICT = 6
"""Strict rows that a solver may add to the six of the task."""


def allocate_buffers(n: int) -> Any:
    """A record for n joints, all zero, as an array (1,). The shapes are those of its fields."""
    m = 6 + MAX_STRICT
    # The shape of an array in a record is part of its type: these two are chosen between.
    side = max(n, m)
    shapes: dict[str, tuple[int, ...]] = {
        # For the step to read: joint positions; the Jacobian, a row per joint and a column per component of the task,
        # SI units; the clamped error in the order of the columns, m and rad.
        "q": (n,),
        "jacobian": (n, 6),
        "error": (6,),
        # For the step to fill: the motion that is to reduce the error. The others may be left zero: a motion within the
        # null space; and one that is made in any case, which only the step clamp shortens, and which leaves the rest of
        # the clamp to the others.
        "dq": (n,),
        "drift": (n,),
        "held": (n,),
        # Scratch of the step, which keeps nothing between calls. The system to solve, its right-hand side and solution,
        # the same for three right-hand sides, and its pivots.
        "matrix": (n + m, n + m),
        "vector": (n + m,),
        "sides": (3, n + m),
        "order": (n + m,),
        # A motion of the joints, and one of the tool.
        "motion": (n,),
        "task": (6,),
        # Singular vectors in joint space and in task space, one per row, and singular values.
        "joints": (side, side),
        "tool": (side, side),
        "singular": (m,),
        # Strict rows, transposed, and what they are to attain, in two parts.
        "strict": (n, m),
        "wanted": (2, m),
        # Of the loops. The target: position (3) and rotation matrix (9, row by row).
        "target": (12,),
        # Target minus tool in base axes: translation, then the Rodrigues vector. Components that the task does not
        # constrain are zero.
        "residual": (6,),
        # Clamped error and Jacobian where the step leads.
        "error_there": (6,),
        "jacobian_there": (n, 6),
        # Joint positions before the step and before the drift, and the drift as the step gave it.
        "before": (n,),
        "base": (n,),
        "way": (n,),
        # What the loops comply with, whatever the solver. The chain; its last frame is the tool's.
        "placements": (n + 1, 4, 4),
        # The number of joints, and of components that the task has; those come first.
        "n": (),
        "rows": (),
        # The largest error that acts, m and rad, and the largest motion of a joint in an iteration, rad or m; infinite
        # for none.
        "translation_clamp": (),
        "rotation_clamp": (),
        "step_clamp": (),
        # Weight of a radian against a metre in the cost.
        "rotation_weight": (),
        # The step of each joint for a Jacobian by differences, rad or m.
        "difference_step": (),
    }
    integers = ("order", "n", "rows")
    fields = [
        (name, np.int64 if name in integers else np.float64, shape)
        for name, shape in shapes.items()
    ]
    record = np.zeros(1, np.dtype(fields, align=True))
    record["n"] = n
    return record


def linearize(buffers: Buffers) -> None:
    """Residual, clamped error and Jacobian at `buffers.q`. Stands for the generated function."""
    raise NotImplementedError


def take_step(settings: Any, buffers: Buffers) -> None:
    """Stands for a solver's step."""
    raise NotImplementedError


@lru_cache(maxsize=64)
def compiled_loop(
    structure: Structure,
    task: str,
    solver: str,
    step: Callable[..., None],
    *,
    drifts: bool,
    differences: bool,
) -> Kernel:
    """The function `track` for one solver, arms of one kinematic structure, and one task.

    Args:
        solver: What the notice about compiling calls it.
        step: See the module's text.
        drifts: Whether the step has a motion within the null space.
        differences: Whether the Jacobian is one of finite differences.
    """
    given: dict[str, Generated | Callable[..., None]] = {
        "linearize": generate_linearize(structure, task, differences),
        "take_step": step,
        "null_space_step": null_space_step if drifts else no_null_space_step,
    }
    return kernel(
        module_text(track, given=given), "track", f"{solver} for this kinematic structure"
    )


def clamped_cost(size: float, clamp: float) -> float:
    """The cost whose gradient is an error clamped to a length: half a square, and linear beyond the clamp."""
    return 0.5 * size * size if size <= clamp else clamp * (size - 0.5 * clamp)


def cost_of(buffers: Buffers) -> float:
    """The cost of the residual, which steps are to reduce."""
    cost = clamped_cost(norm(buffers.residual, 0), buffers.translation_clamp)
    return cost + buffers.rotation_weight * clamped_cost(
        norm(buffers.residual, 3), buffers.rotation_clamp
    )


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
    linearize(buffers)
    return cost_of(buffers)


def adopt(buffers: Buffers) -> None:
    """Where the last motion has led becomes where the step begins."""
    copy(buffers.error_there, buffers.error)
    for j in range(buffers.q.shape[0]):
        copy(buffers.jacobian_there[j], buffers.jacobian[j])


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


def predicted(buffers: Buffers, dq: Array) -> float:
    """The reduction of the cost by dq, if the arm were linear and dq small."""
    reduction = 0.0
    for i in range(buffers.rows):
        way = 0.0
        for j in range(dq.shape[0]):
            way += buffers.jacobian[j, i] * dq[j]
        reduction += way * buffers.error[i] * (1.0 if i < 3 else buffers.rotation_weight)
    return reduction


def steepest(buffers: Buffers, dq: Array) -> None:
    """The Jacobian transpose with the best length: it always reduces the error, if it is short enough."""
    along, size, sums, parts = 0.0, 0.0, 0.0, 0.0
    for j in range(dq.shape[0]):
        dq[j] = 0.0
        for i in range(buffers.rows):
            part = (
                buffers.jacobian[j, i]
                * buffers.error[i]
                * (1.0 if i < 3 else buffers.rotation_weight)
            )
            dq[j] += part
            parts += part * part
        sums += dq[j] * dq[j]
    for i in range(buffers.rows):
        way = 0.0
        for j in range(dq.shape[0]):
            way += buffers.jacobian[j, i] * dq[j]
        weight = 1.0 if i < 3 else buffers.rotation_weight
        along += weight * buffers.error[i] * way
        size += weight * way * way
    length = along / size if size > 1e-290 and sums > _CANCELLED * _CANCELLED * parts else 0.0
    for j in range(dq.shape[0]):
        dq[j] *= length


def track(
    settings: Any,
    arrays: Any,
    iterations: int,
    tolerance: tuple[float, float],
    poses: Array,
    q: Array,
    out: Array,
    last: Array,
) -> None:
    """Iterate towards each pose (T, 7) in turn, from where the one before has led: joint positions `out` (T, n).

    One function, not one for each loop: numba optimizes a function again with each one that calls it.

    Args:
        settings: Of the step.
        arrays: The record of `allocate_buffers`.
        iterations: The most per pose.
        tolerance: Translation (m) and rotation (rad) that end the iterations when both are met; negative ones never
            are.
        q: Joint positions (n,) to begin with, which become the last ones.
        last: Result (3,): remaining translation (m) and rotation (rad), and iterations, at the last pose.
    """
    buffers = arrays[0]
    before, dq, held, clamp = buffers.before, buffers.dq, buffers.held, buffers.step_clamp
    n = q.shape[0]
    guarded = math.isfinite(clamp)
    copy(q, buffers.q)
    for t in range(poses.shape[0]):
        aim(poses[t], buffers.target)
        # The largest acceptable cost of what is being tried, and how much of it is.
        allowed, trial, scale = np.inf, _NOTHING, 0.0
        cost, reduction, left, done = np.inf, 0.0, 0.0, 0
        while True:
            found = linearized_cost(buffers)
            if guarded and found > allowed:
                # Too far: half of it; instead of a step that is still too long the steepest descent; in the end
                # nothing.
                scale *= 0.5
                if trial == _STEP and scale < _SHORT:
                    trial, scale = _STEEPEST, 1.0
                    steepest(buffers, dq)
                    limit_step(dq, left)
                    reduction = predicted(buffers, dq)
                allowed = max(cost - _SHARE * scale * reduction, _ROUNDING)
                if scale < _SHORTEST:
                    allowed, scale = np.inf, 0.0
                for i in range(n):
                    buffers.q[i] = before[i] + scale * dq[i] + held[i]
                continue
            if trial != _NOTHING:
                null_space_step(settings, buffers, found)
            distance, angle = norm(buffers.residual, 0), norm(buffers.residual, 3)
            if done == iterations or (distance <= tolerance[0] and angle <= tolerance[1]):
                last[0], last[1], last[2] = distance, angle, done
                break
            done += 1
            trial, scale = _STEP, 1.0
            cost = cost_of(buffers)
            adopt(buffers)
            take_step(settings, buffers)
            limit_step(held, clamp)
            left = clamp - largest(held)
            kept = limit_step(dq, left)
            reduction = predicted(buffers, dq)
            if kept < _SHORT:
                # Near a singularity a step may be dominated by one large motion, and the clamp leaves nothing of the
                # rest.
                steepest(buffers, before)
                limit_step(before, left)
                better = predicted(buffers, before)
                if better > reduction / _SHARE:
                    trial, reduction = _STEEPEST, better
                    copy(before, dq)
            allowed = max(cost - _SHARE * abs(reduction), _ROUNDING)
            for i in range(n):
                before[i] = buffers.q[i]
                buffers.q[i] += dq[i] + held[i]
        copy(buffers.q, out[t])
    copy(buffers.q, q)
