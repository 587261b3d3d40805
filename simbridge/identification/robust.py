"""Robust statistics of recordings: weights, deviations, and the resolution of written numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from simbridge.robot.pose import Array, Counts

# Largest number of rows by which the resolution of a column is judged.
MAX_RESOLUTION_ROWS = 200
# Numbers of decimals that a column may be rounded to.
DECIMALS = range(2, 12)
# Largest difference from a rounded number, as a fraction of its last decimal.
DECIMAL_TOLERANCE = 1e-3
# Relative resolution of numbers in single precision.
SINGLE_RESOLUTION = 1e-7
# Relative resolution of numbers in double precision.
DOUBLE_RESOLUTION = 1e-13
# Smallest magnitude to which a relative resolution applies.
LEAST_MAGNITUDE = 1e-3


def spread_rows(count: int, limit: int) -> Counts:
    """Return the indices of at most `limit` of `count` rows, spread evenly over all of them."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(np.int64))


def resolution(values: Array) -> float:
    """Return the resolution with which numbers were written, in their unit.

    It is that of their last decimal if they have at most eleven, else of single or double
    precision.
    """
    sample = values[spread_rows(len(values), MAX_RESOLUTION_ROWS)]
    for decimals in DECIMALS:
        rounding = np.abs(sample - np.round(sample, decimals)).max()
        if rounding < DECIMAL_TOLERANCE * 10.0**-decimals:
            return float(10.0**-decimals)

    magnitude = max(float(np.abs(sample).max()), LEAST_MAGNITUDE)
    is_single = np.array_equal(sample, sample.astype(np.float32))
    return magnitude * (SINGLE_RESOLUTION if is_single else DOUBLE_RESOLUTION)


def cauchy_weights(distance: Array, scale: Any) -> Array:
    """Return Cauchy weights 1 / (1 + (distance / scale)^2): outliers beyond the scale hardly count.

    Args:
        distance: Magnitudes of residuals.
        scale: The residual that gets half the weight of zero, in the same unit.
    """
    return np.asarray(1.0 / (1.0 + (distance / scale) ** 2))


def jackknife_variance(results: Any) -> Any:
    """Return the jackknife variance of a result, from leaving out one block of rows after another.

    Blocks are left out rather than single rows, since residuals of neighbouring rows are not
    independent: friction and load last for a while, and rounding errors are alike.

    Args:
        results: Results (B, ...), each with another one of B blocks left out.
    """
    count = len(results)
    differences = np.array(results) - np.mean(results, axis=0)
    return (count - 1) / count * np.sum(differences**2, axis=0)


def solve_pair(xx: Any, xy: Any, yy: Any, xr: Any, yr: Any) -> tuple[float, float]:
    """Return the least-squares solution X and Y of X x + Y y = r, from sums over all rows.

    Args:
        xx: Sum of x x.
        xy: Sum of x y.
        yy: Sum of y y.
        xr: Sum of x r.
        yr: Sum of y r.
    """
    determinant = xx * yy - xy * xy
    return ((yy * xr - xy * yr) / determinant, (xx * yr - xy * xr) / determinant)
