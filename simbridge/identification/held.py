"""The tuning of servoj without the commands: from moments in which a command was held while the arm still moved.

Where the setpoint s is constant, q' + X qdd + Y qd' - s = 0 in every row, with the same X and Y for all joints. Joints
that settle like this do so exponentially; no other motion of a UR does.

Where every recorded cycle is split alike by the end of a call, single rows fit a wrong tuning exactly. How rows follow
one another shows it: a row's (q - s, qd) is a 2 x 2 matrix times that of the row before, a product of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simbridge.identification.servoj import (
    MOVING,
    SINGLE,
    NotIdentified,
    TargetMotion,
    Tuning,
    cauchy,
    jackknife,
    solved_pair,
    tuning_of,
)
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# Rows of the windows that are tried, and how many windows are looked at together (memory).
_SIZES, _BATCH = (10, 30), 4000
# Rows that are farther apart than this many usual spans do not share a window.
_HOLE = 3.5
# A window's fastest joint must move by this speed at its beginning, rad/s.
_SPEED = 1e-3
# What the setpoint may vary in a window, relative to how far the arm moves. Any smooth motion comes close in a short
# one: non-servoj motions of real arms reached 0.02 in 80 ms.
_SHORT, _EXACT, _EXACT_IF_SHORT, _ROUGHLY = 0.05, 1e-3, 3e-6, 0.05
# How constant it must be for the digits of the file; and the share of rows that must obey.
_DIGITS, _OBEYING = 5.0, 0.7
# How far the tuning of a window may be from the median of all.
_AGREEING = 0.1
# By how many standard deviations the tuning may differ where setpoints may creep.
_CREEPING = 3.0
_ROUNDS, _BLOCKS = 20, 8
# What a matrix leaves of the rows, relative, in an exact file, and at most; how many cycles apart they are at most.
_EXACT_STEP, _ROUGH_STEP, _LONGEST = 1e-9, 5e-3, 20
# What it leaves of rows that are alike, relative, for each rad that the tuning leaves of setpoints (digits), at most.
_ALIKE = 2000.0
# How far an unsplit matrix may be from the one that was measured, relative to what that leaves of the rows.
_SAME = 0.3
# By how much the gain may be off without that a split matters.
_HARMLESS = 2e-3
# By how much the position of a split cycle is off, relative to h^2 qdd: up to a quarter.
_VISIBLE = 3e-3


def fit_to_held_commands(motion: TargetMotion) -> Tuning:
    """The tuning with which setpoints are constant in some windows.

    Raises:
        NotIdentified: No command was held while the arm moved.
    """
    whole, motion = motion, motion[~_seen_split(motion)]
    found: list[Counts] = []
    tunings: list[Array] = []
    scales: list[float] = []
    for size in _SIZES:
        windows = _windows(motion, size)
        for first in range(0, len(windows), _BATCH):
            # Most windows are far from constant, which a few rounds show.
            part = windows[first : first + _BATCH]
            part = part[_constant(motion, part, rounds=5, roughly=True)[0]]
            constant, pairs, off = _constant(motion, part)
            found += list(part[constant])
            tunings += list(pairs[constant])
            scales += list(off[constant])
    if not found:
        if not motion.moving.any():
            raise NotIdentified("the arm does not move")
        raise NotIdentified(
            "no command was held while the arm moved, which is needed without the commands"
        )
    # The best windows show how exact the file is; in others the setpoint may still have crept.
    exact = np.array(scales) < 3.0 * min(scales) + 1e-13
    middle = np.median(np.array(tunings)[exact], axis=0)
    agreeing = np.abs(np.array(tunings) / middle - 1.0).max(axis=1) < _AGREEING
    tuning, rows = _joint_fit(motion, [found[i] for i in np.flatnonzero(exact & agreeing)], middle)
    return _confirmed(whole, tuning, motion.times[rows])


def _confirmed(motion: TargetMotion, tuning: Tuning, times: Array) -> Tuning:
    """A tuning, found from the rows at these times (R,), checked with all rows in which commands were held."""
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    used = np.flatnonzero(np.isin(motion.times, times))
    bound = 5.0 * float(np.percentile(tuning.residuals, 30.0)) + 1e-13
    spans, held, obeying = [], [], []
    for rows in np.split(used, np.flatnonzero(np.diff(used) > 4) + 1):
        # The setpoint that most others are near to.
        near = [
            (np.linalg.norm(setpoints[rows] - one, axis=1) < bound).sum() for one in setpoints[rows]
        ]
        command = setpoints[rows[int(np.argmax(near))]]
        still = rows[np.linalg.norm(setpoints[rows] - command, axis=1) < bound]
        if len(still) > 2:
            span = slice(int(still[0]), int(still[-1]) + 1)
            spans.append(span)
            held.append(command)
            obeying.append(np.linalg.norm(setpoints[span] - command, axis=1) < bound)
    if spans:
        confirmed = _unsplit(motion, tuning, spans, held)
        if confirmed is not None:
            return confirmed
        if np.mean(np.concatenate(obeying)) > _OBEYING:
            return tuning
    raise NotIdentified(
        "commands were held while the arm moved, but too many cycles were split by the ends of calls"
    )


def _windows(motion: TargetMotion, size: int) -> Counts:
    """Rows (W, size) of the windows without holes in which the arm moves."""
    if len(motion) < size:
        return np.zeros((0, size), dtype=np.int64)
    span = np.diff(motion.times)
    hole = np.concatenate([[0], np.cumsum(span > _HOLE * np.median(span))])
    first = np.arange(len(motion) - size + 1)
    speed = np.abs(motion.qd).max(axis=1)
    slowest = np.lib.stride_tricks.sliding_window_view(speed, size).min(axis=1)
    whole = hole[first + size - 1] == hole[first]
    return first[whole & (speed[first] > _SPEED) & (slowest > MOVING)][:, None] + np.arange(size)


def _constant(
    motion: TargetMotion, windows: Counts, *, rounds: int = _ROUNDS, roughly: bool = False
) -> tuple[Flags, Array, Array]:
    """Whether each window (W,) shows a constant setpoint under a tuning that servoj accepts.

    Also X and Y (W, 2), and the median of what is left (W,), rad. Roughly: a few percent of the motion.
    """
    q, a, v = (z[windows] for z in (motion.q_before, motion.qdd, motion.qd_before))
    weights = np.ones(windows.shape)
    for _ in range(rounds):
        share = weights / weights.sum(axis=1, keepdims=True)
        right, x, y = (z - np.einsum("wr,wrj->wj", share, z)[:, None] for z in (-q, a, v))
        xx, xy, yy = (
            np.einsum("wr,wrj,wrj->w", weights, m, n) for m, n in ((x, x), (x, y), (y, y))
        )
        xr, yr = (np.einsum("wr,wrj,wrj->w", weights, m, right) for m in (x, y))
        determinant = xx * yy - xy * xy
        solvable = determinant > 1e-9 * xx * yy
        scaled = np.where(solvable, determinant, 1.0)
        found = np.stack([(yy * xr - xy * yr) / scaled, (xx * yr - xy * xr) / scaled], axis=1)
        left = np.linalg.norm(right - found[:, :1, None] * x - found[:, 1:, None] * y, axis=2)
        # A low percentile finds the rows that obey exactly among others.
        scale = np.maximum(np.percentile(left, 30.0, axis=1), 1e-15)
        weights = cauchy(left, scale[:, None])
    scale = np.maximum(np.median(left, axis=1), 1e-15)
    low, high = (
        np.array([1.0 / GAIN_RANGE[1], LOOKAHEAD_RANGE[0]]),
        np.array([1.0 / GAIN_RANGE[0], LOOKAHEAD_RANGE[1]]),
    )
    accepted = ((found > 0.95 * low) & (found < 1.05 * high)).all(axis=1)
    # How far the arm moves in the rows that count: those that do not may be the only ones in which it does.
    moved = np.sqrt(np.einsum("wr,wrj,wrj->w", weights, right, right) / weights.sum(axis=1))
    digits = _DIGITS * motion.digits(found[:, 0], found[:, 1])
    short = motion.times[windows[:, -1]] - motion.times[windows[:, 0]] < _SHORT
    if roughly:
        return solvable & (scale < _ROUGHLY * moved), found, scale
    constant = scale < np.minimum(np.where(short, _EXACT_IF_SHORT, _EXACT) * moved, digits)
    return solvable & accepted & constant, found, scale


def _exact(distance: Array) -> Array:
    """Weights of residuals; a low percentile as their scale finds those that are exact among others."""
    return cauchy(distance, max(float(np.percentile(distance, 30.0)), 1e-15))


def _joint_fit(motion: TargetMotion, windows: list[Counts], start: Array) -> tuple[Tuning, Counts]:
    """One tuning, about X and Y (2,) at the start, for all windows, and their rows; those that overlap share their
    setpoint."""
    rows = np.unique(np.concatenate(windows))
    group = np.concatenate([[0], np.cumsum(np.diff(rows) > 1)])
    seen = motion[rows].setpoints(1.0 / start[0], start[1])
    middles = np.array([np.median(seen[group == k], axis=0) for k in range(group[-1] + 1)])
    weights = _exact(np.linalg.norm(seen - middles[group], axis=1))
    pair, distance, products, weights = _reweighted(motion[rows], group, weights, creeping=False)
    creeping, *_ = _reweighted(motion[rows], group, weights, creeping=True)
    parts = np.array_split(products * weights, min(_BLOCKS, len(rows)), axis=1)
    others = []
    for part in parts:
        xx, xy, yy, xr, yr = products @ weights - part.sum(axis=1)
        others.append(solved_pair(xx, xy, yy, xr, yr))
    deviation = np.sqrt(jackknife(others))
    # Digits that were cut off are alike in neighbouring rows, and would not show in that.
    xx, xy, yy, _, _ = products @ weights
    rounding = motion.digits(*pair) * np.sqrt(np.array([yy, xx]) / (xx * yy - xy * xy))
    deviation, apart = np.hypot(deviation, rounding), np.abs(np.subtract(creeping, pair))
    changes = float(np.max(apart / np.maximum(deviation, SINGLE * np.abs(pair))))
    if changes > _CREEPING:
        raise NotIdentified(
            "the arm settled, but not exactly as under a command that servoj holds: if the setpoint may have crept, "
            f"gain and lookahead differ by {changes:.0f} standard deviations"
        )
    return tuning_of(pair, np.hypot(deviation, apart), distance), rows


def _reweighted(
    rows: TargetMotion, group: Counts, weights: Array, *, creeping: bool
) -> tuple[tuple[float, float], Array, Array, Array]:
    """X and Y for rows (R,) in groups that share a setpoint, which creeps at a constant rate or not.

    Also what is left in each row (R,), rad, the products (5, R) of the normal equations, and the weights (R,).
    """
    time = rows.times - (np.bincount(group, rows.times) / np.bincount(group))[group]

    def free(z: Array) -> Array:
        basis = np.ones_like(time)
        for _ in range(1 + creeping):
            size = np.bincount(group, weights * basis**2)
            share = np.stack(
                [np.bincount(group, weights * basis * column) / size for column in z.T], axis=1
            )
            z = z - basis[:, None] * share[group]
            basis = time - (np.bincount(group, weights * time) / np.bincount(group, weights))[group]
        return z

    for _ in range(_ROUNDS):
        right, x, y = free(-rows.q_before), free(rows.qdd), free(rows.qd_before)
        products = np.stack(
            [(m * n).sum(axis=1) for m, n in ((x, x), (x, y), (y, y), (x, right), (y, right))]
        )
        pair = solved_pair(*(products @ weights))
        distance = np.linalg.norm(right - pair[0] * x - pair[1] * y, axis=1)
        weights = _exact(distance)
    return pair, distance, products, weights


def _seen_split(motion: TargetMotion) -> Flags:
    """Rows (T,) whose cycle was visibly split: the step from the row one cycle before is not h qd.

    None, where the file is not exact enough or no row follows in the next cycle.
    """
    one = np.concatenate(
        [[False], np.abs(np.diff(motion.times) - motion.cycle) < 0.1 * motion.cycle]
    )
    off = np.zeros(len(motion))
    off[1:] = np.abs(np.diff(motion.q, axis=0) - motion.cycle * motion.qd[1:]).max(axis=1)
    share = off / np.maximum(motion.cycle**2 * np.abs(motion.qdd).max(axis=1), 1e-12)
    known = one & motion.moving
    if not known.any() or np.percentile(share[known], 10.0) > 0.1 * _VISIBLE:
        return np.zeros(len(motion), dtype=bool)
    return known & (share > _VISIBLE)


def _unsplit(
    motion: TargetMotion, tuning: Tuning, spans: Sequence[slice], held: Sequence[Array]
) -> Tuning | None:
    """The tuning, confirmed or corrected by how rows follow one another; None where they do not tell.

    It was found as if cycles were whole, from spans of rows in which one command (n,), rad, was held each.
    """
    units = float(np.sqrt(tuning.gain))
    rough = min(max(_ALIKE * float(np.median(tuning.residuals)), _EXACT_STEP), _ROUGH_STEP)
    # In units in which both are about equal.
    states = [
        np.stack([motion.q[s] - c, motion.qd[s] / units], axis=2)
        for s, c in zip(spans, held, strict=True)
    ]
    cycles = [
        np.round((motion.times[s] - motion.times[0]) / motion.cycle).astype(int) for s in spans
    ]
    for apart in range(1, _LONGEST + 1):
        # Rows so many cycles apart are all related alike if that is a multiple of a call, and if they begin alike.
        pairs = [
            (k, i, int(j), int(at[i]) % apart)
            for k, at in enumerate(cycles)
            for i, j in enumerate(np.searchsorted(at, at + apart))
            if j < len(at) and at[j] == at[i] + apart
        ]
        usual = np.bincount([pair[3] for pair in pairs], minlength=1)
        if usual.max() < 4:
            continue
        pairs = [pair for pair in pairs if pair[3] == usual.argmax()]
        before = np.concatenate([states[k][i] for k, i, _, _ in pairs])
        after = np.concatenate([states[k][j] for k, _, j, _ in pairs])
        matrix, misfit = _transition(before, after)
        if misfit > rough:
            continue
        bound = 1e3 * misfit + 1e-11 if misfit < _EXACT_STEP else misfit
        whole = _product(tuning.gain, tuning.lookahead, motion.cycle, apart, None, 0.0, units)
        if np.linalg.norm(whole - matrix) < (bound if misfit < _EXACT_STEP else _SAME * misfit):
            return tuning
        corrected = [
            found
            for period in (p for p in range(1, apart + 1) if apart % p == 0)
            for first in range(period)
            for share in (0.2, 0.5, 0.8)
            if (found := _matched(matrix, tuning, motion.cycle, apart, period, first, share, units))
            is not None
            and found[0] < bound
        ]
        if corrected:
            best = min(corrected, key=lambda found: found[0])[1]
            if misfit < _EXACT_STEP:
                return best
            # The digits of the file do not show the split well enough to correct what it does.
            if abs(best.gain / tuning.gain - 1.0) < _HARMLESS:
                apart_by = np.array([best.gain - tuning.gain, best.lookahead - tuning.lookahead])
                return replace(tuning, deviation=np.hypot(tuning.deviation, apart_by))
            raise NotIdentified(
                "commands were held while the arm moved, but every cycle was split by the end of a call"
            )
    return None


def _transition(before: Array, after: Array) -> tuple[Array, float]:
    """The matrix (2, 2) from one row to the next, and the median of what it leaves, relative."""
    # Joints at rest fit any matrix.
    size = np.linalg.norm(before, axis=1)
    moving = size > 1e-3 * size.max()
    before, after = before[moving], after[moving]
    weights = np.ones(len(before))
    for _ in range(10):
        root = np.sqrt(weights)[:, None]
        matrix = np.linalg.lstsq(before * root, after * root, rcond=None)[0].T
        left = np.linalg.norm(after - before @ matrix.T, axis=1)
        weights = cauchy(left, max(float(np.median(left)), 1e-15))
    return matrix, float(
        np.median(left) / max(float(np.median(np.linalg.norm(before, axis=1))), 1e-15)
    )


def _product(
    gain: float,
    lookahead: float,
    cycle: float,
    count: int,
    split: Counts | None,
    second: float,
    units: float,
) -> Array:
    """The matrix of `count` cycles; those in `split` are two steps, of which the last lasts `second` s."""

    def step(duration: float) -> Array:
        slower = 1.0 - duration * gain * lookahead
        faster = np.array([-duration * gain / units, slower])
        return np.array([np.array([1.0, 0.0]) + duration * units * faster, faster])

    one, two = step(cycle), step(second) @ step(cycle - second) if split is not None else np.eye(2)
    total = np.eye(2)
    for i in range(count):
        total = (two if split is not None and i in split else one) @ total
    return total


def _matched(
    matrix: Array,
    tuning: Tuning,
    cycle: float,
    count: int,
    period: int,
    first: int,
    share: float,
    units: float,
) -> tuple[float, Tuning] | None:
    """The tuning with which split cycles give the matrix (Gauss-Newton), and how far they miss it.

    The first cycle that is split, and every so many after it, in two steps of which the last begins as that share.
    """
    split = np.arange(first, count, period)
    values = np.array([tuning.gain, tuning.lookahead, share * cycle])
    steps = np.array([1e-6 * tuning.gain, 1e-6 * tuning.lookahead, 1e-6 * cycle])
    limit = np.array([0.2 * tuning.gain, 0.2 * tuning.lookahead, 0.2 * cycle])

    def product(gain: float, lookahead: float, last: float) -> Array:
        return _product(gain, lookahead, cycle, count, split, last, units)

    for _ in range(25):
        now = product(*values)
        slopes = np.stack(
            [(product(*(values + step)) - now).ravel() for step in np.diag(steps)], axis=1
        )
        change = np.linalg.lstsq(slopes, (matrix - now).ravel(), rcond=1e-10)[0] * steps
        values = values + np.clip(change, -limit, limit)
        if not 0.01 * cycle < values[2] < 0.99 * cycle or values[:2].min() <= 0.0:
            return None
    missed = float(np.linalg.norm(product(*values) - matrix))
    return missed, replace(tuning, gain=float(values[0]), lookahead=float(values[1]))
