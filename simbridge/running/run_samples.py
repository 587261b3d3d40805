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

# A position in the plan this close to a sample is the sample's, in samples.
ROUNDING = 1e-9


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
    """Return the fields of `Sample` that a state gives: the command, and what was measured."""
    unknown = np.full_like(state.q, np.nan)
    target_velocity = state.controller_target_velocity
    target_acceleration = state.controller_target_acceleration
    return {
        "command": state.command,
        "position": state.q,
        "velocity": state.qd,
        "effort": state.effort,
        "controller_target": state.controller_target,
        "controller_target_velocity": unknown if target_velocity is None else target_velocity,
        "controller_target_acceleration": (
            unknown if target_acceleration is None else target_acceleration
        ),
        "speed_scaling": state.speed_scaling,
        "robot_mode": state.robot_mode,
        "safety_mode": state.safety_mode,
        "runtime_state": state.runtime_state,
        "host_monotonic": state.host_monotonic,
    }


class PlanSamples:
    """Makes the rows of one run's log: desired values from the plan, measured ones from the states.

    Args:
        plan: The plan that is executed. Its first setpoint is due at stamp 0.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        # The controller's period in which the first setpoint was due.
        self._first_tick: int | None = None

    def of(self, state: ArmState) -> Sample:
        """Return the row for a state."""
        # The number of the controller's period.
        plan = self._plan
        tick = round(state.timestamp / plan.period)

        # The first state that is seen may not be that of the first setpoint, if states were missed.
        if self._first_tick is None:
            self._first_tick = tick - state.sequence

        # The position in the plan, in samples. It lies between two samples if a controller scales
        # the speed; a position within rounding of a sample is that sample.
        position = state.plan_time / plan.period
        if abs(position - round(position)) < ROUNDING:
            position = round(position)
        below = math.floor(position)
        fraction = position - below

        def interpolate(values: Array) -> Array:
            if not fraction:
                return values[below]
            return (1.0 - fraction) * values[below] + fraction * values[below + 1]

        time = float(interpolate(plan.trajectory_times))
        target = plan.target(np.array([time]))[0] if fraction else plan.targets[below]
        # Without feedforward the commands are the setpoints. With it they lead the setpoints, which
        # are then read from the plan.
        setpoint = state.command if plan.joint_targets is None else interpolate(plan.setpoints)
        return Sample(
            index=state.sequence,
            # The stamp follows the controller's clock, not the number of setpoints: they differ
            # after a late setpoint.
            stamp=(tick - self._first_tick) * plan.period,
            plan_time=time,
            target=target,
            solution=interpolate(plan.solution),
            setpoint=setpoint,
            limited=bool(plan.limited[below]),
            **measured_fields(state),
        )
