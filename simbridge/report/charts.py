"""Charts over time and maps of a path: each drawn as SVG, with its numbers as JSON for the page's script.

The script draws charts again to show values under the pointer and to zoom. The SVG is what paper, and browsers without
scripts, show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from numpy.typing import NDArray

from simbridge.report import drawing
from simbridge.report.palette import DASHES, LIMIT, LIMITER, on_page
from simbridge.robot.pose import Array
from simbridge.text import significant

# Margins of a chart, and the height of each panel's title, in pixels.
LEFT, RIGHT, BOTTOM, TITLE = 54, 18, 40, 24


@dataclass(frozen=True, eq=False)
class Line:
    """One curve of a panel.

    Attributes:
        name: Shown in the legend and under the pointer.
        colour, width, dash: How it is drawn: the width in pixels, the dash by its name in `DASHES`.
        times: (K,), s.
        values: (K,), in the panel's unit; NaN is a gap.
    """

    name: str
    colour: str
    times: Array
    values: Array
    width: float = 1.6
    dash: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes of a chart.

    Attributes:
        title: The quantity, with its unit.
        lines: Its curves.
        shown: Values at the bottom and at the top.
        unit: Appended to the values under the pointer.
        logarithmic: Whether a division is a factor of ten.
        limits: Values at which a limit is drawn.
        remark: Shown at the right of the title.
    """

    title: str
    lines: Sequence[Line]
    shown: tuple[float, float]
    unit: str
    logarithmic: bool = False
    limits: Sequence[float] = ()
    remark: str = ""

    def spoken(self) -> str:
        """What a reader who does not see it should know: the range of each curve."""
        ranges = []
        for line in self.lines:
            known = line.values[np.isfinite(line.values)]
            shown = (
                f"{significant(known.min())} to {significant(known.max())}"
                if len(known)
                else "no data"
            )
            ranges.append(f"{line.name} {shown}")
        return f"{self.title}: {', '.join(ranges) or 'zero'}."

    def visible(self, line: Line) -> Array:
        """The line's values; what a logarithmic axis cannot show is a gap."""
        return (
            np.where(line.values >= self.shown[0], line.values, np.nan)
            if self.logarithmic
            else line.values
        )


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels above each other over one time axis.

    Attributes:
        panels: From top to bottom.
        stamps: (T,), s: the chart spans the first to the last.
        height: In pixels.
        bands: Intervals to be shaded, s.
        marks: Samples to be marked: number of the panel, time, value.
        axis: The label of the time axis.
        columns: Into how many columns the script's copy of a long curve is decimated.
    """

    panels: Sequence[Panel]
    stamps: Array
    height: float
    bands: Sequence[tuple[float, float]] = ()
    marks: Sequence[tuple[int, float, float]] = ()
    axis: str = "Time (s)"
    columns: int = 2000

    @property
    def span(self) -> tuple[float, float]:
        """First and last instant, s; never of length zero."""
        begin, end = float(self.stamps[0]), float(self.stamps[-1])
        return begin, end if end > begin else begin + 1e-3

    def svg(self, name: str, label: str, width: int) -> Markup:
        """The drawing; see `Drawing.svg` for `name` and `label`, to which the range of each curve is added."""
        return self.drawn(width).svg(
            name, f"{label}. {' '.join(panel.spoken() for panel in self.panels)}"
        )

    def drawn(self, width: int, head: int = 0) -> drawing.Drawing:
        """The drawing, with room for a legend above it; both in pixels."""
        canvas, first = drawing.Drawing(width, self.height + head), None
        each = (self.height - BOTTOM) / len(self.panels) - TITLE
        for number, panel in enumerate(self.panels):
            top = TITLE + number * (each + TITLE)
            axes = canvas.axes(LEFT, self.height - top - each, RIGHT, head + top, sharex=first)
            first = first or axes
            self._draw(axes, panel, width - LEFT - RIGHT)
            for _, time, value in (entry for entry in self.marks if entry[0] == number):
                drawing.mark(axes, (time, value), "X")
            axes.tick_params(labelbottom=number == len(self.panels) - 1)
        drawing.prepare_time_axis(axes, *self.span, 10 if width > 600 else 5, self.axis)
        return canvas

    def _draw(self, axes: Axes, panel: Panel, width: int) -> None:
        if panel.logarithmic:
            drawing.prepare_logarithmic(axes, *panel.shown)
        else:
            axes.set_ylim(*panel.shown)
            axes.yaxis.set_major_locator(drawing.few_ticks(4))
            axes.yaxis.set_major_formatter(drawing.plain_numbers())
        bars = [(begin, end - begin) for begin, end in self.bands]
        across = axes.get_xaxis_transform()
        axes.broken_barh(
            bars, (0.0, 1.0), transform=across, facecolors=LIMITER, alpha=0.15, linewidth=0.0
        )
        for line in panel.lines:
            values = panel.visible(line)
            kept = decimated(values, width)
            _draw_line(axes, line, line.times[kept], values[kept])
        for limit in panel.limits:
            axes.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 2)))
        axes.set_title(panel.title, loc="left", pad=6.0)
        axes.set_title(panel.remark, loc="right", fontsize="small", pad=6.0)

    def html(self, drawn: Markup) -> Markup:
        """The element of the page: what was drawn, and the numbers for the script."""
        begin, end = self.span
        content = {
            "height": self.height,
            "begin": begin,
            "end": end,
            "bands": [_numbers(np.array(band), 6) for band in self.bands],
            "marks": [[number, *_numbers(np.array(point), 6)] for number, *point in self.marks],
            "axis": self.axis,
            "panels": [self._panel(panel) for panel in self.panels],
        }
        element = Markup('<div class="chart" data-chart="{}"><div class="static">{}</div></div>')
        return element.format(_compact(content), drawn)

    def _panel(self, panel: Panel) -> dict[str, Any]:
        low, high = panel.shown
        lines = []
        for line in panel.lines:
            values = panel.visible(line)
            kept = decimated(values, self.columns)
            style = {"name": line.name, "colour": on_page(line.colour), "width": line.width}
            style["dash"] = " ".join(f"{length:g}" for length in DASHES[line.dash])
            lines.append(
                {**style, "t": _numbers(line.times[kept], 6), "y": _numbers(values[kept], 4)}
            )
        facts = {
            "title": panel.title,
            "remark": panel.remark,
            "unit": panel.unit,
            "log": panel.logarithmic,
            "limits": list(panel.limits),
        }
        return {**facts, "low": low, "high": high, "lines": lines}


def _draw_line(axes: Axes, line: Line, times: Array, values: Array) -> None:
    """The curve; a sample between two gaps would make no line, and becomes a dot."""
    # matplotlib's dashes are multiples of the width.
    style = (0, tuple(length / line.width for length in DASHES[line.dash])) if line.dash else "-"
    dots = drawing.dots(len(line.times))
    axes.plot(times, values, color=line.colour, linewidth=line.width, linestyle=style, marker=dots)
    known = np.concatenate([[False], np.isfinite(values), [False]])
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    if alone.any():
        axes.plot(times[alone], values[alone], ".", color=line.colour, markersize=3.0 + line.width)


def path_map(drawn: Markup, places: Array, times: Array, columns: Mapping[str, Array]) -> Markup:
    """A drawing of a path, with the place of each sample for the script.

    Args:
        drawn: SVG.
        places: (K, 2) in the drawing's pixels, from its upper left corner.
        times: (K,), s.
        columns: Values (K,) to be shown under the pointer, under "name|unit".
    """
    content = {
        "x": _numbers(places[:, 0], 5),
        "y": _numbers(places[:, 1], 5),
        "t": _numbers(times, 6),
        "columns": [
            {"name": name, "values": _numbers(values, 5)} for name, values in columns.items()
        ],
    }
    return Markup('<div class="map" data-map="{}">{}</div>').format(_compact(content), drawn)


def _numbers(values: Array, digits: int) -> list[float | None]:
    return [
        float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()
    ]


def _compact(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def decimated(values: Array, columns: int) -> NDArray[np.intp]:
    """Which samples of a curve to draw so that it looks the same: the lowest and the highest of every column.

    Args:
        values: The curve (T,); NaN is a gap, and stays one.
        columns: How many columns of pixels it will cover.

    Returns:
        Increasing indices, at most 3 columns + 2 of them; all when there are no more than that.
    """
    count = len(values)
    if count <= 3 * columns + 2:
        return np.arange(count)
    size = -(-count // columns)
    padded = np.concatenate([values, np.full(-count % size, values[-1])]).reshape(-1, size)
    gaps = np.isnan(padded)
    first = np.arange(len(padded)) * size
    chosen = [
        first + np.where(gaps, np.inf, padded).argmin(axis=1),
        first + np.where(gaps, -np.inf, padded).argmax(axis=1),
        (first + gaps.argmax(axis=1))[gaps.any(axis=1)],
        np.array([0, count - 1]),
    ]
    return np.unique(np.minimum(np.concatenate(chosen), count - 1))


def decimated_path(points: Array, pieces: int) -> NDArray[np.intp]:
    """Which points (T, 2) of a path to draw so that it looks the same: the outermost of every piece.

    Args:
        points: The path, in the plane in which it is drawn.
        pieces: Into how many pieces of equal time a long path is cut.

    Returns:
        Increasing indices, at most 6 pieces + 2 of them; all when there are no more than half of that.
    """
    return np.union1d(decimated(points[:, 0], pieces), decimated(points[:, 1], pieces))


def intervals(
    marked: NDArray[np.bool_], stamps: Array, gap: float = 0.0
) -> list[tuple[float, float]]:
    """From when to when samples are marked.

    Args:
        marked: Which samples (T,).
        stamps: Their instants (T,), s.
        gap: Intervals less than this apart, in s, count as one.

    Returns:
        The instants of the first and last sample of each interval, s.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    merged: list[tuple[float, float]] = []
    for begin, end in zip(
        stamps[edges[::2]].tolist(), stamps[edges[1::2] - 1].tolist(), strict=True
    ):
        if merged and begin - merged[-1][1] < gap:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged
