"""compare.html: several runs side by side, with the same pieces as the report of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from simbridge.evaluation.comparison import Comparison
from simbridge.evaluation.iso_figures import IsoFigures
from simbridge.evaluation.metrics.samples import statistics
from simbridge.evaluation.metrics.tracking import (
    POSE_PARTS,
    TRACKING_ERROR,
    Delays,
    ErrorPart,
    known_parts,
    part_delays,
)
from simbridge.evaluation.summary import Summary
from simbridge.recording.settings_text import flatten
from simbridge.report.charts import Panel
from simbridge.report.compare_charts import (
    chart_of,
    contour_panels,
    error_panels,
    paths_of,
    run_colour,
    run_legend,
    separation_panels,
)
from simbridge.report.compare_columns import MotionColumn, motion_columns
from simbridge.report.compare_headline import comparison_extrapolation, comparison_headline
from simbridge.report.drawing import drawing_style
from simbridge.report.over_time import wide_chart
from simbridge.report.palette import ERRORS, REFERENCE, TRACKING
from simbridge.report.paths import three_views
from simbridge.report.rendering import LegendEntry, render
from simbridge.report.verdict import backend_of

ALWAYS_DIFFERENT = (
    "versions.",
    "shapes",
    "kinematics.placements",
    "controller.kinematics_checksum",
    "solver.host_step_time_s",
    "solver.notes",
)
"""Beginnings of the names of settings that differ between any two runs."""

# Heights of a chart of several panels, and of one.
PANELS_HEIGHT = 330
PANEL_HEIGHT = 220


def compare_page(comparison: Comparison, figures: IsoFigures | None = None) -> str:
    """Return the whole page as HTML.

    Args:
        comparison: The runs.
        figures: ISO 9283-style figures, when the runs are cycles of one motion on one arm.
    """
    legend = run_legend(comparison)
    separate = zip(legend, comparison.separation, strict=True)
    separation_legend = [entry for entry, separation in separate if separation is not None]

    parts = _known_parts(comparison)
    columns = motion_columns(comparison.runs)
    delay_columns, delays = _delays(comparison)
    scenario = comparison.runs[0].summary["scenario"]
    with drawing_style():
        drawings = _drawings(comparison)

    return render(
        "compare.html",
        title=f"{scenario}: {len(comparison.runs)} runs compared",
        scenario=scenario,
        headline=comparison_headline(comparison),
        extrapolation=comparison_extrapolation(comparison),
        warnings=comparison.warnings,
        runs=_run_rows(comparison, delays),
        labels=comparison.differences.labels,
        main_part=comparison.main_part,
        parts_of_error=[(part, ERRORS[part.name]) for part in parts],
        largest=_largest_error(comparison, parts),
        longest=_longest_delay(delays),
        tracking_colour=TRACKING,
        legend=legend,
        path_legend=[LegendEntry("reference", REFERENCE, "thick"), *legend],
        known=separation_legend,
        delay_columns=delay_columns,
        motion=columns,
        motion_heads=_motion_heads(columns),
        motion_groups=_motion_groups(columns),
        metrics=comparison.metrics,
        iso=figures,
        differences=_differences(comparison),
        **drawings,
    )


def _motion_heads(columns: Sequence[MotionColumn]) -> list[str]:
    """Return the headings of the table of motion, without that of the runs."""
    heads = []
    for column in columns:
        heads += [column.unit, column.limit] if column.limit else [column.unit]
    return heads


def _motion_groups(columns: Sequence[MotionColumn]) -> list[tuple[str, int]]:
    """Return the headings above those of `_motion_heads`, each with its number of columns."""
    groups = [("", 1)]
    groups += [(column.name, 2 if column.limit else 1) for column in columns]
    return groups


def _drawings(comparison: Comparison) -> dict[str, Any]:
    """Return the paths, and the charts over time."""
    # In the views the pointer shows the values of the path that is drawn last: the last run's.
    last_run_times = comparison.runs[-1].evaluation.log.plan_time
    views = three_views(paths_of(comparison), last_run_times)

    charts = {
        "error_chart": (
            "time",
            f"{comparison.main_part.name.capitalize()} error of every run over time",
            error_panels(comparison),
        ),
        "contour_chart": (
            "contour",
            "Contour error and lag of every run over time",
            contour_panels(comparison),
        ),
        "separation_chart": (
            "separation",
            "Separation from the first run over time",
            separation_panels(comparison),
        ),
    }
    drawings: dict[str, Any] = {"views": views}
    for key, (name, label, panels) in charts.items():
        drawings[key] = _chart(comparison, name, label, panels)
    return drawings


def _chart(comparison: Comparison, name: str, label: str, panels: Sequence[Panel]) -> Markup:
    """Return panels over the time on the trajectory; empty without panels.

    Args:
        comparison: The runs.
        name: Identifies the chart on the page.
        label: The alternative text, without the panels' units.
        panels: The panels.
    """
    if not panels:
        return Markup()
    units = dict.fromkeys("degrees" if panel.unit == "°" else "mm" for panel in panels)
    height = PANELS_HEIGHT if len(panels) > 1 else PANEL_HEIGHT
    chart = chart_of(comparison, panels, height)
    return wide_chart(name, f"{label}, in {' and '.join(units)}", chart)


def _known_parts(comparison: Comparison) -> list[ErrorPart]:
    """Return the tracking error and its parts, as far as a run has them."""
    return [TRACKING_ERROR, *known_parts(*(run.summary for run in comparison.runs))]


def _delays(comparison: Comparison) -> tuple[list[str], list[list[float | None]]]:
    """Return the titles of the columns of delays, and each run's delays, s.

    A column in which no run has a delay is left out: a motion that does not turn has no delay of
    its rotation.
    """
    known = {}
    for title, column in _delay_columns(comparison):
        if any(delay is not None for delay in column):
            known[title] = column

    rows = [[column[number] for column in known.values()] for number in range(len(comparison.runs))]
    return list(known), rows


def _delay_columns(comparison: Comparison) -> Iterator[tuple[str, list[float | None]]]:
    """Yield the title of each column of delays, and the delay of each run, s."""
    for part in POSE_PARTS:
        by_run = [part_delays(run.summary, part) for run in comparison.runs]
        for source in Delays._fields:
            title = f"{part}, {source.replace('_', ' ')}"
            yield title, [getattr(delays, source) for delays in by_run]


def _run_rows(
    comparison: Comparison, delays: Sequence[Sequence[float | None]]
) -> list[dict[str, Any]]:
    """Return the values that the tables show of each run, by name.

    Args:
        comparison: The runs.
        delays: The delays of each run, s.
    """
    rows = []
    for number, run in enumerate(comparison.runs):
        separation = comparison.separation[number]
        rows.append(
            {
                "name": run.name,
                "label": comparison.differences.labels[number],
                "colour": run_colour(number),
                "about": about(run.summary),
                "summary": run.summary,
                "delays": delays[number],
                "separation": None if separation is None else statistics(separation[1].distance),
                "lag": comparison.lag[number],
                "prediction": comparison.prediction[number],
            }
        )
    return rows


def _largest_error(comparison: Comparison, parts: Sequence[ErrorPart]) -> float:
    """Return the largest RMS translation of any part in any run, m."""
    sizes = []
    for run in comparison.runs:
        for part in parts:
            error = run.summary[part.key]
            if error:
                sizes.append(error["position_m"]["rms"])
    return max(sizes)


def _longest_delay(delays: Sequence[Sequence[float | None]]) -> float:
    """Return the longest delay of any run, s; 0 if none is known."""
    lengths = [abs(delay or 0.0) for row in delays for delay in row]
    return max(lengths, default=0.0)


def about(summary: Summary) -> str:
    """Return a run in one line: its arm, solver, and what followed its commands."""
    servo = summary["servo"]
    if summary["feedforward"]:
        servo += " and feedforward"
    return f"{summary['robot']}, {summary['solver']}, {servo} ({backend_of(summary)})"


def _differences(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Return the settings that are not the same in all runs, with each run's value."""
    settings = [
        dict(flatten(run.evaluation.directory.settings_tables())) for run in comparison.runs
    ]
    names = dict.fromkeys(name for run_settings in settings for name in run_settings)

    rows = []
    for name in names:
        values = [run_settings.get(name, "–") for run_settings in settings]
        if len(set(values)) > 1 and not name.startswith(ALWAYS_DIFFERENT):
            rows.append((name, values))
    return rows
