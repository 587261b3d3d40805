"""Position, velocity and torque of one joint over time, with the limits that come near."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simbridge.report.charts import Line, Panel, chart
from simbridge.report.drawing import Drawing, dots, few_ticks, plain_numbers
from simbridge.report.joints import Joint, Quantity
from simbridge.report.over_time import prepare_time_axis
from simbridge.report.palette import ATTAINED, LIMIT, SETPOINT
from simbridge.report.timeline import thinned
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, plain, significant, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH, HEIGHT = 348, 380
# Many small charts: each in fewer columns than the large ones.
COLUMNS = 500
# A limit is drawn if that leaves the curve this part of the axes' height or more.
WORTH_DRAWING = 0.4


def joint_figure(joint: Joint, stamps: Array, number: int) -> str:
    """Three axes on one clock."""
    drawing = Drawing(WIDTH, HEIGHT)
    each, first = (HEIGHT - 40 - 3 * 24) / 3, None
    for row, quantity in enumerate(joint.quantities):
        top = 24 + row * (each + 24)
        axes = drawing.axes(46, HEIGHT - top - each, 16, top, sharex=first)
        first = first or axes
        _draw(axes, quantity, stamps)
        axes.tick_params(labelbottom=row == 2)
    prepare_time_axis(axes, stamps, 5)
    label = f"{joint.name}: {', '.join(f'{q.name} in {q.unit}' for q in joint.quantities)} over time"
    panels = [_panel(quantity, stamps) for quantity in joint.quantities]
    return chart(drawing.svg(f"joint{number}", label), panels, stamps, HEIGHT, columns=COLUMNS)


def _panel(quantity: Quantity, stamps: Array) -> Panel:
    low, high, limits = _range(quantity)
    curves = (("setpoint", quantity.wanted, SETPOINT, 3.5), ("attained", quantity.values, ATTAINED, 1.5))
    lines = [
        Line(
            f"{quantity.name}, {name}" if quantity.wanted is not None else quantity.name, colour, stamps, values, width
        )
        for name, values, colour, width in curves
        if values is not None
    ]
    unit = quantity.unit if quantity.unit.startswith("°") else f"{NO_BREAK}{quantity.unit}"
    return Panel(f"{quantity.name.capitalize()} ({quantity.unit})", lines, (low, high), unit, limits=limits)


def _draw(axes: Axes, quantity: Quantity, stamps: Array) -> None:
    for values, colour, width in ((quantity.wanted, SETPOINT, 4.5), (quantity.values, ATTAINED, 1.6)):
        if values is not None:
            kept = thinned(values, WIDTH)
            axes.plot(stamps[kept], values[kept], color=colour, linewidth=width, marker=dots(len(stamps)))
    low, high, limits = _range(quantity)
    for limit in limits:
        axes.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 2)))
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(few_ticks(4))
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.set_title(f"{quantity.name.capitalize()} ({quantity.unit})", loc="left", fontsize=11.0, pad=5.0)
    axes.set_title(limit_text(quantity), loc="right", fontsize=10.0, pad=5.0)


def _range(quantity: Quantity) -> tuple[float, float, list[float]]:
    """What the axes show, and which limits are in it."""
    if not quantity.known:
        return -1.0, 1.0, []
    curves = np.concatenate([quantity.values, quantity.values if quantity.wanted is None else quantity.wanted])
    finite = curves[np.isfinite(curves)]
    least, most = float(finite.min()), float(finite.max())
    middle, span = 0.5 * (least + most), max(most - least, 10.0 * quantity.resolution)
    low, high = middle - 0.5 * span, middle + 0.5 * span
    limits = []
    for limit in (quantity.lower, quantity.upper):
        if np.isfinite(limit) and span >= WORTH_DRAWING * (max(high, limit) - min(low, limit)):
            low, high = min(low, limit), max(high, limit)
            limits.append(limit)
    room = 0.08 * (high - low)
    return low - room, high + room, limits


def limit_text(quantity: Quantity) -> str:
    """How near the limit came, in a few words."""
    if not quantity.known:
        return "no data"
    if quantity.name == "position":
        margin = quantity.margin
        return "no limit" if margin is None else f"{with_unit(significant(margin), quantity.unit)} to limit"
    if quantity.share is None:
        return f"peak {with_unit(significant(quantity.peak), quantity.unit)}"
    limit = plain(float(f"{quantity.upper:.4g}"))
    return f"{significant(100.0 * quantity.share, 2, 1)}\u00a0% of ±{limit}"
