"""The delay of one motion relative to another: the shift in time that brings them closest.

The delay d minimises the mean squared distance between desired(t - d) and attained(t). It is found in two steps. The
cross-correlation of the velocities gives a rough value (that of the positions does not: a path is always close to its
own middle, and the result is off by tens of milliseconds). A least-squares search from there gives the exact value.

By default translation and rotation count together, as for a point at ROTATION_LENGTH from the tool centre point:
distance^2 = |translation|^2 + (ROTATION_LENGTH angle)^2. Either of them can be selected alone: a solver may rotate the
tool later than it moves it (each has its own gain).

The search brackets the minimum and then follows R. P. Brent, Algorithms for Minimization without Derivatives, 1973,
chapter 5: parabolic interpolation where it is reliable, golden section where it is not. It takes about ten evaluations.
scipy.optimize takes 0.4 s to import and has no bracketing within limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.samples import (
    BLOCK,
    ErrorSize,
    PoseError,
    correlation,
    rows,
    stamps,
)
from simbridge.robot import pose
from simbridge.robot.pose import Array

# Poses (K, 7) at any instants (K,) in s.
Motion = Callable[[Array], Array]
PosePart = Literal["position", "rotation"]
Part = Literal["both", "position", "rotation"]
# Weight of a radian in m: about the length of a tool, so that 1 mm and 10 mrad count the same.
ROTATION_LENGTH = 0.1
# Limit of the search in either direction, s; it never goes beyond half of the recorded time.
MAX_DELAY = 2.0
# Distance in m (0.1 mm, or 1 mrad at ROTATION_LENGTH) from its first pose that a motion needs to have a delay.
MIN_MOTION = 1e-4
# Whether a long motion moves is checked with this many of its poses first.
FEW = 1000
# Least correlation of the motions at the best shift. A slow or weak follower is well above, chance far below.
MIN_AGREEMENT = 0.5
# Fewest samples in common from which a delay is computed.
MIN_SAMPLES = 10
# Velocities are differences over about this many seconds, so that measurement noise does not hide them.
VELOCITY_SPAN = 0.02
# Longer recordings are compared at this many evenly spaced samples: more would not change the result.
MAX_COMPARED = 20_000
# Most velocities that the rough search correlates; a longer recording is resampled at a longer period.
MAX_CORRELATED = 1 << 18
# Tolerance of the best shift, s.
RESOLUTION = 1e-6
# The smaller part of the golden section.
SMALLER_PART = 0.5 * (3.0 - math.sqrt(5.0))
# The search ends after this many calls even if the function is too rough for the tolerance.
MAX_EVALUATIONS = 50


def sampled(times: ArrayLike, poses: ArrayLike) -> Motion:
    """The motion through poses (T, 7) at instants (T,), s: linear and by slerp, constant outside their range."""
    t = stamps("times", times)
    p = rows("sampled poses", poses, 7, len(t))
    return lambda at: pose.interpolate(t, p, at)


def delay(
    times: ArrayLike, desired: Motion, attained: ArrayLike, *, part: Part = "both"
) -> float | None:
    """Time in s by which an attained motion lags a desired one; negative if it leads.

    If the motions differ by a delay only, it is exact to 0.03 ms. If their shapes differ as well, as after a
    first-order lag, it is the shift that leaves the least error: a constant offset along a path that never reverses
    counts as delay, and for a periodic motion it is the shift that leaves the most samples to compare.

    Args:
        times: Strictly increasing stamps (T,) in s.
        desired: The desired motion, a function of the same clock; called only within the range of the times.
        attained: Poses (T, 7) at the stamps.
        part: What counts.

    Returns:
        The delay in s; exactly 0 if no shift reduces the error. None if it cannot be determined: either motion stays
        within 0.1 mm and 1 mrad of its first pose; fewer than 10 samples are left to compare; the error still falls at
        the longest delay; or the motions correlate by less than 0.5 even at the best shift, so that the attained motion
        follows something else.
    """
    t = stamps("times", times)
    poses = rows("attained poses", attained, 7, len(t))
    if len(t) < MIN_SAMPLES:
        return None
    grid = _grid(t)
    period = (t[-1] - t[0]) / (len(grid) - 1)
    wanted = rows("desired poses", desired(grid), 7, len(grid))
    if not (_moves(wanted, part) and _moves(poses, part)):
        return None
    uniform = pose.interpolate(t, poses, grid)
    stride = -(-len(t) // MAX_COMPARED)
    t, poses = t[::stride], poses[::stride]
    limit = min(MAX_DELAY, 0.5 * (t[-1] - t[0]))

    def mean_squared_distance(shift: float, inside: NDArray[np.bool_] | None = None) -> float:
        inside = _inside(t, shift, shift) if inside is None else inside
        return float(
            np.mean(
                np.sum(
                    _displacements(desired(t[inside] - shift), poses[inside], part) ** 2, axis=-1
                )
            )
        )

    seed = _velocity_lag(wanted, uniform, period, limit, part)
    bracket = bracket_minimum(mean_squared_distance, seed, period, limit)
    if bracket is None:
        return None
    low, start, high = bracket
    # The same samples for every shift: otherwise the mean jumps when a sample enters or leaves.
    inside = _inside(t, low, high)
    if np.count_nonzero(inside) < MIN_SAMPLES:
        return None
    best = minimize_scalar(
        lambda d: mean_squared_distance(d, inside), low, start, high, tolerance=RESOLUTION
    )
    if _correlation(desired(t[inside] - best), poses[inside], part) < MIN_AGREEMENT:
        return None
    common = _inside(t, min(best, 0.0), max(best, 0.0))
    return (
        float(best)
        if mean_squared_distance(best, common) < mean_squared_distance(0.0, common)
        else 0.0
    )


@dataclass(frozen=True)
class Compensated:
    """The position or rotation error without its delay."""

    delay: float  # the delay that was removed, s; 0 if removing it would have increased the error
    kept: NDArray[np.bool_]  # mask (T,) of the samples that can be compared after the shift
    error: Array  # distances in m or angles in rad (K,) of the kept samples


def delay_compensated(
    times: ArrayLike,
    desired: Motion,
    attained: ArrayLike,
    lag: float | None,
    part: PosePart,
    *,
    before: PoseError | ErrorSize | None = None,
) -> Compensated:
    """The position or rotation error of attained(t) against desired(t - lag), if that is less than without the lag.

    A shift drops samples at one end, and those may have the smallest errors. If the RMS would grow, or if there is no
    delay, the error stays as it is.

    Args:
        times, desired, attained: As for `delay`.
        lag: The delay of this part, s, as `delay` returns it.
        part: Position or rotation.
        before: The error against desired(t), if it is known already.
    """
    t = stamps("times", times)
    poses = rows("attained poses", attained, 7, len(t))
    whole = _magnitude(before or PoseError.between(desired(t), poses), part)
    kept = _inside(t, lag or 0.0, lag or 0.0)
    if lag and kept.any():
        rows_kept = np.flatnonzero(kept)
        blocks = (rows_kept[k : k + BLOCK] for k in range(0, len(rows_kept), BLOCK))
        left = np.concatenate(
            [
                _magnitude(PoseError.between(desired(t[block] - lag), poses[block]), part)
                for block in blocks
            ]
        )
        if np.mean(left**2) <= np.mean(whole**2):
            return Compensated(lag, kept, left)
    return Compensated(0.0, np.ones(len(t), dtype=bool), whole)


def _magnitude(error: PoseError | ErrorSize, part: PosePart) -> Array:
    return error.distance if part == "position" else error.angle


def _inside(times: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Mask of the samples that stay within the range of the times for every shift from low to high."""
    return np.asarray((times - high >= times[0]) & (times - low <= times[-1]))


def _grid(times: Array) -> Array:
    """Uniformly spaced instants within the times, for the rough search."""
    return np.linspace(times[0], times[-1], min(len(times), MAX_CORRELATED))


def moves(times: ArrayLike, motion: Motion, part: Part = "both") -> bool:
    """Whether a motion moves enough within the times (T,) to have a delay: by MIN_MOTION from its first pose."""
    grid = _grid(stamps("times", times))
    return _moves(rows("poses of the motion", motion(grid), 7, len(grid)), part)


def _moves(poses: Array, part: Part) -> bool:
    """Whether a motion ever leaves its first pose by MIN_MOTION; for a long one a few poses usually show it."""
    few = poses[:: max(1, len(poses) // FEW)]
    farthest = (
        np.sqrt(np.max(np.sum(_displacements(p, poses[0], part) ** 2, axis=-1)))
        for p in (few, poses)
    )
    return any(distance >= MIN_MOTION for distance in farthest)


def _displacements(poses: Array, origin: Array, part: Part) -> Array:
    """Translations in m, rotations scaled to m, or both in columns, of poses from one origin or from one each."""
    if part == "position":
        return np.asarray(poses[..., :3] - origin[..., :3])
    translation, rotation = pose.error(poses, origin)
    scaled = ROTATION_LENGTH * rotation
    return scaled if part == "rotation" else np.concatenate([translation, scaled], axis=-1)


def _correlation(desired: Array, attained: Array, part: Part) -> float:
    """The correlation coefficient of two motions: 1 if they differ only by an offset and a positive scale."""
    d, a = (_displacements(p, desired[0], part) for p in (desired, attained))
    d, a = d - d.mean(axis=0), a - a.mean(axis=0)
    scale = np.sqrt(np.sum(d**2) * np.sum(a**2))
    return float(np.sum(d * a) / scale) if scale > 0.0 else 0.0


def _velocity_lag(
    desired: Array, attained: Array, period: float, limit: float, part: Part
) -> float:
    """The shift in s, a multiple of the period, at which the velocities of two uniformly sampled motions agree best."""
    span = min(max(1, round(VELOCITY_SPAN / period)), len(desired) // 4)
    v, w = (_displacements(p[span:], p[:-span], part) for p in (desired, attained))
    reach = int(limit / period)
    lags = np.arange(-reach, reach + 1)
    # Sums, not means: they favour the lag with more samples in common.
    return float(lags[np.argmax(correlation(v, w)[lags])] * period)


def minimize_scalar(
    function: Callable[[float], float], low: float, start: float, high: float, *, tolerance: float
) -> float:
    """The argument of a local minimum between low and high that is no higher than function(start).

    The function is called only between low and high; the tolerance of the argument is also the smallest step.
    """
    best = second = third = start
    at_best = at_second = at_third = function(start)
    step = last = 0.0
    for _ in range(MAX_EVALUATIONS - 1):
        middle = 0.5 * (low + high)
        # The minimum lies between low and high, and both are within two tolerances of the best point.
        if abs(best - middle) + 0.5 * (high - low) <= 2.0 * tolerance:
            break
        # The parabola through the three points has its extremum at best + p / q.
        r = (best - second) * (at_best - at_third)
        q = (best - third) * (at_best - at_second)
        p = (best - third) * q - (best - second) * r
        q = 2.0 * (r - q)
        last_but_one, last = last, step
        # If steps do not halve every second time, the function is no parabola here.
        if q != 0.0 and abs(p / q) < 0.5 * abs(last_but_one) and low < best + p / q < high:
            step = p / q
            if min(best + step - low, high - best - step) < 2.0 * tolerance:
                step = math.copysign(tolerance, middle - best)
        else:
            last = (high if best < middle else low) - best
            step = SMALLER_PART * last
        trial = best + (step if abs(step) >= tolerance else math.copysign(tolerance, step))
        at_trial = function(trial)
        if at_trial <= at_best:
            low, high = (best, high) if trial >= best else (low, best)
            third, at_third, second, at_second, best, at_best = (
                second,
                at_second,
                best,
                at_best,
                trial,
                at_trial,
            )
            continue
        low, high = (trial, high) if trial < best else (low, trial)
        if at_trial <= at_second or second == best:
            third, at_third, second, at_second = second, at_second, trial, at_trial
        elif at_trial <= at_third or third in (best, second):
            third, at_third = trial, at_trial
    return best


def bracket_minimum(
    function: Callable[[float], float], start: float, step: float, limit: float
) -> tuple[float, float, float] | None:
    """Three increasing arguments that enclose a minimum: in the middle the function is no higher than at the others.

    None if the function still falls at the limit: it is called only between -limit and limit. The step in either
    direction doubles as long as the function falls.
    """
    left, right = max(start - step, -limit), min(start + step, limit)
    at_left, at_start, at_right = function(left), function(start), function(right)
    if at_start <= min(at_left, at_right):
        return (left, start, right) if abs(start) < limit else None
    forward = 1.0 if at_right < at_left else -1.0
    previous, here, at_here = (
        (start, right, at_right) if at_right < at_left else (start, left, at_left)
    )
    while abs(here) < limit:
        step *= 2.0
        ahead = min(max(here + forward * step, -limit), limit)
        at_ahead = function(ahead)
        if at_ahead >= at_here:
            return (previous, here, ahead) if forward > 0.0 else (ahead, here, previous)
        previous, here, at_here = here, ahead, at_ahead
    return None
