"""Alignment of an external recording with a run: its clock offset, its frame, and its marker.

The recording has its own clock and frame. For any clock offset the best rigid transform is known in
closed form (S. Umeyama, Least-squares estimation of transformation parameters between two point
patterns, 1991; without scale), so only the offset is searched: roughly by chords, the distances
that the tool covers within some tenths of a second, which are the same in every frame; then exactly
by the smallest remaining distance. Gauss-Newton over transform and marker finds a reflector or
marker that is not at the TCP. Repeated cycles of one motion in a long recording are found by their
chords.

What is estimated is removed: an aligned recording cannot show a constant offset, a constant
rotation or a constant delay of the arm. It shows everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.delays import MIN_MOTION
from simbridge.evaluation.metrics.minimization import bracket_minimum, minimize_scalar
from simbridge.evaluation.metrics.samples import correlation, interpolate_rows, rows, stamps
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import counted

# Time spans of the chords, s.
CHORDS = (0.1, 0.5, 2.0)
# Root of the sum of squared chords of one span that a motion must exceed for these chords to count,
# m.
MIN_CHORD_NORM = 1e-9
# Largest number of evenly spaced samples of a recording that the exact search uses.
MAX_COMPARED = 20_000
# Largest number of instants at which the rough search compares chords.
MAX_GRID = 1 << 17
# Smallest time between these instants, s.
MIN_PERIOD = 0.004
# Tolerance of the offset, s.
RESOLUTION = 1e-6
# Largest remaining distance as a fraction of the motion (RMS about its mean); beyond it the motions
# are different.
MAX_UNEXPLAINED = 0.5
# Difference from the offset, s, at which the error must be clearly larger: otherwise the offset is
# not determined.
OFFSET_CHECK = 0.2
# Ratio of errors from which on the larger one is clearly larger, ...
CLEAR_RATIO = 1.05
# ... if they also differ by this, m.
CLEAR_EXCESS = 1e-6
# Smallest number of samples in common for an alignment.
MIN_SAMPLES = 20
# Largest sum of squared differences of chords, relative to the sum of their squares, with which a
# motion is found in a recording.
MAX_MISFIT = 0.1
# Time by which a recording may begin after the first cycle, or end before the last one, s.
MARGIN = 0.1

# Largest number of Gauss-Newton steps that fit the marker.
MAX_MARKER_STEPS = 50
# Size of the last of these steps, rad and m.
MARKER_TOLERANCE = 1e-12
# Eigenvalue, relative to the largest, below which the motion does not determine a direction of the
# marker.
MARKER_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Alignment:
    """Clock, frame and marker of an external recording.

    x_run(t) = transform x_recorded(t + offset), at the marker.

    Attributes:
        offset: Stamp of the recording minus stamp of the run at the same instant, s.
        transform: Pose (7,) of the recording's frame in the run's frame.
        marker: Position (3,) of the recorded point in the TCP's frame, m; zero unless it was
            estimated.
        residual: Remaining RMS distance, m.
        samples: Number of samples of the recording that were compared.
    """

    offset: float
    transform: Array
    marker: Array
    residual: float
    samples: int


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
        recorded_times: Strictly increasing stamps (U,) of the recording, on any clock of the same
            rate, s.
        recorded: Recorded positions (U, 3), m, in any frame.
        find_marker: Estimate the position of the recorded point on the tool. The attained motion
            must rotate; a coordinate that the rotation does not reveal stays zero.

    Raises:
        UnusableSamples: Too little was recorded; the positions do not move; or their motion does
            not determine the offset, as on a circle at constant speed.
    """
    run_times = stamps("times of the run", times)
    clock_times = stamps("times of the recording", recorded_times)
    run_poses = rows("attained poses", poses, 7, len(run_times))
    positions = rows("recorded positions", recorded, 3, len(clock_times))
    _check_alignable(run_poses, positions)

    # The exact search compares at most MAX_COMPARED samples, evenly spaced.
    stride = math.ceil(len(clock_times) / MAX_COMPARED)
    compared_times = clock_times[::stride]
    compared = positions[::stride]

    def fit(offset: float) -> Alignment | None:
        """Return the best fit for a clock offset; None without enough samples in common."""
        instants = compared_times - offset
        is_common = (instants >= run_times[0]) & (instants <= run_times[-1])
        if np.count_nonzero(is_common) < MIN_SAMPLES:
            return None
        attained = pose.interpolate(run_times, run_poses, instants[is_common])
        return rigid_fit(compared[is_common], attained, find_marker=find_marker)

    def residual(offset: float) -> float:
        """Return the remaining RMS distance, m."""
        alignment = fit(offset)
        return np.inf if alignment is None else alignment.residual

    # The rough offset, then the exact one as a shift from it.
    attained_positions = run_poses[:, :3]
    rough_offset, period = _rough_offset(run_times, attained_positions, clock_times, positions)
    limit = 0.5 * min(run_times[-1] - run_times[0], clock_times[-1] - clock_times[0])

    def shifted_residual(shift: float) -> float:
        """Return the remaining RMS distance, m, at a shift from the rough offset, s."""
        return residual(rough_offset + shift)

    bracket = bracket_minimum(shifted_residual, 0.0, period, limit)
    if bracket is None:
        raise UnusableSamples(
            "recording",
            "it does not fit the run at any clock offset. It seems to belong to another run.",
        )
    best_shift = minimize_scalar(shifted_residual, *bracket, tolerance=RESOLUTION)
    best_offset = rough_offset + best_shift

    # The best fit must explain the motion, whose extent is the RMS distance from its mean.
    alignment = fit(best_offset)
    least_residual = np.inf if alignment is None else alignment.residual
    deviations = attained_positions - attained_positions.mean(axis=0)
    extent = float(np.sqrt(np.mean((deviations**2).sum(axis=1))))
    if alignment is None or least_residual > MAX_UNEXPLAINED * extent:
        raise UnusableSamples(
            "recording",
            f"the best fit leaves {least_residual * 1e3:.3g} mm RMS of a motion of "
            f"{extent * 1e3:.3g} mm RMS. It seems to belong to another run, or its lengths are "
            "not in m.",
        )

    # No other offset may explain the motion as well.
    other_residual = min(residual(best_offset - OFFSET_CHECK), residual(best_offset + OFFSET_CHECK))
    if other_residual < CLEAR_RATIO * least_residual + CLEAR_EXCESS:
        raise UnusableSamples(
            "recording",
            f"shifted by {OFFSET_CHECK:g} s it fits as well (RMS {other_residual * 1e3:.3g} mm, "
            f"{least_residual * 1e3:.3g} mm at best), so its clock offset cannot be determined. "
            "Also record the rest before and after the motion.",
        )
    return replace(alignment, offset=best_offset)


def _check_alignable(poses: Array, recorded: Array) -> None:
    """Refuse a run that is too short or does not move, and a recording that is too short.

    Args:
        poses: Attained poses (T, 7) of the run.
        recorded: Recorded positions (U, 3), m.
    """
    if min(len(poses), len(recorded)) < MIN_SAMPLES:
        raise UnusableSamples(
            "recording",
            f"it and the run need {MIN_SAMPLES} samples each; they have {len(recorded)} and "
            f"{len(poses)}.",
        )

    distance = float(np.linalg.norm(poses[:, :3] - poses[0, :3], axis=1).max())
    if distance < MIN_MOTION:
        raise UnusableSamples(
            "recording",
            f"the tool's position does not move in this run (by {distance * 1e3:.2g} mm at most), "
            "and clock and frame are fitted to positions. A run in which the tool only rotates or "
            "rests cannot be evaluated.",
        )


def find_cycles(
    times: ArrayLike,
    positions: ArrayLike,
    recorded_times: ArrayLike,
    *,
    recorded: ArrayLike,
    count: int,
) -> Array:
    """Return rough clock offsets (count,) in s, in order, at which a recording contains a motion.

    Only chords within the motion are compared: what comes before and after it differs from cycle to
    cycle.

    Args:
        times: Strictly increasing stamps (T,) of the motion, s.
        positions: Positions of the motion (T, 3), m.
        recorded_times: Strictly increasing stamps (U,) of the recording, on any clock of the same
            rate, s.
        recorded: Recorded positions (U, 3), m, in any frame.
        count: Number of cycles, which do not overlap. If there are more, the best ones count.

    Raises:
        UnusableSamples: The recording contains fewer cycles.
    """
    t = stamps("times of the run", times)
    u = stamps("times of the recording", recorded_times)
    p = rows("attained positions", positions, 3, len(t))
    x = rows("recorded positions", recorded, 3, len(u))

    # Motion and recording at uniformly spaced instants.
    period = _search_period(t, u)
    motion = interpolate_rows(np.arange(t[0], t[-1], period), t, p)
    grid = np.arange(u[0] - MARGIN, u[-1] + MARGIN, period)
    misfit = _misfit(motion, interpolate_rows(grid, u, x), period)

    # The best start, then the best of those that are left, until there are enough.
    starts: list[int] = []
    while len(starts) < count:
        best = int(np.argmin(misfit)) if len(misfit) else 0
        if len(misfit) == 0 or misfit[best] > MAX_MISFIT:
            raise UnusableSamples(
                "recording",
                f"it contains the runs' motion {counted(len(starts), 'time')}, but "
                f"{counted(count, 'run')} completed. Record all runs in one file, or give one "
                "recording per run.",
            )
        starts.append(best)
        # Cycles do not overlap, except for rounding.
        overlaps = np.abs(np.arange(len(misfit)) - best) < len(motion) - 1
        misfit = np.where(overlaps, np.inf, misfit)
    return np.sort(grid[starts] - t[0])


def rigid_fit(recorded: ArrayLike, poses: ArrayLike, *, find_marker: bool = False) -> Alignment:
    """Fit recorded positions to the poses attained at the same instants (clock offset zero).

    If the positions are on one line, the rotation about it is arbitrary.

    Args:
        recorded: Recorded positions (K, 3), m, in any frame.
        poses: Attained poses (K, 7).
        find_marker: Estimate the position of the recorded point on the tool; by default it is the
            TCP.

    Raises:
        UnusableSamples: There are no positions.
    """
    x = rows("recorded positions", recorded, 3)
    attained = rows("attained poses", poses, 7, len(x))
    if len(x) == 0:
        raise UnusableSamples("recorded positions", "there are none.")

    rotation, translation = _umeyama(x, attained[:, :3])
    marker = np.zeros(3)
    if find_marker:
        rotation, translation, marker = _fit_marker(
            x, attained, rotation=rotation, translation=translation
        )

    # The remaining distances from the recorded points to the markers.
    marker_offsets = pose.rotate(attained[:, 3:], np.broadcast_to(marker, x.shape))
    differences = x @ rotation.T + translation - attained[:, :3] - marker_offsets
    residual = float(np.sqrt(np.mean((differences**2).sum(axis=1))))

    quaternion = pin.Quaternion(rotation).coeffs()
    if quaternion[3] < 0.0:
        quaternion = -quaternion
    transform = np.concatenate([translation, quaternion])
    return Alignment(
        offset=0.0, transform=transform, marker=marker, residual=residual, samples=len(x)
    )


def _umeyama(x: Array, y: Array) -> tuple[Array, Array]:
    """Return rotation (3, 3) and translation (3,) with the least sum of |R x + t - y|^2.

    Args:
        x: Positions (K, 3), m.
        y: Positions (K, 3), m.
    """
    mean_x = x.mean(axis=0)
    mean_y = y.mean(axis=0)
    u, _, vt = np.linalg.svd((y - mean_y).T @ (x - mean_x))
    # Without the sign the result could be a reflection.
    sign = np.sign(np.linalg.det(u @ vt))
    rotation = u @ np.diag([1.0, 1.0, sign]) @ vt
    return rotation, mean_y - rotation @ mean_x


def _fit_marker(
    x: Array, attained: Array, *, rotation: Array, translation: Array
) -> tuple[Array, Array, Array]:
    """Fit rotation R, translation t and marker by Gauss-Newton steps.

    They minimize the sum of |R x + t - p - Q marker|^2 over the samples.

    Args:
        x: Recorded positions (K, 3), m.
        attained: Poses (K, 7): positions p and rotations Q.
        rotation: Rotation at which the search begins (3, 3).
        translation: Translation at which the search begins (3,), m.

    Returns:
        Rotation (3, 3), translation (3,) and marker (3,), m.
    """
    marker = np.zeros(3)
    # The rotation matrices Q (K, 3, 3), column by column.
    columns = [pose.rotate(attained[:, 3:], np.broadcast_to(axis, x.shape)) for axis in np.eye(3)]
    tool_axes = np.stack(columns, axis=2)

    # The derivative of the differences by rotation, translation and marker.
    jacobian = np.zeros((len(x), 3, 9))
    jacobian[:, :, 3:6] = np.eye(3)
    jacobian[:, :, 6:] = -tool_axes

    for _ in range(MAX_MARKER_STEPS):
        rotated = x @ rotation.T
        differences = rotated + translation - attained[:, :3] - tool_axes @ marker

        # The derivative of exp(w) R x by w is the cross product with w: minus the skew matrix of
        # R x.
        jacobian[:, 0, 1] = rotated[:, 2]
        jacobian[:, 0, 2] = -rotated[:, 1]
        jacobian[:, 1, 0] = -rotated[:, 2]
        jacobian[:, 1, 2] = rotated[:, 0]
        jacobian[:, 2, 0] = rotated[:, 1]
        jacobian[:, 2, 1] = -rotated[:, 0]

        # The smallest of the best steps: a coordinate that the motion does not determine stays as
        # it is.
        flat = jacobian.reshape(-1, 9)
        inverse = np.linalg.pinv(flat.T @ flat, rcond=MARKER_RANK_TOLERANCE, hermitian=True)
        step = -inverse @ (flat.T @ differences.reshape(-1))

        rotation = pin.exp3(step[:3]) @ rotation
        translation = translation + step[3:6]
        marker = marker + step[6:]
        if np.abs(step).max() < MARKER_TOLERANCE:
            break
    return rotation, translation, marker


def _rough_offset(
    times: Array, positions: Array, recorded_times: Array, recorded: Array
) -> tuple[float, float]:
    """Return the offset at which the chords of two motions agree best, and the search's period, s.

    Args:
        times: Stamps (T,) of the run, s.
        positions: Positions of the run (T, 3), m.
        recorded_times: Stamps (U,) of the recording, s.
        recorded: Positions (U, 3) of the recording, m.

    Raises:
        UnusableSamples: Either does not move.
    """
    period = _search_period(times, recorded_times)
    run_chords = _chords(times, positions, period)
    recorded_chords = _chords(recorded_times, recorded, period)
    if not run_chords.any() or not recorded_chords.any():
        raise UnusableSamples(
            "recording", "it or the run is at rest, so the clock offset cannot be determined."
        )

    agreement = correlation(run_chords, recorded_chords)
    lag = int(np.argmax(agreement))
    # Negative lags count from the end.
    if lag >= len(agreement) // 2:
        lag -= len(agreement)
    return float(recorded_times[0] - times[0] + lag * period), period


def _search_period(t: Array, u: Array) -> float:
    """Return the period of the rough search, s: of the slower of two recordings, within limits."""
    longest = max(t[-1] - t[0], u[-1] - u[0])
    return max(
        float(np.median(np.diff(t))),
        float(np.median(np.diff(u))),
        MIN_PERIOD,
        longest / MAX_GRID,
    )


def _chords(t: Array, p: Array, period: float) -> Array:
    """Return the chords (K, 3) of each of CHORDS; each column has unit energy, or is zero.

    Args:
        t: Stamps (T,) of a motion, s, which is extended by rest before and after.
        p: Positions of the motion (T, 3), m.
        period: Time between two chords, s.
    """
    grid = np.arange(t[0] - max(CHORDS), t[-1] + max(CHORDS), period)
    uniform = interpolate_rows(grid, t, p)
    chords = np.zeros((len(grid), len(CHORDS)))
    for i, span in enumerate(CHORDS):
        half = max(1, round(0.5 * span / period))
        chords[half:-half, i] = np.linalg.norm(uniform[2 * half :] - uniform[: -2 * half], axis=1)

    norms = np.sqrt((chords**2).sum(axis=0))
    return chords / np.where(norms > MIN_CHORD_NORM, norms, np.inf)


def _misfit(motion: Array, recording: Array, period: float) -> Array:
    """Return how badly a motion fits a recording at each possible start (K,).

    Compared are the chords of both, the distances between positions that are a span of time apart:
    the sum of their squared differences, relative to the sum of the motion's squared chords. It is
    infinite for a motion that does not move.

    Args:
        motion: Positions (n, 3), m.
        recording: Positions (m, 3), m, in which the motion may start at each of K = m - n + 1
            samples.
        period: Time between two positions, s.
    """
    starts = max(len(recording) - len(motion) + 1, 0)
    difference = np.zeros(starts)
    energy = 0.0
    for span in CHORDS:
        steps = max(1, round(span / period))
        if steps >= len(motion) or starts == 0:
            continue
        chords = np.linalg.norm(motion[steps:] - motion[:-steps], axis=1)
        recorded_chords = np.linalg.norm(recording[steps:] - recording[:-steps], axis=1)

        # |a - b|^2 = |a|^2 + |b|^2 - 2 a b, for the motion's chords a and as many recorded ones b
        # from each start on. |b|^2 is the difference of two cumulative sums.
        motion_energy = float(chords @ chords)
        cumulative = np.concatenate([[0.0], np.cumsum(recorded_chords**2)])
        until_end = cumulative[len(chords) :][:starts]
        until_start = cumulative[:starts]
        products = correlation(chords[:, None], recorded_chords[:, None])[:starts]
        difference += motion_energy + until_end - until_start - 2.0 * products
        energy += motion_energy

    if energy > 0.0:
        return difference / energy
    return np.full(starts, np.inf)
