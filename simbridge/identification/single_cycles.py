"""Identifies the tuning of servoj without the commands, from single cycles that held a setpoint.

A program that streams commands now and then misses a cycle. For that cycle alone the setpoint
stands still, so that two successive rows reveal the same one:

    change of q' + X change of qdd + Y change of qd' = 0,    X = 1 / gain,  Y = lookahead

with q' and qd' one cycle before each row. Six joints give six equations for two unknowns. No two
rows prove it, since smooth motions come close now and then; but the pairs that held a setpoint all
agree on one tuning, and others do not agree. servoL, which obeys the same law, shows its tuning in
this way, too.

A cycle is split if a call of servoj ends inside it: the controller then takes two steps of the law
in that cycle, and the equation holds only roughly. Pairs with a split cycle are left out where the
recorded digits show it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.held import MAX_CYCLE_DIFFERENCE, find_split_cycles, shows_splits
from simbridge.identification.robust import cauchy_weights, solve_pair
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning, tuning_of_pair
from simbridge.robot.pose import Array, Flags
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# Largest change of a setpoint that stands still, in units of the resolution of the recorded digits.
MAX_DIGITS = 3.0
# Smallest change of the position between the rows of a pair, in the same unit.
MIN_MOVEMENT_DIGITS = 20.0
# Smallest determinant of a pair's normal equations, relative to the product of their diagonal.
MIN_DETERMINANT = 1e-3
# How far a pair's tuning may exceed the range that servoj accepts, relative to the range's edge.
RANGE_TOLERANCE = 0.1
# Largest number of pairs whose tuning is tried.
MAX_TRIED_PAIRS = 2000
# Smallest number of pairs that must agree on a tuning.
MIN_AGREEING = 12
# Smallest ratio of that number to the number that agree on another tuning.
MIN_RIVAL_RATIO = 3.0
# Relative difference from which on another gain or lookahead is a rival: single pairs are uncertain
# by several percent.
RIVAL_GAIN = 0.25
RIVAL_LOOKAHEAD = 0.1
# Rounds of reweighting in the final fit.
ROUNDS = 20
# Standard deviation of a normal distribution in units of its median absolute deviation.
MAD_TO_DEVIATION = 1.4826
# Relative deviations of gain and lookahead where digits are too coarse to show split cycles: if all
# were split, the tuning would be wrong by as much (1944 and 0.0304 instead of 2000 and 0.03).
UNSEEN_SPLIT_GAIN = 0.03
UNSEEN_SPLIT_LOOKAHEAD = 0.015


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Changes from each of P rows to the next, one cycle later.

    Attributes:
        x: Changes of the acceleration (P, n), the factors of X, rad/s^2.
        y: Changes of the velocity one cycle before (P, n), the factors of Y, rad/s.
        target: What X x + Y y is if the setpoint stood still (P, n), rad.
    """

    x: Array
    y: Array
    target: Array

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, pairs: Flags) -> RowPairs:
        return RowPairs(self.x[pairs], self.y[pairs], self.target[pairs])

    def changes(self, tuning: Array) -> Array:
        """Return how far the setpoint of each pair moved (P,), rad.

        Args:
            tuning: X, s^2, and Y, s (2,), of all pairs, or of each pair (P, 2).
        """
        x_factor = tuning[..., :1]
        y_factor = tuning[..., 1:]
        return np.linalg.norm(x_factor * self.x + y_factor * self.y - self.target, axis=1)

    def solve_each(self) -> tuple[Array, Flags]:
        """Return the tuning with which each pair's setpoint moved least.

        Returns:
            X, s^2, and Y, s, of each pair (P, 2), and whether the pair determines them (P,).
        """
        xx = (self.x * self.x).sum(axis=1)
        xy = (self.x * self.y).sum(axis=1)
        yy = (self.y * self.y).sum(axis=1)
        xr = (self.x * self.target).sum(axis=1)
        yr = (self.y * self.target).sum(axis=1)

        determinant = xx * yy - xy * xy
        is_solvable = determinant > MIN_DETERMINANT * xx * yy
        divisor = np.where(is_solvable, determinant, 1.0)
        tunings = np.stack([yy * xr - xy * yr, xx * yr - xy * xr], axis=1)
        return tunings / divisor[:, np.newaxis], is_solvable


def fit_to_single_cycles(motion: TargetMotion) -> Tuning:
    """Fit the tuning with which the setpoint stood still in single cycles of the recording.

    Its deviation is the spread of the tunings of single pairs of rows, not that of their mean: a
    setpoint that crept in these cycles would shift all of them alike.

    Raises:
        NotIdentified: Too few pairs of rows agree on a tuning, or they agree on several.
    """
    # The resolution of a setpoint depends on the tuning, which is not known yet. Any tuning serves:
    # X and Y are so small that the digits of the position dominate.
    resolution = float(motion.setpoint_resolution(1.0 / GAIN_RANGE[0], LOOKAHEAD_RANGE[0]))
    pairs = _pairs_of_rows(motion, MIN_MOVEMENT_DIGITS * resolution)
    tunings, is_solvable = pairs.solve_each()
    pairs = pairs[is_solvable]
    tunings = tunings[is_solvable]

    # Each pair that may have held its setpoint proposes its tuning. It may have if the setpoint
    # moved by no more than the digits show under the pair's own tuning.
    bound = MAX_DIGITS * resolution
    may_have_held = pairs.changes(tunings) < bound
    proposals = tunings[_is_accepted(tunings) & may_have_held][:MAX_TRIED_PAIRS]

    # Choose the proposal under which most pairs held their setpoints, and fit it to these.
    agreeing = np.array([(pairs.changes(tuning) < bound).sum() for tuning in proposals])
    best = _choose_tuning(proposals, agreeing)
    held = pairs.changes(best) < bound
    fit, residuals = _fit_tuning(pairs[held], best)
    spread = _spread_of_tunings(tunings[held], fit)

    # Where the digits show no split cycles, any of these pairs may have one: allow for the error of
    # a recording in which all cycles are split.
    if not shows_splits(motion):
        least = np.array([UNSEEN_SPLIT_GAIN, UNSEEN_SPLIT_LOOKAHEAD])
        spread = np.maximum(spread, least * fit)
    return tuning_of_pair((float(fit[0]), float(fit[1])), spread, residuals)


def _pairs_of_rows(motion: TargetMotion, min_movement: float) -> RowPairs:
    """Return the pairs of successive rows that are one cycle apart and move far enough, rad."""
    is_split = find_split_cycles(motion)
    is_whole = ~(is_split[1:] | is_split[:-1])
    span = np.diff(motion.times)
    is_cycle = np.abs(span - motion.cycle) < MAX_CYCLE_DIFFERENCE * motion.cycle

    movement = np.diff(motion.q_before, axis=0)
    is_moving = np.linalg.norm(movement, axis=1) > min_movement
    used = is_whole & is_cycle & is_moving
    return RowPairs(
        x=np.diff(motion.qdd, axis=0)[used],
        y=np.diff(motion.qd_before, axis=0)[used],
        target=-movement[used],
    )


def _is_accepted(tunings: Array) -> Flags:
    """Return which tunings X and Y (P, 2) are of a gain and lookahead that servoj accepts."""
    low = np.array([1.0 / GAIN_RANGE[1], LOOKAHEAD_RANGE[0]])
    high = np.array([1.0 / GAIN_RANGE[0], LOOKAHEAD_RANGE[1]])
    is_high_enough = tunings > (1.0 - RANGE_TOLERANCE) * low
    is_low_enough = tunings < (1.0 + RANGE_TOLERANCE) * high
    return np.asarray((is_high_enough & is_low_enough).all(axis=1))


def _choose_tuning(proposals: Array, agreeing: Array) -> Array:
    """Return the tuning on which most pairs of rows agree.

    Args:
        proposals: Proposed X and Y (P, 2).
        agreeing: Number of pairs that agree on each proposal (P,).

    Raises:
        NotIdentified: Too few pairs agree on the tuning, or about as many agree on another one.
    """
    if not len(agreeing) or agreeing.max() < MIN_AGREEING:
        raise NotIdentified(
            "too few successive rows reveal the same setpoint while the arm moved: no command was "
            "held, not even for a cycle"
        )

    # Tunings that clearly differ from the best one must have far fewer agreeing pairs.
    best: Array = proposals[int(np.argmax(agreeing))]
    difference = np.abs(proposals / best - 1.0)
    is_rival = (difference > [RIVAL_GAIN, RIVAL_LOOKAHEAD]).any(axis=1)
    most_rivals = int(agreeing[is_rival].max(initial=0))
    if agreeing.max() < MIN_RIVAL_RATIO * most_rivals:
        raise NotIdentified(
            f"successive rows reveal the same setpoint with several tunings: {agreeing.max()} "
            f"pairs agree on one, but {most_rivals} on another"
        )
    return best


def _fit_tuning(pairs: RowPairs, start: Array) -> tuple[Array, Array]:
    """Fit one tuning to pairs that held their setpoints, with Cauchy weights.

    Args:
        pairs: The pairs.
        start: X and Y to start from (2,).

    Returns:
        X and Y (2,), and how far each pair's setpoint moved (P,), rad.
    """
    fit = start
    for _ in range(ROUNDS):
        residuals = pairs.changes(fit)
        weights = cauchy_weights(residuals, float(np.median(residuals)))[:, np.newaxis]
        xx = (weights * pairs.x * pairs.x).sum()
        xy = (weights * pairs.x * pairs.y).sum()
        yy = (weights * pairs.y * pairs.y).sum()
        xr = (weights * pairs.x * pairs.target).sum()
        yr = (weights * pairs.y * pairs.target).sum()
        fit = np.array(solve_pair(xx, xy, yy, xr, yr))
    return fit, pairs.changes(fit)


def _spread_of_tunings(tunings: Array, fit: Array) -> Array:
    """Return the standard deviation (2,) of single pairs' X and Y (P, 2) around a fit."""
    spread: Array = MAD_TO_DEVIATION * np.median(np.abs(tunings - fit), axis=0)
    return spread
