"""The servo law of a controller, from the joint targets that it reports at every cycle and the commands it was sent.

Under a tuning and a phase of the calls, each cycle's joint targets reveal one point between the commands of two
successive calls (`simbridge.servo.observation.observe_setpoints`). Which commands these were is searched for by dynamic
programming over the cycles: the link's delay varies, but commands arrive in order, so the index of the command taken
never goes back. Distances to the path of the commands do not show a delay along it, so commands are taken by time.

First the expected law is tried, with any phase. Only where it does not explain the cycles to rounding is another tuning
searched for: from the least squares for each constant delay, since a delay and a lookahead look alike until the
commands are found. A tuning counts as found where no other one explains the cycles about as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion, ServojLaw
from simbridge.servo.observation import observe_setpoints

MAX_RESIDUAL = 1e-4
"""A law explains the joint targets if 99 % of the residuals are smaller than this, in rad."""
# Below this speed, rad/s, a cycle shows nothing.
_MOVING = 1e-4
_FEWEST = 50
# Cycles that are examined at most, at the end and in the search, and how many of them follow one another.
_MOST, _SEARCHED, _TOGETHER = 20_000, 900, 150
# Longest delay of the link, s: ever, usually, and by how much it varies around the usual one.
_EVER, _LONGEST, _VARIES = 0.2, 0.04, 0.014
# Phases that the search begins from, as shares of a cycle; 0 is a call that begins on the edge. The points that cycles
# reveal with the others are about 0.9, 0.7, 0.5, 0.3 and 0.1 of the way to the last call's command.
_PHASES = (0.0, 0.05, 0.16, 0.29, 0.45, 0.68)
# A phase within this share of a cycle of its edge may as well be on it.
_ON_EDGE = 0.05
# Of this share of the rows, most, a law's residuals count: the others may be those of lost or forgotten commands. A law
# is exact if it leaves these less than this, rad, and than this share of a step from command to command.
_MOST_ROWS, _EXACT, _EXACT_SHARE = 0.8, 1e-9, 1e-3
# How much more another tuning has to leave, and by how much it differs, relative.
_WORSE, _ANOTHER = 4.0, 0.01
# Largest standard deviation of a tuning that is found, and by how much it may be outside of UR's range, relative.
_UNCERTAIN, _BEYOND = 0.005, 0.05
# By how many commands the next call advances, usually (after a stall by any number); and the cost of a command that is
# held or skipped, in units of the logarithm of squared residuals.
_JUMP, _IRREGULAR = 3, 3.0
# Residuals below the first are rounding, rad; the second is that of a command that was not recorded.
_SCALE, _UNKNOWN = 1e-9, 1e-4


@dataclass(frozen=True)
class FoundLaw:
    """A servo law as found in joint targets."""

    gain: float  # 1/s^2
    lookahead: float  # s
    deviations: tuple[float, float]  # standard deviations of both
    delay: float  # mean delay of the commands, s
    phase: float  # how long after a cycle's begin calls begin, s
    residuals: Array  # distance of each examined cycle's setpoint from the commands (K,), rad


class LawNotFound(ValueError):
    """Joint targets do not show a tuning of the servo law; the message says why, as a clause. `residuals` are what the
    expected law leaves of each examined cycle (K,), rad; empty where that cannot be said."""

    def __init__(self, reason: str, residuals: Array | None = None) -> None:
        super().__init__(reason)
        self.residuals = np.zeros(0) if residuals is None else residuals


def find_servo_law(
    law: ServojLaw, cycles: Counts, commands: Array, q: Array, qd: Array, qdd: Array
) -> FoundLaw:
    """The servo law by which commands became joint targets.

    Args:
        law: The expected one; a call lasts one cycle.
        cycles: Increasing numbers (T,) of the rows' cycles; some may be missing.
        commands: Sent for each of these cycles (T, n), rad.
        q, qd, qdd: Joint targets (T, n) at the end of each cycle, rad, rad/s and rad/s^2.

    Raises:
        LawNotFound: No tuning can be named.
    """
    moving = np.flatnonzero(np.abs(qd).max(axis=1) > _MOVING)
    moving = moving[np.diff(cycles, prepend=cycles[0] - 2)[moving] == 1]
    if len(moving) < _FEWEST:
        raise LawNotFound(f"the joints moved in {len(moving)} consecutive cycles only")
    number = cycles - cycles[0]
    sent = np.full((number[-1] + 1, commands.shape[1]), np.nan)
    sent[number] = commands.astype(np.float32)

    def rows(most: int) -> _Rows:
        """At most so many of the rows, in blocks of successive ones all over them."""
        which = moving
        if len(moving) > most:
            begins = np.linspace(0, len(moving) - _TOGETHER, most // _TOGETHER).astype(int)
            which = moving[np.unique(begins[:, np.newaxis] + np.arange(_TOGETHER))]
        return _Rows(law.cycle, number[which], JointMotion(q[which], qd[which], qdd[which]), sent)

    few, many = rows(_SEARCHED), rows(_MOST)
    tuning = np.array([1.0 / law.gain, float(np.float32(law.lookahead))])
    step = float(np.nanmedian(np.linalg.norm(np.diff(sent, axis=0)[few.number - 1], axis=1)))
    exact = min(_EXACT, _EXACT_SHARE * step)
    expected = few.improved(few.with_phase(tuning, (round(_EVER / law.cycle), 1)), tuned=False)
    phases = few.other_phases(expected)
    while expected.score > exact and (other := next(phases, None)) is not None:
        expected = min(expected, other, key=lambda fit: fit.cost)
    found = [few.improved(expected)]
    searches = chain(few.others(), few.others_phases(found))
    while found[-1].score > exact and (other := next(searches, None)) is not None:
        found.append(other)
    best = min(found, key=lambda fit: fit.cost)
    # What servoj does not accept explains nothing, unless much better than what it does accept.
    alike = [fit for fit in found if fit.accepted and fit.score <= _WORSE * best.score]
    best = min(alike or [best], key=lambda fit: fit.cost)
    rivals = [fit for fit in alike if np.abs(fit.tuning / best.tuning - 1.0).max() > _ANOTHER]
    at_all = many.fitted(best.tuning, best.phase, expected.window)
    residuals, late = many.left(at_all)
    if len(residuals) < _FEWEST:
        raise LawNotFound(f"the commands of {len(residuals)} cycles only were recorded")
    gain, lookahead = 1.0 / best.tuning[0], best.tuning[1]
    deviations = many.deviations(at_all, residuals) / best.tuning
    reason = None
    explained = best.score <= exact or np.percentile(residuals, 99.0) < MAX_RESIDUAL
    if explained and deviations.max() > _UNCERTAIN:
        amounts = " and ".join(f"{100.0 * deviation:.2g}" for deviation in deviations)
        reason = f"the motion leaves gain and lookahead uncertain by {amounts} %"
    elif not (explained and alike):
        reason = "no tuning that servoj accepts explains the joint targets"
    elif rivals:
        reason = (
            f"the motion leaves gain and lookahead uncertain: {gain:.4g} with {lookahead:.3g} s and "
            f"{1.0 / rivals[0].tuning[0]:.4g} with {rivals[0].tuning[1]:.3g} s explain it about equally"
        )
    if reason is not None:
        raise LawNotFound(
            reason, many.left(many.fitted(expected.tuning, expected.phase, expected.window))[0]
        )
    uncertain = float(deviations[0] * gain), float(deviations[1] * lookahead)
    return FoundLaw(
        float(gain),
        float(lookahead),
        uncertain,
        float(late.mean() * law.cycle),
        best.phase,
        residuals,
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """A law as fitted to some rows."""

    tuning: Array  # X = 1 / gain and Y = lookahead (2,)
    phase: float
    window: tuple[
        int, int
    ]  # how many commands before and after that of a row's cycle it may have taken
    taken: (
        Counts  # commands (2, K) of the call before, and of the one at the end of each row's cycle
    )
    cost: float  # of the rows with these commands, mean
    score: float  # the largest residual of most rows, rad

    @property
    def accepted(self) -> bool:
        tuning = np.array([1.0 / self.tuning[0], self.tuning[1]])
        low, high = np.transpose([GAIN_RANGE, LOOKAHEAD_RANGE])
        return bool(
            ((1.0 - _BEYOND) * low <= tuning).all() and (tuning <= (1.0 + _BEYOND) * high).all()
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a recording, and fits to them: the number of each row's cycle (K,) and its joint targets (K, n), and the
    command of each cycle (C, n), rad; NaN where none was recorded."""

    cycle: float
    number: Counts
    motion: JointMotion
    sent: Array

    def _seen(self, tuning: Array, phase: float) -> tuple[Array, float]:
        """Points between the commands of two calls (K, n), rad, and the share of the last one's command in them."""
        rest, gain, lookahead = self.cycle - phase, 1.0 / tuning[0], tuning[1]
        seen, weight = observe_setpoints(
            self.motion, self.cycle, gain, lookahead, np.full(len(self.number), rest)
        )
        return seen, float(weight[0]) * rest / self.cycle

    def fitted(self, tuning: Array, phase: float, window: tuple[int, int]) -> _Fit:
        """A law with the commands that fit it best."""
        seen, share = self._seen(tuning, phase)
        taken = np.zeros((2, len(seen)), dtype=np.int64)
        cost = kernel_of(_take, "check of the servo law")(
            self.sent, np.ascontiguousarray(seen), self.number, share, *window, taken
        ) / len(seen)
        distances = np.linalg.norm(self._residual(tuning, phase, taken), axis=1)
        known = distances[np.isfinite(distances)]
        score = float(np.quantile(known, _MOST_ROWS)) if len(known) >= _FEWEST else np.inf
        return _Fit(tuning, phase, window, taken, cost, score)

    def _residual(self, tuning: Array, phase: float, taken: Counts) -> Array:
        """Residuals (K, n), rad; NaN where a command was not recorded."""
        seen, share = self._seen(tuning, phase)
        old, new = self.sent[taken[0]], self.sent[taken[1]]
        # The command before does not matter where calls begin on the edge.
        return seen - (new if share == 1.0 else (1.0 - share) * old + share * new)

    def left(self, fit: _Fit) -> tuple[Array, Counts]:
        """Residuals (R,), rad, of rows whose commands were recorded, and their delays (R,) in cycles."""
        residuals = np.linalg.norm(self._residual(fit.tuning, fit.phase, fit.taken), axis=1)
        known = np.isfinite(residuals)
        return residuals[known], (self.number - fit.taken[1])[known]

    def with_phase(self, tuning: Array, window: tuple[int, int]) -> _Fit:
        """The phase that fits a tuning best."""
        fits = [self.fitted(tuning, share * self.cycle, window) for share in _PHASES]
        return min(fits, key=lambda fit: fit.cost)

    def improved(self, fit: _Fit, tuned: bool = True) -> _Fit:
        """The fit with another tuning, or at least with another phase, and the commands that belong to it."""
        failed = 0
        for share in (_MOST_ROWS, 0.5) * 5:
            x = self._newton(fit, tuned, share)
            # Before a cycle's begin is after that of the one before.
            better = self.fitted(x[:2], float(x[2] % self.cycle), fit.window)
            failed = (
                failed + 1
                if better.cost > fit.cost - 0.01 and better.score > 0.9 * fit.score
                else 0
            )
            fit = min(fit, better, key=lambda each: each.cost)
            if failed == 2:
                break
        if 0.0 < min(fit.phase, self.cycle - fit.phase) < _ON_EDGE * self.cycle:
            edge = self.improved(self.fitted(fit.tuning, 0.0, fit.window), tuned)
            return edge if edge.cost < fit.cost + 0.1 else fit
        return fit

    def other_phases(self, fit: _Fit) -> Iterator[_Fit]:
        """The fit with the phases that are found from many others."""
        for share in np.linspace(0.025, 0.975, 16):
            phase = float(self.cycle * (1.0 - np.sqrt(share)))
            yield self.improved(self.fitted(fit.tuning, phase, fit.window), tuned=False)

    def _slopes(self, x: Array, at: Array, free: list[int], taken: Counts) -> Array:
        """Derivatives (K, n, m) of the residuals `at` with respect to the unknowns `free` (m,) of X, Y and phase."""
        slopes, steps = [], np.diag([1e-6 * x[0], 1e-6 * x[1], -1e-6 * self.cycle])
        for number in free:
            moved = x + steps[number]
            slopes.append((self._residual(moved[:2], moved[2], taken) - at) / steps[number, number])
        return np.stack(slopes, axis=-1)

    def _newton(self, fit: _Fit, tuned: bool, share: float) -> Array:
        """X, Y and phase (3,) for the commands that this fit takes, by Gauss-Newton; this share of the rows counts."""
        x = np.array([*fit.tuning, fit.phase])
        free = [0, 1] * tuned + [2] * (fit.phase > 0.0)
        for _ in range(3 if free else 0):
            at = self._residual(x[:2], x[2], fit.taken)
            known = np.isfinite(at).all(axis=1)
            if known.sum() < _FEWEST:
                break
            distance = np.linalg.norm(at[known], axis=1)
            weights = 1.0 / (
                1.0 + (distance / max(float(np.quantile(distance, share)), 1e-13)) ** 2
            )
            change = np.zeros(3)
            change[free] = -_solved(self._slopes(x, at, free, fit.taken)[known], at[known], weights)
            x = x + change
            x[0] = np.clip(x[0], 0.5 / GAIN_RANGE[1], 2.0 / GAIN_RANGE[0])
            x[1] = np.clip(x[1], 0.5 * LOOKAHEAD_RANGE[0], 2.0 * LOOKAHEAD_RANGE[1])
            settled = (
                np.abs(change[:2] / x[:2]).max() < 1e-10 and abs(change[2]) < 1e-10 * self.cycle
            )
            if settled or (fit.phase > 0.0 and not 0.0 < x[2] < self.cycle):
                break
        return x

    def others(self) -> Iterator[_Fit]:
        """Fits that begin from the least squares for each constant delay."""
        velocity = self.motion.qd - self.cycle * self.motion.qdd
        columns = np.stack([self.motion.qdd, velocity], axis=-1)
        before = self.motion.q - self.cycle * self.motion.qd
        varies = round(_VARIES / self.cycle) + 1
        for delay in range(-1, round(_LONGEST / self.cycle) + 1):
            at = self.number - delay
            wanted = self.sent[np.clip(at, 0, len(self.sent) - 1)] - before
            known = (at >= 0) & (at < len(self.sent)) & np.isfinite(wanted).all(axis=1)
            if known.sum() < _FEWEST:
                continue
            x = _solved(columns[known], wanted[known], np.ones(int(known.sum())))
            if not 0.9 * LOOKAHEAD_RANGE[0] < x[1] < 1.1 * LOOKAHEAD_RANGE[1]:
                continue
            x[0] = np.clip(x[0], 1.0 / GAIN_RANGE[1], 1.0 / GAIN_RANGE[0])
            yield self.improved(self.with_phase(x, (delay + varies, varies - delay)))

    def others_phases(self, found: list[_Fit]) -> Iterator[_Fit]:
        """The best of the fits once more, from all phases: calls that begin inside are easily taken for the edge."""
        for fit in sorted(found, key=lambda fit: fit.cost)[:3]:
            for share in _PHASES[1:]:
                phase = self.cycle * share
                lead = self._seen(fit.tuning, phase)[1] - self._seen(fit.tuning, fit.phase)[1]
                for commands in (lead, lead + 1.0):
                    # A lookahead with which the setpoints are as far ahead of the commands as before.
                    tuning = fit.tuning + np.array([0.0, commands * self.cycle])
                    yield self.improved(self.fitted(tuning, phase, fit.window))

    def deviations(self, fit: _Fit, residuals: Array) -> Array:
        """Standard deviations of X and Y (2,), for these residuals, rad."""
        x = np.array([*fit.tuning, fit.phase])
        at = self._residual(fit.tuning, fit.phase, fit.taken)
        # Rows whose residuals are beyond those of most do not count.
        kept = np.linalg.norm(at, axis=1) <= 3.0 * float(np.median(residuals))
        columns, scale = _scaled(
            self._slopes(x, at, [0, 1] + [2] * (fit.phase > 0.0), fit.taken)[kept]
        )
        inverse = np.linalg.pinv(np.einsum("kni,knj->ij", columns, columns))
        return np.asarray(np.sqrt(float(np.mean(at[kept] ** 2)) * np.diag(inverse))[:2] / scale[:2])


def _scaled(columns: Array) -> tuple[Array, Array]:
    """Columns (K, n, m) of similar size, and by what they were divided (m,)."""
    scale = np.sqrt((columns**2).sum(axis=(0, 1)))
    scale[scale == 0.0] = 1.0
    return columns / scale, scale


def _solved(columns: Array, wanted: Array, weights: Array) -> Array:
    """Weighted least squares x (m,) of columns (K, n, m) x = wanted (K, n)."""
    columns, scale = _scaled(columns)
    weighted = columns * weights[:, np.newaxis, np.newaxis]
    normal = np.einsum("kni,knj->ij", weighted, columns)
    x: Array = (
        np.linalg.lstsq(normal, np.einsum("kni,kn->i", weighted, wanted), rcond=1e-14)[0] / scale
    )
    return x


def _take(
    sent: Array, seen: Array, number: Counts, share: float, oldest: int, newest: int, taken: Counts
) -> float:
    """The commands that fit best, by dynamic programming over the rows: the index of the one taken never goes back.

    Args:
        sent, number: See `_Rows`; numbers increase.
        seen: Points (K, n), rad: `share` of a call's command, and the rest of that of the call before. The share is 1
            where calls begin on the cycle's edge.
        oldest, newest: How many commands before and after a row's own it may have taken.
        taken: The result (2, K): commands of the call before and of the call.

    Returns the cost: logarithms of the rows' squared residuals, and more where commands were held or skipped.
    """
    rows, joints = seen.shape
    width = oldest + newest + 1
    unknown = np.log(1.0 + (_UNKNOWN / _SCALE) ** 2)
    irregular = _IRREGULAR * np.log(1.0 + np.arange(len(sent) + 1.0))
    cost = np.zeros(width)
    # Where the least of these costs up to a command is.
    where = np.zeros(width, dtype=np.int64)
    before = np.zeros((rows, width), dtype=np.int64)
    origin = np.full((rows, width), -1, dtype=np.int64)
    now = np.zeros(width)
    for k in range(rows):
        shift = number[k] - number[k - 1] if k > 0 else width
        for j in range(width):
            now[j] = np.inf
            # Before the first command, and after the last, it holds.
            command = min(max(number[k] - oldest + j, 0), len(sent) - 1)
            residual = -1.0
            # The last choice: from the best command so far, however old.
            for jump in range(_JUMP + 2):
                further = jump > _JUMP
                at = j + shift - (0 if further else jump)
                if at < 0 or (further and shift > 1):
                    break
                if further or shift > 1:
                    at = where[min(at, width - 1)]
                elif at >= width:
                    continue
                previous = number[k - 1] - oldest + at if further else command - jump
                previous = min(max(previous, 0), len(sent) - 1)
                total = cost[at] + irregular[abs(command - previous - 1)]
                if total >= now[j]:
                    continue
                # Where calls begin on the cycle's edge, it does not depend on the command before.
                if share < 1.0 or residual < 0.0:
                    square = 0.0
                    for i in range(joints):
                        expected = sent[command, i]
                        if share < 1.0:
                            expected = (1.0 - share) * sent[previous, i] + share * expected
                        square += (seen[k, i] - expected) ** 2
                    residual = np.log(1.0 + square / _SCALE**2) if square == square else unknown
                total += residual
                if total < now[j]:
                    now[j], before[k, j], origin[k, j] = total, previous, at
        for j in range(width):
            cost[j] = now[j]
            where[j] = j if j == 0 or cost[j] < cost[where[j - 1]] else where[j - 1]
    j = where[width - 1]
    total = cost[j]
    for k in range(rows - 1, -1, -1):
        taken[0, k] = before[k, j]
        taken[1, k] = min(max(number[k] - oldest + j, 0), len(sent) - 1)
        j = origin[k, j]
    return total
