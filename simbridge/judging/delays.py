"""How long one joint motion trails another, with the uncertainty of that time.

A short lag is that of joints behind their targets: far less than the time between two rows, it is
found from the velocity of the targets (`simbridge.identification.joint_lag`). A long one is found
by shifting the leading motion until it comes closest to the trailing one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.robust import cauchy_weights, jackknife_variance, spread_rows
from simbridge.judging.interpolation import interpolate_rows
from simbridge.robot.pose import Array

# Longest lag that is searched for, s.
MAX_LAG_S = 0.6
# A motion that leads its command by more than this does not follow it, s.
MAX_LEAD_S = 0.02
# Step of the first search, s.
SEARCH_STEP_S = 0.008
# Largest number of rows of the first search.
MAX_SEARCHED_ROWS = 400
# Largest number of rows of the fit.
MAX_FITTED_ROWS = 4000
# Largest number of Gauss-Newton steps.
MAX_STEPS = 20
# Largest number of rows of the fits that show the uncertainty.
MAX_DEVIATION_ROWS = 600
# Number of the first steps in which all rows weigh the same.
PLAIN_STEPS = 4
# Change of the lag below which the steps end, s.
CONVERGED_S = 1e-6
# Number of blocks of rows that are left out in turn, for the uncertainty.
BLOCKS = 10
# Smallest number of rows that determine a lag.
MIN_ROWS = 10
# Speed that a joint must reach to show a lag, rad/s.
MIN_SPEED = 0.01
# Largest part of the trailing motion that the shifted leading one may leave unexplained.
MAX_UNEXPLAINED = 0.1
# Largest standard deviation of a lag that is reported, s.
MAX_DEVIATION_S = 0.02
# Smallest residual that scales weights, rad.
LEAST_RESIDUAL = 1e-9


@dataclass(frozen=True)
class Lag:
    """How long one joint motion trails another.

    Attributes:
        lag_s: The lag, s; negative if the other motion trails.
        uncertainty_s: One standard deviation of the lag, s.
        remaining_rms_rad: RMS difference over all joints once the lag is removed, rad.
    """

    lag_s: float
    uncertainty_s: float
    remaining_rms_rad: float


def fit_lag(times: Array, leading: Array, at: Array, trailing: Array) -> Lag | None:
    """Return how long a motion trails another; None if it does not follow it.

    Args:
        times: Instants of the leading motion (K,), s, strictly increasing.
        leading: Joint positions of the leading motion (K, n), rad: linear between two instants.
        at: Instants of the trailing motion (T,), s, strictly increasing.
        trailing: Joint positions of the trailing motion (T, n), rad.
    """
    if len(times) < 2:
        return None

    # Only rows whose leading positions are known for every lag can be compared.
    is_covered = (at - MAX_LAG_S >= times[0]) & (at + MAX_LEAD_S <= times[-1])
    if np.count_nonzero(is_covered) < MIN_ROWS:
        is_covered = (at >= times[0]) & (at <= times[-1])
    rows_at = at[is_covered]
    rows = trailing[is_covered]
    if len(rows) < MIN_ROWS or not _moves(rows_at, rows):
        return None

    start = _search(times, leading, rows_at, rows)
    kept = spread_rows(len(rows), MAX_FITTED_ROWS)
    rows_at = rows_at[kept]
    rows = rows[kept]
    lag = _refine(times, leading, rows_at, trailing=rows, start=start)

    remaining = rows - interpolate_rows(times, leading, rows_at - lag)
    if not _explains(remaining, rows):
        return None

    # Fit again without one block of rows after another: fewer rows are enough for that.
    thinned = spread_rows(len(rows), MAX_DEVIATION_ROWS)
    left_out = [
        _refine(times, leading, rows_at[kept], trailing=rows[kept], start=lag)
        for kept in (np.setdiff1d(thinned, block) for block in np.array_split(thinned, BLOCKS))
    ]
    deviation = float(np.sqrt(jackknife_variance(left_out)))
    if not deviation < MAX_DEVIATION_S or not -MAX_LEAD_S <= lag <= MAX_LAG_S:
        return None

    return Lag(lag, deviation, _rms(remaining))


def _moves(times: Array, positions: Array) -> bool:
    """Return whether some joint moves fast enough to show a lag."""
    speed = np.abs(np.diff(positions, axis=0)) / np.diff(times)[:, np.newaxis]
    return bool(np.percentile(speed.max(axis=1), 90.0) > MIN_SPEED)


def _rms(values: Array) -> float:
    """Return the root mean square of values."""
    return float(np.sqrt(np.mean(values**2)))


def _explains(remaining: Array, trailing: Array) -> bool:
    """Return whether a shifted motion explains the trailing one, up to a small part of it."""
    variation = float(np.linalg.norm(trailing - trailing.mean(axis=0)))
    return float(np.linalg.norm(remaining)) < MAX_UNEXPLAINED * variation


def _search(times: Array, leading: Array, at: Array, trailing: Array) -> float:
    """Return the lag among evenly spaced ones that leaves the smallest difference, s."""
    kept = spread_rows(len(at), MAX_SEARCHED_ROWS)
    at = at[kept]
    trailing = trailing[kept]
    lags = np.arange(-MAX_LEAD_S, MAX_LAG_S, SEARCH_STEP_S)
    differences = [_rms(interpolate_rows(times, leading, at - lag) - trailing) for lag in lags]
    return float(lags[int(np.argmin(differences))])


def _refine(times: Array, leading: Array, at: Array, *, trailing: Array, start: float) -> float:
    """Return the lag by Gauss-Newton with Cauchy weights, s.

    Args:
        times: Instants of the leading motion (K,), s.
        leading: Its positions (K, n), rad.
        at: Instants of the trailing motion (T,), s.
        trailing: Its positions (T, n), rad.
        start: The lag to start from, s.
    """
    lag = start
    half_span = 0.5 * SEARCH_STEP_S
    for number in range(MAX_STEPS):
        ahead = interpolate_rows(times, leading, at - lag + half_span)
        behind = interpolate_rows(times, leading, at - lag - half_span)
        velocity = (ahead - behind) / (2.0 * half_span)
        residual = interpolate_rows(times, leading, at - lag) - trailing

        # The first steps are plain least squares, which have one minimum.
        is_plain = number < PLAIN_STEPS
        size = np.abs(residual)
        scale = max(2.0 * float(np.median(size)), LEAST_RESIDUAL)
        weights = np.ones_like(size) if is_plain else cauchy_weights(size, scale)

        denominator = float((weights * velocity**2).sum())
        if denominator == 0.0:
            return lag
        change = float((weights * velocity * residual).sum()) / denominator
        lag += float(np.clip(change, -SEARCH_STEP_S, SEARCH_STEP_S))
        if abs(change) < CONVERGED_S and not is_plain:
            break
    return lag
