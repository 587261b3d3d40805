"""The tracking error of a run: its parts along the pipeline, and its delays.

A sample has one stamp, the instant at which its setpoint is due, and five poses that belong to it:

    reference --sampling--> target --solver--> solution --limiter--> setpoint --plant--> attained

Each arrow is one part of the error budget. The parts add up to the tracking error: positions exactly,
`tracking.translation = sampling.translation + ... + plant.translation`, and rotations by composition,
`R_tracking = R_sampling R_solver R_limiter R_plant`. The Rodrigues vectors and the angles do not add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict

from numpy.typing import ArrayLike

from simbridge.evaluation.metrics.delays import (
    MAX_DELAY,
    Compensated,
    Motion,
    PosePart,
    delay,
    delay_compensated,
    moves,
    sampled,
)
from simbridge.evaluation.metrics.pose_errors import PoseError, PoseStatistics, statistics
from simbridge.evaluation.metrics.samples import rows, stamps

POSE_PARTS: tuple[PosePart, PosePart] = ("position", "rotation")

PartKey = Literal["sampling_error", "solver_error", "limiter_error", "plant_error", "tracking_error"]

SAME_DELAY = 1e-3
"""Delays in s of position and rotation that differ by less are reported as one."""

_KEYS = {
    "position": ("delay_s", "solver_delay_s", "plant_delay_s"),
    "rotation": ("rotation_delay_s", "solver_rotation_delay_s", "plant_rotation_delay_s"),
}


@dataclass(frozen=True)
class ErrorPart:
    """A part of the error budget, or the tracking error as a whole.

    Attributes:
        name: Its attribute in `ErrorBudget`.
        key: Its key in summary.json.
        source: What causes it, as a noun phrase.
        meaning: Which two poses it compares, and what their difference is.
    """

    name: str
    key: PartKey
    source: str
    meaning: str

    @property
    def title(self) -> str:
        """Its name at the start of a table row."""
        return self.name.capitalize()


ERROR_PARTS = (
    ErrorPart(
        "sampling",
        "sampling_error",
        "sampling (a target held between two samples)",
        "Reference to target: the cost of holding the last sample of a slow source.",
    ),
    ErrorPart(
        "solver",
        "solver_error",
        "the solver (inverse kinematics that has not converged yet)",
        "Target to solution: what the inverse kinematics has not reached yet.",
    ),
    ErrorPart(
        "limiter",
        "limiter_error",
        "the limiter (setpoints changed to respect velocity and acceleration limits)",
        "Solution to setpoint: changes made to respect velocity and acceleration limits.",
    ),
    ErrorPart(
        "plant",
        "plant_error",
        "the plant (the controller and the arm)",
        "Setpoint to attained: the controller and the arm.",
    ),
)
"""The four parts of the tracking error in pipeline order: the one list of their names, keys and meanings."""

TRACKING_ERROR = ErrorPart(
    "tracking", "tracking_error", "all parts", "Reference to attained: the whole error. The parts add up as vectors."
)


@dataclass(frozen=True)
class ErrorBudget:
    """The tracking error and its four parts, over the same samples. `ERROR_PARTS` says what each of them is."""

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
        solution: Tool poses at the solver's joint positions.
        setpoint: Tool poses at the joint positions that were sent.
        attained: Tool poses at the measured joint positions.

    Raises:
        UnusableSamples: If the five differ in length or a value is not finite.
    """
    first = rows("reference poses", reference, 7)
    given = {"target": target, "solution": solution, "setpoint": setpoint, "attained": attained}
    poses = [first, *(rows(f"{name} poses", values, 7, len(first)) for name, values in given.items())]
    return ErrorBudget(*map(PoseError.between, [*poses[:-1], first], [*poses[1:], poses[-1]]))


class Delays(NamedTuple):
    """Delays in s of the position or of the rotation; None where they cannot be determined.

    Attributes:
        total: Reference to attained.
        solver: Target to setpoint.
        plant: Setpoint to attained.
    """

    total: float | None
    solver: float | None
    plant: float | None


class Tracking(TypedDict):
    """The tracking error, its parts and its delays, as summary.json holds them.

    `delay_s` (reference to attained), `solver_delay_s` (target to setpoint) and `plant_delay_s` (setpoint to attained)
    are delays of what `delay_of` names: "position", or "rotation" where the reference rotates and its position does not
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
    delay_of: PosePart
    delay_s: float | None
    solver_delay_s: float | None
    plant_delay_s: float | None
    rotation_delay_s: float | None
    solver_rotation_delay_s: float | None
    plant_rotation_delay_s: float | None
    delay_compensated: PoseStatistics | None


def tracking_summary(
    times: ArrayLike,
    reference: Motion,
    target: ArrayLike,
    solution: ArrayLike,
    setpoint: ArrayLike,
    attained: ArrayLike,
    *,
    max_delay: float = MAX_DELAY,
    budget: ErrorBudget | None = None,
) -> Tracking:
    """Statistics of the error budget, and the delays.

    Args:
        times: Strictly increasing stamps (T,) in s, in controller time.
        reference: The continuous path, a function of the same clock; called only within the range of the times.
        target: Poses (T, 7) that the solver was given, at the stamps.
        solution: Tool poses (T, 7) at the solver's joint positions.
        setpoint: Tool poses (T, 7) at the joint positions that were sent.
        attained: Tool poses (T, 7) at the measured joint positions.
        max_delay: The longest delay to look for, in either direction, s.
        budget: The error budget of these poses, if it is known already.

    Raises:
        UnusableSamples: If the arrays do not belong together or a value is not finite.
    """
    t = stamps("times", times)
    budget = budget or error_budget(reference(t), target, solution, setpoint, attained)
    steps = ((reference, attained), (sampled(t, target), setpoint), (sampled(t, setpoint), attained))
    found = {part: Delays(*(delay(t, *step, max_delay=max_delay, part=part) for step in steps)) for part in POSE_PARTS}
    totals = {part: found[part].total for part in POSE_PARTS}
    rest = delays_compensated(t, reference, attained, totals, before=budget.tracking)
    known = [part for part in POSE_PARTS if found[part].total is not None]
    found |= {part: found[part]._replace(total=rest[part].delay) for part in known}
    turns_only = moves(t, reference, "rotation") and not moves(t, reference, "position")
    named, rotation = found["rotation" if turns_only else "position"], found["rotation"]
    return {
        "tracking_error": budget.tracking.statistics(),
        "sampling_error": budget.sampling.statistics(),
        "solver_error": budget.solver.statistics(),
        "limiter_error": budget.limiter.statistics(),
        "plant_error": budget.plant.statistics(),
        "delay_of": "rotation" if turns_only else "position",
        "delay_s": named.total,
        "solver_delay_s": named.solver,
        "plant_delay_s": named.plant,
        "rotation_delay_s": rotation.total,
        "solver_rotation_delay_s": rotation.solver,
        "plant_rotation_delay_s": rotation.plant,
        "delay_compensated": compensated_statistics(rest) if known else None,
    }


def delays_compensated(
    times: ArrayLike,
    desired: Motion,
    attained: ArrayLike,
    lags: Mapping[PosePart, float | None],
    *,
    before: PoseError | None = None,
) -> dict[PosePart, Compensated]:
    """Position and rotation errors, each without its own delay: see `delay_compensated`."""
    return {part: delay_compensated(times, desired, attained, lags[part], part, before=before) for part in POSE_PARTS}


def compensated_statistics(rest: Mapping[PosePart, Compensated]) -> PoseStatistics:
    """Statistics of position and rotation errors, each without its own delay."""
    return {"position_m": statistics(rest["position"].error), "rotation_rad": statistics(rest["rotation"].error)}


def part_delays(summary: Mapping[str, Any], part: PosePart) -> Delays:
    """The delays of position or rotation in a `Tracking` summary; a position that does not move has none."""
    if part == "position" and summary["delay_of"] != part:
        return Delays(None, None, None)
    return Delays(*(summary[key] for key in _KEYS[part]))


def rotation_delay_differs(summary: Mapping[str, Any]) -> bool:
    """Whether the rotation's delay in a `Tracking` summary is to be reported in addition to the position's."""
    moved, turned = (part_delays(summary, part).total for part in POSE_PARTS)
    if summary["delay_of"] == "rotation" or turned is None:
        return False
    return moved is None or abs(turned - moved) > SAME_DELAY
