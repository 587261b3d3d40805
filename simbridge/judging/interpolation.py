"""Interpolates joint positions between the rows of a log."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array


def interpolate_rows(times: Array, values: Array, instants: Array) -> Array:
    """Return values (T, n) at instants: linear between two rows, beyond the ends as there.

    It is `numpy.interp` for several columns at once, of which the rows are looked up once.

    Args:
        times: Instants of the rows (K,), s, not decreasing; at least two.
        values: The values of the rows (K, n).
        instants: The instants (T,), s.
    """
    before = np.clip(np.searchsorted(times, instants, side="right") - 1, 0, len(times) - 2)
    spans = times[before + 1] - times[before]
    # Of two rows at one instant, the second one counts.
    fractions = np.divide(
        instants - times[before], spans, out=np.ones_like(spans), where=spans > 0.0
    )
    fractions = np.clip(fractions, 0.0, 1.0)[:, np.newaxis]
    return np.asarray((1.0 - fractions) * values[before] + fractions * values[before + 1])
