"""Filters of poses and joint positions that change in steps, one control period at a time."""

from __future__ import annotations

import math

import numpy as np

from simbridge.robot.pose import Array
from simbridge.sessions.options import Filter
from simbridge.sessions.spaces import JointSpace, PoseSpace

# one-euro: rise of the cutoff with the speed, Hz per m/s and Hz per rad/s.
RISE_PER_SPEED = 20.0
RISE_PER_TURN = 5.0
# one-euro: cutoff of the filter of that speed, Hz.
SPEED_CUTOFF = 5.0


def filter_delay(kind: Filter, cutoff: float) -> float:
    """Return how much later a slow motion comes out of a filter, s; of one-euro at rest.

    Args:
        kind: Of filter.
        cutoff: Hz.
    """
    # In units of 1/(2 pi cutoff).
    delay = {"none": 0.0, "one-euro": 1.0, "butterworth": math.sqrt(2.0)}[kind]
    return delay / (2.0 * math.pi * cutoff)


class InputFilter:
    """Filters a value that changes in steps; for noisy or slow inputs.

    one-euro: Casiez, Roussel and Vogel, "1 euro filter", CHI 2012: a low-pass whose cutoff rises
    with the speed. butterworth: a low-pass of second order, integrated exactly for a value that is
    held for a period.

    Args:
        kind: Of filter; "none" changes nothing.
        cutoff: Hz; of one-euro at rest.
        period: Control period, s.
        space: Of the values.
    """

    def __init__(
        self, kind: Filter, cutoff: float, period: float, space: PoseSpace | JointSpace
    ) -> None:
        self._kind = kind
        self._cutoff = cutoff
        self._period = period
        self._space = space
        # The last filtered value, and its velocity: a difference a second.
        self._value: Array | None = None
        self._velocity = np.empty(0)

    def next(self, value: Array) -> Array:
        """Return the filtered value (m,) of this period."""
        if self._kind == "none":
            return value

        if self._value is None:
            self._value = value
            self._velocity = np.zeros_like(self._space.difference(value, value))
        if self._kind == "one-euro":
            self._value = self._one_euro(self._value, value)
        else:
            self._value = self._butterworth(self._value, value)
        return self._value

    def _butterworth(self, before: Array, value: Array) -> Array:
        """Return the value after a period in which the input is held."""
        a = math.sqrt(2.0) * math.pi * self._cutoff
        fade = math.exp(-a * self._period)
        s = math.sin(a * self._period)
        c = math.cos(a * self._period)

        error = self._space.difference(value, before)
        after = fade * ((c + s) * error + s / a * self._velocity)
        self._velocity = fade * (-2.0 * a * s * error + (c - s) * self._velocity)
        return self._space.add(value, after)

    def _one_euro(self, before: Array, value: Array) -> Array:
        """Return the value after a period.

        It is nearer to the input by a fraction that rises with speed.
        """
        error = self._space.difference(before, value)
        speed, turn_speed = self._space.size(self._velocity)
        translation_gain = self._gain(self._cutoff + RISE_PER_SPEED * speed)
        turn_gain = self._gain(self._cutoff + RISE_PER_TURN * turn_speed)
        if isinstance(self._space, PoseSpace):
            gains = np.repeat([translation_gain, turn_gain], 3)
        else:
            gains = np.full(len(error), turn_gain)

        # The speed is that of the filtered value: inputs leap, and between them they rest.
        self._velocity = self._velocity + self._gain(SPEED_CUTOFF) * (
            gains * error / self._period - self._velocity
        )
        return self._space.add(before, gains * error)

    def _gain(self, cutoff: float) -> float:
        """Return the fraction of an error that a low-pass of a cutoff, Hz, takes in a period."""
        return 1.0 - math.exp(-2.0 * math.pi * cutoff * self._period)
