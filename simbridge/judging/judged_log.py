"""Puts together all that is said about a log: its judgement, tolerances and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simbridge.judging import wording
from simbridge.judging.judgement import Examination, LogJudgement, examine
from simbridge.judging.log import ControllerLog, GoalResult
from simbridge.judging.tolerance_wording import add_verdict, result_sentences, tolerance_sentences
from simbridge.judging.tolerances import ToleranceReport, Tolerances, compare_tolerances
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class JudgedLog:
    """Everything that is said about a log: an entry of `simbridge judge --json`.

    Attributes:
        log: The log as the user named it.
        headline: The sentence that says what the log shows.
        findings: Sentences on tolerances, and on goals that did not succeed.
        judgement: Motions, delays, errors and events.
        tolerances: Comparison with the tolerances of a joint trajectory controller.
        results: How goals ended, as the controller reported it.
    """

    log: str
    headline: str
    findings: tuple[str, ...]
    judgement: LogJudgement
    tolerances: ToleranceReport
    results: tuple[GoalResult, ...]


def judge_log(log: ControllerLog, robots: Sequence[Robot], tolerances: Tolerances) -> JudgedLog:
    """Judge a log.

    Args:
        log: The log.
        robots: Arms that it may be of.
        tolerances: Tolerances that the user named.
    """
    return describe(examine(log, robots), tolerances)


def describe(examination: Examination, tolerances: Tolerances) -> JudgedLog:
    """Return everything that is said about a log that was examined.

    Args:
        examination: The log with its judgement and signals.
        tolerances: Tolerances that the user named.
    """
    log = examination.log
    judgement = examination.judgement
    if _was_moved_by_hand(judgement):
        report = ToleranceReport(reference="", tolerances=tolerances, worst=None, violations=())
    else:
        report = compare_tolerances(log, tolerances, examination.signals)

    return JudgedLog(
        log=log.name,
        headline=add_verdict(wording.headline(judgement), report),
        findings=(*tolerance_sentences(report), *result_sentences(log.results, report)),
        judgement=judgement,
        tolerances=report,
        results=log.results,
    )


def _was_moved_by_hand(judgement: LogJudgement) -> bool:
    """Return whether every motion was freedrive: the controller's targets followed the arm."""
    kinds = {motion.kind.name for motion in judgement.motions}
    return kinds == {"freedrive"}
