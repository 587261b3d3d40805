"""By how much one motion lags another: the shift in time that brings them closest.

The delay d minimises the mean squared distance between desired(t - d) and attained(t). It is found in two steps: the
cross-correlation of the velocities says roughly where (that of the positions does not: a path is always near its own
middle, and the answer is off by tens of milliseconds), and a least-squares shift, from there downhill, says exactly.

Translation and rotation count together, as they would for a point ROTATION_LENGTH away from the tool centre point:
distance^2 = |translation|^2 + (ROTATION_LENGTH angle)^2. A motion that only turns is thus measured by its turning, one
that only travels by its travel, and one that does both by each as far as it moves.

Or one of the two counts alone. A solver may well turn a tool later than it moves it (each has its own gain), and one
shift that is to serve both is then a compromise that leaves more of the position error than there was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.minimization import downhill, minimum
from simbridge.evaluation.metrics.pose_errors import PoseError
from simbridge.evaluation.metrics.samples import rows, stamps
from simbridge.robot import pose
from simbridge.robot.pose import Array

Motion = Callable[[Array], Array]
"""Poses (K, 7) at any instants (K,) in s."""

PosePart = Literal["position", "rotation"]
"""One of the two things that a pose is."""

Part = Literal["both", "position", "rotation"]
"""What of a motion counts."""

ROTATION_LENGTH = 0.1
"""Metres that a radian weighs: about the reach of a tool, so that 1 mm and 10 mrad count alike."""

LONGEST = 2.0
"""The longest delay looked for, in s, unless told otherwise; never more than half of the recorded time."""

MIN_MOTION = 1e-4
"""How far, in m (0.1 mm, or 1 mrad over ROTATION_LENGTH), a motion must go from its first pose to tell a delay."""

FEW = 1000
"""So many poses of a long motion are looked at first to see whether it moves."""

MIN_AGREEMENT = 0.5
"""The least correlation of the motions at the best shift. A slow or weak follower is well above, chance far below."""

MIN_SAMPLES = 10
"""A delay is not read from fewer samples that can be compared."""

VELOCITY_SPAN = 0.02
"""Velocities are differences over about this many seconds, so that measurement noise does not drown them."""

MAX_COMPARED = 20_000
"""Longer recordings are compared at evenly spaced samples: more of them no longer change the answer."""

MAX_CORRELATED = 1 << 18
"""The rough search correlates at most so many velocities; of a longer recording, at a longer period."""

RESOLUTION = 1e-6
"""How finely, in s, the best shift is located."""


def sampled(times: ArrayLike, poses: ArrayLike) -> Motion:
    """The motion through samples: positions linear, rotations by slerp; the first and last pose hold outside.

    Args:
        times: Strictly increasing instants (T,) in s.
        poses: Poses (T, 7) at those instants.

    Raises:
        UnusableSamples: If they are not.
    """
    t = stamps("times", times)
    p = rows("sampled poses", poses, 7, len(t))
    return lambda at: pose.interpolate(t, p, at)


def delay(
    times: ArrayLike, desired: Motion, attained: ArrayLike, *, longest: float = LONGEST, part: Part = "both"
) -> float | None:
    """Seconds by which an attained motion lags a desired one; negative if it leads.

    On motions that differ by nothing but a delay it is right to 0.03 ms. If the shape differs too, as after a
    first-order lag, it is the shift that leaves the least error: a constant offset along a path that never turns back
    counts as delay, and of a motion that repeats itself it is the shift that leaves the most to compare.

    Args:
        times: Strictly increasing stamps (T,) in s.
        desired: The desired motion, a function of the same clock; asked only within the range of the times.
        attained: Poses (T, 7) at the stamps.
        longest: The longest delay, either way, to look for, in s. Half of the recorded time is always a bound.
        part: What counts.

    Returns:
        The delay in s; 0 exactly if the best shift leaves no less than none does. None when the samples do not tell
        one: either motion stays within 0.1 mm and 1 mrad of its first pose; fewer than 10 samples are left to compare;
        the error still falls at the longest delay; or the motions correlate by less than 0.5 even at the best shift, so
        that the attained one follows something else.

    Raises:
        UnusableSamples: If times or poses are not finite or do not belong together.
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
    even = pose.interpolate(t, poses, grid)
    stride = -(-len(t) // MAX_COMPARED)
    t, poses = t[::stride], poses[::stride]
    limit = min(longest, 0.5 * (t[-1] - t[0]))

    def mean_squared_distance(shift: float, inside: NDArray[np.bool_] | None = None) -> float:
        inside = _inside(t, shift, shift) if inside is None else inside
        return float(np.mean(np.sum(_displacements(desired(t[inside] - shift), poses[inside], part) ** 2, axis=-1)))

    seed = _velocity_lag(wanted, even, period, limit, part)
    bracket = downhill(mean_squared_distance, seed, period, limit)
    if bracket is None:
        return None
    low, start, high = bracket
    # One and the same set of samples for every shift: otherwise the mean jumps when a sample comes or goes.
    inside = _inside(t, low, high)
    if np.count_nonzero(inside) < MIN_SAMPLES:
        return None
    best = minimum(lambda d: mean_squared_distance(d, inside), low, start, high, tolerance=RESOLUTION)
    if _correlation(desired(t[inside] - best), poses[inside], part) < MIN_AGREEMENT:
        return None
    common = _inside(t, min(best, 0.0), max(best, 0.0))
    return float(best) if mean_squared_distance(best, common) < mean_squared_distance(0.0, common) else 0.0


@dataclass(frozen=True)
class Compensated:
    """What is left of a part of the pose error without its delay.

    Attributes:
        delay: What was taken out, s; 0 where that would have left more than there was.
        kept: Which samples (T,) have something to be compared with; read-only.
        error: Of the K kept samples the distances in m or the angles in rad, (K,); read-only.
    """

    delay: float
    kept: NDArray[np.bool_]
    error: Array

    def __post_init__(self) -> None:
        self.kept.setflags(write=False)
        self.error.setflags(write=False)


def delay_compensated(
    times: ArrayLike,
    desired: Motion,
    attained: ArrayLike,
    late: float | None,
    part: PosePart,
    *,
    before: PoseError | None = None,
) -> Compensated:
    """A part of the pose error of desired(t - late) against attained(t), if that is less than that of desired(t).

    A shift leaves samples out at an end, and those may be the good ones: where the RMS would grow, and where there is
    no delay, the error stays as it is.

    Args:
        times: Strictly increasing stamps (T,) in s.
        desired: The desired motion, a function of the same clock; asked only within the range of the times.
        attained: Poses (T, 7) at the stamps.
        late: In s, as `delay` returns it for this part.
        part: Position or rotation.
        before: The error of desired(t), where it is known already.

    Raises:
        UnusableSamples: If times or poses are not finite or do not belong together.
    """
    t = stamps("times", times)
    poses = rows("attained poses", attained, 7, len(t))
    whole = _magnitude(before or PoseError.between(desired(t), poses), part)
    kept = _inside(t, late or 0.0, late or 0.0)
    if late and kept.any():
        left = _magnitude(PoseError.between(desired(t[kept] - late), poses[kept]), part)
        if np.mean(left**2) <= np.mean(whole**2):
            return Compensated(late, kept, left)
    return Compensated(0.0, np.ones(len(t), dtype=bool), whole)


def _magnitude(error: PoseError, part: PosePart) -> Array:
    return error.distance if part == "position" else error.angle


def _inside(times: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Which samples stay within the range of the times under every shift from low to high."""
    return np.asarray((times - high >= times[0]) & (times - low <= times[-1]))


def _grid(times: Array) -> Array:
    """Evenly spaced instants within the times, as many as a rough search looks at."""
    return np.linspace(times[0], times[-1], min(len(times), MAX_CORRELATED))


def moves(times: ArrayLike, motion: Motion, part: Part = "both") -> bool:
    """Whether a motion moves enough within the times (T,) to tell a delay: by LEAST_MOTION from its first pose.

    Raises:
        UnusableSamples: If the times or the poses are not finite.
    """
    grid = _grid(stamps("times", times))
    return _moves(rows("poses of the motion", motion(grid), 7, len(grid)), part)


def _moves(poses: Array, part: Part) -> bool:
    """Whether a motion ever leaves its first pose by LEAST_MOTION; of a long one a few poses tell, if it does."""
    few = poses[:: max(1, len(poses) // FEW)]
    farthest = (np.sqrt(np.max(np.sum(_displacements(p, poses[0], part) ** 2, axis=-1))) for p in (few, poses))
    return any(distance >= MIN_MOTION for distance in farthest)


def _displacements(poses: Array, origin: Array, part: Part) -> Array:
    """Translations in m, rotations scaled to m, or both side by side, to poses from one origin or from one each."""
    if part == "position":
        return np.asarray(poses[..., :3] - origin[..., :3])
    translation, rotation = pose.error(poses, origin)
    turned = ROTATION_LENGTH * rotation
    return turned if part == "rotation" else np.concatenate([translation, turned], axis=-1)


def _correlation(desired: Array, attained: Array, part: Part) -> float:
    """The correlation coefficient of two motions: 1 when they are alike but for an offset and a positive scale."""
    d, a = (_displacements(p, desired[0], part) for p in (desired, attained))
    d, a = d - d.mean(axis=0), a - a.mean(axis=0)
    scale = np.sqrt(np.sum(d**2) * np.sum(a**2))
    return float(np.sum(d * a) / scale) if scale > 0.0 else 0.0


def _velocity_lag(desired: Array, attained: Array, period: float, limit: float, part: Part) -> float:
    """The shift in s, in whole periods, at which the velocities of two evenly sampled motions agree best."""
    span = min(max(1, round(VELOCITY_SPAN / period)), len(desired) // 4)
    v, w = (_displacements(p[span:], p[:-span], part) for p in (desired, attained))
    reach = int(limit / period)
    # Padded with zeros the circular correlation is the plain one, which favours the lag with more in common.
    size = 1 << (len(v) + reach).bit_length()
    spectrum = np.conj(np.fft.rfft(v, size, axis=0)) * np.fft.rfft(w, size, axis=0)
    lags = np.arange(-reach, reach + 1)
    correlation = np.fft.irfft(spectrum.sum(axis=1), size)[lags]
    return float(lags[np.argmax(correlation)] * period)
