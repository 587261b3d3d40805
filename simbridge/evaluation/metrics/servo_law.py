"""The servo law of a controller, from the joint targets that it reports at every cycle and the commands it was sent.

The law gives the setpoint s of each cycle from the joint targets q, v and a = (v - v') / h (`simbridge.servo.law`):

    s = q' + a / gain + lookahead v',    with q' and v' one cycle before

and s is the command that the cycle took, which was sent `delay` before. Distances to the path of the commands do not
show a delay along it, so commands are taken by time: first the delay, in whole cycles, at which most cycles fit, then
for each cycle the command around it that fits best, since the link's delay varies by whole cycles, or the one that the
cycle before took, since a late command leaves the last one in force. Gain and lookahead follow by linear least squares,
cycles that do not fit having little weight. Where calls begin inside of the cycles, each cycle is integrated in two
steps, and their phase is found as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw

# Below this speed, rad/s, a cycle shows nothing.
_MOVING = 1e-4
_FEWEST = 50
# More cycles would not change the result.
_MOST = 4000
# Longest ordinary delay of the link, s, and by how much it varies, s: usually, and after a stall.
_LONGEST = 0.04
_VARIES = (0.008, 0.1)
# Cycles for which a command may hold.
_LONGEST_HOLD = 100
# Of this share of the cycles at least, the delay is the commonest one.
_SHARE = 0.3
# Residuals of rounding to single precision, rad; those of double precision, which no phase could improve.
_ROUNDING, _EXACT = 2e-7, 1e-10


@dataclass(frozen=True)
class FoundLaw:
    """A servo law as found in joint targets.

    Attributes:
        gain: 1/s^2.
        lookahead: s.
        deviations: Standard deviations of both.
        delay: Mean delay of the commands, s.
        phase: How long after a cycle's begin calls begin, s.
        residuals: Distance of each moving cycle's setpoint from a command (K,), rad.
    """

    gain: float
    lookahead: float
    deviations: tuple[float, float]
    delay: float
    phase: float
    residuals: Array


class LawNotFound(ValueError):
    """Joint targets cannot show the servo law; the message says why, as a clause."""


def find_servo_law(
    law: ServojLaw, cycles: NDArray[np.int64], commands: Array, q: Array, qd: Array, qdd: Array
) -> FoundLaw:
    """The servo law by which commands became joint targets.

    Args:
        law: The expected one, from whose tuning the search begins, too; a call lasts one cycle.
        cycles: Increasing numbers (T,) of the rows' cycles; some may be missing.
        commands: Sent for each of these cycles (T, n), rad.
        q, qd, qdd: Joint targets (T, n) at the end of each cycle, rad, rad/s and rad/s^2.

    Raises:
        LawNotFound: The motion cannot show it.
    """
    moving = np.flatnonzero(np.abs(qd).max(axis=1) > _MOVING)
    # With the cycle before it.
    moving = moving[(moving > 0) & (np.diff(cycles, prepend=cycles[0] - 2)[moving] == 1)]
    if len(moving) < _FEWEST:
        raise LawNotFound(f"the joints moved in {len(moving)} consecutive cycles only")
    fit = _Fit(law.cycle, cycles, commands.astype(np.float32).astype(float), q, qd, qdd)
    few = moving[:: -(-len(moving) // _MOST)]
    expected = np.array([1.0 / law.gain, float(np.float32(law.lookahead))])
    found = []
    for delay in range(-1, round(_LONGEST / law.cycle) + 1):
        tuning, _, score = fit.tuning(few, np.full(len(few), delay))
        found.append((score, delay, tuning))
    found.sort(key=lambda each: each[0])
    # Where the delay varies much, most cycles may fit at none.
    starts = [(delay, tuning) for _, delay, tuning in found[:2]] + [(0, expected)]
    score, delay, tuning, covariance = min((fit.refined(few, *start) for start in starts), key=lambda each: each[0])
    phase = 0.0
    if score > _EXACT:
        delay, tuning, phase = fit.with_phase(few, found[0][1], found[0][2], score)
    delays, residuals = fit.taken(moving, delay, tuning, phase)
    if phase:
        covariance = fit.covariance(moving, residuals)
    late = cycles[moving] - cycles[np.clip(moving - delays, 0, None)]
    deviations = np.sqrt(np.diag(covariance))
    return FoundLaw(
        gain=float(1.0 / tuning[0]),
        lookahead=float(tuning[1]),
        deviations=(float(deviations[0] / tuning[0] ** 2), float(deviations[1])),
        delay=float(late.mean() * law.cycle),
        phase=phase,
        residuals=residuals,
    )


class _Fit:
    """The rows of a recording, and fits to them.

    A tuning is X = 1 / gain and Y = lookahead. Delays count rows, which are cycles where none is missing.

    Args: See `find_servo_law`.
    """

    def __init__(self, cycle: float, cycles: NDArray[np.int64], sent: Array, q: Array, qd: Array, qdd: Array) -> None:
        self._cycle, self._cycles, self._sent = cycle, cycles, sent
        self._q, self._qd, self._qdd = np.roll(q, 1, axis=0), qd - cycle * qdd, qdd

    def _command(self, rows: NDArray[np.int64], delays: NDArray[np.int64]) -> Array:
        at = rows - delays
        known = (at >= 0) & (at < len(self._sent))
        return np.where(known[:, np.newaxis], self._sent[np.clip(at, 0, len(self._sent) - 1)], np.nan)

    def tuning(self, rows: NDArray[np.int64], delays: NDArray[np.int64]) -> tuple[Array, Array, float]:
        """Robust least squares for commands with these delays (K,) in cycles: tuning, its covariance, and its score."""
        wanted = self._command(rows, delays) - self._q[rows]
        known = np.isfinite(wanted).all(axis=1)
        if known.sum() < _FEWEST:
            return np.zeros(2), np.zeros((2, 2)), np.inf
        columns = np.stack([self._qdd[rows][known], self._qd[rows][known]], axis=-1)
        return _robust(columns, wanted[known])

    def setpoints(self, rows: NDArray[np.int64], tuning: Array) -> Array:
        """What the cycles' joint targets reveal (K, n), rad, where calls begin on the cycle's edge."""
        setpoints: Array = self._q[rows] + tuning[0] * self._qdd[rows] + tuning[1] * self._qd[rows]
        return setpoints

    def _residual(self, rows: NDArray[np.int64], old: Array, new: Array, tuning: Array, phase: float) -> Array:
        """Residuals (K, n), rad, of cycles in which the call towards `new` begins `phase` s after their begin."""
        if phase == 0.0:
            return new - self.setpoints(rows, tuning)
        gain, lookahead, rest = 1.0 / tuning[0], tuning[1], self._cycle - phase
        q, qd = self._q[rows], self._qd[rows]
        first = qd + phase * gain * (old - q - lookahead * qd)
        middle = q + phase * first
        setpoint = old + rest / self._cycle * (new - old)
        last = first + rest * gain * (setpoint - middle - lookahead * first)
        residual: Array = ((last - qd) / self._cycle - self._qdd[rows]) / gain
        return residual

    def with_phase(self, rows: NDArray[np.int64], delay: int, start: Array, score: float) -> tuple[int, Array, float]:
        """Delay, tuning and phase, s, where calls that begin inside of the cycles explain much more."""
        best = delay, start, 0.0
        for other in (delay - 1, delay, delay + 1):
            old, new = (self._command(rows, np.full(len(rows), other + more)) for more in (1, 0))
            known = np.isfinite(old).all(axis=1) & np.isfinite(new).all(axis=1)
            if known.sum() < _FEWEST:
                continue
            for share in (0.25, 0.5, 0.75):
                x = np.array([*start, share * self._cycle])
                x, found = self._newton(rows[known], old[known], new[known], x)
                if found < 0.2 * score:
                    best, score = (other, x[:2], float(x[2])), found
        return best

    def _newton(self, rows: NDArray[np.int64], old: Array, new: Array, x: Array) -> tuple[Array, float]:
        """Gauss-Newton for tuning and phase, robustly."""
        steps = np.array([1e-7 * x[0], 1e-7 * x[1], 1e-6 * self._cycle])
        for _ in range(20):
            at = self._residual(rows, old, new, x[:2], x[2])
            slopes = []
            for number, step in enumerate(steps):
                moved = x.copy()
                moved[number] += step
                slopes.append((at - self._residual(rows, old, new, moved[:2], moved[2])) / step)
            change, _, _ = _robust(np.stack(slopes, axis=-1), at, rounds=1)
            x = x + change
            x = np.array([max(x[0], 1e-6), max(x[1], 1e-4), min(max(x[2], 1e-3 * self._cycle), 0.999 * self._cycle)])
            if np.abs(change[:2] / x[:2]).max() < 1e-9:
                break
        return x, _scale(np.linalg.norm(self._residual(rows, old, new, x[:2], x[2]), axis=1))

    def refined(self, rows: NDArray[np.int64], delay: int, tuning: Array) -> tuple[float, int, Array, Array]:
        """Score, delay, tuning and its covariance, each cycle with the command that fits best."""
        covariance, score = np.zeros((2, 2)), np.inf
        for _ in range(10):
            delays, _ = self.taken(rows, delay, tuning)
            before = tuning
            tuning, covariance, score = self.tuning(rows, delays)
            if not np.isfinite(score) or np.abs(tuning - before).max() <= 1e-9 * np.abs(before).max():
                break
        return score, delay, tuning, covariance

    def covariance(self, rows: NDArray[np.int64], residuals: Array) -> Array:
        """Covariance of the tuning for these residuals (K,), rad."""
        return _covariance(np.stack([self._qdd[rows], self._qd[rows]], axis=-1), residuals)

    def taken(
        self, rows: NDArray[np.int64], delay: int, tuning: Array, phase: float = 0.0
    ) -> tuple[NDArray[np.int64], Array]:
        """The delay (K,) of the command that each cycle took, and its residual (K,), rad."""
        delays, residuals = np.full(len(rows), delay), np.full(len(rows), np.inf)

        def attempt(which: NDArray[np.intp], tried: NDArray[np.int64]) -> None:
            """Take the commands with the delays `tried` where they fit better."""
            new = self._command(rows[which], tried)
            # The call before took the command before, the same one, or one earlier.
            for more in (0, 1, 2) if phase else (0,):
                old = self._command(rows[which], tried + more)
                distance = np.linalg.norm(self._residual(rows[which], old, new, tuning, phase), axis=1)
                better = distance < residuals[which]
                delays[which[better]], residuals[which[better]] = tried[better], distance[better]

        near, far = (round(span / self._cycle) for span in _VARIES)
        everywhere = np.arange(len(rows))
        for varied in range(delay - near, delay + near + 1):
            attempt(everywhere, np.full(len(rows), varied))
        fits = max(20.0 * _scale(residuals), _ROUNDING)
        for varied in range(delay + near + 1, delay + far + 1):
            which = np.flatnonzero(residuals > fits)
            attempt(which, np.full(len(which), varied))
        for _ in range(_LONGEST_HOLD):
            which = np.flatnonzero((residuals > fits) & (np.roll(rows, 1) == rows - 1))
            which = which[residuals[which - 1] <= fits]
            before = residuals[which]
            attempt(which, delays[which - 1] + 1)
            if not (residuals[which] < before).any():
                break
        return delays, residuals


def _scale(residuals: Array) -> float:
    return float(np.quantile(residuals, _SHARE))


def _robust(columns: Array, wanted: Array, rounds: int = 30) -> tuple[Array, Array, float]:
    """Unknowns x (m,) with columns (K, n, m) x = wanted (K, n), rows that do not fit having little weight.

    Returns:
        The unknowns, their covariance (m, m), and the scale of the residuals of the rows that fit best.
    """
    weights = np.ones(len(wanted))
    x = np.zeros(columns.shape[-1])
    for _ in range(rounds):
        weighted = columns * weights[:, np.newaxis, np.newaxis]
        normal = np.einsum("kni,knj->ij", weighted, columns)
        found = np.linalg.lstsq(normal, np.einsum("kni,kn->i", weighted, wanted), rcond=None)[0]
        residuals = np.linalg.norm(wanted - columns @ found, axis=1)
        scale = max(_scale(residuals), 1e-13)
        weights = 1.0 / (1.0 + (residuals / scale) ** 2)
        done = np.abs(found - x).max() <= 1e-10 * np.abs(found).max()
        x = found
        if done:
            break
    return x, _covariance(columns, residuals), _scale(residuals)


def _covariance(columns: Array, residuals: Array) -> Array:
    """Covariance of the unknowns, from the rows (K,) whose residuals are not beyond those of most."""
    spread = 3.0 * float(np.median(residuals))
    kept = residuals <= spread
    normal = np.einsum("kni,knj->ij", columns[kept], columns[kept])
    variance = float(np.mean(residuals[kept] ** 2)) / columns.shape[1]
    covariance: Array = variance * np.linalg.pinv(normal)
    return covariance
