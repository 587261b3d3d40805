"""Differentiates noisy samples."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array

# Interval over which values are differentiated, s.
DIFFERENCE_S = 0.02


def differentiate(times: Array, values: Array) -> Array:
    """Return the rates (T, n) of values (T, n), over an interval that is longer than the noise.

    Args:
        times: Instants of the values (T,), s, strictly increasing.
        values: The values (T, n).
    """
    half = 0.5 * DIFFERENCE_S
    before = np.maximum(times - half, times[0])
    after = np.minimum(times + half, times[-1])

    rates = np.empty_like(values)
    for joint, column in enumerate(values.T):
        change = np.interp(after, times, column) - np.interp(before, times, column)
        rates[:, joint] = change / (after - before)
    return rates
