"""An outside recording brought onto a run: its clock's offset, its frame, and where on the tool it looks.

The recording has a clock and a frame of its own. For any offset in time the best rigid transform is known in closed
form (S. Umeyama, Least-squares estimation of transformation parameters between two point patterns, 1991; without
scale), so only the offset is searched: roughly by chords, the distances that the tool goes within some tenths of a
second, which no frame changes; exactly by the least distance that is left. A reflector or marker that sits beside the
TCP is found by Gauss-Newton over transform and marker together.

What is estimated is taken out: an aligned recording cannot tell a constant offset, a constant rotation or a constant
delay of the arm. It tells everything else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.delays import MIN_MOTION
from simbridge.evaluation.metrics.minimization import downhill, minimum
from simbridge.evaluation.metrics.samples import rows, stamps
from simbridge.robot import pose
from simbridge.robot.pose import Array

CHORDS = (0.1, 0.5, 2.0)
"""Seconds over which distances gone are compared."""

MAX_COMPARED = 20_000
"""Samples of a longer recording that the fine search looks at, evenly spaced."""

MAX_GRID = 1 << 17
"""Instants at which the rough search compares chords, at most."""

RESOLUTION = 1e-6
"""How finely, in s, the offset is located."""

MAX_UNEXPLAINED = 0.5
"""Part of the arm's motion (RMS about its mean) that may be left: more, and the recording is of another motion."""

TELLING = 0.2
"""An offset is told if being off by so many seconds leaves clearly more error."""

FEWEST = 20
"""Samples in common that an alignment needs."""


@dataclass(frozen=True)
class Alignment:
    """How an outside recording fits a run: x_run(t) = transform x_recorded(t + offset), at the marker.

    Attributes:
        offset: Stamp of the recording minus stamp of the run at one instant, s.
        transform: Pose (7,) of the recording's frame in the run's; read-only.
        marker: Where on the tool the recording looks, in the TCP's frame (3,), m; zero unless it was asked for.
        residual: RMS distance that is left, m.
        samples: How many samples of the recording were compared.
    """

    offset: float
    transform: Array
    marker: Array
    residual: float
    samples: int

    def __post_init__(self) -> None:
        self.transform.setflags(write=False)
        self.marker.setflags(write=False)


def rigid_transform(points: ArrayLike, onto: ArrayLike) -> Array:
    """The pose (7,) that brings points (T, 3) closest onto others (T, 3) in the sense of least squares.

    Points on one line leave the turn about it open: any one is returned.

    Raises:
        UnusableSamples: They differ in number, there are none, or a value is not finite.
    """
    x = rows("points", points, 3)
    y = rows("points to fit", onto, 3, len(x))
    if len(x) == 0:
        raise UnusableSamples("points", "there are none.")
    rotation, translation = _umeyama(x, y)
    return np.concatenate([translation, _quaternion(rotation)])


def align(
    times: ArrayLike,
    poses: ArrayLike,
    recorded_times: ArrayLike,
    recorded: ArrayLike,
    *,
    find_marker: bool = False,
) -> Alignment:
    """Fit an outside recording to a run.

    Args:
        times: Strictly increasing stamps (T,) of the run, s.
        poses: Attained poses (T, 7) of the run.
        recorded_times: Strictly increasing stamps (U,) of the recording, on any clock of the same speed, s.
        recorded: Recorded positions (U, 3), m, in any frame.
        find_marker: Whether the recording looks at a point beside the TCP, to be found. It takes an attained motion
            that turns; along axes about which nothing turns the marker stays where it is, at zero.

    Raises:
        UnusableSamples: The arrays do not belong together; too little was recorded; the positions do not move; or
            their motion does not tell the offset, as a circle at constant speed between its ends.
    """
    t, u = stamps("times of the run", times), stamps("times of the recording", recorded_times)
    p = rows("attained poses", poses, 7, len(t))
    x = rows("recorded positions", recorded, 3, len(u))
    if min(len(t), len(u)) < FEWEST:
        raise UnusableSamples(
            "recording", f"it and the run must have {FEWEST} samples; they have {len(u)} and {len(t)}."
        )
    moved = float(np.linalg.norm(p[:, :3] - p[0, :3], axis=1).max())
    if moved < MIN_MOTION:
        raise UnusableSamples(
            "recording",
            f"the tool's position does not move in this run (by {moved * 1e3:.2g} mm at most), and it is by positions "
            "that clock and frame are fitted. A run in which the tool only turns or rests cannot be evaluated.",
        )
    shift, period = _rough_offset(t, p[:, :3], u, x)
    stride = -(-len(u) // MAX_COMPARED)
    search = _Search(t, p, u[::stride], x[::stride], find_marker)
    reach = 0.5 * min(t[-1] - t[0], u[-1] - u[0])
    bracket = downhill(lambda d: search.error(shift + d), 0.0, period, reach)
    if bracket is None:
        raise UnusableSamples("recording", "it fits the run at no offset in time. It is of another run.")
    best = shift + minimum(lambda d: search.error(shift + d), *bracket, tolerance=RESOLUTION)
    residual = search.error(best)
    extent = float(np.sqrt(np.mean(((p[:, :3] - p[:, :3].mean(axis=0)) ** 2).sum(axis=1))))
    if residual > MAX_UNEXPLAINED * extent:
        raise UnusableSamples(
            "recording",
            f"at best it is {residual * 1e3:.3g} mm RMS off a motion of {extent * 1e3:.3g} mm RMS. It is of another "
            "run, or its lengths are not in m.",
        )
    off = min(search.error(best - TELLING), search.error(best + TELLING))
    if off < 1.05 * residual + 1e-6:
        raise UnusableSamples(
            "recording",
            f"moved by {TELLING:g} s it fits as well (RMS {off * 1e3:.3g} mm, {residual * 1e3:.3g} mm at best), so its "
            "offset in time is open. Record the rest before and after the motion as well.",
        )
    fit = search.fit(best)
    return Alignment(best, fit.transform, fit.marker, residual, fit.samples)


@dataclass(frozen=True)
class Fit:
    """The best transform (7,) and marker (3,), and what they leave: see `Alignment`."""

    transform: Array
    marker: Array
    residual: float
    samples: int


def rigid_fit(recorded: ArrayLike, poses: ArrayLike, *, find_marker: bool = False) -> Fit:
    """Fit recorded positions (K, 3) to the poses (K, 7) attained at the same instants.

    Raises:
        UnusableSamples: They differ in number, there are none, or a value is not finite.
    """
    x = rows("recorded positions", recorded, 3)
    own = rows("attained poses", poses, 7, len(x))
    if len(x) == 0:
        raise UnusableSamples("recorded positions", "there are none.")
    rotation, translation = _umeyama(x, own[:, :3])
    marker = np.zeros(3)
    if find_marker:
        rotation, translation, marker = _with_marker(x, own, rotation, translation)
    left = x @ rotation.T + translation - own[:, :3] - pose.rotate(own[:, 3:], np.broadcast_to(marker, x.shape))
    residual = float(np.sqrt(np.mean((left**2).sum(axis=1))))
    return Fit(np.concatenate([translation, _quaternion(rotation)]), marker, residual, len(x))


class _Search:
    """The best fit at any offset of the recording's clock."""

    def __init__(self, t: Array, poses: Array, u: Array, x: Array, find_marker: bool) -> None:
        self._t, self._poses, self._u, self._x, self._find_marker = t, poses, u, x, find_marker

    def error(self, offset: float) -> float:
        """RMS distance that is left, m; without enough in common, no fit at all."""
        at = self._u - offset
        return self.fit(offset).residual if np.count_nonzero(self._inside(at)) >= FEWEST else np.inf

    def fit(self, offset: float) -> Fit:
        at = self._u - offset
        inside = self._inside(at)
        own = pose.interpolate(self._t, self._poses, at[inside])
        return rigid_fit(self._x[inside], own, find_marker=self._find_marker)

    def _inside(self, at: Array) -> NDArray[np.bool_]:
        return np.asarray((at >= self._t[0]) & (at <= self._t[-1]))


def _umeyama(x: Array, y: Array) -> tuple[Array, Array]:
    """Rotation (3, 3) and translation (3,) with the least sum of |R x + t - y|^2."""
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    left, _, right = np.linalg.svd((y - mean_y).T @ (x - mean_x))
    # Without the sign a mirror image could be the answer.
    rotation = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))]) @ right
    return rotation, mean_y - rotation @ mean_x


def _with_marker(x: Array, own: Array, rotation: Array, translation: Array) -> tuple[Array, Array, Array]:
    """Rotation, translation and marker (3,) with the least sum of |R x + t - p - Q marker|^2, own poses (p, Q)."""
    marker = np.zeros(3)
    axes = np.stack([pose.rotate(own[:, 3:], np.broadcast_to(axis, x.shape)) for axis in np.eye(3)], axis=2)
    system = np.zeros((len(x), 3, 9))
    system[:, :, 3:6], system[:, :, 6:] = np.eye(3), -axes
    for _ in range(50):
        turned = x @ rotation.T
        left = turned + translation - own[:, :3] - axes @ marker
        # The derivative of exp(w) R x by w is the cross product with w: minus the skew matrix of R x.
        system[:, 0, 1], system[:, 0, 2] = turned[:, 2], -turned[:, 1]
        system[:, 1, 0], system[:, 1, 2] = -turned[:, 2], turned[:, 0]
        system[:, 2, 0], system[:, 2, 1] = turned[:, 1], -turned[:, 0]
        flat = system.reshape(-1, 9)
        # What the motion does not tell has no effect, and stays: the least step among the best.
        step = -np.linalg.pinv(flat.T @ flat, rcond=1e-9, hermitian=True) @ (flat.T @ left.reshape(-1))
        rotation = _matrix(pose.quaternions(step[:3])) @ rotation
        translation, marker = translation + step[3:6], marker + step[6:]
        if np.abs(step).max() < 1e-12:
            break
    return rotation, translation, marker


def _rough_offset(t: Array, p: Array, u: Array, x: Array) -> tuple[float, float]:
    """The offset at which the chords of two motions agree best, and the period of the search, both in s."""
    longest = max(t[-1] - t[0], u[-1] - u[0])
    period = max(float(np.median(np.diff(t))), float(np.median(np.diff(u))), 0.004, longest / MAX_GRID)
    one, other = _chords(t, p, period), _chords(u, x, period)
    if not one.any() or not other.any():
        raise UnusableSamples("recording", "it or the run stands still, and no offset in time can be told.")
    size = 1 << (len(one) + len(other)).bit_length()
    spectrum = (np.conj(np.fft.rfft(one, size, axis=0)) * np.fft.rfft(other, size, axis=0)).sum(axis=1)
    agreement = np.fft.irfft(spectrum, size)
    lag = int(np.argmax(agreement))
    return float(u[0] - t[0] + (lag if lag < size // 2 else lag - size) * period), period


def _chords(t: Array, p: Array, period: float) -> Array:
    """Distances gone within each of CHORDS (K, 3), at rest before and after; each of unit energy."""
    grid = np.arange(t[0] - max(CHORDS), t[-1] + max(CHORDS), period)
    even = np.column_stack([np.interp(grid, t, column) for column in p.T])
    chords = np.zeros((len(grid), len(CHORDS)))
    for i, seconds in enumerate(CHORDS):
        half = max(1, round(0.5 * seconds / period))
        chords[half:-half, i] = np.linalg.norm(even[2 * half :] - even[: -2 * half], axis=1)
    energy = np.sqrt((chords**2).sum(axis=0))
    return chords / np.where(energy > 1e-9, energy, np.inf)


def _matrix(quaternion: Array) -> Array:
    return np.column_stack([pose.rotate(quaternion, axis) for axis in np.eye(3)])


def _quaternion(rotation: Array) -> Array:
    """The unit quaternion (4,) of a rotation matrix: the eigenvector of Bar-Itzhack's symmetric matrix (2000)."""
    r = rotation
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]],
            [r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1], r[0, 2] - r[2, 0]],
            [r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    q = np.linalg.eigh(k)[1][:, -1]
    return np.asarray(q if q[3] >= 0.0 else -q)
