"""Finding the cycles of one motion in one long outside recording, whatever its clock and frame.

As for an alignment (`alignment.py`) chords are compared, the distances that the tool goes within some tenths of a
second: no frame changes them. Here only chords within the motion count, for what comes before and after it differs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.alignment import CHORDS, MAX_GRID
from simbridge.evaluation.metrics.samples import rows, stamps
from simbridge.robot.pose import Array
from simbridge.text import counted

MAX_MISFIT = 0.1
"""Part of the motion's own squared chords that their squared differences may be."""

BEYOND = 0.1
"""Seconds by which a recording may begin after the first cycle, or end before the last one."""


def occurrences(
    times: ArrayLike, positions: ArrayLike, recorded_times: ArrayLike, recorded: ArrayLike, count: int
) -> Array:
    """When a motion takes place in a recording: offsets (count,) of the recording's clock in s, in order, rough.

    Args:
        times, positions: The motion: stamps (T,) in s, positions (T, 3) in m.
        recorded_times, recorded: The recording: stamps (U,) in s, positions (U, 3) in m, in any frame.
        count: How many times it takes place; no two overlap. If it does more often, the best ones count.

    Raises:
        UnusableSamples: The arrays do not belong together, or the motion is found less often.
    """
    t, u = stamps("times of the run", times), stamps("times of the recording", recorded_times)
    p, x = rows("attained positions", positions, 3, len(t)), rows("recorded positions", recorded, 3, len(u))
    longest = max(t[-1] - t[0], u[-1] - u[0])
    period = max(float(np.median(np.diff(t))), float(np.median(np.diff(u))), 0.004, longest / MAX_GRID)
    one = _evenly(t, p, np.arange(t[0], t[-1], period))
    grid = np.arange(u[0] - BEYOND, u[-1] + BEYOND, period)
    misfit = _misfit(one, _evenly(u, x, grid), period)
    found: list[int] = []
    while len(found) < count:
        best = int(np.argmin(misfit)) if len(misfit) else 0
        if len(misfit) == 0 or misfit[best] > MAX_MISFIT:
            raise UnusableSamples(
                "recording",
                f"it holds the runs' motion {counted(len(found), 'time')}, and {counted(count, 'run')} completed. "
                "Record all of them, or give one recording for each.",
            )
        found.append(best)
        # Cycles do not overlap, but for a rounding.
        misfit = np.where(np.abs(np.arange(len(misfit)) - best) < len(one) - 1, np.inf, misfit)
    return np.sort(grid[found] - t[0])


def _evenly(t: Array, x: Array, grid: Array) -> Array:
    return np.column_stack([np.interp(grid, t, column) for column in x.T])


def _misfit(one: Array, other: Array, period: float) -> Array:
    """Of a motion (n, 3) laid over each place (K,) of a longer one (m, 3): squared differences of chords, as a part."""
    places = max(len(other) - len(one) + 1, 0)
    difference, energy = np.zeros(places), 0.0
    for seconds in CHORDS:
        span = max(1, round(seconds / period))
        if span >= len(one) or places == 0:
            continue
        a, b = (np.linalg.norm(x[span:] - x[:-span], axis=1) for x in (one, other))
        squares = np.concatenate([[0.0], np.cumsum(b**2)])
        own = float(a @ a)
        energy += own
        difference += own + squares[len(a) :][:places] - squares[:places] - 2.0 * _sliding(a, b)[:places]
    return difference / energy if energy > 0.0 else np.full(places, np.inf)


def _sliding(a: Array, b: Array) -> Array:
    """Sums of products (len(b) - len(a) + 1,) of a shorter sequence with each stretch of a longer one."""
    size = 1 << (len(a) + len(b)).bit_length()
    products = np.fft.irfft(np.conj(np.fft.rfft(a, size)) * np.fft.rfft(b, size), size)
    return np.asarray(products[: len(b) - len(a) + 1])
