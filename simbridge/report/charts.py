"""What the page's script needs to draw a figure again: its curves and points as numbers, beside the drawing itself.

Without the script, and on paper, the drawing is what is seen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from simbridge.report.timeline import thinned
from simbridge.robot.pose import Array

# A long curve is given by the lowest and the highest sample of so many columns: enough to zoom in twice or thrice.
COLUMNS = 2000


@dataclass(frozen=True, eq=False)
class Line:
    """One curve of a panel.

    Attributes:
        name: As the reader is told it.
        colour, width, dashed: How it is drawn.
        times: (K,), s.
        values: (K,), in the panel's unit; what is not a number is a gap.
    """

    name: str
    colour: str
    times: Array
    values: Array
    width: float = 1.6
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """Axes of a chart over time.

    Attributes:
        title: What is drawn, with its unit.
        lines: Its curves.
        shown: What the axes show from bottom to top.
        logarithmic: Whether a division is a factor of ten.
        unit: For the values under the pointer.
        limits: Values at which a limit is drawn.
    """

    title: str
    lines: Sequence[Line]
    shown: tuple[float, float]
    unit: str
    logarithmic: bool = False
    limits: Sequence[float] = field(default=())


def chart(
    drawn: str,
    panels: Sequence[Panel],
    stamps: Array,
    height: float,
    *,
    columns: int = COLUMNS,
    bands: Iterable[tuple[float, float]] = (),
    marks: Sequence[tuple[int, float, float]] = (),
    axis: str = "Time (s)",
) -> str:
    """A drawing over time, and its numbers for the script.

    Args:
        drawn: SVG, or several of them.
        panels: From top to bottom.
        stamps: (T,), s: the chart goes from the first to the last.
        height: Of the chart, in pixels.
        columns: Into how many columns long curves are thinned.
        bands: Stretches of time to be shaded, s.
        marks: Samples that are spoken of: which panel, when, and the value.
        axis: What is measured along it.
    """
    begin, end = float(stamps[0]), float(stamps[-1])
    content = {
        "height": height,
        "begin": begin,
        "end": end if end > begin else begin + 1e-3,
        "bands": [[float(f"{a:.6g}"), float(f"{b:.6g}")] for a, b in bands],
        "marks": [[number, float(f"{t:.6g}"), float(f"{value:.5g}")] for number, t, value in marks],
        "axis": axis,
        "panels": [_panel(panel, columns) for panel in panels],
    }
    return f'<div class="chart" data-chart="{_attribute(content)}"><div class="static">{drawn}</div></div>'


def map_of(drawn: str, places: Array, times: Array, columns: dict[str, Array]) -> str:
    """A drawing of a path, and where on it each sample is.

    Args:
        drawn: SVG.
        places: (K, 2) in the drawing's own units, from its upper left corner.
        times: (K,), s.
        columns: What to tell of each place: (K,) under its name and unit.
    """
    content = {
        "x": _numbers(places[:, 0], 5),
        "y": _numbers(places[:, 1], 5),
        "t": _numbers(times, 6),
        "told": [{"name": name, "values": _numbers(values, 5)} for name, values in columns.items()],
    }
    return f'<div class="map" data-map="{_attribute(content)}">{drawn}</div>'


def _panel(panel: Panel, columns: int) -> dict[str, Any]:
    low, high = panel.shown
    return {
        "title": panel.title,
        "unit": panel.unit,
        "log": panel.logarithmic,
        "low": low,
        "high": high,
        "limits": list(panel.limits),
        "lines": [_line(line, low if panel.logarithmic else None, columns) for line in panel.lines],
    }


def _line(line: Line, lowest: float | None, columns: int) -> dict[str, Any]:
    # What logarithmic axes cannot show is a gap.
    values = line.values if lowest is None else np.where(line.values >= lowest, line.values, np.nan)
    kept = thinned(values, columns) if len(values) else np.zeros(0, dtype=np.intp)
    return {
        "name": line.name,
        "colour": line.colour,
        "width": line.width,
        "dashed": line.dashed,
        "t": _numbers(line.times[kept], 6),
        "y": _numbers(values[kept], 4),
    }


def _numbers(values: Array, digits: int) -> list[float | None]:
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]


def _attribute(content: dict[str, Any]) -> str:
    return escape(json.dumps(content, separators=(",", ":"), allow_nan=False))
