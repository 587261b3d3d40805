"""Finds how long one joint motion trails another, with the uncertainty of that time.

The leading motion is shifted in time until it comes closest to the trailing one. The lag of joints
behind their targets is far shorter than the time between two rows, and is found from the velocity
of the targets instead (`simbridge.identification.joint_lag`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.robust import cauchy_weights, jackknife_variance, spread_rows
from simbridge.judging.differences import differentiate
from simbridge.judging.interpolation import interpolate_rows
from simbridge.robot.pose import Array, Counts

# Longest lag that is searched for, s.
MAX_LAG_S = 0.6
# Longest time by which a motion may lead what it follows, s, since clocks and stamps jitter.
MAX_LEAD_S = 0.02
# Step between the lags of the first search, s, and largest step of the fit.
SEARCH_STEP_S = 0.008
# Largest number of rows of the first search.
MAX_SEARCHED_ROWS = 400
# Largest number of rows of the fit.
MAX_FITTED_ROWS = 4000
# Largest number of Gauss-Newton steps.
MAX_STEPS = 20
# Largest number of rows of the fits that show the uncertainty.
MAX_DEVIATION_ROWS = 600
# Number of the first Gauss-Newton steps in which all rows weigh the same.
PLAIN_STEPS = 4
# Scale of the Cauchy weights, as a multiple of the median residual.
WEIGHT_SCALE = 2.0
# Change of the lag below which the Gauss-Newton steps end, s.
CONVERGED_S = 1e-6
# Number of blocks of rows that are left out in turn, for the uncertainty.
BLOCKS = 10
# Smallest number of rows that determine a lag.
MIN_ROWS = 10
# Speed that the fastest joint must reach to show a lag, rad/s ...
MIN_SPEED = 0.01
# ... as this percentile over the rows, since a single outlier is not a motion.
SPEED_PERCENTILE = 90.0
# Largest fraction of the trailing motion that the shifted leading one may leave unexplained.
MAX_UNEXPLAINED = 0.1
# Largest standard deviation of a lag that is reported, s.
MAX_DEVIATION_S = 0.02
# Smallest scale of the Cauchy weights, rad.
MIN_WEIGHT_SCALE = 1e-9


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


@dataclass(frozen=True, eq=False)
class LeadingRows:
    """Rows of the leading one of two joint motions, with the velocities at them.

    Attributes:
        times: Instants (K,), s, strictly increasing.
        positions: Joint positions (K, n), rad.
        velocities: Joint velocities (K, n), rad/s.
    """

    times: Array
    positions: Array
    velocities: Array


@dataclass(frozen=True, eq=False)
class TrailingRows:
    """Rows of the trailing one of two joint motions.

    Attributes:
        times: Instants (T,), s.
        positions: Joint positions (T, n), rad.
    """

    times: Array
    positions: Array

    def spread(self, limit: int) -> TrailingRows:
        """Return at most `limit` of the rows, spread evenly over all of them."""
        kept = spread_rows(len(self.times), limit)
        return TrailingRows(self.times[kept], self.positions[kept])

    def without(self, left_out: Counts) -> TrailingRows:
        """Return the rows without those at some indices."""
        return TrailingRows(np.delete(self.times, left_out), np.delete(self.positions, left_out, 0))


def fit_lag(times: Array, leading: Array, trailing_times: Array, trailing: Array) -> Lag | None:
    """Return how long a motion trails another; None if it does not follow it.

    Args:
        times: Instants of the leading motion (K,), s, strictly increasing.
        leading: Joint positions of the leading motion (K, n), rad: linear between two instants.
        trailing_times: Instants of the trailing motion (T,), s, strictly increasing.
        trailing: Joint positions of the trailing motion (T, n), rad.
    """
    if len(times) < 2:
        return None

    # Compare only rows whose leading positions are known for every lag that is tried; in a motion
    # too short for that, rows whose leading positions are known without a lag.
    is_covered = (trailing_times - MAX_LAG_S >= times[0]) & (
        trailing_times + MAX_LEAD_S <= times[-1]
    )
    if np.count_nonzero(is_covered) < MIN_ROWS:
        is_covered = (trailing_times >= times[0]) & (trailing_times <= times[-1])
    rows = TrailingRows(trailing_times[is_covered], trailing[is_covered])
    if len(rows.times) < MIN_ROWS or not _moves(rows.times, rows.positions):
        return None

    # Find the lag roughly, then precisely.
    rough_lag = _search_lag(times, leading, rows.spread(MAX_SEARCHED_ROWS))
    fitted = rows.spread(MAX_FITTED_ROWS)
    leading_rows = LeadingRows(times, leading, differentiate(times, leading))
    lag = _refine_lag(leading_rows, fitted, start=rough_lag, plain_steps=PLAIN_STEPS)

    remaining = fitted.positions - interpolate_rows(times, leading, fitted.times - lag)
    if not _explains(remaining, fitted.positions):
        return None

    # The uncertainty by the jackknife: fit again without one block of rows after another. Fewer
    # rows are enough for that.
    thinned = fitted.spread(MAX_DEVIATION_ROWS)
    lags_without_block = [
        _refine_lag(leading_rows, thinned.without(block), start=lag, plain_steps=0)
        for block in np.array_split(np.arange(len(thinned.times)), BLOCKS)
    ]
    deviation = float(np.sqrt(jackknife_variance(lags_without_block)))
    # The first condition is also true for a deviation that is nan.
    if not deviation < MAX_DEVIATION_S or not -MAX_LEAD_S <= lag <= MAX_LAG_S:
        return None

    return Lag(lag, deviation, _rms(remaining))


def _moves(times: Array, positions: Array) -> bool:
    """Return whether some joint moves fast enough to show a lag."""
    speeds = np.abs(np.diff(positions, axis=0)) / np.diff(times)[:, np.newaxis]
    fastest = speeds.max(axis=1)
    return bool(np.percentile(fastest, SPEED_PERCENTILE) > MIN_SPEED)


def _rms(values: Array) -> float:
    """Return the root mean square of values."""
    return float(np.sqrt(np.mean(values**2)))


def _explains(remaining: Array, trailing: Array) -> bool:
    """Return whether the shifted leading motion explains nearly all of the trailing one.

    Args:
        remaining: Trailing minus shifted leading positions (T, n), rad.
        trailing: Trailing positions (T, n), rad.
    """
    variation = float(np.linalg.norm(trailing - trailing.mean(axis=0)))
    return float(np.linalg.norm(remaining)) < MAX_UNEXPLAINED * variation


def _search_lag(times: Array, leading: Array, rows: TrailingRows) -> float:
    """Return the one of evenly spaced lags that leaves the smallest difference, s.

    Args:
        times: Instants of the leading motion (K,), s.
        leading: Joint positions of the leading motion (K, n), rad.
        rows: Rows of the trailing motion.
    """
    lags = np.arange(-MAX_LEAD_S, MAX_LAG_S, SEARCH_STEP_S)
    differences = [
        _rms(interpolate_rows(times, leading, rows.times - lag) - rows.positions) for lag in lags
    ]
    return float(lags[int(np.argmin(differences))])


def _refine_lag(
    leading: LeadingRows, rows: TrailingRows, *, start: float, plain_steps: int
) -> float:
    """Return the lag by Gauss-Newton steps of weighted least squares, s.

    Cauchy weights keep rows with a large residual from pulling at the result.

    Args:
        leading: Rows of the leading motion.
        rows: Rows of the trailing motion.
        start: The lag to start from, s.
        plain_steps: Number of first steps with equal weights: unlike the weighted sum of squares,
            the plain one has no other minimum nearby in which the steps could end.
    """
    joint_count = rows.positions.shape[1]
    # Positions and velocities side by side are interpolated in one go.
    state = np.concatenate([leading.positions, leading.velocities], axis=1)
    lag = start
    for number in range(MAX_STEPS):
        shifted = interpolate_rows(leading.times, state, rows.times - lag)
        residual = shifted[:, :joint_count] - rows.positions
        velocity = shifted[:, joint_count:]

        is_plain = number < plain_steps
        size = np.abs(residual)
        scale = max(WEIGHT_SCALE * float(np.median(size)), MIN_WEIGHT_SCALE)
        weights = np.ones_like(size) if is_plain else cauchy_weights(size, scale)

        # A later lag changes the residual by minus the velocity: the step is the least-squares
        # solution of residual - velocity * change = 0.
        denominator = float((weights * velocity**2).sum())
        if denominator == 0.0:
            return lag
        change = float((weights * velocity * residual).sum()) / denominator
        lag += float(np.clip(change, -SEARCH_STEP_S, SEARCH_STEP_S))
        if abs(change) < CONVERGED_S and not is_plain:
            break
    return lag
