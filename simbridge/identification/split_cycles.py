"""Tells from successive rows whether the end of a call split the recorded cycles.

If every recorded cycle is split in the same way, single rows fit a wrong tuning exactly. How rows
follow one another reveals the splits. While a command c is held, the state (q - c, qd) of a joint
in a row is a 2 x 2 matrix times its state in an earlier row. This matrix, the transition, is a
product of one matrix for each step of the servo law in between. It is fitted to the recorded rows
and compared with that of whole cycles and with those of split ones.
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

# Largest number of cycles between the two rows of a pair.
MAX_CYCLES_APART = 20
# Smallest number of pairs of rows for a transition.
MIN_PAIRS = 4
# Size of a joint's state below which the joint is at rest, relative to the largest state.
REST_FRACTION = 1e-3
# Rounds of reweighting in the fit of a transition.
ROUNDS = 10
# Smallest size of a state or of a residual that is used as a divisor.
LEAST_SIZE = 1e-15

# Relative misfit of a transition below which the recording is exact: only rounding remains.
EXACT_MISFIT = 1e-9
# Largest relative misfit of a transition that is used.
MAX_MISFIT = 5e-3
# Largest relative misfit per residual of the tuning, 1/rad: both come from the recorded digits.
MISFIT_PER_RESIDUAL = 2000.0
# In an exact recording, matrices agree up to this many misfits ...
EXACT_MISFITS = 1e3
# ... and this rounding.
MATRIX_ROUNDING = 1e-11
# In any other recording, the matrix of whole cycles agrees up to this many misfits. That is
# stricter than the tolerance of split cycles, so that a split is not overlooked.
ROUGH_MISFITS = 0.3
# Relative error of the gain up to which splits do no harm.
HARMLESS_GAIN_ERROR = 2e-3

# Durations of the last step of a split cycle that the search starts from, as fractions of a cycle.
START_FRACTIONS = (0.2, 0.5, 0.8)
# Number of Gauss-Newton steps.
NEWTON_STEPS = 25
# Step of the numerical derivatives, relative to each unknown.
DERIVATIVE_STEP = 1e-6
# Largest step of the search, relative to each unknown.
MAX_STEP = 0.2
# Singular values of the derivatives up to this fraction of the largest count as zero.
LEAST_SINGULAR_VALUE = 1e-10
# Shortest last step of a split cycle, as a fraction of the cycle.
MIN_STEP_FRACTION = 0.01
# Longest last step of a split cycle, as a fraction of the cycle.
MAX_STEP_FRACTION = 0.99


class HeldSpan(NamedTuple):
    """Successive rows in which one command was held.

    Attributes:
        rows: The rows, as a slice of the recording.
        command: The held command (n,), rad.
    """

    rows: slice
    command: Array


class Transition(NamedTuple):
    """A linear map from the state of a joint in a row to its state in a later row.

    Attributes:
        matrix: The matrix that maps the earlier state to the later one (2, 2).
        misfit: Median error of the later states, relative to the median size of a state.
    """

    matrix: Array
    misfit: float

    @property
    def is_exact(self) -> bool:
        """True if the matrix explains the rows to rounding."""
        return self.misfit < EXACT_MISFIT

    @property
    def tolerance(self) -> float:
        """Largest difference (Frobenius norm) between this matrix and the one that explains it."""
        if self.is_exact:
            return EXACT_MISFITS * self.misfit + MATRIX_ROUNDING
        return self.misfit


class SplitTuning(NamedTuple):
    """A tuning that explains a transition by split cycles.

    Attributes:
        distance: Difference (Frobenius norm) between its matrix and that of the transition.
        tuning: The tuning.
    """

    distance: float
    tuning: Tuning


@dataclass(frozen=True)
class Interval:
    """The cycles between an earlier and a later row.

    Attributes:
        cycle: Length of a cycle, s.
        count: Number of cycles.
        velocity_scale: What velocities are divided by in states, 1/s; it gives them about the size
            of the positions.
    """

    cycle: float
    count: int
    velocity_scale: float

    def matrix(
        self, gain: float, lookahead: float, *, split: Counts | None = None, last_step: float = 0.0
    ) -> Array:
        """Return the matrix (2, 2) that maps the state before the interval to that after it.

        Args:
            gain: Gain of servoj, 1/s^2.
            lookahead: Lookahead of servoj, s.
            split: Numbers of the cycles that consist of two steps, from 0; None if all are whole.
            last_step: Duration of the second step of a split cycle, s.
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
        """Return the matrix (2, 2) of one step of the servo law, of a duration, s."""
        damping = 1.0 - duration * gain * lookahead
        velocity_row = np.array([-duration * gain / self.velocity_scale, damping])
        position_row = np.array([1.0, 0.0]) + duration * self.velocity_scale * velocity_row
        return np.array([position_row, velocity_row])


def confirm_tuning(
    motion: TargetMotion, tuning: Tuning, spans: Sequence[HeldSpan]
) -> Tuning | None:
    """Confirm or correct a tuning by how rows follow one another.

    Args:
        motion: The recorded joint targets.
        tuning: The tuning that was identified on the assumption that cycles are whole.
        spans: Successive rows in which a command was held.

    Returns:
        The confirmed or corrected tuning; None if the rows do not show whether cycles were split.

    Raises:
        NotIdentified: Every cycle was split, and the recording is not exact enough to correct that.
    """
    # Velocities are divided by this scale, 1/s, which gives them about the size of the positions.
    velocity_scale = float(np.sqrt(tuning.gain))

    # A transition is used if its misfit can come from the recorded digits, as the residual does.
    residual = float(np.median(tuning.residuals))
    max_misfit = min(max(MISFIT_PER_RESIDUAL * residual, EXACT_MISFIT), MAX_MISFIT)

    # The states (R, n, 2) of each span, and the numbers of its rows' cycles (R,).
    states = [
        np.stack(
            [motion.q[span.rows] - span.command, motion.qd[span.rows] / velocity_scale], axis=2
        )
        for span in spans
    ]
    time = motion.times - motion.times[0]
    cycles = [np.round(time[span.rows] / motion.cycle).astype(int) for span in spans]

    # The first distance of rows whose transition can be explained decides.
    for cycles_apart in range(1, MAX_CYCLES_APART + 1):
        pairs = _pair_rows(cycles, cycles_apart)
        if len(pairs) < MIN_PAIRS:
            continue
        earlier = np.concatenate([states[pair.span][pair.earlier] for pair in pairs])
        later = np.concatenate([states[pair.span][pair.later] for pair in pairs])
        transition = _fit_transition(earlier, later)
        if transition.misfit > max_misfit:
            continue

        interval = Interval(motion.cycle, cycles_apart, velocity_scale)
        confirmed = _explain_transition(transition, tuning, interval)
        if confirmed is not None:
            return confirmed
    return None


class _RowPair(NamedTuple):
    """Two rows of one span, some cycles apart.

    Attributes:
        span: Index of the span.
        earlier: Index of the earlier row in the span.
        later: Index of the later row in the span.
        place: Place of the earlier row's cycle in the repetition of calls: the number of the cycle
            modulo the number of cycles between the rows.
    """

    span: int
    earlier: int
    later: int
    place: int


def _pair_rows(cycles: Sequence[Counts], cycles_apart: int) -> list[_RowPair]:
    """Return pairs of rows that are some cycles apart and probably have one transition.

    The transition repeats with the calls. If the cycles between the rows are a multiple of a call,
    all pairs with the same place have the same transition. The pairs with the most frequent place
    are returned.

    Args:
        cycles: Numbers of the cycles of each span's rows (R,).
        cycles_apart: Number of cycles between the rows of a pair.
    """
    pairs = []
    for span, numbers in enumerate(cycles):
        for earlier, later in enumerate(np.searchsorted(numbers, numbers + cycles_apart)):
            if later < len(numbers) and numbers[later] == numbers[earlier] + cycles_apart:
                place = int(numbers[earlier]) % cycles_apart
                pairs.append(_RowPair(span, earlier, int(later), place))

    usual_place = np.bincount([pair.place for pair in pairs], minlength=1).argmax()
    return [pair for pair in pairs if pair.place == usual_place]


def _fit_transition(earlier: Array, later: Array) -> Transition:
    """Fit the transition from earlier states to later ones by reweighted least squares.

    Args:
        earlier: States of single joints in the earlier rows (S, 2).
        later: States of the same joints in the later rows (S, 2).
    """
    # Leave out joints at rest, whose states fit any matrix.
    size = np.linalg.norm(earlier, axis=1)
    moving = size > REST_FRACTION * size.max()
    earlier = earlier[moving]
    later = later[moving]

    weights = np.ones(len(earlier))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)[:, None]
        matrix = np.linalg.lstsq(earlier * root, later * root, rcond=None)[0].T
        residuals = np.linalg.norm(later - earlier @ matrix.T, axis=1)
        weights = cauchy_weights(residuals, max(float(np.median(residuals)), LEAST_SIZE))

    median_size = max(float(np.median(np.linalg.norm(earlier, axis=1))), LEAST_SIZE)
    return Transition(matrix, float(np.median(residuals) / median_size))


def _explain_transition(
    transition: Transition, tuning: Tuning, interval: Interval
) -> Tuning | None:
    """Return the tuning with which the servo law makes a transition.

    Args:
        transition: The transition, as fitted to the recorded rows.
        tuning: The tuning that was identified on the assumption that cycles are whole.
        interval: The cycles between the rows.

    Returns:
        The tuning itself if whole cycles explain the transition; a corrected one, or one with a
        larger deviation, if split cycles do; None if neither does.

    Raises:
        NotIdentified: Cycles were split, but the recording is not exact enough to correct that.
    """
    # Try whole cycles.
    matrix = interval.matrix(tuning.gain, tuning.lookahead)
    tolerance = transition.tolerance if transition.is_exact else ROUGH_MISFITS * transition.misfit
    if np.linalg.norm(matrix - transition.matrix) < tolerance:
        return tuning

    # Try split cycles.
    candidates = [
        candidate
        for candidate in _split_tunings(transition, tuning, interval)
        if candidate.distance < transition.tolerance
    ]
    if not candidates:
        return None
    corrected = min(candidates, key=lambda candidate: candidate.distance).tuning
    if transition.is_exact:
        return corrected

    # The digits of the recording do not show the split well enough to correct its effect on the
    # tuning. A large effect is refused; a small one is added to the deviations.
    if abs(corrected.gain / tuning.gain - 1.0) >= HARMLESS_GAIN_ERROR:
        raise NotIdentified(
            "commands were held while the arm moved, but every cycle was split by the end of a call"
        )
    effect = corrected.values - tuning.values
    return replace(tuning, deviation=np.hypot(tuning.deviation, effect))


def _split_tunings(
    transition: Transition, tuning: Tuning, interval: Interval
) -> Iterator[SplitTuning]:
    """Yield tunings that explain a transition by split cycles.

    All regular patterns of splits are tried: every p-th cycle is split, from cycle f on.
    """
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
    """Match the matrix of split cycles to a transition, by Gauss-Newton steps.

    Args:
        transition: The transition to match.
        tuning: The tuning to start from.
        interval: The cycles of the transition.
        split: Numbers of the cycles that are split.
        start: Duration of the last step of a split cycle to start from, s.

    Returns:
        The matched tuning; None if the search leaves the range in which a cycle can be split.
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
        change = np.linalg.lstsq(slopes, missing, rcond=LEAST_SINGULAR_VALUE)[0] * steps
        unknowns = unknowns + np.clip(change, -limit, limit)

        is_within_cycle = MIN_STEP_FRACTION * cycle < unknowns[2] < MAX_STEP_FRACTION * cycle
        if not is_within_cycle or unknowns[:2].min() <= 0.0:
            return None

    distance = float(np.linalg.norm(matrix(unknowns) - transition.matrix))
    gain = float(unknowns[0])
    lookahead = float(unknowns[1])
    return SplitTuning(distance, replace(tuning, gain=gain, lookahead=lookahead))
