"""The charts and paths of a comparison, for its page and as figures for a paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.evaluation.comparison import Comparison
from simbridge.report.charts import Chart, Line, Panel
from simbridge.report.over_time import (
    CONTOUR_PANELS,
    ERROR_PANELS,
    ROUNDING,
    linear_panel,
    logarithmic_range,
    peak_and_rms,
    worth_showing,
)
from simbridge.report.palette import REFERENCE, RUN_DASHES, RUNS
from simbridge.report.paths import DrawnPath
from simbridge.report.rendering import LegendEntry
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK

# Widths of lines over time: the first run's shows on both sides of one that lies on it.
FIRST_WIDTH = 2.6
OTHER_WIDTH = 1.5

# Widths of the paths: each one is narrower than the one below it, down to the smallest.
REFERENCE_PATH_WIDTH = 8.0
FIRST_PATH_WIDTH = 4.5
PATH_WIDTH_STEP = 1.6
MIN_PATH_WIDTH = 1.4

# Decades that the axes of the error show at least: errors of similar runs have one level, but begin
# and end far below it, at rest.
MIN_DECADES = 3

# Smaller separations are rounding, mm or degrees.
MIN_SEPARATION = 1e-6

TIME_AXIS = "Time on the trajectory (s)"


def run_colour(number: int) -> str:
    """Return the colour of a compared run."""
    return RUNS[number % len(RUNS)]


def run_dash(number: int) -> str:
    """Return the dash of a compared run's lines over time, a name in `DASHES`."""
    return RUN_DASHES[number % len(RUN_DASHES)]


def run_legend(comparison: Comparison) -> list[LegendEntry]:
    """Return an entry for each run, with its label."""
    return [
        LegendEntry(label, run_colour(number), run_dash(number))
        for number, label in enumerate(comparison.differences.labels)
    ]


def chart_of(comparison: Comparison, panels: Sequence[Panel], height: float) -> Chart:
    """Return panels over the time on the trajectory, which waits where a controller does."""
    times = [run.evaluation.log.plan_time for run in comparison.runs]
    begin = min(float(clock[0]) for clock in times)
    end = max(float(clock[-1]) for clock in times)
    return Chart(panels, np.array([begin, end]), height, axis=TIME_AXIS)


def paths_of(comparison: Comparison) -> list[DrawnPath]:
    """Return the reference and the attained path of each run, in mm."""
    reference = comparison.runs[0].evaluation.reference[:, :3] * 1e3
    paths = [DrawnPath("reference", reference, REFERENCE, REFERENCE_PATH_WIDTH)]
    labels = comparison.differences.labels
    for number, (run, label) in enumerate(zip(comparison.runs, labels, strict=True)):
        positions = run.evaluation.attained[:, :3] * 1e3
        width = max(MIN_PATH_WIDTH, FIRST_PATH_WIDTH - PATH_WIDTH_STEP * number)
        paths.append(DrawnPath(label, positions, run_colour(number), width))
    return paths


def error_panels(comparison: Comparison) -> list[Panel]:
    """Return panels of the error by which the runs are compared."""
    name = comparison.main_part.name
    panels = []
    for title, unit, kind, scale in ERROR_PANELS:
        errors = []
        for run in comparison.runs:
            error = getattr(run.evaluation.errors, name)
            errors.append(getattr(error, kind) * scale)
        lines = [line for line in _lines(comparison, errors) if line.values.max() > ROUNDING]
        extent = logarithmic_range(map(peak_and_rms, errors), MIN_DECADES)
        panels.append(Panel(title, lines, extent, unit, logarithmic=True))
    return worth_showing(panels)


def contour_panels(comparison: Comparison) -> list[Panel]:
    """Return panels of the contour error, and of the lag along the path."""
    panels = []
    for title, kind, _ in CONTOUR_PANELS:
        values = [getattr(run.evaluation.contour, kind) * 1e3 for run in comparison.runs]
        panels.append(linear_panel(title, f"{NO_BREAK}mm", _lines(comparison, values)))
    return panels


def separation_panels(comparison: Comparison) -> list[Panel]:
    """Return panels of the distance of each run from the first.

    There is none where no run has a time in common with the first.
    """
    if all(separation is None for separation in comparison.separation):
        return []

    panels = []
    titles = ("TCP separation (mm)", "Rotation difference (°)")
    labels = comparison.differences.labels
    # The units, quantities and factors are those of the panels of the error.
    for title, (_, unit, kind, scale) in zip(titles, ERROR_PANELS, strict=True):
        lines = []
        for number, separation in enumerate(comparison.separation):
            if separation is None:
                continue
            times, difference = separation
            values = getattr(difference, kind) * scale
            colour = run_colour(number)
            dash = run_dash(number)
            lines.append(Line(labels[number], colour, times, values, OTHER_WIDTH, dash))
        panels.append(linear_panel(title, unit, lines, MIN_SEPARATION))
    return worth_showing(panels)


def _lines(comparison: Comparison, values: Sequence[Array]) -> list[Line]:
    """Return a line for each run, over the time on the trajectory.

    Args:
        comparison: The runs.
        values: The values of each run (T,).
    """
    lines = []
    for number, label in enumerate(comparison.differences.labels):
        width = FIRST_WIDTH if number == 0 else OTHER_WIDTH
        times = comparison.runs[number].evaluation.log.plan_time
        colour = run_colour(number)
        lines.append(Line(label, colour, times, values[number], width, run_dash(number)))
    return lines
