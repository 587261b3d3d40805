"""Run a scenario: the one place where plan, backend, log, evaluation and report meet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.backend import ArmState, Ask, Backend, Ending, Facts, cause_of
from simbridge.errors import Cause, Interrupted, SimbridgeError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import EndedBy, Summary, summarize
from simbridge.ik.callable_solver import StepFunction
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario
from simbridge.quoting import shell_quoted
from simbridge.recording.kinematics_record import describe_kinematics
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import RepeatsRecord, ToleranceRecord
from simbridge.report import write_report
from simbridge.robot.meshes import drawing_of
from simbridge.robot.robot import Robot
from simbridge.running.recorder import Samples, log_facts
from simbridge.running.run_recording import record_run
from simbridge.running.run_setup import Prepared, prepare
from simbridge.running.signals import ended_by_signals, ended_words, number_of, uninterrupted
from simbridge.text import degrees

_AT_REST = "The arm is at rest."

# The log of a longer run has no MCAP index, which would be a third of it.
INDEXED = 600.0  # s

Progress = Callable[[ArmState], None]


@dataclass(frozen=True)
class Run:
    """A finished run: its directory, and the content of its summary.json."""

    directory: Path
    summary: Summary

    def evaluation(self) -> Evaluation:
        """Its arrays, read from the log."""
        return Evaluation.of(RunDirectory.open(self.directory))


class EndNotVerified(SimbridgeError, RuntimeError):
    """A run completed, and its summary and report are written, but the arm was not seen at rest with our script ended.

    Attributes:
        arm_at_rest, script_ended: Whether that was seen, of the arm and of our script; None if it could not be.
    """

    cause = "completed"

    def __init__(self, ending: Ending) -> None:
        self.arm_at_rest, self.script_ended = ending.arm_at_rest, ending.script_ended
        seen = f" ({'; '.join(ending.evidence)})" if ending.evidence else ""
        super().__init__(
            f"The run is complete, but its end on the controller could not be verified{seen}."
        )


class StoppedAtTheEnd(SimbridgeError, RuntimeError):
    """The controller stopped the arm while a run or session was being ended, as by Ctrl-C.

    Attributes:
        evidence: What was seen, as clauses.
    """

    def __init__(self, words: str, cause: Cause, evidence: tuple[str, ...]) -> None:
        self.cause: Cause = cause
        self.evidence = evidence
        stop = f"While it ended, the controller stopped the arm: {cause.replace('_', ' ')} ({'; '.join(evidence)})."
        super().__init__(f"{words} {stop}".lstrip())


def stop_at_the_end(ending: Ending | None, words: str) -> StoppedAtTheEnd | None:
    """The error for a stop that the controller showed while a run was being ended; None if it showed none.

    Args:
        ending: What was seen.
        words: What had ended the run before, as a sentence, or "".
    """
    if ending is None or not ending.shown:
        return None
    error = StoppedAtTheEnd(words, cause_of(KeyboardInterrupt(), ending), tuple(ending.evidence))
    error.aftermath = rest_words(ending)
    return error


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | StepFunction | None = None,
    backend: str = SIMULATION,
    out: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> Run:
    """Plan a scenario, execute it, record it, and evaluate it.

    Args:
        scenario, robot, solver, options, backend: As for `prepare`.
        out: The run directory to create; one under runs/ by default.
        progress: Called with the arm's state once per period.
        ask: Displays facts and asks for confirmation before a real arm moves; without it, only a cell file can confirm.

    Raises:
        SimbridgeError: One of its subclasses. What was logged until then remains readable.
    """
    prepared = prepare(scenario, robot=robot, solver=solver, options=options, backend=backend)
    return execute(prepared, out=out, progress=progress, ask=ask)


@ended_by_signals()
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
    with record_early_end(prepared, arm, lambda: directory), arm:
        stream_plan(prepared, arm, directory, progress)
    return finish(prepared, arm, directory, page=page)


def open_backend(prepared: Prepared, *, more_facts: Facts = (), ask: Ask | None = None) -> Backend:
    """The backend of a prepared run, not yet entered; it displays facts about the plan before a real arm moves."""
    facts = (*plan_facts(prepared), *more_facts)
    arm = backend_class(prepared.backend)(
        prepared.robot, prepared.options, plan_facts=facts, ask=ask
    )
    arm.planned_for = prepared.controller
    return arm


def plan_facts(prepared: Prepared) -> Facts:
    """Facts about the plan, displayed before a real arm moves."""
    plan, peaks = prepared.plan, prepared.peaks
    joint = int(np.argmax(peaks.velocity))
    fastest = (
        f"{degrees(float(peaks.velocity[joint]))} degrees/s ({prepared.robot.joint_names[joint]})"
    )
    nearest = "no shapes to check"
    if peaks.clearance is not None:
        one, other = peaks.clearance.bodies
        nearest = f"{one} to {other}, {peaks.clearance.distance * 1e3:.0f} mm"
    feedforward: Facts = ()
    if peaks.command_lead is not None:
        lead = (
            f"on: commands lead the arm by up to {peaks.command_lead:.3f} rad, and step at corners"
        )
        feedforward = (
            ("feedforward", f"{lead}. simbridge has not been tried with them on a real controller"),
        )
    read_as = prepared.scenario.trajectory.read_as
    return (
        ("plan", f"{prepared.scenario.name}, {plan.duration:.1f} s"),
        *((("read as", read_as),) if read_as else ()),
        ("fastest joint", fastest),
        ("fastest tool", f"{peaks.tool_speed:.3f} m/s"),
        ("nearest", nearest),
        ("kinematics", describe_kinematics(prepared.kinematics)),
        *feedforward,
    )


def begin(
    prepared: Prepared,
    directory: RunDirectory,
    *,
    repeats: RepeatsRecord | None = None,
) -> None:
    """Write settings, plan and meshes; of one of several runs also which of them it is."""
    record = record_run(prepared)
    record.repeats = repeats
    directory.write_settings(record)
    directory.write_plan(prepared.plan.as_arrays())
    directory.write_meshes(drawing_of(prepared.robot))


def stream_plan(
    prepared: Prepared, arm: Backend, directory: RunDirectory, progress: Progress | None
) -> None:
    """Move an entered arm to the plan's start and through the plan, and log every state."""
    plan, samples = prepared.plan, Samples(prepared.plan)
    log = LogWriter(
        directory.new_log_file(),
        joint_names=prepared.robot.joint_names,
        period=plan.period,
        metadata=log_facts(directory.settings()),
        indexed=plan.duration <= INDEXED,
    )
    # The log is closed before the arm is released, so it is complete.
    with log:
        arm.move_to(plan.sent[0])
        try:
            with contextlib.closing(arm.stream(plan.sent)) as states:
                for state in states:
                    with uninterrupted():
                        log.write(samples.of(state))
                    if progress is not None:
                        progress(state)
        except KeyboardInterrupt:
            for state in arm.unread():
                with uninterrupted():
                    log.write(samples.of(state))
            raise


def finish(prepared: Prepared, arm: Backend, directory: RunDirectory, *, page: bool = True) -> Run:
    """Evaluate a run whose plan was executed to its end.

    Raises:
        EndNotVerified: The controller was not seen to have ended the motion.
        Interrupted: The evaluation was interrupted; the run remains complete.
        OutputError: A file cannot be written.
    """
    ending = arm.ending or Ending()
    try:
        run = Run(
            directory.path,
            finalize(directory, "completed", prepared.options.tolerance, arm, page=page),
        )
        if not (ending.arm_at_rest and ending.script_ended):
            raise EndNotVerified(ending)
        return run
    except KeyboardInterrupt as error:
        raise evaluation_interrupted(error, arm, directory.path) from None
    except Exception as error:
        error.aftermath, error.run_directory = rest_words(ending), directory.path  # type: ignore[attr-defined]
        raise


@contextlib.contextmanager
def record_early_end(
    prepared: Prepared, arm: Backend, unfinished: Callable[[], RunDirectory | None]
) -> Iterator[None]:
    """Record in the summary what ended a run early, and name its directory in the error; the arm has been left by then.

    `unfinished` gives the directory of the run that has not completed; None if there is none.

    Raises:
        Interrupted: Instead of KeyboardInterrupt.
    """

    def record(outcome: str, error: BaseException, reported: Exception) -> None:
        directory = unfinished()
        if directory is None:
            return
        reported.run_directory = directory.path  # type: ignore[attr-defined]
        # Whatever ended the run may also prevent its evaluation: the first error is the one to report.
        try:
            with contextlib.suppress(Exception):
                finalize(directory, outcome, prepared.options.tolerance, arm, error)
        except KeyboardInterrupt:
            add_aftermath(
                reported, f"The evaluation was interrupted; {_finish_words(directory.path)}"
            )

    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt as error:
        first = _ended_before(error)
        if first is None:
            stop = stop_at_the_end(arm.ending, f"The run was {ended_words(error)}.")
            if stop is not None:
                record(f"{type(stop).__name__}: {stop}", stop, stop)
                raise stop from None
        words = (
            f"The run was {ended_words(error)}."
            if first is None
            else f"{first} Then it was {ended_words(error)}."
        )
        interrupted = Interrupted(f"{words} {rest_words(arm.ending)}", number_of(error))
        interrupted.cause = cause_of(first or error, None)
        outcome = interrupted.cause if first is None else f"{type(first).__name__}: {first}"
        record(outcome, first or error, interrupted)
        raise interrupted from None
    except Exception as error:
        error.aftermath = rest_words(arm.ending)  # type: ignore[attr-defined]
        record(f"{type(error).__name__}: {error}", error, error)
        raise


def _ended_before(error: BaseException) -> SimbridgeError | None:
    """What had ended a run when a signal came while its arm was stopped; None if the signal ended it."""
    before = error.__context__
    while before is not None and not isinstance(before, SimbridgeError):
        before = before.__context__
    return before


def add_aftermath(error: BaseException, sentence: str) -> None:
    """Add to what is printed after an error."""
    error.aftermath = f"{getattr(error, 'aftermath', '')} {sentence}".lstrip()  # type: ignore[attr-defined]


def evaluation_interrupted(
    error: KeyboardInterrupt, arm: Backend, path: Path, subject: str = "run is"
) -> Interrupted:
    """The error for Ctrl-C while what has completed (subject) is evaluated: how to finish it."""
    rest = rest_words(arm.ending or Ending())
    seen = " and the arm is at rest." if rest == _AT_REST else f". {rest}"
    interrupted = Interrupted(
        f"The {subject} complete{seen} Only the evaluation was interrupted; {_finish_words(path)}",
        number_of(error),
    )
    interrupted.cause, interrupted.run_directory = "completed", path
    return interrupted


def _finish_words(path: Path) -> str:
    return f"finish it with `simbridge report {shell_quoted(path)}`."


def rest_words(ending: Ending | None) -> str:
    """Whether the arm is at rest, as a sentence."""
    if ending is None:
        return "Nothing was moved."
    if ending.arm_at_rest is None:
        return "Whether the arm is at rest could not be seen. Watch it."
    if not ending.arm_at_rest:
        return "The arm is still moving. Watch it."
    if ending.script_ended is None:
        return "The arm is at rest, but whether our control script has ended could not be seen: look at the pendant."
    if not ending.script_ended:
        return (
            "The arm is at rest, but our control script is still on the controller (paused or running): stop it at the "
            "pendant."
        )
    return _AT_REST


def record_end(
    directory: RunDirectory, outcome: str, arm: Backend, error: BaseException | None = None
) -> EndedBy:
    """Write a summary.json that says how a run ended, which is kept whatever becomes of its evaluation.

    Args:
        outcome: "completed", or what ended it.
        arm: Where it ran, which has been left.
        error: What ended it early.

    Raises:
        OutputError: The file cannot be written, or the directory was deleted while the run went on.
    """
    ending = arm.ending
    said = [] if error is None else [f"{type(error).__name__}: {error}".rstrip(": ")]
    ended_by: EndedBy = {
        "cause": cause_of(error, ending),
        "evidence": said + ([] if ending is None else ending.evidence),
        "at_s": None if ending is None else ending.at_s,
        "arm_at_rest": None if ending is None else ending.arm_at_rest,
    }
    with directory.needed(), uninterrupted():
        directory.write_summary({"outcome": outcome, "ended_by": ended_by, "loop": arm.loop})
    return ended_by


def finalize(
    directory: RunDirectory,
    outcome: str,
    tolerance: tuple[float, float] | None,
    arm: Backend,
    error: BaseException | None = None,
    *,
    page: bool = True,
) -> Summary:
    """Evaluate a run from its log, and write summary.json and, with `page`, report.html; returns the former's content.

    Args:
        tolerance: Largest RMS of the tracking error, m and rad; None for no tolerance.
        directory, outcome, arm, error: As for `record_end`.

    Raises:
        OutputError: A file cannot be written, or the directory was deleted while the run went on.
    """
    ended_by = record_end(directory, outcome, arm, error)
    limits = None if tolerance is None else ToleranceRecord(*tolerance)
    with directory.needed():
        evaluation = Evaluation.of(directory)
        if evaluation.has_samples and arm.capabilities.simulated_time:
            ended_by["at_s"] = float(evaluation.log.stamp[-1] - evaluation.log.stamp[0])
        summary = summarize(evaluation, outcome, ended_by=ended_by, loop=arm.loop, tolerance=limits)
        directory.write_summary(summary)
        if page and (summary["samples"] or summary["inputs"] is not None):
            write_report(evaluation, summary)
    return summary
