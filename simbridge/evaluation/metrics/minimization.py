"""The minimum of a function of one number: bracketed first, then found by Brent's method.

The search follows R. P. Brent, Algorithms for Minimization without Derivatives, 1973, chapter 5:
parabolic interpolation where it is reliable, golden section where it is not. It takes about ten
evaluations. scipy.optimize takes 0.4 s to import and has no bracketing within limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
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
        function: The function; it is called only between low and high.
        low: Lower end of the search.
        start: Argument at which the search begins, between the ends.
        high: Upper end of the search.
        tolerance: Tolerance of the argument; also the smallest step.
    """
    at_start = FunctionValue(start, function(start))
    search = _BrentSearch(low, high, best=at_start, second=at_start, third=at_start)

    for _ in range(MAX_EVALUATIONS - 1):
        if search.is_within(tolerance):
            break
        argument = search.next_argument(tolerance)
        search.add(FunctionValue(argument, function(argument)))

    return search.best.argument


@dataclass
class _BrentSearch:
    """A search under way.

    Attributes:
        low: Lower end of the bracket, between whose ends the minimum lies.
        high: Upper end of the bracket.
        best: The lowest evaluation so far.
        second: The second lowest.
        third: The third lowest.
        step: The last step from the best argument.
        last_step: The one before it; a golden section counts as the part that it divides.
    """

    low: float
    high: float
    best: FunctionValue
    second: FunctionValue
    third: FunctionValue
    step: float = 0.0
    last_step: float = 0.0

    def is_within(self, tolerance: float) -> bool:
        """Check that both ends of the bracket are within two tolerances of the best argument."""
        middle = 0.5 * (self.low + self.high)
        distance = abs(self.best.argument - middle) + 0.5 * (self.high - self.low)
        return distance <= 2.0 * tolerance

    def next_argument(self, tolerance: float) -> float:
        """Take the next step, at least as long as the tolerance, and return where it leads."""
        best = self.best.argument
        last_but_one_step = self.last_step
        self.last_step = self.step

        parabolic_step = _parabolic_step(self.best, self.second, self.third)
        # If steps do not halve every second time, the function is not a parabola here.
        halves = abs(parabolic_step) < 0.5 * abs(last_but_one_step)
        if halves and self.low < best + parabolic_step < self.high:
            self.step = self._keep_from_ends(parabolic_step, tolerance)
        else:
            is_in_lower_half = best < 0.5 * (self.low + self.high)
            farther_end = self.high if is_in_lower_half else self.low
            self.last_step = farther_end - best
            self.step = SMALLER_PART * self.last_step

        if abs(self.step) >= tolerance:
            return best + self.step
        return best + math.copysign(tolerance, self.step)

    def _keep_from_ends(self, step: float, tolerance: float) -> float:
        """Return a step, or one towards the middle where it leads too close to an end."""
        best = self.best.argument
        room = min(best + step - self.low, self.high - best - step)
        if room < 2.0 * tolerance:
            return math.copysign(tolerance, 0.5 * (self.low + self.high) - best)
        return step

    def add(self, trial: FunctionValue) -> None:
        """Add an evaluation: the higher one of it and the best becomes an end of the bracket."""
        if trial.value <= self.best.value:
            if trial.argument >= self.best.argument:
                self.low = self.best.argument
            else:
                self.high = self.best.argument
            self.third = self.second
            self.second = self.best
            self.best = trial
            return

        if trial.argument < self.best.argument:
            self.low = trial.argument
        else:
            self.high = trial.argument

        # The search begins with one evaluation, which counts as all three.
        second_is_best = self.second.argument == self.best.argument
        third_repeats = self.third.argument in (self.best.argument, self.second.argument)
        if trial.value <= self.second.value or second_is_best:
            self.third = self.second
            self.second = trial
        elif trial.value <= self.third.value or third_repeats:
            self.third = trial


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
        function: The function; it is called only between -limit and limit.
        start: Argument at which the search begins.
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
