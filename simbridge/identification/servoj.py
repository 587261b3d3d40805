"""Identifies the tuning of servoj from the path of the commands in joint space.

With q' = q - h qd and qd' = qd - h qdd, the state one cycle before, the servo law reads

    s = q' + X qdd + Y qd',    X = 1 / gain,  Y = lookahead

in every cycle of length h that no end of a call splits. The setpoint s lies on the straight line
between two successive commands. Its distance from that line is linear in X and Y, so X and Y can be
fitted without knowing when a command was sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.identification.command_path import COARSE_SEGMENTS, CommandPath
from simbridge.identification.robust import cauchy_weights, solve_pair, spread_rows
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning, tuning_of_pair
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# X = 1 / gain, s^2, and Y = lookahead, s.
TuningPair = tuple[float, float]

# Smallest number of rows in which the arm moves for a fit.
MIN_ROWS = 20
# Largest number of rows that the search for a first tuning uses.
MAX_SEARCHED_ROWS = 120
# Largest number of rows that the final fit uses.
MAX_FITTED_ROWS = 1000
# Number of gains, and of lookaheads, in the grid of tunings that the search starts from.
TRIED_VALUES = 5
# Number of tunings of the grid, the best ones, that are improved.
MAX_STARTS = 12
# Residual that a quarter of the rows must stay below to end the search, rad.
ROUNDING = 1e-9
# Largest median residual, as a fraction of how far the setpoints lead the joint targets.
MAX_RELATIVE_RESIDUAL = 0.02

# Percentiles of the residuals that scale the weights of the rows. The median is used first, to come
# near the solution; the lower quartile then singles out the rows that obey the law exactly.
MEDIAN = 50.0
LOWER_QUARTILE = 25.0
# Ratio of the lower quartile after the fit by the median to that of the first tuning, above which
# that fit has led away from the rows that obey.
MAX_QUARTILE_RATIO = 10.0
# Largest number of rounds of projecting and fitting.
MAX_ROUNDS = 60
# Relative change of X and Y below which the rounds end.
CONVERGED = 1e-7
# Smallest residual that scales the weights of the rows, rad.
LEAST_RESIDUAL = 1e-15
# Smallest determinant of the normal equations that separates X from Y, relative to the product of
# their diagonal.
MIN_DETERMINANT = 1e-12
# Smallest component of the velocities normal to the path, as a fraction of the velocities, that
# shows that the path is not one straight line.
MIN_NORMAL_FRACTION = 1e-6
# Bounds of X, s^2, and Y, s, in the search: a little beyond what servoj accepts.
X_RANGE = (0.8 / GAIN_RANGE[1], 1.25 / GAIN_RANGE[0])
Y_RANGE = (0.8 * LOOKAHEAD_RANGE[0], 1.25 * LOOKAHEAD_RANGE[1])


class PairStep(NamedTuple):
    """The result of a least-squares step for X and Y.

    Attributes:
        pair: X, s^2, and Y, s, after the step.
        deviation: One standard deviation of both (2,).
        residuals: Residual of each row (R,), rad, after the step.
    """

    pair: TuningPair
    deviation: Array
    residuals: Array


class InitialTuning(NamedTuple):
    """A tuning that the final fit may start from.

    Attributes:
        quartile: Lower quartile of the searched rows' residuals, rad.
        pair: X, s^2, and Y, s.
    """

    quartile: float
    pair: TuningPair


def fit_to_path(motion: TargetMotion, commands: Array) -> Tuning:
    """Fit the tuning with which the setpoints lie on the path of the commands.

    The times at which the commands were sent are not needed.

    Args:
        motion: The controller's joint targets.
        commands: Commands (K, n), rad, in the order in which they were sent.

    Raises:
        NotIdentified: The arm does not move, its motion does not determine the tuning, or it was
            not made by servoj with these commands.
    """
    rows = motion[motion.moving]
    if len(rows) < MIN_ROWS:
        raise NotIdentified("the arm does not move")

    path = CommandPath.of_commands(commands)
    coarse = CommandPath.of_commands(commands[:: 1 + len(commands) // COARSE_SEGMENTS])
    start = _search_start(rows[spread_rows(len(rows), MAX_SEARCHED_ROWS)], path, coarse)

    # Fit with weights scaled by the median residual, to come near the solution.
    fitted_rows = rows[spread_rows(len(rows), MAX_FITTED_ROWS)]
    median_pair, median_fit = _iterate(fitted_rows, path, start.pair, MEDIAN)

    # Fit again with weights scaled by the lower quartile, which singles out the rows that obey the
    # law exactly. If the first fit has led away from these rows, start where it started.
    quartile = float(np.percentile(median_fit.residuals, LOWER_QUARTILE))
    has_led_away = quartile > MAX_QUARTILE_RATIO * start.quartile + ROUNDING
    second_start = start.pair if has_led_away else median_pair
    _, fit = _iterate(fitted_rows, path, second_start, LOWER_QUARTILE)

    # Refuse setpoints that are too far from the path, in proportion to their lead over the joint
    # targets.
    lead = np.median(np.linalg.norm(rows.setpoints(fit.gain, fit.lookahead) - rows.q, axis=1))
    residual = np.median(fit.residuals)
    if residual > MAX_RELATIVE_RESIDUAL * lead:
        raise NotIdentified(
            f"the setpoints come no closer than {residual:.2g} rad to the path of the commands: "
            "the motion was not made by servoj, or not with these commands"
        )
    # The uncertainty of the tuning is not judged here: split cycles mislead this fit, and
    # `find_calls` refines it.
    return fit


def locate_setpoints(motion: TargetMotion, tuning: Tuning, commands: Array) -> tuple[Array, Array]:
    """Locate the setpoint of each row along the commands.

    Args:
        motion: Joint targets in T rows.
        tuning: Tuning of servoj.
        commands: Commands (K, n), rad.

    Returns:
        The position of each setpoint along the commands (T,), as a fractional index: 3.25 is a
        quarter of the way from command 3 to command 4. And its distance from their path (T,), rad.
    """
    path = CommandPath.of_commands(commands)
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    segment = path.follow(setpoints)
    projection, fraction = path.project(setpoints, segment)
    return path.index[segment] + fraction, np.linalg.norm(setpoints - projection, axis=1)


def _search_start(rows: TargetMotion, path: CommandPath, coarse: CommandPath) -> InitialTuning:
    """Improve the likeliest tunings of a grid, and return the best one.

    Args:
        rows: Some rows in which the arm moves.
        path: Path of all commands.
        coarse: Path of some of the commands, by which the tunings of the grid are sorted.
    """

    def median_distance(pair: TuningPair) -> float:
        """Return the median distance of the setpoints from the coarse path, rad."""
        setpoints = rows.setpoints(1.0 / pair[0], pair[1])
        projections, _ = coarse.project(setpoints, coarse.nearest(setpoints))
        return float(np.median(np.linalg.norm(setpoints - projections, axis=1)))

    grid = [
        (1.0 / gain, lookahead)
        for gain in np.geomspace(*GAIN_RANGE, TRIED_VALUES)
        for lookahead in np.geomspace(*LOOKAHEAD_RANGE, TRIED_VALUES)
    ]
    grid.sort(key=median_distance)

    best: InitialTuning | None = None
    for grid_pair in grid[:MAX_STARTS]:
        pair = grid_pair
        for percentile in (MEDIAN, LOWER_QUARTILE):
            pair, fit = _iterate(rows, path, pair, percentile)

        quartile = float(np.percentile(fit.residuals, LOWER_QUARTILE))
        if best is None or quartile < best.quartile:
            best = InitialTuning(quartile, pair)
        if quartile < ROUNDING:
            break
    assert best is not None
    return best


def _iterate(
    rows: TargetMotion, path: CommandPath, pair: TuningPair, percentile: float
) -> tuple[TuningPair, Tuning]:
    """Fit X and Y by iterated projection.

    Each round projects the setpoints onto the nearest segments of the path, and fits X and Y to the
    components normal to them.

    Args:
        rows: Joint targets of the rows to fit.
        path: Path of the commands.
        pair: X and Y to start from.
        percentile: Percentile of the residuals that scales the weights of the rows.

    Returns:
        X and Y, and the tuning that they amount to.
    """
    setpoints = rows.setpoints(1.0 / pair[0], pair[1])
    segments = path.nearest(setpoints)

    for _ in range(MAX_ROUNDS):
        projection, _ = path.project(setpoints, segments)
        direction = path.step[segments] / np.sqrt(path.squared_length[segments])[:, None]
        x = _normal_component(rows.qdd, direction)
        y = _normal_component(rows.qd_before, direction)
        target = _normal_component(projection - rows.q_before, direction)
        if np.abs(y).max() < MIN_NORMAL_FRACTION * np.abs(rows.qd_before).max():
            raise NotIdentified(
                "the commands lie on one straight line, as when a single joint moves"
            )

        before = pair
        pair, deviation, residuals = _improve_pair(x, y, target, start=pair, percentile=percentile)
        # Stay in the range of the search: steps far beyond what servoj accepts would not return.
        pair = (float(np.clip(pair[0], *X_RANGE)), float(np.clip(pair[1], *Y_RANGE)))

        x_settled = abs(pair[0] / before[0] - 1.0) < CONVERGED
        y_settled = abs(pair[1] / before[1] - 1.0) < CONVERGED
        if x_settled and y_settled:
            break

        setpoints = rows.setpoints(1.0 / pair[0], pair[1])
        segments = path.nearest_around(setpoints, segments)

    return pair, tuning_of_pair(pair, deviation, residuals)


def _normal_component(vectors: Array, direction: Array) -> Array:
    """Return the components of vectors (R, n) normal to unit vectors (R, n)."""
    normal: Array = vectors - (vectors * direction).sum(axis=1)[:, None] * direction
    return normal


def _improve_pair(
    x: Array, y: Array, target: Array, *, start: TuningPair, percentile: float
) -> PairStep:
    """Make one least-squares step for X x + Y y = target, with a Cauchy weight for each row.

    Args:
        x: Coefficients of X (R, n).
        y: Coefficients of Y (R, n).
        target: Right-hand sides (R, n), rad.
        start: X and Y whose residuals give the weights.
        percentile: Percentile of the residuals that scales the weights: a low one singles out the
            rows that obey the law exactly.

    Raises:
        NotIdentified: The motion does not separate X from Y.
    """
    residuals = np.linalg.norm(target - start[0] * x - start[1] * y, axis=1)
    scale = max(float(np.percentile(residuals, percentile)), LEAST_RESIDUAL)
    weights = cauchy_weights(residuals, scale)

    # The normal equations of X x + Y y = r, with r the target.
    xx = (weights[:, None] * x * x).sum()
    xy = (weights[:, None] * x * y).sum()
    yy = (weights[:, None] * y * y).sum()
    xr = (weights[:, None] * x * target).sum()
    yr = (weights[:, None] * y * target).sum()
    determinant = xx * yy - xy * xy
    # The comparison is false for NaN, too.
    if not determinant > MIN_DETERMINANT * xx * yy:
        raise NotIdentified("acceleration and velocity are proportional in this motion")

    pair = solve_pair(xx, xy, yy, xr, yr)

    # The deviations of X and Y follow from the variance of what remains.
    remainder = target - pair[0] * x - pair[1] * y
    degrees_of_freedom = max(weights.sum() * x.shape[1] - 2.0, 1.0)
    variance = (weights[:, None] * remainder * remainder).sum() / degrees_of_freedom
    # The inverse of the normal matrix [[xx, xy], [xy, yy]] has yy and xx on its diagonal, divided
    # by the determinant.
    deviation = np.sqrt(variance * np.array([yy, xx]) / determinant)
    return PairStep(pair, deviation, np.linalg.norm(remainder, axis=1))
