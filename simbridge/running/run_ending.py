"""The end of a run or session: how it ended, what was recorded of that, and the error to report.

Whatever ends a motion, the arm is brought to rest by the backend first. Then summary.json says what
ended it, the log is evaluated as far as it goes, and one error carries the cause, the aftermath
(whether the arm is at rest) and the directory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from simbridge.backends.backend import Backend, Capabilities, Ending, cause_of
from simbridge.errors import Cause, Interrupted, SimbridgeError, UnforeseenError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import EndedBy, Summary, summarize
from simbridge.json_output import versioned
from simbridge.quoting import shell_quoted
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import ToleranceRecord
from simbridge.report import write_report
from simbridge.running.signals import (
    defer_signals,
    describe_signal,
    is_interrupt,
    signal_number,
)

AT_REST = "The arm is at rest."


class EndNotVerified(SimbridgeError, RuntimeError):
    """A run completed, but its end on the controller was not seen.

    Its summary and report are written.

    Attributes:
        arm_at_rest: Whether the arm was seen at rest; None if that could not be seen.
        script_ended: Whether our script was seen to have ended; None if that could not be seen.
    """

    cause = "completed"

    def __init__(self, ending: Ending) -> None:
        self.arm_at_rest = ending.arm_at_rest
        self.script_ended = ending.script_ended
        evidence = f" ({'; '.join(ending.evidence)})" if ending.evidence else ""
        super().__init__(
            "The run is complete, but whether it ended properly on the controller "
            f"could not be verified{evidence}."
        )


class StoppedAtTheEnd(SimbridgeError, RuntimeError):
    """The controller stopped the arm while a run or session was being ended, as by Ctrl-C.

    Attributes:
        evidence: What was seen, as clauses.
    """

    def __init__(self, sentence: str, cause: Cause, evidence: tuple[str, ...]) -> None:
        self.cause: Cause = cause
        self.evidence = evidence
        stop = (
            f"As it ended, the controller stopped the arm: {cause.replace('_', ' ')} "
            f"({'; '.join(evidence)})."
        )
        super().__init__(f"{sentence} {stop}".lstrip())


def stop_at_the_end(ending: Ending | None, sentence: str) -> StoppedAtTheEnd | None:
    """Make the error for a stop that the controller showed while a run was being ended.

    Args:
        ending: What was seen of the end; None if nothing had been sent.
        sentence: What had ended the run before, as a sentence, or "".

    Returns:
        The error; None if the controller showed no stop.
    """
    if ending is None or not ending.shown:
        return None
    error = StoppedAtTheEnd(sentence, cause_of(KeyboardInterrupt(), ending), tuple(ending.evidence))
    error.aftermath = describe_rest(ending)
    return error


def describe_rest(ending: Ending | None) -> str:
    """Return a sentence that says whether the arm is at rest.

    Args:
        ending: How the session on the controller ended; None if nothing was moved.
    """
    if ending is None:
        return "Nothing was moved."
    if ending.arm_at_rest is None:
        return "It could not be determined whether the arm is at rest. Watch it."
    if not ending.arm_at_rest:
        return "The arm is still moving. Watch it."
    if ending.script_ended is None:
        return (
            "The arm is at rest, but it could not be determined whether simbridge's control "
            "script has ended: check the pendant."
        )
    if not ending.script_ended:
        return (
            "The arm is at rest, but simbridge's control script is still on the controller "
            "(paused or running): stop it at the pendant."
        )
    return AT_REST


def reportable_error(error: BaseException, subject: str) -> SimbridgeError:
    """Return the error that says what ended a run or session.

    It can carry what is known of the end.

    Args:
        error: The error that ended it. An error of simbridge's is returned itself; any other error
            is to be the `__cause__` of the one that is returned.
        subject: "run" or "session".
    """
    if isinstance(error, SimbridgeError):
        return error
    unforeseen = UnforeseenError(subject, _name_and_message(error))
    unforeseen.cause = cause_of(error, None)
    return unforeseen


def _name_and_message(error: BaseException) -> str:
    """Describe an error as in "ConnectionLost: Lost the controller"."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def add_aftermath(error: SimbridgeError, sentence: str) -> None:
    """Add a sentence to what is printed after an error."""
    error.aftermath = f"{error.aftermath} {sentence}".lstrip()


class EarlyEnd(NamedTuple):
    """The early end of a run or session: its error, its outcome, and the error to raise.

    Attributes:
        error: The error that ended it, the evidence of summary.json.
        outcome: What ended it, as text for summary.json.
        reported: The error to raise. It says where what was recorded is and, here or in its
            message, whether the arm is at rest.
    """

    error: BaseException
    outcome: str
    reported: SimbridgeError


def explain_early_end(
    error: BaseException,
    ending: Ending | None,
    directory: RunDirectory | None,
    *,
    subject: str,
    before: BaseException | None = None,
) -> EarlyEnd:
    """Tell what ended a run or session early, and attach to its error what is known of the end.

    Args:
        error: The error or signal that left it.
        ending: What was seen of the end; None if nothing had been sent.
        directory: The directory of what was recorded; None if nothing was.
        subject: "run" or "session".
        before: The error that had ended it when the signal came; None if the signal ended it.
    """
    if is_interrupt(error):
        end = _explain_signal(error, before, ending, subject)
    else:
        reported = reportable_error(error, subject)
        reported.aftermath = describe_rest(ending)
        end = EarlyEnd(error, _name_and_message(error), reported)

    if directory is not None:
        end.reported.run_directory = directory.path
    return end


def _explain_signal(
    signal: KeyboardInterrupt,
    before: BaseException | None,
    ending: Ending | None,
    subject: str,
) -> EarlyEnd:
    """Tell apart a signal that ended a run, a stop by the controller after it, and an error before.

    See `explain_early_end`.
    """
    what_came = describe_signal(signal)
    sentences = f"The {subject} was {what_came}."
    outcome: str = cause_of(signal, None)

    if before is None:
        stop = stop_at_the_end(ending, sentences)
        if stop is not None:
            return EarlyEnd(stop, _name_and_message(stop), stop)
    else:
        sentences = f"{before} Then it was {what_came}."
        outcome = _name_and_message(before)

    interrupted = Interrupted(f"{sentences} {describe_rest(ending)}", signal_number(signal))
    interrupted.cause = cause_of(before or signal, ending)
    return EarlyEnd(before or signal, outcome, interrupted)


@contextlib.contextmanager
def record_early_end(
    arm: Backend,
    unfinished: Callable[[], RunDirectory | None],
    tolerance: tuple[float, float] | None,
) -> Iterator[None]:
    """Record in the summary what ended a run early, and name its directory in the error.

    The `with` block of the backend must be inside of this one, so that it has ended by then.

    Args:
        arm: The backend on which it runs.
        unfinished: Function that returns the directory of the run that has not completed; None if
            there is none.
        tolerance: Largest RMS of the tracking error, m and rad; None for no tolerance.

    Raises:
        Interrupted: The block ended by KeyboardInterrupt.
        StoppedAtTheEnd: The controller stopped the arm after Ctrl-C.
        UnforeseenError: The block ended by an error that is not one of simbridge's.
    """
    try:
        yield
    except Interrupted:
        raise
    except (KeyboardInterrupt, Exception) as error:
        directory = unfinished()
        before = _error_before(error) if is_interrupt(error) else None
        end = explain_early_end(error, arm.ending, directory, subject="run", before=before)
        _summarize_early_end(end, directory, tolerance, arm=arm)
        if end.reported is error:
            raise
        raise end.reported from (None if is_interrupt(error) else error)


def _summarize_early_end(
    end: EarlyEnd,
    directory: RunDirectory | None,
    tolerance: tuple[float, float] | None,
    *,
    arm: Backend,
) -> None:
    """Write the summary of a run that ended early.

    Args:
        end: What ended the run.
        directory: The run's directory; without one there is nothing to write.
        tolerance: Largest RMS of the tracking error, m and rad; None for no tolerance.
        arm: The backend on which it ran, after the end of its `with` block.
    """
    if directory is None:
        return

    # Whatever ended the run may also prevent its evaluation: the first error is the one to report.
    try:
        with contextlib.suppress(Exception):
            finalize(directory, end.outcome, tolerance, arm=arm, error=end.error)
    except KeyboardInterrupt:
        add_aftermath(
            end.reported, f"The evaluation was interrupted; {_finish_advice(directory.path)}"
        )


def _error_before(error: BaseException) -> SimbridgeError | None:
    """Return what had ended a run when a signal came while its arm was stopped.

    None if the signal itself ended it.
    """
    before = error.__context__
    while before is not None and not isinstance(before, SimbridgeError):
        before = before.__context__
    return before


def explain_interrupted_evaluation(
    error: KeyboardInterrupt, arm: Backend, path: Path, subject: str = "run is"
) -> Interrupted:
    """Return the error for Ctrl-C while what has completed is evaluated: how to finish it.

    Args:
        error: The signal.
        arm: The backend on which it ran.
        path: The directory of the run or runs.
        subject: "run is" or "runs are".
    """
    rest = describe_rest(arm.ending or Ending())
    and_rest = " and the arm is at rest." if rest == AT_REST else f". {rest}"
    interrupted = Interrupted(
        f"The {subject} complete{and_rest} Only the evaluation was interrupted; "
        f"{_finish_advice(path)}",
        signal_number(error),
    )
    interrupted.cause = "completed"
    interrupted.run_directory = path
    return interrupted


def _finish_advice(path: Path) -> str:
    return f"complete it with `simbridge report {shell_quoted(path)}`."


class EndedArm(Protocol):
    """A backend, or the driver of a session, as it is read after its end."""

    @property
    def capabilities(self) -> Capabilities:
        """See `Backend.capabilities`."""
        ...

    @property
    def ending(self) -> Ending | None:
        """See `Backend.ending`."""
        ...

    @property
    def loop(self) -> dict[str, float | int] | None:
        """See `Backend.loop`."""
        ...


def record_end(
    directory: RunDirectory, outcome: str, arm: EndedArm, error: BaseException | None = None
) -> EndedBy:
    """Write a summary.json that says how a run ended.

    It is kept whatever becomes of the evaluation.

    Args:
        directory: The run's directory.
        outcome: "completed", or what ended it.
        arm: The backend or driver with which it ran, after its end.
        error: The error that ended it early; None if none did.

    Raises:
        OutputError: The file cannot be written, or the directory was deleted while the run went on.
    """
    # The evidence: the error, and what was seen.
    ending = arm.ending
    evidence = []
    if error is not None:
        evidence.append(_name_and_message(error))
    if ending is not None:
        evidence += ending.evidence

    ended_by: EndedBy = {
        "cause": cause_of(error, ending),
        "evidence": evidence,
        "at_s": None if ending is None else ending.at_s,
        "arm_at_rest": None if ending is None else ending.arm_at_rest,
    }
    # If the directory was deleted meanwhile, the error says so. A signal waits until the file is
    # written as a whole.
    with directory.needed(), defer_signals():
        facts = {"outcome": outcome, "ended_by": ended_by, "loop": arm.loop}
        directory.write_summary(versioned(facts))
    return ended_by


def finalize(
    directory: RunDirectory,
    outcome: str,
    tolerance: tuple[float, float] | None,
    *,
    arm: EndedArm,
    error: BaseException | None = None,
    page: bool = True,
) -> Summary:
    """Evaluate a run from its log, and write summary.json and report.html.

    Args:
        directory: The run's directory.
        outcome: "completed", or what ended it.
        tolerance: Largest RMS of the tracking error, m and rad; None for no tolerance.
        arm: The backend or driver with which it ran, after its end.
        error: The error that ended it early; None if none did.
        page: Whether report.html is written.

    Returns:
        The content of summary.json.

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
