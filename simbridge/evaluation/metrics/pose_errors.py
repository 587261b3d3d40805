"""Pose errors of a run: the error budget along the pipeline, and APE and RPE as evo defines them.

A sample has one stamp, the instant at which its setpoint is due, and five poses that belong to it:

    reference --sampling--> target --solver--> solution --limiter--> setpoint --plant--> attained

Each arrow is one part of the error budget. The parts add up to the tracking error: positions exactly,
`tracking.translation = sampling.translation + ... + plant.translation`, and rotations by composition,
`R_tracking = R_sampling R_solver R_limiter R_plant`. The Rodrigues vectors and the angles do not add.

Absolute and relative pose error follow J. Sturm, N. Engelhard, F. Endres, W. Burgard and D. Cremers, A benchmark for
the evaluation of RGB-D SLAM systems, 2012. With reference poses Q and attained poses P, all in SE(3):

    APE: E_i = P_i^-1 Q_i
    RPE: E_i = (Q_i^-1 Q_j)^-1 (P_i^-1 P_j),  j = i + delta

The length of the translation and the angle of the rotation of each E_i count. Nothing is aligned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.metrics.samples import rows, stamps
from simbridge.robot import pose
from simbridge.robot.pose import Array

Indices = NDArray[np.intp]

TOLERANCE = 0.010
"""Largest difference in s between the stamps of two samples that are compared."""

BLOCK = 50_000
"""Pairs evaluated at once: an hour has millions, whose poses would take a gigabyte."""


@dataclass(frozen=True)
class ErrorPart:
    """A part of the error budget, or the tracking error as a whole.

    Attributes:
        name: Its attribute in `ErrorBudget`.
        source: What causes it, as a noun phrase.
        meaning: Which two poses it compares, and what their difference is.
    """

    name: str
    source: str
    meaning: str

    @property
    def key(self) -> str:
        """Its key in summary.json."""
        return f"{self.name}_error"

    @property
    def title(self) -> str:
        """Its name at the start of a table row."""
        return self.name.capitalize()


ERROR_PARTS = (
    ErrorPart(
        "sampling",
        "sampling (a target held between two samples)",
        "Reference to target: the cost of holding the last sample of a slow source.",
    ),
    ErrorPart(
        "solver",
        "the solver (inverse kinematics that has not converged yet)",
        "Target to solution: what the inverse kinematics has not reached yet.",
    ),
    ErrorPart(
        "limiter",
        "the limiter (setpoints changed to respect velocity and acceleration limits)",
        "Solution to setpoint: changes made to respect velocity and acceleration limits.",
    ),
    ErrorPart("plant", "the plant (the controller and the arm)", "Setpoint to attained: the controller and the arm."),
)
"""The four parts of the tracking error in pipeline order: the one list of their names, keys and meanings."""

TRACKING_ERROR = ErrorPart(
    "tracking", "all parts", "Reference to attained: the whole error. The parts add up as vectors."
)

Statistics = dict[str, float]


def statistics(values: ArrayLike) -> Statistics:
    """Root mean square, mean, 95th percentile (linear between order statistics) and maximum of values (T,).

    Raises:
        UnusableSamples: If there are no values or one is not finite.
    """
    array = rows("values of a statistic", np.asarray(values, dtype=float)[..., None], 1)[:, 0]
    if len(array) == 0:
        raise UnusableSamples("values of a statistic", "there are none. Evaluate at least one sample.")
    return {
        "rms": float(np.sqrt(np.mean(array**2))),
        "mean": float(np.mean(array)),
        "p95": float(np.percentile(array, 95.0)),
        "max": float(np.max(array)),
    }


@dataclass(frozen=True)
class PoseError:
    """Desired minus attained at every sample: one line of the budget.

    Attributes:
        translation: Shape (T, 3), in m, in base axes; read-only.
        rotation: R_desired R_attained^T as Rodrigues vectors (T, 3), in rad, in base axes; read-only.
    """

    translation: Array
    rotation: Array

    def __post_init__(self) -> None:
        translation = rows("translation errors", self.translation, 3).copy()
        rotation = rows("rotation errors", self.rotation, 3, len(translation)).copy()
        for name, array in (("translation", translation), ("rotation", rotation)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @staticmethod
    def between(desired: ArrayLike, attained: ArrayLike) -> PoseError:
        """The error of attained poses (T, 7) against desired ones (T, 7).

        Raises:
            UnusableSamples: If the two differ in length or a value is not finite.
        """
        first = rows("desired poses", desired, 7)
        return PoseError(*pose.error(first, rows("attained poses", attained, 7, len(first))))

    @property
    def distance(self) -> Array:
        """Euclidean distances (T,) in m."""
        return np.asarray(np.linalg.norm(self.translation, axis=1))

    @property
    def angle(self) -> Array:
        """Angles (T,) in rad, from 0 to pi, of the rotations that are missing."""
        return np.asarray(np.linalg.norm(self.rotation, axis=1))

    def statistics(self) -> dict[str, Statistics]:
        """RMS, mean, 95th percentile and maximum of the distances (m) and of the angles (rad).

        Raises:
            UnusableSamples: If there are no samples.
        """
        return {"position_m": statistics(self.distance), "rotation_rad": statistics(self.angle)}


@dataclass(frozen=True)
class ErrorBudget:
    """The tracking error and the four steps that it is made of, over the same samples.

    Attributes:
        sampling: Reference minus target: what holding the last sample of a slow source costs.
        solver: Target minus solution: what the inverse kinematics had not yet reached.
        limiter: Solution minus setpoint: zero unless the limiter acted.
        plant: Setpoint minus attained: the controller and the arm.
        tracking: Reference minus attained: the sum.
    """

    sampling: PoseError
    solver: PoseError
    limiter: PoseError
    plant: PoseError
    tracking: PoseError


def error_budget(
    reference: ArrayLike, target: ArrayLike, solution: ArrayLike, setpoint: ArrayLike, attained: ArrayLike
) -> ErrorBudget:
    """The error budget of poses (T, 7) that belong to the same T stamps.

    Args:
        reference: The continuous path at the stamps.
        target: What the solver was given.
        solution: Where the solver's joints put the tool.
        setpoint: Where the joints that were sent put the tool.
        attained: Where the measured joints put the tool.

    Raises:
        UnusableSamples: If the five differ in length or a value is not finite.
    """
    first = rows("reference poses", reference, 7)
    second = rows("target poses", target, 7, len(first))
    third = rows("solution poses", solution, 7, len(first))
    fourth = rows("setpoint poses", setpoint, 7, len(first))
    last = rows("attained poses", attained, 7, len(first))
    return ErrorBudget(
        sampling=PoseError.between(first, second),
        solver=PoseError.between(second, third),
        limiter=PoseError.between(third, fourth),
        plant=PoseError.between(fourth, last),
        tracking=PoseError.between(first, last),
    )


@dataclass(frozen=True)
class TrajectoryError:
    """One value a pose, or a pair of poses. Both arrays (K,), read-only.

    Attributes:
        translation: m.
        rotation: Angle in rad, 0 to pi.
    """

    translation: Array
    rotation: Array

    def __post_init__(self) -> None:
        self.translation.setflags(write=False)
        self.rotation.setflags(write=False)

    def statistics(self) -> dict[str, dict[str, float]]:
        """`{position_m, rotation_rad}`, each `{rmse, mean, median, std, min, max, sse}`; std divides by K."""
        return {"position_m": _statistics(self.translation), "rotation_rad": _statistics(self.rotation)}


def associate(first: ArrayLike, second: ArrayLike, tolerance: float = TOLERANCE) -> tuple[Indices, Indices]:
    """Which samples of two sequences belong together: to each of the shorter one, the nearest in time of the other.

    Args:
        first, second: Strictly increasing stamps (T,) and (U,) in s, of one clock. Of equal ones, first counts as
        longer. tolerance: Samples without a partner within so many seconds are left out.

    Returns:
        Indices (K,) into the first and (K,) into the second. A sample of the longer one may occur twice.

    Raises:
        UnusableSamples: Stamps that do not increase, or no pair within the tolerance.
    """
    one, other = stamps("first stamps", first), stamps("second stamps", second)
    short, long = (one, other) if len(other) > len(one) else (other, one)
    after = np.clip(np.searchsorted(long, short), 1, max(len(long) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(long) - 1)
    # Of two that are equally near, the earlier.
    nearest = np.where(np.abs(long[before] - short) <= np.abs(long[after] - short), before, after)
    kept = np.flatnonzero(np.abs(long[nearest] - short) <= tolerance)
    if len(kept) == 0:
        raise UnusableSamples("two recordings", f"no stamp of one is within {tolerance:g} s of one of the other.")
    return (kept, nearest[kept]) if len(other) > len(one) else (nearest[kept], kept)


def absolute_pose_error(reference: ArrayLike, attained: ArrayLike) -> TrajectoryError:
    """APE of attained poses (T, 7) against reference poses (T, 7) that belong to the same instants.

    Raises:
        UnusableSamples: They differ in length or a value is not finite.
    """
    error = PoseError.between(reference, attained)
    return TrajectoryError(error.distance, error.angle)


def relative_pose_error(
    reference: ArrayLike, attained: ArrayLike, delta: int = 1, *, all_pairs: bool = False
) -> TrajectoryError:
    """RPE of attained poses (T, 7) against reference poses (T, 7): what goes wrong over `delta` samples.

    Args:
        reference, attained: Poses that belong to the same instants.
        delta: Samples from one pose of a pair to the other.
        all_pairs: A pair from every sample; otherwise one begins where the last has ended.

    Raises:
        UnusableSamples: They differ in length, a value is not finite, or there are not more than delta.
        InvalidParameter: delta is not positive.
    """
    q = rows("reference poses", reference, 7)
    p = rows("attained poses", attained, 7, len(q))
    if delta < 1:
        raise InvalidParameter("delta", delta, "1 or more samples")
    if len(q) <= delta:
        raise UnusableSamples("poses", f"there are {len(q)}, and a pair over {delta} needs {delta + 1}.")
    first = np.arange(0, len(q) - delta, 1 if all_pairs else delta)
    return _relative(q, p, first, first + delta)


def relative_pose_error_over(
    times: ArrayLike, reference: ArrayLike, attained: ArrayLike, seconds: float
) -> TrajectoryError:
    """RPE over a time: from every sample to the first that is at least `seconds` later.

    Args:
        times: Strictly increasing stamps (T,) in s.
        reference, attained: Poses (T, 7) at the stamps.
        seconds: A positive time, s.

    Raises:
        UnusableSamples: As `relative_pose_error`, or the recording is shorter.
        InvalidParameter: The time is not positive.
    """
    t = stamps("times", times)
    q = rows("reference poses", reference, 7, len(t))
    p = rows("attained poses", attained, 7, len(t))
    if not seconds > 0.0:
        raise InvalidParameter("delta", f"{seconds} s", "a positive time")
    # k periods may fall short of the time they stand for by a rounding error.
    later = np.searchsorted(t, t + seconds * (1.0 - 1e-9))
    first = np.flatnonzero(later < len(t))
    if len(first) == 0:
        raise UnusableSamples("poses", f"they span {t[-1] - t[0]:g} s, and a pair is to span {seconds:g} s.")
    return _relative(q, p, first, later[first])


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


def _statistics(values: Array) -> dict[str, float]:
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
