"""The tracking error of a run: its parts along the pipeline, and its delays.

A sample has one stamp, the instant at which its setpoint is due, and five poses that belong to it:

    reference --sampling--> target --solver--> solution --limiter--> setpoint --plant--> attained

Each arrow is one part of the error budget. The parts add up to the tracking error: positions exactly,
`tracking.translation = sampling.translation + ... + plant.translation`, and rotations by composition,
`R_tracking = R_sampling R_solver R_limiter R_plant`. The Rodrigues vectors and the angles do not add.

Where the servo law of the controller is known, it predicts from the commands where the arm should be, and the plant's
part is split in the same way:

    setpoint --servo law--> predicted --rest--> attained

Each part has its delay; delays of the parts add up to the whole as far as the motion determines them.
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
    delay,
    delay_compensated,
    moves,
    sampled,
)
from simbridge.evaluation.metrics.samples import (
    ErrorSize,
    PoseError,
    PoseStatistics,
    rows,
    statistics,
)
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

# Smaller errors, in m and rad, are rounding.
NOTHING = 1e-12
# Delays in s of position and rotation that differ by less are reported as one.
SAME_DELAY = 1e-3


@dataclass(frozen=True)
class ErrorPart:
    """A part of the error budget, or the tracking error as a whole."""

    name: str  # as shown; its attribute in `ErrorBudget` and `Delays` has underscores instead of spaces
    key: PartKey  # its key in summary.json
    meaning: str  # which two poses it compares, and what their difference is
    of: str = ""  # the name of the part that it is a part of; "" for the tracking error

    @property
    def attribute(self) -> str:
        """Its attribute in `ErrorBudget` and `Delays`."""
        return self.name.replace(" ", "_")

    @property
    def title(self) -> str:
        """Its name at the start of a table row."""
        return f"of which {self.name}" if self.of else self.name.capitalize()


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
        of="plant",
    ),
    ErrorPart(
        "rest",
        "rest_error",
        "Prediction to attained: joint servo, calibration and load; on a controller also the link's delay.",
        of="plant",
    ),
)
"""The parts of the tracking error in pipeline order: the one list of their names, keys and meanings.

The first four add up to it. The parts of the plant's part are null where no servo law is known."""

TRACKING_ERROR = ErrorPart(
    "tracking",
    "tracking_error",
    "Reference to attained: the whole error. The parts add up as vectors.",
)


def known_parts(summary: Mapping[str, Any]) -> list[ErrorPart]:
    """The parts of the error that a `Tracking` summary has: those of the plant's part only where the law is known."""
    return [part for part in ERROR_PARTS if summary.get(part.key) is not None]


Error = TypeVar("Error", bound=PoseError | ErrorSize)
ErrorShares: TypeAlias = dict[PosePart, dict[str, float] | None]


@dataclass(frozen=True)
class ErrorBudget(Generic[Error]):
    """The tracking error and its parts, over the same samples. `ERROR_PARTS` says what each of them is."""

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
    setpoint: ArrayLike,
    attained: ArrayLike,
    predicted: ArrayLike | None = None,
) -> ErrorBudget[PoseError]:
    """The error budget of poses (T, 7) that belong to the same T stamps.

    Args:
        reference: The continuous path at the stamps.
        target: What the solver was given.
        solution, setpoint, attained: Tool poses at the solver's, the wanted and the measured joint positions.
        predicted: Tool poses where the servo law brings the joints, if it is known.
    """
    first = rows("reference poses", reference, 7)
    given = {"target": target, "solution": solution, "setpoint": setpoint, "attained": attained}
    poses = [
        first,
        *(rows(f"{name} poses", values, 7, len(first)) for name, values in given.items()),
    ]
    parts = [*map(PoseError.between, [*poses[:-1], first], [*poses[1:], poses[-1]])]
    if predicted is not None:
        middle = rows("predicted poses", predicted, 7, len(first))
        parts += [PoseError.between(poses[-2], middle), PoseError.between(middle, poses[-1])]
    return ErrorBudget(*parts)


def error_shares(budget: ErrorBudget[PoseError]) -> ErrorShares:
    """The share of each part in the mean square of the tracking error: its mean projection on that error.

    A part that is opposite to the whole has a negative share. Shares of the rotation hold for small angles.
    """
    found: ErrorShares = {}
    for kind, field in zip(POSE_PARTS, ("translation", "rotation"), strict=True):
        whole = getattr(budget.tracking, field)
        square = float(np.sum(whole**2))
        parts = {part.attribute: getattr(budget, part.attribute) for part in ERROR_PARTS}
        shares = {
            name: float(np.sum(getattr(part, field) * whole))
            for name, part in parts.items()
            if part is not None
        }
        least = len(whole) * NOTHING**2
        found[kind] = (
            {name: each / square for name, each in shares.items()} if square > least else None
        )
    return found


class Delays(NamedTuple):
    """Delays in s of the position or of the rotation; None where they cannot be determined.

    Those of the parts are from one pose of the pipeline to the next.
    """

    total: float | None = None  # reference to attained
    sampling: float | None = None
    solver: float | None = None
    limiter: float | None = None
    plant: float | None = None
    servo_law: float | None = None
    rest: float | None = None


DELAY_KEYS: dict[PosePart, tuple[str, ...]] = {
    "position": ("delay_s", *(f"{name}_delay_s" for name in Delays._fields[1:])),
    "rotation": ("rotation_delay_s", *(f"{name}_rotation_delay_s" for name in Delays._fields[1:])),
}
"""The keys of summary.json, in the order of the fields of `Delays`."""


class Tracking(TypedDict):
    """The tracking error, its parts and its delays, as summary.json holds them.

    `error_shares` are the shares of its parts in the mean square of the tracking error, by "position" and "rotation";
    None where there is no such error. Those of the first four parts add up to 1.

    `servo_law_error` and `rest_error` are the parts of `plant_error`; None where no servo law is known.

    `delay_s` is the delay from reference to attained, and `sampling_delay_s` and so on are those of the parts. They are
    delays of what `delay_of` names: "position", or "rotation" where the reference rotates and its position does not
    move. `rotation_delay_s` and the like are those of the rotation in any case. None where the samples do not determine
    one. A delay from reference to attained is 0 where removing it would leave a larger error.

    `delay_compensated` is the tracking error, its position without the delay of the position and its rotation without
    that of the rotation; an error without a delay stays as it is. None if neither has a delay.
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
    budget: ErrorBudget[PoseError] | ErrorBudget[ErrorSize],
    delays: Mapping[PosePart, Delays],
    shares: ErrorShares,
) -> Tracking:
    """Statistics of the error budget of some stamps, and the delays, as `pipeline_delays` and `error_shares` find them.

    Args:
        t: Strictly increasing stamps (T,) in s, in controller time.
        reference: The continuous path, a function of the same clock; called only within the range of the times.
        attained: Tool poses (T, 7) at the measured joint positions.
    """
    found = dict(delays)
    totals = {part: found[part].total for part in POSE_PARTS}
    rest = delays_compensated(t, reference, attained, totals, before=budget.tracking)
    known = [part for part in POSE_PARTS if found[part].total is not None]
    found |= {part: found[part]._replace(total=rest[part].delay) for part in known}
    turns_only = moves(t, reference, "rotation") and not moves(t, reference, "position")
    named, rotation = found["rotation" if turns_only else "position"], found["rotation"]
    errors: dict[str, PoseError | ErrorSize | None] = {
        part.key: getattr(budget, part.attribute) for part in (TRACKING_ERROR, *ERROR_PARTS)
    }
    summary: dict[str, Any] = {
        **{key: None if error is None else error.statistics() for key, error in errors.items()},
        "error_shares": shares,
        "delay_of": "rotation" if turns_only else "position",
        **dict(zip(DELAY_KEYS["position"], named, strict=True)),
        **dict(zip(DELAY_KEYS["rotation"], rotation, strict=True)),
        "delay_compensated": compensated_statistics(rest) if known else None,
    }
    return cast(Tracking, summary)


def pipeline_delays(
    t: Array, reference: Motion, poses: Sequence[ArrayLike], predicted: ArrayLike | None = None
) -> dict[PosePart, Delays]:
    """The delays of the whole and of each part; the poses (T, 7) are the five of the pipeline at the stamps (T,)."""
    first, target, solution, setpoint, attained = (np.asarray(each, dtype=float) for each in poses)
    steps: dict[str, tuple[Array, Array]] = {
        "total": (first, attained),
        "sampling": (first, target),
        "solver": (target, solution),
        "limiter": (solution, setpoint),
        "plant": (setpoint, attained),
    }
    if predicted is not None:
        middle = np.asarray(predicted, dtype=float)
        steps |= {"servo_law": (setpoint, middle), "rest": (middle, attained)}

    def between(desired: Array, follower: Array, part: PosePart) -> float | None:
        columns = slice(3) if part == "position" else slice(3, None)
        motion = reference if desired is first else sampled(t, desired)
        if np.array_equal(desired[:, columns], follower[:, columns]):
            return 0.0 if len(t) >= MIN_SAMPLES and moves(t, motion, part) else None
        return delay(t, motion, follower, part=part)

    found: dict[PosePart, Delays] = {
        part: Delays(
            *(between(*steps[name], part) if name in steps else None for name in Delays._fields)
        )
        for part in POSE_PARTS
    }
    return found


def delays_compensated(
    times: ArrayLike,
    desired: Motion,
    attained: ArrayLike,
    lags: Mapping[PosePart, float | None],
    *,
    before: PoseError | ErrorSize | None = None,
) -> dict[PosePart, Compensated]:
    """Position and rotation errors, each without its own delay: see `delay_compensated`."""
    return {
        part: delay_compensated(times, desired, attained, lags[part], part, before=before)
        for part in POSE_PARTS
    }


def compensated_statistics(rest: Mapping[PosePart, Compensated]) -> PoseStatistics:
    """Statistics of position and rotation errors, each without its own delay."""
    return {
        "position_m": statistics(rest["position"].error),
        "rotation_rad": statistics(rest["rotation"].error),
    }


def part_delays(summary: Mapping[str, Any], part: PosePart) -> Delays:
    """The delays of position or rotation in a `Tracking` summary; a position that does not move has none."""
    if part == "position" and summary["delay_of"] != part:
        return Delays()
    return Delays(*(summary.get(key) for key in DELAY_KEYS[part]))


def rotation_delay_differs(summary: Mapping[str, Any]) -> bool:
    """Whether the rotation's delay in a `Tracking` summary is to be reported in addition to the position's."""
    moved, turned = (part_delays(summary, part).total for part in POSE_PARTS)
    if summary["delay_of"] == "rotation" or turned is None:
        return False
    return moved is None or abs(turned - moved) > SAME_DELAY
