"""The delay of one motion relative to another: the shift in time that brings them closest.

The delay d minimises the mean squared distance between desired(t - d) and attained(t). It is found
in two steps. The cross-correlation of the velocities gives a rough value (that of the positions
does not: a path is always close to its own middle, and the result is off by tens of milliseconds).
A least-squares search from there gives the exact value.

By default translation and rotation count together, as for a point at ROTATION_LENGTH from the tool
centre point: distance^2 = |translation|^2 + (ROTATION_LENGTH angle)^2. Either of them can be
selected alone: a solver may rotate the tool later than it moves it (each has its own gain).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.minimization import bracket_minimum, minimize_scalar
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
# Smallest distance from its first pose at which a motion has a delay, m: 0.1 mm, or 1 mrad at
# ROTATION_LENGTH.
MIN_MOTION = 1e-4
# Number of poses of a long motion that are checked first to see whether it moves.
FIRST_CHECKED_POSES = 1000
# Smallest correlation of the motions at the best shift: a slow or weak follower is well above it,
# chance far below.
MIN_AGREEMENT = 0.5
# Smallest number of samples in common from which a delay is computed.
MIN_SAMPLES = 10
# Time span of the differences that velocities are computed from, s, long enough that measurement
# noise does not hide them.
VELOCITY_SPAN = 0.02
# Longer recordings are compared at this many evenly spaced samples: more would not change the
# result.
MAX_COMPARED = 20_000
# Most velocities that the rough search correlates; a longer recording is resampled at a longer
# period.
MAX_CORRELATED = 1 << 18
# Tolerance of the best shift, s.
RESOLUTION = 1e-6


@dataclass(frozen=True)
class Compensated:
    """The position or rotation error without its delay.

    Attributes:
        delay: The delay that was removed, s; 0 if removing it would have increased the error.
        kept: Mask (T,) of the samples that can be compared after the shift.
        error: Distances in m or angles in rad (K,) of the kept samples.
    """

    delay: float
    kept: NDArray[np.bool_]
    error: Array


def motion_through(times: ArrayLike, poses: ArrayLike) -> Motion:
    """Return the motion through poses: linear and by slerp, constant outside their range.

    Args:
        times: Strictly increasing stamps (T,), s.
        poses: The poses (T, 7) at the stamps.
    """
    t = stamps("times", times)
    p = rows("sampled poses", poses, 7, len(t))
    return lambda instants: pose.interpolate(t, p, instants)


def delay(
    times: ArrayLike, desired: Motion, attained: ArrayLike, *, part: Part = "both"
) -> float | None:
    """Return the time in s by which an attained motion lags a desired one; negative if it leads.

    If the motions differ by a delay only, it is exact to 0.03 ms. If their shapes differ as well,
    as after a first-order lag, it is the shift that leaves the least error: a constant offset along
    a path that never reverses counts as delay, and for a periodic motion it is the shift that
    leaves the most samples to compare.

    Args:
        times: Strictly increasing stamps (T,) in s.
        desired: The desired motion, a function of the same clock; called only within the range of
            the times.
        attained: Poses (T, 7) at the stamps.
        part: Whether position, rotation or both are compared.

    Returns:
        The delay in s; exactly 0 if no shift reduces the error. None if it cannot be determined:
        either motion stays within 0.1 mm and 1 mrad of its first pose; fewer than 10 samples are
        left to compare; the error still falls at the longest delay; or the motions correlate by
        less than 0.5 even at the best shift, so that the attained motion follows something else.
    """
    t = stamps("times", times)
    poses = rows("attained poses", attained, 7, len(t))
    if len(t) < MIN_SAMPLES:
        return None

    # Both motions at uniformly spaced instants, for the rough search.
    grid = _grid(t)
    period = (t[-1] - t[0]) / (len(grid) - 1)
    desired_poses = rows("desired poses", desired(grid), 7, len(grid))
    if not (_moves(desired_poses, part) and _moves(poses, part)):
        return None
    attained_poses = pose.interpolate(t, poses, grid)

    # The samples of the exact search: at most MAX_COMPARED, evenly spaced.
    stride = -(-len(t) // MAX_COMPARED)
    t = t[::stride]
    poses = poses[::stride]
    limit = min(MAX_DELAY, 0.5 * (t[-1] - t[0]))

    def mean_squared_distance(shift: float, inside: NDArray[np.bool_]) -> float:
        """Return the mean squared distance, m^2, at a shift, s, over the samples of a mask (T,)."""
        displacements = _displacements(desired(t[inside] - shift), poses[inside], part)
        return float(np.mean(np.sum(displacements**2, axis=-1)))

    # A bracket around the minimum, from the rough value.
    rough_delay = _velocity_lag(
        desired_poses, attained_poses, period=period, limit=limit, part=part
    )
    bracket = bracket_minimum(
        lambda shift: mean_squared_distance(shift, _inside(t, shift, shift)),
        rough_delay,
        period,
        limit,
    )
    if bracket is None:
        return None
    low, start, high = bracket

    # Every shift uses the same samples: otherwise the mean jumps when a sample enters or leaves.
    inside = _inside(t, low, high)
    if np.count_nonzero(inside) < MIN_SAMPLES:
        return None
    best = minimize_scalar(
        lambda shift: mean_squared_distance(shift, inside), low, start, high, tolerance=RESOLUTION
    )

    # An attained motion that follows something else has no delay.
    if _correlation(desired(t[inside] - best), poses[inside], part) < MIN_AGREEMENT:
        return None

    # It must be better than no shift, over samples that both have.
    common = _inside(t, min(best, 0.0), max(best, 0.0))
    if mean_squared_distance(best, common) < mean_squared_distance(0.0, common):
        return float(best)
    return 0.0


def compensate_delay(
    times: ArrayLike,
    desired: Motion,
    attained: ArrayLike,
    *,
    lag: float | None,
    part: PosePart,
    before: PoseError | ErrorSize | None = None,
) -> Compensated:
    """Return the error of attained(t) against desired(t - lag), if its RMS is not larger.

    The delay drops samples at one end of the motion, which may have the smallest errors. If the RMS
    would grow for that reason, or if there is no delay, the error against desired(t) is returned.

    Args:
        times: Strictly increasing stamps (T,), s.
        desired: The desired motion, a function from instants (K,), s, to poses (K, 7).
        attained: Attained poses (T, 7) at the stamps.
        lag: The delay of this part, s, as `delay` returns it.
        part: Position or rotation.
        before: The error against desired(t), if it is known already.
    """
    t = stamps("times", times)
    poses = rows("attained poses", attained, 7, len(t))
    whole = _magnitude(before or PoseError.between(desired(t), poses), part)
    uncompensated = Compensated(0.0, np.ones(len(t), dtype=bool), whole)
    if not lag:
        return uncompensated

    kept = _inside(t, lag, lag)
    if not kept.any():
        return uncompensated

    # The remaining error, block by block.
    kept_rows = np.flatnonzero(kept)
    magnitudes = []
    for k in range(0, len(kept_rows), BLOCK):
        block = kept_rows[k : k + BLOCK]
        error = PoseError.between(desired(t[block] - lag), poses[block])
        magnitudes.append(_magnitude(error, part))
    remaining = np.concatenate(magnitudes)

    if np.mean(remaining**2) <= np.mean(whole**2):
        return Compensated(lag, kept, remaining)
    return uncompensated


def moves(times: ArrayLike, motion: Motion, part: Part = "both") -> bool:
    """Check that a motion moves enough to have a delay: by MIN_MOTION from its first pose.

    Args:
        times: Strictly increasing stamps (T,), s, within which the motion counts.
        motion: A function of the same clock.
        part: Whether position, rotation or both are compared.
    """
    grid = _grid(stamps("times", times))
    return _moves(rows("poses of the motion", motion(grid), 7, len(grid)), part)


def _moves(poses: Array, part: Part) -> bool:
    """Check that poses (T, 7) ever leave the first of them by MIN_MOTION."""
    # For a long motion a few poses usually show it.
    stride = max(1, len(poses) // FIRST_CHECKED_POSES)
    for checked in (poses[::stride], poses):
        squares = np.sum(_displacements(checked, poses[0], part) ** 2, axis=-1)
        if np.sqrt(np.max(squares)) >= MIN_MOTION:
            return True
    return False


def _grid(times: Array) -> Array:
    """Return uniformly spaced instants within the times, s, for the rough search."""
    return np.linspace(times[0], times[-1], min(len(times), MAX_CORRELATED))


def _inside(times: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Return which samples stay within the range of the times for every shift from low to high."""
    return np.asarray((times - high >= times[0]) & (times - low <= times[-1]))


def _magnitude(error: PoseError | ErrorSize, part: PosePart) -> Array:
    """Return the distances (T,), m, or the angles (T,), rad, of an error."""
    return error.distance if part == "position" else error.angle


def _displacements(poses: Array, origin: Array, part: Part) -> Array:
    """Return translations, rotations scaled to m, or both in columns, all in m.

    Args:
        poses: Poses (T, 7).
        origin: The pose (7,) that the displacements start from, or one for each of them (T, 7).
        part: Whether position, rotation or both are compared.
    """
    if part == "position":
        return np.asarray(poses[..., :3] - origin[..., :3])

    translation, rotation = pose.error(poses, origin)
    scaled_rotation = ROTATION_LENGTH * rotation
    if part == "rotation":
        return scaled_rotation
    return np.concatenate([translation, scaled_rotation], axis=-1)


def _correlation(desired: Array, attained: Array, part: Part) -> float:
    """Return the correlation coefficient of two motions (T, 7).

    It is 1 if they differ only by an offset and a positive scale.
    """
    d = _displacements(desired, desired[0], part)
    a = _displacements(attained, desired[0], part)
    d = d - d.mean(axis=0)
    a = a - a.mean(axis=0)
    scale = np.sqrt(np.sum(d**2) * np.sum(a**2))
    return float(np.sum(d * a) / scale) if scale > 0.0 else 0.0


def _velocity_lag(
    desired: Array, attained: Array, *, period: float, limit: float, part: Part
) -> float:
    """Return the shift at which the velocities of two uniformly sampled motions agree best.

    Args:
        desired: Poses (T, 7).
        attained: Poses (T, 7) at the same instants.
        period: Time between two of the instants, s.
        limit: Largest shift in either direction, s.
        part: Whether position, rotation or both are compared.

    Returns:
        A multiple of the period, s; positive if the attained motion is late.
    """
    span = min(max(1, round(VELOCITY_SPAN / period)), len(desired) // 4)
    desired_velocity = _displacements(desired[span:], desired[:-span], part)
    attained_velocity = _displacements(attained[span:], attained[:-span], part)

    reach = int(limit / period)
    lags = np.arange(-reach, reach + 1)
    # Sums, not means: they favour the lag with more samples in common.
    agreement = correlation(desired_velocity, attained_velocity)[lags]
    return float(lags[np.argmax(agreement)] * period)
