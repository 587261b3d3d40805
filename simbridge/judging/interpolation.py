"""Interpolates joint positions between the rows of a log."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array


def interpolate_rows(times: Array, values: Array, instants: Array) -> Array:
    """Return values (T, n) at instants: linear between two rows, constant before and after all.

    It does what `numpy.interp` does for one column, but looks up the rows once for all columns.

    Args:
        times: Instants of the rows (K,), s, not decreasing; at least two.
        values: Values of the rows (K, n).
        instants: Instants at which the values are wanted (T,), s.
    """
    before = np.clip(np.searchsorted(times, instants, side="right") - 1, 0, len(times) - 2)
    spans = times[before + 1] - times[before]
    # Between two rows at the same instant the fraction is 1: the second row counts.
    fractions = np.divide(
        instants - times[before], spans, out=np.ones_like(spans), where=spans > 0.0
    )
    fractions = np.clip(fractions, 0.0, 1.0)[:, np.newaxis]
    return np.asarray((1.0 - fractions) * values[before] + fractions * values[before + 1])
