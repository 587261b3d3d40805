"""What the pages draw over time: the tracking error and its parts, contour error and lag, the control loop."""

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
from simbridge.report.charts import Chart, Line, Panel, decimated, intervals
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

WIDE, NARROW = 1080, 400

ERROR_PANELS = (
    ("Position error (mm)", f"{NO_BREAK}mm", "distance", 1e3),
    ("Rotation error (°)", "°", "angle", math.degrees(1.0)),
)
"""Title, unit, the attribute of `PoseError`, and its factor."""


def errors_over_time(evaluation: Evaluation, summary: Summary) -> tuple[list[LegendEntry], Markup]:
    """The tracking error and its parts on logarithmic axes, for the parts often differ a hundredfold."""
    stamps, period = evaluation.log.stamp, evaluation.plan.period
    panels = error_panels(evaluation, summary)
    position = evaluation.errors.tracking.distance * 1e3
    worst = int(np.argmax(position))
    marks = (
        [(0, float(stamps[worst]), float(position[worst]))] if position[worst] > ROUNDING else []
    )
    # Gaps of less than two pixels are not seen.
    gap = 2.0 * float(stamps[-1] - stamps[0]) / WIDE + 1.5 * period
    bands = [(begin, end + period) for begin, end in intervals(evaluation.log.limited, stamps, gap)]
    panels = worth_showing(panels)
    entries = [
        LegendEntry(_legend_name(lines, panels), lines[0].colour, lines[0].dash)
        for lines in zip(*(panel.lines for panel in panels), strict=True)
    ]
    entries += [LegendEntry("setpoints limited", LIMITER, "band")] if bands else []
    shown = [
        replace(panel, lines=[line for line in panel.lines if line.values.max() > ROUNDING])
        for panel in panels
    ]
    chart = Chart(shown, stamps, 480 if len(shown) > 1 else 300, bands, marks)
    what = (
        "Position error in mm and rotation error in degrees"
        if len(shown) > 1
        else "Position error in mm"
    )
    label = (
        f"{what} over time, logarithmic: tracking and its parts. Largest at {stamps[worst]:.2f} s"
    )
    drawn = at_both_widths(lambda width: chart.svg(f"time{width}", label, width))
    return [*entries, LegendEntry("worst sample", "", "cross")], chart.html(drawn)


def at_both_widths(draw: Callable[[int], Markup]) -> Markup:
    """A drawing for wide screens and for phones, of which the page shows one; `draw` is given its width in pixels."""
    element = Markup('<div class="{}">{}</div>')
    return Markup("\n").join(
        element.format(kind, draw(width)) for kind, width in (("wide", WIDE), ("narrow", NARROW))
    )


def error_panels(evaluation: Evaluation, summary: Summary) -> list[Panel]:
    """Position and rotation: the tracking error first, then its parts, then the error with its delays removed if that
    matters.

    Args:
        evaluation: The run.
        summary: Its summary, with the delays.
    """
    errors, stamps = evaluation.errors, evaluation.log.stamp
    rest, panels = _without_delay(evaluation, summary), []
    for number, (title, unit, kind, scale) in enumerate(ERROR_PANELS):
        lines, levels = [], []
        for part in (
            tracking.TRACKING_ERROR,
            *(part for part in tracking.ERROR_PARTS if not part.of),
        ):
            values = getattr(getattr(errors, part.name), kind) * scale
            width, dash = (
                2.4 if part is tracking.TRACKING_ERROR else 1.4,
                ERROR_DASHES.get(part.name, ""),
            )
            kept = decimated(values, MAX_COLUMNS)
            lines.append(
                Line(part.name, ERRORS[part.name], stamps[kept], values[kept], width, dash)
            )
            levels.append(peak_and_rms(values))
        for line in rest[number : number + 1]:
            lines.append(line)
            levels.append(peak_and_rms(line.values))
        panels.append(Panel(title, lines, shown_range(levels), unit, logarithmic=True))
    return panels


def worth_showing(panels: Sequence[Panel]) -> list[Panel]:
    """Panels of position and rotation; position alone, whose title then says so, where no rotation is to be seen."""
    position, rotation = panels
    if any(float(line.values.max()) >= SMALLEST for line in rotation.lines):
        return [position, rotation]
    return [replace(position, title=f"{position.title}; rotation below {SMALLEST:g}°")]


def _without_delay(evaluation: Evaluation, summary: Summary) -> list[Line]:
    """The tracking error in mm and degrees with its delays removed; nothing if that changes little."""
    stamps, error = evaluation.log.stamp, evaluation.errors.tracking
    lags = {part: tracking.part_delays(summary, part).total for part in tracking.POSE_PARTS}
    rest = tracking.delays_compensated(
        stamps, evaluation.reference_at, evaluation.attained, lags, before=error
    )
    moved, turned = rest["position"], rest["rotation"]
    shown = moved.kept & turned.kept
    distance, angle = moved.error[shown[moved.kept]], turned.error[shown[turned.kept]]
    worth = 1.0 - WORTH_COMPENSATING
    if not shown.any() or (
        rms(distance) >= worth * rms(error.distance) and rms(angle) >= worth * rms(error.angle)
    ):
        return []
    scaled = (distance * 1e3, np.degrees(angle))
    return [
        Line("delay removed", TRACKING, stamps[shown], values, 1.0, "dotted") for values in scaled
    ]


def _legend_name(lines: Sequence[Line], panels: Sequence[Panel]) -> str:
    """The name of a curve in each panel, and a remark where it is outside the axes."""
    name, missing = lines[0].name, {}
    for kind, line, panel in zip(("position", "rotation"), lines, panels, strict=False):
        if line.values.max() < max(panel.shown[0], ROUNDING):
            missing[kind] = "zero" if line.values.max() <= ROUNDING else "too small to show"
    if len(missing) == len(panels) and len(set(missing.values())) == 1:
        return f"{name} ({missing['position']})"
    why = ", ".join(f"{kind} {reason}" for kind, reason in missing.items())
    return f"{name} ({why})" if why else name


def peak_and_rms(values: Array) -> tuple[float, float]:
    """Of the curve of an error (T,)."""
    return float(values.max()), rms(values)


def shown_range(levels: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The range of logarithmic axes for curves of these peaks and RMS: from a decade below the smallest to the peak."""
    above_rounding = [level for level in levels if level[0] > ROUNDING]
    highest = max((peak for peak, _ in above_rounding), default=1e-3)
    lowest = min((0.5 * level for _, level in above_rounding), default=1e-4)
    bottom = 10.0 ** math.floor(math.log10(max(lowest, highest / 10.0**DECADES)))
    return bottom, max(1.4 * highest, 10.0 * bottom)


def linear_panel(title: str, unit: str, lines: Sequence[Line], smallest: float = 1e-4) -> Panel:
    """Lines over linear axes with zero and all values; values less than `smallest` apart are not magnified."""
    low = min(0.0, *(float(line.values.min()) for line in lines))
    high = max(0.0, *(float(line.values.max()) for line in lines))
    margin = 0.06 * max(high - low, smallest)
    return Panel(title, lines, (low - margin, high + margin), unit)


def broad(name: str, label: str, chart: Chart) -> Markup:
    """A chart as wide as the page; see `Drawing.svg` for `name` and `label`."""
    return chart.html(Markup('<div class="broad">{}</div>').format(chart.svg(name, label, WIDE)))


CONTOUR_PANELS = (
    ("Contour error (mm)", "distance", ATTAINED),
    ("Lag along the path (mm)", "lag", PLANT),
)
"""Title, the attribute of `ContourError`, and the colour of the curve."""


def contour_chart(evaluation: Evaluation) -> Markup:
    """The distance to the path, and the lag along it."""
    chart = Chart(contour_panels(evaluation), evaluation.log.stamp, 330)
    return broad("contour", "Contour error and lag along the path, in mm over time", chart)


def contour_panels(evaluation: Evaluation) -> list[Panel]:
    """The distance to the path, and the lag along it."""
    stamps, panels = evaluation.log.stamp, []
    for title, kind, colour in CONTOUR_PANELS:
        values = getattr(evaluation.contour, kind) * 1e3
        line = Line("contour error" if kind == "distance" else kind, colour, stamps, values)
        panels.append(linear_panel(title, f"{NO_BREAK}mm", [line]))
    return panels


def loop_chart(evaluation: Evaluation) -> Markup:
    """The period of the control loop by the host's clock, and the controller's speed scaling."""
    log = evaluation.log
    periods, scaling = np.diff(log.host_monotonic) * 1e3, log.speed_scaling * 100.0
    panels = [
        Panel(
            "Period between states, host clock (ms)",
            [Line("period", SETPOINT, log.stamp[1:], periods, 1.2)],
            (0.0, 1.08 * max(float(periods.max()), 2e3 * evaluation.plan.period)),
            f"{NO_BREAK}ms",
        ),
        Panel(
            "Speed scaling (%)",
            [Line("speed scaling", SOLVER, log.stamp, scaling, 1.8)],
            (0.0, max(105.0, 1.05 * float(scaling.max()))),
            f"{NO_BREAK}%",
        ),
    ]
    return broad(
        "loop",
        "Period of the control loop and speed scaling over time",
        Chart(panels, log.stamp, 330),
    )
