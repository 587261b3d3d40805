"""The minimum of a function of one number: bracketed first, then found by Brent's method.

The search follows R. P. Brent, Algorithms for Minimization without Derivatives, 1973, chapter 5:
parabolic interpolation where it is reliable, golden section where it is not. It takes about ten
evaluations. scipy.optimize takes 0.4 s to import and has no bracketing within limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# The smaller part of the golden section.
SMALLER_PART = 0.5 * (3.0 - math.sqrt(5.0))
# The search ends after this many calls even if the function is too rough for the tolerance.
MAX_EVALUATIONS = 50


class FunctionValue(NamedTuple):
    """An argument of a function, and the function's value there."""

    argument: float
    value: float


def minimize_scalar(
    function: Callable[[float], float], low: float, start: float, high: float, *, tolerance: float
) -> float:
    """Return the argument of a local minimum that is no higher than function(start).

    Args:
        function: Is called only between low and high.
        low: Lower end of the search.
        start: Where the search begins, between the ends.
        high: Upper end of the search.
        tolerance: Of the argument; also the smallest step.
    """
    # The three lowest evaluations so far.
    best = second = third = FunctionValue(start, function(start))
    # This step, and the one before it; a golden section counts as the part that it divides.
    step = 0.0
    last_step = 0.0

    for _ in range(MAX_EVALUATIONS - 1):
        middle = 0.5 * (low + high)
        # The minimum lies between low and high, and both are within two tolerances of the best
        # point.
        if abs(best.argument - middle) + 0.5 * (high - low) <= 2.0 * tolerance:
            break

        last_but_one_step = last_step
        last_step = step
        parabolic_step = _parabolic_step(best, second, third)
        # If steps do not halve every second time, the function is no parabola here.
        halves = abs(parabolic_step) < 0.5 * abs(last_but_one_step)
        if halves and low < best.argument + parabolic_step < high:
            step = parabolic_step
            room = min(best.argument + step - low, high - best.argument - step)
            if room < 2.0 * tolerance:
                step = math.copysign(tolerance, middle - best.argument)
        else:
            farther_end = high if best.argument < middle else low
            last_step = farther_end - best.argument
            step = SMALLER_PART * last_step

        long_step = step if abs(step) >= tolerance else math.copysign(tolerance, step)
        argument = best.argument + long_step
        trial = FunctionValue(argument, function(argument))

        # The higher of trial and best becomes an end of the bracket.
        if trial.value <= best.value:
            if trial.argument >= best.argument:
                low = best.argument
            else:
                high = best.argument
            third = second
            second = best
            best = trial
            continue

        if trial.argument < best.argument:
            low = trial.argument
        else:
            high = trial.argument
        if trial.value <= second.value or second.argument == best.argument:
            third = second
            second = trial
        elif trial.value <= third.value or third.argument in (best.argument, second.argument):
            third = trial

    return best.argument


def _parabolic_step(best: FunctionValue, second: FunctionValue, third: FunctionValue) -> float:
    """Return how far the extremum of the parabola through three points is from the best of them.

    It is infinite where the points are on a line or coincide.
    """
    r = (best.argument - second.argument) * (best.value - third.value)
    q = (best.argument - third.argument) * (best.value - second.value)
    p = (best.argument - third.argument) * q - (best.argument - second.argument) * r
    q = 2.0 * (r - q)
    return p / q if q != 0.0 else math.inf


def bracket_minimum(
    function: Callable[[float], float], start: float, step: float, limit: float
) -> tuple[float, float, float] | None:
    """Return three increasing arguments that enclose a minimum.

    In the middle the function is no higher than at the others.

    Args:
        function: Is called only between -limit and limit.
        start: Where the search begins.
        step: First step in either direction; it doubles as long as the function falls.
        limit: How far the search goes to both sides of 0.

    Returns:
        None if the function still falls at the limit.
    """
    low = max(start - step, -limit)
    high = min(start + step, limit)
    value_low = function(low)
    value_start = function(start)
    value_high = function(high)
    if value_start <= min(value_low, value_high):
        return (low, start, high) if abs(start) < limit else None

    # Walk to the side on which the function falls, until it rises.
    is_forward = value_high < value_low
    direction = 1.0 if is_forward else -1.0
    previous = start
    current = high if is_forward else low
    value = value_high if is_forward else value_low
    while abs(current) < limit:
        step *= 2.0
        following = min(max(current + direction * step, -limit), limit)
        value_following = function(following)
        if value_following >= value:
            enclosed = (previous, current, following)
            return enclosed if is_forward else (following, current, previous)
        previous = current
        current = following
        value = value_following
    return None
