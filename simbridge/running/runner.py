"""Run a scenario: the one place where the parts meet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from simbridge.backends.backend import ArmState, Backend
from simbridge.backends.operator_confirmation import Ask
from simbridge.errors import Interrupted, InvalidParameter, UnknownName
from simbridge.evaluation.evaluation import Evaluation, judged
from simbridge.ik.callable_solver import CallableSolver, StepFunction
from simbridge.ik.solver import Solver
from simbridge.planning.check import Peaks
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan, make_plan
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.recording.log import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.report import write_report
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import chosen_solver, equipped_arm, replayed
from simbridge.running.samples import Samples, log_facts
from simbridge.running.settings import resolved_settings
from simbridge.text import degrees
from simbridge.ur.facts import ControllerFacts

BACKENDS = ("pybullet", "ursim", "real")
# A longer run's log goes without MCAP's index, which would be a third of it.
INDEXED = 600.0  # s


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

    @property
    def solver_notes(self) -> tuple[str, ...]:
        """What is special about the solver's way, as sentences (see `Solver.notes`): singular poses in closed form."""
        return self.solver.notes(self.plan.targets, self.plan.solution[0])


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
    solver: Solver | StepFunction | None = None,
    solver_name: str = "",
    solver_changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str = "pybullet",
) -> Prepared:
    """Everything up to the point where an arm would move: load, solve, limit, check.

    For "ursim" and "real" the controller is read first, and the plan is made for the arm that it describes.

    Args:
        scenario: A `Scenario`, a name, a script or a file.
        robot: A `Robot`, a name or a file; the cell's or else ur10 by default.
        solver: Made for the robot, or a function (see `CallableSolver`); the scenario's settings by default.
        solver_name: A name in `SOLVERS`, when no solver is given; the scenario's settings then only hold if they are of
            that solver.
        solver_changes: Single settings in place of those, when no solver is given.
        options: See `Options`.
        backend: "pybullet", "ursim" or "real".

    Raises:
        SimbridgeError: One of its subclasses; nothing was written and nothing has moved.
    """
    own = solver if isinstance(solver, Solver) else None
    controller, arm, options = met_arm(backend, robot, own, options or Options())
    if solver is not None:
        own = own or CallableSolver(arm, cast(StepFunction, solver))
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, arm, options.reading)
    earlier = None
    if options.plan is not None:
        changes = {"solver": solver_name, **(solver_changes or {})} if solver_name else solver_changes
        earlier, own, options = replayed(scenario, arm, own, changes, options)
    made = own or chosen_solver(scenario, arm, solver_name, solver_changes or {})
    plan, peaks = make_plan(
        arm,
        scenario,
        made,
        period=options.period,
        hold=options.hold,
        speed_scale=options.speed_scale,
        on_limits=options.on_limits,
        sampling=options.sampling,
        max_tool_speed=options.max_tool_speed,
        collision_scene=options.collision_scene,
        replay=earlier,
    )
    return Prepared(arm, scenario, made, plan, peaks, options, backend, controller)


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
    from simbridge.running import controller_setup

    controller = controller_setup.meet(backend, arm, options)
    built = controller_setup.with_calibration(arm, controller, options)
    if solver is not None and built.checksum != arm.checksum:
        needed = "made for this very arm: leave the solver out, or run with the nominal kinematics (--kinematics)"
        raise InvalidParameter("solver", solver.name, needed)
    return controller, built, controller_setup.settled(backend, controller, options)


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
            collision_scene=options.collision_scene,
            servo=None if options.servo == "stiff" else (options.servo_lookahead, options.servo_gain),
        )
    if name in ("ursim", "real"):
        from simbridge.backends.controller import PROFILES, RtdeBackend
        from simbridge.running import controller_setup

        return RtdeBackend(
            robot,
            controller_setup.host_of(name, options),
            PROFILES[name],
            period=options.period,
            wishes=controller_setup.wishes(robot, options),
            cell=options.cell,
            collision_scene=options.collision_scene,
            plan_facts=plan_facts,
            ask=ask,
        )
    raise UnknownName("backend", name, BACKENDS)


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | StepFunction | None = None,
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
    arm = open_backend(prepared.backend, prepared.robot, prepared.options, plan_facts=plan_facts(prepared), ask=ask)
    directory = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    begin(prepared, arm, directory)
    with record_early_end(prepared, arm, lambda: directory), arm:
        drive(prepared, arm, directory, progress)
    try:
        return Run(directory.path, finalize(directory, "completed", prepared.options.tolerance, arm.loop))
    except Exception as error:
        error.run_directory = directory.path  # type: ignore[attr-defined]
        raise


def begin(
    prepared: Prepared, arm: Backend, directory: RunDirectory, *, repeats: Mapping[str, int] | None = None
) -> None:
    """Write down what is going to be done; of one of several runs also its `number`, and the `count` of all."""
    settings = resolved_settings(prepared, arm)
    directory.write_settings(settings if repeats is None else settings | {"repeats": dict(repeats)})
    directory.write_plan(prepared.plan.as_arrays())


def drive(prepared: Prepared, arm: Backend, directory: RunDirectory, progress: Progress | None) -> None:
    """Bring an arm that has been entered to the plan's start, and through the plan, logging all that it does."""
    plan = prepared.plan
    samples = Samples(plan)
    # The log closes before the arm is let go: it holds whatever the arm did.
    with _log(directory, prepared) as log:
        arm.move_to(plan.setpoints[0])
        with contextlib.closing(arm.stream(plan.setpoints)) as states:
            for state in states:
                log.write(samples.of(state))
                if progress is not None:
                    progress(state)


@contextlib.contextmanager
def record_early_end(prepared: Prepared, arm: Backend, directory: Callable[[], RunDirectory]) -> Iterator[None]:
    """Whatever ends a run early is told in its summary, and says where the run is.

    Args:
        prepared: What is run.
        arm: Let go of by then.
        directory: Asked for the run that ended.

    Raises:
        Interrupted: In place of KeyboardInterrupt.
    """
    try:
        yield
    except KeyboardInterrupt:
        _conclude_early(directory(), "interrupted", prepared.options.tolerance, arm.loop)
        interrupted = Interrupted("The run was interrupted and the arm stopped.")
        interrupted.run_directory = directory().path
        raise interrupted from None
    except Exception as error:
        _conclude_early(directory(), f"{type(error).__name__}: {error}", prepared.options.tolerance, arm.loop)
        error.run_directory = directory().path  # type: ignore[attr-defined]
        raise


def plan_facts(prepared: Prepared) -> tuple[tuple[str, str], ...]:
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


def _log(directory: RunDirectory, prepared: Prepared) -> LogWriter:
    return LogWriter(
        directory.log_file,
        joint_names=prepared.robot.joint_names,
        period=prepared.plan.period,
        metadata=log_facts(directory.settings()),
        indexed=prepared.plan.duration <= INDEXED,
    )


def _conclude_early(
    directory: RunDirectory, outcome: str, tolerance: tuple[float, float] | None, loop: dict[str, Any] | None
) -> None:
    """Measure what there is of a run that ended early."""
    # What ended the run may also be in the way of measuring it: the first error is the one to tell.
    with contextlib.suppress(Exception):
        finalize(directory, outcome, tolerance, loop)


def finalize(
    directory: RunDirectory,
    outcome: str,
    tolerance: tuple[float, float] | None,
    loop: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure a run from its log, write summary.json and report.html."""
    evaluation = Evaluation.of(directory)
    summary = evaluation.summary(outcome, loop)
    asked = None if tolerance is None else {"position_m": tolerance[0], "rotation_rad": tolerance[1]}
    summary |= judged(summary, asked)
    directory.write_summary(summary)
    if summary["samples"]:
        write_report(evaluation, summary)
    return summary
