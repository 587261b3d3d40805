"""The motion within the null space that follows a step.

It raises the error beyond the linear model; a step of the solver corrects that at once. The drift
is accepted only if most of it survives the correction, and if it does not lead past the point from
which the solver would move back: a stretched arm that would bend towards its posture and be
stretched again stays as it is.
"""

from __future__ import annotations

import math
from typing import Any

from simbridge.ik.kernels.dense import copy, largest_difference
from simbridge.ik.kernels.line_search import adopt_candidate, limit_step, linearize_cost
from simbridge.ik.kernels.records import Descent
from simbridge.ik.kernels.stand_ins import take_step

# The cost (half a squared error, m and rad) of a micrometre, which is what a drift may cost.
TOLERATED_COST = 5e-13
# The smallest fraction of a drift that is tried.
MIN_DRIFT = 2.0**-8
# The fraction of a drift that has to survive its correction: more than the half that a single step
# leaves of the bend of a stretched arm, since there Newton's method only halves what remains.
SURVIVING_FRACTION = 0.75


def stay(settings: Any, descent: Descent, cost: float) -> None:
    """Do nothing, for solvers without a drift: less to compile than `follow_drift`."""


def follow_drift(settings: Any, descent: Descent, cost: float) -> None:
    """Move on by the drift that came with the last step, and linearize there.

    Step, drift and correction together move no joint further than the clamp. Without a clamp the
    whole drift is made and nothing is checked: the plain method.

    Args:
        settings: Settings of the step.
        descent: The descent after the step: its joint positions, and the drift.
        cost: Cost of the residual at these joint positions.
    """
    search = descent.search
    q = descent.iterate.q
    drift = search.drift
    start = search.q_before_drift
    clamp = search.step_clamp
    n = q.shape[0]

    # Keep the drift: each correction below fills in another one.
    square = 0.0
    for i in range(n):
        drift[i] = descent.iterate.drift[i]
        square += drift[i] * drift[i]
    if square == 0.0:
        return

    # Shorten it to what the step has left of the clamp.
    room = clamp - largest_difference(q, search.q_before)
    if room <= 0.0:
        return
    square *= limit_step(drift, room) ** 2

    # Try the whole drift, then halves of it, until one costs nothing, or its cost can be corrected.
    is_guarded = math.isfinite(clamp)
    copy(q, start)
    scale = 1.0
    while scale >= MIN_DRIFT:
        for i in range(n):
            q[i] = start[i] + scale * drift[i]
        if linearize_cost(descent) <= cost or not is_guarded:
            return

        # The correction is the solver's own step from there. The drift of that step says whether
        # the solver would move on in the same direction, or back.
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

    # No drift is accepted: back to where the step has led.
    copy(start, q)
    linearize_cost(descent)
