"""Finds the timing of servoj's calls, and refines gain and lookahead with it.

The setpoint advances along the commands by one command per call. Over time its index therefore has
a slope of one per duration of a call, and a call ends wherever the index is a whole number. This
gives a first timing. Then the commands of the calls are searched for under the law, and the law and
its timing are fitted to these commands, in turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.call_search import match_calls
from simbridge.identification.calls import Calls, TimedLaw, reveal_calls, wrap_begin
from simbridge.identification.robust import cauchy_weights, resolution
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.identification.tuning import Tuning
from simbridge.robot.pose import Array, Counts

# Largest number of rows that the search for the timing uses.
MAX_SEARCHED_ROWS = 700
# Number of beginnings of calls that are tried within two cycles.
TRIED_BEGINS = 17
# Largest number of durations of a call that are tried.
MAX_DURATIONS = 4
# Lowest and highest rate of calls that is examined, as fractions of the usual rate.
MIN_RATE_RATIO = 0.6
MAX_RATE_RATIO = 1.7
# Difference between examined rates, in units of 1 / duration of the recording. A peak of the
# agreement reaches about one such unit to each side.
RATE_STEP = 0.2
# Number of rows over which the advance along the commands is measured.
ADVANCE_ROWS = 8
# A pair of rows this many rows apart spans at most this many times the usual time; otherwise a gap
# in the recording lies between them.
MAX_SPAN_RATIO = 1.5
# Smallest number of such pairs of rows, or of rows between two commands, for a median.
MIN_PAIRS = 20
# Distance of a setpoint's index from a whole number above which it lies between two commands.
MIN_BETWEEN = 1e-3

# Largest residual of exactly explained setpoints, in units of the resolution of their digits.
MAX_DIGITS = 10.0
# Rounding that is added to that residual, rad.
ROUNDING = 1e-9
# Largest ratio of the residual with calls to the residual of the first tuning.
MAX_RESIDUAL_RATIO = 2.0
# Durations of calls are set by programs, so they are rounded to multiples of this, s, if the data
# allow it.
DURATION_STEP_S = 1e-5
# A duration is rounded if that changes it by fewer standard deviations than this, ...
AGREEING_DEVIATIONS = 5.0
# ... or by less than this, s.
AGREEING_S = 1e-8

# Scale of the residuals in the cost of a fit, rad.
COST_SCALE = 1e-7
# Numbers of unknowns of a fit: gain, lookahead, begin and duration of the calls, in this order.
ALL_UNKNOWNS = 4
TUNING_AND_BEGIN = 3
TUNING_ALONE = 2
# Calls that begin this close to the edge of a cycle, as a fraction of it, may begin exactly there.
EDGE_FRACTION = 0.05
# How much more a fit with calls that begin on the edge may cost.
EDGE_COST = 0.1
# Difference of a duration from whole cycles that is rounding, as a fraction of a cycle.
WHOLE_CYCLES_TOLERANCE = 1e-6
# Number of Gauss-Newton steps between two searches for commands.
NEWTON_STEPS = 3
# Steps of the numerical derivatives with respect to gain and lookahead (both relative), begin and
# duration (both in s).
DERIVATIVE_STEPS = (1e-6, 1e-6, 1e-8, 1e-10)
# Standard deviation of a rounding error, in units of the resolution: that of even chances.
STANDARD_ROUNDING = 1.0 / np.sqrt(12.0)
# Smallest residual that scales the weights of the rows, rad.
LEAST_RESIDUAL = 1e-12
# Smallest squared length of a column of derivatives that is used as a divisor.
LEAST_SQUARE = 1e-300
# Singular values of the normal equations up to this fraction of the largest count as zero.
LEAST_SINGULAR_VALUE = 1e-12
# Number of blocks of rows from which uncertainties are estimated.
BLOCKS = 20
# Largest change of gain and of lookahead in a step, relative.
MAX_TUNING_STEP = 0.1
# Largest change of the beginning of a call in a step, as a fraction of a cycle.
MAX_BEGIN_STEP = 0.25
# Largest change of the duration of a call in a step, relative.
MAX_DURATION_STEP = 1e-3


@dataclass(frozen=True, eq=False)
class CallFit:
    """The calls of a recording with the law that was fitted to them.

    Attributes:
        calls: The calls, with their law and their commands.
        cost: Mean of log(1 + (residual / COST_SCALE)^2) over the moving rows; lower is better.
        deviation: One standard deviation of gain, lookahead, begin and duration (4,).
        residuals: Residual of each row (T,), rad.
    """

    calls: Calls
    cost: float
    deviation: Array
    residuals: Array

    @property
    def tuning_deviation(self) -> Array:
        """One standard deviation of gain, 1/s^2, and lookahead, s (2,)."""
        return self.deviation[:2]

    @property
    def duration_deviation(self) -> float:
        """One standard deviation of the duration of a call, s."""
        return float(self.deviation[3])


def find_calls(
    motion: TargetMotion, commands: Array, tuning: Tuning, index: Array
) -> tuple[Calls, Tuning]:
    """Find the timing and the command of each call, and refine the tuning.

    Args:
        motion: Joint targets in T rows, whose stamps are multiples of the cycle apart.
        commands: Commands (K, n), rad, in the order in which they were sent.
        tuning: The tuning that was identified from the path of the commands, or from moments in
            which a command was held.
        index: Rough position of each row along the commands (T,), as a fractional index: see
            `locate_setpoints`.

    Returns:
        The calls, and the refined tuning.

    Raises:
        NotIdentified: The setpoints do not follow the commands, or no timing explains them.
    """
    # Residual up to which setpoints are explained exactly, rad.
    max_exact_residual = MAX_DIGITS * _digits(motion, tuning, commands) + ROUNDING

    # Find the timing in the busiest part, and fit it to the whole recording.
    part = _busiest_part(motion)
    part_motion = motion[part]
    start = _search_timing(
        part_motion,
        commands,
        tuning,
        index=index[part],
        max_exact_residual=max_exact_residual,
    )
    law, is_rounded = _round_duration(start)
    begin = law.begin + part_motion.times[0] - motion.times[0]
    law = replace(law, begin=wrap_begin(begin, law.duration))
    unknowns = TUNING_AND_BEGIN if is_rounded else ALL_UNKNOWNS
    fit = _fit_calls(motion, commands, index, law=law, rounds=3, unknowns=unknowns)
    fit = _prefer_edge(motion, commands, index, fit)

    refined = fit.calls.law
    residuals = fit.residuals[motion.moving]
    residual = float(np.median(residuals))
    deviation = fit.tuning_deviation
    if residual > max_exact_residual:
        if residual > MAX_RESIDUAL_RATIO * float(np.median(tuning.residuals)):
            raise NotIdentified(
                "no timing of the servoj calls explains the motion: a setpoint residual of "
                f"{residual:.2g} rad remains"
            )
        # The calls do not explain the setpoints to the last digit, so the tuning is only as certain
        # as the agreement of the two ways to identify it.
        difference = np.array([refined.gain - tuning.gain, refined.lookahead - tuning.lookahead])
        deviation = np.hypot(deviation, np.abs(difference))
    return fit.calls, Tuning(refined.gain, refined.lookahead, deviation, residuals)


def _digits(motion: TargetMotion, law: Tuning | TimedLaw, commands: Array) -> float:
    """Return the resolution of setpoints minus commands, by the digits of both, rad."""
    setpoint_resolution = motion.setpoint_resolution(1.0 / law.gain, law.lookahead)
    return float(setpoint_resolution) + resolution(commands)


def _busiest_part(motion: TargetMotion) -> slice:
    """Return the MAX_SEARCHED_ROWS successive rows among which the most move."""
    if len(motion) <= MAX_SEARCHED_ROWS:
        return slice(0, len(motion))
    moving_before = np.concatenate([[0], np.cumsum(motion.moving)])
    moving_in_part = moving_before[MAX_SEARCHED_ROWS:] - moving_before[:-MAX_SEARCHED_ROWS]
    first = int(np.argmax(moving_in_part))
    return slice(first, first + MAX_SEARCHED_ROWS)


def _search_timing(
    motion: TargetMotion,
    commands: Array,
    tuning: Tuning,
    *,
    index: Array,
    max_exact_residual: float,
) -> CallFit:
    """Return the best fit among the likely durations of a call and several beginnings.

    Args:
        motion: Joint targets of a part of the recording, T rows.
        commands: Commands (K, n), rad.
        tuning: Gain and lookahead that the search starts from.
        index: Rough position of each row along the commands (T,), as a fractional index.
        max_exact_residual: Median residual below which a fit ends the search, rad.
    """
    best: CallFit | None = None
    for duration in _likely_durations(motion, index):
        # Try beginnings of calls within a cycle to either side of the usual one. The duration stays
        # fixed in these short fits.
        usual_begin = duration * _usual_begin(motion, index, duration)
        short_fits = []
        for shift in np.linspace(-1.0, 1.0, TRIED_BEGINS) * motion.cycle:
            begin = wrap_begin(usual_begin + shift, duration)
            law = TimedLaw(tuning.gain, tuning.lookahead, duration, begin)
            short_fits.append(
                _fit_calls(motion, commands, index, law=law, rounds=1, unknowns=TUNING_AND_BEGIN)
            )

        # Refine the best of them, whose duration now varies, too.
        short_fit = min(short_fits, key=lambda fit: fit.cost)
        law = short_fit.calls.law
        refined_fit = _fit_calls(motion, commands, index, law=law, rounds=4, unknowns=ALL_UNKNOWNS)

        fits = [short_fit, refined_fit] if best is None else [best, short_fit, refined_fit]
        best = min(fits, key=lambda fit: fit.cost)
        if np.median(best.residuals[motion.moving]) < max_exact_residual:
            break
    assert best is not None
    return best


def _likely_durations(motion: TargetMotion, index: Array) -> list[float]:
    """Return the likely durations of a call, s, the likeliest first.

    They follow from how fast the setpoint advances along the commands, one command per call.

    Args:
        motion: T rows.
        index: Rough position of each row along the commands (T,), as a fractional index.

    Raises:
        NotIdentified: The setpoint hardly advances.
    """
    # The median rate at which the index advances, 1/s.
    moving = motion.moving
    rows = min(ADVANCE_ROWS, len(motion) - 1)
    span = motion.times[rows:] - motion.times[:-rows]
    advance = index[rows:] - index[:-rows]
    usual_span = rows * float(np.median(np.diff(motion.times)))
    has_no_gap = span < MAX_SPAN_RATIO * usual_span
    used = moving[rows:] & moving[:-rows] & has_no_gap & (advance > 0.0)
    if used.sum() < MIN_PAIRS:
        raise NotIdentified("the setpoints do not follow the commands, or not for long enough")
    usual_rate = float(np.median(advance[used] / span[used]))

    # For each rate near it: does the fractional part of (index - rate * time) stay the same over
    # the whole recording? The length of the mean phasor says it: 1 if it does, near 0 if not.
    time = (motion.times - motion.times[0])[moving]
    moving_index = index[moving]
    rates = np.arange(
        MIN_RATE_RATIO * usual_rate, MAX_RATE_RATIO * usual_rate, RATE_STEP / time[-1]
    )
    agreement = np.array(
        [abs(np.exp(2j * np.pi * (moving_index - rate * time)).mean()) for rate in rates]
    )
    is_peak = (agreement[1:-1] >= agreement[:-2]) & (agreement[1:-1] >= agreement[2:])
    peaks = np.flatnonzero(is_peak) + 1

    # Rows at multiples of the cycle agree with several rates, so the usual one is preferred.
    likelihood = agreement[peaks] - np.abs(np.log(rates[peaks] / usual_rate))
    likeliest = peaks[np.argsort(-likelihood)[:MAX_DURATIONS]]
    return [1.0 / float(rate) for rate in rates[likeliest]]


def _usual_begin(motion: TargetMotion, index: Array, duration: float) -> float:
    """Return when a call begins, in durations of a call after the end of the first row's cycle.

    Args:
        motion: T rows.
        index: Rough position of each row along the commands (T,), as a fractional index.
        duration: Duration of a call, s.
    """
    moving = motion.moving
    between = moving & (np.abs(index - np.round(index)) > MIN_BETWEEN)
    used = between if between.sum() > MIN_PAIRS else moving
    turns = ((motion.times - motion.times[0]) / duration - index)[used] % 1.0

    # The median of an angle: cut the circle opposite to the mean direction.
    center = np.angle(np.exp(2j * np.pi * turns).mean()) / (2.0 * np.pi)
    return float(np.median((turns - center + 0.5) % 1.0) + center - 0.5)


def _round_duration(fit: CallFit) -> tuple[TimedLaw, bool]:
    """Return the law with its duration rounded if the data allow it, and whether it is rounded."""
    law = fit.calls.law
    rounded = round(law.duration / DURATION_STEP_S) * DURATION_STEP_S
    difference = abs(rounded - law.duration)
    if difference < max(AGREEING_DEVIATIONS * fit.duration_deviation, AGREEING_S):
        return replace(law, duration=rounded), True
    return law, False


def _prefer_edge(motion: TargetMotion, commands: Array, index: Array, fit: CallFit) -> CallFit:
    """Return the fit with calls that begin with a cycle, where that explains the motion as well.

    Close to the edge of a cycle the setpoints hardly show when calls begin, so rounded digits may
    move a call away from the edge, and the tuning with it.

    Args:
        motion: Joint targets in T rows.
        commands: Commands (K, n), rad.
        index: Rough position of each row along the commands (T,), as a fractional index.
        fit: The fit with any beginning of the calls.
    """
    law = fit.calls.law
    cycles = law.duration / motion.cycle
    edge = round(law.begin / motion.cycle) * motion.cycle
    has_whole_cycles = abs(cycles - round(cycles)) < WHOLE_CYCLES_TOLERANCE
    if not has_whole_cycles or not 0.0 < abs(law.begin - edge) < EDGE_FRACTION * motion.cycle:
        return fit

    edge_law = replace(law, begin=wrap_begin(edge, law.duration))
    edge_fit = _fit_calls(motion, commands, index, law=edge_law, rounds=2, unknowns=TUNING_ALONE)
    if edge_fit.cost > fit.cost + EDGE_COST:
        return fit
    if edge_fit.cost <= fit.cost:
        return edge_fit
    # Both explain the motion, so the tuning is only as certain as they agree.
    tuning = edge_fit.calls.law
    deviation = edge_fit.deviation.copy()
    deviation[:2] = np.hypot(
        deviation[:2], [tuning.gain - law.gain, tuning.lookahead - law.lookahead]
    )
    return replace(edge_fit, deviation=deviation)


def _fit_calls(
    motion: TargetMotion,
    commands: Array,
    index: Array,
    *,
    law: TimedLaw,
    rounds: int,
    unknowns: int,
) -> CallFit:
    """Search for the commands of the calls, and fit the law to them, in turns.

    Args:
        motion: Joint targets in T rows.
        commands: Commands (K, n), rad.
        index: Rough position of each row along the commands (T,), as a fractional index.
        law: The servo law and timing to start from.
        rounds: Number of rounds of fitting and searching, at least 1.
        unknowns: How many of gain, lookahead, begin and duration are fitted, from the first one on.
    """
    moving = np.flatnonzero(motion.moving)
    calls = match_calls(motion, law, commands, index)
    # Standard deviations of gain, lookahead, begin and duration, from the last step.
    deviation = np.zeros(4)
    for _ in range(rounds):
        # Fit the law to the commands as they were matched.
        for _ in range(NEWTON_STEPS):
            law, deviation = _improve_law(motion, calls, commands, rows=moving, unknowns=unknowns)
            calls = replace(reveal_calls(motion, law), command=calls.command)

        # Match the commands anew under the fitted law.
        calls = match_calls(motion, law, commands, index)

    residuals = np.linalg.norm(calls.residuals(commands), axis=1)
    cost = float(np.mean(np.log1p((residuals[moving] / COST_SCALE) ** 2)))
    return CallFit(calls, cost, deviation, residuals)


def _improve_law(
    motion: TargetMotion, calls: Calls, commands: Array, *, rows: Counts, unknowns: int
) -> tuple[TimedLaw, Array]:
    """Make one Gauss-Newton step with Cauchy weights.

    Args:
        motion: Joint targets in T rows.
        calls: The calls, with their commands.
        commands: Commands (K, n), rad.
        rows: Indices of the rows that count.
        unknowns: How many of gain, lookahead, begin and duration vary, from the first one on.

    Returns:
        The law after the step, and one standard deviation of gain, lookahead, begin and duration
        (4,).
    """
    law = calls.law

    # Residuals (R n,) and their derivatives (R n, unknowns), in units of the steps.
    current = _residuals_under(law, motion, calls, commands)[rows]
    varied = [
        replace(law, gain=law.gain * (1.0 + DERIVATIVE_STEPS[0])),
        replace(law, lookahead=law.lookahead * (1.0 + DERIVATIVE_STEPS[1])),
        replace(law, begin=law.begin + DERIVATIVE_STEPS[2]),
        replace(law, duration=law.duration + DERIVATIVE_STEPS[3]),
    ]
    slopes = np.stack(
        [
            (_residuals_under(varied_law, motion, calls, commands)[rows] - current).ravel()
            for varied_law in varied[:unknowns]
        ],
        axis=1,
    )
    residuals = current.ravel()

    distance = np.linalg.norm(current, axis=1)
    scale = max(float(np.median(distance)), LEAST_RESIDUAL)
    weights = np.repeat(cauchy_weights(distance, scale), current.shape[1])

    # Solve the normal equations, scaled by the sizes of the columns, which differ by many powers of
    # ten.
    normal = slopes.T @ (weights[:, None] * slopes)
    size = np.sqrt(np.maximum(np.diag(normal), LEAST_SQUARE))
    sizes = np.outer(size, size)
    scaled_inverse = np.linalg.pinv(normal / sizes, rcond=LEAST_SINGULAR_VALUE, hermitian=True)
    inverse = scaled_inverse / sizes
    step = -inverse @ (slopes.T @ (weights * residuals))

    # The covariance by the sandwich estimator: residuals of neighbouring rows are not independent,
    # so the spread of the gradients of whole blocks of rows counts.
    pulls = slopes * (weights * (residuals + slopes @ step))[:, None]
    blocks = np.array([block.sum(axis=0) for block in np.array_split(pulls, BLOCKS)])
    covariance = inverse @ (blocks.T @ blocks) @ inverse
    # Where a joint moves slowly, successive rows are rounded alike: at worst all those of a block.
    # No rounding error is larger than the residuals, whatever the digits would allow.
    residual = scale / np.sqrt(current.shape[1])
    rounding = min(STANDARD_ROUNDING * _digits(motion, law, commands), residual)
    covariance += inverse * rounding**2 * (len(rows) / BLOCKS)

    scales = [
        law.gain * DERIVATIVE_STEPS[0],
        law.lookahead * DERIVATIVE_STEPS[1],
        *DERIVATIVE_STEPS[2:],
    ]
    units = np.array(scales)[:unknowns]
    deviation = np.zeros(4)
    deviation[:unknowns] = np.sqrt(np.diag(covariance)) * units
    return _apply_change(law, step * units, motion.cycle), deviation


def _residuals_under(law: TimedLaw, motion: TargetMotion, calls: Calls, commands: Array) -> Array:
    """Return the residuals of the rows under a law (T, n), rad, with the commands of `calls`."""
    revealed = reveal_calls(motion, law)
    call = np.minimum(revealed.call, len(calls.command) - 2)
    return replace(revealed, call=call, command=calls.command).residuals(commands)


def _apply_change(law: TimedLaw, change: Array, cycle: float) -> TimedLaw:
    """Return the law after a step, bounded so that the residuals stay nearly linear.

    Args:
        law: The servo law to change.
        change: Change of gain, lookahead, begin and duration, or of the first ones of these.
        cycle: Length of the controller's cycle, s.
    """
    limits = [
        MAX_TUNING_STEP * law.gain,
        MAX_TUNING_STEP * law.lookahead,
        MAX_BEGIN_STEP * cycle,
        MAX_DURATION_STEP * law.duration,
    ]
    limit = np.array(limits)[: len(change)]
    change = np.clip(change, -limit, limit)

    gain_change, lookahead_change, begin_change, duration_change = np.pad(
        change, (0, ALL_UNKNOWNS - len(change))
    )
    duration = law.duration + duration_change
    begin = wrap_begin(law.begin + begin_change, duration)
    if abs(begin - law.begin) > 0.5 * duration:
        # Another call would become call 0, but the commands are numbered from this one.
        begin = law.begin
    return TimedLaw(law.gain + gain_change, law.lookahead + lookahead_change, duration, begin)
