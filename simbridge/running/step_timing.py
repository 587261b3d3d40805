"""How long a solver takes for a step along a plan, by the host's clock."""

from __future__ import annotations

import time

from simbridge.ik.callable_solver import RECORDED_JOINTS
from simbridge.ik.solver import Solver
from simbridge.planning.plan import Plan

# Steps from which the time of a fast solver is taken, and the time that a slow one may take, s.
MAX_STEPS = 200
MAX_DURATION_S = 0.02


def measure_step_time(solver: Solver, plan: Plan) -> float | None:
    """Measure the mean time of a step along the beginning of a plan, s.

    Args:
        solver: The solver that made the plan.
        plan: The plan.

    Returns:
        None where the plan needed no solver.
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
        return _time_steps(solver, plan, steps) / steps
    except Exception:
        # A user's function with a memory may not begin again. Its plan stands.
        return None


def _time_steps(solver: Solver, plan: Plan, steps: int) -> float:
    """Return the time of the first steps of a plan, s."""
    begin = time.perf_counter()
    solver.track(plan.targets[:steps], plan.solution[0])
    return time.perf_counter() - begin
