"""The rows of a run's log: desired values from the plan, measured values from the states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.planning.plan import Plan
from simbridge.recording.run_record import Record
from simbridge.recording.samples import Sample
from simbridge.robot.pose import Array


def log_facts(record: Record) -> dict[str, str]:
    """Return the metadata of a log, which identifies the run without its directory."""
    return {
        "scenario": record.scenario.name,
        "robot": record.robot.name,
        "solver": record.solver.name,
        "backend": record.backend.name,
        "simbridge": record.versions["simbridge"],
    }


def measured_fields(state: ArmState) -> dict[str, Any]:
    """The fields of `Sample` that a state gives: the command, and everything that was measured or reported."""
    unknown = np.full_like(state.q, np.nan)
    velocity, acceleration = state.controller_target_velocity, state.controller_target_acceleration
    return {
        "command": state.command,
        "position": state.q,
        "velocity": state.qd,
        "effort": state.effort,
        "controller_target": state.controller_target,
        "controller_target_velocity": unknown if velocity is None else velocity,
        "controller_target_acceleration": unknown if acceleration is None else acceleration,
        "speed_scaling": state.speed_scaling,
        "robot_mode": state.robot_mode,
        "safety_mode": state.safety_mode,
        "runtime_state": state.runtime_state,
        "host_monotonic": state.host_monotonic,
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
        plan = self._plan
        tick = round(state.timestamp / plan.period)
        if self._first_tick is None:
            self._first_tick = tick - state.sequence
        position = state.plan_time / plan.period
        # Between two samples of the plan if a controller scales the speed; deviations by rounding are removed.
        at = round(position) if abs(position - round(position)) < 1e-9 else position
        below, part = math.floor(at), at - math.floor(at)

        def between(values: Array) -> Array:
            return (
                values[below]
                if not part
                else (1.0 - part) * values[below] + part * values[below + 1]
            )

        time = float(between(plan.trajectory_times))
        return Sample(
            index=state.sequence,
            # The controller's time, not the number of setpoints: they differ after a late setpoint.
            stamp=(tick - self._first_tick) * plan.period,
            plan_time=time,
            target=plan.targets[below] if not part else plan.target(np.array([time]))[0],
            solution=between(plan.solution),
            setpoint=state.command if plan.wanted is None else between(plan.setpoints),
            limited=bool(plan.limited[below]),
            **measured_fields(state),
        )
