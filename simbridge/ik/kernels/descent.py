"""The loops of the iterative solvers, compiled around the linearization of a chain and the step of a solver.

With a finite step clamp a step must reduce the error by a tenth of what it predicts (Armijo's rule): it is halved until
it does. Where a sixteenth of it still does not, or where the clamp leaves less of it than that, the steepest descent is
taken. Otherwise a target out of reach makes every solver of this family chatter about the stretched arm, where the
Jacobian predicts more than the arm can do (the jitter that tutorials note, and that a smaller gain only slows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from simbridge.ik.kernels import source
from simbridge.ik.kernels.compile import Kernel, kernel
from simbridge.ik.kernels.dense import aim, copy
from simbridge.ik.kernels.module import Generated, module_text
from simbridge.ik.kernels.null_space import (
    adopt,
    cost_of,
    largest,
    limit_step,
    linearized_cost,
    no_null_space_step,
    norm,
    null_space_step,
)
from simbridge.ik.kernels.source import Structure
from simbridge.ik.kernels.step import Buffers, take_step
from simbridge.robot.pose import Array, Flags

# Parts of a step: below the first another direction is better, below the second it is as good as none.
_SHORT, _SHORTEST = 2.0**-4, 2.0**-12
# The share of the predicted reduction of the cost that a step must attain (Armijo).
_SHARE = 0.1
# The cost (half a squared error, m and rad) of a nanometre.
_ROUNDING = 1e-18
# A sum below this share of its parts is rounding.
_CANCELLED = 1e-9
# What is being tried: nothing, the solver's step, or the steepest descent.
_NOTHING, _STEP, _STEEPEST = 0, 1, 2


def compiled_loop(
    placements: Array,
    prismatic: Flags,
    task: str,
    solver: str,
    step: Callable[..., None],
    *,
    drifts: bool,
    differences: bool,
) -> Kernel:
    """The function `track` for one solver, arms of one kinematic structure, and one task.

    Args:
        placements, prismatic: The chain: see `source.structure_of`.
        task: See `simbridge.ik.task`.
        solver: What the notice about compiling calls it.
        step: See `step.py`.
        drifts: Whether the step has a motion within the null space.
        differences: Whether the Jacobian is one of finite differences.
    """
    return _compiled_loop(source.structure_of(placements, prismatic), task, solver, step, drifts, differences)


@lru_cache(maxsize=64)
def _compiled_loop(
    structure: Structure, task: str, solver: str, step: Callable[..., None], drifts: bool, differences: bool
) -> Kernel:
    given: dict[str, Generated | Callable[..., None]] = {
        "linearize": source.linearize(structure, task, differences),
        "take_step": step,
        "null_space_step": null_space_step if drifts else no_null_space_step,
    }
    return kernel(module_text(track, given=given), "track", f"{solver} for this kinematic structure")


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
            part = buffers.jacobian[j, i] * buffers.error[i] * (1.0 if i < 3 else buffers.rotation_weight)
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
    """Iterate towards each pose (T, 7) in turn, from where the one before has led.

    One function, not one for each loop: numba optimizes a function again with each one that calls it.

    Args:
        settings: Of the step.
        arrays: The record of `step.allocate_buffers`.
        iterations: The most per pose.
        tolerance: Translation (m) and rotation (rad) that end the iterations when both are met; negative ones never
            are.
        q: Joint positions (n,) to begin with, which become the last ones.
        out: Result: joint positions (T, n).
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
