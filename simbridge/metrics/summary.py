"""The tracking part of summary.json: the error budget, the three delays, and the error without its delay."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from simbridge.metrics.budget import error_budget
from simbridge.metrics.delays import LONGEST, Motion, delay, delay_compensated, sampled
from simbridge.metrics.samples import stamps


def tracking_summary(
    times: ArrayLike,
    reference: Motion,
    target: ArrayLike,
    solution: ArrayLike,
    setpoint: ArrayLike,
    attained: ArrayLike,
    *,
    longest: float = LONGEST,
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

    Returns:
        `tracking_error`, `sampling_error`, `solver_error`, `limiter_error`, `plant_error`: each `{position_m,
        rotation_rad}` of `{rms, mean, p95, max}`. `delay_s` (reference to attained), `solver_delay_s` (target to
        setpoint), `plant_delay_s` (setpoint to attained): None where the motion does not tell one.
        `delay_compensated`: the tracking error without `delay_s`, None without a delay.

    Raises:
        UnusableSamples: If the arrays do not belong together or a value is not finite.
    """
    t = stamps("times", times)
    budget = error_budget(reference(t), target, solution, setpoint, attained)
    total = delay(t, reference, attained, longest=longest)
    return {
        "tracking_error": budget.tracking.statistics(),
        "sampling_error": budget.sampling.statistics(),
        "solver_error": budget.solver.statistics(),
        "limiter_error": budget.limiter.statistics(),
        "plant_error": budget.plant.statistics(),
        "delay_s": total,
        "solver_delay_s": delay(t, sampled(t, target), setpoint, longest=longest),
        "plant_delay_s": delay(t, sampled(t, setpoint), attained, longest=longest),
        "delay_compensated": None if total is None else delay_compensated(t, reference, attained, total).statistics(),
    }
