"""Tells from successive rows whether the end of a call split the recorded cycles.

Where every recorded cycle is split alike, single rows fit a wrong tuning exactly. While a command c
is held, a row's state (q - c, qd) is a 2 x 2 matrix times the state of an earlier row: a product of
steps of the law. That matrix shows the splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from simbridge.identification.robust import cauchy_weights
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning
from simbridge.robot.pose import Array, Counts

# How many cycles apart related rows are, at most.
MAX_CYCLES_APART = 20
# Pairs of rows that a matrix needs.
MIN_PAIRS = 4
# A joint whose state is smaller than this, relative to the largest one, is at rest.
REST_FRACTION = 1e-3

# What a matrix leaves of the rows, relative, in an exact file, and at most.
EXACT_MISFIT = 1e-9
MAX_MISFIT = 5e-3
# What it leaves, relative, for each rad that the tuning leaves of setpoints (digits), at most,
# 1/rad.
MISFIT_PER_RESIDUAL = 2000.0
# In an exact file matrices are equal up to so many misfits, and rounding.
EXACT_MISFITS = 1e3
MATRIX_ROUNDING = 1e-11
# In a rough file the matrix of whole cycles is equal up to so many misfits.
ROUGH_MISFITS = 0.3
# By how much the gain may be off without that a split matters, relative.
HARMLESS_GAIN_ERROR = 2e-3

# Where in a cycle the search for the edge of a call begins: duration of the last step, as a
# fraction.
START_FRACTIONS = (0.2, 0.5, 0.8)
# Steps of Gauss and Newton.
NEWTON_STEPS = 25
# Step of the derivatives, and largest step of the search, relative to each unknown.
DERIVATIVE_STEP = 1e-6
MAX_STEP = 0.2
# The last step of a split cycle lasts at least, and at most, these fractions of it.
MIN_STEP_FRACTION = 0.01
MAX_STEP_FRACTION = 0.99


class HeldSpan(NamedTuple):
    """Successive rows in which one command was held.

    Attributes:
        rows: Which rows.
        command: The command (n,), rad.
    """

    rows: slice
    command: Array


class Transition(NamedTuple):
    """A linear map from the states of rows to those of later rows.

    Attributes:
        matrix: Maps the earlier state to the later one (2, 2).
        misfit: Median of the relative error of the later states.
    """

    matrix: Array
    misfit: float

    @property
    def is_exact(self) -> bool:
        """True if it explains the rows to rounding."""
        return self.misfit < EXACT_MISFIT

    @property
    def tolerance(self) -> float:
        """Largest difference between this matrix and that of a right explanation."""
        return EXACT_MISFITS * self.misfit + MATRIX_ROUNDING if self.is_exact else self.misfit


class SplitTuning(NamedTuple):
    """A tuning that explains a transition by split cycles.

    Attributes:
        distance: Distance of its matrix from that of the transition.
        tuning: The tuning.
    """

    distance: float
    tuning: Tuning


@dataclass(frozen=True)
class Interval:
    """The cycles between an earlier and a later row.

    Attributes:
        cycle: Length of a cycle, s.
        count: How many.
        speed_unit: The unit of velocities in states, 1/s: positions and velocities are about equal
            in it.
    """

    cycle: float
    count: int
    speed_unit: float

    def matrix(
        self, gain: float, lookahead: float, *, split: Counts | None = None, last_step: float = 0.0
    ) -> Array:
        """Return the matrix (2, 2) of the interval.

        Args:
            gain: Gain of servoj, 1/s^2.
            lookahead: Lookahead of servoj, s.
            split: Numbers of the cycles that consist of two steps; None for none.
            last_step: How long the last one of two steps lasts, s.
        """
        whole_cycle = self._step(duration=self.cycle, gain=gain, lookahead=lookahead)
        if split is None:
            split_cycle = whole_cycle
            numbers: set[int] = set()
        else:
            second = self._step(duration=last_step, gain=gain, lookahead=lookahead)
            first = self._step(duration=self.cycle - last_step, gain=gain, lookahead=lookahead)
            split_cycle = second @ first
            numbers = set(split.tolist())

        total: Array = np.eye(2)
        for number in range(self.count):
            total = (split_cycle if number in numbers else whole_cycle) @ total
        return total

    def _step(self, *, duration: float, gain: float, lookahead: float) -> Array:
        """Return the matrix (2, 2) of one step of a duration, s."""
        damping = 1.0 - duration * gain * lookahead
        velocity_row = np.array([-duration * gain / self.speed_unit, damping])
        position_row = np.array([1.0, 0.0]) + duration * self.speed_unit * velocity_row
        return np.array([position_row, velocity_row])


def confirm_tuning(
    motion: TargetMotion, tuning: Tuning, spans: Sequence[HeldSpan]
) -> Tuning | None:
    """Confirm or correct a tuning by how rows follow one another.

    Args:
        motion: The recording.
        tuning: The tuning, as identified as if cycles were whole.
        spans: Rows in which commands were held.

    Returns:
        The tuning; None where the rows do not tell.

    Raises:
        NotIdentified: Every cycle was split, and the recording is not exact enough to correct that.
    """
    speed_unit = float(np.sqrt(tuning.gain))
    residual = float(np.median(tuning.residuals))
    max_misfit = min(max(MISFIT_PER_RESIDUAL * residual, EXACT_MISFIT), MAX_MISFIT)

    # States (R, n, 2) and numbers of cycles (R,) of each span.
    states = [
        np.stack([motion.q[span.rows] - span.command, motion.qd[span.rows] / speed_unit], axis=2)
        for span in spans
    ]
    time = motion.times - motion.times[0]
    cycles = [np.round(time[span.rows] / motion.cycle).astype(int) for span in spans]

    for count in range(1, MAX_CYCLES_APART + 1):
        pairs = _related_rows(cycles, count)
        if len(pairs) < MIN_PAIRS:
            continue
        earlier = np.concatenate([states[pair.span][pair.earlier] for pair in pairs])
        later = np.concatenate([states[pair.span][pair.later] for pair in pairs])
        transition = _fit_transition(earlier, later)
        if transition.misfit > max_misfit:
            continue

        interval = Interval(motion.cycle, count, speed_unit)
        confirmed = _explain_transition(transition, tuning, interval)
        if confirmed is not None:
            return confirmed
    return None


class _RowPair(NamedTuple):
    """Two rows of one span, and where their interval begins in the period of as many cycles."""

    span: int
    earlier: int
    later: int
    begin: int


def _related_rows(cycles: Sequence[Counts], count: int) -> list[_RowPair]:
    """Return the pairs of rows that are `count` cycles apart, and probably related alike.

    They are if that is a multiple of a call, and if their intervals begin alike in it: those that
    begin as most do are returned.
    """
    pairs = []
    for span, numbers in enumerate(cycles):
        for earlier, later in enumerate(np.searchsorted(numbers, numbers + count)):
            if later < len(numbers) and numbers[later] == numbers[earlier] + count:
                pairs.append(_RowPair(span, earlier, int(later), int(numbers[earlier]) % count))

    usual_begin = np.bincount([pair.begin for pair in pairs], minlength=1).argmax()
    return [pair for pair in pairs if pair.begin == usual_begin]


def _fit_transition(earlier: Array, later: Array) -> Transition:
    """Fit the matrix from earlier states (P, 2) to later ones (P, 2)."""
    # Joints at rest fit any matrix.
    size = np.linalg.norm(earlier, axis=1)
    moving = size > REST_FRACTION * size.max()
    earlier = earlier[moving]
    later = later[moving]

    weights = np.ones(len(earlier))
    for _ in range(10):
        root = np.sqrt(weights)[:, None]
        matrix = np.linalg.lstsq(earlier * root, later * root, rcond=None)[0].T
        residuals = np.linalg.norm(later - earlier @ matrix.T, axis=1)
        weights = cauchy_weights(residuals, max(float(np.median(residuals)), 1e-15))

    median_size = max(float(np.median(np.linalg.norm(earlier, axis=1))), 1e-15)
    return Transition(matrix, float(np.median(residuals) / median_size))


def _explain_transition(
    transition: Transition, tuning: Tuning, interval: Interval
) -> Tuning | None:
    """Return the tuning that explains a transition, by whole cycles or by split ones; None if none.

    Raises:
        NotIdentified: Cycles were split, but the file is not exact enough to correct that.
    """
    # Whole cycles.
    matrix = interval.matrix(tuning.gain, tuning.lookahead)
    tolerance = transition.tolerance if transition.is_exact else ROUGH_MISFITS * transition.misfit
    if np.linalg.norm(matrix - transition.matrix) < tolerance:
        return tuning

    # Split cycles.
    candidates = [
        candidate
        for candidate in _split_tunings(transition, tuning, interval)
        if candidate.distance < transition.tolerance
    ]
    if not candidates:
        return None
    best = min(candidates, key=lambda candidate: candidate.distance).tuning
    if transition.is_exact:
        return best

    # The digits of the file do not show the split well enough to correct what it does.
    if abs(best.gain / tuning.gain - 1.0) < HARMLESS_GAIN_ERROR:
        difference = np.array([best.gain - tuning.gain, best.lookahead - tuning.lookahead])
        return replace(tuning, deviation=np.hypot(tuning.deviation, difference))
    raise NotIdentified(
        "commands were held while the arm moved, but every cycle was split by the end of a call"
    )


def _split_tunings(
    transition: Transition, tuning: Tuning, interval: Interval
) -> Iterator[SplitTuning]:
    """Yield tunings with which split cycles give the transition, for all regular ways to split."""
    count = interval.count
    periods = [period for period in range(1, count + 1) if count % period == 0]
    for period in periods:
        for first in range(period):
            split = np.arange(first, count, period)
            for fraction in START_FRACTIONS:
                last_step = fraction * interval.cycle
                candidate = _match_split(transition, tuning, interval, split=split, start=last_step)
                if candidate is not None:
                    yield candidate


def _match_split(
    transition: Transition, tuning: Tuning, interval: Interval, *, split: Counts, start: float
) -> SplitTuning | None:
    """Match the matrix of split cycles to a transition, by Gauss and Newton.

    Args:
        transition: The transition to match.
        tuning: The tuning to begin from.
        interval: Interval of the transition.
        split: Numbers of the cycles that are split.
        start: Duration of the last step of a split cycle to begin from, s.

    Returns:
        None where the search leaves what is possible.
    """
    cycle = interval.cycle
    scales = np.array([tuning.gain, tuning.lookahead, cycle])
    steps = DERIVATIVE_STEP * scales
    limit = MAX_STEP * scales

    def matrix(unknowns: Array) -> Array:
        """Return the matrix for gain, lookahead and duration of the last step."""
        gain, lookahead, last_step = unknowns
        return interval.matrix(gain, lookahead, split=split, last_step=last_step)

    unknowns = np.array([tuning.gain, tuning.lookahead, start])
    for _ in range(NEWTON_STEPS):
        current = matrix(unknowns)
        columns = [(matrix(unknowns + step) - current).ravel() for step in np.diag(steps)]
        slopes = np.stack(columns, axis=1)
        missing = (transition.matrix - current).ravel()
        change = np.linalg.lstsq(slopes, missing, rcond=1e-10)[0] * steps
        unknowns = unknowns + np.clip(change, -limit, limit)

        is_within_cycle = MIN_STEP_FRACTION * cycle < unknowns[2] < MAX_STEP_FRACTION * cycle
        if not is_within_cycle or unknowns[:2].min() <= 0.0:
            return None

    distance = float(np.linalg.norm(matrix(unknowns) - transition.matrix))
    gain = float(unknowns[0])
    lookahead = float(unknowns[1])
    return SplitTuning(distance, replace(tuning, gain=gain, lookahead=lookahead))
