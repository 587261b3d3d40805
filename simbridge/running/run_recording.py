"""The record of a run, everything that it was resolved to: enough to repeat and to evaluate it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from simbridge.planning.option_field import record_options
from simbridge.recording.record_tables import (
    record_cell,
    record_controller,
    record_robot,
    record_shapes,
    record_solver,
    record_tolerance,
    versions,
)
from simbridge.recording.run_record import RunRecord, ScenarioRecord, SolverRecord, StartRecord
from simbridge.running.run_setup import Prepared


def record_run(prepared: Prepared) -> RunRecord:
    """Return the record of a run (SI units)."""
    options = prepared.options
    return RunRecord(
        label=options.label or None,
        scenario=_record_scenario(prepared),
        robot=record_robot(prepared.robot, options),
        kinematics=prepared.kinematics_record,
        solver=_record_solver(prepared),
        backend=prepared.backend_record,
        versions=versions(),
        tolerance=record_tolerance(options),
        shapes=record_shapes(prepared.robot),
        controller=record_controller(prepared.controller),
        cell=record_cell(options),
    )


def _record_solver(prepared: Prepared) -> SolverRecord:
    record = record_solver(prepared.solver, prepared.plan.period, prepared.solver_notes)
    record.host_step_time_s = prepared.host_step_time
    return record


def _record_scenario(prepared: Prepared) -> ScenarioRecord:
    """Return the table [scenario]."""
    scenario = prepared.scenario
    options = prepared.options
    plan = prepared.plan

    sampling = options.sampling or scenario.sampling
    sampling_values = None
    if sampling is not None:
        sampling_values = asdict(sampling) | {"noise": list(sampling.noise)}

    start = None
    if plan.start is not None:
        start = StartRecord(plan.start.joints.tolist(), plan.start.reason)

    # An absolute path, as that of the scenario's file, holds from any directory.
    chosen = record_options(options, "scenario")
    if options.reference is not None:
        chosen["reference"] = str(Path(options.reference).resolve())

    return ScenarioRecord(
        name=scenario.name,
        file=None if scenario.file is None else str(scenario.file),
        description=scenario.description,
        source=plan.trajectory.source,
        start=start,
        hold=plan.hold,
        on_limits=options.on_limits or scenario.on_limits,
        floor=options.collision_scene.floor,
        sampling=sampling_values,
        **chosen,
    )
