"""Minimum of a function of one variable: a bracket within limits, and Brent's method inside the bracket.

R. P. Brent, Algorithms for Minimization without Derivatives, 1973, chapter 5: parabolic interpolation where it is
reliable, golden section where it is not. It needs no derivatives, never leaves the bounds, and takes about ten
evaluations for a smooth minimum. scipy.optimize takes 0.4 s to import and has no bracketing within limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
"""The smaller part of the golden section."""

MAX_EVALUATIONS = 50
"""The search ends after this many calls even if the function is too rough for the tolerance."""


def minimize_scalar(
    function: Callable[[float], float], low: float, start: float, high: float, *, tolerance: float
) -> float:
    """The argument of a local minimum between low and high that is no higher than function(start).

    Args:
        function: The function to minimise; it is called only between low and high.
        low: Lower bound.
        start: Initial value, between the bounds.
        high: Upper bound.
        tolerance: Tolerance of the argument, which is also the smallest step.
    """
    best = second = third = start
    at_best = at_second = at_third = function(start)
    step = last = 0.0
    for _ in range(MAX_EVALUATIONS - 1):
        middle = 0.5 * (low + high)
        # The minimum lies between low and high, and both are within two tolerances of the best point.
        if abs(best - middle) + 0.5 * (high - low) <= 2.0 * tolerance:
            break
        # The parabola through the three points has its extremum at best + p / q.
        r = (best - second) * (at_best - at_third)
        q = (best - third) * (at_best - at_second)
        p = (best - third) * q - (best - second) * r
        q = 2.0 * (r - q)
        last_but_one, last = last, step
        # If steps do not halve every second time, the function is no parabola here.
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


def bracket_minimum(
    function: Callable[[float], float], start: float, step: float, limit: float
) -> tuple[float, float, float] | None:
    """Three arguments that enclose a minimum: the function of the middle one is no higher than those of the others.

    Args:
        function: The function to minimise; it is called only between -limit and limit.
        start: Initial value.
        step: The first step in either direction; it doubles as long as the function falls.
        limit: Largest magnitude of an argument.

    Returns:
        The arguments in increasing order; None if the function still falls at the limit.
    """
    left, right = max(start - step, -limit), min(start + step, limit)
    at_left, at_start, at_right = function(left), function(start), function(right)
    if at_start <= min(at_left, at_right):
        return (left, start, right) if abs(start) < limit else None
    forward = 1.0 if at_right < at_left else -1.0
    previous, here, at_here = (start, right, at_right) if at_right < at_left else (start, left, at_left)
    while abs(here) < limit:
        step *= 2.0
        ahead = min(max(here + forward * step, -limit), limit)
        at_ahead = function(ahead)
        if at_ahead >= at_here:
            return (previous, here, ahead) if forward > 0.0 else (ahead, here, previous)
        previous, here, at_here = here, ahead, at_ahead
    return None
