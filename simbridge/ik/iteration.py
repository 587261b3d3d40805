"""The compiled loops of the iterative solvers, written once for all of them.

With a finite step clamp a step must lessen the error by a tenth of what it promises (Armijo's rule): it is halved until
it does. Where a sixteenth of it still does not, or the clamp leaves less of it than that, the steepest way is taken.
Without that, a target out of reach makes every solver of this family chatter about the stretched arm, because there the
Jacobian promises more than the arm can do (the jitter that tutorials note, and that a smaller gain only slows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.joint_wrapping import wind_into_limits
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.kernels.routine import Routine, own_source
from simbridge.ik.linearization import Chain, aim
from simbridge.ik.stepping import Rules, State, copy, cost_of, drift_on, largest, limit_step, looked, norm, take_step
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array, Counts, Flags

# Parts of a motion: below the first another direction is better, below the second it is as good as none.
_SHORT, _SHORTEST = 2.0**-4, 2.0**-12
# The least share that a step must keep of what it promises to take off the cost (Armijo).
_SHARE = 0.1
# The cost (half a squared error, m and rad) of a nanometre.
_ROUNDING = 1e-18
# The share of a sum's parts below which it is the rounding of what cancels.
_CANCELLED = 1e-9
# What a look is about.
_NOTHING, _STEP, _STEEPEST = range(3)


class Found(NamedTuple):
    """What `solve` finds, a row a target.

    Attributes:
        q: Joint positions (T, n).
        residuals: Translation (m) and rotation (rad) that are left (T, 2).
        iterations, tries: Over all tries (T,), and their number (T,).
        inside: Whether the positions are within the joint limits (T,).
    """

    q: Array
    residuals: Array
    iterations: Counts
    tries: Counts
    inside: Flags


@compiled
def promised(jacobian: Array, pull: Array, rows: int, rotation_weight: float, dq: Array) -> float:
    """What dq would take off the cost, were the arm linear and dq small."""
    promise = 0.0
    for i in range(rows):
        way = 0.0
        for j in range(dq.shape[0]):
            way += jacobian[j, i] * dq[j]
        promise += way * pull[i] * (1.0 if i < 3 else rotation_weight)
    return promise


@compiled
def steepest(jacobian: Array, pull: Array, rows: int, rotation_weight: float, dq: Array) -> None:
    """The Jacobian transpose with the best length: it always lessens the error, if it is short enough.

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


@compiled
def _descend(
    settings: Any,
    chain: Chain,
    rules: Rules,
    iterations: int,
    tolerance: tuple[float, float],
    target: Array,
    q: Array,
    state: State,
    work: Work,
) -> tuple[float, float, int]:
    """Iterate q towards a target, in place, until both tolerances (m, rad) are met; negative ones never are.

    Returns:
        What is left of translation (m) and rotation (rad), and the iterations that were taken.
    """
    n, sight = q.shape[0], state.sight
    aim(target, sight.target)
    guarded = math.isfinite(rules.step_clamp)
    # Of where the step began, while it is looked at where it leads.
    jacobian, pull, jacobian_there, pull_there = state.jacobian, state.pull, sight.jacobian, sight.pull
    # The most that the next look may find; and what it is that is looked at.
    allowed, trial, scale = np.inf, _NOTHING, 0.0
    cost, promise, room, done = np.inf, 0.0, 0.0, 0
    while True:
        found = looked(chain, rules, q, sight, pull_there, jacobian_there)
        if guarded and found > allowed:
            # Too far: half of it; in the place of a step that is still too long, the steepest; in the end nothing.
            scale *= 0.5
            if trial == _STEP and scale < _SHORT:
                trial, scale = _STEEPEST, 1.0
                steepest(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
                limit_step(state.dq, room)
                promise = promised(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
            allowed = max(cost - _SHARE * scale * promise, _ROUNDING)
            if scale < _SHORTEST:
                allowed, scale = np.inf, 0.0
            for i in range(n):
                q[i] = state.before[i] + scale * state.dq[i] + state.held[i]
            continue
        if trial != _NOTHING:
            drift_on(settings, chain, rules, q, state, work, pull_there, jacobian_there, found)
        distance, angle = norm(sight.error, 0), norm(sight.error, 3)
        if done == iterations or (distance <= tolerance[0] and angle <= tolerance[1]):
            return distance, angle, done
        done += 1
        trial, scale = _STEP, 1.0
        jacobian, jacobian_there = jacobian_there, jacobian
        pull, pull_there = pull_there, pull
        cost = cost_of(sight.error, rules)
        take_step(settings, jacobian, pull, rules.rows, q, work, state.dq, state.drift, state.held)
        limit_step(state.held, rules.step_clamp)
        room = rules.step_clamp - largest(state.held)
        kept = limit_step(state.dq, room)
        promise = promised(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
        if kept < _SHORT:
            # Near a singularity most of a step may be one wild motion, and the clamp leaves nothing of the rest.
            steepest(jacobian, pull, rules.rows, rules.rotation_weight, state.before)
            limit_step(state.before, room)
            better = promised(jacobian, pull, rules.rows, rules.rotation_weight, state.before)
            if better > promise / _SHARE:
                trial, promise = _STEEPEST, better
                copy(state.before, state.dq)
        allowed = max(cost - _SHARE * abs(promise), _ROUNDING)
        for i in range(n):
            state.before[i] = q[i]
            q[i] += state.dq[i] + state.held[i]


def track(
    settings: Any,
    chain: Chain,
    rules: Rules,
    iterations: int,
    poses: Array,
    q: Array,
    state: State,
    work: Work,
    out: Array,
) -> None:
    """From q (n,), which goes along, `iterations` towards each pose (T, 7) in turn; out: joint positions (T, n)."""
    for t in range(poses.shape[0]):
        _descend(settings, chain, rules, iterations, (-1.0, -1.0), poses[t], q, state, work)
        copy(q, out[t])


def solve(
    settings: Any,
    chain: Chain,
    rules: Rules,
    iterations: int,
    poses: Array,
    q0: Array,
    starts: Array,
    tolerance: Array,
    state: State,
    work: Work,
    found: Found,
) -> None:
    """Solve each pose (T, 7) to a tolerance: from the solution before (the first from q0), then from each of `starts`.

    Args:
        iterations: The most per try; a try ends early when it has converged.
        q0: Joint positions (n,); the last solution in the end.
        starts: Joint positions (R, n), tried in turn while no try has converged within the joint limits.
        tolerance: Translation (m) and rotation (rad) (2,).
        found: What comes out: of the best try; within limits first, then the smallest residual.
    """
    q = state.at
    for t in range(poses.shape[0]):
        best, found.iterations[t] = np.inf, 0
        for attempt in range(starts.shape[0] + 1):
            copy(q0 if attempt == 0 else starts[attempt - 1], q)
            found.tries[t] = attempt + 1
            distance, angle, taken = _descend(
                settings, chain, rules, iterations, (tolerance[0], tolerance[1]), poses[t], q, state, work
            )
            found.iterations[t] += taken
            wound = wind_into_limits(chain.prismatic, chain.low, chain.high, q0, q)
            miss = max(distance / tolerance[0], angle / tolerance[1])
            close = miss <= 1.0
            # A posture that attains the target outside of the limits is worth more than one that does not attain it.
            rank = miss if wound or not close else 1.0 + 1e-9
            if rank < best or attempt == 0:
                best = rank
                copy(q, found.q[t])
                found.residuals[t, 0], found.residuals[t, 1] = distance, angle
                found.inside[t] = wound
            if close and wound:
                break
        if best <= 1.0:
            copy(found.q[t], q0)


@lru_cache(maxsize=64)
def routine(loop: Callable[..., None], solver: str, looks: str) -> Routine:
    """`track` or `solve`, compiled for a solver and a build of arm.

    The step is that of the settings that it is called with, the look that of the chain; `looks` is the look's text.
    """
    return Routine(loop.__name__, f"{solver} solver for this build of arm", own_source() + looks, lambda: loop)
