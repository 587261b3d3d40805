"""The compiled loops of the iterative solvers, written once for all of them.

A solver is a tuple of settings and a step. The compiler picks the step by the type of the settings, so a solver's loop
is compiled for that solver alone and calls nothing through a pointer:

    class MySettings(NamedTuple):
        gain: float

    @step_for(MySettings)
    def my_step(settings, jacobian, error, rows, q, work, dq, drift):
        ...

Jacobian (n, 6), clamped error (6,), rows, q (n,) and work are those of `simbridge.ik.steps`. A step fills `dq` (n,),
which is meant to lessen the error, and may fill `drift` (n,), a motion within the null space, which is not.

With a finite step clamp a step must lessen the error by a tenth of what it promises (Armijo's rule): it is halved until
it does. Where a sixteenth of it still does not, or the clamp leaves less of it than that, the steepest way is taken.
Without that, a target out of reach makes every solver of this family chatter about the stretched arm, because there the
Jacobian promises more than the arm can do (the jitter that tutorials note, and that a smaller gain only slows). A drift
may use up half of what its step has gained, or a tenth of a millimetre: so what is left over settles too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.arrays import Array, Counts, Flags
from simbridge.ik.codegen.lazy import Choice, compiled
from simbridge.ik.codegen.routine import Routine, own_source
from simbridge.ik.look import Chain, Sight, aim, look, sight_for
from simbridge.ik.steps.work import Work

# Parts of a motion: below the first another direction is better, below the second it is as good as none.
_SHORT, _SHORTEST = 2.0**-4, 2.0**-12
# The least share that a step must keep of what it promises to take off the cost (Armijo).
_SHARE = 0.1
# Costs (half a squared error, m and rad): that of a nanometre, and that of a tenth of a millimetre.
_ROUNDING, _FREE = 1e-18, 5e-9
# What a look is about.
_NOTHING, _STEP, _STEEPEST, _DRIFT = range(4)


class Rules(NamedTuple):
    """What the loops keep to, whatever the solver.

    Attributes:
        rows: Of the task.
        translation_clamp, rotation_clamp: The largest error that acts, m and rad; infinite for none.
        step_clamp: The largest motion of a joint in an iteration, rad; infinite for none.
        rotation_weight: Of a radian against a metre, when it is asked whether the error rose.
    """

    rows: int
    translation_clamp: float
    rotation_clamp: float
    step_clamp: float
    rotation_weight: float


class State(NamedTuple):
    """Where the loops are: arrays that are made before the loops."""

    sight: Sight
    jacobian: Array
    pull: Array
    dq: Array
    drift: Array
    before: Array
    at: Array


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


take_step = Choice("take_step")
"""The step that belongs to the settings' class."""


def step_for(settings_type: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declares a function to be the step of solvers whose settings are of this class."""

    def declare(implementation: Callable[..., None]) -> Callable[..., None]:
        take_step.declare(settings_type, lambda: implementation)
        return implementation

    return declare


def state_for(n: int) -> State:
    """Room for the loops, for a chain of n joints."""
    return State(sight_for(n), np.zeros((n, 6)), np.zeros(6), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n))


@compiled
def _copy(source: Array, destination: Array) -> None:
    for i in range(source.shape[0]):
        destination[i] = source[i]


@compiled
def _norm(e: Array, first: int) -> float:
    return math.sqrt(e[first] * e[first] + e[first + 1] * e[first + 1] + e[first + 2] * e[first + 2])


@compiled
def _cost(norm: float, clamp: float) -> float:
    """That of which the clamped error is the gradient: half a square, and straight beyond the clamp."""
    return 0.5 * norm * norm if norm <= clamp else clamp * (norm - 0.5 * clamp)


@compiled
def _limit_step(step: Array, clamp: float) -> float:
    """Shorten a step so that no joint moves further than the clamp; returns what part of it is left."""
    largest = 0.0
    for i in range(step.shape[0]):
        largest = max(largest, abs(step[i]))
    # What is not finite is no step at all.
    scale = 1.0 if largest <= clamp else clamp / largest
    for i in range(step.shape[0]):
        step[i] = scale * step[i] if math.isfinite(largest) else 0.0
    return scale


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
    along, size = 0.0, 0.0
    for j in range(dq.shape[0]):
        dq[j] = 0.0
        for i in range(rows):
            dq[j] += jacobian[j, i] * pull[i] * (1.0 if i < 3 else rotation_weight)
    for i in range(rows):
        way = 0.0
        for j in range(dq.shape[0]):
            way += jacobian[j, i] * dq[j]
        weight = 1.0 if i < 3 else rotation_weight
        along += weight * pull[i] * way
        size += weight * way * way
    length = along / size if size > 1e-290 else 0.0
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
    cost, promise, done = np.inf, 0.0, 0
    while True:
        look(
            chain, q, sight.target, rules.translation_clamp, rules.rotation_clamp,
            sight.error, pull_there, jacobian_there,
        )  # fmt: skip
        distance, angle = _norm(sight.error, 0), _norm(sight.error, 3)
        found = _cost(distance, rules.translation_clamp)
        found += rules.rotation_weight * _cost(angle, rules.rotation_clamp)
        if guarded and found > allowed:
            # Too far: half of it; in the place of a step that is still too long, the steepest; in the end nothing.
            scale *= 0.5
            if trial == _STEP and scale < _SHORT:
                trial, scale = _STEEPEST, 1.0
                steepest(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
                _limit_step(state.dq, rules.step_clamp)
                promise = promised(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
            if trial != _DRIFT:
                allowed = max(cost - _SHARE * scale * promise, _ROUNDING)
            if scale < _SHORTEST:
                allowed, scale = np.inf, 0.0
            for i in range(n):
                q[i] = state.before[i] + scale * (state.drift[i] if trial == _DRIFT else state.dq[i])
            continue
        if trial != _NOTHING and trial != _DRIFT:
            drifts = False
            for i in range(n):
                drifts = drifts or state.drift[i] != 0.0
            if drifts:
                # In what the task leaves free, so it may use up half of what the step gained, but not more.
                allowed, trial, scale = max(0.5 * (cost + found), _FREE), _DRIFT, 1.0
                for i in range(n):
                    state.before[i] = q[i]
                    q[i] += state.drift[i]
                continue
        if done == iterations or (distance <= tolerance[0] and angle <= tolerance[1]):
            return distance, angle, done
        done += 1
        cost, trial, scale = found, _STEP, 1.0
        jacobian, jacobian_there = jacobian_there, jacobian
        pull, pull_there = pull_there, pull
        take_step(settings, jacobian, pull, rules.rows, q, work, state.dq, state.drift)
        kept = _limit_step(state.dq, rules.step_clamp)
        _limit_step(state.drift, rules.step_clamp)
        promise = promised(jacobian, pull, rules.rows, rules.rotation_weight, state.dq)
        if kept < _SHORT:
            # Near a singularity most of a step may be one wild motion, and the clamp leaves nothing of the rest.
            steepest(jacobian, pull, rules.rows, rules.rotation_weight, state.before)
            _limit_step(state.before, rules.step_clamp)
            better = promised(jacobian, pull, rules.rows, rules.rotation_weight, state.before)
            if better > promise / _SHARE:
                trial, promise = _STEEPEST, better
                _copy(state.before, state.dq)
        allowed = max(cost - _SHARE * abs(promise), _ROUNDING)
        for i in range(n):
            state.before[i] = q[i]
            q[i] += state.dq[i]


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
        _copy(q, out[t])


@compiled
def wind_into_limits(chain: Chain, near: Array, q: Array) -> bool:
    """Turn joints that are out of range by whole turns, to where they are in range and nearest to `near`.

    Returns:
        Whether all are in range then.
    """
    inside = True
    for i in range(q.shape[0]):
        if chain.low[i] <= q[i] <= chain.high[i]:
            continue
        found = False
        if not chain.prismatic[i]:
            first = math.ceil((chain.low[i] - q[i]) / (2.0 * math.pi))
            last = math.floor((chain.high[i] - q[i]) / (2.0 * math.pi))
            if first <= last:
                turns = min(max(round((near[i] - q[i]) / (2.0 * math.pi)), first), last)
                q[i] = min(max(q[i] + 2.0 * math.pi * turns, chain.low[i]), chain.high[i])
                found = True
        inside = inside and found
    return inside


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
            _copy(q0 if attempt == 0 else starts[attempt - 1], q)
            found.tries[t] = attempt + 1
            distance, angle, taken = _descend(
                settings, chain, rules, iterations, (tolerance[0], tolerance[1]), poses[t], q, state, work
            )
            found.iterations[t] += taken
            wound = wind_into_limits(chain, q0, q)
            miss = max(distance / tolerance[0], angle / tolerance[1])
            close = miss <= 1.0
            # A posture that attains the target outside of the limits is worth more than one that does not attain it.
            rank = miss if wound or not close else 1.0 + 1e-9
            if rank < best or attempt == 0:
                best = rank
                _copy(q, found.q[t])
                found.residuals[t, 0], found.residuals[t, 1] = distance, angle
                found.inside[t] = wound
            if close and wound:
                break
        if best <= 1.0:
            _copy(found.q[t], q0)


@lru_cache(maxsize=64)
def routine(loop: Callable[..., None], solver: str, looks: str) -> Routine:
    """`track` or `solve`, compiled for a solver and a build of arm.

    The step is that of the settings that it is called with, the look that of the chain; `looks` is the look's text.
    """
    return Routine(loop.__name__, f"{solver} solver for this build of arm", own_source() + looks, lambda: loop)
