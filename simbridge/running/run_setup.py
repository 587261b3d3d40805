"""The setup of a run, before anything moves.

It is the arm, the solver and the plan, checked and ready.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypedDict

from simbridge.backends import SIMULATION, backend_class
from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import (
    RECORDED_JOINTS,
    SolverFunction,
    UserSolver,
    is_factory,
    make_custom_solver,
)
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.solver import Solver
from simbridge.planning.check import Peaks
from simbridge.planning.options import Options, StartChoice
from simbridge.planning.plan import Plan
from simbridge.planning.planner import plan_or_suggest_placement
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.recording.kinematics_record import (
    KinematicsSummary,
    record_kinematics,
    summarize_kinematics,
)
from simbridge.recording.record_tables import record_backend
from simbridge.recording.run_record import BackendRecord, KinematicsRecord
from simbridge.recording.servo_description import describe_plant, plant_notes
from simbridge.robot.parts import DhTable
from simbridge.robot.robot import Robot
from simbridge.running.arm_and_solver import (
    RobotChoice,
    check_recorded_joints,
    choose_solver,
    recorded_joints_solver,
    resolve_arm,
)
from simbridge.running.posture_drift import posture_note
from simbridge.running.replay import load_replay
from simbridge.running.step_timing import StepTimes, measure_step_times
from simbridge.sessions.recorded_session import RecordedSession
from simbridge.ur.controller_facts import ControllerFacts

ScenarioChoice = Scenario | str | os.PathLike[str]


@dataclass(frozen=True)
class Prepared:
    """A run that has been planned and checked; nothing has moved.

    Attributes:
        robot: The arm, as a controller describes it.
        scenario: The scenario that it tracks.
        solver: The solver, made for the arm.
        plan: The plan: every setpoint.
        peaks: How close to the limits the plan comes.
        options: The options of the run, completed from the controller's facts.
        backend: Name of the backend for which it was planned.
        controller: Facts of that backend's controller; None in simulation.
    """

    robot: Robot
    scenario: Scenario
    solver: Solver
    plan: Plan
    peaks: Peaks
    options: Options = field(default_factory=Options)
    backend: str = SIMULATION
    controller: ControllerFacts | None = None

    @property
    def solver_notes(self) -> tuple[str, ...]:
        """Notes on how the solver treats this plan, its slow steps and drift, as sentences."""
        notes = list(self.solver.notes(self.plan.targets, self.plan.solution[0]))
        if self.solver.name != RECORDED_JOINTS:
            notes.append(posture_note(self.solver, self.plan))
        if self.step_times is not None:
            name = f"The solver {self.solver.name}"
            notes.append(self.step_times.note(name, self.plan.period))
        return tuple(note for note in notes if note)

    @cached_property
    def step_times(self) -> StepTimes | None:
        """Times of a solver's steps on this computer; None if no solver was needed."""
        if self.options.plan is not None:
            return None
        return measure_step_times(self.solver, self.plan)

    @property
    def host_step_time(self) -> float | None:
        """Mean time of a solver's step on this computer, s; None if no solver was needed."""
        return None if self.step_times is None else self.step_times.mean

    @property
    def reported_kinematics(self) -> DhTable | None:
        """The controller's own kinematics; None in simulation."""
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
        """The description of what follows the commands, in one line."""
        return describe_plant(self.backend_record)

    @property
    def plant_notes(self) -> list[str]:
        """Remarks on the plant's file, as sentences."""
        return plant_notes(self.backend_record, self.robot.name)

    @property
    def kinematics_record(self) -> KinematicsRecord:
        """The kinematics of the plan, as settings.toml records them."""
        source = self.options.kinematics_source
        return record_kinematics(self.robot, source, self.reported_kinematics)

    @property
    def kinematics(self) -> KinematicsSummary:
        """The kinematics of the plan, and how far the controller's own are from them."""
        return summarize_kinematics(self.kinematics_record)


@dataclass(frozen=True)
class SolverChoice:
    """The solver that a user asks for; the scenario's if nothing is given.

    Attributes:
        solver: A solver that was made for the robot.
        function: A step or a factory (see `make_custom_solver`).
        settings: Settings of one of simbridge's solvers.
        name: A name in `ALL_SOLVERS`, or module:function; with a function, its name in the reports.
        changes: Single settings that replace the scenario's.
    """

    solver: Solver | None = None
    function: SolverFunction | None = None
    settings: SolverParameters | None = None
    name: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, solver: UserSolver | None, function_name: str, changes: Mapping[str, Any]
    ) -> SolverChoice:
        """Return the choice of a user.

        Args:
            solver: What the user gives as the solver; None for the scenario's.
            function_name: Name of a function in the reports; its own by default.
            changes: Single settings that replace the scenario's or the named solver's.

        Raises:
            InvalidParameter: The choice cannot be a solver, or settings are given beside a solver
                that has its own.
        """
        if solver is None or isinstance(solver, str):
            return cls(name=solver or "", changes=changes)
        if changes:
            needed = "left out: the solver has its own"
            raise InvalidParameter("solver's settings", ", ".join(changes), needed)
        if isinstance(solver, Solver):
            return cls(solver=solver)
        if isinstance(solver, SolverParameters):
            return cls(settings=solver)
        is_factory(solver)
        return cls(function=solver, name=function_name)

    @property
    def is_made(self) -> bool:
        """True if the choice brings a solver for which no scenario is needed."""
        return bool(self.solver or self.function or self.settings or self.name)

    def description(self, own_solver: Solver | None) -> str:
        """Return the choice for messages; "" if nothing is chosen.

        Args:
            own_solver: What `custom_solver` returns.
        """
        if own_solver is not None:
            return own_solver.name
        return self.name or ", ".join(f"solver.{setting}" for setting in self.changes)

    def custom_solver(self, robot: Robot) -> Solver | None:
        """Return the solver that the user gives; None if a name, or the scenario, decides."""
        if self.function is not None:
            return make_custom_solver(robot, self.function, self.name)
        if self.settings is not None:
            return self.settings.build(robot)
        return self.solver


def prepare(
    scenario: ScenarioChoice,
    *,
    robot: RobotChoice = None,
    solver: UserSolver | None = None,
    solver_name: str = "",
    solver_changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str = SIMULATION,
) -> Prepared:
    """Load, solve, limit and check: everything up to the point where an arm would move.

    For a controller, its facts are read first, and the plan is made for the arm that it describes.

    Args:
        scenario: A `Scenario`, a name, a script or a file; or the directory of a live session,
            whose inputs are solved again with its own arm, solver and options where no others are
            given.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: A name in `ALL_SOLVERS` (the scenario's settings are used if they belong to it), or
            `module:function`; a step or a factory (see `make_custom_solver`); settings; or a solver
            that was made for the robot. The scenario's by default.
        solver_name: Name of a step or factory in the reports; its own by default.
        solver_changes: Single settings that replace those of the scenario or the named solver.
        options: Options of the run; the defaults if there are none.
        backend: A name in `BACKENDS`.

    Raises:
        SimbridgeError: One of its subclasses; nothing was written and nothing has moved.
    """
    options = options or Options()
    choice = SolverChoice.of(solver, solver_name, solver_changes or {})

    # None if the scenario is not the directory of a live session.
    session = None if isinstance(scenario, Scenario) else RecordedSession.at(scenario)
    if session is not None:
        # A session completes the options. Its arm is used unless the user names one, or gives a
        # solver that was made for one.
        options = session.options(options, backend)
        if robot is None and choice.solver is None:
            robot = session.arm(links=options.links)

    # Replay a plan, solve a session again, or plan a scenario.
    if options.plan is not None:
        # The plan has the joint positions: the session's inputs are not solved again.
        recorded = scenario if session is None else session.scenario(solved=False)
        return prepare_replay(recorded, robot, choice, options=options, backend=backend)
    if session is not None:
        return prepare_session(session, robot, choice, options=options, backend=backend)
    return prepare_scenario(scenario, robot, choice, options=options, backend=backend)


def prepare_scenario(
    scenario: ScenarioChoice,
    robot: RobotChoice,
    choice: SolverChoice,
    *,
    options: Options,
    backend: str,
) -> Prepared:
    """Plan a scenario, as `prepare` does."""
    controller, arm, options = resolve_arm(backend, robot, choice.solver, options)
    solver = choice.custom_solver(arm)
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, arm, options.reading)

    # Recorded joint positions are the plan themselves: nothing is solved, and a solver, or another
    # option of solving, is refused.
    if scenario.trajectory.joints is not None:
        check_recorded_joints(arm, options, chosen_solver=choice.description(solver))
        solver = recorded_joints_solver(arm)
    elif solver is None:
        solver = choose_solver(scenario, arm, choice.name, choice.changes)

    plan, peaks = plan_or_suggest_placement(
        arm, scenario, solver, options, start=_default_start(controller)
    )
    return Prepared(arm, scenario, solver, plan, peaks, options, backend, controller)


def prepare_session(
    session: RecordedSession,
    robot: RobotChoice,
    choice: SolverChoice,
    *,
    options: Options,
    backend: str,
) -> Prepared:
    """Solve the inputs of a live session again, each at the period that used it.

    Args:
        session: The session, whose solver is used where the user gives none.
        robot: The arm, as for `prepare`; the session's by default.
        choice: The solver that the user asks for.
        options: The options of the run, completed from the session.
        backend: A name in `BACKENDS`.
    """
    keeps_solver = not choice.is_made
    scenario = session.scenario(solved=keeps_solver)
    name = choice.name
    if keeps_solver and isinstance(session.solver, str):
        name = session.solver

    controller, arm, options = resolve_arm(backend, robot, choice.solver, options)
    solver = choice.custom_solver(arm)
    if solver is None:
        solver = choose_solver(scenario, arm, name, choice.changes)

    solved = session.solve_again(solver, options)
    plan, peaks = plan_or_suggest_placement(
        arm, scenario, solver, options, replay=solved, start=_default_start(controller)
    )
    return Prepared(arm, scenario, solver, plan, peaks, options, backend, controller)


def prepare_replay(
    scenario: ScenarioChoice,
    robot: RobotChoice,
    choice: SolverChoice,
    *,
    options: Options,
    backend: str,
) -> Prepared:
    """Check the plan of an earlier run, which the options name, again.

    It is neither solved nor limited.
    """
    controller, arm, options = resolve_arm(backend, robot, choice.solver, options)
    solver = choice.custom_solver(arm)
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, arm, options.reading)

    replay = load_replay(
        scenario,
        arm,
        options=options,
        solver=solver,
        changes_solver=(bool(choice.name) and solver is None) or bool(choice.changes),
    )
    plan, peaks = plan_or_suggest_placement(
        arm,
        scenario,
        replay.solver,
        replay.options,
        replay=replay.plan,
        start=_default_start(controller),
    )
    return Prepared(arm, scenario, replay.solver, plan, peaks, replay.options, backend, controller)


def _default_start(controller: ControllerFacts | None) -> StartChoice:
    """Return where plans begin: on a controller at home, where a person expects it."""
    return "auto" if controller is None else "home"


class StartFacts(TypedDict):
    """The joint positions where a plan begins, and the reason why that is not home."""

    joints: list[float]
    reason: str


class ClearanceFacts(TypedDict):
    """The smallest clearance of a plan, m, and between which bodies."""

    distance_m: float
    bodies: list[str]


class CheckFacts(TypedDict):
    """A plan and its peaks, as `simbridge check --json` prints them (SI units).

    Attributes:
        scenario: Name of the scenario.
        read_as: How the file of targets was read; None if there is none.
        reference_read_as: How the file of the reference was read; None if there is none.
        robot: Name of the arm.
        solver: Name of the solver.
        period_s: Control period, s.
        samples: Number of setpoints.
        duration_s: Duration of the plan, s.
        trajectory_duration_s: Duration of the trajectory, s.
        limited_samples: Number of setpoints that the limiter changed.
        predicted_lag_s: Lag of the solver, s; None if no formula is known.
        kinematics: The kinematics of the plan.
        plant_model: What follows the commands, in one line.
        plant_notes: Remarks on what follows the commands, as sentences.
        feedforward: Whether commands are sent ahead of the setpoints.
        command_lead_rad: `{max}`: by how much commands lead the arm; None without feedforward.
        solver_notes: Remarks on how the solver treats the plan, as sentences.
        robot_notes: Decisions that were made when the arm was read, as sentences.
        start: Beginning of the plan, if it is not at home.
        peak_joint_velocity: Largest velocity of each joint, rad/s.
        peak_velocity_jump: Largest velocity jump of each joint, rad/s.
        peak_tool_speed: Largest speed of the tool, m/s.
        clearance: The smallest clearance; None for an arm without shapes.
    """

    scenario: str
    read_as: str | None
    reference_read_as: str | None
    robot: str
    solver: str
    period_s: float
    samples: int
    duration_s: float
    trajectory_duration_s: float
    limited_samples: int
    predicted_lag_s: float | None
    kinematics: KinematicsSummary
    plant_model: str
    plant_notes: list[str]
    feedforward: bool
    command_lead_rad: dict[str, float] | None
    solver_notes: list[str]
    robot_notes: list[str]
    start: StartFacts | None
    peak_joint_velocity: list[float]
    peak_velocity_jump: list[float]
    peak_tool_speed: float
    clearance: ClearanceFacts | None


def check_facts(prepared: Prepared, *, solver_notes: Sequence[str] | None = None) -> CheckFacts:
    """Return a plan and its peaks as `simbridge check --json` prints them (SI units).

    Args:
        prepared: The plan.
        solver_notes: Remarks on how the solver treats the plan; by default its own, for which its
            steps are timed.
    """
    if solver_notes is None:
        solver_notes = prepared.solver_notes
    robot = prepared.robot
    plan = prepared.plan
    peaks = prepared.peaks

    start: StartFacts | None = None
    if plan.start is not None:
        start = {"joints": plan.start.joints.tolist(), "reason": plan.start.reason}
    reference_read_as = None
    if prepared.scenario.targets is not None:
        reference_read_as = prepared.scenario.trajectory.read_as or None
    clearance: ClearanceFacts | None = None
    if peaks.clearance is not None:
        clearance = {
            "distance_m": peaks.clearance.distance,
            "bodies": list(peaks.clearance.bodies),
        }

    return {
        "scenario": prepared.scenario.name,
        "read_as": (prepared.scenario.targets or prepared.scenario.trajectory).read_as or None,
        "reference_read_as": reference_read_as,
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
        "plant_notes": prepared.plant_notes,
        "feedforward": prepared.options.feedforward == "on",
        "command_lead_rad": None if peaks.command_lead is None else {"max": peaks.command_lead},
        "solver_notes": list(solver_notes),
        "robot_notes": list(robot.notes),
        "start": start,
        "peak_joint_velocity": peaks.velocity.tolist(),
        "peak_velocity_jump": peaks.velocity_jump.tolist(),
        "peak_tool_speed": peaks.tool_speed,
        "clearance": clearance,
    }
