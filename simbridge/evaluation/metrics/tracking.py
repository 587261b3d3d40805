"""The tracking error of a run: its parts along the pipeline, and its delays.

A sample has one stamp, the instant at which its setpoint is due, and five poses that belong to it:

    reference --sampling--> target --solver--> solution --limiter--> setpoint --plant--> attained

Each arrow is one part of the error budget. The parts add up to the tracking error: positions
exactly, `tracking.translation = sampling.translation + ... + plant.translation`, and rotations by
composition, `R_tracking = R_sampling R_solver R_limiter R_plant`. The Rodrigues vectors and the
angles do not add.

If the servo law of the controller is known, it predicts from the commands where the arm should
be, and the plant's part is split in the same way:

    setpoint --servo law--> predicted --rest--> attained

Each part has its delay; delays of the parts add up to the whole as far as the motion determines
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from simbridge.evaluation.metrics.delays import (
    MIN_SAMPLES,
    Compensated,
    Motion,
    PosePart,
    compensate_delay,
    delay,
    motion_through,
    moves,
)
from simbridge.evaluation.metrics.samples import (
    ErrorSize,
    PoseError,
    PoseStatistics,
    rows,
    statistics,
)
from simbridge.ik.callable_solver import RECORDED_JOINTS
from simbridge.robot.pose import Array

POSE_PARTS: tuple[PosePart, PosePart] = ("position", "rotation")

PartKey = Literal[
    "sampling_error",
    "solver_error",
    "limiter_error",
    "plant_error",
    "servo_law_error",
    "rest_error",
    "tracking_error",
]

# Errors below this, m or rad, are rounding.
NOTHING = 1e-12
# Delays of position and rotation that differ by less, s, are reported as one.
SAME_DELAY = 1e-3


@dataclass(frozen=True)
class ErrorPart:
    """A part of the error budget, or the tracking error as a whole.

    Attributes:
        name: The name that people see. The attribute in `ErrorBudget` and `Delays` has underscores
            instead of spaces.
        key: The key of the part in summary.json.
        meaning: Which two poses the part compares, and what their difference is.
        whole: The name of the part that it is a part of; "" for the tracking error.
    """

    name: str
    key: PartKey
    meaning: str
    whole: str = ""

    @property
    def attribute(self) -> str:
        """Its attribute in `ErrorBudget` and `Delays`."""
        return self.name.replace(" ", "_")

    @property
    def title(self) -> str:
        """Its name at the start of a table row."""
        return f"of which {self.name}" if self.whole else self.name.capitalize()


# The parts of the tracking error in pipeline order: the one list of their names, keys and meanings.
# The first four add up to it. The parts of the plant's part are null where no servo law is known.
ERROR_PARTS = (
    ErrorPart(
        "sampling",
        "sampling_error",
        "Reference to target: the cost of holding the last sample of a slow source.",
    ),
    ErrorPart(
        "solver",
        "solver_error",
        "Target to solution: what the inverse kinematics has not reached yet.",
    ),
    ErrorPart(
        "limiter",
        "limiter_error",
        "Solution to setpoint: changes made to respect velocity and acceleration limits.",
    ),
    ErrorPart("plant", "plant_error", "Setpoint to attained: the controller and the arm."),
    ErrorPart(
        "servo law",
        "servo_law_error",
        "Setpoint to prediction: what servoj makes of the commands that were sent.",
        whole="plant",
    ),
    ErrorPart(
        "rest",
        "rest_error",
        "Prediction to attained: joint servo, calibration and load; on a controller also the "
        "link's delay.",
        whole="plant",
    ),
)
SOLVER_ERROR = ERROR_PARTS[1]
TRACKING_ERROR = ErrorPart(
    "tracking",
    "tracking_error",
    "Reference to attained: the whole error. The parts add up as vectors.",
)


def known_parts(*summaries: Mapping[str, Any]) -> list[ErrorPart]:
    """Return the parts of the error that any of these `Tracking` summaries has.

    The parts of the plant's part are among them only where the servo law is known, the solver's
    part only where there is a solver.
    """
    return [part for part in ERROR_PARTS if any(_has_part(summary, part) for summary in summaries)]


def _has_part(summary: Mapping[str, Any], part: ErrorPart) -> bool:
    """Return whether a summary has a part of the error."""
    if part.name == "solver" and summary.get("solver") == RECORDED_JOINTS:
        return False
    return summary.get(part.key) is not None


Error = TypeVar("Error", bound=PoseError | ErrorSize)
ErrorShares: TypeAlias = dict[PosePart, dict[str, float] | None]


@dataclass(frozen=True)
class ErrorBudget(Generic[Error]):
    """The tracking error and its parts, over the same samples: see `ERROR_PARTS`.

    The two parts of the plant's part are None if no servo law is known.

    Attributes:
        sampling: Difference of reference and target.
        solver: Difference of target and solution.
        limiter: Difference of solution and setpoint.
        plant: Difference of setpoint and attained pose.
        tracking: Difference of reference and attained pose.
        servo_law: Difference of setpoint and predicted pose.
        rest: Difference of predicted and attained pose.
    """

    sampling: Error
    solver: Error
    limiter: Error
    plant: Error
    tracking: Error
    servo_law: Error | None = None
    rest: Error | None = None


def error_budget(
    reference: ArrayLike,
    target: ArrayLike,
    solution: ArrayLike,
    *,
    setpoint: ArrayLike,
    attained: ArrayLike,
    predicted: ArrayLike | None = None,
) -> ErrorBudget[PoseError]:
    """Return the error budget of poses (T, 7) that belong to the same T stamps.

    Args:
        reference: The continuous path at the stamps.
        target: What the solver was to reach.
        solution: Tool poses at the solver's joint positions.
        setpoint: Tool poses at the wanted joint positions.
        attained: Tool poses at the measured joint positions.
        predicted: Tool poses where the servo law brings the joints, if it is known.
    """
    reference = rows("reference poses", reference, 7)
    count = len(reference)
    target = rows("target poses", target, 7, count)
    solution = rows("solution poses", solution, 7, count)
    setpoint = rows("setpoint poses", setpoint, 7, count)
    attained = rows("attained poses", attained, 7, count)

    servo_law = None
    rest = None
    if predicted is not None:
        predicted = rows("predicted poses", predicted, 7, count)
        servo_law = PoseError.between(setpoint, predicted)
        rest = PoseError.between(predicted, attained)

    return ErrorBudget(
        sampling=PoseError.between(reference, target),
        solver=PoseError.between(target, solution),
        limiter=PoseError.between(solution, setpoint),
        plant=PoseError.between(setpoint, attained),
        tracking=PoseError.between(reference, attained),
        servo_law=servo_law,
        rest=rest,
    )


def error_shares(budget: ErrorBudget[PoseError]) -> ErrorShares:
    """Return what each part contributes to the mean square of the tracking error.

    It is the mean projection of the part on the tracking error. A part that is opposite to the
    whole contributes a negative number. Those of the rotation hold for small angles.

    Returns:
        By "position" and "rotation" the parts' numbers by their attributes, which add up to 1 for
        the first four parts; None if there is no tracking error.
    """
    return {
        "position": _relative_projections(budget, "translation"),
        "rotation": _relative_projections(budget, "rotation"),
    }


def _relative_projections(
    budget: ErrorBudget[PoseError], field: Literal["translation", "rotation"]
) -> dict[str, float] | None:
    """Return the share of each part in the tracking error; None without a tracking error.

    The share is the mean scalar product of part and whole divided by the mean square of the whole,
    so that the shares of translations add up to 1.

    Args:
        budget: The tracking error and its parts.
        field: The part of a pose error.
    """
    whole = getattr(budget.tracking, field)
    square = float(np.sum(whole**2))
    if square <= len(whole) * NOTHING**2:
        return None

    projections = {}
    for part in ERROR_PARTS:
        error = getattr(budget, part.attribute)
        if error is not None:
            projection = float(np.sum(getattr(error, field) * whole))
            projections[part.attribute] = projection / square
    return projections


class Delays(NamedTuple):
    """Delays in s of the position or of the rotation; None if they cannot be determined.

    The first is from reference to attained; those of the parts are from one pose of the pipeline to
    the next.
    """

    total: float | None = None
    sampling: float | None = None
    solver: float | None = None
    limiter: float | None = None
    plant: float | None = None
    servo_law: float | None = None
    rest: float | None = None


# The keys of summary.json, in the order of the fields of `Delays`.
DELAY_KEYS: dict[PosePart, tuple[str, ...]] = {
    "position": ("delay_s", *(f"{name}_delay_s" for name in Delays._fields[1:])),
    "rotation": ("rotation_delay_s", *(f"{name}_rotation_delay_s" for name in Delays._fields[1:])),
}


class Tracking(TypedDict):
    """The tracking error, its parts and its delays, as summary.json holds them.

    `error_shares` are the shares of its parts in the mean square of the tracking error, by
    "position" and "rotation"; None if there is no such error. Those of the first four parts add
    up to 1.

    `servo_law_error` and `rest_error` are the parts of `plant_error`; None if no servo law is
    known.

    `delay_s` is the delay from reference to attained, and `sampling_delay_s` and so on are those of
    the parts. They are delays of what `delay_of` names: "position", or "rotation" where the
    reference rotates and its position does not move. `rotation_delay_s` and the like are those of
    the rotation in any case. None if the samples do not determine one. A delay from reference to
    attained is 0 if removing it would leave a larger error.

    `delay_compensated` is the tracking error, its position without the delay of the position and
    its rotation without that of the rotation; an error without a delay stays as it is. None if
    neither has a delay.
    """

    tracking_error: PoseStatistics
    sampling_error: PoseStatistics
    solver_error: PoseStatistics
    limiter_error: PoseStatistics
    plant_error: PoseStatistics
    servo_law_error: PoseStatistics | None
    rest_error: PoseStatistics | None
    error_shares: ErrorShares
    delay_of: PosePart
    delay_s: float | None
    sampling_delay_s: float | None
    solver_delay_s: float | None
    limiter_delay_s: float | None
    plant_delay_s: float | None
    servo_law_delay_s: float | None
    rest_delay_s: float | None
    rotation_delay_s: float | None
    sampling_rotation_delay_s: float | None
    solver_rotation_delay_s: float | None
    limiter_rotation_delay_s: float | None
    plant_rotation_delay_s: float | None
    servo_law_rotation_delay_s: float | None
    rest_rotation_delay_s: float | None
    delay_compensated: PoseStatistics | None


def errors_and_delays(
    t: Array,
    reference: Motion,
    attained: ArrayLike,
    *,
    budget: ErrorBudget[PoseError] | ErrorBudget[ErrorSize],
    delays: Mapping[PosePart, Delays],
    shares: ErrorShares,
) -> Tracking:
    """Return the summary of the tracking error: statistics of its parts, their shares, and delays.

    Args:
        t: Strictly increasing stamps (T,) in s, in controller time.
        reference: The continuous path, a function of the same clock; called only within the range
            of the times.
        attained: Tool poses (T, 7) at the measured joint positions.
        budget: The errors at the stamps.
        delays: Delays of position and rotation, from `pipeline_delays`.
        shares: Shares of the parts in the tracking error, from `error_shares`.
    """
    # A delay counts as 0 if removing it would leave a larger error.
    lags = {part: delays[part].total for part in POSE_PARTS}
    remaining = compensate_delays(t, reference, attained, lags, before=budget.tracking)
    known_delays = dict(delays)
    for part in POSE_PARTS:
        if lags[part] is not None:
            known_delays[part] = delays[part]._replace(total=remaining[part].delay)
    has_delay = any(lag is not None for lag in lags.values())

    only_rotates = moves(t, reference, "rotation") and not moves(t, reference, "position")
    delay_of: PosePart = "rotation" if only_rotates else "position"

    summary: dict[str, Any] = {}
    for error_part in (TRACKING_ERROR, *ERROR_PARTS):
        error: PoseError | ErrorSize | None = getattr(budget, error_part.attribute)
        summary[error_part.key] = None if error is None else error.statistics()
    summary["error_shares"] = shares
    summary["delay_of"] = delay_of
    summary.update(zip(DELAY_KEYS["position"], known_delays[delay_of], strict=True))
    summary.update(zip(DELAY_KEYS["rotation"], known_delays["rotation"], strict=True))
    summary["delay_compensated"] = summarize_compensated(remaining) if has_delay else None
    return cast(Tracking, summary)


class LeadingMotion(NamedTuple):
    """A motion of the pipeline that the next poses of the pipeline follow.

    Attributes:
        poses_at: Function from instants (K,), s, to poses (K, 7).
        poses: Poses of the motion (T, 7) at the stamps of the run.
    """

    poses_at: Motion
    poses: Array


def pipeline_delays(
    t: Array, reference: Motion, poses: Sequence[ArrayLike], predicted: ArrayLike | None = None
) -> dict[PosePart, Delays]:
    """Return the delays of the whole and of each part, of position and rotation.

    Args:
        t: Strictly increasing stamps (T,), s.
        reference: The continuous path, a function of the same clock.
        poses: The five poses (T, 7) of the pipeline at the stamps.
        predicted: Tool poses (T, 7) where the servo law brings the joints, if it is known.
    """
    reference_poses, target, solution, setpoint, attained = (
        np.asarray(values, dtype=float) for values in poses
    )

    # The reference is known between the stamps, too; the other poses are interpolated.
    reference_motion = LeadingMotion(reference, reference_poses)
    target_motion = LeadingMotion(motion_through(t, target), target)
    solution_motion = LeadingMotion(motion_through(t, solution), solution)
    setpoint_motion = LeadingMotion(motion_through(t, setpoint), setpoint)

    # Each field of `Delays` is the delay from a motion to the poses that follow it.
    steps: dict[str, tuple[LeadingMotion, Array]] = {
        "total": (reference_motion, attained),
        "sampling": (reference_motion, target),
        "solver": (target_motion, solution),
        "limiter": (solution_motion, setpoint),
        "plant": (setpoint_motion, attained),
    }
    if predicted is not None:
        predicted_poses = np.asarray(predicted, dtype=float)
        predicted_motion = LeadingMotion(motion_through(t, predicted_poses), predicted_poses)
        steps["servo_law"] = (setpoint_motion, predicted_poses)
        steps["rest"] = (predicted_motion, attained)

    delays: dict[PosePart, Delays] = {}
    for part in POSE_PARTS:
        lags = {}
        for name, (leading, follower) in steps.items():
            lags[name] = _step_delay(t, leading, follower, part)
        delays[part] = Delays(**lags)
    return delays


def _step_delay(t: Array, leading: LeadingMotion, follower: Array, part: PosePart) -> float | None:
    """Return the delay from one pose of the pipeline to the next, s; None if it is not determined.

    Args:
        t: Strictly increasing stamps (T,), s.
        leading: The motion that is followed.
        follower: The poses (T, 7) that follow it.
        part: Whether the delay of the position or of the rotation is asked for.
    """
    columns = slice(3) if part == "position" else slice(3, None)
    if np.array_equal(leading.poses[:, columns], follower[:, columns]):
        is_determined = len(t) >= MIN_SAMPLES and moves(t, leading.poses_at, part)
        return 0.0 if is_determined else None
    return delay(t, leading.poses_at, follower, part=part)


def compensate_delays(
    times: ArrayLike,
    desired: Motion,
    attained: ArrayLike,
    lags: Mapping[PosePart, float | None],
    *,
    before: PoseError | ErrorSize | None = None,
) -> dict[PosePart, Compensated]:
    """Return position and rotation errors, each without its delay: see `compensate_delay`."""
    return {
        part: compensate_delay(times, desired, attained, lag=lags[part], part=part, before=before)
        for part in POSE_PARTS
    }


def summarize_compensated(rest: Mapping[PosePart, Compensated]) -> PoseStatistics:
    """Return statistics of position and rotation errors, each without its delay."""
    return {
        "position_m": statistics(rest["position"].error),
        "rotation_rad": statistics(rest["rotation"].error),
    }


def part_delays(summary: Mapping[str, Any], part: PosePart) -> Delays:
    """Return the delays of position or rotation in a `Tracking` summary.

    A position that does not move has none.
    """
    if part == "position" and summary["delay_of"] != part:
        return Delays()
    return Delays(*(summary.get(key) for key in DELAY_KEYS[part]))


def rotation_delay_differs(summary: Mapping[str, Any]) -> bool:
    """Check whether the rotation's delay is to be reported in addition to the position's.

    Args:
        summary: A `Tracking` summary.
    """
    position_delay = part_delays(summary, "position").total
    rotation_delay = part_delays(summary, "rotation").total
    if summary["delay_of"] == "rotation" or rotation_delay is None:
        return False
    return position_delay is None or abs(rotation_delay - position_delay) > SAME_DELAY
