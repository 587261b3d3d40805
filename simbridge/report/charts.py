"""Charts over time and maps of a path: SVG, with the numbers as JSON for the page's script.

The script draws charts again to show values under the pointer and to zoom. The SVG is what paper,
and browsers without scripts, show.
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
from simbridge.report.ticks import draw_ticks
from simbridge.robot.pose import Array
from simbridge.text import significant

# Margins of a chart, in pixels.
LEFT = 54
RIGHT = 18
BOTTOM = 40
# Height of each panel's title, in pixels.
TITLE = 24
# A chart wider than this, in pixels, has room for more ticks of the time.
WIDE_CHART = 600
WIDE_CHART_TICKS = 10
NARROW_CHART_TICKS = 5
# Significant digits of times and of values for the script.
TIME_DIGITS = 6
VALUE_DIGITS = 4
MAP_DIGITS = 5


@dataclass(frozen=True, eq=False)
class Line:
    """A curve of a panel.

    Attributes:
        name: What the legend and the pointer call it.
        colour: The line's colour, as #rrggbb.
        times: Instants (K,), s.
        values: Values (K,), in the panel's unit; NaN is a gap.
        width: The line's width, pixels.
        dash: A name in `DASHES`.
    """

    name: str
    colour: str
    times: Array
    values: Array
    width: float = 1.6
    dash: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """A pair of axes of a chart.

    Attributes:
        title: The quantity, with its unit.
        lines: The curves.
        shown: Values at the bottom and at the top.
        unit: What is appended to the values under the pointer.
        logarithmic: Whether a division is a factor of ten.
        limits: Values at which a limit is drawn.
        remark: What is shown at the right of the title.
    """

    title: str
    lines: Sequence[Line]
    shown: tuple[float, float]
    unit: str
    logarithmic: bool = False
    limits: Sequence[float] = ()
    remark: str = ""

    def describe(self) -> str:
        """Return the range of each curve, for a reader who does not see them."""
        ranges = []
        for line in self.lines:
            finite = line.values[np.isfinite(line.values)]
            if len(finite):
                text = f"{significant(finite.min())} to {significant(finite.max())}"
            else:
                text = "no data"
            ranges.append(f"{line.name} {text}")
        return f"{self.title}: {', '.join(ranges) or 'zero'}."

    def visible_values(self, line: Line) -> Array:
        """Return a line's values (K,); what a logarithmic axis cannot show is a gap."""
        if not self.logarithmic:
            return line.values
        return np.where(line.values >= self.shown[0], line.values, np.nan)


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels above each other over one time axis.

    Attributes:
        panels: The panels from top to bottom.
        stamps: Instants (T,), s: the chart spans the first to the last.
        height: Height of the chart, pixels.
        bands: Intervals to be shaded: begin and end, s.
        marks: Samples to be marked: number of the panel, time, s, and value.
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
        begin = float(self.stamps[0])
        end = float(self.stamps[-1])
        if end <= begin:
            end = begin + 1e-3
        return begin, end

    def svg(self, name: str, label: str, width: int) -> Markup:
        """Return the chart as an element of the page.

        Args:
            name: Name of the chart: see `Drawing.svg`.
            label: The alternative text, to which the range of each curve is added.
            width: Width of the chart, pixels.
        """
        ranges = " ".join(panel.describe() for panel in self.panels)
        return self.draw(width).svg(name, f"{label}. {ranges}")

    def draw(self, width: int, head: int = 0) -> drawing.Drawing:
        """Return the chart as a drawing.

        Args:
            width: Width of the chart, pixels.
            head: Height of the room for a legend above it, pixels.
        """
        canvas = drawing.Drawing(width, self.height + head)
        panel_height = (self.height - BOTTOM) / len(self.panels) - TITLE
        panels_axes: list[Axes] = []
        for number, panel in enumerate(self.panels):
            # All panels share the time axis of the first; only the last one has its numbers.
            top = TITLE + number * (panel_height + TITLE)
            bottom = self.height - top - panel_height
            time_axis = panels_axes[0] if panels_axes else None
            axes = canvas.axes(LEFT, bottom, RIGHT, head + top, sharex=time_axis)
            panels_axes.append(axes)
            self._draw_panel(axes, panel, width - LEFT - RIGHT)

            for mark_panel, time, value in self.marks:
                if mark_panel == number:
                    drawing.mark(axes, (time, value), "X")

        ticks = WIDE_CHART_TICKS if width > WIDE_CHART else NARROW_CHART_TICKS
        drawing.prepare_time_axis(axes, *self.span, ticks=ticks, label=self.axis)
        draw_ticks(panels_axes)
        return canvas

    def _draw_panel(self, axes: Axes, panel: Panel, width: int) -> None:
        """Draw bands, curves, limits and titles on axes of a width in pixels."""
        if panel.logarithmic:
            drawing.prepare_logarithmic(axes, *panel.shown)
        else:
            axes.set_ylim(*panel.shown)
            axes.yaxis.set_major_locator(drawing.few_ticks(4))
            axes.yaxis.set_major_formatter(drawing.plain_numbers())

        # Bands over the whole height: begin and length of each, s.
        axes.broken_barh(
            [(begin, end - begin) for begin, end in self.bands],
            (0.0, 1.0),
            transform=axes.get_xaxis_transform(),
            facecolors=LIMITER,
            alpha=0.15,
            linewidth=0.0,
        )

        for line in panel.lines:
            values = panel.visible_values(line)
            kept = decimate(values, width)
            _draw_line(axes, line, line.times[kept], values[kept])
        for limit in panel.limits:
            axes.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 2)))

        axes.set_title(panel.title, loc="left", pad=6.0)
        axes.set_title(panel.remark, loc="right", fontsize="small", pad=6.0)

    def html(self, drawn: Markup) -> Markup:
        """Return the element of the page.

        Args:
            drawn: The chart as SVG; the numbers for the script are added to it.
        """
        begin, end = self.span
        marks = []
        for panel, time, value in self.marks:
            marks.append([panel, *_round_significant(np.array([time, value]), TIME_DIGITS)])
        content = {
            "height": self.height,
            "begin": begin,
            "end": end,
            "bands": [_round_significant(np.array(band), TIME_DIGITS) for band in self.bands],
            "marks": marks,
            "axis": self.axis,
            "panels": [self._panel_content(panel) for panel in self.panels],
        }
        element = Markup('<div class="chart" data-chart="{}"><div class="static">{}</div></div>')
        return element.format(_as_compact_json(content), drawn)

    def _panel_content(self, panel: Panel) -> dict[str, Any]:
        """Return the numbers of a panel for the script of the page."""
        lines = []
        for line in panel.lines:
            values = panel.visible_values(line)
            kept = decimate(values, self.columns)
            lines.append(
                {
                    "name": line.name,
                    "colour": on_page(line.colour),
                    "width": line.width,
                    "dash": " ".join(f"{length:g}" for length in DASHES[line.dash]),
                    "t": _round_significant(line.times[kept], TIME_DIGITS),
                    "y": _round_significant(values[kept], VALUE_DIGITS),
                }
            )

        low, high = panel.shown
        return {
            "title": panel.title,
            "remark": panel.remark,
            "unit": panel.unit,
            "log": panel.logarithmic,
            "limits": list(panel.limits),
            "low": low,
            "high": high,
            "lines": lines,
        }


def _draw_line(axes: Axes, line: Line, times: Array, values: Array) -> None:
    """Draw a curve; a sample between two gaps would make no line, and becomes a dot."""
    style: Any = "-"
    if line.dash:
        # matplotlib's dashes are multiples of the width.
        style = (0, tuple(length / line.width for length in DASHES[line.dash]))
    axes.plot(
        times,
        values,
        color=line.colour,
        linewidth=line.width,
        linestyle=style,
        marker=drawing.dots(len(line.times)),
    )

    is_finite = np.concatenate([[False], np.isfinite(values), [False]])
    is_alone = is_finite[1:-1] & ~is_finite[:-2] & ~is_finite[2:]
    if is_alone.any():
        size = 3.0 + line.width
        axes.plot(times[is_alone], values[is_alone], ".", color=line.colour, markersize=size)


def path_map(drawn: Markup, places: Array, times: Array, columns: Mapping[str, Array]) -> Markup:
    """Return a drawing of a path, with the place of each sample for the script.

    Args:
        drawn: The drawing as SVG.
        places: Positions of K drawn samples (K, 2), in pixels from the upper left corner.
        times: Instants of the samples (K,), s.
        columns: Values (K,) to be shown under the pointer, under "name|unit".
    """
    shown_values = []
    for name, values in columns.items():
        shown_values.append({"name": name, "values": _round_significant(values, MAP_DIGITS)})
    content = {
        "x": _round_significant(places[:, 0], MAP_DIGITS),
        "y": _round_significant(places[:, 1], MAP_DIGITS),
        "t": _round_significant(times, TIME_DIGITS),
        "columns": shown_values,
    }
    return Markup('<div class="map" data-map="{}">{}</div>').format(
        _as_compact_json(content), drawn
    )


def _round_significant(values: Array, digits: int) -> list[float | None]:
    """Return values (K,) rounded to significant digits; None if a value is not finite."""
    numbers: list[float | None] = []
    for value in values.tolist():
        numbers.append(float(f"{value:.{digits}g}") if math.isfinite(value) else None)
    return numbers


def _as_compact_json(content: dict[str, Any]) -> str:
    """Return content as JSON without blanks."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def decimate(values: Array, columns: int) -> NDArray[np.intp]:
    """Return the samples of a curve that are drawn so that it looks the same.

    They are the lowest and the highest of every column, and the first gap in it.

    Args:
        values: The curve (T,); NaN is a gap, and stays one.
        columns: The number of columns of pixels that it will cover.

    Returns:
        Increasing indices, at most 3 columns + 2; those of all samples if there are no more.
    """
    count = len(values)
    if count <= 3 * columns + 2:
        return np.arange(count)

    pieces = cut_evenly(values, columns)
    piece_begins = np.arange(len(pieces)) * pieces.shape[1]
    is_gap = np.isnan(pieces)

    lowest = piece_begins + np.where(is_gap, np.inf, pieces).argmin(axis=1)
    highest = piece_begins + np.where(is_gap, -np.inf, pieces).argmax(axis=1)
    first_gaps = (piece_begins + is_gap.argmax(axis=1))[is_gap.any(axis=1)]
    ends = np.array([0, count - 1])
    indices = np.concatenate([lowest, highest, first_gaps, ends])
    # The values that fill up the last piece stand for the last sample.
    return np.unique(np.minimum(indices, count - 1))


def cut_evenly(values: Array, pieces: int) -> Array:
    """Cut a curve into pieces of equal length.

    Args:
        values: The curve (T,).
        pieces: The largest number of pieces.

    Returns:
        The pieces as rows (P, S); the last one is filled up with the last value.
    """
    length = math.ceil(len(values) / pieces)
    count = math.ceil(len(values) / length)
    filling = np.full(count * length - len(values), values[-1])
    return np.concatenate([values, filling]).reshape(count, length)


def decimate_path(points: Array, pieces: int) -> NDArray[np.intp]:
    """Return the points of a path that are drawn so that it looks the same.

    They are the outermost of each piece.

    Args:
        points: The path (T, 2), in the plane in which it is drawn.
        pieces: The number of pieces of equal time into which a long path is cut.

    Returns:
        Increasing indices, at most 6 pieces + 2; those of all samples if there are at most half as
        many.
    """
    outermost_right = decimate(points[:, 0], pieces)
    outermost_up = decimate(points[:, 1], pieces)
    return np.union1d(outermost_right, outermost_up)


def intervals(
    marked: NDArray[np.bool_], stamps: Array, gap: float = 0.0
) -> list[tuple[float, float]]:
    """Return the intervals of time in which samples are marked.

    Args:
        marked: True for each marked sample (T,).
        stamps: Instants of the samples (T,), s.
        gap: Intervals less than this apart, in s, count as one.

    Returns:
        The instants of the first and last sample of each interval, s.
    """
    # The marks switch on at even edges, and off at odd ones.
    padded = np.concatenate([[False], marked, [False]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(padded))
    begins = stamps[edges[::2]].tolist()
    ends = stamps[edges[1::2] - 1].tolist()

    merged: list[tuple[float, float]] = []
    for begin, end in zip(begins, ends, strict=True):
        if merged and begin - merged[-1][1] < gap:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged
