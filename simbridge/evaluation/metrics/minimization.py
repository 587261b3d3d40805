"""The minimum of a function of one variable: a bracket around it, and Brent's method between two bounds.

R. P. Brent, Algorithms for Minimization without Derivatives, 1973, chapter 5: a parabola through the three best
points where it can be trusted, a golden section where it cannot. It needs no derivative, never leaves the bounds,
and spends about ten evaluations on a smooth minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable

GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
"""The smaller part of a golden section."""

MAX_EVALUATIONS = 50
"""Where the function is too rough for the tolerance, the search ends after so many calls."""


def minimum(function: Callable[[float], float], low: float, start: float, high: float, *, tolerance: float) -> float:
    """The argument, between low and high, of a local minimum that is no higher than function(start).

    Args:
        function: What to minimise; it is only called between low and high.
        low: Lower bound.
        start: Where to begin, between the bounds.
        high: Upper bound.
        tolerance: How near, in the argument, the answer has to be. It is the smallest step taken.
    """
    best = second = third = start
    at_best = at_second = at_third = function(start)
    step = last = 0.0
    for _ in range(MAX_EVALUATIONS - 1):
        middle = 0.5 * (low + high)
        # The answer lies between low and high: both are within two tolerances of the best point.
        if abs(best - middle) + 0.5 * (high - low) <= 2.0 * tolerance:
            break
        # The parabola through the three points has its extremum at best + p / q.
        r = (best - second) * (at_best - at_third)
        q = (best - third) * (at_best - at_second)
        p = (best - third) * q - (best - second) * r
        q = 2.0 * (r - q)
        last_but_one, last = last, step
        # Steps that no longer halve every second time show that the function is no parabola here.
        if q != 0.0 and abs(p / q) < 0.5 * abs(last_but_one) and low < best + p / q < high:
            step = p / q
            if min(best + step - low, high - best - step) < 2.0 * tolerance:
                step = math.copysign(tolerance, middle - best)
        else:
            last = (high if best < middle else low) - best
            step = GOLDEN * last
        trial = best + (step if abs(step) >= tolerance else math.copysign(tolerance, step))
        at_trial = function(trial)
        if at_trial <= at_best:
            low, high = (best, high) if trial >= best else (low, best)
            third, at_third, second, at_second, best, at_best = second, at_second, best, at_best, trial, at_trial
            continue
        low, high = (trial, high) if trial < best else (low, trial)
        if at_trial <= at_second or second == best:
            third, at_third, second, at_second = second, at_second, trial, at_trial
        elif at_trial <= at_third or third in (best, second):
            third, at_third = trial, at_trial
    return best


def downhill(
    cost: Callable[[float], float], start: float, step: float, limit: float
) -> tuple[float, float, float] | None:
    """Three arguments between which there is a minimum: the middle one is no worse than its neighbours.

    Args:
        cost: What to minimise; it is only called between -limit and limit.
        start: Where to begin.
        step: The first step, either way; doubled as long as it goes down.
        limit: How far from zero to look.

    Returns:
        The arguments, increasing; None if the cost still falls at the limit.
    """
    left, right = max(start - step, -limit), min(start + step, limit)
    at_left, at_start, at_right = cost(left), cost(start), cost(right)
    if at_start <= min(at_left, at_right):
        return (left, start, right) if abs(start) < limit else None
    forward = 1.0 if at_right < at_left else -1.0
    previous, here, at_here = (start, right, at_right) if at_right < at_left else (start, left, at_left)
    while abs(here) < limit:
        step *= 2.0
        ahead = min(max(here + forward * step, -limit), limit)
        at_ahead = cost(ahead)
        if at_ahead >= at_here:
            return (previous, here, ahead) if forward > 0.0 else (ahead, here, previous)
        previous, here, at_here = here, ahead, at_ahead
    return None
