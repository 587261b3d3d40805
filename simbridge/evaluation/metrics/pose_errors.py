"""The absolute and relative pose error (APE and RPE) as evo defines them, and pairs of samples.

APE and RPE follow J. Sturm, N. Engelhard, F. Endres, W. Burgard and D. Cremers, A benchmark for the
evaluation of RGB-D SLAM systems, 2012. With reference poses Q and attained poses P, all in SE(3):

    APE: E_i = P_i^-1 Q_i
    RPE: E_i = (Q_i^-1 Q_j)^-1 (P_i^-1 P_j),  j = i + delta

The length of the translation and the angle of the rotation of each E_i count. Nothing is aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.metrics.samples import BLOCK, ErrorSize, PoseError, rows, stamps
from simbridge.robot import pose
from simbridge.robot.pose import Array

Indices = NDArray[np.intp]

# Largest difference in s between the stamps of two samples that are compared.
TOLERANCE = 0.010
# Time span in s of a run's relative pose error; over one period it would be mostly sensor
# resolution.
RELATIVE_SPAN = 1.0
# The sum of k periods may be less than k times the period by this part of it, a rounding error.
SPAN_TOLERANCE = 1e-9


class EvoStatistics(TypedDict):
    """The statistics that evo prints; `std` divides by the number of values."""

    rmse: float
    mean: float
    median: float
    std: float
    min: float
    max: float
    sse: float


class AbsolutePoseError(TypedDict):
    """APE: translations in m and rotation angles in rad."""

    position_m: EvoStatistics
    rotation_rad: EvoStatistics


class RelativePoseError(AbsolutePoseError):
    """RPE of all pairs of poses that are `delta_samples` samples, or `delta_s` seconds, apart."""

    delta_samples: int
    delta_s: float


class PoseErrorSummary(TypedDict):
    """APE and RPE of a run; a single pose has no relative error."""

    absolute_pose_error: AbsolutePoseError
    relative_pose_error: RelativePoseError | None


@dataclass(frozen=True)
class TrajectoryError:
    """APE or RPE, one per pose or pair of poses.

    Attributes:
        translation: Lengths of translations (K,), m.
        rotation: Angles of rotations (K,), rad.
    """

    translation: Array
    rotation: Array

    def statistics(self) -> AbsolutePoseError:
        """Return the statistics that evo prints, of translations and rotations."""
        return {
            "position_m": _evo_statistics(self.translation),
            "rotation_rad": _evo_statistics(self.rotation),
        }


def associate(
    first: ArrayLike, second: ArrayLike, tolerance: float = TOLERANCE
) -> tuple[Indices, Indices]:
    """Pair the samples of two recordings.

    Each sample of the shorter one is paired with the nearest in time of the longer one, which may
    occur twice.

    Args:
        first: Strictly increasing stamps (T,) in s.
        second: Strictly increasing stamps (U,) in s, of the same clock. If T = U, the first is the
            longer.
        tolerance: Samples without a partner within this time, s, are left out.

    Returns:
        Indices (K,) into the first and (K,) into the second.

    Raises:
        UnusableSamples: No pair within the tolerance.
    """
    first_times = stamps("first stamps", first)
    second_times = stamps("second stamps", second)
    is_first_shorter = len(second_times) > len(first_times)
    short = first_times if is_first_shorter else second_times
    long = second_times if is_first_shorter else first_times

    # If two samples are equally near, the earlier one counts.
    after = np.clip(np.searchsorted(long, short), 1, max(len(long) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(long) - 1)
    is_earlier_nearest = np.abs(long[before] - short) <= np.abs(long[after] - short)
    nearest = np.where(is_earlier_nearest, before, after)

    paired = np.flatnonzero(np.abs(long[nearest] - short) <= tolerance)
    if len(paired) == 0:
        raise UnusableSamples("two recordings", f"no timestamps match to within {tolerance:g} s.")
    if is_first_shorter:
        return paired, nearest[paired]
    return nearest[paired], paired


def absolute_pose_error(reference: ArrayLike, attained: ArrayLike) -> TrajectoryError:
    """Return the APE of attained poses against reference poses.

    Args:
        reference: Reference poses (T, 7).
        attained: Attained poses (T, 7) at the same instants.
    """
    error = PoseError.between(reference, attained)
    return TrajectoryError(error.distance, error.angle)


def relative_pose_error(
    reference: ArrayLike, attained: ArrayLike, delta: int = 1, *, all_pairs: bool = False
) -> TrajectoryError:
    """Return the RPE of attained poses against reference poses: the error of the motion in between.

    Args:
        reference: Reference poses (T, 7).
        attained: Attained poses (T, 7) at the same instants.
        delta: Number of samples from the first pose of a pair to the second.
        all_pairs: A pair starts at every sample; by default where the previous one ends.

    Raises:
        UnusableSamples: There are delta poses or fewer.
        InvalidParameter: delta is not positive.
    """
    q = rows("reference poses", reference, 7)
    p = rows("attained poses", attained, 7, len(q))
    if delta < 1:
        raise InvalidParameter("delta", delta, "1 or more samples")
    if len(q) <= delta:
        raise UnusableSamples(
            "poses", f"there are {len(q)}, and a pair over {delta} needs {delta + 1}."
        )

    step = 1 if all_pairs else delta
    first = np.arange(0, len(q) - delta, step)
    return _motion_error(q, p, first=first, second=first + delta)


def relative_pose_error_over(
    times: ArrayLike, reference: ArrayLike, attained: ArrayLike, seconds: float
) -> TrajectoryError:
    """Return the RPE of attained poses against reference poses over a time span.

    Args:
        times: Strictly increasing stamps (T,), s.
        reference: Poses (T, 7) at the stamps.
        attained: Poses (T, 7) at the stamps.
        seconds: The time span, s: each stamp is paired with the first one at least this much later.

    Raises:
        UnusableSamples: The recording is shorter than the time span.
        InvalidParameter: The time span is not positive.
    """
    t = stamps("times", times)
    q = rows("reference poses", reference, 7, len(t))
    p = rows("attained poses", attained, 7, len(t))
    if not seconds > 0.0:
        raise InvalidParameter("delta", f"{seconds} s", "a positive time")

    second = np.searchsorted(t, t + seconds * (1.0 - SPAN_TOLERANCE))
    first = np.flatnonzero(second < len(t))
    if len(first) == 0:
        raise UnusableSamples(
            "poses", f"they span {t[-1] - t[0]:g} s, but a pair must span {seconds:g} s."
        )
    return _motion_error(q, p, first=first, second=second[first])


def pose_error_summary(
    period: float,
    reference: ArrayLike,
    attained: ArrayLike,
    *,
    tracking: PoseError | ErrorSize | None = None,
) -> PoseErrorSummary:
    """Return statistics of the APE, and of the RPE over RELATIVE_SPAN or half of a shorter motion.

    Args:
        period: Time between two poses, s.
        reference: Reference poses (T, 7).
        attained: Attained poses (T, 7) at the same instants.
        tracking: The difference of the poses, if it is known already.
    """
    tracking = tracking or PoseError.between(reference, attained)
    absolute = TrajectoryError(tracking.distance, tracking.angle)
    count = len(absolute.translation)

    relative: RelativePoseError | None = None
    if count > 1:
        delta = max(1, min(round(RELATIVE_SPAN / period), count // 2))
        error = relative_pose_error(reference, attained, delta, all_pairs=True)
        relative = {"delta_samples": delta, "delta_s": delta * period, **error.statistics()}
    return {"absolute_pose_error": absolute.statistics(), "relative_pose_error": relative}


def _motion_error(q: Array, p: Array, *, first: Indices, second: Indices) -> TrajectoryError:
    """Return the errors of the motions between pairs of poses.

    Args:
        q: Reference poses (T, 7).
        p: Attained poses (T, 7).
        first: Index of the pose at which each pair begins (K,).
        second: Index of the pose at which each pair ends (K,).
    """
    translation = np.empty(len(first))
    rotation = np.empty(len(first))
    # Block by block: the poses of all pairs of an hour would take a gigabyte.
    for k in range(0, len(first), BLOCK):
        block = slice(k, k + BLOCK)
        begin = first[block]
        end = second[block]
        reference_motion = pose.compose(_inverse(q[begin]), q[end])
        attained_motion = pose.compose(_inverse(p[begin]), p[end])
        error = pose.compose(_inverse(reference_motion), attained_motion)
        translation[block] = np.linalg.norm(error[:, :3], axis=1)
        rotation[block] = np.linalg.norm(pose.rotation_vectors(error[:, 3:]), axis=1)
    return TrajectoryError(translation, rotation)


def _inverse(poses: Array) -> Array:
    """Return the inverse transforms (T, 7) of poses (T, 7)."""
    inverse_rotations = pose.conjugate(poses[:, 3:])
    inverse_positions = -pose.rotate(inverse_rotations, poses[:, :3])
    return np.concatenate([inverse_positions, inverse_rotations], axis=1)


def _evo_statistics(values: Array) -> EvoStatistics:
    """Return the statistics that evo prints, of values (K,)."""
    squares = values**2
    return {
        "rmse": float(np.sqrt(squares.mean())),
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
        "sse": float(squares.sum()),
    }
