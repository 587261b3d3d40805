"""Which command each call of servoj took, from the controller's joint targets.

Call m lasts from `begin` + m `duration` until the next call begins. During it the setpoint moves in a straight line
from the previous call's command to this call's. Every row therefore measures one point between two commands:

    seen = (1 - share) previous + share current

In a cycle that one call's end splits, two setpoints act one after the other; what the row then measures is their
weighted mean, which has the same form. A late sender holds a command or skips some: the sequence of commands that fits
best is searched for by dynamic programming (Viterbi) over the calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from simbridge.evaluation.identification.servoj import NotIdentified, Path, TargetMotion, Tuning
from simbridge.ik.kernels.compile import kernel
from simbridge.ik.kernels.module import module_text
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import JointMotion, setpoints_seen

# How many commands a call may advance, and how many around the nearest ones are considered for each.
_JUMP, _MARGIN, _WIDEST = 40, 3, 1000
# Cost of a command that is held or skipped, in units of the logarithm of squared residuals.
_IRREGULAR = 1.0
# Residuals below this are rounding, rad: commands are single precision.
_SCALE = 1e-6


@dataclass(frozen=True)
class Law:
    """The servo law with the timing of its calls.

    Attributes:
        gain: 1/s^2.
        lookahead: s.
        duration: Of a call, s.
        begin: When call 0 begins, s after the end of the first row's cycle: negative, by less than a duration.
    """

    gain: float
    lookahead: float
    duration: float
    begin: float


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a recording.

    Attributes:
        cycle: The controller's, s.
        law: With their timing.
        call: The call at the end of each row's cycle (T,).
        share: Of this call's command in what the row measures (T,); the rest is the previous call's.
        seen: The measured point (T, n), rad.
        command: Index of the command that each call took (M,), counted from the call before the first: `command[m]`
            and `command[m + 1]` are the previous and the current one of call m. Empty if not searched for yet.
    """

    cycle: float
    law: Law
    call: Counts
    share: Array
    seen: Array
    command: Counts

    def expected(self, commands: Array) -> Array:
        """What each row should measure (T, n), rad, with these commands (K, n)."""
        share = self.share[:, None]
        return (1.0 - share) * commands[self.command[self.call]] + share * commands[self.command[self.call + 1]]


def measured(motion: TargetMotion, law: Law) -> Calls:
    """What the rows of a recording measure under a law."""
    h = motion.cycle
    end = motion.times - motion.times[0]
    # An edge of a call within a millionth of a cycle of a cycle's edge is on it, and belongs to the cycle before.
    call = np.ceil((end - law.begin - 1e-6 * h) / law.duration).astype(np.int64) - 1
    after = end - law.begin - call * law.duration
    targets = JointMotion(motion.q, motion.qd, motion.qdd)
    seen, weight = setpoints_seen(targets, h, law.gain, law.lookahead, np.minimum(after, h))
    share = weight * np.minimum(after / law.duration, 1.0)
    return Calls(h, law, call, share, seen, np.zeros(0, dtype=np.int64))


def decode(motion: TargetMotion, law: Law, commands: Array, index: Array) -> Calls:
    """Find the command of each call.

    Args:
        motion: Of the controller.
        law: That made it.
        commands: (K, n), rad, in the order in which they were sent.
        index: About where each row is along them (T,): see `along`.

    Raises:
        NotIdentified: `index` leaves too many commands open.
    """
    found = measured(motion, law)
    low, high = _candidates(found.call, index, len(commands) - 1)
    width = int((high - low).max()) + 1
    if width > _WIDEST:
        raise NotIdentified("the setpoints do not advance along the commands steadily")
    order = np.argsort(found.call, kind="stable")
    first = np.searchsorted(found.call[order], np.arange(len(low)))
    command = np.zeros(len(low), dtype=np.int64)
    arrays = (np.ascontiguousarray(found.seen[order]), found.share[order], first, low, high)
    _compiled()(commands, *arrays, width, _SCALE, command)
    return replace(found, command=command)


def along(motion: TargetMotion, tuning: Tuning, commands: Array) -> tuple[Array, Array]:
    """Where each row's setpoint is along the commands (T,), and how far from their path (T,), rad.

    3.25 is a quarter of the way from command 3 to command 4.
    """
    path = Path.of(commands)
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    segment = path.follow(setpoints)
    foot, share = path.project(setpoints, segment)
    return path.index[segment] + share, np.linalg.norm(setpoints - foot, axis=1)


def _compiled() -> Callable[..., None]:
    return kernel(module_text(_search), "_search", "search for commands")


def _candidates(call: Counts, index: Array, last: int) -> tuple[Counts, Counts]:
    """The lowest and highest index of a command that each call may have taken, the one before the first included.

    Args:
        call: Of each row (T,).
        index: About where each row is along the commands (T,).
        last: Index of the last command.
    """
    # A path may come back to where it was; the commands do not.
    index = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(index, 2, mode="edge"), 5), axis=1)
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
    scale: float,
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
                        at = commands[previous, i] + share[row] * (commands[current, i] - commands[previous, i])
                        square += (seen[row, i] - at) ** 2
                    total += np.log(1.0 + square / scale**2)
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
