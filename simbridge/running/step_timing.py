"""Measures how long a solver takes for a step along a plan, by the host's clock."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from simbridge.ik.callable_solver import RECORDED_JOINTS, CallableSolver
from simbridge.ik.faults import is_custom
from simbridge.ik.solver import Solver
from simbridge.planning.plan import Plan
from simbridge.robot.pose import Array
from simbridge.text import milliseconds

# Steps from which the time of a fast solver is taken, and the time that a slow one may take, s.
MAX_STEPS = 200
MAX_DURATION_S = 0.02
# Time for which the steps of a user's solver, or of one that is slow, are measured singly, s.
MAX_SINGLE_DURATION_S = 0.2


@dataclass(frozen=True)
class StepTimes:
    """Times of a solver's steps on this computer, s.

    Attributes:
        mean: Mean of many steps in one call.
        median: Median of single steps; None if they were not measured.
        p99: 99th percentile of single steps; None if they were not measured.
        count: Number of single steps.
    """

    mean: float
    median: float | None = None
    p99: float | None = None
    count: int = 0

    def note(self, name: str, period: float) -> str:
        """Return the sentence that steps take longer than the control period; "" if they do not.

        Args:
            name: Name of the solver.
            period: Control period, s.
        """
        if self.median is None or self.p99 is None or self.p99 <= period:
            return ""
        often = "takes" if self.median > period else "sometimes takes"
        return (
            f"{name} {often} longer than the control period on this computer: "
            f"{milliseconds(self.median)} ms median, {milliseconds(self.p99)} ms p99 of "
            f"{self.count} steps; the period is {1e3 * period:g} ms. A run is solved in "
            "advance, but a live session with it falls behind."
        )


def measure_step_times(solver: Solver, plan: Plan) -> StepTimes | None:
    """Measure the time of a step along the beginning of a plan.

    Args:
        solver: The solver that made the plan.
        plan: The plan.

    Returns:
        None if the plan needed no solver, or where it cannot be run again.
    """
    if solver.name == RECORDED_JOINTS:
        return None

    targets = plan.targets
    start = plan.solution[0]
    try:
        # The first call may compile, or load what was compiled.
        solver.track(targets[:1], start)
        first_duration = _time_steps(solver, plan, 1)
        affordable = int(MAX_DURATION_S / max(first_duration, 1e-9))
        steps = max(1, min(affordable, MAX_STEPS, len(targets)))
        mean = _time_steps(solver, plan, steps) / steps

        is_custom_solver = isinstance(solver, CallableSolver) or is_custom(solver)
        if not is_custom_solver and mean <= plan.period:
            return StepTimes(mean)
        singles = _time_single_steps(solver, plan)
    except Exception:
        # A user's function that keeps a state may fail when it is run again from the start. The
        # plan is valid all the same: only the times are missing.
        return None
    return StepTimes(
        mean, float(np.median(singles)), float(np.percentile(singles, 99)), len(singles)
    )


def _time_steps(solver: Solver, plan: Plan, steps: int) -> float:
    """Return the time of the first steps of a plan together, s."""
    begin = time.perf_counter()
    solver.track(plan.targets[:steps], plan.solution[0])
    return time.perf_counter() - begin


def _time_single_steps(solver: Solver, plan: Plan) -> Array:
    """Return the time of each of the first steps of a plan, s."""
    durations: list[float] = []
    for target, q in zip(plan.targets[1 : MAX_STEPS + 1], plan.solution, strict=False):
        begin = time.perf_counter()
        solver.track(target[None], q)
        durations.append(time.perf_counter() - begin)
        if sum(durations) > MAX_SINGLE_DURATION_S:
            break
    return np.array(durations)
