"""The calls of servoj in a recording: when they begin, how long they last, which command each took; and from these,
gain and lookahead refined, and how well the servo law predicts the whole recording.

Call m lasts from `begin` + m `duration` until the next call begins. During it the setpoint moves in a straight line
from the previous call's command to this call's. Every row therefore measures one point between two commands:

    seen = (1 - share) previous + share current

In a cycle that one call's end splits, two setpoints act one after the other; what the row then measures is their
weighted mean, which has the same form. All rows count once the timing is known, also where every cycle is split, which
read as whole would show a wrong tuning.

Along the commands the setpoint advances by one in a call: the slope of its index over time is 1/t, and where the index
is whole, a call ends. A late sender holds a command or skips some: the sequence of commands that fits best is searched
for by dynamic programming (Viterbi) over the calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.identification.servoj import NotIdentified, TargetMotion, Tuning, cauchy, resolution
from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion, ServojLaw
from simbridge.servo.observation import observe_setpoints

# How many commands a call may advance, and how many around the nearest ones are considered for each.
_JUMP, _MARGIN, _WIDEST = 40, 3, 1000
# Cost of a command that is held or skipped, in units of the logarithm of squared residuals.
_IRREGULAR = 1.0
# Residuals below this are rounding, rad: commands are single precision.
_SCALE = 1e-6
# Rows that the search for the timing looks at, how many beginnings it tries in two cycles, and how many durations.
_SEARCHED, _TRIED, _CANDIDATES = 700, 17, 4
# Rows between which the advance along the commands is measured.
_APART = 8
# Blocks of rows from which uncertainties are estimated.
_BLOCKS = 20
# Durations are what somebody wrote into a program: multiples of this, s, if the data agree.
_ROUND = 1e-5
# Steps of the derivatives by gain, lookahead (relative), begin and duration (s).
_STEPS = (1e-6, 1e-6, 1e-8, 1e-10)
# The prediction begins again after a hole of more cycles than this: which commands it hid cannot be known.
_MAX_HOLE = 8


@dataclass(frozen=True)
class Law:
    """The servo law with the timing of its calls."""

    gain: float  # 1/s^2
    lookahead: float  # s
    duration: float  # of a call, s
    begin: float  # when call 0 begins, s after the end of the first row's cycle: negative, by less than a duration


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a recording.

    Attributes:
        command: Index of the command that each call took (M,), counted from the call before the first: `command[m]`
            and `command[m + 1]` are the previous and the current one of call m. Empty if not searched for yet.
    """

    law: Law  # with their timing
    call: Counts  # the call at the end of each row's cycle (T,)
    share: Array  # of this call's command in what the row measures (T,); the rest is the previous call's
    seen: Array  # the measured point (T, n), rad
    command: Counts

    def left(self, commands: Array) -> Array:
        """What each row measures minus what it should (T, n), rad, with these commands (K, n)."""
        share = self.share[:, None]
        expected = (1.0 - share) * commands[self.command[self.call]] + share * commands[
            self.command[self.call + 1]
        ]
        return self.seen - expected


def find_calls(
    motion: TargetMotion, commands: Array, tuning: Tuning, index: Array
) -> tuple[Calls, Tuning]:
    """The command of each call, and the tuning refined.

    Args:
        motion: Its stamps are multiples of the cycle apart.
        commands: (K, n), rad, in the order in which they were sent.
        tuning: As found from the path of the commands, or from held ones.
        index: About where each row is along the commands (T,): see `along`.

    Raises:
        NotIdentified: The timing cannot be found.
    """
    part = _busiest(motion)
    few, few_index = motion[part], index[part]
    # What the digits of recording and commands leave of exactly explained setpoints, rad.
    bound = (
        10.0 * (motion.digits(1.0 / tuning.gain, tuning.lookahead) + resolution(commands)) + 1e-9
    )
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
    if (
        abs(rounded - law.duration) < max(5.0 * fit.deviation[3], 1e-9)
        or abs(rounded - law.duration) < 1e-8
    ):
        law, timed = replace(law, duration=rounded), False
    begin = law.begin + few.times[0] - motion.times[0]
    law = replace(law, begin=_wrapped(begin, law.duration))
    fit = _fitted(motion, commands, index, law, rounds=3, timed=timed)
    final = fit.calls.law
    residuals = fit.residuals[motion.moving]
    left, deviation = float(np.median(residuals)), fit.deviation[:2]
    if left > bound:
        if left > 2.0 * float(np.median(tuning.residuals)):
            raise NotIdentified(
                f"no timing of calls explains the motion: {left:.2g} rad are left of the setpoints"
            )
        # Not explained to the last digit: no more certain than what two ways of finding it have in common.
        apart = np.abs(np.array([final.gain - tuning.gain, final.lookahead - tuning.lookahead]))
        deviation = np.hypot(deviation, apart)
    return fit.calls, Tuning(final.gain, final.lookahead, deviation, residuals)


def predict(motion: TargetMotion, calls: Calls, commands: Array) -> tuple[Array, int]:
    """How well the servo law predicts a recording from its first row and the commands (K, n), rad.

    Returns:
        Joint targets predicted minus recorded (T, n), rad; how often the prediction began again from a row.

    Raises:
        NotIdentified: The law is unstable at this cycle.
    """
    try:
        # Rounding may exceed what servoj accepts.
        gain, lookahead = (
            np.clip(calls.law.gain, *GAIN_RANGE),
            np.clip(calls.law.lookahead, *LOOKAHEAD_RANGE),
        )
        law = ServojLaw(motion.cycle, float(gain), float(lookahead))
    except InvalidParameter as error:
        raise NotIdentified(f"the law found cannot be simulated: {error}".rstrip(".")) from None
    cycles = motion.cycles
    span = np.diff(cycles)
    starts = np.concatenate(
        [[0], np.flatnonzero((span > _MAX_HOLE) & (span > 1.5 * np.median(span))) + 1]
    )
    errors = np.zeros_like(motion.q)
    for first, end in zip(starts, [*starts[1:], len(motion)], strict=True):
        count = int(cycles[end - 1] - cycles[first])
        if not count:
            continue
        call = int(calls.call[first])
        begin = (
            calls.law.begin + call * calls.law.duration - (motion.times[first] - motion.times[0])
        )
        taken = commands[calls.command[call + 1 : int(calls.call[end - 1]) + 2]]
        followed = law.follow(
            taken,
            call=calls.law.duration,
            begin=begin,
            previous=_previous(calls, commands, first),
            q=motion.q[first],
            qd=motion.qd[first],
            cycles=count,
        )
        rows = slice(first + 1, end)
        errors[rows] = followed.q[cycles[rows] - cycles[first] - 1] - motion.q[rows]
    return errors, len(starts) - 1


def _previous(calls: Calls, commands: Array, row: int) -> Array:
    """The command before that of a row's call (n,), rad.

    The first call of a recording may come from a command that is not in the file: then the line through what the row
    measured and this call's command.
    """
    call, share = calls.call[row], calls.share[row]
    previous, current = commands[calls.command[call]], commands[calls.command[call + 1]]
    expected = (1.0 - share) * previous + share * current
    if share > 0.9 or np.linalg.norm(calls.seen[row] - expected) < 1e-5:
        return previous
    return np.asarray((calls.seen[row] - share * current) / (1.0 - share))


@dataclass(frozen=True, eq=False)
class _Fit:
    """Calls with their law fitted; its cost (lower is better), one standard deviation of gain, lookahead, begin and
    duration (4,), and the residual of each row (T,), rad."""

    calls: Calls
    cost: float
    deviation: Array
    residuals: Array


def _fitted(
    motion: TargetMotion, commands: Array, index: Array, law: Law, *, rounds: int, timed: bool
) -> _Fit:
    """Decode and fit in turns; `timed` fits the duration of calls, too."""
    moving = np.flatnonzero(motion.moving)
    calls = _decoded(motion, law, commands, index)
    for _ in range(rounds):
        for _ in range(3):
            law, deviation = _improved(motion, calls, commands, moving, timed)
            calls = replace(_measured(motion, law), command=calls.command)
        calls = _decoded(motion, law, commands, index)
    residuals = np.linalg.norm(calls.left(commands), axis=1)
    cost = float(np.mean(np.log1p((residuals[moving] / 1e-7) ** 2)))
    return _Fit(calls, cost, deviation, residuals)


def _improved(
    motion: TargetMotion, calls: Calls, commands: Array, rows: Counts, timed: bool
) -> tuple[Law, Array]:
    """One step of Gauss and Newton with Cauchy weights, and one standard deviation of what it fits (4,)."""
    law = calls.law

    def residuals(law: Law) -> Array:
        found = _measured(motion, law)
        call = np.minimum(found.call, len(calls.command) - 2)
        return replace(found, call=call, command=calls.command).left(commands)[rows]

    here = residuals(law)
    varied = [
        replace(law, gain=law.gain * (1.0 + _STEPS[0])),
        replace(law, lookahead=law.lookahead * (1.0 + _STEPS[1])),
        replace(law, begin=law.begin + _STEPS[2]),
        replace(law, duration=law.duration + _STEPS[3]),
    ][: 4 if timed else 3]
    slopes = np.stack([(residuals(other) - here).ravel() for other in varied], axis=1)
    distance = np.linalg.norm(here, axis=1)
    scale = max(float(np.median(distance)), 1e-12)
    weights = np.repeat(cauchy(distance, scale), here.shape[1])
    normal = slopes.T @ (weights[:, None] * slopes)
    # Each column by its own size: they differ by many powers of ten.
    size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(size, size), rcond=1e-12, hermitian=True) / np.outer(
        size, size
    )
    step = -inverse @ (slopes.T @ (weights * here.ravel()))
    # Residuals of neighbouring rows are not independent: the spread of what blocks of them ask for (sandwich).
    pulls = slopes * (weights * (here.ravel() + slopes @ step))[:, None]
    blocks = np.array([part.sum(axis=0) for part in np.array_split(pulls, _BLOCKS)])
    spread = inverse @ (blocks.T @ blocks) @ inverse
    units = np.array([law.gain * _STEPS[0], law.lookahead * _STEPS[1], *_STEPS[2:]])[: len(step)]
    # Within the range in which the formulas are about linear.
    bound = np.array(
        [0.1 * law.gain, 0.1 * law.lookahead, 0.25 * motion.cycle, 1e-3 * law.duration]
    )[: len(step)]
    change = np.clip(step * units, -bound, bound)
    deviation = np.zeros(4)
    deviation[: len(step)] = np.sqrt(np.diag(spread)) * units
    duration = law.duration + (change[3] if timed else 0.0)
    begin = _wrapped(law.begin + change[2], duration)
    if begin - law.begin > 0.5 * duration or law.begin - begin > 0.5 * duration:
        # Another call would be number 0: leave the numbers as they are.
        begin = law.begin
    return Law(law.gain + change[0], law.lookahead + change[1], duration, begin), deviation


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
        raise NotIdentified(
            "the setpoints do not advance along the commands, or not for long enough"
        )
    rate = float(np.median(advance[pairs] / span[pairs]))
    time, at = (motion.times - motion.times[0])[moving], index[moving]
    tried = np.arange(0.6 * rate, 1.7 * rate, 0.2 / time[-1])
    agreement = np.array([abs(np.exp(2j * np.pi * (at - one * time)).mean()) for one in tried])
    peaks = (
        np.flatnonzero((agreement[1:-1] >= agreement[:-2]) & (agreement[1:-1] >= agreement[2:])) + 1
    )
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


def _measured(motion: TargetMotion, law: Law) -> Calls:
    """What the rows of a recording measure under a law."""
    h = motion.cycle
    end = motion.times - motion.times[0]
    # An edge of a call within a millionth of a cycle of a cycle's edge is on it, and belongs to the cycle before.
    call = np.ceil((end - law.begin - 1e-6 * h) / law.duration).astype(np.int64) - 1
    after = end - law.begin - call * law.duration
    targets = JointMotion(motion.q, motion.qd, motion.qdd)
    seen, weight = observe_setpoints(targets, h, law.gain, law.lookahead, np.minimum(after, h))
    share = weight * np.minimum(after / law.duration, 1.0)
    return Calls(law, call, share, seen, np.zeros(0, dtype=np.int64))


def _decoded(motion: TargetMotion, law: Law, commands: Array, index: Array) -> Calls:
    """The command of each call; `index` (T,) is about where each row is along the commands."""
    found = _measured(motion, law)
    low, high = _candidates(found.call, index, len(commands) - 1)
    width = int((high - low).max()) + 1
    if width > _WIDEST:
        raise NotIdentified("the setpoints do not advance along the commands steadily")
    order = np.argsort(found.call, kind="stable")
    first = np.searchsorted(found.call[order], np.arange(len(low)))
    command = np.zeros(len(low), dtype=np.int64)
    arrays = (np.ascontiguousarray(found.seen[order]), found.share[order], first, low, high)
    kernel_of(_search, "search for commands")(commands, *arrays, width, command)
    return replace(found, command=command)


def _candidates(call: Counts, index: Array, last: int) -> tuple[Counts, Counts]:
    """The lowest and highest index of a command that each call may have taken, the one before the first included."""
    # A path may come back to where it was; the commands do not.
    index = np.median(
        np.lib.stride_tricks.sliding_window_view(np.pad(index, 2, mode="edge"), 5), axis=1
    )
    low, high = (np.full(int(call[-1]) + 2, sign * np.inf) for sign in (1.0, -1.0))
    for shift in (0, 1):
        np.minimum.at(low, call + shift, np.floor(index))
        np.maximum.at(high, call + shift, np.ceil(index))
    # Calls without rows: between those of the rows before and after.
    known, missing = np.flatnonzero(np.isfinite(low)), np.flatnonzero(~np.isfinite(low))
    after = np.searchsorted(known, missing)
    low[missing], high[missing] = low[known[after - 1]], high[known[after]]
    low, high = np.minimum(low, high) - _MARGIN, np.maximum(low, high) + _MARGIN
    return np.clip(low, 0, last).astype(np.int64), np.clip(high, 0, last).astype(np.int64)


def _search(
    commands: Array,
    seen: Array,
    share: Array,
    first: Counts,
    low: Counts,
    high: Counts,
    width: int,
    command: Counts,
) -> None:
    """Viterbi over the calls; `command` (M,) is the result."""
    calls = len(low)
    joints = commands.shape[1]
    cost = np.full((calls, width), np.inf)
    origin = np.zeros((calls, width), dtype=np.int64)
    for j in range(high[0] - low[0] + 1):
        cost[0, j] = 0.0
    for m in range(1, calls):
        # Rows of call m - 1, whose previous and current commands are numbers m - 1 and m of this list.
        begin = first[m - 1]
        end = first[m]
        for j in range(high[m] - low[m] + 1):
            current = low[m] + j
            for jump in range(_JUMP + 1):
                previous = current - jump
                k = previous - low[m - 1]
                if k < 0 or previous > high[m - 1]:
                    continue
                total = cost[m - 1, k] + _IRREGULAR * np.log(1.0 + abs(jump - 1.0))
                for row in range(begin, end):
                    square = 0.0
                    for i in range(joints):
                        at = commands[previous, i] + share[row] * (
                            commands[current, i] - commands[previous, i]
                        )
                        square += (seen[row, i] - at) ** 2
                    total += np.log(1.0 + square / _SCALE**2)
                if total < cost[m, j]:
                    cost[m, j] = total
                    origin[m, j] = k
    best = 0
    for j in range(width):
        if cost[calls - 1, j] < cost[calls - 1, best]:
            best = j
    for m in range(calls - 1, -1, -1):
        command[m] = low[m] + best
        best = origin[m, best]
