"""The absolute and relative pose error (APE and RPE) as evo defines them, and the pairing of two recordings' samples.

APE and RPE follow J. Sturm, N. Engelhard, F. Endres, W. Burgard and D. Cremers, A benchmark for the evaluation of RGB-D
SLAM systems, 2012. With reference poses Q and attained poses P, all in SE(3):

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
# Time span in s of a run's relative pose error; over one period it would be mostly sensor resolution.
RELATIVE_SPAN = 1.0


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
    """APE or RPE: translations (K,) in m and rotation angles (K,) in rad, one per pose or pair of poses."""

    translation: Array
    rotation: Array

    def statistics(self) -> AbsolutePoseError:
        """The statistics that evo prints, of translations and rotations."""
        return {
            "position_m": _evo_statistics(self.translation),
            "rotation_rad": _evo_statistics(self.rotation),
        }


def associate(
    first: ArrayLike, second: ArrayLike, tolerance: float = TOLERANCE
) -> tuple[Indices, Indices]:
    """Pair the samples of two recordings: each sample of the shorter one with the nearest in time of the other.

    Args:
        first, second: Strictly increasing stamps (T,) and (U,) in s, of one clock. If T = U, the first is the longer.
        tolerance: Samples without a partner within this time, s, are left out.

    Returns indices (K,) into the first and (K,) into the second. A sample of the longer one may occur twice.

    Raises:
        UnusableSamples: No pair within the tolerance.
    """
    one, other = stamps("first stamps", first), stamps("second stamps", second)
    short, long = (one, other) if len(other) > len(one) else (other, one)
    after = np.clip(np.searchsorted(long, short), 1, max(len(long) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(long) - 1)
    # Of two equally near samples the earlier counts.
    nearest = np.where(np.abs(long[before] - short) <= np.abs(long[after] - short), before, after)
    kept = np.flatnonzero(np.abs(long[nearest] - short) <= tolerance)
    if len(kept) == 0:
        raise UnusableSamples(
            "two recordings", f"no stamp of one is within {tolerance:g} s of one of the other."
        )
    return (kept, nearest[kept]) if len(other) > len(one) else (nearest[kept], kept)


def absolute_pose_error(reference: ArrayLike, attained: ArrayLike) -> TrajectoryError:
    """APE of attained poses (T, 7) against reference poses (T, 7) that belong to the same instants."""
    error = PoseError.between(reference, attained)
    return TrajectoryError(error.distance, error.angle)


def relative_pose_error(
    reference: ArrayLike, attained: ArrayLike, delta: int = 1, *, all_pairs: bool = False
) -> TrajectoryError:
    """RPE of attained poses (T, 7) against reference poses (T, 7): the error of the motion over `delta` samples.

    A pair starts at every sample with `all_pairs`; by default where the previous one ends.

    Raises:
        UnusableSamples: There are not more than delta.
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
    first = np.arange(0, len(q) - delta, 1 if all_pairs else delta)
    return _relative(q, p, first, first + delta)


def relative_pose_error_over(
    times: ArrayLike, reference: ArrayLike, attained: ArrayLike, seconds: float
) -> TrajectoryError:
    """RPE of poses (T, 7) over a time span: from every stamp (T,) to the first that is at least `seconds` later.

    Raises:
        UnusableSamples: The recording is shorter.
        InvalidParameter: The time is not positive.
    """
    t = stamps("times", times)
    q = rows("reference poses", reference, 7, len(t))
    p = rows("attained poses", attained, 7, len(t))
    if not seconds > 0.0:
        raise InvalidParameter("delta", f"{seconds} s", "a positive time")
    # The sum of k periods may be less than k times the period by a rounding error.
    later = np.searchsorted(t, t + seconds * (1.0 - 1e-9))
    first = np.flatnonzero(later < len(t))
    if len(first) == 0:
        raise UnusableSamples(
            "poses", f"they span {t[-1] - t[0]:g} s, but a pair must span {seconds:g} s."
        )
    return _relative(q, p, first, later[first])


def pose_error_summary(
    period: float,
    reference: ArrayLike,
    attained: ArrayLike,
    *,
    tracking: PoseError | ErrorSize | None = None,
) -> PoseErrorSummary:
    """Statistics of the APE, and of the RPE over RELATIVE_SPAN or half of a shorter motion.

    The poses (T, 7) are one period, s, apart; `tracking` is their difference, if it is known already.
    """
    tracking = tracking or PoseError.between(reference, attained)
    absolute = TrajectoryError(tracking.distance, tracking.angle)
    count = len(absolute.translation)
    relative: RelativePoseError | None = None
    if count > 1:
        delta = max(1, min(round(RELATIVE_SPAN / period), count // 2))
        error = relative_pose_error(reference, attained, delta, all_pairs=True).statistics()
        relative = {"delta_samples": delta, "delta_s": delta * period, **error}
    return {"absolute_pose_error": absolute.statistics(), "relative_pose_error": relative}


def _relative(q: Array, p: Array, first: Indices, second: Indices) -> TrajectoryError:
    translation, rotation = np.empty(len(first)), np.empty(len(first))
    for k in range(0, len(first), BLOCK):
        part = slice(k, k + BLOCK)
        wanted, found = (pose.compose(_inverse(x[first[part]]), x[second[part]]) for x in (q, p))
        error = pose.compose(_inverse(wanted), found)
        translation[part] = np.linalg.norm(error[:, :3], axis=1)
        rotation[part] = np.linalg.norm(pose.rotation_vectors(error[:, 3:]), axis=1)
    return TrajectoryError(translation, rotation)


def _inverse(poses: Array) -> Array:
    back = pose.conjugate(poses[:, 3:])
    return np.concatenate([-pose.rotate(back, poses[:, :3]), back], axis=1)


def _evo_statistics(values: Array) -> EvoStatistics:
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
