"""Pages of several runs: compare.html, with the same pieces as the report of one run; and the page of repeated runs.

The page of repeats has one row for each run, with a link to its report, and the ISO 9283-style figures of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import itemgetter
from statistics import fmean, stdev
from typing import Any

import numpy as np
from markupsafe import Markup

from simbridge.evaluation.comparison import Comparison
from simbridge.evaluation.metrics.samples import Statistics, statistics
from simbridge.evaluation.metrics.tracking import (
    ERROR_PARTS,
    POSE_PARTS,
    TRACKING_ERROR,
    Delays,
    part_delays,
)
from simbridge.evaluation.repeatability import IsoFigures, RepeatsSummary
from simbridge.evaluation.summary import Summary
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.charts import Chart, Line, Panel
from simbridge.report.drawing import drawing_style
from simbridge.report.over_time import (
    CONTOUR_PANELS,
    ERROR_PANELS,
    ROUNDING,
    broad,
    linear_panel,
    peak_and_rms,
    shown_range,
    worth_showing,
)
from simbridge.report.palette import ERRORS, REFERENCE, RUN_DASHES, RUNS, TRACKING
from simbridge.report.paths import Path, three_views
from simbridge.report.rendering import LegendEntry, render
from simbridge.report.settings_list import flattened
from simbridge.report.verdict import (
    SMALL_LENGTH,
    backend_of,
    error_words,
    is_small,
    source_of,
    with_deviation,
)
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, counted, millimetres

# Settings that differ between any two runs.
_ALWAYS_DIFFERENT = (
    "versions.",
    "shapes",
    "kinematics.placements",
    "controller.kinematics_checksum",
)


def compare_page(comparison: Comparison, figures: IsoFigures | None = None) -> str:
    """The whole page as HTML.

    Args:
        comparison: The runs.
        figures: ISO 9283-style figures, when the runs are cycles of one motion on one arm.
    """
    scenario = comparison.runs[0].summary["scenario"]
    legend = [
        LegendEntry(run.name, _colour(number), _dash(number))
        for number, run in enumerate(comparison.runs)
    ]
    # Those of the plant's part as far as a run has them.
    parts = [
        part
        for part in (TRACKING_ERROR, *ERROR_PARTS)
        if any(run.summary[part.key] for run in comparison.runs)
    ]
    delays = [
        [delay for part in POSE_PARTS for delay in part_delays(run.summary, part)]
        for run in comparison.runs
    ]
    columns = [
        f"{part}, {source.replace('_', ' ')}" for part in POSE_PARTS for source in Delays._fields
    ]
    # A motion that does not turn has no delay of its rotation.
    known = [any(of_run[i] is not None for of_run in delays) for i in range(len(columns))]
    delays, columns = [[*compress(of_run, known)] for of_run in delays], [*compress(columns, known)]
    runs = [
        {
            "name": run.name,
            "colour": _colour(number),
            "about": about(run.summary),
            "summary": run.summary,
            "delays": delays[number],
            "separation": None if separation is None else statistics(separation[1].distance),
            "lag": lag,
            "prediction": prediction,
        }
        for number, (run, separation, lag, prediction) in enumerate(
            zip(
                comparison.runs,
                comparison.separation,
                comparison.lag,
                comparison.prediction,
                strict=True,
            )
        )
    ]
    with drawing_style():
        drawn = {
            "views": _paths(comparison),
            "error_chart": _error_chart(comparison),
            "contour_chart": _contour_chart(comparison),
            "separation_chart": _separation_chart(comparison),
        }
    return render(
        "compare.html",
        title=f"{scenario}: {len(runs)} runs compared",
        scenario=scenario,
        headline=comparison_headline(comparison),
        warnings=comparison.warnings,
        runs=runs,
        parts_of_error=[(part, ERRORS[part.name]) for part in parts],
        largest=max(
            error["position_m"]["rms"]
            for run in comparison.runs
            for part in parts
            if (error := run.summary[part.key])
        ),
        longest=max((abs(delay or 0.0) for of_run in delays for delay in of_run), default=0.0),
        tracking_colour=TRACKING,
        legend=legend,
        path_legend=[LegendEntry("reference", REFERENCE, "thick"), *legend],
        known=[
            entry
            for entry, found in zip(legend, comparison.separation, strict=True)
            if found is not None
        ],
        delay_columns=columns,
        iso=figures,
        differences=_differences(comparison),
        **drawn,
    )


def comparison_headline(comparison: Comparison) -> str:
    """What was compared, and the range of the errors."""
    runs = comparison.runs
    errors = sorted(
        (run.summary["tracking_error"]["position_m"] for run in runs), key=itemgetter("rms")
    )
    ends = [
        f"below {SMALL_LENGTH:g}" if is_small(error) else millimetres(error["rms"])
        for error in errors
    ]
    size = error_words(errors, f"{' to '.join(dict.fromkeys((ends[0], ends[-1])))}{NO_BREAK}mm")
    return f"{runs[0].summary['scenario']}, {len(runs)} runs: {size}."


def about(summary: Summary) -> str:
    """What a run is, in one line: its label, arm, solver, and what followed its commands."""
    servo = f"{summary['servo']}{' and feedforward' if summary['feedforward'] else ''}"
    words = (
        summary["label"],
        summary["robot"],
        summary["solver"],
        f"{servo} ({backend_of(summary)})",
    )
    return ", ".join(filter(None, words))


def _colour(number: int) -> str:
    return RUNS[number % len(RUNS)]


def _dash(number: int) -> str:
    return RUN_DASHES[number % len(RUN_DASHES)]


def _paths(comparison: Comparison) -> list[Any]:
    paths = [
        Path("reference", comparison.runs[0].evaluation.reference[:, :3] * 1e3, REFERENCE, 8.0)
    ]
    for number, run in enumerate(comparison.runs):
        positions = run.evaluation.attained[:, :3] * 1e3
        paths.append(Path(run.name, positions, _colour(number), max(1.4, 4.5 - 1.6 * number)))
    return three_views(paths, comparison.runs[-1].evaluation.log.plan_time)


def _chart(comparison: Comparison, name: str, label: str, panels: Sequence[Panel]) -> Markup:
    """Panels over the time on the trajectory, which waits where a controller does; the label is without their units."""
    units = dict.fromkeys("degrees" if panel.unit == "°" else "mm" for panel in panels)
    times = [run.evaluation.log.plan_time for run in comparison.runs]
    clock = np.array([min(float(t[0]) for t in times), max(float(t[-1]) for t in times)])
    height = 330 if len(panels) > 1 else 220
    return broad(
        name,
        f"{label}, in {' and '.join(units)}",
        Chart(panels, clock, height, axis="Time on the trajectory (s)"),
    )


def _lines(comparison: Comparison, values: Sequence[Array]) -> list[Line]:
    # The first is the widest, so that it shows on both sides of one that lies on it.
    return [
        Line(
            run.name,
            _colour(i),
            run.evaluation.log.plan_time,
            value,
            2.6 if i == 0 else 1.5,
            _dash(i),
        )
        for i, (run, value) in enumerate(zip(comparison.runs, values, strict=True))
    ]


def _error_chart(comparison: Comparison) -> Markup:
    panels = []
    for title, unit, kind, scale in ERROR_PANELS:
        errors = [getattr(run.evaluation.errors.tracking, kind) * scale for run in comparison.runs]
        lines = [line for line in _lines(comparison, errors) if line.values.max() > ROUNDING]
        panels.append(
            Panel(title, lines, shown_range(map(peak_and_rms, errors)), unit, logarithmic=True)
        )
    return _chart(
        comparison, "time", "Tracking error of every run over time", worth_showing(panels)
    )


def _contour_chart(comparison: Comparison) -> Markup:
    panels = []
    for title, kind, _ in CONTOUR_PANELS:
        values = [getattr(run.evaluation.contour, kind) * 1e3 for run in comparison.runs]
        panels.append(linear_panel(title, f"{NO_BREAK}mm", _lines(comparison, values)))
    return _chart(comparison, "contour", "Contour error and lag of every run over time", panels)


def _separation_chart(comparison: Comparison) -> Markup:
    """The distance of each run from the first; nothing where no run has a time in common with it."""
    if not any(found is not None for found in comparison.separation):
        return Markup()
    panels = []
    titles = ("TCP separation (mm)", "Rotation difference (°)")
    for title, (_, unit, kind, scale) in zip(titles, ERROR_PANELS, strict=True):
        lines = [
            Line(run.name, _colour(i), found[0], getattr(found[1], kind) * scale, 1.5, _dash(i))
            for i, (run, found) in enumerate(
                zip(comparison.runs, comparison.separation, strict=True)
            )
            if found is not None
        ]
        panels.append(linear_panel(title, unit, lines, 1e-6))
    return _chart(
        comparison, "separation", "Separation from the first run over time", worth_showing(panels)
    )


def _differences(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """The settings that are not the same in all runs."""
    every = [dict(flattened(run.evaluation.directory.settings_tables())) for run in comparison.runs]
    rows = []
    for name in dict.fromkeys(name for settings in every for name in settings):
        values = [settings.get(name, "–") for settings in every]
        if len(set(values)) > 1 and not name.startswith(_ALWAYS_DIFFERENT):
            rows.append((name, values))
    return rows


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
    errors = [error["position_m"] for error in completed if error]
    if not errors:
        return f"No run of {summary['scenario']} completed."
    return mean_headline(source_of(summary), summary["scenario"], errors)


def mean_headline(source: str, scenario: str, errors: Sequence[Statistics]) -> str:
    """The mean of the RMS errors of runs, m, and their standard deviation where it changes a digit."""
    values = [error["rms"] for error in errors]
    size = with_deviation(fmean(values), stdev(values) if len(values) > 1 else None)
    size, number = error_words(errors, size), counted(len(errors), "run")
    text = f"{source}: {size} on {scenario}"
    return f"{text} (mean {'and standard deviation ' if '±' in size else ''}of {number})."


def missing_figures(views: Sequence[IsoFigures]) -> list[str]:
    """Why figures are missing, every sentence once; one that does not hold for all sources names its source.

    Args:
        views: `iso_9283_style` of summary.json, and of evaluation.json where there is one.
    """
    sentences = []
    for sentence in dict.fromkeys(sentence for view in views for sentence in view["missing"]):
        sources = [view["witness"] for view in views if sentence in view["missing"]]
        sentences.append(
            sentence if len(sources) == len(views) else f"{sources[0].capitalize()}: {sentence}"
        )
    return sentences
