"""The parts of summary.json: error budget and delays; the path, time aside; smoothness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simbridge.evaluation.metrics.delays import (
    LONGEST,
    Compensated,
    Motion,
    PosePart,
    delay,
    delay_compensated,
    moves,
    sampled,
)
from simbridge.evaluation.metrics.effort import evenly
from simbridge.evaluation.metrics.path import ContourError
from simbridge.evaluation.metrics.pose_errors import (
    ErrorBudget,
    PoseError,
    Statistics,
    TrajectoryError,
    error_budget,
    relative_pose_error,
    statistics,
)
from simbridge.evaluation.metrics.samples import rows, stamps
from simbridge.evaluation.metrics.smoothness import CUTOFF, ldlj, sparc
from simbridge.robot.pose import Array

POSE_PARTS: tuple[PosePart, PosePart] = ("position", "rotation")

_UNITS = {"position": "position_m", "rotation": "rotation_rad"}

_KEYS = {
    "position": ("delay_s", "solver_delay_s", "plant_delay_s"),
    "rotation": ("rotation_delay_s", "solver_rotation_delay_s", "plant_rotation_delay_s"),
}

STILL = 1e-3
"""m/s or rad/s: what never gets faster does not move, and the smoothness of its noise means nothing."""

SAME_DELAY = 1e-3
"""Seconds: delays of position and rotation that differ by less are told as one."""

RELATIVE_SPAN = 1.0
"""Seconds over which the relative pose error is told; over one period it would be that of the sensors' last digit."""


class Delays(NamedTuple):
    """Delays in s of the position or of the rotation; None where the samples do not tell one.

    Attributes:
        total: Reference to attained.
        solver: Target to setpoint.
        plant: Setpoint to attained.
    """

    total: float | None
    solver: float | None
    plant: float | None


def tracking_summary(
    times: ArrayLike,
    reference: Motion,
    target: ArrayLike,
    solution: ArrayLike,
    setpoint: ArrayLike,
    attained: ArrayLike,
    *,
    longest: float = LONGEST,
    budget: ErrorBudget | None = None,
) -> dict[str, Any]:
    """What summary.json says about tracking, ready to be written as JSON.

    Args:
        times: Strictly increasing stamps (T,) in s, in controller time.
        reference: The continuous path, a function of the same clock; asked only within the range of the times.
        target: Poses (T, 7) that the solver was given, at the stamps.
        solution: Poses (T, 7) of the solver's joints.
        setpoint: Poses (T, 7) of the joints that were sent.
        attained: Poses (T, 7) of the joints that were measured.
        longest: The longest delay, either way, to look for, in s.
        budget: The error budget of just these poses, where it is known already.

    Returns:
        `tracking_error`, `sampling_error`, `solver_error`, `limiter_error`, `plant_error`: each `{position_m,
        rotation_rad}` of `{rms, mean, p95, max}`. `delay_s` (reference to attained), `solver_delay_s` (target to
        setpoint), `plant_delay_s` (setpoint to attained), all three of the part that `delay_of` names: "position", or
        "rotation" where the reference turns and its position does not move. `rotation_delay_s`,
        `solver_rotation_delay_s`, `plant_rotation_delay_s`: those of the rotation in any case. None where the samples
        do not tell one. `delay_compensated`: the tracking error, its position without the delay of the position and
        its rotation without that of the rotation, each as it is where it has none; None where neither has one. A delay
        of reference to attained without which more would be left is 0.

    Raises:
        UnusableSamples: If the arrays do not belong together or a value is not finite.
    """
    t = stamps("times", times)
    budget = budget or error_budget(reference(t), target, solution, setpoint, attained)
    steps = ((reference, attained), (sampled(t, target), setpoint), (sampled(t, setpoint), attained))
    found = {part: Delays(*(delay(t, *step, longest=longest, part=part) for step in steps)) for part in POSE_PARTS}
    rest = {
        part: delay_compensated(t, reference, attained, found[part].total, part, before=budget.tracking)
        for part in POSE_PARTS
    }
    known = [part for part in POSE_PARTS if found[part].total is not None]
    found |= {part: found[part]._replace(total=rest[part].delay) for part in known}
    turns_only = moves(t, reference, "rotation") and not moves(t, reference, "position")
    of: PosePart = "rotation" if turns_only else "position"
    return {
        "tracking_error": budget.tracking.statistics(),
        "sampling_error": budget.sampling.statistics(),
        "solver_error": budget.solver.statistics(),
        "limiter_error": budget.limiter.statistics(),
        "plant_error": budget.plant.statistics(),
        "delay_of": of,
        **dict(zip(_KEYS["position"], found[of], strict=True)),
        **dict(zip(_KEYS["rotation"], found["rotation"], strict=True)),
        "delay_compensated": compensated_statistics(rest) if known else None,
    }


def compensated_statistics(rest: Mapping[PosePart, Compensated]) -> dict[str, Statistics]:
    """`{position_m, rotation_rad}` of what is left without a delay of each, as `delay_compensated` returns them."""
    return {_UNITS[part]: statistics(left.error) for part, left in rest.items()}


def part_delays(summary: Mapping[str, Any], part: PosePart) -> Delays:
    """Of what `tracking_summary` found, the delays of one part; a position that does not move has none."""
    if part == "position" and summary["delay_of"] != part:
        return Delays(None, None, None)
    return Delays(*(summary[key] for key in _KEYS[part]))


def turns_otherwise(summary: Mapping[str, Any]) -> bool:
    """Whether, by what `tracking_summary` found, the rotation's delay is to be told beside the position's."""
    moved, turned = (part_delays(summary, part).total for part in POSE_PARTS)
    if summary["delay_of"] == "rotation" or turned is None:
        return False
    return moved is None or abs(turned - moved) > SAME_DELAY


def pose_error_summary(
    period: float, reference: ArrayLike, attained: ArrayLike, *, tracking: PoseError | None = None
) -> dict[str, Any]:
    """`absolute_pose_error` and `relative_pose_error` as evo defines them: see `pose_errors`.

    Args:
        period: From one pose to the next, s.
        reference, attained: Poses (T, 7) that belong to the same instants.
        tracking: Their difference, where it is known already.

    Returns:
        Each `{position_m, rotation_rad}` of `{rmse, mean, median, std, min, max, sse}`. The relative one, of all pairs
        of poses that are `delta_samples` apart, also tells these and the time `delta_s` they take: RELATIVE_SPAN, or
        half of a shorter motion. None of a single pose.

    Raises:
        UnusableSamples: The arrays do not belong together or a value is not finite.
    """
    tracking = tracking or PoseError.between(reference, attained)
    absolute = TrajectoryError(tracking.distance, tracking.angle)
    count = len(absolute.translation)
    relative = None
    if count > 1:
        delta = max(1, min(round(RELATIVE_SPAN / period), count // 2))
        error = relative_pose_error(reference, attained, delta, all_pairs=True)
        relative = {"delta_samples": delta, "delta_s": delta * period, **error.statistics()}
    return {"absolute_pose_error": absolute.statistics(), "relative_pose_error": relative}


def path_summary(contour: ContourError) -> dict[str, Any]:
    """`contour_error` and `along_path_lag` of at least one sample.

    Returns:
        `contour_error`: `{position_m: {rms, mean, p95, max}}`. `along_path_lag`: `{length_m, time_s}` of `{rms, mean,
        min, max}`, signed, positive behind; `time_s` is None where the reference never moves.
    """
    told = contour.lag_time[np.isfinite(contour.lag_time)]
    return {
        "contour_error": {"position_m": statistics(contour.distance)},
        "along_path_lag": {"length_m": _signed(contour.lag), "time_s": _signed(told) if len(told) else None},
    }


def smoothness_summary(times: ArrayLike, positions: ArrayLike, velocity: ArrayLike) -> dict[str, Any]:
    """SPARC and LDLJ of the tool's and of every joint's speed.

    Args:
        times: Strictly increasing stamps (T,) in s.
        positions: Attained positions of the tool (T, 3), m; its speed is their central difference.
        velocity: Measured joint velocities (T, n).

    Returns:
        `{tool: {sparc, ldlj}, joints: {sparc: [n], ldlj: [n]}}`; None where a motion does not tell one.

    Raises:
        UnusableSamples: The arrays do not belong together or a value is not finite.
    """
    t = stamps("times", times)
    x = rows("attained positions", positions, 3, len(t))
    v = np.asarray(velocity, dtype=float)
    if len(t) < 3:
        told: list[tuple[float | None, float | None]] = [(None, None)] * (1 + v.shape[1])
    else:
        period, even = evenly(t, np.column_stack([x, v]))
        tool = np.linalg.norm(np.gradient(even[:, :3], period, axis=0), axis=1)
        told = [_smoothness(velocity, 1.0 / period) for velocity in (tool, *even[:, 3:].T)]
    return {
        "tool": {"sparc": told[0][0], "ldlj": told[0][1]},
        "joints": {"sparc": [joint[0] for joint in told[1:]], "ldlj": [joint[1] for joint in told[1:]]},
    }


def _smoothness(velocity: Array, rate: float) -> tuple[float | None, float | None]:
    speed = np.abs(velocity)
    if speed.max() < STILL:
        return None, None
    # The jerk is of the signed velocity: the speed of a joint that turns back has a corner, whose jerk is the rate's.
    return sparc(speed, rate, cutoff=min(CUTOFF, 0.5 * rate)), ldlj(velocity, rate)


def _signed(values: Array) -> dict[str, float]:
    return {
        "rms": float(np.sqrt(np.mean(values**2))),
        "mean": float(values.mean()),
        "min": float(values.min()),
        "max": float(values.max()),
    }
