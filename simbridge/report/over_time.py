"""Drawings over time: errors and their parts, contour error and lag, the control loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import tracking
from simbridge.evaluation.metrics.samples import rms
from simbridge.evaluation.summary import Summary
from simbridge.report.charts import Chart, Line, Panel, decimate, intervals
from simbridge.report.palette import (
    ATTAINED,
    ERROR_DASHES,
    ERRORS,
    LIMITER,
    PLANT,
    SETPOINT,
    SOLVER,
    TRACKING,
)
from simbridge.report.rendering import LegendEntry
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, SMALLEST

# Smaller values, in mm or degrees, are rounding.
ROUNDING = 1e-9
# The logarithmic axes never span more decades than this.
DECADES = 7
# A delay that makes up less than this share of the error gets no curve of its own.
WORTH_COMPENSATING = 0.2

# A longer curve is decimated to this many columns before it is drawn: a chart of an hour holds ten.
MAX_COLUMNS = 20_000

# Widths of a drawing for wide screens and for phones, pixels.
WIDE = 1080
NARROW = 400
# Heights of the charts, pixels: errors of position alone, and with those of rotation; contour
# error; control loop.
POSITION_HEIGHT = 300
POSE_HEIGHT = 480
CONTOUR_HEIGHT = 330
LOOP_HEIGHT = 330

ERROR_PANELS = (
    ("Position error (mm)", f"{NO_BREAK}mm", "distance", 1e3),
    ("Rotation error (°)", "°", "angle", math.degrees(1.0)),
)
"""Title, unit, the attribute of `PoseError`, and its factor."""


def errors_over_time(evaluation: Evaluation, summary: Summary) -> tuple[list[LegendEntry], Markup]:
    """Return the tracking error and its parts, with their legend.

    The axes are logarithmic, since the parts often differ a hundredfold.
    """
    stamps = evaluation.log.stamp
    period = evaluation.plan.period
    panels = worth_showing(error_panels(evaluation, summary))

    # Mark the worst sample in panel 0, that of position, unless there is no error.
    position = evaluation.errors.tracking.distance * 1e3
    worst = int(np.argmax(position))
    marks = []
    if position[worst] > ROUNDING:
        marks.append((0, float(stamps[worst]), float(position[worst])))

    # Shade the periods of limited setpoints. Intervals that are less than two pixels apart are
    # joined, as are those of successive samples, up to rounding.
    two_pixels = 2.0 * float(stamps[-1] - stamps[0]) / WIDE
    limited = intervals(evaluation.log.limited, stamps, two_pixels + 1.5 * period)
    bands = [(begin, end + period) for begin, end in limited]

    legend = []
    for lines in zip(*(panel.lines for panel in panels), strict=True):
        name = _legend_name(lines, panels)
        legend.append(LegendEntry(name, lines[0].colour, lines[0].dash))
    if bands:
        legend.append(LegendEntry("setpoints limited", LIMITER, "band"))
    if marks:
        legend.append(LegendEntry("worst sample", "", "cross"))

    # A logarithmic axis has no zero: curves of zeros are in the legend only.
    drawn_panels = []
    for panel in panels:
        lines_shown = [line for line in panel.lines if line.values.max() > ROUNDING]
        drawn_panels.append(replace(panel, lines=lines_shown))

    if len(drawn_panels) > 1:
        subject = "Position error in mm and rotation error in degrees"
        height = POSE_HEIGHT
    else:
        subject = "Position error in mm"
        height = POSITION_HEIGHT
    chart = Chart(drawn_panels, stamps, height, bands, marks)
    label = f"{subject} over time, logarithmic: tracking and its parts."
    if marks:
        label += f" Largest at {stamps[worst]:.2f} s"
    drawing = draw_both_widths(lambda width: chart.svg(f"time{width}", label, width))
    return legend, chart.html(drawing)


def draw_both_widths(draw: Callable[[int], Markup]) -> Markup:
    """Return a drawing for wide screens and one for phones, of which the page shows one.

    Args:
        draw: Draws at a width in pixels.
    """
    element = Markup('<div class="{}">{}</div>')
    wide = element.format("wide", draw(WIDE))
    narrow = element.format("narrow", draw(NARROW))
    return Markup("\n").join([wide, narrow])


def error_panels(evaluation: Evaluation, summary: Summary) -> list[Panel]:
    """Return the panels of position and rotation.

    The tracking error comes first, then its parts, then the error with its delays removed if that
    matters.

    Args:
        evaluation: The run.
        summary: The run's summary, with the delays.
    """
    errors = evaluation.errors
    stamps = evaluation.log.stamp
    without_delay = _without_delay(evaluation, summary)
    # The parts of the plant's part would hide the others.
    outer_parts = [part for part in tracking.known_parts(summary) if not part.whole]

    panels = []
    for number, (title, unit, kind, scale) in enumerate(ERROR_PANELS):
        lines = []
        levels = []
        for part in (tracking.TRACKING_ERROR, *outer_parts):
            values = getattr(getattr(errors, part.name), kind) * scale
            kept = decimate(values, MAX_COLUMNS)
            width = 2.4 if part is tracking.TRACKING_ERROR else 1.4
            dash = ERROR_DASHES.get(part.name, "")
            colour = ERRORS[part.name]
            lines.append(Line(part.name, colour, stamps[kept], values[kept], width, dash))
            levels.append(peak_and_rms(values))
        if without_delay:
            lines.append(without_delay[number])
            levels.append(peak_and_rms(without_delay[number].values))
        panels.append(Panel(title, lines, logarithmic_range(levels), unit, logarithmic=True))
    return panels


def worth_showing(panels: Sequence[Panel]) -> list[Panel]:
    """Return the panels of position and rotation.

    If no rotation is to be seen it is position alone, whose title then says so.
    """
    position, rotation = panels
    if any(float(line.values.max()) >= SMALLEST for line in rotation.lines):
        return [position, rotation]
    return [replace(position, title=f"{position.title}; rotation below {SMALLEST:g}°")]


def _without_delay(evaluation: Evaluation, summary: Summary) -> list[Line]:
    """Return the tracking error in mm and in degrees with its delays removed.

    It is empty if that changes little.
    """
    stamps = evaluation.log.stamp
    error = evaluation.errors.tracking
    lags = {kind: tracking.part_delays(summary, kind).total for kind in tracking.POSE_PARTS}
    # The error with its delays is passed on, so that it is not computed again.
    compensated = tracking.compensate_delays(
        stamps, evaluation.reference_at, evaluation.attained, lags, before=error
    )

    # Each has errors only of the samples that it kept: those that both kept are drawn.
    position = compensated["position"]
    rotation = compensated["rotation"]
    shown = position.kept & rotation.kept
    if not shown.any():
        return []
    distance = position.error[shown[position.kept]]
    angle = rotation.error[shown[rotation.kept]]

    # Leave the curves out if most of both errors remains.
    remaining = 1.0 - WORTH_COMPENSATING
    keeps_distance = rms(distance) >= remaining * rms(error.distance)
    keeps_angle = rms(angle) >= remaining * rms(error.angle)
    if keeps_distance and keeps_angle:
        return []

    lines = []
    for values in (distance * 1e3, np.degrees(angle)):
        lines.append(Line("delay removed", TRACKING, stamps[shown], values, 1.0, "dotted"))
    return lines


def _legend_name(lines: Sequence[Line], panels: Sequence[Panel]) -> str:
    """Return the name of a curve, with a remark where it is outside a panel's axes.

    Args:
        lines: The curve in each panel.
        panels: Position, and rotation if it is shown.
    """
    name = lines[0].name
    missing = {}
    for kind, line, panel in zip(("position", "rotation"), lines, panels, strict=False):
        if line.values.max() < max(panel.shown[0], ROUNDING):
            missing[kind] = "zero" if line.values.max() <= ROUNDING else "too small to show"
    if len(missing) == len(panels) and len(set(missing.values())) == 1:
        return f"{name} ({missing['position']})"
    why = ", ".join(f"{kind} {reason}" for kind, reason in missing.items())
    return f"{name} ({why})" if why else name


def peak_and_rms(values: Array) -> tuple[float, float]:
    """Return the peak and the RMS of the curve of an error (T,)."""
    return float(values.max()), rms(values)


def logarithmic_range(
    levels: Iterable[tuple[float, float]], min_decades: int = 0
) -> tuple[float, float]:
    """Return the range of logarithmic axes: from a decade below the smallest to the peak.

    Args:
        levels: Peak and RMS of each curve.
        min_decades: Decades below the highest peak that are shown at least.
    """
    above_rounding = [level for level in levels if level[0] > ROUNDING]
    highest = max((peak for peak, _ in above_rounding), default=1e-3)
    lowest = min((0.5 * level for _, level in above_rounding), default=1e-4)
    lowest = min(lowest, highest / 10.0**min_decades)
    bottom = 10.0 ** math.floor(math.log10(max(lowest, highest / 10.0**DECADES)))
    return bottom, max(1.4 * highest, 10.0 * bottom)


def linear_panel(title: str, unit: str, lines: Sequence[Line], smallest: float = 1e-4) -> Panel:
    """Return lines over linear axes that show zero and all values.

    Args:
        title: The panel's title.
        unit: The unit of the values, as texts write it.
        lines: The curves.
        smallest: Values less than this apart are not magnified.
    """
    low = min(0.0, *(float(line.values.min()) for line in lines))
    high = max(0.0, *(float(line.values.max()) for line in lines))
    margin = 0.06 * max(high - low, smallest)
    return Panel(title, lines, (low - margin, high + margin), unit)


def wide_chart(name: str, label: str, chart: Chart) -> Markup:
    """Return a chart as wide as the page; see `Drawing.svg` for `name` and `label`."""
    element = Markup('<div class="broad">{}</div>').format(chart.svg(name, label, WIDE))
    return chart.html(element)


CONTOUR_PANELS = (
    ("Contour error (mm)", "distance", ATTAINED),
    ("Lag along the path (mm)", "lag", PLANT),
)
"""Title, the attribute of `ContourError`, and the colour of the curve."""


def contour_chart(evaluation: Evaluation) -> Markup:
    """Return a chart of the distance to the path, and the lag along it."""
    chart = Chart(contour_panels(evaluation), evaluation.log.stamp, CONTOUR_HEIGHT)
    return wide_chart("contour", "Contour error and lag along the path, in mm over time", chart)


def contour_panels(evaluation: Evaluation) -> list[Panel]:
    """Return panels of the distance to the path, and of the lag along it."""
    stamps = evaluation.log.stamp
    panels = []
    for title, kind, colour in CONTOUR_PANELS:
        values = getattr(evaluation.contour, kind) * 1e3
        name = "contour error" if kind == "distance" else kind
        line = Line(name, colour, stamps, values)
        panels.append(linear_panel(title, f"{NO_BREAK}mm", [line]))
    return panels


def loop_chart(evaluation: Evaluation) -> Markup:
    """Return a chart of the control loop's period by the host's clock, and of the speed scaling."""
    log = evaluation.log
    periods = np.diff(log.host_monotonic) * 1e3
    scaling = log.speed_scaling * 100.0

    # Both axes begin at 0; they show at least two control periods, and full speed.
    longest_period = max(float(periods.max()), 2e3 * evaluation.plan.period)
    period_panel = Panel(
        "Period between states, host clock (ms)",
        [Line("period", SETPOINT, log.stamp[1:], periods, 1.2)],
        (0.0, 1.08 * longest_period),
        f"{NO_BREAK}ms",
    )
    scaling_panel = Panel(
        "Speed scaling (%)",
        [Line("speed scaling", SOLVER, log.stamp, scaling, 1.8)],
        (0.0, max(105.0, 1.05 * float(scaling.max()))),
        f"{NO_BREAK}%",
    )

    label = "Period of the control loop and speed scaling over time"
    chart = Chart([period_panel, scaling_panel], log.stamp, LOOP_HEIGHT)
    return wide_chart("loop", label, chart)
