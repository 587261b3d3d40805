"""Puts a comparison with tolerances into words."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.judging.log import GoalResult
from simbridge.judging.tolerances import (
    MAX_REPORT_DELAY_S,
    ToleranceReport,
    Violation,
    describe_result,
)
from simbridge.text import NO_BREAK, fixed, join_words, milliradians, plain, significant

# Largest number of violations with a sentence each; further ones share a sentence.
MAX_SHOWN_VIOLATIONS = 3
# Name of a cause that the log does not show.
UNKNOWN = "unknown"


def tolerance_sentences(report: ToleranceReport) -> list[str]:
    """Return the sentences on tolerances: one for each violation, or one that there was none.

    The list is empty if the user named no tolerance and the log has no violation.
    """
    is_asked = has_tolerances(report)
    if report.worst is None:
        reason = "the log does not show both where the joints should have been and where they were"
        return [f"No tolerance can be checked: {reason}."] if is_asked else []
    if report.violations:
        return _violation_sentences(report)
    if not is_asked:
        return []

    worst = report.worst
    return [
        f"A trajectory controller with {_named_tolerances(report)} would not have given up: "
        f"the largest error to {report.reference} was {milliradians(worst.error_rad)}{NO_BREAK}mrad"
        f" ({worst.joint}, {fixed(worst.at_s, 2)}{NO_BREAK}s)."
    ]


def add_verdict(headline: str, report: ToleranceReport) -> str:
    """Return the headline of a log, completed by when and why a trajectory controller gave up.

    Args:
        headline: The sentence that says what the log shows.
        report: The comparison with tolerances.
    """
    if not report.violations:
        return headline
    first = report.violations[0]
    verb = "gave up" if first.was_reported else "would have given up"
    cause = f"for an {UNKNOWN} reason" if first.cause.name == UNKNOWN else f"({first.cause.name})"
    verdict = f"a trajectory controller {verb} at {fixed(first.at_s, 2)}{NO_BREAK}s {cause}"
    return f"{headline.removesuffix('.')}; {verdict}."


def _violation_sentences(report: ToleranceReport) -> list[str]:
    """Return a sentence for each of the first violations, and how many more there are."""
    shown = report.violations[:MAX_SHOWN_VIOLATIONS]
    sentences = [violation_sentence(violation, report.reference) for violation in shown]
    more = report.violations[MAX_SHOWN_VIOLATIONS:]
    if more:
        instants = join_words([f"{fixed(violation.at_s, 2)}{NO_BREAK}s" for violation in more])
        sentences.append(f"Likewise at {instants} (--json has their causes).")
    return sentences


def has_tolerances(report: ToleranceReport) -> bool:
    """Return whether the user named a tolerance."""
    return report.tolerances.path_rad is not None or report.tolerances.goal_rad is not None


def _named_tolerances(report: ToleranceReport) -> str:
    """Return the tolerances that the user named: "a path tolerance of 0.2 rad"."""
    tolerances = report.tolerances
    named = {"path": tolerances.path_rad, "goal": tolerances.goal_rad}
    return " and ".join(
        f"a {kind} tolerance of {plain(value)}{NO_BREAK}rad"
        for kind, value in named.items()
        if value is not None
    )


def violation_sentence(violation: Violation, reference: str) -> str:
    """Return the sentence that says when and why a trajectory controller gave up, or would have.

    Args:
        violation: The violation.
        reference: Reference with which the measured joints were compared, as a noun phrase.
    """
    verb = "gave up" if violation.was_reported else "would have given up"
    reason = "no reason recorded" if violation.kind == "unknown" else f"{violation.kind} tolerance"
    parts = [
        f"A trajectory controller {verb} at {fixed(violation.at_s, 2)}{NO_BREAK}s ({reason}): "
        f"{violation.joint} was {_error_phrase(violation, reference)}"
    ]
    if violation.warning_s is not None:
        parts.append(_warning_clause(violation, violation.warning_s))
    if violation.report:
        parts.append(f"it reported {violation.report}")
    cause = violation.cause
    return f"{'; '.join(parts)}. Cause: {cause.name} ({cause.evidence})."


def _error_phrase(violation: Violation, reference: str) -> str:
    """Return the error as a phrase: "210 mrad from the setpoints (tolerance 200 mrad)"."""
    error = f"{milliradians(violation.error_rad)}{NO_BREAK}mrad from {reference}"
    if violation.tolerance_rad is None:
        return f"{error} (the tolerance was not recorded)"
    tolerance = f"{milliradians(violation.tolerance_rad)}{NO_BREAK}mrad"
    return f"{error} (tolerance {tolerance})"


def _warning_clause(violation: Violation, warning_s: float) -> str:
    """Return a clause on how long before a violation it could be seen coming.

    Args:
        violation: The violation.
        warning_s: Time from half of the tolerance to the violation, s.
    """
    threshold = "half of the tolerance" if violation.tolerance_rad is not None else "half of that"
    if violation.growth_rad_s is None:
        return f"it reached {threshold} in the same sample"
    warning = f"{significant(warning_s)}{NO_BREAK}s"
    growth = f"{significant(violation.growth_rad_s)}{NO_BREAK}rad/s"
    return f"it passed {threshold} {warning} before, growing by {growth}"


def result_sentences(results: Sequence[GoalResult], report: ToleranceReport) -> list[str]:
    """Return a sentence for each goal that did not succeed and is not among the violations."""
    reported_s = [violation.at_s for violation in report.violations if violation.was_reported]
    sentences = []
    for result in results:
        is_among_violations = any(
            abs(result.time - at_s) <= MAX_REPORT_DELAY_S for at_s in reported_s
        )
        if result.outcome == "succeeded" or is_among_violations:
            continue
        description = describe_result(result) or "no error was recorded"
        sentences.append(
            f"A goal was {result.outcome} at {fixed(result.time, 2)}{NO_BREAK}s: {description}."
        )
    return sentences
