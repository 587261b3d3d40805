"""Run a scenario: the one place where the parts meet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.backends import ArmState, Backend
from simbridge.check import Peaks
from simbridge.errors import Interrupted, InvalidParameter, SimbridgeError, UnknownName
from simbridge.evaluation import Evaluation
from simbridge.ik.parameters import SOLVERS
from simbridge.ik.solver import Solver
from simbridge.options import Options
from simbridge.plan import Plan, make_plan
from simbridge.recording.log import LogWriter, Sample
from simbridge.recording.run_directory import RunDirectory, check_same_kinematics
from simbridge.report import write_report
from simbridge.robot import Robot, load_robot
from simbridge.scenario import Scenario, load_scenario
from simbridge.settings import resolved_settings

BACKENDS = ("pybullet",)


@dataclass(frozen=True)
class Prepared:
    """A run that has been planned and checked, and has not moved anything."""

    robot: Robot
    scenario: Scenario
    solver: Solver
    plan: Plan
    peaks: Peaks
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        directory: Its files.
        summary: What summary.json holds.
    """

    directory: Path
    summary: dict[str, Any]

    def evaluation(self) -> Evaluation:
        """Its arrays, read back from the log."""
        return Evaluation.of(RunDirectory.open(self.directory))


Progress = Callable[[int, ArmState], None]


def prepare(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] = "ur10",
    solver: Solver | None = None,
    solver_changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Prepared:
    """Everything up to the point where an arm would move: load, solve, limit, check.

    Args:
        scenario: A `Scenario`, a name, a script or a file.
        robot: A `Robot`, a name or a file.
        solver: Made for the robot; the scenario's settings by default.
        solver_changes: Single settings in place of the scenario's, when no solver is given.
        options: See `Options`.

    Raises:
        SimbridgeError: One of its subclasses; nothing was written and nothing has moved.
    """
    options = options or Options()
    if solver is None:
        arm = equipped(robot if isinstance(robot, Robot) else load_robot(robot), options)
    else:
        arm = _arm_of(solver, robot, options)
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, arm, frame=options.frame)
    earlier = None
    if options.plan is not None:
        earlier, solver, options = _replayed(scenario, arm, solver, solver_changes, options)
    solver = solver or replace(scenario.solver, **(solver_changes or {})).build(arm)
    plan, peaks = make_plan(
        arm,
        scenario,
        solver,
        period=options.period,
        hold=options.hold,
        speed_scale=options.speed_scale,
        on_limits=options.on_limits,
        max_tool_speed=options.max_tool_speed,
        floor=options.floor,
        replay=earlier,
    )
    return Prepared(arm, scenario, solver, plan, peaks, options)


def _arm_of(solver: Solver, robot: Robot | str | os.PathLike[str], options: Options) -> Robot:
    """The solver's own arm, unless something else is asked for beside it."""
    if options.tcp or options.payload:
        raise InvalidParameter("solver", solver.name, "made for a robot with that TCP and payload, not beside them")
    if isinstance(robot, Robot) and robot.checksum != solver.robot.checksum:
        given = f"{solver.name} for {solver.robot.name}"
        raise InvalidParameter("solver", given, f"made for the same robot and TCP, {robot.name}")
    return solver.robot


def equipped(robot: Robot, options: Options) -> Robot:
    """The arm with the TCP and the known payload of the options."""
    if options.tcp:
        x, y, z, *turn = (float(v) for v in options.tcp)
        robot = robot.with_tcp(pin.SE3(pin.exp3(np.array(turn)), np.array([x, y, z])))
    return robot.with_payload(options.payload) if options.payload else robot


def _replayed(
    scenario: Scenario, robot: Robot, solver: Solver | None, changes: Mapping[str, Any] | None, options: Options
) -> tuple[Plan, Solver, Options]:
    """The plan of an earlier run, the solver it was made with, and the options with what it was made with."""
    assert options.plan is not None
    flags = {"--speed-scale": options.speed_scale != 1.0, "--hold": options.hold, "--on-limits": options.on_limits}
    given = [name for name, value in (flags | {"settings of the solver": changes}).items() if value]
    if given:
        raise InvalidParameter("plan", options.plan, f"replayed as it is, without {' and '.join(given)}")
    run = RunDirectory.open(Path(options.plan))
    plan = run.plan()
    check_same_kinematics(plan, robot.checksum, robot.period if options.period is None else options.period)
    settings = run.settings()
    made = settings["scenario"]
    wanted = scenario.trajectory.slowed(made["speed_scale"])
    if not (_alike(plan.trajectory.poses, wanted.poses) and _alike(plan.trajectory.elapsed, wanted.elapsed)):
        raise InvalidParameter("plan", options.plan, f"made for this scenario, {scenario.name}")
    if not _alike(np.array(settings["robot"]["home"]), robot.home):
        raise InvalidParameter("plan", options.plan, "made from the same home (--home)")
    options = replace(options, speed_scale=made["speed_scale"], hold=made["hold"], on_limits=made["on_limits"])
    return plan, solver or recorded_solver(settings, robot), options


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0.0, atol=1e-9))


def recorded_solver(settings: Mapping[str, Any], robot: Robot) -> Solver:
    """The solver that settings.toml describes.

    Raises:
        UnknownName: It is none of simbridge's own.
    """
    name, parameters = settings["solver"]["name"], settings["solver"]["parameters"]
    if name not in SOLVERS:
        raise UnknownName("solver", name, SOLVERS)
    return SOLVERS[name](**parameters).build(robot)


def open_backend(name: str, robot: Robot, options: Options) -> Backend:
    """The backend of that name, not yet entered.

    Raises:
        UnknownName: There is no such backend.
    """
    if name == "pybullet":
        from simbridge.backends.pybullet import PyBulletBackend

        return PyBulletBackend(
            robot,
            period=options.period,
            unmodelled_payload=options.unmodelled_payload,
            realtime=options.realtime,
            gui=options.gui,
            floor=options.floor,
            servo=None if options.servo == "stiff" else (options.servo_lookahead, options.servo_gain),
        )
    raise UnknownName("backend", name, BACKENDS)


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] = "ur10",
    solver: Solver | None = None,
    backend: str = "pybullet",
    out: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Run:
    """Plan a scenario, execute it, record it, measure it.

    Args:
        scenario, robot, solver, options: As for `prepare`.
        backend: "pybullet".
        out: The run directory to make; one under runs/ by default.
        progress: Called with the sample's number and the arm's state, once a period.

    Raises:
        SimbridgeError: One of its subclasses. What was logged until then stays readable.
    """
    prepared = prepare(scenario, robot=robot, solver=solver, options=options)
    return execute(prepared, backend=backend, out=out, progress=progress)


def execute(
    prepared: Prepared,
    *,
    backend: str = "pybullet",
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Execute what `prepare` made. See `run`."""
    plan, robot = prepared.plan, prepared.robot
    arm = open_backend(backend, robot, prepared.options)
    directory = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    settings = resolved_settings(prepared, backend, arm)
    directory.write_settings(settings)
    directory.write_plan(plan)
    try:
        # The log opens after all else and closes before the arm is let go: it holds whatever the arm did.
        with arm, _log(directory, prepared, settings) as log:
            arm.move_to(plan.setpoints[0])
            for index, state in enumerate(arm.stream(plan.setpoints)):
                log.write(sample_of(plan, index, state))
                if progress is not None:
                    progress(index, state)
    except KeyboardInterrupt:
        _conclude_early(directory, "interrupted", prepared.options.tolerance)
        interrupted = Interrupted("The run was interrupted and the arm stopped.")
        interrupted.run_directory = directory.path
        raise interrupted from None
    except Exception as error:
        _conclude_early(directory, f"{type(error).__name__}: {error}", prepared.options.tolerance)
        if isinstance(error, SimbridgeError):
            error.run_directory = directory.path
        raise
    return Run(directory.path, conclude(directory, "completed", prepared.options.tolerance))


def _log(directory: RunDirectory, prepared: Prepared, settings: dict[str, Any]) -> LogWriter:
    return LogWriter(
        directory.log_file,
        joint_names=prepared.robot.joint_names,
        period=prepared.plan.period,
        metadata=log_facts(settings),
    )


def _conclude_early(directory: RunDirectory, outcome: str, tolerance: tuple[float, float] | None) -> None:
    """Measure what there is of a run that ended early."""
    # What ended the run may also be in the way of measuring it: the first error is the one to tell.
    with contextlib.suppress(Exception):
        conclude(directory, outcome, tolerance)


def conclude(directory: RunDirectory, outcome: str, tolerance: tuple[float, float] | None) -> dict[str, Any]:
    """Measure a run from its log, write summary.json and report.html."""
    evaluation = Evaluation.of(directory)
    summary = evaluation.summary(outcome)
    summary["tolerance"] = None if tolerance is None else {"position_m": tolerance[0], "rotation_rad": tolerance[1]}
    summary["passed"] = passed(summary)
    directory.write_summary(summary)
    if summary["samples"]:
        write_report(evaluation, summary)
    return summary


def passed(summary: dict[str, Any]) -> bool | None:
    """Whether the run completed and the RMS of its tracking error keeps the tolerance; None without a tolerance."""
    tolerance = summary["tolerance"]
    if tolerance is None:
        return None
    if summary["outcome"] != "completed":
        return False
    error = summary["tracking_error"]
    return all(error[part]["rms"] <= tolerance[part] for part in ("position_m", "rotation_rad"))


def log_facts(settings: dict[str, Any]) -> dict[str, str]:
    """What the log itself says about the run, so that it can be told apart without its directory."""
    return {
        "scenario": settings["scenario"]["name"],
        "robot": settings["robot"]["name"],
        "solver": settings["solver"]["name"],
        "backend": settings["backend"]["name"],
        "simbridge": settings["versions"]["simbridge"],
    }


def sample_of(plan: Plan, index: int, state: ArmState) -> Sample:
    """The log's line for one state: what was wanted from the plan, what happened from the arm."""
    return Sample(
        index=index,
        stamp=index * plan.period,
        plan_time=float(plan.trajectory_times[index]),
        target=plan.targets[index],
        solution=plan.solution[index],
        setpoint=state.setpoint,
        position=state.q,
        velocity=state.qd,
        effort=state.effort,
        controller_target=state.controller_target,
        speed_scaling=state.speed_scaling,
        robot_mode=state.robot_mode,
        safety_mode=state.safety_mode,
        runtime_state=state.runtime_state,
        limited=bool(plan.limited[index]),
        host_monotonic=state.host_monotonic,
    )
