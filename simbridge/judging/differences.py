"""Differentiates noisy samples of the joints."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array

# Interval around an instant over which values are differentiated, s.
DIFFERENCE_S = 0.02


def differentiate(times: Array, values: Array) -> Array:
    """Return the time derivative (T, n) of values (T, n), in their unit per s.

    It is the mean rate over an interval of several rows around each instant, which averages noise.

    Args:
        times: Instants of the values (T,), s, strictly increasing.
        values: The values (T, n).
    """
    half_interval = 0.5 * DIFFERENCE_S
    before = np.maximum(times - half_interval, times[0])
    after = np.minimum(times + half_interval, times[-1])

    rates = np.empty_like(values)
    for joint, column in enumerate(values.T):
        change = np.interp(after, times, column) - np.interp(before, times, column)
        rates[:, joint] = change / (after - before)
    return rates
