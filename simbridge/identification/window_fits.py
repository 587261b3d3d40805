"""Fits the servo law to short windows of rows, each alone: compiled, since there are many.

In a window of a constant setpoint s every row obeys X x + Y y = r, where x, y and r are the
acceleration, velocity and negative position of the joints minus their means in the window, which
eliminates s. See `held.py` for X and Y.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.identification.target_motion import TargetMotion
from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array, Counts, Flags

# Percentile of the residuals that scales the weights: a low one singles out the rows that obey the
# law exactly.
EXACT_PERCENTILE = 30.0
# Smallest residual that is used as a divisor, rad.
LEAST_RESIDUAL = 1e-15
# Smallest determinant of the normal equations, relative to the product of their diagonal.
MIN_DETERMINANT = 1e-9


class WindowFits(NamedTuple):
    """The tuning with which the setpoint varies least, for each of W windows.

    Attributes:
        pair: X, s^2, and Y, s (W, 2).
        is_solvable: Whether the window determines X and Y (W,).
        residual: Median residual of each window (W,), rad.
        movement: RMS movement of the arm in each window (W,), rad, with the weights of its rows.
    """

    pair: Array
    is_solvable: Flags
    residual: Array
    movement: Array


class NormalSums(NamedTuple):
    """Weighted sums over the rows of a window, of which the normal equations consist.

    Attributes:
        xx: Sum of x x.
        xy: Sum of x y.
        yy: Sum of y y.
        xr: Sum of x r.
        yr: Sum of y r.
    """

    xx: float
    xy: float
    yy: float
    xr: float
    yr: float


def fit_windows(motion: TargetMotion, first_rows: Counts, size: int, *, rounds: int) -> WindowFits:
    """Fit X = 1 / gain and Y = lookahead to each window alone, with Cauchy weights.

    Args:
        motion: The recorded joint targets.
        first_rows: Index of each window's first row (W,).
        size: Number of rows of a window.
        rounds: Rounds of reweighting.
    """
    count = len(first_rows)
    fits = WindowFits(
        pair=np.zeros((count, 2)),
        is_solvable=np.zeros(count, dtype=bool),
        residual=np.zeros(count),
        movement=np.zeros(count),
    )
    if count == 0:
        return fits
    rows = np.ascontiguousarray(np.stack([motion.qdd, motion.qd_before, -motion.q_before], axis=1))
    fit = kernel_of(fit_each_window, "search for held commands")
    fit(rows, first_rows, size, rounds, fits)
    return fits


def fit_each_window(
    rows: Array, first_rows: Counts, size: int, rounds: int, fits: WindowFits
) -> None:
    """Fit X and Y to windows; compiled.

    Args:
        rows: Values x, y and r of all rows, with their means (T, 3, n).
        first_rows: Index of each window's first row (W,).
        size: Number of rows of a window.
        rounds: Rounds of reweighting.
        fits: Result: the fit of each window.
    """
    centred = np.zeros((size, 3, rows.shape[2]))
    distance = np.zeros(size)
    for w, first in enumerate(first_rows):
        window = rows[first : first + size]
        weights = np.ones(size)
        for _ in range(rounds):
            subtract_weighted_means(window, weights, centred)
            sums = sum_products(centred, weights)

            determinant = sums.xx * sums.yy - sums.xy * sums.xy
            is_solvable = determinant > MIN_DETERMINANT * sums.xx * sums.yy
            divisor = determinant if is_solvable else 1.0
            x_factor = (sums.yy * sums.xr - sums.xy * sums.yr) / divisor
            y_factor = (sums.xx * sums.yr - sums.xy * sums.xr) / divisor

            measure_residuals(centred, x_factor, y_factor, distance)
            in_order = np.sort(distance)
            scale = max(percentile(in_order, EXACT_PERCENTILE), LEAST_RESIDUAL)
            weights = 1.0 / (1.0 + (distance / scale) ** 2)

        fits.pair[w, 0] = x_factor
        fits.pair[w, 1] = y_factor
        fits.is_solvable[w] = is_solvable
        fits.residual[w] = max(percentile(in_order, 50.0), LEAST_RESIDUAL)
        fits.movement[w] = weighted_rms(centred[:, 2], weights)


def subtract_weighted_means(window: Array, weights: Array, centred: Array) -> None:
    """Subtract the weighted mean over the rows from each quantity of each joint; compiled.

    Args:
        window: Values (rows, 3, n).
        weights: Weights of the rows (rows,).
        centred: Result: the values without their means (rows, 3, n).
    """
    size, quantities, joints = window.shape
    normalized = weights / weights.sum()
    mean = np.zeros((quantities, joints))
    for row in range(size):
        for quantity in range(quantities):
            for joint in range(joints):
                mean[quantity, joint] += normalized[row] * window[row, quantity, joint]

    for row in range(size):
        for quantity in range(quantities):
            for joint in range(joints):
                centred[row, quantity, joint] = window[row, quantity, joint] - mean[quantity, joint]


def sum_products(centred: Array, weights: Array) -> NormalSums:
    """Return the weighted sums over x, y and r (rows, 3, n) of a window; compiled."""
    xx = 0.0
    xy = 0.0
    yy = 0.0
    xr = 0.0
    yr = 0.0
    for row in range(centred.shape[0]):
        weight = weights[row]
        for joint in range(centred.shape[2]):
            x = centred[row, 0, joint]
            y = centred[row, 1, joint]
            r = centred[row, 2, joint]
            xx += weight * x * x
            xy += weight * x * y
            yy += weight * y * y
            xr += weight * x * r
            yr += weight * y * r
    return NormalSums(xx, xy, yy, xr, yr)


def measure_residuals(centred: Array, x_factor: float, y_factor: float, distance: Array) -> None:
    """Measure how far each row is from obeying the law; compiled.

    Args:
        centred: Values x, y and r (rows, 3, n) of a window.
        x_factor: X, s^2.
        y_factor: Y, s.
        distance: Result: norm over the joints of each row's residual (rows,), rad.
    """
    for row in range(centred.shape[0]):
        square = 0.0
        for joint in range(centred.shape[2]):
            x = centred[row, 0, joint]
            y = centred[row, 1, joint]
            remainder = centred[row, 2, joint] - x_factor * x - y_factor * y
            square += remainder * remainder
        distance[row] = np.sqrt(square)


def percentile(in_order: Array, percent: float) -> float:
    """Return a percentile of sorted values, interpolated between two of them; compiled."""
    position = percent / 100.0 * (len(in_order) - 1)
    below = int(position)
    above = min(below + 1, len(in_order) - 1)
    part = position - below
    return float((1.0 - part) * in_order[below] + part * in_order[above])


def weighted_rms(values: Array, weights: Array) -> float:
    """Return the RMS over rows of the norms of values (rows, n), with weights (rows,); compiled."""
    square = 0.0
    for row in range(values.shape[0]):
        for joint in range(values.shape[1]):
            square += weights[row] * values[row, joint] * values[row, joint]
    return float(np.sqrt(square / weights.sum()))
