"""The page of repeated runs.

It has one row for each run, with a link to its report, and the ISO 9283-style figures of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from simbridge.evaluation.iso_figures import IsoFigures
from simbridge.evaluation.metrics.samples import Statistics
from simbridge.evaluation.repeats_summary import RepeatsSummary
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.rendering import render
from simbridge.report.verdict import describe_errors, source_of, with_deviation
from simbridge.text import counted


def write_repeats_page(
    directory: RunDirectory, summary: RepeatsSummary, external: Mapping[str, Any] | None = None
) -> None:
    """Write report.html into the directory of the repeats.

    Args:
        directory: Directory of the repeats.
        summary: The content of its summary.json.
        external: The content of its evaluation.json, if there is an external measurement.

    Raises:
        OutputError: The page cannot be written.
    """
    directory.write_report(repeats_page(summary, external))


def repeats_page(summary: RepeatsSummary, external: Mapping[str, Any] | None = None) -> str:
    """Return the whole page as HTML; the arguments are those of `write_repeats_page`."""
    figures = [summary["iso_9283_style"]]
    if external is not None:
        figures.append(external["iso_9283_style"])
    return render(
        "repeats.html",
        title=f"{summary['scenario']}: {summary['completed']} runs",
        summary=summary,
        headline=repeats_headline(summary),
        iso=figures,
        missing=missing_figures(figures),
    )


def repeats_headline(summary: RepeatsSummary) -> str:
    """Return a sentence about the errors over all completed runs, and their plant.

    It is a sentence that can be quoted.
    """
    # A run that ended early says nothing about the scenario as a whole.
    errors = []
    for run in summary["runs"]:
        error = run["tracking_error"]
        if run["outcome"] == "completed" and error:
            errors.append(error["position_m"])
    if not errors:
        return f"No run of {summary['scenario']} completed."
    return mean_headline(source_of(summary), summary["scenario"], errors)


def mean_headline(source: str, scenario: str, errors: Sequence[Statistics]) -> str:
    """Return the mean of the RMS errors of runs as a sentence.

    Their standard deviation is given where it changes a digit.

    Args:
        source: Who predicted or measured them (see `source_of`).
        scenario: The scenario's name.
        errors: The runs' position errors, m.
    """
    values = [error["rms"] for error in errors]
    deviation = stdev(values) if len(values) > 1 else None
    size = describe_errors(errors, with_deviation(fmean(values), deviation))
    kind = "mean and standard deviation" if "±" in size else "mean"
    return f"{source}: {size} on {scenario} ({kind} of {counted(len(errors), 'run')})."


def missing_figures(views: Sequence[IsoFigures]) -> list[str]:
    """Return the reasons for missing figures, every sentence once.

    One that does not hold for all sources names its source.

    Args:
        views: `iso_9283_style` of summary.json, and of evaluation.json where there is one.
    """
    sources: dict[str, list[str]] = {}
    for view in views:
        for sentence in dict.fromkeys(view["missing"]):
            sources.setdefault(sentence, []).append(view["witness"])

    sentences = []
    for sentence, witnesses in sources.items():
        if len(witnesses) < len(views):
            sentence = f"{witnesses[0].capitalize()}: {sentence}"
        sentences.append(sentence)
    return sentences
