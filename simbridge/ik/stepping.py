"""What a solver declares of its step, and what is done about a step's drift.

A solver is a tuple of settings and a step. The compiler picks the step by the type of the settings, so a solver's loop
is compiled for that solver alone and calls nothing through a pointer:

    class MySettings(NamedTuple):
        gain: float

    @step_for(MySettings)
    def my_step(settings, jacobian, error, rows, q, work, dq, drift, held):
        ...

It is written in the dialect of `codegen/dialect.py`. Jacobian (n, 6), clamped error (6,), rows, q (n,) and work are
those of `simbridge.ik.steps`. A step fills `dq` (n,), which is meant to lessen the error. It may fill `drift` (n,), a
motion within the null space, which is not, and `held` (n,), a motion that is made come what may: only the clamp
shortens it, and the rest has what the clamp leaves. Of the Jacobian it may take out what its own rows leave no room
for: then the steepest way, which may be taken in its place, keeps to them as well.

What a drift costs beyond the linear model is mended at once, by a step of its own. It counts only if most of it
outlives that, and if it does not lead past where the way back would begin: a stretched arm that would bend for its
posture's sake, and be stretched again, stays as it is. Step, drift and mending together turn no joint further than the
clamp.
Without a clamp nothing is judged: the plain method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.kernels.lazy import Choice, compiled
from simbridge.ik.linearization import Chain, Linearization, look, sight_for
from simbridge.ik.steps.work import Work
from simbridge.robot.pose import Array

# The cost (half a squared error, m and rad) of a micrometre: what a drift may use up for good.
_FREE = 5e-13
# The least part of a drift that is tried, and that its mending must leave: more than the half that a single step leaves
# of the bend of a stretched arm, since there Newton's method only halves what is left.
_MIN_DRIFT, _OUTLIVES = 2.0**-8, 0.75


class Rules(NamedTuple):
    """What the loops keep to, whatever the solver.

    Attributes:
        rows: Of the task.
        translation_clamp, rotation_clamp: The largest error that acts, m and rad; infinite for none.
        step_clamp: The largest motion of a joint in an iteration, rad or m; infinite for none.
        rotation_weight: Of a radian against a metre, when it is asked whether the error rose.
    """

    rows: int
    translation_clamp: float
    rotation_clamp: float
    step_clamp: float
    rotation_weight: float


class State(NamedTuple):
    """Where the loops are: arrays that are made before the loops."""

    sight: Linearization
    jacobian: Array
    pull: Array
    dq: Array
    drift: Array
    held: Array
    before: Array
    at: Array
    home: Array
    mending: Array
    onwards: Array
    unused: Array


take_step = Choice("take_step")
"""The step that belongs to the settings' class."""

drift_on = Choice("drift_on")
"""What is done about the step's drift: nothing, for a class of settings whose step has none."""


def step_for(settings_type: type, drifts: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declares a function to be the step of solvers whose settings are of this class, and whether it may drift."""

    def declare(implementation: Callable[..., None]) -> Callable[..., None]:
        take_step.declare(settings_type, lambda: implementation)
        drift_on.declare(settings_type, lambda: _drift if drifts else _stay)
        return implementation

    return declare


def state_for(n: int) -> State:
    """Room for the loops, for a chain of n joints."""
    return State(sight_for(n), np.zeros((n, 6)), np.zeros(6), *np.zeros((9, n)))


@compiled
def copy(source: Array, destination: Array) -> None:
    for i in range(source.shape[0]):
        destination[i] = source[i]


@compiled
def norm(e: Array, first: int) -> float:
    return math.sqrt(e[first] * e[first] + e[first + 1] * e[first + 1] + e[first + 2] * e[first + 2])


@compiled
def _potential(size: float, clamp: float) -> float:
    """That of which a clamped part of the error is the gradient: half a square, and straight beyond the clamp."""
    return 0.5 * size * size if size <= clamp else clamp * (size - 0.5 * clamp)


@compiled
def cost_of(error: Array, rules: Rules) -> float:
    """What steps are to lessen, of an error (6,)."""
    cost = _potential(norm(error, 0), rules.translation_clamp)
    return cost + rules.rotation_weight * _potential(norm(error, 3), rules.rotation_clamp)


@compiled
def largest(step: Array) -> float:
    """The largest magnitude in a vector."""
    found = 0.0
    for i in range(step.shape[0]):
        found = max(found, abs(step[i]))
    return found


@compiled
def limit_step(step: Array, clamp: float) -> float:
    """Shorten a step so that no joint moves further than the clamp; returns what part of it is left."""
    most, total = largest(step), 0.0
    for i in range(step.shape[0]):
        total += step[i]
    scale = 1.0 if most <= clamp else clamp / most
    for i in range(step.shape[0]):
        # What is not finite is no step at all.
        step[i] = scale * step[i] if math.isfinite(total) else 0.0
    return scale


@compiled
def looked(chain: Chain, rules: Rules, q: Array, sight: Linearization, pull: Array, jacobian: Array) -> float:
    """Look at q (n,): the error goes into `sight`; returns its cost."""
    look(chain, q, sight.target, rules.translation_clamp, rules.rotation_clamp, sight.error, pull, jacobian)
    return cost_of(sight.error, rules)


@compiled
def _farthest(one: Array, other: Array) -> float:
    farthest = 0.0
    for i in range(one.shape[0]):
        farthest = max(farthest, abs(one[i] - other[i]))
    return farthest


def _stay(
    settings: Any,
    chain: Chain,
    rules: Rules,
    q: Array,
    state: State,
    work: Work,
    pull: Array,
    jacobian: Array,
    found: float,
) -> None:
    """For steps without a drift: of `_drift`, which is as long as all the rest, nothing is compiled."""


def _drift(
    settings: Any,
    chain: Chain,
    rules: Rules,
    q: Array,
    state: State,
    work: Work,
    pull: Array,
    jacobian: Array,
    found: float,
) -> None:
    """Go on by a step's drift from where it led, at the cost `found`; what is left is a look at where that ends."""
    n, drift, home = q.shape[0], state.drift, state.home
    size = 0.0
    for i in range(n):
        size += drift[i] * drift[i]
    if size == 0.0:
        return
    guarded = math.isfinite(rules.step_clamp)
    room = rules.step_clamp - _farthest(q, state.before)
    if room <= 0.0:
        return
    size *= limit_step(drift, room) ** 2
    copy(q, home)
    scale = 1.0
    while scale >= _MIN_DRIFT:
        for i in range(n):
            q[i] = home[i] + scale * drift[i]
        if looked(chain, rules, q, state.sight, pull, jacobian) <= found or not guarded:
            return
        take_step(settings, jacobian, pull, rules.rows, q, work, state.mending, state.onwards, state.unused)
        limit_step(state.mending, rules.step_clamp)
        outlived, onwards = 0.0, 0.0
        for i in range(n):
            q[i] += state.mending[i]
            outlived += (q[i] - home[i]) * drift[i]
            onwards += state.onwards[i] * drift[i]
        mended = looked(chain, rules, q, state.sight, pull, jacobian) <= max(found, _FREE)
        counts = onwards >= 0.0 and outlived >= _OUTLIVES * scale * size
        if mended and counts and _farthest(q, state.before) <= rules.step_clamp:
            return
        scale *= 0.5
    copy(home, q)
    looked(chain, rules, q, state.sight, pull, jacobian)
