"""The tuning of servoj from the path of the commands.

With q' = q - h qd and qd' = qd - h qdd, the state one cycle before, the servo law reads

    s = q' + X qdd + Y qd',    X = 1 / gain,  Y = lookahead

in every cycle of length h that was not split by the end of a call. The setpoint s is on the
straight line between two successive commands, which is linear in X and Y.
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

# X and Y.
TuningPair = tuple[float, float]

# Rows in which the arm moves that a fit needs.
MIN_ROWS = 20
# Rows that the search for a first tuning looks at, and that the fit uses, at most.
MAX_SEARCHED_ROWS = 120
MAX_FITTED_ROWS = 1000
# Gains, and lookaheads, that the search tries.
TRIED_VALUES = 5
# How many of the first tunings are improved.
MAX_STARTS = 12
# The search ends when a quarter of the rows obey to this, rad.
ROUNDING = 1e-9
# Residuals of a fit at most, relative to how far the setpoints lead.
MAX_RELATIVE_RESIDUAL = 0.02

# Percentiles of the residuals that scale their weights, one after the other. A low one finds the
# rows that obey exactly; a minimum in which none do is not the last word.
PERCENTILES = (50.0, 25.0)
# Rounds of projecting and fitting, and the relative change that ends them.
MAX_ROUNDS = 60
CONVERGED = 1e-7
# Bounds of X, s^2, and Y, s, in the search: a little more than servoj accepts.
X_RANGE = (0.8 / GAIN_RANGE[1], 1.25 / GAIN_RANGE[0])
Y_RANGE = (0.8 * LOOKAHEAD_RANGE[0], 1.25 * LOOKAHEAD_RANGE[1])


class PairStep(NamedTuple):
    """A step of the fit of X and Y.

    Attributes:
        pair: X, s^2, and Y, s.
        deviation: One standard deviation of both (2,).
        residuals: Residual of each row (R,), rad, after the step.
    """

    pair: TuningPair
    deviation: Array
    residuals: Array


class InitialTuning(NamedTuple):
    """A tuning that the final fit may begin from.

    Attributes:
        quartile: Lower quartile of the searched rows' residuals, rad.
        pair: X, s^2, and Y, s.
    """

    quartile: float
    pair: TuningPair


def fit_to_path(motion: TargetMotion, commands: Array) -> Tuning:
    """Fit the tuning with which the setpoints lie on the path of the commands.

    When they were sent does not matter.

    Args:
        motion: The controller's joint targets.
        commands: Commands (K, n), rad.

    Raises:
        NotIdentified: With the reason.
    """
    rows = motion[motion.moving]
    if len(rows) < MIN_ROWS:
        raise NotIdentified("the arm does not move")

    path = CommandPath.of_commands(commands)
    coarse = CommandPath.of_commands(commands[:: 1 + len(commands) // COARSE_SEGMENTS])
    start = _search_start(rows[spread_rows(len(rows), MAX_SEARCHED_ROWS)], path, coarse)

    # The final fit; the start is kept where the median misleads it.
    fitted_rows = rows[spread_rows(len(rows), MAX_FITTED_ROWS)]
    pair, fit = _iterate(fitted_rows, path, start.pair, PERCENTILES[0])
    if np.percentile(fit.residuals, 25.0) > start.quartile * 10.0 + ROUNDING:
        pair = start.pair
    pair, fit = _iterate(fitted_rows, path, pair, PERCENTILES[1])

    lead = np.median(np.linalg.norm(rows.setpoints(fit.gain, fit.lookahead) - rows.q, axis=1))
    residual = np.median(fit.residuals)
    if residual > MAX_RELATIVE_RESIDUAL * lead:
        raise NotIdentified(
            f"the setpoints come no closer than {residual:.2g} rad to the path of the commands: "
            "the motion was not made by servoj, or not with these commands"
        )
    # The first search is not accurate where splits mislead it: what is uncertain is judged after
    # the timing.
    return fit


def along(motion: TargetMotion, tuning: Tuning, commands: Array) -> tuple[Array, Array]:
    """Locate each row's setpoint along the commands.

    Args:
        motion: T rows.
        tuning: Tuning of servoj.
        commands: Commands (K, n), rad.

    Returns:
        Where it is along the commands (T,): 3.25 is a quarter of the way from command 3 to command
        4. And how far from their path it is (T,), rad.
    """
    path = CommandPath.of_commands(commands)
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    segment = path.follow(setpoints)
    projection, fraction = path.project(setpoints, segment)
    return path.index[segment] + fraction, np.linalg.norm(setpoints - projection, axis=1)


def _search_start(rows: TargetMotion, path: CommandPath, coarse: CommandPath) -> InitialTuning:
    """Return the best tuning that begins from a grid of tunings.

    Args:
        rows: A few in which the arm moves.
        path: Path of all commands.
        coarse: Path of some commands, to sort the grid.
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
        for percentile in PERCENTILES:
            pair, fit = _iterate(rows, path, pair, percentile)

        quartile = float(np.percentile(fit.residuals, 25.0))
        if best is None or quartile < best.quartile:
            best = InitialTuning(quartile, pair)
        if quartile < ROUNDING:
            break
    assert best is not None
    return best


def _iterate(
    rows: TargetMotion, path: CommandPath, pair: TuningPair, percentile: float
) -> tuple[TuningPair, Tuning]:
    """Project on the nearest segments, fit the components normal to them, and repeat.

    Args:
        rows: To fit.
        path: Path of the commands.
        pair: X and Y to begin from.
        percentile: Percentile of the residuals, which scales their weights.

    Returns:
        X and Y, and the same as a tuning.
    """
    setpoints = rows.setpoints(1.0 / pair[0], pair[1])
    segments = path.nearest(setpoints)

    for _ in range(MAX_ROUNDS):
        projection, _ = path.project(setpoints, segments)
        direction = path.step[segments] / np.sqrt(path.squared_length[segments])[:, None]
        x = _normal_component(rows.qdd, direction)
        y = _normal_component(rows.qd_before, direction)
        target = _normal_component(projection - rows.q_before, direction)
        if np.abs(y).max() < 1e-6 * np.abs(rows.qd_before).max():
            raise NotIdentified(
                "the commands lie on one straight line, as when a single joint moves"
            )

        before = pair
        pair, deviation, residuals = _improve_pair(x, y, target, start=pair, percentile=percentile)
        # A step beyond what servoj accepts would not come back.
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
    """Make one reweighted least-squares step for X x + Y y = target, with Cauchy weights a row.

    Args:
        x: Coefficients of X (R, n).
        y: Coefficients of Y (R, n).
        target: What x X + y Y is to be (R, n).
        start: X and Y that the weights are from.
        percentile: Percentile of the residuals that scales the weights: a low one finds the rows
            that obey exactly.
    """
    residuals = np.linalg.norm(target - start[0] * x - start[1] * y, axis=1)
    scale = max(float(np.percentile(residuals, percentile)), 1e-15)
    weights = cauchy_weights(residuals, scale)

    xx = (weights[:, None] * x * x).sum()
    xy = (weights[:, None] * x * y).sum()
    yy = (weights[:, None] * y * y).sum()
    xr = (weights[:, None] * x * target).sum()
    yr = (weights[:, None] * y * target).sum()
    determinant = xx * yy - xy * xy
    if not determinant > 1e-12 * xx * yy:
        raise NotIdentified("acceleration and velocity are proportional in this motion")

    pair = solve_pair(xx, xy, yy, xr, yr)
    remainder = target - pair[0] * x - pair[1] * y
    degrees_of_freedom = max(weights.sum() * x.shape[1] - 2.0, 1.0)
    variance = (weights[:, None] * remainder * remainder).sum() / degrees_of_freedom
    deviation = np.sqrt(variance * np.array([yy, xx]) / determinant)
    return PairStep(pair, deviation, np.linalg.norm(remainder, axis=1))
