"""compare.html: several runs side by side, with the same pieces as the report of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
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
from simbridge.report.charts import Chart, Line, Panel
from simbridge.report.drawing import drawing_style
from simbridge.report.over_time import (
    CONTOUR_PANELS,
    ERROR_PANELS,
    ROUNDING,
    linear_panel,
    logarithmic_range,
    peak_and_rms,
    wide_chart,
    worth_showing,
)
from simbridge.report.palette import ERRORS, REFERENCE, RUN_DASHES, RUNS, TRACKING
from simbridge.report.paths import DrawnPath, three_views
from simbridge.report.rendering import LegendEntry, render
from simbridge.report.settings_list import flatten
from simbridge.report.verdict import SMALL_LENGTH, backend_of, describe_errors, is_small
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, millimetres

ALWAYS_DIFFERENT = (
    "versions.",
    "shapes",
    "kinematics.placements",
    "controller.kinematics_checksum",
)
"""Beginnings of the names of settings that differ between any two runs."""

# Widths of lines over time: the first run's shows on both sides of one that lies on it.
FIRST_WIDTH = 2.6
OTHER_WIDTH = 1.5

# Widths of the paths: each one is narrower than the one below it, down to the smallest.
REFERENCE_PATH_WIDTH = 8.0
FIRST_PATH_WIDTH = 4.5
PATH_WIDTH_STEP = 1.6
MIN_PATH_WIDTH = 1.4

# Heights of a chart of several panels, and of one.
PANELS_HEIGHT = 330
PANEL_HEIGHT = 220

# Smaller separations are rounding, mm or degrees.
MIN_SEPARATION = 1e-6


def compare_page(comparison: Comparison, figures: IsoFigures | None = None) -> str:
    """Return the whole page as HTML.

    Args:
        comparison: The runs.
        figures: ISO 9283-style figures, when the runs are cycles of one motion on one arm.
    """
    legend = [
        LegendEntry(run.name, _colour(number), _dash(number))
        for number, run in enumerate(comparison.runs)
    ]
    separate = zip(legend, comparison.separation, strict=True)
    separation_legend = [entry for entry, separation in separate if separation is not None]

    parts = _known_parts(comparison)
    delay_columns, delays = _delays(comparison)
    scenario = comparison.runs[0].summary["scenario"]
    with drawing_style():
        charts = {
            "views": _paths(comparison),
            "error_chart": _error_chart(comparison),
            "contour_chart": _contour_chart(comparison),
            "separation_chart": _separation_chart(comparison),
        }

    return render(
        "compare.html",
        title=f"{scenario}: {len(comparison.runs)} runs compared",
        scenario=scenario,
        headline=comparison_headline(comparison),
        warnings=comparison.warnings,
        runs=_run_rows(comparison, delays),
        parts_of_error=[(part, ERRORS[part.name]) for part in parts],
        largest=_largest_error(comparison, parts),
        longest=_longest_delay(delays),
        tracking_colour=TRACKING,
        legend=legend,
        path_legend=[LegendEntry("reference", REFERENCE, "thick"), *legend],
        known=separation_legend,
        delay_columns=delay_columns,
        metrics=comparison.metrics,
        iso=figures,
        differences=_differences(comparison),
        **charts,
    )


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
                "colour": _colour(number),
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
    """Return the longest delay of any run, s; 0 where none is known."""
    lengths = [abs(delay or 0.0) for row in delays for delay in row]
    return max(lengths, default=0.0)


def comparison_headline(comparison: Comparison) -> str:
    """Return a sentence about the runs compared, and the range of their errors."""
    runs = comparison.runs
    errors = [run.summary["tracking_error"]["position_m"] for run in runs]
    errors.sort(key=itemgetter("rms"))

    sizes = []
    for error in (errors[0], errors[-1]):
        below = f"below {SMALL_LENGTH:g}"
        sizes.append(below if is_small(error) else millimetres(error["rms"]))
    extent = " to ".join(dict.fromkeys(sizes))
    size = describe_errors(errors, f"{extent}{NO_BREAK}mm")
    return f"{runs[0].summary['scenario']}, {len(runs)} runs: {size}."


def about(summary: Summary) -> str:
    """Return a run in one line: its label, arm, solver, and what followed its commands."""
    servo = summary["servo"]
    if summary["feedforward"]:
        servo += " and feedforward"
    parts = (
        summary["label"],
        summary["robot"],
        summary["solver"],
        f"{servo} ({backend_of(summary)})",
    )
    return ", ".join(part for part in parts if part)


def _colour(number: int) -> str:
    return RUNS[number % len(RUNS)]


def _dash(number: int) -> str:
    return RUN_DASHES[number % len(RUN_DASHES)]


def _paths(comparison: Comparison) -> list[Any]:
    """Return the paths of all runs from three sides."""
    reference = comparison.runs[0].evaluation.reference[:, :3] * 1e3
    paths = [DrawnPath("reference", reference, REFERENCE, REFERENCE_PATH_WIDTH)]
    for number, run in enumerate(comparison.runs):
        positions = run.evaluation.attained[:, :3] * 1e3
        width = max(MIN_PATH_WIDTH, FIRST_PATH_WIDTH - PATH_WIDTH_STEP * number)
        paths.append(DrawnPath(run.name, positions, _colour(number), width))
    return three_views(paths, comparison.runs[-1].evaluation.log.plan_time)


def _chart(comparison: Comparison, name: str, label: str, panels: Sequence[Panel]) -> Markup:
    """Return panels over the time on the trajectory, which waits where a controller does.

    Args:
        comparison: The runs.
        name: Identifies the chart on the page.
        label: The alternative text, without the panels' units.
        panels: The panels.
    """
    units = dict.fromkeys("degrees" if panel.unit == "°" else "mm" for panel in panels)
    times = [run.evaluation.log.plan_time for run in comparison.runs]
    begin = min(float(clock[0]) for clock in times)
    end = max(float(clock[-1]) for clock in times)
    height = PANELS_HEIGHT if len(panels) > 1 else PANEL_HEIGHT
    chart = Chart(panels, np.array([begin, end]), height, axis="Time on the trajectory (s)")
    return wide_chart(name, f"{label}, in {' and '.join(units)}", chart)


def _lines(comparison: Comparison, values: Sequence[Array]) -> list[Line]:
    """Return a line for each run, over the time on the trajectory.

    Args:
        comparison: The runs.
        values: The values of each run (T,).
    """
    lines = []
    for number, run in enumerate(comparison.runs):
        width = FIRST_WIDTH if number == 0 else OTHER_WIDTH
        times = run.evaluation.log.plan_time
        line = Line(run.name, _colour(number), times, values[number], width, _dash(number))
        lines.append(line)
    return lines


def _error_chart(comparison: Comparison) -> Markup:
    panels = []
    for title, unit, kind, scale in ERROR_PANELS:
        errors = [getattr(run.evaluation.errors.tracking, kind) * scale for run in comparison.runs]
        lines = [line for line in _lines(comparison, errors) if line.values.max() > ROUNDING]
        extent = logarithmic_range(map(peak_and_rms, errors))
        panels.append(Panel(title, lines, extent, unit, logarithmic=True))
    label = "Tracking error of every run over time"
    return _chart(comparison, "time", label, worth_showing(panels))


def _contour_chart(comparison: Comparison) -> Markup:
    panels = []
    for title, kind, _ in CONTOUR_PANELS:
        values = [getattr(run.evaluation.contour, kind) * 1e3 for run in comparison.runs]
        panels.append(linear_panel(title, f"{NO_BREAK}mm", _lines(comparison, values)))
    return _chart(comparison, "contour", "Contour error and lag of every run over time", panels)


def _separation_chart(comparison: Comparison) -> Markup:
    """Return the distance of each run from the first.

    It is empty where no run has a time in common with the first.
    """
    if all(separation is None for separation in comparison.separation):
        return Markup()

    panels = []
    titles = ("TCP separation (mm)", "Rotation difference (°)")
    # The units, quantities and factors are those of the panels of the error.
    for title, (_, unit, kind, scale) in zip(titles, ERROR_PANELS, strict=True):
        lines = []
        for number, run in enumerate(comparison.runs):
            separation = comparison.separation[number]
            if separation is None:
                continue
            times, difference = separation
            values = getattr(difference, kind) * scale
            colour = _colour(number)
            lines.append(Line(run.name, colour, times, values, OTHER_WIDTH, _dash(number)))
        panels.append(linear_panel(title, unit, lines, MIN_SEPARATION))
    label = "Separation from the first run over time"
    return _chart(comparison, "separation", label, worth_showing(panels))


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
