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
    """Return how much later a slow motion comes out of a filter, s; for one-euro near rest.

    Args:
        kind: The kind of filter.
        cutoff: Cutoff frequency of the filter, Hz.
    """
    # The delay in units of 1 / (2 pi cutoff): the first-order coefficient of the denominator.
    delay = {"none": 0.0, "one-euro": 1.0, "butterworth": math.sqrt(2.0)}[kind]
    return delay / (2.0 * math.pi * cutoff)


class InputFilter:
    """Filters a value that changes in steps; for noisy or slow inputs.

    one-euro: Casiez, Roussel and Vogel, "1 euro filter", CHI 2012: a low-pass whose cutoff rises
    with the speed. butterworth: a low-pass of second order, integrated exactly for a value that is
    held for a period.

    Args:
        kind: The kind of filter; "none" changes nothing.
        cutoff: Cutoff frequency of the filter, Hz; that at rest for one-euro.
        period: Control period, s.
        space: The space of the values.
    """

    def __init__(
        self, kind: Filter, cutoff: float, period: float, space: PoseSpace | JointSpace
    ) -> None:
        self._kind = kind
        self._cutoff = cutoff
        self._period = period
        self._space = space
        # The last filtered value (m,); None before the first.
        self._value: Array | None = None
        # Velocity of the filtered value, as a difference per second (m,).
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
        """Return the value after a period in which the input is held.

        The error e of a filter of second order, to an input that is held, decays as
        e'' + 2 a e' + 2 a^2 e = 0 with a = cutoff (rad/s) / sqrt(2). Its exact solution for
        e(0) and e'(0) is e(t) = exp(-a t) ((cos a t + sin a t) e(0) + sin a t / a e'(0)).

        Args:
            before: The filtered value (m,) before the period.
            value: The input (m,).
        """
        # sqrt(2) pi f is 2 pi f / sqrt(2).
        a = math.sqrt(2.0) * math.pi * self._cutoff
        decay = math.exp(-a * self._period)
        sine = math.sin(a * self._period)
        cosine = math.cos(a * self._period)

        error = self._space.difference(value, before)
        remaining_error = decay * ((cosine + sine) * error + sine / a * self._velocity)
        self._velocity = decay * (-2.0 * a * sine * error + (cosine - sine) * self._velocity)
        return self._space.add(value, remaining_error)

    def _one_euro(self, before: Array, value: Array) -> Array:
        """Return the value after a period.

        It comes nearer to the input by a fraction of the error that rises with speed.

        Args:
            before: The filtered value (m,) before the period.
            value: The input (m,).
        """
        # The fraction of each component of the error.
        error = self._space.difference(before, value)
        speed, turn_speed = self._space.size(self._velocity)
        translation_gain = self._gain(self._cutoff + RISE_PER_SPEED * speed)
        turn_gain = self._gain(self._cutoff + RISE_PER_TURN * turn_speed)
        if isinstance(self._space, PoseSpace):
            gains = np.repeat([translation_gain, turn_gain], 3)
        else:
            gains = np.full(len(error), turn_gain)

        # Keep the velocity of the filtered value, itself filtered: inputs leap, and between them
        # they rest.
        new_velocity = gains * error / self._period
        change = self._gain(SPEED_CUTOFF) * (new_velocity - self._velocity)
        self._velocity = self._velocity + change
        return self._space.add(before, gains * error)

    def _gain(self, cutoff: float) -> float:
        """Return the fraction of an error that a low-pass of a cutoff, Hz, takes in a period."""
        return 1.0 - math.exp(-2.0 * math.pi * cutoff * self._period)
