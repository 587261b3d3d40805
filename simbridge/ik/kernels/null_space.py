"""The drift: a motion within the null space of the task, which follows a step.

Beyond the linear model a drift raises the error, which a step of the solver corrects at once. The
drift is accepted only if most of it survives the correction, and if the solver would not drift back
from there. So a stretched arm stays as it is if it would bend towards a posture and be stretched
again in turns.
"""

from __future__ import annotations

import math
from typing import Any

from simbridge.ik.kernels.dense import copy, largest_difference
from simbridge.ik.kernels.line_search import adopt_candidate, limit_step, linearize_cost
from simbridge.ik.kernels.records import Descent
from simbridge.ik.kernels.stand_ins import take_step

# Cost (half a squared error, m and rad) of an error of a micrometre, which a drift may leave.
TOLERATED_COST = 5e-13
# Smallest fraction of a drift that is tried.
MIN_DRIFT = 2.0**-8
# Fraction of a drift that must survive the correction. It is more than a half, which is what the
# correction leaves of the bend of a stretched arm: there Newton's method only halves the error.
SURVIVING_FRACTION = 0.75


def stay(settings: Any, descent: Descent, cost: float) -> None:
    """Do nothing. Solvers without a drift use it, since it compiles faster than `follow_drift`."""


def follow_drift(settings: Any, descent: Descent, cost: float) -> None:
    """Move by the drift of the last step, and linearize there.

    Step, drift and correction together move no joint further than the step clamp. Without a clamp
    the whole drift is made and nothing is checked: the plain method.

    Args:
        settings: Settings of the step.
        descent: The descent after the step, with its joint positions and its drift.
        cost: Cost of the residual at these joint positions.
    """
    search = descent.search
    q = descent.iterate.q
    drift = search.drift
    start = search.q_before_drift
    clamp = search.step_clamp
    n = q.shape[0]

    # Keep the drift, since each correction below fills in another one.
    square = 0.0
    for i in range(n):
        drift[i] = descent.iterate.drift[i]
        square += drift[i] * drift[i]
    if square == 0.0:
        return

    # Shorten the drift to what the step has left of the clamp.
    room = clamp - largest_difference(q, search.q_before)
    if room <= 0.0:
        return
    square *= limit_step(drift, room) ** 2

    # Try the whole drift, then halve it until it raises no cost, or until a correction removes it.
    is_guarded = math.isfinite(clamp)
    copy(q, start)
    scale = 1.0
    while scale >= MIN_DRIFT:
        for i in range(n):
            q[i] = start[i] + scale * drift[i]
        if linearize_cost(descent) <= cost or not is_guarded:
            return

        # Correct the error by a step of the solver. The drift of that step shows whether the solver
        # would go on in the same direction (`onward` positive) or go back.
        adopt_candidate(descent)
        take_step(settings, descent)
        limit_step(descent.iterate.dq, clamp)
        surviving = 0.0
        onward = 0.0
        for i in range(n):
            q[i] += descent.iterate.dq[i]
            surviving += (q[i] - start[i]) * drift[i]
            onward += descent.iterate.drift[i] * drift[i]

        is_corrected = linearize_cost(descent) <= max(cost, TOLERATED_COST)
        is_useful = onward >= 0.0 and surviving >= SURVIVING_FRACTION * scale * square
        if is_corrected and is_useful and largest_difference(q, search.q_before) <= clamp:
            return
        scale *= 0.5

    # No drift is accepted: return to the joint positions after the step.
    copy(start, q)
    linearize_cost(descent)
