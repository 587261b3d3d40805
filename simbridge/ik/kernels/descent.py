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
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.joint_wrapping import wrap_into_limits
from simbridge.ik.kernels import source
from simbridge.ik.kernels.compile import Kernel, kernel
from simbridge.ik.kernels.dense import aim, copy
from simbridge.ik.kernels.null_space import (
    cost_of,
    largest,
    limit_step,
    linearized_cost,
    no_null_space_step,
    norm,
    null_space_step,
)
from simbridge.ik.kernels.source import Generated, Structure
from simbridge.ik.kernels.step import Buffers, Rules, State, allocate_buffers, allocate_state, take_step
from simbridge.robot.pose import Array, Counts, Flags

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


class Kernels(NamedTuple):
    """The compiled loops, for one solver, arms of one kinematic structure, and one task."""

    track: Kernel
    solve: Kernel


def kernels(
    placements: Array, prismatic: Flags, task: str, solver: str, step: Callable[..., None], drifts: bool
) -> Kernels:
    """The compiled loops of a solver.

    Args:
        placements, prismatic: The chain: see `source.structure_of`.
        task: See `simbridge.ik.task`.
        solver: What the notice about compiling calls it.
        step: See `step.py`.
        drifts: Whether the step has a motion within the null space.
    """
    return _kernels(source.structure_of(placements, prismatic), task, solver, step, drifts)


@lru_cache(maxsize=64)
def _kernels(structure: Structure, task: str, solver: str, step: Callable[..., None], drifts: bool) -> Kernels:
    given: dict[str, Generated | Callable[..., None]] = {
        "linearize": source.linearize(structure, task),
        "take_step": step,
        "null_space_step": null_space_step if drifts else no_null_space_step,
    }
    text = source.module_text(track, solve, given=given)
    purpose = f"{solver} for this kinematic structure"
    return Kernels(*(kernel(text, name, purpose) for name in Kernels._fields))


def predicted(jacobian: Array, pull: Array, rows: int, rotation_weight: float, dq: Array) -> float:
    """The reduction of the cost by dq, if the arm were linear and dq small."""
    reduction = 0.0
    for i in range(rows):
        way = 0.0
        for j in range(dq.shape[0]):
            way += jacobian[j, i] * dq[j]
        reduction += way * pull[i] * (1.0 if i < 3 else rotation_weight)
    return reduction


def steepest(jacobian: Array, pull: Array, rows: int, rotation_weight: float, dq: Array) -> None:
    """The Jacobian transpose with the best length: it always reduces the error, if it is short enough.

    The weight is that of rotation against translation.
    """
    along, size, sums, parts = 0.0, 0.0, 0.0, 0.0
    for j in range(dq.shape[0]):
        dq[j] = 0.0
        for i in range(rows):
            part = jacobian[j, i] * pull[i] * (1.0 if i < 3 else rotation_weight)
            dq[j] += part
            parts += part * part
        sums += dq[j] * dq[j]
    for i in range(rows):
        way = 0.0
        for j in range(dq.shape[0]):
            way += jacobian[j, i] * dq[j]
        weight = 1.0 if i < 3 else rotation_weight
        along += weight * pull[i] * way
        size += weight * way * way
    length = along / size if size > 1e-290 and sums > _CANCELLED * _CANCELLED * parts else 0.0
    for j in range(dq.shape[0]):
        dq[j] *= length


def descend(
    settings: Any,
    placements: Array,
    rules: Rules,
    iterations: int,
    tolerance: tuple[float, float],
    target: Array,
    q: Array,
    state: State,
    buffers: Buffers,
) -> tuple[float, float, int]:
    """Iterate q towards a target, in place, until both tolerances (m, rad) are met; negative ones never are.

    Returns:
        The remaining translation (m) and rotation (rad), and the number of iterations.
    """
    n = q.shape[0]
    aim(target, state.target)
    guarded = math.isfinite(rules.step_clamp)
    # Before the step, and where the step leads.
    jacobian, pull, jacobian_there, pull_there = state.jacobian, state.pull, state.other_jacobian, state.other_pull
    # The largest acceptable cost of what is being tried, and how much of it is.
    allowed, trial, scale = np.inf, _NOTHING, 0.0
    cost, reduction, left, done = np.inf, 0.0, 0.0, 0
    while True:
        found = linearized_cost(placements, rules, q, state, pull_there, jacobian_there)
        if guarded and found > allowed:
            # Too far: half of it; instead of a step that is still too long the steepest descent; in the end nothing.
            scale *= 0.5
            if trial == _STEP and scale < _SHORT:
                trial, scale = _STEEPEST, 1.0
                steepest(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
                limit_step(state.dq, left)
                reduction = predicted(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
            allowed = max(cost - _SHARE * scale * reduction, _ROUNDING)
            if scale < _SHORTEST:
                allowed, scale = np.inf, 0.0
            for i in range(n):
                q[i] = state.before[i] + scale * state.dq[i] + state.held[i]
            continue
        if trial != _NOTHING:
            null_space_step(settings, placements, rules, q, state, buffers, pull_there, jacobian_there, found)
        distance, angle = norm(state.error, 0), norm(state.error, 3)
        if done == iterations or (distance <= tolerance[0] and angle <= tolerance[1]):
            return distance, angle, done
        done += 1
        trial, scale = _STEP, 1.0
        jacobian, jacobian_there = jacobian_there, jacobian
        pull, pull_there = pull_there, pull
        cost = cost_of(state.error, rules)
        take_step(settings, jacobian, pull, rules.rows, q, buffers, state.dq, state.drift, state.held)
        limit_step(state.held, rules.step_clamp)
        left = rules.step_clamp - largest(state.held)
        kept = limit_step(state.dq, left)
        reduction = predicted(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
        if kept < _SHORT:
            # Near a singularity a step may be dominated by one large motion, and the clamp leaves nothing of the rest.
            steepest(jacobian, pull, rules.rows, rules.rotation_weight, state.before)
            limit_step(state.before, left)
            better = predicted(jacobian, pull, rules.rows, rules.rotation_weight, state.before)
            if better > reduction / _SHARE:
                trial, reduction = _STEEPEST, better
                copy(state.before, state.dq)
        allowed = max(cost - _SHARE * abs(reduction), _ROUNDING)
        for i in range(n):
            state.before[i] = q[i]
            q[i] += state.dq[i] + state.held[i]


def track(
    settings: Any,
    placements: Array,
    rules: tuple[int, int, float, float, float, float],
    iterations: int,
    poses: Array,
    q: Array,
    out: Array,
) -> None:
    """From q (n,), which is updated, `iterations` towards each pose (T, 7) in turn; out: joint positions (T, n)."""
    state, buffers = allocate_state(q.shape[0]), allocate_buffers(q.shape[0], rules[1])
    kept = Rules(rules[0], rules[1], rules[2], rules[3], rules[4], rules[5])
    for t in range(poses.shape[0]):
        descend(settings, placements, kept, iterations, (-1.0, -1.0), poses[t], q, state, buffers)
        copy(q, out[t])


def solve(
    settings: Any,
    placements: Array,
    rules: tuple[int, int, float, float, float, float],
    iterations: int,
    poses: Array,
    prismatic: Flags,
    limits: Array,
    q0: Array,
    starts: Array,
    tolerance: tuple[float, float],
    out: Array,
    residuals: Array,
    used: Counts,
    tries: Counts,
    inside: Flags,
) -> None:
    """Solve each pose (T, 7) to a tolerance: from the solution before (the first from q0), then from each of `starts`.

    Args:
        iterations: The most per try; a try ends early when it has converged.
        prismatic, limits: Which joints slide (n,), and their limits (2, n), rad or m.
        q0: Joint positions (n,), which become those of the last solution.
        starts: Joint positions (R, n), tried in turn while no try has converged within the joint limits.
        tolerance: Translation (m) and rotation (rad).
        out: Result: joint positions (T, n) of the best try: within limits first, then the smallest residual.
        residuals: Result: remaining translation (m) and rotation (rad) (T, 2).
        used, tries: Result: iterations over all tries (T,), and the number of tries (T,).
        inside: Result: whether the positions are within the joint limits (T,).
    """
    state, buffers = allocate_state(q0.shape[0]), allocate_buffers(q0.shape[0], rules[1])
    kept = Rules(rules[0], rules[1], rules[2], rules[3], rules[4], rules[5])
    q = np.zeros(q0.shape[0])
    for t in range(poses.shape[0]):
        best, used[t] = np.inf, 0
        for attempt in range(starts.shape[0] + 1):
            copy(q0 if attempt == 0 else starts[attempt - 1], q)
            tries[t] = attempt + 1
            distance, angle, done = descend(
                settings, placements, kept, iterations, tolerance, poses[t], q, state, buffers
            )
            used[t] += done
            wrapped = wrap_into_limits(prismatic, limits[0], limits[1], q0, q)
            miss = max(distance / tolerance[0], angle / tolerance[1])
            close = miss <= 1.0
            # A posture that attains the target outside the limits is better than one that does not attain it.
            rank = miss if wrapped or not close else 1.0 + 1e-9
            if rank < best or attempt == 0:
                best = rank
                copy(q, out[t])
                residuals[t, 0], residuals[t, 1] = distance, angle
                inside[t] = wrapped
            if close and wrapped:
                break
        if best <= 1.0:
            copy(out[t], q0)
