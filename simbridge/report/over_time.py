"""The tracking error and its parts over time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from simbridge.evaluation.metrics.delays import delay_compensated
from simbridge.evaluation.metrics.summary import POSE_PARTS, part_delays
from simbridge.report.charts import Line, Panel
from simbridge.report.drawing import Drawing, few_ticks, mark, plain_numbers
from simbridge.report.palette import GRID, LIMITER, PARTS, TRACKING, WHOLE
from simbridge.report.timeline import stretches, thinned
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simbridge.evaluation.evaluation import Evaluation


# Smaller values, in mm or degrees, are rounding.
ROUNDING = 1e-9
# The axes never span more decades than this.
DECADES = 7
# A delay that makes up less of the error than this is not worth a curve of its own.
WORTH_COMPENSATING = 0.2

WIDE, NARROW = 1080, 400


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve of the figure.

    Attributes:
        name: Of the budget line.
        colour, width, dashes: How it is drawn.
        times: (K,), s.
        position: (K,), mm.
        rotation: (K,), degrees.
    """

    name: str
    colour: str
    width: float
    dashes: str
    times: Array
    position: Array
    rotation: Array


def error_curves(evaluation: Evaluation, summary: Mapping[str, Any]) -> list[Curve]:
    """The tracking error first, then its parts, then what is left of it without its delays if that matters.

    Args:
        evaluation: The run.
        summary: Its summary, with the delays.
    """
    times, budget = evaluation.log.stamp, evaluation.budget
    curves = []
    for line in (WHOLE, *PARTS):
        error = getattr(budget, line.name)
        width = 3.2 if line is WHOLE else 1.4
        curves.append(Curve(line.name, line.colour, width, "-", times, error.distance * 1e3, np.degrees(error.angle)))
    attained, tracking = evaluation.attained, budget.tracking
    moved, turned = (
        delay_compensated(times, evaluation.reference_at, attained, late, part, before=tracking)
        for part, late in ((part, part_delays(summary, part).total) for part in POSE_PARTS)
    )
    shown = moved.kept & turned.kept
    distance, angle = moved.error[shown[moved.kept]], turned.error[shown[turned.kept]]
    if shown.any() and (
        _rms(distance) < (1.0 - WORTH_COMPENSATING) * _rms(tracking.distance)
        or _rms(angle) < (1.0 - WORTH_COMPENSATING) * _rms(tracking.angle)
    ):
        name = "without its delay"
        curves.append(Curve(name, TRACKING, 1.0, ":", times[shown], distance * 1e3, np.degrees(angle)))
    return curves


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def error_panels(curves: list[Curve]) -> list[Panel]:
    """The two axes of the figure for the page's script."""
    panels = []
    for title, unit, values in (
        ("Position error (mm)", f"{NO_BREAK}mm", [c.position for c in curves]),
        ("Rotation error (°)", "°", [c.rotation for c in curves]),
    ):
        lines = [
            Line(curve.name, curve.colour, curve.times, error, min(curve.width, 2.4), curve.dashes == ":")
            for curve, error in zip(curves, values, strict=True)
            if error.max() > ROUNDING
        ]
        panels.append(Panel(title, lines, shown_range(values), unit, logarithmic=True))
    return panels


def error_over_time(evaluation: Evaluation, curves: list[Curve], width: int) -> str:
    """Position error over rotation error, on logarithmic axes: the parts are often a hundredfold apart."""
    height = 480
    drawing = Drawing(width, height)
    above = drawing.axes(52, 250, 18, 24)
    below = drawing.axes(52, 40, 18, 262, sharex=above)
    stamps, period = evaluation.log.stamp, evaluation.plan.period
    # Gaps of less than two pixels are not seen.
    limited = stretches(evaluation.log.limited, stamps, gap=2.0 * (stamps[-1] - stamps[0]) / width + 1.5 * period)
    bars = [(begin, end + period - begin) for begin, end in limited]
    for axes, values, title in (
        (above, [c.position for c in curves], "Position error (mm)"),
        (below, [c.rotation for c in curves], "Rotation error (°)"),
    ):
        lowest, highest = shown_range(values)
        prepare_logarithmic(axes, lowest, highest)
        across = axes.get_xaxis_transform()
        axes.broken_barh(bars, (0.0, 1.0), transform=across, facecolors=LIMITER, alpha=0.15, linewidth=0.0)
        for curve, error in zip(curves, values, strict=True):
            if error.max() > ROUNDING:
                kept = thinned(np.where(error >= lowest, error, np.nan), width - 72)
                _plot(axes, curve, curve.times[kept], error[kept], error[kept] >= lowest)
        axes.set_title(title, loc="left", fontsize=11.0, pad=6.0)
    worst = int(np.argmax(curves[0].position))
    if curves[0].position[worst] > ROUNDING:
        mark(above, (stamps[worst], curves[0].position[worst]), "X")
    above.tick_params(labelbottom=False)
    prepare_time_axis(below, stamps, 10 if width > 600 else 5)
    label = "Position error in mm and rotation error in degrees over time, logarithmic: tracking and its parts"
    return drawing.svg(f"time{width}", label)


def _plot(axes: Axes, curve: Curve, times: Array, error: Array, shown: NDArray[np.bool_]) -> None:
    """The curve where it is on the axes; a sample that is there alone would make no line, and becomes a dot."""
    masked = np.where(shown, error, np.nan)
    axes.plot(times, masked, color=curve.colour, linewidth=curve.width, linestyle=curve.dashes)
    padded = np.concatenate([[False], shown, [False]])
    alone = shown & ~padded[:-2] & ~padded[2:]
    if alone.any():
        axes.plot(times[alone], error[alone], ".", color=curve.colour, markersize=3.0 + curve.width)


def prepare_time_axis(axes: Axes, stamps: Array, ticks: int) -> None:
    """Seconds from the first sample to the last."""
    begin, end = float(stamps[0]), float(stamps[-1])
    axes.set_xlim(begin, end if end > begin else begin + 1e-3)
    axes.xaxis.set_major_locator(few_ticks(ticks))
    axes.xaxis.set_major_formatter(plain_numbers())
    axes.set_xlabel("Time (s)")


def shown_range(errors: list[Array]) -> tuple[float, float]:
    """The lowest and the highest error that the axes show: from a whole decade below the smallest RMS to the peak."""
    above_rounding = [error for error in errors if error.max() > ROUNDING]
    highest = max((float(error.max()) for error in above_rounding), default=1e-3)
    lowest = min((0.5 * _rms(error) for error in above_rounding), default=1e-4)
    bottom = 10.0 ** math.floor(math.log10(max(lowest, highest / 10.0**DECADES)))
    return bottom, max(1.4 * highest, 10.0 * bottom)


def prepare_logarithmic(axes: Axes, bottom: float, top: float) -> None:
    """A division a factor of ten, with finer lines between."""
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(bottom, top)
    decades = range(round(math.log10(bottom)), math.floor(math.log10(top)) + 1)
    axes.set_yticks([10.0**d for d in decades], [_power(d) for d in decades])
    axes.yaxis.set_minor_locator(NullLocator())
    finer = np.array([m * 10.0**d for d in decades for m in range(2, 10) if m * 10.0**d < top])
    # All in one line with gaps: a tick each would take ten times as long.
    across, gap = np.tile([0.0, 1.0, np.nan], len(finer)), np.full(len(finer), np.nan)
    up = np.stack([finer, finer, gap], axis=1).ravel()
    axes.plot(across, up, color=GRID, linewidth=0.4, transform=axes.get_yaxis_transform(), zorder=0.5)


def _power(exponent: int) -> str:
    """A power of ten in as few characters as it takes."""
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
