"""When calls of servoj begin and how long they last, with gain and lookahead refined by what every row measures.

Along the commands the setpoint advances by one in a call: the slope of its index over time is 1/t, and where the index
is whole, a call ends. Cycles that a call's end splits obey another formula (see `calls.py`), so that all rows count
once the timing is known; also where every cycle is split, which read as whole would show a wrong tuning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.evaluation.identification.calls import Calls, Law, along, decode, measured
from simbridge.evaluation.identification.servoj import NotIdentified, TargetMotion, Tuning, resolution
from simbridge.robot.pose import Array, Counts

# Rows that the search for the timing looks at, how many beginnings it tries in two cycles, and how many durations.
_SEARCHED, _TRIED, _CANDIDATES = 700, 17, 4
# Rows between which the advance along the commands is measured.
_APART = 8
# Blocks of rows from which uncertainties are estimated.
_BLOCKS = 20
# Durations are what somebody wrote into a program: multiples of this, s, if the data agree.
_ROUND = 1e-5


def find_calls(
    motion: TargetMotion, commands: Array, tuning: Tuning, index: Array | None = None
) -> tuple[Calls, Tuning]:
    """The command of each call, and the tuning refined.

    Args:
        motion: Of the controller; its stamps are multiples of the cycle apart.
        commands: (K, n), rad, in the order in which they were sent.
        tuning: As found from the path of the commands, or from held ones.
        index: Where each row is along the commands (T,), if that is known.

    Raises:
        NotIdentified: The timing cannot be found.
    """
    index = along(motion, tuning, commands)[0] if index is None else index
    part = _busiest(motion)
    few, few_index = motion[part], index[part]
    bound = explained(motion, commands, tuning)
    best: _Fit | None = None
    for duration in _durations(few, few_index):
        usual = duration * _begin(few, few_index, duration)
        for shift in np.linspace(-1.0, 1.0, _TRIED) * motion.cycle:
            law = Law(tuning.gain, tuning.lookahead, duration, _wrapped(usual + shift, duration))
            fit = _fitted(few, commands, few_index, law, rounds=1, timed=False)
            if best is None or fit.cost < best.cost:
                best = fit
        assert best is not None
        fit = _fitted(few, commands, few_index, best.calls.law, rounds=4, timed=True)
        if fit.cost < best.cost:
            best = fit
        if np.median(best.residuals[few.moving]) < bound:
            break
    assert best is not None
    fit = best
    law, timed = fit.calls.law, True
    rounded = round(law.duration / _ROUND) * _ROUND
    if abs(rounded - law.duration) < max(5.0 * fit.deviation[3], 1e-9) or abs(rounded - law.duration) < 1e-8:
        law, timed = replace(law, duration=rounded), False
    begin = law.begin + few.times[0] - motion.times[0]
    law = replace(law, begin=_wrapped(begin, law.duration))
    fit = _fitted(motion, commands, index, law, rounds=3, timed=timed)
    final = fit.calls.law
    residuals = fit.residuals[motion.moving]
    left, deviation = float(np.median(residuals)), fit.deviation[:2]
    if left > bound:
        if left > 2.0 * float(np.median(tuning.residuals)):
            raise NotIdentified(f"no timing of calls explains the motion: {left:.2g} rad are left of the setpoints")
        # Not explained to the last digit: no more certain than what two ways of finding it have in common.
        apart = np.abs(np.array([final.gain - tuning.gain, final.lookahead - tuning.lookahead]))
        deviation = np.hypot(deviation, apart)
    return fit.calls, Tuning(final.gain, final.lookahead, deviation, residuals)


def explained(motion: TargetMotion, commands: Array, tuning: Tuning) -> float:
    """What the digits of recording and commands leave of exactly explained setpoints, rad."""
    digits = resolution(motion.q) + resolution(motion.qdd) / tuning.gain + resolution(motion.qd) * tuning.lookahead
    return 10.0 * (digits + resolution(commands)) + 1e-9


@dataclass(frozen=True, eq=False)
class _Fit:
    """Calls with their law fitted.

    Attributes:
        calls: The law, and the command of each call.
        cost: Mean logarithm of the squared residuals: lower is better.
        deviation: One standard deviation of gain, lookahead, begin and duration (4,).
        residuals: Of each row (T,), rad.
    """

    calls: Calls
    cost: float
    deviation: Array
    residuals: Array


def _fitted(motion: TargetMotion, commands: Array, index: Array, law: Law, *, rounds: int, timed: bool) -> _Fit:
    """Decode and fit in turns; `timed` fits the duration of calls, too."""
    moving = np.flatnonzero(motion.moving)
    calls = decode(motion, law, commands, index)
    for _ in range(rounds):
        for _ in range(3):
            law, deviation = _improved(motion, calls, commands, moving, timed)
            calls = replace(measured(motion, law), command=calls.command)
        calls = decode(motion, law, commands, index)
    residuals = np.linalg.norm(calls.seen - calls.expected(commands), axis=1)
    cost = float(np.mean(np.log1p((residuals[moving] / 1e-7) ** 2)))
    return _Fit(calls, cost, deviation, residuals)


# Steps of the derivatives by gain, lookahead (relative), begin and duration (s).
_STEPS = (1e-6, 1e-6, 1e-8, 1e-10)


def _improved(motion: TargetMotion, calls: Calls, commands: Array, rows: Counts, timed: bool) -> tuple[Law, Array]:
    """One step of Gauss and Newton with Cauchy weights, and one standard deviation of what it fits (4,)."""
    law = calls.law
    here = _residuals(motion, law, calls, commands, rows)
    varied = [
        replace(law, gain=law.gain * (1.0 + _STEPS[0])),
        replace(law, lookahead=law.lookahead * (1.0 + _STEPS[1])),
        replace(law, begin=law.begin + _STEPS[2]),
        replace(law, duration=law.duration + _STEPS[3]),
    ][: 4 if timed else 3]
    slopes = np.stack([(_residuals(motion, other, calls, commands, rows) - here).ravel() for other in varied], axis=1)
    distance = np.linalg.norm(here, axis=1)
    scale = max(float(np.median(distance)), 1e-12)
    weights = np.repeat(1.0 / (1.0 + (distance / scale) ** 2), here.shape[1])
    normal = slopes.T @ (weights[:, None] * slopes)
    # Each column by its own size: they differ by many powers of ten.
    size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(size, size), rcond=1e-12, hermitian=True) / np.outer(size, size)
    step = -inverse @ (slopes.T @ (weights * here.ravel()))
    # Residuals of neighbouring rows are not independent: the spread of what blocks of them ask for (sandwich).
    pulls = slopes * (weights * (here.ravel() + slopes @ step))[:, None]
    blocks = np.array([part.sum(axis=0) for part in np.array_split(pulls, _BLOCKS)])
    spread = inverse @ (blocks.T @ blocks) @ inverse
    units = np.array([law.gain * _STEPS[0], law.lookahead * _STEPS[1], *_STEPS[2:]])[: len(step)]
    # Within the range in which the formulas are about linear.
    bound = np.array([0.1 * law.gain, 0.1 * law.lookahead, 0.25 * motion.cycle, 1e-3 * law.duration])[: len(step)]
    change = np.clip(step * units, -bound, bound)
    deviation = np.zeros(4)
    deviation[: len(step)] = np.sqrt(np.diag(spread)) * units
    duration = law.duration + (change[3] if timed else 0.0)
    begin = _wrapped(law.begin + change[2], duration)
    if begin - law.begin > 0.5 * duration or law.begin - begin > 0.5 * duration:
        # Another call would be number 0: leave the numbers as they are.
        begin = law.begin
    return Law(law.gain + change[0], law.lookahead + change[1], duration, begin), deviation


def _residuals(motion: TargetMotion, law: Law, calls: Calls, commands: Array, rows: Counts) -> Array:
    found = measured(motion, law)
    call = np.minimum(found.call, len(calls.command) - 2)
    found = replace(found, call=call, command=calls.command)
    return (found.seen - found.expected(commands))[rows]


def _busiest(motion: TargetMotion) -> slice:
    """The part of _SEARCHED rows with the most movement."""
    if len(motion) <= _SEARCHED:
        return slice(0, len(motion))
    count = np.concatenate([[0], np.cumsum(motion.moving)])
    first = int(np.argmax(count[_SEARCHED:] - count[:-_SEARCHED]))
    return slice(first, first + _SEARCHED)


def _durations(motion: TargetMotion, index: Array) -> list[float]:
    """How long a call may last, s, the likeliest first, from how fast the setpoint advances along the commands."""
    moving = motion.moving
    apart = min(_APART, len(motion) - 1)
    span, advance = motion.times[apart:] - motion.times[:-apart], index[apart:] - index[:-apart]
    usual = apart * float(np.median(np.diff(motion.times)))
    pairs = moving[apart:] & moving[:-apart] & (span < 1.5 * usual) & (advance > 0.0)
    if pairs.sum() < 20:
        raise NotIdentified("the setpoints do not advance along the commands, or not for long enough")
    rate = float(np.median(advance[pairs] / span[pairs]))
    time, at = (motion.times - motion.times[0])[moving], index[moving]
    tried = np.arange(0.6 * rate, 1.7 * rate, 0.2 / time[-1])
    agreement = np.array([abs(np.exp(2j * np.pi * (at - one * time)).mean()) for one in tried])
    peaks = np.flatnonzero((agreement[1:-1] >= agreement[:-2]) & (agreement[1:-1] >= agreement[2:])) + 1
    # Rows at multiples of the cycle agree with several rates; the mean one is not far off.
    worth = agreement[peaks] - np.abs(np.log(tried[peaks] / rate))
    likely = peaks[np.argsort(-worth)[:_CANDIDATES]]
    return [1.0 / float(one) for one in tried[likely]]


def _begin(motion: TargetMotion, index: Array, duration: float) -> float:
    """When calls begin after the end of the first row's cycle, as a share of their duration."""
    moving = motion.moving
    between = moving & (np.abs(index - np.round(index)) > 1e-3)
    used = between if between.sum() > 20 else moving
    turns = ((motion.times - motion.times[0]) / duration - index)[used] % 1.0
    # The median on a circle: cut where it is farthest from most.
    center = np.angle(np.exp(2j * np.pi * turns).mean()) / (2.0 * np.pi)
    return float(np.median((turns - center + 0.5) % 1.0) + center - 0.5)


def _wrapped(begin: float, duration: float) -> float:
    """The same edge of calls, as the last one before the first row's end: at least -duration, below 0."""
    # An edge on that end is the end of call 0, not its begin.
    return float(begin - duration * np.ceil(begin / duration + 1e-5))
