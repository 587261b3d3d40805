"""Identifies the tuning of servoj without the commands, from how the arm comes to rest.

After the last command of a motion the setpoint s is constant, and the arm settles:

    q' + X qdd + Y qd' = s,    X = 1 / gain,  Y = lookahead

with q' and qd' one cycle before each row. Where the command itself had slowed down, the arm has
only a fraction of a milliradian left to move. Then the last decimals of the recording tell what
can be known: their rounding errors are the only errors that the law may leave, and they determine
the uncertainty of the tuning.

Other smooth motions come to rest in similar ways: the commands may approach the last one slowly.
The uncertainty of the tuning therefore covers what changes if the setpoint of each joint crept at
a constant speed, or approached its end exponentially.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.robust import resolution
from simbridge.identification.target_motion import (
    MIN_SPEED,
    Digits,
    NotIdentified,
    TargetMotion,
)
from simbridge.identification.tuning import Tuning, tuning_of_pair
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# Sizes of the windows before rest that are tried, rows.
WINDOW_SIZES = (12, 16, 24, 32, 48, 64, 96, 128, 192)
# Shortest window, s: any smooth motion obeys the law for less.
MIN_DURATION_S = 0.06
# Number of rows at rest that end a motion.
REST_ROWS = 5
# Largest velocity at rest, in units of its resolution.
REST_DIGITS = 2.0
# Largest span between successive rows, relative to the cycle.
MAX_SPAN = 1.1
# Largest number of stops that are looked at.
MAX_STOPS = 50

# Largest RMS residual, in units of the RMS rounding error.
MAX_RESIDUAL_RATIO = 1.25
# Largest RMS residual of a third of the window, in the same unit.
MAX_PART_RATIO = 1.4
# Smallest movement in a window, in units of the rounding error.
MIN_MOVEMENT_RATIO = 100.0
# Rates at which a setpoint may approach the command exponentially, 1/s; 0 for a constant speed.
APPROACH_RATES = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0)
# Largest difference of the tunings of single stops, in standard deviations.
MAX_STOP_DEVIATIONS = 4.0
# Largest value of f (1 - f) for a fraction f.
MAX_SPLIT = 0.25
# Standard deviation of a rounding error, in units of the last digit.
ROUNDING_DEVIATION = 1.0 / np.sqrt(12.0)
# Factor of the standard deviations: near rest, rounding errors of successive rows are alike.
CORRELATION_FACTOR = 2.0
# Smallest difference between accelerations and a multiple of the velocities, in units of its
# rounding error.
MIN_SEPARATION = 3.0
# How far a tuning may exceed the range that servoj accepts, relative to the range's edge.
RANGE_TOLERANCE = 0.1
# Relative deviations beyond which a tuning says nothing.
MAX_DEVIATION = 0.2


@dataclass(frozen=True, eq=False)
class SettlingFit:
    """A law as fitted to a window before rest.

    Attributes:
        pair: X, s^2, and Y, s (2,).
        deviation: One standard deviation of both (2,), from the recorded digits.
        residuals: Residuals of the rows (R, n), rad.
        rounding: Standard deviation of the residuals that rounding leaves, rad.
    """

    pair: Array
    deviation: Array
    residuals: Array
    rounding: float

    @property
    def uncertainty(self) -> float:
        """Larger one of the relative deviations of X and Y."""
        return float(np.max(self.deviation / self.pair))


def fit_to_settling(motion: TargetMotion) -> Tuning:
    """Fit the tuning with which the arm came to rest at its last command.

    Raises:
        NotIdentified: The arm does not come to rest, or not as under a held command, or the digits
            of the recording do not tell.
    """
    digits = motion.digits
    fits = []
    for stop in _find_stops(motion)[:MAX_STOPS]:
        fit = _fit_stop(motion, stop, digits)
        if fit is not None:
            fits.append(fit)
    if not fits:
        movement = MIN_MOVEMENT_RATIO * ROUNDING_DEVIATION * digits.position
        raise NotIdentified(
            "where the arm came to rest it does not show the tuning either: positions were "
            f"recorded to {digits.position:.1g} rad, so the arm must move on by more than "
            f"{1e3 * movement:.2g} mrad for {1e3 * MIN_DURATION_S:.0f} ms after the last command"
        )

    best = min(fits, key=lambda fit: fit.uncertainty)
    for fit in fits:
        difference = np.abs(fit.pair - best.pair)
        if (difference > MAX_STOP_DEVIATIONS * np.hypot(fit.deviation, best.deviation)).any():
            raise NotIdentified("the arm settles in different ways after different motions")

    # Cycles that calls split would shift the gain, and the lookahead half as far.
    x, y = best.pair
    shift = _largest_split(motion) * motion.cycle * y / x
    split_deviation = shift * np.array([x, 0.5 * y])
    residuals = np.linalg.norm(best.residuals, axis=1)
    deviation = np.hypot(best.deviation, split_deviation)
    return tuning_of_pair((float(x), float(y)), deviation, residuals)


def _largest_split(motion: TargetMotion) -> float:
    """Return how far from whole the recorded cycles may be.

    A cycle of length h that a call splits after a fraction f ends f (1 - f) h^2 qdd short of its
    beginning plus h qd. The fraction is fitted to all rows, since the digits hide it in single
    ones.

    Returns:
        The mean of f (1 - f) over the cycles and one standard deviation of it, added: 0 for whole
        cycles, at most 0.25.
    """
    is_one_cycle = np.abs(np.diff(motion.times) - motion.cycle) < (MAX_SPAN - 1.0) * motion.cycle
    shortfall = (motion.cycle * motion.qd[1:] - np.diff(motion.q, axis=0))[is_one_cycle]
    reference = motion.cycle**2 * motion.qdd[1:][is_one_cycle]
    square = float((reference**2).sum())
    if not square:
        return MAX_SPLIT
    mean = float((reference * shortfall).sum()) / square
    digits = motion.digits
    step_digits = np.hypot(np.sqrt(2.0) * digits.position, motion.cycle * digits.velocity)
    rounding = ROUNDING_DEVIATION * step_digits
    return min(abs(mean) + float(rounding / np.sqrt(square)), MAX_SPLIT)


def _find_stops(motion: TargetMotion) -> Counts:
    """Return the rows at which motions end: the first of several at rest, or the last of all."""
    least_speed = max(REST_DIGITS * resolution(motion.qd), MIN_SPEED)
    is_still = np.abs(motion.qd).max(axis=1) <= least_speed
    if len(motion) <= REST_ROWS:
        return np.zeros(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(is_still, REST_ROWS)
    still_rows = np.asarray(windows.all(axis=1))
    stops = np.flatnonzero(still_rows[1:] & ~is_still[: len(still_rows) - 1]) + 1
    return stops if is_still[-1] else np.append(stops, len(motion) - 1)


def _fit_stop(motion: TargetMotion, stop: int, digits: Digits) -> SettlingFit | None:
    """Fit the law to the window before a stop that shows the tuning best; None if none does.

    Args:
        motion: The recorded joint targets.
        stop: Row at which the arm is at rest.
        digits: Resolution of the recording.
    """
    best: SettlingFit | None = None
    for size in WINDOW_SIZES:
        first = stop - size
        if first < 0:
            break
        rows = motion[slice(first, stop + 1)]
        spans = np.diff(rows.times)
        if spans.max() > MAX_SPAN * motion.cycle:
            break
        if rows.times[-1] - rows.times[0] < MIN_DURATION_S:
            continue
        fit = _fit_window(rows, [np.ones(len(rows))], digits)
        if fit is None:
            break
        if _is_settling(rows, fit):
            fit = _with_approach(rows, fit, digits)
            if best is None or fit.uncertainty < best.uncertainty:
                best = fit
    return best


def _is_settling(rows: TargetMotion, fit: SettlingFit) -> bool:
    """Return whether a window determines a tuning that servoj accepts."""
    movement = np.linalg.norm(rows.q[0] - rows.q[-1])
    if movement < MIN_MOVEMENT_RATIO * fit.rounding or not _is_accepted(fit.pair):
        return False
    return bool((fit.deviation < MAX_DEVIATION * fit.pair).all())


def _with_approach(rows: TargetMotion, fit: SettlingFit, digits: Digits) -> SettlingFit:
    """Return a fit with the uncertainty that remains if its setpoint approached the command."""
    time = rows.times - rows.times[0]
    deviation = fit.deviation
    for rate in APPROACH_RATES:
        approach = time if rate == 0.0 else np.exp(-rate * time)
        general = _fit_window(rows, [np.ones_like(time), approach], digits)
        if general is None:
            return replace(fit, deviation=np.full(2, np.inf))
        difference = np.abs(general.pair - fit.pair)
        deviation = np.maximum(deviation, np.hypot(general.deviation, difference))
    return replace(fit, deviation=deviation)


def _is_accepted(pair: Array) -> bool:
    """Return whether servoj accepts a tuning X and Y (2,), within a tolerance."""
    low = np.array([1.0 / GAIN_RANGE[1], LOOKAHEAD_RANGE[0]])
    high = np.array([1.0 / GAIN_RANGE[0], LOOKAHEAD_RANGE[1]])
    is_high_enough = pair > (1.0 - RANGE_TOLERANCE) * low
    is_low_enough = pair < (1.0 + RANGE_TOLERANCE) * high
    return bool((is_high_enough & is_low_enough).all())


def _without_trends(values: Array, trends: list[Array]) -> Array:
    """Return values (R, ...) minus their projection onto trends over the rows, each (R,)."""
    basis, _ = np.linalg.qr(np.stack(trends, axis=1))
    projection: Array = np.tensordot(basis, np.tensordot(basis, values, axes=(0, 0)), axes=(1, 0))
    return values - projection


def _rounding(cycle: float, pair: Array, digits: Digits) -> float:
    """Return the standard deviation of the residuals that rounding leaves, rad.

    Args:
        cycle: Length of the controller's cycle, s.
        pair: X, s^2, and Y, s (2,).
        digits: Resolution of the recording.
    """
    x, y = pair
    errors = [
        digits.position,
        (y - cycle) * digits.velocity,
        (x - y * cycle) * digits.acceleration,
    ]
    return float(ROUNDING_DEVIATION * np.linalg.norm(errors))


def _fit_window(rows: TargetMotion, trends: list[Array], digits: Digits) -> SettlingFit | None:
    """Fit X and Y to a window; None if it does not obey the law to the recorded digits.

    Args:
        rows: Joint targets of R rows.
        trends: What the setpoint of each joint may consist of, each (R,): a constant, and others.
        digits: Resolution of the recording.
    """
    columns = _without_trends(np.stack([rows.qdd, rows.qd_before], axis=-1), trends)
    target = _without_trends(-rows.q_before, trends)
    normal = np.einsum("rni,rnj->ij", columns, columns)
    if not normal[1, 1] > 0.0:
        return None
    # The acceleration's multiple of the velocity, and how far its remainder exceeds rounding.
    slope = normal[0, 1] / normal[1, 1]
    separation = _separation(normal, slope, rows.q.size, digits)
    if separation < MIN_SEPARATION:
        return None

    covariance = np.linalg.inv(normal)
    pair = covariance @ np.einsum("rni,rn->i", columns, target)
    residuals = target - columns @ pair
    rounding = _rounding(rows.cycle, pair, digits)

    # The residuals of the window and of its parts must come from rounding.
    parts = np.array_split(residuals, 3)
    largest_part = max(float(np.sqrt(np.mean(part**2))) for part in parts)
    if np.sqrt(np.mean(residuals**2)) > MAX_RESIDUAL_RATIO * rounding:
        return None
    if largest_part > MAX_PART_RATIO * rounding:
        return None
    deviation = CORRELATION_FACTOR * rounding * np.sqrt(np.diag(covariance))
    # Rounding errors of the acceleration shift X towards zero.
    shift = abs(pair[0]) / separation**2 * np.array([1.0, abs(slope)])
    deviation = np.hypot(deviation, shift)
    return SettlingFit(pair, deviation, residuals, rounding)


def _separation(normal: Array, slope: float, count: int, digits: Digits) -> float:
    """Return how far accelerations differ from a multiple of the velocities.

    If each joint settles with a single exponential they are proportional, and rounding errors
    would pass for a difference.

    Args:
        normal: Sums of products of accelerations and velocities (2, 2).
        slope: The multiple, 1/s.
        count: Number of products in each sum.
        digits: Resolution of the recording.

    Returns:
        The RMS difference in units of its rounding error.
    """
    difference = np.sqrt(max(normal[0, 0] - slope * normal[0, 1], 0.0) / count)
    rounding = ROUNDING_DEVIATION * np.hypot(digits.acceleration, slope * digits.velocity)
    return float(difference / rounding)
