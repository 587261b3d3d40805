"""The parts of summary.json: error budget and delays; the path, time aside; smoothness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.metrics.budget import ErrorBudget, PoseError, Statistics, error_budget, statistics
from simbridge.metrics.delays import LONGEST, Motion, Part, delay, delay_compensated, sampled
from simbridge.metrics.effort import evenly
from simbridge.metrics.path import ContourError
from simbridge.metrics.samples import rows, stamps
from simbridge.metrics.smoothness import CUTOFF, ldlj, sparc
from simbridge.metrics.trajectory_errors import TrajectoryError, relative_pose_error

Array = NDArray[np.float64]

PARTS: tuple[Part, Part] = ("position", "rotation")

STILL = 1e-3
"""m/s or rad/s: what never gets faster does not move, and the smoothness of its noise means nothing."""

SAME_DELAY = 1e-3
"""Seconds: delays of position and rotation that differ by less are told as one."""

RELATIVE_SPAN = 1.0
"""Seconds over which the relative pose error is told; over one period it would be that of the sensors' last digit."""


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
        setpoint), `plant_delay_s` (setpoint to attained): of the position, or of the rotation where the position does
        not tell one; None where neither does. `rotation_delay_s`: reference to attained, of the rotation.
        `delay_compensated`: the tracking error, its position without `delay_s` and its rotation without
        `rotation_delay_s`; None without any delay. A delay without which more would be left is 0.

    Raises:
        UnusableSamples: If the arrays do not belong together or a value is not finite.
    """
    t = stamps("times", times)
    budget = budget or error_budget(reference(t), target, solution, setpoint, attained)
    (position, still_off), (rotation, still_turned) = (
        _forgiven(t, reference, attained, budget.tracking, part, longest) for part in PARTS
    )

    def told(desired: Motion, followed: ArrayLike) -> float | None:
        found = delay(t, desired, followed, longest=longest, part="position")
        return delay(t, desired, followed, longest=longest, part="rotation") if found is None else found

    total = rotation if position is None else position
    return {
        "tracking_error": budget.tracking.statistics(),
        "sampling_error": budget.sampling.statistics(),
        "solver_error": budget.solver.statistics(),
        "limiter_error": budget.limiter.statistics(),
        "plant_error": budget.plant.statistics(),
        "delay_s": total,
        "rotation_delay_s": rotation,
        "solver_delay_s": told(sampled(t, target), setpoint),
        "plant_delay_s": told(sampled(t, setpoint), attained),
        "delay_compensated": None if total is None else {"position_m": still_off, "rotation_rad": still_turned},
    }


def _forgiven(
    times: Array, reference: Motion, attained: ArrayLike, tracking: PoseError, part: Part, longest: float
) -> tuple[float | None, Statistics]:
    """The delay of a part of the motion, and the statistics of what is left of its error without it."""
    name = "rotation_rad" if part == "rotation" else "position_m"
    found, before = delay(times, reference, attained, longest=longest, part=part), tracking.statistics()[name]
    if found is None:
        return None, before
    after = delay_compensated(times, reference, attained, found).statistics()[name]
    # A shift leaves samples out at an end, and those may be the good ones.
    return (found, after) if after["rms"] <= before["rms"] else (0.0, before)


def turns_otherwise(summary: Mapping[str, Any]) -> bool:
    """Whether, by what `tracking_summary` found, the rotation's delay is to be told beside the position's."""
    moved, turned = summary["delay_s"], summary["rotation_delay_s"]
    return moved is not None and turned is not None and abs(turned - moved) > SAME_DELAY


def pose_error_summary(
    period: float, reference: ArrayLike, attained: ArrayLike, *, tracking: PoseError | None = None
) -> dict[str, Any]:
    """`absolute_pose_error` and `relative_pose_error` as evo defines them: see `simbridge.metrics.trajectory_errors`.

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
