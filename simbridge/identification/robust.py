"""Robust statistics of recordings: weights, deviations, and how finely numbers were written."""

from __future__ import annotations

from typing import Any

import numpy as np

from simbridge.robot.pose import Array, Counts

# Rows that the resolution of a column is taken from, at most.
MAX_RESOLUTION_ROWS = 200
# Numbers of decimals that are looked for.
DECIMALS = range(2, 12)
# Relative resolution of numbers in single and in double precision.
SINGLE_RESOLUTION = 1e-7
DOUBLE_RESOLUTION = 1e-13


def spread_rows(count: int, limit: int) -> Counts:
    """Return at most `limit` of `count` rows, spread over all."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(np.int64))


def resolution(values: Array) -> float:
    """Return how finely numbers were written: the last decimal, single precision, or double."""
    sample = values[spread_rows(len(values), MAX_RESOLUTION_ROWS)]
    for decimals in DECIMALS:
        rounding = np.abs(sample - np.round(sample, decimals)).max()
        if rounding < 1e-3 * 10.0**-decimals:
            return float(10.0**-decimals)

    largest = max(float(np.abs(sample).max()), 1e-3)
    is_single = np.array_equal(sample, sample.astype(np.float32))
    return largest * (SINGLE_RESOLUTION if is_single else DOUBLE_RESOLUTION)


def cauchy_weights(distance: Array, scale: Any) -> Array:
    """Return weights of residuals: those far beyond the scale hardly count."""
    return np.asarray(1.0 / (1.0 + (distance / scale) ** 2))


def jackknife_variance(results: Any) -> Any:
    """Return the variance of a result, estimated by leaving out blocks of rows.

    What is left over in neighbouring rows is not independent: friction and load last, and digits
    are cut off alike.

    Args:
        results: The result (B, ...) where each of B blocks is left out.
    """
    count = len(results)
    differences = np.array(results) - np.mean(results, axis=0)
    return (count - 1) / count * np.sum(differences**2, axis=0)


def solve_pair(xx: Any, xy: Any, yy: Any, xr: Any, yr: Any) -> tuple[float, float]:
    """Return X and Y of X x + Y y = r by least squares, from the sums of the products named.

    Args:
        xx: Sum of x x; and so on.
        xy: Sum of x y.
        yy: Sum of y y.
        xr: Sum of x r.
        yr: Sum of y r.
    """
    determinant = xx * yy - xy * xy
    return ((yy * xr - xy * yr) / determinant, (xx * yr - xy * xr) / determinant)
