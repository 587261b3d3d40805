"""Alignment of an external recording with a run: its clock offset, its frame, and the position of its marker.

The recording has its own clock and frame. For any clock offset the best rigid transform is known in closed form (S.
Umeyama, Least-squares estimation of transformation parameters between two point patterns, 1991; without scale), so only
the offset is searched: roughly by chords, the distances that the tool covers within some tenths of a second, which are
the same in every frame; then exactly by the smallest remaining distance. Gauss-Newton over transform and marker finds a
reflector or marker that is not at the TCP. Repeated cycles of one motion in a long recording are found by their chords.

What is estimated is removed: an aligned recording cannot show a constant offset, a constant rotation or a constant
delay of the arm. It shows everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.delays import MIN_MOTION
from simbridge.evaluation.metrics.minimization import bracket_minimum, minimize_scalar
from simbridge.evaluation.metrics.samples import correlation, interpolated, rows, stamps
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import counted

# Time spans of the chords, s.
CHORDS = (0.1, 0.5, 2.0)
# The exact search uses at most this many evenly spaced samples of a recording.
MAX_COMPARED = 20_000
# The rough search compares chords at no more instants than this.
MAX_GRID = 1 << 17
# Tolerance of the offset, s.
RESOLUTION = 1e-6
# Largest remaining distance as a part of the motion (RMS about its mean); beyond it the motions are different.
MAX_UNEXPLAINED = 0.5
# An offset is determined if an offset that differs by this, s, leaves clearly more error.
OFFSET_CHECK = 0.2
# Fewest samples in common for an alignment.
MIN_SAMPLES = 20
# A motion is found in a recording if the squared differences of its chords are at most this part of their squares.
MAX_MISFIT = 0.1
# Seconds by which a recording may begin after the first cycle, or end before the last one.
MARGIN = 0.1


@dataclass(frozen=True)
class Alignment:
    """Clock, frame and marker of an external recording: x_run(t) = transform x_recorded(t + offset), at the marker."""

    offset: float  # stamp of the recording minus stamp of the run at the same instant, s
    transform: Array  # pose (7,) of the recording's frame in the run's frame
    marker: Array  # position (3,) of the recorded point in the TCP's frame, m; zero unless it was estimated
    residual: float  # remaining RMS distance, m
    samples: int  # number of samples of the recording that were compared


def align(
    times: ArrayLike,
    poses: ArrayLike,
    recorded_times: ArrayLike,
    recorded: ArrayLike,
    *,
    find_marker: bool = False,
) -> Alignment:
    """Fit an external recording to a run.

    Args:
        times: Strictly increasing stamps (T,) of the run, s.
        poses: Attained poses (T, 7) of the run.
        recorded_times: Strictly increasing stamps (U,) of the recording, on any clock of the same rate, s.
        recorded: Recorded positions (U, 3), m, in any frame.
        find_marker: Estimate the position of the recorded point on the tool. The attained motion must rotate; a
            coordinate that the rotation does not reveal stays zero.

    Raises:
        UnusableSamples: Too little was recorded; the positions do not move; or their motion does not determine the
            offset, as on a circle at constant speed.
    """
    t, u = stamps("times of the run", times), stamps("times of the recording", recorded_times)
    p = rows("attained poses", poses, 7, len(t))
    x = rows("recorded positions", recorded, 3, len(u))
    if min(len(t), len(u)) < MIN_SAMPLES:
        raise UnusableSamples(
            "recording",
            f"it and the run need {MIN_SAMPLES} samples each; they have {len(u)} and {len(t)}.",
        )
    moved = float(np.linalg.norm(p[:, :3] - p[0, :3], axis=1).max())
    if moved < MIN_MOTION:
        raise UnusableSamples(
            "recording",
            f"the tool's position does not move in this run (by {moved * 1e3:.2g} mm at most), and clock and frame are "
            "fitted to positions. A run in which the tool only rotates or rests cannot be evaluated.",
        )
    shift, period = _rough_offset(t, p[:, :3], u, x)
    stride = -(-len(u) // MAX_COMPARED)
    some, compared = u[::stride], x[::stride]

    def fit(offset: float) -> Alignment | None:
        """The best fit for an offset of the recording's clock; None without enough samples in common."""
        at = some - offset
        inside = (at >= t[0]) & (at <= t[-1])
        if np.count_nonzero(inside) < MIN_SAMPLES:
            return None
        return rigid_fit(
            compared[inside], pose.interpolate(t, p, at[inside]), find_marker=find_marker
        )

    def error(offset: float) -> float:
        """Remaining RMS distance, m."""
        found = fit(offset)
        return np.inf if found is None else found.residual

    reach = 0.5 * min(t[-1] - t[0], u[-1] - u[0])
    bracket = bracket_minimum(lambda d: error(shift + d), 0.0, period, reach)
    if bracket is None:
        raise UnusableSamples(
            "recording", "it fits the run at no clock offset. It belongs to another run."
        )
    best = shift + minimize_scalar(lambda d: error(shift + d), *bracket, tolerance=RESOLUTION)
    found = fit(best)
    residual = np.inf if found is None else found.residual
    extent = float(np.sqrt(np.mean(((p[:, :3] - p[:, :3].mean(axis=0)) ** 2).sum(axis=1))))
    if found is None or residual > MAX_UNEXPLAINED * extent:
        raise UnusableSamples(
            "recording",
            f"the best fit leaves {residual * 1e3:.3g} mm RMS of a motion of {extent * 1e3:.3g} mm RMS. It belongs to "
            "another run, or its lengths are not in m.",
        )
    off = min(error(best - OFFSET_CHECK), error(best + OFFSET_CHECK))
    if off < 1.05 * residual + 1e-6:
        raise UnusableSamples(
            "recording",
            f"shifted by {OFFSET_CHECK:g} s it fits as well (RMS {off * 1e3:.3g} mm, {residual * 1e3:.3g} mm at best), "
            "so its clock offset cannot be determined. Also record the rest before and after the motion.",
        )
    return replace(found, offset=best)


def find_cycles(
    times: ArrayLike,
    positions: ArrayLike,
    recorded_times: ArrayLike,
    recorded: ArrayLike,
    count: int,
) -> Array:
    """Rough clock offsets (count,) in s, in order, at which a recording contains the cycles of a motion.

    Only chords within the motion are compared: what comes before and after it differs from cycle to cycle.

    Args:
        times, positions: The motion: stamps (T,) in s, positions (T, 3) in m.
        recorded_times, recorded: As for `align`.
        count: Number of cycles, which do not overlap. If there are more, the best ones count.

    Raises:
        UnusableSamples: There are fewer cycles.
    """
    t, u = stamps("times of the run", times), stamps("times of the recording", recorded_times)
    p, x = (
        rows("attained positions", positions, 3, len(t)),
        rows("recorded positions", recorded, 3, len(u)),
    )
    period = _search_period(t, u)
    one = interpolated(np.arange(t[0], t[-1], period), t, p)
    grid = np.arange(u[0] - MARGIN, u[-1] + MARGIN, period)
    misfit = _misfit(one, interpolated(grid, u, x), period)
    found: list[int] = []
    while len(found) < count:
        best = int(np.argmin(misfit)) if len(misfit) else 0
        if len(misfit) == 0 or misfit[best] > MAX_MISFIT:
            raise UnusableSamples(
                "recording",
                f"it contains the runs' motion {counted(len(found), 'time')}, but {counted(count, 'run')} completed. "
                "Record all runs in one file, or give one recording per run.",
            )
        found.append(best)
        # Cycles do not overlap, except for rounding.
        misfit = np.where(np.abs(np.arange(len(misfit)) - best) < len(one) - 1, np.inf, misfit)
    return np.sort(grid[found] - t[0])


def rigid_fit(recorded: ArrayLike, poses: ArrayLike, *, find_marker: bool = False) -> Alignment:
    """Fit recorded positions (K, 3) to the poses (K, 7) attained at the same instants; the offset is zero.

    If the positions are on one line, the rotation about it is arbitrary.

    Raises:
        UnusableSamples: There are none.
    """
    x = rows("recorded positions", recorded, 3)
    own = rows("attained poses", poses, 7, len(x))
    if len(x) == 0:
        raise UnusableSamples("recorded positions", "there are none.")
    rotation, translation = _umeyama(x, own[:, :3])
    marker = np.zeros(3)
    if find_marker:
        rotation, translation, marker = _with_marker(x, own, rotation, translation)
    left = (
        x @ rotation.T
        + translation
        - own[:, :3]
        - pose.rotate(own[:, 3:], np.broadcast_to(marker, x.shape))
    )
    residual = float(np.sqrt(np.mean((left**2).sum(axis=1))))
    quaternion = pin.Quaternion(rotation).coeffs()
    transform = np.concatenate([translation, quaternion if quaternion[3] >= 0.0 else -quaternion])
    return Alignment(0.0, transform, marker, residual, len(x))


def _umeyama(x: Array, y: Array) -> tuple[Array, Array]:
    """Rotation (3, 3) and translation (3,) with the least sum of |R x + t - y|^2."""
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    left, _, right = np.linalg.svd((y - mean_y).T @ (x - mean_x))
    # Without the sign the result could be a reflection.
    rotation = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))]) @ right
    return rotation, mean_y - rotation @ mean_x


def _with_marker(
    x: Array, own: Array, rotation: Array, translation: Array
) -> tuple[Array, Array, Array]:
    """Rotation, translation and marker (3,) with the least sum of |R x + t - p - Q marker|^2, own poses (p, Q)."""
    marker = np.zeros(3)
    axes = np.stack(
        [pose.rotate(own[:, 3:], np.broadcast_to(axis, x.shape)) for axis in np.eye(3)], axis=2
    )
    system = np.zeros((len(x), 3, 9))
    system[:, :, 3:6], system[:, :, 6:] = np.eye(3), -axes
    for _ in range(50):
        rotated = x @ rotation.T
        left = rotated + translation - own[:, :3] - axes @ marker
        # The derivative of exp(w) R x by w is the cross product with w: minus the skew matrix of R x.
        system[:, 0, 1], system[:, 0, 2] = rotated[:, 2], -rotated[:, 1]
        system[:, 1, 0], system[:, 1, 2] = -rotated[:, 2], rotated[:, 0]
        system[:, 2, 0], system[:, 2, 1] = rotated[:, 1], -rotated[:, 0]
        flat = system.reshape(-1, 9)
        # The smallest of the best steps: a coordinate that the motion does not determine stays as it is.
        step = -np.linalg.pinv(flat.T @ flat, rcond=1e-9, hermitian=True) @ (
            flat.T @ left.reshape(-1)
        )
        rotation = pin.exp3(step[:3]) @ rotation
        translation, marker = translation + step[3:6], marker + step[6:]
        if np.abs(step).max() < 1e-12:
            break
    return rotation, translation, marker


def _rough_offset(t: Array, p: Array, u: Array, x: Array) -> tuple[float, float]:
    """The offset at which the chords of two motions agree best, and the period of the search, both in s."""
    period = _search_period(t, u)
    one, other = _chords(t, p, period), _chords(u, x, period)
    if not one.any() or not other.any():
        raise UnusableSamples(
            "recording", "it or the run is at rest, so the clock offset cannot be determined."
        )
    agreement = correlation(one, other)
    lag = int(np.argmax(agreement))
    return float(
        u[0] - t[0] + (lag if lag < len(agreement) // 2 else lag - len(agreement)) * period
    ), period


def _search_period(t: Array, u: Array) -> float:
    longest = max(t[-1] - t[0], u[-1] - u[0])
    return max(
        float(np.median(np.diff(t))), float(np.median(np.diff(u))), 0.004, longest / MAX_GRID
    )


def _chords(t: Array, p: Array, period: float) -> Array:
    """Chords (K, 3) for each of CHORDS, extended by rest before and after; each column has unit energy."""
    grid = np.arange(t[0] - max(CHORDS), t[-1] + max(CHORDS), period)
    uniform = interpolated(grid, t, p)
    chords = np.zeros((len(grid), len(CHORDS)))
    for i, seconds in enumerate(CHORDS):
        half = max(1, round(0.5 * seconds / period))
        chords[half:-half, i] = np.linalg.norm(uniform[2 * half :] - uniform[: -2 * half], axis=1)
    energy = np.sqrt((chords**2).sum(axis=0))
    return chords / np.where(energy > 1e-9, energy, np.inf)


def _misfit(one: Array, other: Array, period: float) -> Array:
    """Misfit (K,) of a motion (n, 3) at each place in a longer one (m, 3): squared differences of chords, relative."""
    places = max(len(other) - len(one) + 1, 0)
    difference, energy = np.zeros(places), 0.0
    for seconds in CHORDS:
        span = max(1, round(seconds / period))
        if span >= len(one) or places == 0:
            continue
        a, b = (np.linalg.norm(x[span:] - x[:-span], axis=1) for x in (one, other))
        squares = np.concatenate([[0.0], np.cumsum(b**2)])
        own = float(a @ a)
        energy += own
        products = correlation(a[:, None], b[:, None])
        difference += own + squares[len(a) :][:places] - squares[:places] - 2.0 * products[:places]
    return difference / energy if energy > 0.0 else np.full(places, np.inf)
