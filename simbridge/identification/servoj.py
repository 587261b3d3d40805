"""The tuning of servoj from what a controller recorded: from the commands' path, and from commands that were held.

With q' = q - h qd and qd' = qd - h qdd, the state one cycle before, the servo law reads

    s = q' + X qdd + Y qd',    X = 1 / gain,  Y = lookahead

in every cycle of length h that was not split by the end of a call. The setpoint s is on the straight line between two
successive commands, and constant while a command is held: both are linear in X and Y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simbridge.robot.pose import Array, Counts, Flags
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion
from simbridge.servo.observation import observe_setpoints

# Below this speed of its fastest joint (rad/s) a row says nothing about the law.
MOVING = 1e-4
# Rows that the search for a first tuning looks at, and that the fit uses at most.
_SEARCHED, _FITTED = 120, 1000
# Commands that the first search uses at most.
_COARSE = 3000
# How many of the first tunings are improved, until a quarter of the rows obey to rounding, rad.
_STARTS, _ROUNDING = 12, 1e-9
# Residuals of a fit, relative to how far the setpoints lead.
_FITTING = 0.02
# One standard deviation of gain and lookahead that is still given, relative.
_UNCERTAIN = 0.02
# Nothing is known better than what the controller holds in single precision, relative.
SINGLE = 6e-8
# How many segments around the last nearest one are searched again.
_WINDOW = 12
# Pairs of points and segments that are compared at once at most.
_WHOLE = 4_000_000
# Points of a long recording that are followed along the path together, and how far beyond them the path is looked at.
_PART, _BEYOND = 250, 120
# Of the search: a little more than servoj accepts.
_X_RANGE, _Y_RANGE = (
    (0.8 / GAIN_RANGE[1], 1.25 / GAIN_RANGE[0]),
    (0.8 * LOOKAHEAD_RANGE[0], 1.25 * LOOKAHEAD_RANGE[1]),
)


class NotIdentified(Exception):
    """The recording cannot show a quantity; the message is the reason, a sentence without its full stop."""


@dataclass(frozen=True, eq=False)
class TargetMotion:
    """The controller's joint targets, one row a sample; "before" is one cycle before."""

    times: Array  # stamps (T,), s, strictly increasing
    q: Array  # positions (T, n), rad
    qd: Array  # velocities (T, n), rad/s
    qdd: Array  # accelerations (T, n), rad/s^2
    cycle: float  # the controller's cycle h, s

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, rows: Flags | Counts | slice) -> TargetMotion:
        return TargetMotion(
            self.times[rows], self.q[rows], self.qd[rows], self.qdd[rows], self.cycle
        )

    @property
    def qd_before(self) -> Array:
        """(T, n), rad/s."""
        return self.qd - self.cycle * self.qdd

    @property
    def q_before(self) -> Array:
        """(T, n), rad."""
        return self.q - self.cycle * self.qd

    @property
    def cycles(self) -> Counts:
        """The cycle of each row (T,), counted from the first."""
        return np.round((self.times - self.times[0]) / self.cycle).astype(np.int64)

    @property
    def moving(self) -> Flags:
        """Rows (T,) in which some joint moves."""
        return np.abs(self.qd).max(axis=1) > MOVING

    def digits(self, x: Any, y: Any) -> Any:
        """How finely the digits of a recording show setpoints, rad, for X and Y."""
        return resolution(self.q) + x * resolution(self.qdd) + y * resolution(self.qd)

    def setpoints(self, gain: float, lookahead: float) -> Array:
        """The setpoints (T, n), rad, that the law must have followed; wrong where a call ended inside of the cycle."""
        targets, whole = JointMotion(self.q, self.qd, self.qdd), np.full(len(self), self.cycle)
        return observe_setpoints(targets, self.cycle, gain, lookahead, whole)[0]


@dataclass(frozen=True, eq=False)
class Tuning:
    """Gain and lookahead of servoj, as found."""

    gain: float  # 1/s^2
    lookahead: float  # s
    deviation: Array  # one standard deviation of both (2,)
    residuals: (
        Array  # of the rows that were fitted (R,), rad: the Euclidean distance over all joints
    )

    def checked(self) -> Tuning:
        """The same, as somebody may have set it.

        Raises:
            NotIdentified: It is no tuning that servoj accepts, or too uncertain.
        """
        if not np.isfinite([self.gain, self.lookahead, *self.deviation]).all():
            raise NotIdentified("the motion does not determine gain and lookahead")
        tuning = (("gain", self.gain, GAIN_RANGE), ("lookahead", self.lookahead, LOOKAHEAD_RANGE))
        for name, value, (low, high) in tuning:
            if not 0.95 * low <= value <= 1.05 * high:
                raise NotIdentified(
                    f"the best fit has a {name} of {value:.4g}, which servoj does not accept ({low:g} to {high:g}): "
                    "this motion was not made by servoj"
                )
        relative = self.deviation / (self.gain, self.lookahead)
        if relative.max() > _UNCERTAIN:
            raise NotIdentified(
                f"gain and lookahead are only determined to {100 * relative[0]:.2g} and {100 * relative[1]:.2g} % "
                f"by this motion; {100 * _UNCERTAIN:.0f} % are needed"
            )
        return replace(
            self,
            gain=_within(self.gain, GAIN_RANGE, self.deviation[0]),
            # The controller's is single precision: the shortest number that it stands for.
            lookahead=_within(
                float(str(np.float32(self.lookahead))), LOOKAHEAD_RANGE, self.deviation[1]
            ),
            deviation=np.maximum(self.deviation, SINGLE * np.array([self.gain, self.lookahead])),
        )


def _within(value: float, bounds: tuple[float, float], deviation: float) -> float:
    """A value that exceeds its bounds by what it is uncertain, or by rounding, at them."""
    nearest = min(max(value, bounds[0]), bounds[1])
    return float(nearest if abs(value - nearest) < max(5.0 * deviation, 1e-6 * value) else value)


@dataclass(frozen=True, eq=False)
class Path:
    """The polyline of commands, without the segments between equal ones."""

    start: Array  # begin of each segment (S, n), rad
    step: Array  # the way to its end (S, n), rad
    length: Array  # their squared lengths (S,), rad^2
    index: Counts  # the command at which each segment begins (S,)

    @staticmethod
    def of(commands: Array) -> Path:
        step = np.diff(commands, axis=0)
        length = (step * step).sum(axis=1)
        kept = np.flatnonzero(length > 1e-20)
        if not len(kept):
            raise NotIdentified("all commands are equal")
        return Path(commands[:-1][kept], step[kept], length[kept], kept)

    def nearest(self, points: Array, around: Counts | None = None, reach: int = _WINDOW) -> Counts:
        """The segment (R,) nearest to each point (R, n); only those within `reach` of `around` (R,) if it is given."""
        if around is not None:
            window = np.clip(
                around[:, None] + np.arange(-reach, reach + 1), 0, len(self.length) - 1
            )
            off = points[:, None] - self.start[window]
            share = np.clip(
                np.einsum("ijk,ijk->ij", off, self.step[window]) / self.length[window], 0.0, 1.0
            )
            distance = ((off - share[..., None] * self.step[window]) ** 2).sum(axis=2)
            return np.take_along_axis(window, distance.argmin(axis=1)[:, None], axis=1)[:, 0]
        stride = 1 + len(self.length) // _COARSE
        if stride > 2:
            # First along every so many commands, then nearby.
            coarse = Path.of(self.start[::stride])
            guess = coarse.index[coarse.nearest(points)] * stride + stride // 2
            batches = (slice(first, first + 2000) for first in range(0, len(points), 2000))
            return np.concatenate(
                [self.nearest(points[rows], guess[rows], 2 * stride) for rows in batches]
            )
        block = max(1, 500_000 // len(self.length))
        parts = (points[first : first + block] for first in range(0, len(points), block))
        return np.concatenate([self._squared_distances(part).argmin(axis=1) for part in parts])

    def follow(self, points: Array) -> Counts:
        """The segment (R,) of each of points (R, n) that advance along the path, which may cross itself."""
        some = spread(len(points), max(50, _WHOLE // len(self.length)))
        found = self._advancing(points[some])
        if len(some) == len(points):
            return found
        # The others between those, in parts of the path.
        guess = np.interp(np.arange(len(points)), some, found).astype(np.int64)
        parts = []
        for first in range(0, len(points), _PART):
            rows = slice(first, first + _PART)
            low = max(int(guess[rows][0]) - _BEYOND, 0)
            near = slice(low, int(guess[rows][-1]) + _BEYOND)
            section = Path(self.start[near], self.step[near], self.length[near], self.index[near])
            parts.append(low + section._advancing(points[rows]))
        return np.concatenate(parts)

    def _advancing(self, points: Array) -> Counts:
        """Segments (R,) that never go back, and are as near to points (R, n) as that allows (dynamic programming)."""
        off = np.sqrt(np.maximum(self._squared_distances(points), 0.0))
        scale = float(np.median(off.min(axis=1))) + 1e-9
        cost, origin = np.zeros(off.shape[1]), np.empty(off.shape, dtype=np.int32)
        numbers = np.arange(off.shape[1])
        for row, distance in enumerate(off):
            best = np.minimum.accumulate(cost)
            # Where the best so far is: the last segment that lowered it.
            origin[row] = np.maximum.accumulate(np.where(cost <= best, numbers, 0))
            cost = best + np.log1p((distance / scale) ** 2)
        found = np.empty(len(points), dtype=np.int64)
        at = int(np.argmin(cost))
        for row in range(len(points) - 1, -1, -1):
            found[row] = at
            at = int(origin[row, at])
        return found

    def _squared_distances(self, points: Array) -> Array:
        """From each point (R, n) to each segment (R, S), rad^2."""
        offset, square = (self.start * self.step).sum(axis=1), (self.start * self.start).sum(axis=1)
        # Not by matrix products: BLAS starts threads for them, which wait for one another on a busy machine.
        along = np.einsum("rj,sj->rs", points, self.step) - offset
        share = np.clip(along / self.length, 0.0, 1.0)
        squared = (
            square
            - 2.0 * np.einsum("rj,sj->rs", points, self.start)
            + share * (share * self.length - 2.0 * along)
        )
        return np.asarray(squared + (points * points).sum(axis=1)[:, None])

    def project(self, points: Array, segments: Counts) -> tuple[Array, Array]:
        """The nearest points (R, n) on segments (R,), and where they are along them (R,), 0 to 1."""
        step = self.step[segments]
        share = ((points - self.start[segments]) * step).sum(axis=1) / self.length[segments]
        share = np.clip(share, 0.0, 1.0)
        return self.start[segments] + share[:, None] * step, share


def fit_to_path(motion: TargetMotion, commands: Array) -> Tuning:
    """The tuning with which the setpoints lie on the path of the commands (K, n), rad, whenever they were sent.

    Raises:
        NotIdentified: With the reason.
    """
    rows = motion[motion.moving]
    if len(rows) < 20:
        raise NotIdentified("the arm does not move")
    path, coarse = Path.of(commands), Path.of(commands[:: 1 + len(commands) // _COARSE])
    few = rows[spread(len(rows), _SEARCHED)]
    tried = [
        (1.0 / gain, y)
        for gain in np.geomspace(*GAIN_RANGE, 5)
        for y in np.geomspace(*LOOKAHEAD_RANGE, 5)
    ]

    def median_distance(xy: tuple[float, float]) -> float:
        s = few.setpoints(1.0 / xy[0], xy[1])
        return float(np.median(np.linalg.norm(s - coarse.project(s, coarse.nearest(s))[0], axis=1)))

    tried.sort(key=median_distance)
    best: tuple[float, tuple[float, float]] | None = None
    for xy in tried[:_STARTS]:
        # A low percentile finds the rows that obey exactly; a minimum in which none do is not the last word.
        for percentile in (50.0, 25.0):
            xy, fit = _iterated(few, path, xy, percentile)
        reached = float(np.percentile(fit.residuals, 25.0))
        if best is None or reached < best[0]:
            best = reached, xy
        if reached < _ROUNDING:
            break
    assert best is not None
    xy = best[1]
    for percentile in (50.0, 25.0):
        kept, (xy, fit) = xy, _iterated(rows[spread(len(rows), _FITTED)], path, xy, percentile)
        if percentile == 50.0 and np.percentile(fit.residuals, 25.0) > best[0] * 10.0 + _ROUNDING:
            xy = kept
    lag = np.median(np.linalg.norm(rows.setpoints(fit.gain, fit.lookahead) - rows.q, axis=1))
    if np.median(fit.residuals) > _FITTING * lag:
        raise NotIdentified(
            f"the setpoints are {np.median(fit.residuals):.2g} rad from the path of the commands at best: the motion "
            "was not made by servoj, or not with these commands"
        )
    # The first search is not accurate where splits mislead it: what is uncertain is judged after the timing.
    return fit


def spread(count: int, most: int) -> Counts:
    """At most so many of `count` rows, spread over all."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def along(motion: TargetMotion, tuning: Tuning, commands: Array) -> tuple[Array, Array]:
    """Where each row's setpoint is along the commands (T,), and how far from their path (T,), rad.

    3.25 is a quarter of the way from command 3 to command 4.
    """
    path = Path.of(commands)
    setpoints = motion.setpoints(tuning.gain, tuning.lookahead)
    segment = path.follow(setpoints)
    foot, share = path.project(setpoints, segment)
    return path.index[segment] + share, np.linalg.norm(setpoints - foot, axis=1)


def _iterated(
    rows: TargetMotion, path: Path, xy: tuple[float, float], percentile: float
) -> tuple[tuple[float, float], Tuning]:
    """Project on the nearest segments, fit the components normal to them, repeat."""
    segments: Counts | None = None
    for _ in range(60):
        s = rows.setpoints(1.0 / xy[0], xy[1])
        segments = path.nearest(s, segments)
        foot, _ = path.project(s, segments)
        unit = path.step[segments] / np.sqrt(path.length[segments])[:, None]
        x, y, right = (
            z - (z * unit).sum(axis=1)[:, None] * unit
            for z in (rows.qdd, rows.qd_before, foot - rows.q_before)
        )
        if np.abs(y).max() < 1e-6 * np.abs(rows.qd_before).max():
            raise NotIdentified(
                "the commands lie on one straight line, as of one joint that moves alone"
            )
        before = xy
        xy, deviation, residuals = _robust_pair(x, y, right, xy, percentile)
        # A step beyond what servoj accepts would not come back.
        xy = (float(np.clip(xy[0], *_X_RANGE)), float(np.clip(xy[1], *_Y_RANGE)))
        if abs(xy[0] / before[0] - 1.0) < 1e-7 and abs(xy[1] / before[1] - 1.0) < 1e-7:
            break
    return xy, tuning_of(xy, deviation, residuals)


def tuning_of(xy: tuple[float, float], deviation: Array, residuals: Array) -> Tuning:
    """The tuning of X and Y with their standard deviations (2,)."""
    gain = 1.0 / xy[0] if xy[0] else np.inf
    return Tuning(gain, xy[1], np.array([deviation[0] * gain**2, deviation[1]]), residuals)


def _robust_pair(
    x: Array, y: Array, right: Array, start: tuple[float, float], percentile: float
) -> tuple[tuple[float, float], Array, Array]:
    """One reweighted least-squares step for X x + Y y = right, all (R, n), with Cauchy weights a row.

    The scale of the weights is a percentile of the residuals: a low one finds the rows that obey exactly.

    Returns:
        X and Y, one standard deviation of both (2,), and the residual of each row (R,) before the step.
    """
    residuals = np.linalg.norm(right - start[0] * x - start[1] * y, axis=1)
    scale = max(float(np.percentile(residuals, percentile)), 1e-15)
    weights = cauchy(residuals, scale)
    xx, xy, yy = ((weights[:, None] * a * b).sum() for a, b in ((x, x), (x, y), (y, y)))
    xr, yr = ((weights[:, None] * a * right).sum() for a in (x, y))
    determinant = xx * yy - xy * xy
    if not determinant > 1e-12 * xx * yy:
        raise NotIdentified("acceleration and velocity are proportional in this motion")
    found = solved_pair(xx, xy, yy, xr, yr)
    left = right - found[0] * x - found[1] * y
    variance = (weights[:, None] * left * left).sum() / max(weights.sum() * x.shape[1] - 2.0, 1.0)
    return found, np.sqrt(variance * np.array([yy, xx]) / determinant), np.linalg.norm(left, axis=1)


def solved_pair(xx: Any, xy: Any, yy: Any, xr: Any, yr: Any) -> tuple[float, float]:
    """X and Y, by sums of products: those of x, y and the right side in the normal equations of X x + Y y = right."""
    determinant = xx * yy - xy * xy
    return ((yy * xr - xy * yr) / determinant, (xx * yr - xy * xr) / determinant)


def resolution(values: Array) -> float:
    """How finely numbers were written: the last decimal, single precision, or that of doubles."""
    some = values[spread(len(values), 200)]
    for decimals in range(2, 12):
        if np.abs(some - np.round(some, decimals)).max() < 1e-3 * 10.0**-decimals:
            return float(10.0**-decimals)
    largest = max(float(np.abs(some).max()), 1e-3)
    return largest * (1e-7 if np.array_equal(some, some.astype(np.float32)) else 1e-13)


def cauchy(distance: Array, scale: Any) -> Array:
    """Weights of residuals: those far beyond the scale hardly count."""
    return np.asarray(1.0 / (1.0 + (distance / scale) ** 2))


def jackknife(others: Any) -> Any:
    """The variance of a result, from what it is (B, ...) where each of B blocks of rows is left out.

    What is left over in neighbouring rows is not independent: friction and load last, and digits are cut off alike.
    """
    count, off = len(others), np.array(others) - np.mean(others, axis=0)
    return (count - 1) / count * np.sum(off**2, axis=0)
