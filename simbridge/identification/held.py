"""Identifies the tuning of servoj without the commands, from moments in which a command was held.

While a command is held the setpoint s is constant, but the arm still moves towards it. Then

    q' + X qdd + Y qd' = s,    X = 1 / gain,  Y = lookahead

in every row, with the same X and Y for all joints; q' and qd' are the position and velocity one
cycle before. Joints that obey this settle exponentially, which no other motion of a UR does.

Short windows of rows are fitted one by one. Those with a constant setpoint are then fitted
together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.identification.robust import cauchy_weights, jackknife_variance, solve_pair
from simbridge.identification.split_cycles import HeldSpan, confirm_tuning
from simbridge.identification.target_motion import MIN_SPEED, NotIdentified, TargetMotion
from simbridge.identification.tuning import SINGLE_PRECISION, Tuning, tuning_of_pair
from simbridge.identification.window_fits import (
    EXACT_PERCENTILE,
    LEAST_RESIDUAL,
    WindowFits,
    fit_windows,
)
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# Sizes of the windows, rows.
WINDOW_SIZES = (10, 30)
# Largest span between successive rows of a window, in units of the usual span.
MAX_GAP = 3.5
# Smallest speed of the fastest joint in the first row of a window, rad/s.
MIN_FIRST_SPEED = 1e-3

# Largest variation of the setpoint in a window, relative to the movement of the arm in it.
MAX_VARIATION = 1e-3
# The same limit for a short window, in which any smooth motion comes close to a constant setpoint:
# motions of real arms that servoj did not make came to within 0.02 in 80 ms.
MAX_VARIATION_IF_SHORT = 3e-6
# The same limit after the first few rounds of reweighting.
MAX_ROUGH_VARIATION = 0.05
# Duration below which a window is short, s.
SHORT_WINDOW_S = 0.05
# Largest residual of a constant setpoint, in units of the resolution of the recorded digits.
MAX_DIGITS = 5.0
# Rounds of reweighting.
ROUNDS = 20
# Rounds of reweighting in the first fit of a window.
ROUGH_ROUNDS = 5

# Ratio of a window's residual to the smallest one up to which the window is exact.
EXACT_RATIO = 3.0
# Residual that rounding alone may leave, rad.
ROUNDING = 1e-13
# How far a tuning may exceed the range that servoj accepts, relative to the range's edge.
RANGE_TOLERANCE = 0.05
# Largest relative difference of a window's tuning from the median of the windows.
MAX_TUNING_DIFFERENCE = 0.1
# Number of blocks of rows from which uncertainties are estimated.
BLOCKS = 8
# Largest change of the tuning, in standard deviations, if setpoints are allowed to creep.
MAX_CREEP_DEVIATIONS = 3.0

# Smallest step between the setpoints of successive rows that begins another held command, in units
# of the usual step.
MIN_JUMP_RATIO = 20.0

# Largest distance between successive fitted rows of one span, rows.
MAX_ROWS_APART = 4
# Smallest number of rows of a span in which a command was held.
MIN_SPAN_ROWS = 3
# Largest residual of a row at the held command, in units of the tuning's residual.
COMMAND_RATIO = 5.0
# Smallest fraction of the rows of the spans that must have their setpoint at the held command.
MIN_OBEYING = 0.7
# Smallest difference between a row's step and h qd that shows a split cycle, relative to h^2 qdd.
# A split cycle differs by a quarter at most.
MIN_VISIBLE_SPLIT = 3e-3
# Percentile of these differences that shows how exactly whole cycles are recorded.
UNSPLIT_PERCENTILE = 10.0
# Largest value of that percentile with which split cycles are visible at all.
MAX_UNSPLIT = 0.1 * MIN_VISIBLE_SPLIT
# Relative difference of a span between rows from the cycle up to which it is one cycle.
MAX_CYCLE_DIFFERENCE = 0.1
# Smallest step h^2 qdd that is used as a divisor, rad.
LEAST_STEP = 1e-12


class NoHeldCommand(NotIdentified):
    """No command was held while the arm moved."""


class CreepingSetpoint(NotIdentified):
    """The arm settled, but the setpoint may have crept."""


class GroupFit(NamedTuple):
    """X and Y as fitted to R rows in groups that share a setpoint.

    Attributes:
        pair: X, s^2, and Y, s.
        residuals: Residual of each row (R,), rad.
        products: Each row's terms in the normal equations of X x + Y y = r (5, R): x x, x y, y y,
            x r and y r.
        weights: Weights of the rows (R,).
    """

    pair: tuple[float, float]
    residuals: Array
    products: Array
    weights: Array


def fit_to_held_commands(motion: TargetMotion) -> Tuning:
    """Fit the tuning with which the setpoint is constant in some windows of the recording.

    Raises:
        NoHeldCommand: No command was held while the arm moved.
        CreepingSetpoint: The tuning depends on whether setpoints may creep.
        NotIdentified: The arm does not move, or too many cycles were split.
    """
    unsplit = motion[~find_split_cycles(motion)]

    # Find the windows with a constant setpoint: their rows, X and Y, and median residuals.
    windows: list[Counts] = []
    pairs: list[Array] = []
    residuals: list[float] = []
    for size in WINDOW_SIZES:
        # In most windows the setpoint is far from constant, which a few rounds show.
        first_rows = _first_rows(unsplit, size)
        rough_fits = fit_windows(unsplit, first_rows, size, rounds=ROUGH_ROUNDS)
        first_rows = first_rows[_is_roughly_constant(rough_fits)]

        fits = fit_windows(unsplit, first_rows, size, rounds=ROUNDS)
        is_constant = _is_constant(unsplit, first_rows, size, fits)
        windows += [np.arange(first, first + size) for first in first_rows[is_constant].tolist()]
        pairs += list(fits.pair[is_constant])
        residuals += list(fits.residual[is_constant])

    if not windows:
        if not unsplit.moving.any():
            raise NotIdentified("the arm does not move")
        raise NoHeldCommand("no command was held while the arm moved")

    # The best windows show how exact the recording is. In windows that are less exact the setpoint
    # may have crept.
    is_exact = np.array(residuals) < EXACT_RATIO * min(residuals) + ROUNDING
    middle_pair = np.median(np.array(pairs)[is_exact], axis=0)
    difference = np.abs(np.array(pairs) / middle_pair - 1.0).max(axis=1)
    agrees = difference < MAX_TUNING_DIFFERENCE

    kept = [windows[i] for i in np.flatnonzero(is_exact & agrees)]
    if not kept:
        raise NoHeldCommand("no command was held while the arm moved")
    rows = np.unique(np.concatenate(kept))
    tuning = _fit_jointly(unsplit, rows, middle_pair)
    return _confirm(motion, tuning, unsplit.times[rows])


def find_split_cycles(motion: TargetMotion) -> Flags:
    """Return which rows (T,) end a cycle that was visibly split in two by the end of a call.

    In a whole cycle of length h the position changes by h qd, in a split one by another amount. No
    row is flagged if the recording is not exact enough, or if no two rows are one cycle apart.
    """
    if not shows_splits(motion):
        return np.zeros(len(motion), dtype=bool)
    difference, is_comparable = _compare_steps(motion)
    return is_comparable & (difference > MIN_VISIBLE_SPLIT)


def shows_splits(motion: TargetMotion) -> bool:
    """Return whether a recording is exact enough to show that a cycle was split."""
    difference, is_comparable = _compare_steps(motion)
    if not is_comparable.any():
        return False
    return bool(np.percentile(difference[is_comparable], UNSPLIT_PERCENTILE) <= MAX_UNSPLIT)


def _compare_steps(motion: TargetMotion) -> tuple[Array, Flags]:
    """Compare each row's step in position with h qd.

    Returns:
        Their difference relative to h^2 qdd (T,), and in which rows (T,) it means something: those
        that move, and follow another row by one cycle.
    """
    spans = np.diff(motion.times)
    is_one_cycle = np.abs(spans - motion.cycle) < MAX_CYCLE_DIFFERENCE * motion.cycle
    is_comparable = np.concatenate([[False], is_one_cycle]) & motion.moving

    difference = np.zeros(len(motion))
    steps = np.diff(motion.q, axis=0)
    difference[1:] = np.abs(steps - motion.cycle * motion.qd[1:]).max(axis=1)
    acceleration = np.abs(motion.qdd).max(axis=1)
    relative: Array = difference / np.maximum(motion.cycle**2 * acceleration, LEAST_STEP)
    return relative, is_comparable


def _first_rows(motion: TargetMotion, size: int) -> Counts:
    """Return the first rows (W,) of windows without gaps in which the arm moves.

    Long windows begin a few rows apart: a command that is held for longer has one all the same.

    Args:
        motion: The recorded joint targets.
        size: Number of rows of a window.
    """
    if len(motion) < size:
        return np.zeros(0, dtype=np.int64)

    span = np.diff(motion.times)
    gaps_before = np.concatenate([[0], np.cumsum(span > MAX_GAP * np.median(span))])
    first = np.arange(0, len(motion) - size + 1, size // min(WINDOW_SIZES))
    is_whole = gaps_before[first + size - 1] == gaps_before[first]

    speed = np.abs(motion.qd).max(axis=1)
    slowest = np.lib.stride_tricks.sliding_window_view(speed, size).min(axis=1)
    is_moving = (speed[first] > MIN_FIRST_SPEED) & (slowest[first] > MIN_SPEED)
    return first[is_whole & is_moving]


def _is_roughly_constant(fits: WindowFits) -> Flags:
    """Return which windows (W,) show a setpoint that varies by a few percent of the movement."""
    return fits.is_solvable & (fits.residual < MAX_ROUGH_VARIATION * fits.movement)


def _is_constant(motion: TargetMotion, first_rows: Counts, size: int, fits: WindowFits) -> Flags:
    """Return which windows (W,) show a constant setpoint under a tuning that servoj accepts.

    Args:
        motion: The recorded joint targets.
        first_rows: Index of each window's first row (W,).
        size: Number of rows of a window.
        fits: Fits of the windows.
    """
    low = np.array([1.0 / GAIN_RANGE[1], LOOKAHEAD_RANGE[0]])
    high = np.array([1.0 / GAIN_RANGE[0], LOOKAHEAD_RANGE[1]])
    is_high_enough = fits.pair > (1.0 - RANGE_TOLERANCE) * low
    is_low_enough = fits.pair < (1.0 + RANGE_TOLERANCE) * high
    is_accepted = (is_high_enough & is_low_enough).all(axis=1)

    duration = motion.times[first_rows + size - 1] - motion.times[first_rows]
    is_short = duration < SHORT_WINDOW_S
    max_variation = np.where(is_short, MAX_VARIATION_IF_SHORT, MAX_VARIATION)
    resolution = motion.setpoint_resolution(fits.pair[:, 0], fits.pair[:, 1])
    max_residual = np.minimum(max_variation * fits.movement, MAX_DIGITS * resolution)
    is_constant = fits.residual < max_residual
    return fits.is_solvable & is_accepted & is_constant


def _fit_jointly(motion: TargetMotion, rows: Counts, start: Array) -> Tuning:
    """Fit one tuning to the rows of all windows.

    Args:
        motion: Joint targets without the visibly split rows; `rows` indexes these.
        rows: Indices of the rows of the windows (R,), increasing.
        start: X and Y to start from (2,).

    Raises:
        NotIdentified: The tuning depends on whether setpoints may creep (drift at a constant rate).
    """
    # Overlapping and adjacent windows form a group, whose rows share a setpoint.
    fitted = motion[rows]
    setpoints = fitted.setpoints(1.0 / start[0], start[1])
    is_gap = np.diff(rows) > 1
    resolution = motion.setpoint_resolution(start[0], start[1])
    is_new_group = is_gap | _begins_command(setpoints, is_gap, resolution)
    group = np.concatenate([[0], np.cumsum(is_new_group)])
    middles = np.array([np.median(setpoints[group == k], axis=0) for k in range(group[-1] + 1)])
    weights = _exact_weights(np.linalg.norm(setpoints - middles[group], axis=1))

    fit = _fit_groups(fitted, group, weights, may_creep=False)
    creeping = _fit_groups(fitted, group, fit.weights, may_creep=True)

    # Standard deviations from leaving out blocks of rows, ...
    weighted = fit.products * fit.weights
    pairs = []
    for block in np.array_split(weighted, min(BLOCKS, len(rows)), axis=1):
        xx, xy, yy, xr, yr = fit.products @ fit.weights - block.sum(axis=1)
        pairs.append(solve_pair(xx, xy, yy, xr, yr))
    deviation = np.sqrt(jackknife_variance(pairs))

    # ... and from the resolution of the digits: rounding errors of neighbouring rows are alike, so
    # leaving out blocks does not show them.
    xx, xy, yy, _, _ = fit.products @ fit.weights
    rounding = resolution * np.sqrt(np.array([yy, xx]) / (xx * yy - xy * xy))
    deviation = np.hypot(deviation, rounding)

    # Refuse a tuning that changes if setpoints may creep.
    difference = np.abs(np.subtract(creeping.pair, fit.pair))
    least_deviation = np.maximum(deviation, SINGLE_PRECISION * np.abs(fit.pair))
    creep_deviations = float(np.max(difference / least_deviation))
    if creep_deviations > MAX_CREEP_DEVIATIONS:
        raise CreepingSetpoint(
            "the arm settled, but not exactly as under a held servoj command: if the setpoint "
            f"crept, gain and lookahead are off by {creep_deviations:.0f} standard deviations"
        )
    if not min(fit.pair) > 0.0:
        raise NoHeldCommand("no command was held while the arm moved")
    return tuning_of_pair(fit.pair, np.hypot(deviation, difference), fit.residuals)


def _begins_command(setpoints: Array, is_gap: Flags, resolution: float) -> Flags:
    """Return which steps (R - 1,) between successive setpoints lead to another held command.

    Single steps do, between setpoints that stand still. Where several follow each other closely,
    the setpoint moves, or some rows do not obey the law.

    Args:
        setpoints: Setpoints of the rows in which commands were held (R, n), rad.
        is_gap: Whether other rows are missing between successive rows (R - 1,).
        resolution: Resolution of the setpoints by the recorded digits, rad.
    """
    steps = np.linalg.norm(np.diff(setpoints, axis=0), axis=1)
    usual_step = float(np.median(steps))
    is_large = steps > MIN_JUMP_RATIO * max(usual_step, resolution) + ROUNDING

    # Count large steps and gaps up to a few rows away; the rows end with a gap.
    reach = MIN_SPAN_ROWS - 1
    padded = np.pad(is_large | is_gap, reach, constant_values=True)
    neighbours = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    is_single: Flags = neighbours.sum(axis=1) == 1
    return is_large & is_single


def _fit_groups(rows: TargetMotion, group: Counts, weights: Array, *, may_creep: bool) -> GroupFit:
    """Fit X = 1 / gain and Y = lookahead to rows in groups that share a setpoint.

    In every row X qdd + Y qd' = s - q', with the setpoint s of its group. Least squares are
    repeated with weights from the last residuals, so that rows that do not obey hardly count.

    Args:
        rows: Joint targets of R rows.
        group: Number of each row's group (R,), from 0.
        weights: Weights of the rows in the first round (R,).
        may_creep: Whether the setpoint of a group may move at a constant rate.
    """
    mean_time = np.bincount(group, rows.times) / np.bincount(group)
    time = rows.times - mean_time[group]

    for _ in range(ROUNDS):
        # Eliminate the setpoint of each group: a constant and, if it may creep, a constant rate.
        trends = [np.ones_like(time)]
        if may_creep:
            weighted_mean = np.bincount(group, weights * time) / np.bincount(group, weights)
            trends.append(time - weighted_mean[group])

        target = _without_trends(-rows.q_before, trends, group, weights)
        x = _without_trends(rows.qdd, trends, group, weights)
        y = _without_trends(rows.qd_before, trends, group, weights)

        # Solve the normal equations of X x + Y y = target.
        factor_pairs = [(x, x), (x, y), (y, y), (x, target), (y, target)]
        products = np.stack([(first * second).sum(axis=1) for first, second in factor_pairs])
        pair = solve_pair(*(products @ weights))
        residuals = np.linalg.norm(target - pair[0] * x - pair[1] * y, axis=1)
        weights = _exact_weights(residuals)
    return GroupFit(pair, residuals, products, weights)


def _without_trends(values: Array, trends: list[Array], group: Counts, weights: Array) -> Array:
    """Return values minus their weighted projection, group by group, onto each trend.

    Args:
        values: Values of the rows (R, n).
        trends: Trends over the rows, each (R,), orthogonal within each group.
        group: Number of each row's group (R,), from 0.
        weights: Weights of the rows (R,).
    """
    for trend in trends:
        size = np.bincount(group, weights * trend**2)
        columns = [np.bincount(group, weights * trend * column) / size for column in values.T]
        amount = np.stack(columns, axis=1)
        values = values - trend[:, None] * amount[group]
    return values


def _exact_weights(distance: Array) -> Array:
    """Return Cauchy weights of rows whose residuals are distances (R,), rad.

    Their scale, a low percentile of the residuals, singles out the rows that obey exactly.
    """
    scale = max(float(np.percentile(distance, EXACT_PERCENTILE)), LEAST_RESIDUAL)
    return cauchy_weights(distance, scale)


def _confirm(motion: TargetMotion, tuning: Tuning, times: Array) -> Tuning:
    """Return a tuning after checking it with all rows in which commands were held.

    Args:
        motion: All recorded joint targets, also those of split cycles.
        tuning: The tuning to check.
        times: Stamps of the rows that it was fitted to (R,), s.

    Raises:
        NotIdentified: Too many cycles were split.
    """
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    fitted = np.flatnonzero(np.isin(motion.times, times))
    # Distance from the held command up to which a setpoint is at it, rad.
    exact_residual = float(np.percentile(tuning.residuals, EXACT_PERCENTILE))
    bound = COMMAND_RATIO * exact_residual + ROUNDING

    spans: list[HeldSpan] = []
    # Which rows of each span have their setpoint at the held command.
    obeying: list[Flags] = []
    resolution = motion.setpoint_resolution(1.0 / tuning.gain, tuning.lookahead)
    is_gap = np.diff(fitted) > MAX_ROWS_APART
    is_new_span = is_gap | _begins_command(setpoints[fitted], is_gap, resolution)
    for rows in np.split(fitted, np.flatnonzero(is_new_span) + 1):
        # The held command is the setpoint that most other setpoints are near.
        near_counts = [
            (np.linalg.norm(setpoints[rows] - setpoint, axis=1) < bound).sum()
            for setpoint in setpoints[rows]
        ]
        command = setpoints[rows[int(np.argmax(near_counts))]]

        near_rows = rows[np.linalg.norm(setpoints[rows] - command, axis=1) < bound]
        if len(near_rows) >= MIN_SPAN_ROWS:
            span = slice(int(near_rows[0]), int(near_rows[-1]) + 1)
            spans.append(HeldSpan(span, command))
            obeying.append(np.linalg.norm(setpoints[span] - command, axis=1) < bound)

    if spans:
        confirmed = confirm_tuning(motion, tuning, spans)
        if confirmed is not None:
            return confirmed
        if np.mean(np.concatenate(obeying)) > MIN_OBEYING:
            return tuning
    raise NotIdentified(
        "commands were held while the arm moved, but too many cycles were split by the end of a "
        "call"
    )
