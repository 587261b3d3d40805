"""The tracking error and its parts over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simbridge.metrics import delay_compensated
from simbridge.report.drawing import Drawing, few_ticks, plain_numbers, ticks_at
from simbridge.report.palette import LIMITER, PARTS, TRACKING, WHOLE
from simbridge.report.timeline import stretches, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simbridge.evaluation import Evaluation

Array = NDArray[np.float64]

# Smaller values, in mm or degrees, are rounding.
ROUNDING = 1e-9
# The axes never span more decades than this.
DECADES = 6
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


def error_curves(evaluation: Evaluation, delay: float | None) -> list[Curve]:
    """The tracking error first, then its parts, then what is left of it without its delay if that matters."""
    times, budget = evaluation.log.stamp, evaluation.budget
    curves = []
    for line in (WHOLE, *PARTS):
        error = getattr(budget, line.name)
        width = 3.2 if line is WHOLE else 1.4
        curves.append(
            Curve(line.name, line.colour, width, "-", times, error.distance * 1e3, np.degrees(error.angle))
        )
    if delay is not None:
        trajectory, clock = evaluation.plan.trajectory, evaluation.log.plan_time
        left = delay_compensated(
            times, lambda t: trajectory.reference(np.interp(t, times, clock)), evaluation.attained, delay
        )
        shown = times[(times - delay >= times[0]) & (times - delay <= times[-1])]
        if len(shown) and _rms(left.distance) < (1.0 - WORTH_COMPENSATING) * _rms(budget.tracking.distance):
            curves.append(
                Curve("without its delay", TRACKING, 1.0, ":", shown, left.distance * 1e3, np.degrees(left.angle))
            )
    return curves


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def error_over_time(evaluation: Evaluation, curves: list[Curve], width: int) -> str:
    """Position error over rotation error, on logarithmic axes: the parts are often a hundredfold apart."""
    height = 480
    drawing = Drawing(width, height)
    above = drawing.axes(62, 250, 10, 24)
    below = drawing.axes(62, 40, 10, 262, sharex=above)
    marked = stretches(evaluation.log.limited, evaluation.log.stamp, gap=evaluation.log.stamp[-1] / width)
    for axes, values, title in (
        (above, [c.position for c in curves], "Position error (mm)"),
        (below, [c.rotation for c in curves], "Rotation error (°)"),
    ):
        lowest = _scaled(axes, values)
        for begin, end in marked:
            axes.axvspan(begin, end, color=LIMITER, alpha=0.15, linewidth=0.0)
        for curve, error in zip(curves, values, strict=True):
            if error.max() > ROUNDING:
                kept = thinned(error, width - 72)
                axes.plot(
                    curve.times[kept],
                    np.maximum(error[kept], lowest),
                    color=curve.colour,
                    linewidth=curve.width,
                    linestyle=curve.dashes,
                    marker="." if len(error) < 20 else None,
                )
        axes.set_title(title, loc="left", fontsize=11.0, pad=6.0)
    above.tick_params(labelbottom=False)
    prepare_time_axis(below, evaluation.log.stamp, 10 if width > 600 else 5)
    label = "Position error in mm and rotation error in degrees over time, logarithmic: tracking and its parts"
    return drawing.svg(f"time{width}", label)


def prepare_time_axis(axes: Axes, stamps: Array, ticks: int) -> None:
    """Seconds from the first sample to the last."""
    begin, end = float(stamps[0]), float(stamps[-1])
    axes.set_xlim(begin, end if end > begin else begin + 1e-3)
    axes.xaxis.set_major_locator(few_ticks(ticks))
    axes.xaxis.set_major_formatter(plain_numbers())
    axes.set_xlabel("Time (s)")


def _scaled(axes: Axes, values: list[Array]) -> float:
    """Whole decades around what is to be read; returns the lowest value shown."""
    axes.set_yscale("log", nonpositive="clip")
    shown = [error for error in values if error.max() > ROUNDING]
    highest = max((float(error.max()) for error in shown), default=1e-3)
    lowest = min((float(np.percentile(error[error > ROUNDING], 5.0)) for error in shown), default=1e-4)
    top = int(np.ceil(np.log10(highest * 1.05)))
    bottom = min(max(int(np.floor(np.log10(lowest))), top - DECADES), top - 1)
    axes.set_ylim(10.0**bottom, 10.0**top)
    decades = np.arange(bottom, top + 1)
    axes.yaxis.set_major_locator(ticks_at([10.0**d for d in decades]))
    axes.yaxis.set_minor_locator(ticks_at([m * 10.0**d for d in decades[:-1] for m in range(2, 10)]))
    axes.yaxis.set_major_formatter(lambda value, _: np.format_float_positional(float(f"{value:.3g}"), trim="-"))
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    return 10.0**bottom
