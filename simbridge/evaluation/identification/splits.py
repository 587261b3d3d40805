"""Whether the cycles that held commands were seen in were split by the ends of calls, and the tuning if they were.

Under a constant setpoint s a row's (q - s, qd) is a 2 x 2 matrix times that of the row before. Where every recorded
cycle is split alike, single rows fit a wrong tuning exactly; the matrix does not, for it is a product of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simbridge.evaluation.identification.servoj import NotIdentified, TargetMotion, Tuning
from simbridge.robot.pose import Array, Counts, Flags

# What a matrix leaves of the rows, relative, in an exact file, and at most; how many cycles apart they are at most.
_EXACT, _ROUGH, _LONGEST = 1e-9, 5e-3, 20
# What it leaves of rows that are alike, relative, for each rad that the tuning leaves of setpoints (digits), at most.
_ALIKE = 2000.0
# How far an unsplit matrix may be from the one that was measured, relative to what that leaves of the rows.
_SAME = 0.3
# By how much the gain may be off without that a split matters.
_HARMLESS = 2e-3
# By how much the position of a split cycle is off, relative to h^2 qdd: up to a quarter.
_VISIBLE = 3e-3


def seen_split(motion: TargetMotion) -> Flags:
    """Rows (T,) whose cycle was visibly split: the step from the row one cycle before is not h qd.

    None, where the file is not exact enough or no row follows in the next cycle.
    """
    one = np.concatenate([[False], np.abs(np.diff(motion.times) - motion.cycle) < 0.1 * motion.cycle])
    off = np.zeros(len(motion))
    off[1:] = np.abs(np.diff(motion.q, axis=0) - motion.cycle * motion.qd[1:]).max(axis=1)
    share = off / np.maximum(motion.cycle**2 * np.abs(motion.qdd).max(axis=1), 1e-12)
    known = one & motion.moving
    if not known.any() or np.percentile(share[known], 10.0) > 0.1 * _VISIBLE:
        return np.zeros(len(motion), dtype=bool)
    return known & (share > _VISIBLE)


def unsplit(motion: TargetMotion, tuning: Tuning, spans: Sequence[slice], held: Sequence[Array]) -> Tuning | None:
    """The tuning, confirmed or corrected by how rows follow one another; None where they do not tell.

    Args:
        motion: Of the controller.
        tuning: As found from rows with held commands, as if their cycles were whole.
        spans: Rows in which one command was held.
        held: These commands (n,), rad.

    Raises:
        NotIdentified: All cycles were split, in a file that is not exact enough to correct that.
    """
    units = float(np.sqrt(tuning.gain))
    rough = min(max(_ALIKE * float(np.median(tuning.residuals)), _EXACT), _ROUGH)
    # In units in which both are about equal.
    states = [np.stack([motion.q[s] - c, motion.qd[s] / units], axis=2) for s, c in zip(spans, held, strict=True)]
    cycles = [np.round((motion.times[s] - motion.times[0]) / motion.cycle).astype(int) for s in spans]
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
        bound = 1e3 * misfit + 1e-11 if misfit < _EXACT else misfit
        whole = _product(tuning.gain, tuning.lookahead, motion.cycle, apart, None, 0.0, units)
        if _distance(whole, matrix) < (bound if misfit < _EXACT else _SAME * misfit):
            return tuning
        corrected = [
            found
            for period in (p for p in range(1, apart + 1) if apart % p == 0)
            for first in range(period)
            for share in (0.2, 0.5, 0.8)
            if (found := _matched(matrix, tuning, motion.cycle, apart, period, first, share, units)) is not None
            and found[0] < bound
        ]
        if corrected:
            best = min(corrected, key=lambda found: found[0])[1]
            if misfit < _EXACT:
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
        weights = 1.0 / (1.0 + (left / max(float(np.median(left)), 1e-15)) ** 2)
    return matrix, float(np.median(left) / max(float(np.median(np.linalg.norm(before, axis=1))), 1e-15))


def _product(
    gain: float, lookahead: float, cycle: float, count: int, split: Counts | None, second: float, units: float
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


def _distance(one: Array, two: Array) -> float:
    return float(np.linalg.norm(one - two))


def _matched(
    matrix: Array, tuning: Tuning, cycle: float, count: int, period: int, first: int, share: float, units: float
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
        slopes = np.stack([(product(*(values + step)) - now).ravel() for step in np.diag(steps)], axis=1)
        change = np.linalg.lstsq(slopes, (matrix - now).ravel(), rcond=1e-10)[0] * steps
        values = values + np.clip(change, -limit, limit)
        if not 0.01 * cycle < values[2] < 0.99 * cycle or values[:2].min() <= 0.0:
            return None
    return _distance(product(*values), matrix), replace(tuning, gain=float(values[0]), lookahead=float(values[1]))
