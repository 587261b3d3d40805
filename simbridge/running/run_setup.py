"""The setup of a run: its arm, its solver and its plan, checked and ready, before anything moves; and its record.

The record holds everything that a run was resolved to, enough to repeat it and to evaluate it again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simbridge.backends import SIMULATION, backend_class
from simbridge.errors import LONGEST_VALUE, InvalidParameter, NotARun
from simbridge.ik.callable_solver import CallableSolver, RecordedSolver, StepFunction, named_solver
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import SOLVERS, check_solver, is_function, resolved
from simbridge.ik.solver import Solver
from simbridge.planning.check import Peaks
from simbridge.planning.option_field import recorded_options
from simbridge.planning.options import Options, StartChoice
from simbridge.planning.plan import OnLimits, Plan
from simbridge.planning.planner import plan_or_suggestion
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.quoting import unquoted
from simbridge.recording.kinematics_record import (
    KinematicsSummary,
    record_kinematics,
    summarize_kinematics,
)
from simbridge.recording.record_tables import (
    record_backend,
    record_cell,
    record_controller,
    record_robot,
    record_shapes,
    record_solver,
    record_tolerance,
    versions,
)
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import (
    BackendRecord,
    KinematicsRecord,
    RunRecord,
    ScenarioRecord,
    StartRecord,
)
from simbridge.recording.servo_description import describe_plant
from simbridge.robot.load import load_robot
from simbridge.robot.parts import DhTable
from simbridge.robot.robot import Robot
from simbridge.servo.plant import controller_cycle
from simbridge.sessions.recorded_session import RecordedSession, planning_flags
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Hold
from simbridge.ur.controller_facts import ControllerFacts


@dataclass(frozen=True)
class Prepared:
    """A run that has been planned and checked; nothing has moved."""

    robot: Robot
    scenario: Scenario
    solver: Solver
    plan: Plan
    peaks: Peaks
    options: Options = field(default_factory=Options)
    backend: str = SIMULATION  # the name of the backend it was planned for
    controller: ControllerFacts | None = (
        None  # what that backend's controller says of itself; None in simulation
    )

    @property
    def solver_notes(self) -> tuple[str, ...]:
        """Notes on how the solver treats this plan, as sentences (see `Solver.notes`)."""
        return self.solver.notes(self.plan.targets, self.plan.solution[0])

    @property
    def reported_kinematics(self) -> DhTable | None:
        """The controller's own; None in simulation."""
        return None if self.controller is None else self.controller.arm.kinematics

    @property
    def backend_record(self) -> BackendRecord:
        """The backend, and what follows the commands, as settings.toml records them."""
        capabilities = backend_class(self.backend).capabilities
        return record_backend(
            self.backend,
            self.robot,
            self.options,
            period=self.plan.period,
            simulated_time=capabilities.simulated_time,
            effort_unit=capabilities.effort_unit,
        )

    @property
    def plant_model(self) -> str:
        """What follows the commands, in one line."""
        return describe_plant(self.backend_record)

    @property
    def kinematics_record(self) -> KinematicsRecord:
        """The kinematics of the plan, as settings.toml records them."""
        source = self.options.kinematics_source
        return record_kinematics(self.robot, source, self.reported_kinematics)

    @property
    def kinematics(self) -> KinematicsSummary:
        """The kinematics of the plan, and how far the controller's own are from them."""
        return summarize_kinematics(self.kinematics_record)


def prepare(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | StepFunction | None = None,
    solver_name: str = "",
    solver_changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str = SIMULATION,
) -> Prepared:
    """Load, solve, limit and check: everything up to the point where an arm would move.

    For a controller, its facts are read first, and the plan is made for the arm that it describes.

    Args:
        scenario: A `Scenario`, a name, a script or a file; or the directory of a live session, whose inputs are solved
            again with its own arm, solver and options where no others are given.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: Made for the robot, or a function (see `CallableSolver`); the scenario's by default.
        solver_name: A name in `SOLVERS`, if no solver is given; the scenario's settings are used only if they belong
            to that solver.
        solver_changes: Single settings that replace the scenario's, if no solver is given.
        options: See `Options`.
        backend: A name in `BACKENDS`.

    Raises:
        SimbridgeError: One of its subclasses; nothing was written and nothing has moved.
    """
    own, options = solver if isinstance(solver, Solver) else None, options or Options()
    session = None if isinstance(scenario, Scenario) else RecordedSession.at(scenario)
    if session is not None:
        options = session.options(options, backend)
        robot = session.arm(links=options.links) if robot is None and own is None else robot
        solved = options.plan is None and own is None and not solver_name
        scenario = session.scenario(solved=solved)
        solver_name = session.solver if solved and isinstance(session.solver, str) else solver_name
    controller, arm, options = resolve_arm(backend, robot, own, options)
    if solver is not None:
        own = own or CallableSolver(arm, cast(StepFunction, solver))
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, arm, options.reading)
    earlier = None
    if options.plan is not None:
        changes = (
            {"solver": solver_name, **(solver_changes or {})} if solver_name else solver_changes
        )
        earlier, own, options = replayed(scenario, arm, own, changes, options)
    chosen = own or chosen_solver(scenario, arm, solver_name, solver_changes or {})
    if session is not None and earlier is None:
        earlier = session.solved_again(chosen, options)
    start: StartChoice = "auto" if controller is None else "home"
    plan, peaks = plan_or_suggestion(arm, scenario, chosen, options, replay=earlier, start=start)
    return Prepared(arm, scenario, chosen, plan, peaks, options, backend, controller)


def check_facts(prepared: Prepared) -> dict[str, Any]:
    """A plan and how close to its limits it comes, as `simbridge check --json` prints it (SI units)."""
    plan, peaks, robot = prepared.plan, prepared.peaks, prepared.robot
    clearance = peaks.clearance
    return {
        "scenario": prepared.scenario.name,
        "read_as": prepared.scenario.trajectory.read_as or None,
        "robot": robot.name,
        "solver": prepared.solver.name,
        "period_s": plan.period,
        "samples": plan.samples,
        "duration_s": plan.duration,
        "trajectory_duration_s": float(plan.trajectory_times[-1]),
        "limited_samples": int(plan.limited.sum()),
        "predicted_lag_s": prepared.solver.lag(plan.period),
        "kinematics": prepared.kinematics,
        "plant_model": prepared.plant_model,
        "feedforward": prepared.options.feedforward == "on",
        "command_lead_rad": None if peaks.command_lead is None else {"max": peaks.command_lead},
        "solver_notes": list(prepared.solver_notes),
        "robot_notes": list(robot.notes),
        "start": None
        if plan.start is None
        else {"joints": plan.start.joints.tolist(), "reason": plan.start.reason},
        "peak_joint_velocity": peaks.velocity.tolist(),
        "peak_velocity_jump": peaks.velocity_jump.tolist(),
        "peak_tool_speed": peaks.tool_speed,
        "clearance": clearance
        and {"distance_m": clearance.distance, "bodies": list(clearance.bodies)},
    }


def resolve_arm(
    backend: str,
    robot: Robot | str | os.PathLike[str] | None,
    solver: Solver | None,
    options: Options,
) -> tuple[ControllerFacts | None, Robot, Options]:
    """The arm behind a backend.

    Returns:
        The controller's facts, None in simulation; the arm, as the controller describes it; and the options, completed
        from the controller's facts.

    Raises:
        UnknownName, InvalidParameter: There is no such backend, or the arm does not fit the solver or the cell.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    kind = backend_class(backend)
    if options.servo != "servoj" and not kind.capabilities.simulated_time:
        needed = f"servoj, which the controller runs with --backend {backend}; the ideal servo is a simulated one"
        raise InvalidParameter("servo", options.servo, needed)
    arm = equipped_arm(robot, solver, options)
    controller, described, options = kind.resolve(arm, options)
    if options.servo == "servoj":
        # Refuses what is unstable at this controller's cycle.
        options.plant_model.law(
            controller_cycle(described.period, options.period or described.period)
        )
    if solver is not None and described.checksum != arm.checksum:
        needed = "made for exactly this arm: leave the solver out, or run with nominal kinematics (--kinematics)"
        raise InvalidParameter("solver", solver.name, needed)
    return controller, described, options


def chosen_solver(
    scenario: Scenario, robot: Robot, name: str = "", changes: Mapping[str, Any] | None = None
) -> Solver:
    """The solver of a run: the scenario's or the named one (in `SOLVERS`, or module:function), some settings changed.

    Raises:
        UnknownName: There is no such solver, or it has no such setting.
        InvalidParameter: A setting is invalid.
    """
    if name:
        check_solver(name)
    settings = scenario.solver
    if name in SOLVERS and type(settings) is not SOLVERS[name]:
        settings = SOLVERS[name]()
    if is_function(name) or not is_dataclass(settings):
        if changes:
            raise InvalidParameter(
                "solver's settings", ", ".join(changes), "left out: the solver is a function"
            )
        if name:
            return named_solver(robot, name)
        return CallableSolver(robot, cast(StepFunction, settings))
    chosen = cast(SolverParameters, settings)
    return resolved(type(chosen), chosen, changes or {}).build(robot)


def equipped_arm(
    robot: Robot | str | os.PathLike[str] | None, solver: Solver | None, options: Options
) -> Robot:
    """The arm with its TCP and payload, mounted as in its cell: the solver's own, when there is one.

    Raises:
        InvalidParameter: The solver was made for another arm or TCP, or the cell is another arm's.
    """
    if solver is None:
        arm = (
            robot
            if isinstance(robot, Robot)
            else load_robot(robot or options.robot, **options.links)
        )
        return options.equipped(arm)
    if robot is not None:
        named = robot if isinstance(robot, Robot) else load_robot(robot, **options.links)
        if (described := options.equipped(named)).checksum == solver.robot.checksum:
            return described
        if named.name != solver.robot.name or (
            named is robot and named.checksum != solver.robot.checksum
        ):
            given = f"{solver.name} for {solver.robot.name}"
            raise InvalidParameter(
                "solver", given, f"made for the same robot and TCP, {named.name}"
            )
    arm = options.equipped(solver.robot)
    flags = options.cell is None and (options.tcp or options.payload)
    if flags or arm.checksum != solver.robot.checksum:
        needed = "made for a robot with these kinematics, TCP and payload; leave the options for them out"
        raise InvalidParameter("solver", solver.name, needed)
    return arm


def replayed(
    scenario: Scenario,
    robot: Robot,
    solver: Solver | None,
    changes: Mapping[str, Any] | None,
    options: Options,
) -> tuple[Plan, Solver, Options]:
    """The plan of an earlier run, its solver, and the options, completed from its settings."""
    assert options.plan is not None
    if given := [*planning_flags(options), *(["settings of the solver"] if changes else [])]:
        raise InvalidParameter(
            "plan", options.plan, f"replayed as it is, without {' and '.join(given)}"
        )
    run = RunDirectory.open(Path(options.plan))
    session = RecordedSession.at(run.path)
    plan = run.plan(Plan.from_arrays) if session is None else session.recorded_plan(robot)
    plan.check_made_for(robot.checksum, options.period or robot.period)
    record = run.settings()
    made = record.scenario
    source = run.path.resolve() if session is not None else Path(made.file or "")
    if scenario.file is not None and scenario.file.is_dir() and scenario.file == source:
        # A session's targets depend on how its inputs were solved.
        scenario = replace(scenario, trajectory=plan.trajectory)
    wanted = scenario.trajectory.time_scaled(made.speed_scale)
    if not (
        _alike(plan.trajectory.poses, wanted.poses)
        and _alike(plan.trajectory.elapsed, wanted.elapsed)
    ):
        raise InvalidParameter("plan", options.plan, f"made for this scenario, {scenario.name}")
    if not _alike(np.array(record.robot.home), robot.home):
        raise InvalidParameter("plan", options.plan, "made from the same home (--home)")
    options = replace(
        options,
        speed_scale=made.speed_scale,
        hold=cast(Hold, made.hold),
        on_limits=cast(OnLimits, made.on_limits),
    )
    if made.sampling is not None:
        with _naming_table(run, "scenario.sampling"):
            options = replace(options, sampling=Sampling(**made.sampling))
    recorded = record.solver
    if solver is None and recorded.name not in SOLVERS:
        solver = RecordedSolver(
            robot, recorded.name, task=recorded.task, parameters=recorded.parameters
        )
    if solver is None:
        with _naming_table(run, "solver.parameters"):
            solver = SOLVERS[recorded.name](**recorded.parameters).build(robot)
    return plan, solver, options


@contextlib.contextmanager
def _naming_table(run: RunDirectory, table: str) -> Iterator[None]:
    """Within the block, what is made of a table of settings.toml that was edited is refused by the table's name.

    Raises:
        NotARun: The table has a field that there is not, or one of another type, or a number that no float holds.
    """
    try:
        yield
    except (TypeError, AttributeError, OverflowError) as error:
        raise NotARun(
            run.path, "settings.toml", f"its table [{table}]: {unquoted(error, LONGEST_VALUE)}"
        ) from None


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0.0, atol=1e-9))


def run_record(prepared: Prepared) -> RunRecord:
    """Return the record of a run (SI units)."""
    robot, options, plan = prepared.robot, prepared.options, prepared.plan
    return RunRecord(
        label=options.label or None,
        scenario=_record_scenario(prepared),
        robot=record_robot(robot, options),
        kinematics=prepared.kinematics_record,
        solver=record_solver(prepared.solver, plan.period, prepared.solver_notes),
        backend=prepared.backend_record,
        versions=versions(),
        tolerance=record_tolerance(options),
        shapes=record_shapes(robot),
        controller=record_controller(prepared.controller),
        cell=record_cell(options),
    )


def _record_scenario(prepared: Prepared) -> ScenarioRecord:
    scenario, options, plan = prepared.scenario, prepared.options, prepared.plan
    sampling = options.sampling or scenario.sampling
    sampling_values = None
    if sampling is not None:
        sampling_values = asdict(sampling) | {"noise": list(sampling.noise)}
    start = None
    if plan.start is not None:
        start = StartRecord(plan.start.joints.tolist(), plan.start.reason)
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
        **recorded_options(options, "scenario"),
    )
