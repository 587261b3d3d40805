"""The timing of servoj's calls, and from it gain and lookahead refined.

Along the commands the setpoint advances by one in a call: the slope of its index over time is the
inverse of a call's duration, and where the index is whole, a call ends. From there the commands of
the calls are searched for, and the law and its timing are fitted to them, in turns.
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

# Rows that the search for the timing looks at.
MAX_SEARCHED_ROWS = 700
# Beginnings of calls that it tries within two cycles.
TRIED_BEGINS = 17
# Durations of a call that it tries, at most.
MAX_DURATIONS = 4
# Rows between which the advance along the commands is measured.
ADVANCE_ROWS = 8
# Pairs of such rows, and rows between two commands, that a median needs.
MIN_PAIRS = 20
# Distance of a setpoint from the nearest command from which it counts as between two.
MIN_BETWEEN = 1e-3

# What is left of exactly explained setpoints, in units of the digits, and beyond them, rad.
MAX_DIGITS = 10.0
ROUNDING = 1e-9
# Calls that leave this many times what the first tuning leaves explain nothing.
MAX_RESIDUAL_RATIO = 2.0
# Durations are what somebody wrote into a program: multiples of this, s, if the data agree.
DURATION_STEP_S = 1e-5
# They agree within so many deviations, and at least this, s.
AGREEING_DEVIATIONS = 5.0
LEAST_DEVIATIONS_S = 1e-9
AGREEING_S = 1e-8

# Scale of the residuals in the cost of a fit, rad.
COST_SCALE = 1e-7
# Steps of Gauss and Newton between two searches for commands.
NEWTON_STEPS = 3
# Steps of the derivatives by gain, lookahead (both relative), begin and duration (both s).
DERIVATIVE_STEPS = (1e-6, 1e-6, 1e-8, 1e-10)
# Blocks of rows from which uncertainties are estimated.
BLOCKS = 20


@dataclass(frozen=True, eq=False)
class CallFit:
    """Calls, with their law fitted.

    Attributes:
        calls: The calls.
        cost: Mean cost of the moving rows; lower is better.
        deviation: One standard deviation of gain, lookahead, begin and duration (4,).
        residuals: Residual of each row (T,), rad.
    """

    calls: Calls
    cost: float
    deviation: Array
    residuals: Array


def find_calls(
    motion: TargetMotion, commands: Array, tuning: Tuning, index: Array
) -> tuple[Calls, Tuning]:
    """Find the command of each call, and refine the tuning.

    Args:
        motion: Its stamps are multiples of the cycle apart.
        commands: Commands (K, n), rad, in the order in which they were sent.
        tuning: The tuning, as identified from the path of the commands, or from held ones.
        index: About where each row is along the commands (T,): see `along`.

    Raises:
        NotIdentified: The timing cannot be found.
    """
    # What the digits of recording and commands leave of exactly explained setpoints, rad.
    digits = motion.digits(1.0 / tuning.gain, tuning.lookahead) + resolution(commands)
    exact = MAX_DIGITS * digits + ROUNDING

    # The timing, from the busiest part; then for the whole recording.
    part = _busiest_part(motion)
    part_motion = motion[part]
    start = _search_timing(part_motion, commands, tuning, index=index[part], exact=exact)
    law, is_rounded = _round_duration(start)
    begin = law.begin + part_motion.times[0] - motion.times[0]
    law = replace(law, begin=wrap_begin(begin, law.duration))
    fit = _fit_calls(motion, commands, index, law=law, rounds=3, with_duration=not is_rounded)

    refined = fit.calls.law
    residuals = fit.residuals[motion.moving]
    residual = float(np.median(residuals))
    deviation = fit.deviation[:2]
    if residual > exact:
        if residual > MAX_RESIDUAL_RATIO * float(np.median(tuning.residuals)):
            raise NotIdentified(
                "no timing of the servoj calls explains the motion: a setpoint residual of "
                f"{residual:.2g} rad remains"
            )
        # Not explained to the last digit: no more certain than what two ways to identify it have in
        # common.
        difference = np.array([refined.gain - tuning.gain, refined.lookahead - tuning.lookahead])
        deviation = np.hypot(deviation, np.abs(difference))
    return fit.calls, Tuning(refined.gain, refined.lookahead, deviation, residuals)


def _busiest_part(motion: TargetMotion) -> slice:
    """Return the part with the most movement, of MAX_SEARCHED_ROWS rows."""
    if len(motion) <= MAX_SEARCHED_ROWS:
        return slice(0, len(motion))
    moving_before = np.concatenate([[0], np.cumsum(motion.moving)])
    moving_in_part = moving_before[MAX_SEARCHED_ROWS:] - moving_before[:-MAX_SEARCHED_ROWS]
    first = int(np.argmax(moving_in_part))
    return slice(first, first + MAX_SEARCHED_ROWS)


def _search_timing(
    motion: TargetMotion, commands: Array, tuning: Tuning, *, index: Array, exact: float
) -> CallFit:
    """Return the best fit among some durations and beginnings of calls.

    Args:
        motion: A part of the recording.
        commands: Commands (K, n), rad.
        tuning: Gain and lookahead from which the search begins.
        index: Rough position of each row along the commands (T,), as a fractional index.
        exact: The search ends at a fit that leaves less than this, rad.
    """
    best: CallFit | None = None
    for duration in _likely_durations(motion, index):
        usual_begin = duration * _usual_begin(motion, index, duration)
        for shift in np.linspace(-1.0, 1.0, TRIED_BEGINS) * motion.cycle:
            begin = wrap_begin(usual_begin + shift, duration)
            law = TimedLaw(tuning.gain, tuning.lookahead, duration, begin)
            fit = _fit_calls(motion, commands, index, law=law, rounds=1, with_duration=False)
            if best is None or fit.cost < best.cost:
                best = fit

        assert best is not None
        law = best.calls.law
        fit = _fit_calls(motion, commands, index, law=law, rounds=4, with_duration=True)
        if fit.cost < best.cost:
            best = fit
        if np.median(best.residuals[motion.moving]) < exact:
            break
    assert best is not None
    return best


def _likely_durations(motion: TargetMotion, index: Array) -> list[float]:
    """Return how long a call may last, s, the likeliest first.

    It follows from how fast the setpoint advances along the commands.

    Args:
        motion: T rows.
        index: Rough position of each row along the commands (T,), as a fractional index.

    Raises:
        NotIdentified: The setpoint hardly advances.
    """
    # The mean rate, 1/s.
    moving = motion.moving
    rows = min(ADVANCE_ROWS, len(motion) - 1)
    span = motion.times[rows:] - motion.times[:-rows]
    advance = index[rows:] - index[:-rows]
    usual_span = rows * float(np.median(np.diff(motion.times)))
    used = moving[rows:] & moving[:-rows] & (span < 1.5 * usual_span) & (advance > 0.0)
    if used.sum() < MIN_PAIRS:
        raise NotIdentified("the setpoints do not follow the commands, or not for long enough")
    mean_rate = float(np.median(advance[used] / span[used]))

    # How well each rate near it keeps the phase of the index over the whole time, 0 to 1.
    time = (motion.times - motion.times[0])[moving]
    moving_index = index[moving]
    rates = np.arange(0.6 * mean_rate, 1.7 * mean_rate, 0.2 / time[-1])
    agreement = np.array(
        [abs(np.exp(2j * np.pi * (moving_index - rate * time)).mean()) for rate in rates]
    )
    is_peak = (agreement[1:-1] >= agreement[:-2]) & (agreement[1:-1] >= agreement[2:])
    peaks = np.flatnonzero(is_peak) + 1

    # Rows at multiples of the cycle agree with several rates; the mean one is not far off.
    likelihood = agreement[peaks] - np.abs(np.log(rates[peaks] / mean_rate))
    likeliest = peaks[np.argsort(-likelihood)[:MAX_DURATIONS]]
    return [1.0 / float(rate) for rate in rates[likeliest]]


def _usual_begin(motion: TargetMotion, index: Array, duration: float) -> float:
    """Return when calls begin after the end of the first row's cycle, in units of their duration.

    Args:
        motion: T rows.
        index: Rough position of each row along the commands (T,), as a fractional index.
        duration: Duration of a call, s.
    """
    moving = motion.moving
    between = moving & (np.abs(index - np.round(index)) > MIN_BETWEEN)
    used = between if between.sum() > MIN_PAIRS else moving
    turns = ((motion.times - motion.times[0]) / duration - index)[used] % 1.0

    # The median on a circle: cut where it is farthest from most.
    center = np.angle(np.exp(2j * np.pi * turns).mean()) / (2.0 * np.pi)
    return float(np.median((turns - center + 0.5) % 1.0) + center - 0.5)


def _round_duration(fit: CallFit) -> tuple[TimedLaw, bool]:
    """Return the law with its duration rounded, if the data agree, and whether they do."""
    law = fit.calls.law
    rounded = round(law.duration / DURATION_STEP_S) * DURATION_STEP_S
    difference = abs(rounded - law.duration)
    uncertainty = max(AGREEING_DEVIATIONS * fit.deviation[3], LEAST_DEVIATIONS_S)
    if difference < uncertainty or difference < AGREEING_S:
        return replace(law, duration=rounded), True
    return law, False


def _fit_calls(
    motion: TargetMotion,
    commands: Array,
    index: Array,
    *,
    law: TimedLaw,
    rounds: int,
    with_duration: bool,
) -> CallFit:
    """Search for the commands of the calls, and fit the law to them, in turns.

    Args:
        motion: T rows.
        commands: Commands (K, n), rad.
        index: Rough position of each row along the commands (T,), as a fractional index.
        law: The servo law to begin from.
        rounds: Number of rounds.
        with_duration: Fit the duration of calls, too.
    """
    moving = np.flatnonzero(motion.moving)
    calls = match_calls(motion, law, commands, index)
    deviation = np.zeros(4)
    for _ in range(rounds):
        for _ in range(NEWTON_STEPS):
            law, deviation = _improve_law(
                motion, calls, commands, rows=moving, with_duration=with_duration
            )
            calls = replace(reveal_calls(motion, law), command=calls.command)
        calls = match_calls(motion, law, commands, index)

    residuals = np.linalg.norm(calls.residuals(commands), axis=1)
    cost = float(np.mean(np.log1p((residuals[moving] / COST_SCALE) ** 2)))
    return CallFit(calls, cost, deviation, residuals)


def _improve_law(
    motion: TargetMotion, calls: Calls, commands: Array, *, rows: Counts, with_duration: bool
) -> tuple[TimedLaw, Array]:
    """Make one step of Gauss and Newton with Cauchy weights.

    Args:
        motion: T rows.
        calls: The calls, with their commands.
        commands: Commands (K, n), rad.
        rows: Which rows count.
        with_duration: Vary the duration of calls, too.

    Returns:
        The law, and one standard deviation of gain, lookahead, begin and duration (4,).
    """
    law = calls.law
    unknowns = 4 if with_duration else 3

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
    scale = max(float(np.median(distance)), 1e-12)
    weights = np.repeat(cauchy_weights(distance, scale), current.shape[1])

    # Each column by its own size: they differ by many powers of ten.
    normal = slopes.T @ (weights[:, None] * slopes)
    size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    sizes = np.outer(size, size)
    inverse = np.linalg.pinv(normal / sizes, rcond=1e-12, hermitian=True) / sizes
    step = -inverse @ (slopes.T @ (weights * residuals))

    # Residuals of neighbouring rows are not independent: the spread of what blocks of them ask for
    # (sandwich).
    pulls = slopes * (weights * (residuals + slopes @ step))[:, None]
    blocks = np.array([block.sum(axis=0) for block in np.array_split(pulls, BLOCKS)])
    covariance = inverse @ (blocks.T @ blocks) @ inverse

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
    """Return what the rows leave (T, n), rad, under another law, with the same commands."""
    revealed = reveal_calls(motion, law)
    call = np.minimum(revealed.call, len(calls.command) - 2)
    return replace(revealed, call=call, command=calls.command).residuals(commands)


def _apply_change(law: TimedLaw, change: Array, cycle: float) -> TimedLaw:
    """Return the law after a change, bounded so that the formulas are about linear.

    Args:
        law: The servo law to change.
        change: Change of gain, lookahead, begin, and perhaps duration (3 or 4,).
        cycle: Length of the controller's cycle, s.
    """
    limits = [0.1 * law.gain, 0.1 * law.lookahead, 0.25 * cycle, 1e-3 * law.duration]
    limit = np.array(limits)[: len(change)]
    change = np.clip(change, -limit, limit)

    duration = law.duration + (change[3] if len(change) == 4 else 0.0)
    begin = wrap_begin(law.begin + change[2], duration)
    if abs(begin - law.begin) > 0.5 * duration:
        # Another call would be number 0: leave the numbers as they are.
        begin = law.begin
    return TimedLaw(law.gain + change[0], law.lookahead + change[1], duration, begin)
