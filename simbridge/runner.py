"""Run a scenario: the one place where the parts meet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.backends import ArmState, Backend
from simbridge.backends.consent import Ask
from simbridge.check import Peaks
from simbridge.errors import Interrupted, InvalidParameter, SimbridgeError, UnknownName
from simbridge.evaluation import Evaluation
from simbridge.ik.parameters import SOLVERS
from simbridge.ik.solver import Solver
from simbridge.options import Options
from simbridge.plan import Plan, make_plan
from simbridge.readable import degrees
from simbridge.recording.log import LogWriter
from simbridge.recording.run_directory import RunDirectory, check_same_kinematics
from simbridge.recording.samples import Samples, log_facts
from simbridge.report import write_report
from simbridge.robot import Robot, load_robot
from simbridge.scenario import Scenario, load_scenario
from simbridge.settings import resolved_settings
from simbridge.ur.facts import ControllerFacts

BACKENDS = ("pybullet", "ursim", "real")


@dataclass(frozen=True)
class Prepared:
    """A run that has been planned and checked, and has not moved anything.

    Attributes:
        backend: What it was planned for.
        controller: What the controller of that backend said of itself; None in simulation.
    """

    robot: Robot
    scenario: Scenario
    solver: Solver
    plan: Plan
    peaks: Peaks
    options: Options = field(default_factory=Options)
    backend: str = "pybullet"
    controller: ControllerFacts | None = None


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


Progress = Callable[[ArmState], None]


def prepare(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | None = None,
    solver_changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str = "pybullet",
) -> Prepared:
    """Everything up to the point where an arm would move: load, solve, limit, check.

    For "ursim" and "real" the controller is read first, and the plan is made for the arm that it describes.

    Args:
        scenario: A `Scenario`, a name, a script or a file.
        robot: A `Robot`, a name or a file; the cell's or else ur10 by default.
        solver: Made for the robot; the scenario's settings by default.
        solver_changes: Single settings in place of the scenario's, when no solver is given.
        options: See `Options`.
        backend: "pybullet", "ursim" or "real".

    Raises:
        SimbridgeError: One of its subclasses; nothing was written and nothing has moved.
    """
    controller, arm, options = met_arm(backend, robot, solver, options or Options())
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
        surroundings=options.surroundings,
        replay=earlier,
    )
    return Prepared(arm, scenario, solver, plan, peaks, options, backend, controller)


def met_arm(
    backend: str, robot: Robot | str | os.PathLike[str] | None, solver: Solver | None, options: Options
) -> tuple[ControllerFacts | None, Robot, Options]:
    """The arm behind a backend.

    Returns:
        What its controller says, if it has one; the arm, as the controller describes it; and the options with what the
        controller decides.

    Raises:
        UnknownName, InvalidParameter: There is no such backend, or the arm is not what it should be.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    if backend not in BACKENDS:
        raise UnknownName("backend", backend, BACKENDS)
    arm = equipped_arm(robot, solver, options)
    if backend == "pybullet":
        return None, arm, options
    from simbridge import hardware

    controller = hardware.meet(backend, arm, options)
    built = hardware.as_built(arm, controller, options)
    if solver is not None and built.checksum != arm.checksum:
        needed = "made for this very arm: leave the solver out, or run with the nominal kinematics (--kinematics)"
        raise InvalidParameter("solver", solver.name, needed)
    return controller, built, hardware.settled(backend, controller, options)


def equipped_arm(robot: Robot | str | os.PathLike[str] | None, solver: Solver | None, options: Options) -> Robot:
    """The arm with its TCP and payload, mounted as in its cell: the solver's own, when there is one.

    Raises:
        InvalidParameter: The solver was made for another arm or TCP, or the cell is another arm's.
    """
    if solver is None:
        arm = robot if isinstance(robot, Robot) else load_robot(options.robot if robot is None else robot)
        return options.equipped(arm)
    arm = options.equipped(solver.robot)
    flags = options.cell is None and (options.tcp or options.payload)
    if flags or arm.checksum != solver.robot.checksum:
        needed = "made for a robot with these kinematics, TCP and payload, not beside them"
        raise InvalidParameter("solver", solver.name, needed)
    if isinstance(robot, Robot) and robot.checksum != solver.robot.checksum:
        given = f"{solver.name} for {solver.robot.name}"
        raise InvalidParameter("solver", given, f"made for the same robot and TCP, {robot.name}")
    return arm


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


def open_backend(
    name: str,
    robot: Robot,
    options: Options,
    *,
    plan_facts: Iterable[tuple[str, str]] = (),
    ask: Ask | None = None,
) -> Backend:
    """The backend of that name, not yet entered.

    Args:
        name: "pybullet", "ursim" or "real".
        robot: The arm.
        options: See `Options`.
        plan_facts: What a person is shown of the plan before a real arm moves.
        ask: Asks a person before a real arm moves; None when there is none.

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
            surroundings=options.surroundings,
            servo=None if options.servo == "stiff" else (options.servo_lookahead, options.servo_gain),
        )
    if name in ("ursim", "real"):
        from simbridge import hardware
        from simbridge.backends.rtde import PROFILES, RtdeBackend

        return RtdeBackend(
            robot,
            hardware.host_of(name, options),
            PROFILES[name],
            period=options.period,
            wishes=hardware.wishes(robot, options),
            cell=options.cell,
            surroundings=options.surroundings,
            plan_facts=plan_facts,
            ask=ask,
        )
    raise UnknownName("backend", name, BACKENDS)


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | None = None,
    backend: str = "pybullet",
    out: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> Run:
    """Plan a scenario, execute it, record it, measure it.

    Args:
        scenario, robot, solver, options: As for `prepare`.
        backend: "pybullet", "ursim" or "real".
        out: The run directory to make; one under runs/ by default.
        progress: Called with the arm's state, once a period.
        ask: Shows facts and asks a question before a real arm moves; without it only a cell file can answer.

    Raises:
        SimbridgeError: One of its subclasses. What was logged until then stays readable.
    """
    prepared = prepare(scenario, robot=robot, solver=solver, options=options, backend=backend)
    return execute(prepared, out=out, progress=progress, ask=ask)


def execute(
    prepared: Prepared,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> Run:
    """Execute what `prepare` made. See `run`."""
    plan, robot = prepared.plan, prepared.robot
    arm = open_backend(prepared.backend, robot, prepared.options, plan_facts=_plan_facts(prepared), ask=ask)
    directory = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    settings = resolved_settings(prepared, arm)
    directory.write_settings(settings)
    directory.write_plan(plan)
    samples = Samples(plan)
    try:
        # The log opens after all else and closes before the arm is let go: it holds whatever the arm did.
        with arm, _log(directory, prepared, settings) as log:
            arm.move_to(plan.setpoints[0])
            for state in arm.stream(plan.setpoints):
                log.write(samples.of(state))
                if progress is not None:
                    progress(state)
    except KeyboardInterrupt:
        _conclude_early(directory, "interrupted", prepared.options.tolerance, arm.loop)
        interrupted = Interrupted("The run was interrupted and the arm stopped.")
        interrupted.run_directory = directory.path
        raise interrupted from None
    except Exception as error:
        _conclude_early(directory, f"{type(error).__name__}: {error}", prepared.options.tolerance, arm.loop)
        if isinstance(error, SimbridgeError):
            error.run_directory = directory.path
        raise
    return Run(directory.path, conclude(directory, "completed", prepared.options.tolerance, arm.loop))


def _plan_facts(prepared: Prepared) -> tuple[tuple[str, str], ...]:
    """The plan as a person is shown it before a real arm moves."""
    plan, peaks = prepared.plan, prepared.peaks
    joint = int(np.argmax(peaks.velocity))
    fastest = f"{degrees(float(peaks.velocity[joint]))} degrees/s ({prepared.robot.joint_names[joint]})"
    return (
        ("plan", f"{prepared.scenario.name}, {plan.duration:.1f} s"),
        ("fastest joint", fastest),
        ("fastest tool", f"{peaks.tool_speed:.3f} m/s"),
        (
            "nearest",
            "no shapes to check"
            if peaks.clearance is None
            else f"{peaks.clearance.bodies[0]} to {peaks.clearance.bodies[1]}, {peaks.clearance.distance * 1e3:.0f} mm",
        ),
    )


def _log(directory: RunDirectory, prepared: Prepared, settings: dict[str, Any]) -> LogWriter:
    return LogWriter(
        directory.log_file,
        joint_names=prepared.robot.joint_names,
        period=prepared.plan.period,
        metadata=log_facts(settings),
    )


def _conclude_early(
    directory: RunDirectory, outcome: str, tolerance: tuple[float, float] | None, loop: dict[str, Any] | None
) -> None:
    """Measure what there is of a run that ended early."""
    # What ended the run may also be in the way of measuring it: the first error is the one to tell.
    with contextlib.suppress(Exception):
        conclude(directory, outcome, tolerance, loop)


def conclude(
    directory: RunDirectory,
    outcome: str,
    tolerance: tuple[float, float] | None,
    loop: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure a run from its log, write summary.json and report.html."""
    evaluation = Evaluation.of(directory)
    summary = evaluation.summary(outcome, loop)
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
