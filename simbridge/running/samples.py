"""Rows of the log, from a plan and the states of the arm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.planning.plan import Plan
from simbridge.recording.log import Sample
from simbridge.robot.pose import Array


def log_facts(settings: dict[str, Any]) -> dict[str, str]:
    """The metadata of a log, which identifies the run without its directory."""
    return {
        "scenario": settings["scenario"]["name"],
        "robot": settings["robot"]["name"],
        "solver": settings["solver"]["name"],
        "backend": settings["backend"]["name"],
        "simbridge": settings["versions"]["simbridge"],
    }


class Samples:
    """Makes the rows of one run's log: desired values from the plan, measured values from the states.

    Args:
        plan: The plan that is executed. Its first setpoint is due at stamp 0.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._first_tick: int | None = None

    def of(self, state: ArmState) -> Sample:
        """The row for a state; earlier states than the first one given may have been missed."""
        tick = round(state.timestamp / self._plan.period)
        if self._first_tick is None:
            self._first_tick = tick - state.sequence
        # The controller's time, not the number of setpoints: they differ after a late setpoint.
        return _sample(self._plan, state, (tick - self._first_tick) * self._plan.period)


def _sample(plan: Plan, state: ArmState, stamp: float) -> Sample:
    position = state.plan_time / plan.period
    # Between two samples of the plan if a controller scales the speed; deviations by rounding are removed.
    at = round(position) if abs(position - round(position)) < 1e-9 else position
    below, above = math.floor(at), math.ceil(at)
    part = at - below
    time = (1.0 - part) * plan.trajectory_times[below] + part * plan.trajectory_times[above]
    return Sample(
        index=state.sequence,
        stamp=stamp,
        plan_time=float(time),
        target=plan.targets[below] if not part else plan.target(np.array([time]))[0],
        solution=_between(plan.solution, below, above, part),
        setpoint=state.command if plan.wanted is None else _between(plan.setpoints, below, above, part),
        command=state.command,
        position=state.q,
        velocity=state.qd,
        effort=state.effort,
        controller_target=state.controller_target,
        controller_target_velocity=_reported(state.controller_target_velocity, state.q),
        controller_target_acceleration=_reported(state.controller_target_acceleration, state.q),
        speed_scaling=state.speed_scaling,
        robot_mode=state.robot_mode,
        safety_mode=state.safety_mode,
        runtime_state=state.runtime_state,
        limited=bool(plan.limited[below]),
        host_monotonic=state.host_monotonic,
    )


def _between(joints: Array, below: int, above: int, part: float) -> Array:
    return joints[below] if not part else (1.0 - part) * joints[below] + part * joints[above]


def _reported(values: Array | None, q: Array) -> Array:
    return np.full_like(q, np.nan) if values is None else values
