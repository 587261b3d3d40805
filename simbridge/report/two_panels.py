"""Two axes on one clock, drawn and for the script."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simbridge.report.charts import Panel, chart
from simbridge.report.drawing import Drawing, few_ticks, plain_numbers
from simbridge.report.over_time import prepare_logarithmic, prepare_time_axis
from simbridge.report.timeline import thinned

WIDTH, HEIGHT = 1080, 330


def two_panels(
    name: str, label: str, panels: Sequence[Panel], stamps: NDArray[np.float64], *, axis: str = "Time (s)"
) -> str:
    """The figure.

    Args:
        name: Its own on the page.
        label: What it shows, for those who cannot see it.
        panels: Two.
        stamps: (T,), s: the axes go from the first to the last.
        axis: What is measured along it.
    """
    drawing = Drawing(WIDTH, HEIGHT)
    first = None
    for panel, (bottom, top) in zip(panels, ((182, 24), (40, 172)), strict=True):
        axes = drawing.axes(54, bottom, 18, top, sharex=first)
        first = first or axes
        for line in panel.lines:
            kept = thinned(line.values, WIDTH - 72)
            style = ":" if line.dashed else "-"
            axes.plot(line.times[kept], line.values[kept], color=line.colour, linewidth=line.width, linestyle=style)
        if panel.logarithmic:
            prepare_logarithmic(axes, *panel.shown)
        else:
            axes.set_ylim(*panel.shown)
            axes.yaxis.set_major_locator(few_ticks(4))
            axes.yaxis.set_major_formatter(plain_numbers())
        axes.set_title(panel.title, loc="left", fontsize=11.0, pad=6.0)
        axes.tick_params(labelbottom=bottom == 40)
        prepare_time_axis(axes, stamps, 10)
        axes.set_xlabel(axis if bottom == 40 else "")
    return chart(f'<div class="broad">{drawing.svg(name, label)}</div>', panels, stamps, HEIGHT, axis=axis)
