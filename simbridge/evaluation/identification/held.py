"""The tuning of servoj without the commands: from moments in which a command was held while the arm still moved.

Where the setpoint s is constant, q' + X qdd + Y qd' - s = 0 in every row, with the same X and Y for all joints. Joints
that settle like this do so exponentially; no other motion of a UR does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simbridge.evaluation.identification.servoj import (
    MOVING,
    SINGLE,
    NotIdentified,
    TargetMotion,
    Tuning,
    resolution,
    tuning_of,
)
from simbridge.evaluation.identification.splits import seen_split, unsplit
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


def fit_to_held_commands(motion: TargetMotion) -> Tuning:
    """The tuning with which setpoints are constant in some windows.

    Raises:
        NotIdentified: No command was held while the arm moved.
    """
    whole, motion = motion, motion[~seen_split(motion)]
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
        raise NotIdentified("no command was held while the arm moved, which is needed without the commands")
    # The best windows show how exact the file is; in others the setpoint may still have crept.
    exact = np.array(scales) < 3.0 * min(scales) + 1e-13
    middle = np.median(np.array(tunings)[exact], axis=0)
    agreeing = np.abs(np.array(tunings) / middle - 1.0).max(axis=1) < _AGREEING
    tuning, rows = _joint_fit(motion, [found[i] for i in np.flatnonzero(exact & agreeing)], middle)
    return _confirmed(whole, tuning, motion.times[rows])


def _confirmed(motion: TargetMotion, tuning: Tuning, times: Array) -> Tuning:
    """The tuning, checked with all rows of the time in which commands were held.

    Args:
        motion: All rows.
        tuning: As found.
        times: Of the rows (R,) that it was found from, s.

    Raises:
        NotIdentified: The rows may have been split by the ends of calls.
    """
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    used = np.flatnonzero(np.isin(motion.times, times))
    bound = 5.0 * float(np.percentile(tuning.residuals, 30.0)) + 1e-13
    spans, held, obeying = [], [], []
    for rows in np.split(used, np.flatnonzero(np.diff(used) > 4) + 1):
        command = _most_common(setpoints[rows], bound)
        still = rows[np.linalg.norm(setpoints[rows] - command, axis=1) < bound]
        if len(still) > 2:
            span = slice(int(still[0]), int(still[-1]) + 1)
            spans.append(span)
            held.append(command)
            obeying.append(np.linalg.norm(setpoints[span] - command, axis=1) < bound)
    if spans:
        confirmed = unsplit(motion, tuning, spans, held)
        if confirmed is not None:
            return replace(confirmed, confirmed=True)
        if np.mean(np.concatenate(obeying)) > _OBEYING:
            return replace(tuning, confirmed=True)
    raise NotIdentified("commands were held while the arm moved, but too many cycles were split by the ends of calls")


def _most_common(points: Array, near: float) -> Array:
    """The point (n,) that most of others (R, n) are near to."""
    count = [(np.linalg.norm(points - one, axis=1) < near).sum() for one in points]
    return points[int(np.argmax(count))]


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
        xx, xy, yy = (np.einsum("wr,wrj,wrj->w", weights, m, n) for m, n in ((x, x), (x, y), (y, y)))
        xr, yr = (np.einsum("wr,wrj,wrj->w", weights, m, right) for m in (x, y))
        determinant = xx * yy - xy * xy
        solvable = determinant > 1e-9 * xx * yy
        scaled = np.where(solvable, determinant, 1.0)
        found = np.stack([(yy * xr - xy * yr) / scaled, (xx * yr - xy * xr) / scaled], axis=1)
        left = np.linalg.norm(right - found[:, :1, None] * x - found[:, 1:, None] * y, axis=2)
        # A low percentile finds the rows that obey exactly among others.
        scale = np.maximum(np.percentile(left, 30.0, axis=1), 1e-15)
        weights = 1.0 / (1.0 + (left / scale[:, None]) ** 2)
    scale = np.maximum(np.median(left, axis=1), 1e-15)
    low, high = np.array([1.0 / GAIN_RANGE[1], LOOKAHEAD_RANGE[0]]), np.array([1.0 / GAIN_RANGE[0], LOOKAHEAD_RANGE[1]])
    accepted = ((found > 0.95 * low) & (found < 1.05 * high)).all(axis=1)
    # How far the arm moves in the rows that count: those that do not may be the only ones in which it does.
    moved = np.sqrt(np.einsum("wr,wrj,wrj->w", weights, right, right) / weights.sum(axis=1))
    digits = _DIGITS * _digits(motion, found[:, 0], found[:, 1])
    short = motion.times[windows[:, -1]] - motion.times[windows[:, 0]] < _SHORT
    if roughly:
        return solvable & (scale < _ROUGHLY * moved), found, scale
    constant = scale < np.minimum(np.where(short, _EXACT_IF_SHORT, _EXACT) * moved, digits)
    return solvable & accepted & constant, found, scale


def _digits(motion: TargetMotion, x: Any, y: Any) -> Any:
    """How finely the digits of a recording show setpoints, rad, for X and Y."""
    return resolution(motion.q) + x * resolution(motion.qdd) + y * resolution(motion.qd)


def _cauchy(distance: Array) -> Array:
    """Weights of residuals; a low percentile as their scale finds those that are exact among others."""
    return np.asarray(1.0 / (1.0 + (distance / max(float(np.percentile(distance, 30.0)), 1e-15)) ** 2))


def _joint_fit(motion: TargetMotion, windows: list[Counts], start: Array) -> tuple[Tuning, Counts]:
    """One tuning for all windows, and their rows; those that overlap share their setpoint.

    Args:
        motion: Of the controller.
        windows: Their rows.
        start: About X and Y (2,).

    Raises:
        NotIdentified: With setpoints that creep the tuning is another one.
    """
    rows = np.unique(np.concatenate(windows))
    group = np.concatenate([[0], np.cumsum(np.diff(rows) > 1)])
    seen = motion[rows].setpoints(1.0 / start[0], start[1])
    middles = np.array([np.median(seen[group == k], axis=0) for k in range(group[-1] + 1)])
    weights = _cauchy(np.linalg.norm(seen - middles[group], axis=1))
    pair, distance, products, weights = _reweighted(motion[rows], group, weights, creeping=False)
    creeping, *_ = _reweighted(motion[rows], group, weights, creeping=True)
    # What is left in neighbouring rows is not independent: blocks of rows left out in turn.
    parts = np.array_split(products * weights, min(_BLOCKS, len(rows)), axis=1)
    others = []
    for part in parts:
        xx, xy, yy, xr, yr = products @ weights - part.sum(axis=1)
        others.append(((yy * xr - xy * yr), (xx * yr - xy * xr)) / (xx * yy - xy * xy))
    spread = np.array(others) - np.mean(others, axis=0)
    deviation = np.sqrt((len(parts) - 1) / len(parts) * np.sum(spread**2, axis=0))
    # Digits that were cut off are alike in neighbouring rows, and would not show in that.
    xx, xy, yy, _, _ = products @ weights
    rounding = _digits(motion, *pair) * np.sqrt(np.array([yy, xx]) / (xx * yy - xy * xy))
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
            share = np.stack([np.bincount(group, weights * basis * column) / size for column in z.T], axis=1)
            z = z - basis[:, None] * share[group]
            basis = time - (np.bincount(group, weights * time) / np.bincount(group, weights))[group]
        return z

    for _ in range(_ROUNDS):
        right, x, y = free(-rows.q_before), free(rows.qdd), free(rows.qd_before)
        products = np.stack([(m * n).sum(axis=1) for m, n in ((x, x), (x, y), (y, y), (x, right), (y, right))])
        xx, xy, yy, xr, yr = products @ weights
        determinant = xx * yy - xy * xy
        pair = ((yy * xr - xy * yr) / determinant, (xx * yr - xy * xr) / determinant)
        distance = np.linalg.norm(right - pair[0] * x - pair[1] * y, axis=1)
        weights = _cauchy(distance)
    return pair, distance, products, weights
