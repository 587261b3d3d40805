"""The page of repeated runs: one row for each, with a link to its report, and the ISO 9283-style figures of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simbridge.evaluation.repeatability import IsoFigures
from simbridge.evaluation.repeats import RepeatsSummary
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.rendering import render
from simbridge.text import NO_BREAK, millimetres


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
        headline=_headline(summary),
        iso=views,
        missing=missing_figures(views),
    )


def _headline(summary: RepeatsSummary) -> str:
    text = f"{summary['completed']} of {summary['repeats']} runs completed"
    # A run that ended early says nothing about the scenario as a whole.
    completed = (run["tracking_error"] for run in summary["runs"] if run["outcome"] == "completed")
    errors = [error["position_m"]["rms"] for error in completed if error]
    if not errors:
        return f"{text}."
    least, most = millimetres(min(errors)), millimetres(max(errors))
    return f"{text}, with {least if least == most else f'{least} to {most}'}{NO_BREAK}mm RMS tracking error."


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
