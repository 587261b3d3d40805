"""Filters for noisy or slow inputs; each knows its own delay.

one-euro: Casiez, Roussel and Vogel, "1 euro filter", CHI 2012: a low-pass whose cutoff rises with the speed.
butterworth: a low-pass of second order, integrated exactly for a value that is held for a period.
"""

from __future__ import annotations

import math

import numpy as np

from simbridge.planning.live.options import Filter
from simbridge.planning.live.spaces import Space
from simbridge.robot.pose import Array

# one-euro: rise of the cutoff with the speed, Hz per m/s and Hz per rad/s, and cutoff of that speed's own filter, Hz.
_RISE = (20.0, 5.0)
_SPEED_CUTOFF = 5.0


def filter_delay(kind: Filter, cutoff: float) -> float:
    """How much later a slow motion comes out of a filter, s; of one-euro at rest.

    Args:
        kind: Of the filter.
        cutoff: Hz.
    """
    return {"none": 0.0, "one-euro": 1.0, "butterworth": math.sqrt(2.0)}[kind] / (2.0 * math.pi * cutoff)


class InputFilter:
    """Filters a value that changes in steps, one control period at a time.

    Args:
        kind: Of the filter.
        cutoff: Hz.
        period: Control period, s.
        space: Of the values.
    """

    def __init__(self, kind: Filter, cutoff: float, period: float, space: Space) -> None:
        self._kind, self._cutoff, self._period, self._space = kind, cutoff, period, space
        self._value: Array | None = None
        self._velocity = np.empty(0)

    def reset(self) -> None:
        """Begin at the next value, at rest."""
        self._value = None

    def next(self, value: Array) -> Array:
        """The filtered value (m,) of this period."""
        if self._kind == "none":
            return value
        if self._value is None:
            self._value = value
            self._velocity = np.zeros_like(self._space.difference(value, value))
        step = self._one_euro if self._kind == "one-euro" else self._butterworth
        self._value = step(self._value, value)
        return self._value

    def _butterworth(self, before: Array, value: Array) -> Array:
        a = math.sqrt(2.0) * math.pi * self._cutoff
        fade, s, c = math.exp(-a * self._period), math.sin(a * self._period), math.cos(a * self._period)
        error = self._space.difference(value, before)
        after = fade * ((c + s) * error + s / a * self._velocity)
        self._velocity = fade * (-2.0 * a * s * error + (c - s) * self._velocity)
        return self._space.moved(value, after)

    def _one_euro(self, before: Array, value: Array) -> Array:
        error = self._space.difference(before, value)
        distance, angle = self._space.size(self._velocity)
        shares = [self._share(self._cutoff + _RISE[0] * distance), self._share(self._cutoff + _RISE[1] * angle)]
        parts = np.repeat(shares, 3) if len(error) == 6 and len(value) == 7 else np.full(len(error), shares[1])
        # The speed is that of the filtered value: inputs leap, and between them they rest.
        self._velocity = self._velocity + self._share(_SPEED_CUTOFF) * (parts * error / self._period - self._velocity)
        return self._space.moved(before, parts * error)

    def _share(self, cutoff: float) -> float:
        return 1.0 - math.exp(-2.0 * math.pi * cutoff * self._period)
