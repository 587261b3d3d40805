"""The page of repeated runs: one row for each, with a link to its report, and the ISO 9283-style figures of all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from simbridge.evaluation.repeatability import IsoFigures, RepeatsSummary
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.rendering import render
from simbridge.report.verdict import source_of, with_deviation
from simbridge.text import counted


def write_repeats_page(
    directory: RunDirectory, summary: RepeatsSummary, external: Mapping[str, Any] | None = None
) -> None:
    """Write report.html into the directory of the repeats.

    Args:
        directory: That directory.
        summary: The content of its summary.json.
        external: The content of its evaluation.json, if there is an external measurement.

    Raises:
        OutputError: The page cannot be written.
    """
    directory.write_report(repeats_page(summary, external))


def repeats_page(summary: RepeatsSummary, external: Mapping[str, Any] | None = None) -> str:
    """The whole page as HTML; the arguments are those of `write_repeats_page`."""
    views = [summary["iso_9283_style"], *([] if external is None else [external["iso_9283_style"]])]
    return render(
        "repeats.html",
        title=f"{summary['scenario']}: {summary['completed']} runs",
        summary=summary,
        headline=repeats_headline(summary),
        iso=views,
        missing=missing_figures(views),
    )


def repeats_headline(summary: RepeatsSummary) -> str:
    """What was predicted or measured over all completed runs, for which plant, in a sentence that can be quoted."""
    # A run that ended early says nothing about the scenario as a whole.
    completed = (run["tracking_error"] for run in summary["runs"] if run["outcome"] == "completed")
    errors = [error["position_m"]["rms"] for error in completed if error]
    if not errors:
        return f"No run of {summary['scenario']} completed."
    mean, deviation = statistics.fmean(errors), statistics.stdev(errors) if len(errors) > 1 else None
    size, number = with_deviation(mean, deviation), counted(len(errors), "run")
    text = f"{source_of(summary)}: {size} RMS tracking error on {summary['scenario']}"
    return f"{text} (mean {'and standard deviation ' if '±' in size else ''}of {number})."


def missing_figures(views: Sequence[IsoFigures]) -> list[str]:
    """Why figures are missing, every sentence once; one that does not hold for all sources names its source.

    Args:
        views: `iso_9283_style` of summary.json, and of evaluation.json where there is one.
    """
    sentences = []
    for sentence in dict.fromkeys(sentence for view in views for sentence in view["missing"]):
        sources = [view["witness"] for view in views if sentence in view["missing"]]
        sentences.append(sentence if len(sources) == len(views) else f"{sources[0].capitalize()}: {sentence}")
    return sentences
