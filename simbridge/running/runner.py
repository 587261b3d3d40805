"""Run a scenario: the one place where plan, backend, log, evaluation and report meet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.backend import ArmState, Ask, Backend, Ending, Facts
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import Summary
from simbridge.ik.callable_solver import UserSolver
from simbridge.planning.check import Peaks
from simbridge.planning.options import Options, options_by_name
from simbridge.planning.scenario import Scenario
from simbridge.recording.kinematics_record import describe_kinematics
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import RepeatsRecord
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.robot import Robot
from simbridge.running.run_ending import (
    EndNotVerified,
    explain_early_end,
    explain_interrupted_evaluation,
    finalize,
    record_early_end,
)
from simbridge.running.run_recording import record_run
from simbridge.running.run_samples import PlanSamples, log_facts
from simbridge.running.run_setup import Prepared, prepare
from simbridge.running.signals import defer_signals, end_on_signals
from simbridge.text import degrees, millimetres

if TYPE_CHECKING:  # only a type checker reads them
    from typing_extensions import Unpack

    from simbridge.planning.option_choices import OptionChoices

# The log of a longer run, s, has no MCAP index, which would be a third of it.
MAX_INDEXED_DURATION = 600.0
# Keyword arguments of `run` that are not options.
RUN_KEYWORDS = ("robot", "solver", "backend", "out", "options", "progress", "ask")

Progress = Callable[[ArmState], None]


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        directory: The directory in which it was recorded.
        summary: The content of its summary.json.
    """

    directory: Path
    summary: Summary

    def __repr__(self) -> str:
        summary = self.summary
        error = summary["tracking_error"]
        rms = "not evaluated"
        if error is not None:
            rms = f"{millimetres(error['position_m']['rms'])} mm RMS"
        return (
            f"<Run of {summary['scenario']} on {summary['robot']} with {summary['solver']}: "
            f"{summary['outcome']}, {rms}, in {self.directory}>"
        )

    def evaluation(self) -> Evaluation:
        """Return its arrays, read from the log."""
        return Evaluation.of(self.directory)


def run(  # noqa: PLR0913 (a public call, by keyword)
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: UserSolver | None = None,
    backend: str = SIMULATION,
    out: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
    **choices: Unpack[OptionChoices],
) -> Run:
    """Plan a scenario, execute it, record it, and evaluate it.

        run("circle", robot="ur10e", solver="damped-least-squares", feedforward="on")

    Args:
        scenario: A `Scenario`, a name, a script or a file; or the directory of a live session.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: The name of a solver, or `"my_ik:step"` for a function in my_ik.py; a step function
            `(q, target) -> q`, or a factory `(robot) -> step`; settings, such as
            `DampedLeastSquaresParameters(iterations=5)`; or a `Solver` that was made for the robot.
            The scenario's by default.
        backend: "pybullet", "mujoco", "ursim" or "real"; a simulation by default.
        out: The run directory to create; one under runs/ by default.
        options: Options of the run; the defaults if there are none.
        progress: Function that is called with the arm's state once per period.
        ask: Function that displays facts and asks for confirmation before a real arm moves; without
            it, only a cell file can confirm.
        choices: Options by name, in addition to `options`: plant="plant.toml", tolerance=(1e-3,
            0.01). They are the fields of `Options`.

    Raises:
        SimbridgeError: One of its subclasses. What was logged until then remains readable.
    """
    prepared = prepare(
        scenario,
        robot=robot,
        solver=solver,
        options=options_by_name(options, choices, RUN_KEYWORDS),
        backend=backend,
    )
    return execute(prepared, out=out, progress=progress, ask=ask)


@end_on_signals()
def execute(
    prepared: Prepared,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
    page: bool = True,
) -> Run:
    """Execute a prepared run, and write its page if that is wanted. See `run`."""
    arm = open_backend(prepared, ask=ask)
    directory = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    begin(prepared, directory)
    with record_early_end(arm, lambda: directory, prepared.options.tolerance), arm:
        stream_plan(prepared, arm, directory, progress)
    return finish(prepared, arm, directory, page=page)


def open_backend(prepared: Prepared, *, more_facts: Facts = (), ask: Ask | None = None) -> Backend:
    """Make the backend of a prepared run, not yet entered.

    It displays facts about the plan before a real arm moves.

    Args:
        prepared: The run.
        more_facts: Further facts, displayed after the plan's.
        ask: Function that asks for confirmation: see `run`.
    """
    facts = (*plan_facts(prepared), *more_facts)
    kind = backend_class(prepared.backend)
    arm = kind(prepared.robot, prepared.options, plan_facts=facts, ask=ask)
    arm.planned_for = prepared.controller
    return arm


def plan_facts(prepared: Prepared) -> Facts:
    """Return facts about the plan, displayed before a real arm moves."""
    plan = prepared.plan
    peaks = prepared.peaks
    joint = int(np.argmax(peaks.velocity))
    joint_speed = degrees(float(peaks.velocity[joint]))

    facts = [("plan", f"{prepared.scenario.name}, {plan.duration:.1f} s")]
    read_as = prepared.scenario.trajectory.read_as
    if read_as:
        facts.append(("read as", read_as))
    facts += [
        ("fastest joint", f"{joint_speed} degrees/s ({prepared.robot.joint_names[joint]})"),
        ("fastest tool", f"{peaks.tool_speed:.3f} m/s"),
        ("nearest", _nearest_bodies(peaks)),
        ("kinematics", describe_kinematics(prepared.kinematics)),
    ]
    if peaks.command_lead is not None:
        lead = (
            f"on: commands lead the arm by up to {peaks.command_lead:.3f} rad, and step at "
            "corners. this has not been tried on a real controller"
        )
        facts.append(("feedforward", lead))
    return tuple(facts)


def _nearest_bodies(peaks: Peaks) -> str:
    if peaks.clearance is None:
        return "no shapes to check"
    first, second = peaks.clearance.bodies
    return f"{first} to {second}, {peaks.clearance.distance * 1e3:.0f} mm"


def begin(
    prepared: Prepared, directory: RunDirectory, *, repeats: RepeatsRecord | None = None
) -> None:
    """Write settings, plan and meshes.

    Args:
        prepared: The run.
        directory: The run's directory, in which they are still missing.
        repeats: The number and the count of a run that is one of several; None for a single run.
    """
    record = record_run(prepared)
    record.repeats = repeats
    directory.write_settings(record)
    directory.write_plan(prepared.plan.as_arrays())
    directory.write_meshes(draw_arm(prepared.robot))


def stream_plan(
    prepared: Prepared, arm: Backend, directory: RunDirectory, progress: Progress | None
) -> None:
    """Move an entered arm to the plan's start and through the plan, and log every state."""
    plan = prepared.plan
    samples = PlanSamples(plan)
    log = LogWriter(
        directory.new_log_file(),
        joint_names=prepared.robot.joint_names,
        period=plan.period,
        metadata=log_facts(directory.settings()),
        indexed=plan.duration <= MAX_INDEXED_DURATION,
    )

    # The log is closed before the arm is released, so it is complete.
    with log:
        arm.move_to(plan.sent[0])
        try:
            with contextlib.closing(arm.stream(plan.sent)) as states:
                for state in states:
                    with defer_signals():
                        log.write(samples.of(state))
                    if progress is not None:
                        progress(state)
        except KeyboardInterrupt:
            # Log the states that had come until then.
            for state in arm.unread():
                with defer_signals():
                    log.write(samples.of(state))
            raise


def finish(prepared: Prepared, arm: Backend, directory: RunDirectory, *, page: bool = True) -> Run:
    """Evaluate a run whose plan was executed to its end.

    Raises:
        EndNotVerified: The controller was not seen to have ended the motion.
        Interrupted: The evaluation was interrupted; the run remains complete.
        OutputError: A file cannot be written.
        UnforeseenError: The evaluation failed by an error that is not one of simbridge's.
    """
    ending = arm.ending or Ending()
    try:
        summary = finalize(directory, "completed", prepared.options.tolerance, arm=arm, page=page)
        if not (ending.arm_at_rest and ending.script_ended):
            raise EndNotVerified(ending)
        return Run(directory.path, summary)
    except KeyboardInterrupt as error:
        raise explain_interrupted_evaluation(error, arm, directory.path) from None
    except Exception as error:
        reported = explain_early_end(error, ending, directory, subject="run").reported
        if reported is error:
            raise
        raise reported from error
