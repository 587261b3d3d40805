"""Figures as SVG inside the page: sized in CSS pixels, in the page's font.

Equal runs make equal bytes. The figures are drawn for paper, too: a pixel is then as many points
long as gives the text the size of a paper's.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from simbridge.report.palette import DASHES, GRID, GROUND, INK, REFERENCE, TRACKING, on_page
from simbridge.text import MINUS

# One unit of an SVG is a point to matplotlib and a pixel to the page.
POINTS_PER_INCH = 72.0
# Size of the text on the page, pixels.
TEXT_SIZE = 11.0
# Size of the text on paper, points.
PAPER_TEXT_SIZE = 8.0
# A curve of fewer samples is drawn with dots.
MIN_LINE_SAMPLES = 20

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "simbridge",
    "font.family": ["DejaVu Sans"],
    "font.size": TEXT_SIZE,
    "axes.labelsize": TEXT_SIZE,
    "axes.labelcolor": INK,
    "axes.labelpad": 3.0,
    "axes.edgecolor": REFERENCE,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.autolimit_mode": "data",
    # Without a fixed position of the title, matplotlib lays everything out twice.
    "axes.titley": 1.0,
    "axes.titlesize": TEXT_SIZE,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    # Names are shown as they are: a $ in a name does not begin a formula.
    "text.parse_math": False,
    # The grid shows where the numbers belong; tick marks would add a tenth to the drawing time.
    "xtick.bottom": False,
    "ytick.left": False,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": TEXT_SIZE,
    "ytick.labelsize": TEXT_SIZE,
    "lines.solid_joinstyle": "round",
    "path.simplify": True,
}

# Parts of matplotlib's SVG that the page does not need, and their replacements.
_SHORTER = (
    (re.compile(r"^.*?<svg[^>]*>", re.S), ""),
    (re.compile(r"<metadata>.*?</metadata>\s*", re.S), ""),
    (re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.S), ""),
    (re.compile(r"font-family: 'DejaVu Sans';? ?"), ""),
    (re.compile(r' transform="rotate\(-0 [^)]*\)"'), ""),
    (re.compile(r'<g id="[a-z_.A-Z]+\d*(?:_\d+)?">'), "<g>"),
    (re.compile(r"\s*\n\s*"), " "),
)
_TAG = re.compile(r"<[^>]*>")
_LONG_NUMBER = re.compile(r"(\.\d\d)\d+")


def drawing_style(*, paper: bool = False) -> AbstractContextManager[None]:
    """Set the style of figures until the block ends, whatever the user's matplotlib settings are.

    Args:
        paper: The style on paper, in place of the pages'.
    """
    # The backend is not a matter of style.
    style: dict[Any, Any] = {}
    for name, value in matplotlib.rcParamsDefault.items():
        if not name.startswith("backend"):
            style[name] = value
    style |= STYLE

    if paper:
        for parameter, setting in STYLE.items():
            if setting == TEXT_SIZE:
                style[parameter] = PAPER_TEXT_SIZE
        # Journals want embedded fonts; an SVG is shown alike everywhere only with its letters as
        # shapes.
        style |= {"svg.fonttype": "path", "pdf.fonttype": 42, "lines.scale_dashes": True}
    return matplotlib.rc_context(style)


class Drawing:
    """A matplotlib figure of a fixed size, written as SVG or PDF.

    Args:
        width: Width, CSS pixels; the page may scale it down.
        height: Height, CSS pixels.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        # The length of a pixel, inches: a point on the page.
        pixel = matplotlib.rcParams["font.size"] / TEXT_SIZE / POINTS_PER_INCH
        self._figure = Figure(figsize=(width * pixel, height * pixel), dpi=POINTS_PER_INCH)
        self._figure.patch.set_visible(False)
        FigureCanvasSVG(self._figure)

    def axes(self, left: float, bottom: float, right: float, top: float, **more: Any) -> Axes:
        """Add axes between four margins.

        Args:
            left: Distance from the figure's left edge, pixels.
            bottom: Distance from its lower edge, pixels.
            right: Distance from its right edge, pixels.
            top: Distance from its upper edge, pixels.
            **more: Options of matplotlib's `add_axes`.
        """
        width = self.width - left - right
        height = self.height - bottom - top
        rectangle = (
            left / self.width,
            bottom / self.height,
            width / self.width,
            height / self.height,
        )
        axes = self._figure.add_axes(rectangle, **more)
        axes.patch.set_visible(False)
        # It has no label: without this, all tick labels are measured once more to place one.
        axes.yaxis.set_label_coords(0.0, 0.5)
        return axes

    def to_pixels(self, axes: Axes, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points (K, 2) of the axes in pixels from the figure's upper left corner (K, 2)."""
        pixels = np.asarray(axes.transData.transform(points), dtype=float)
        return np.stack([pixels[:, 0], self.height - pixels[:, 1]], axis=1)

    def legend(self, entries: Sequence[tuple[str, str, str]], columns: int = 3) -> None:
        """Draw a legend at the upper edge; on a page it is an element beside the figure.

        Args:
            entries: Names, colours and dashes (of `DASHES`).
            columns: The number of columns of entries.
        """
        names = []
        handles = []
        for name, colour, dash in entries:
            handle = Line2D([], [], color=colour, linewidth=1.0)
            if dash:
                handle.set_dashes(DASHES[dash])
            names.append(name)
            handles.append(handle)

        options = {
            "ncols": columns,
            "frameon": False,
            "borderaxespad": 0.0,
            "handlelength": 2.0,
            "columnspacing": 1.0,
        }
        self._figure.legend(handles, names, loc="upper left", **options)

    def save(self, new: str | Path, kind: str) -> None:
        """Write the figure as a file for a paper: "svg" or "pdf", without a date."""
        metadata = {"Date": None} if kind == "svg" else {"CreationDate": None}
        self._figure.savefig(new, format=kind, metadata=metadata)

    def svg(self, name: str, label: str, *, paper: bool = False) -> Markup:
        """Return the figure as an element of the page.

        Args:
            name: A name that is unique on the page: identifiers inside begin with it.
            label: The alternative text.
            paper: True for a drawing with a scale of colours. It keeps the colours of a white page,
                which page.css inverts as a whole on a dark page; other drawings take that page's.
        """
        # What matplotlib writes, without what the page does not need.
        buffer = io.StringIO()
        self._figure.savefig(buffer, format="svg", metadata={"Date": None})
        text = buffer.getvalue()
        for pattern, shorter in _SHORTER:
            text = pattern.sub(shorter, text)

        def shorten_tag(tag: re.Match[str]) -> str:
            """Return a tag with short numbers, the page's colours and unique identifiers."""
            short = on_page(_LONG_NUMBER.sub(r"\1", tag[0]))
            short = short.replace(' id="', f' id="{name}-')
            short = short.replace("url(#", f"url(#{name}-")
            return short.replace('xlink:href="#', f'href="#{name}-')

        # Only inside tags: between them are the labels, which stay as they are.
        text = _TAG.sub(shorten_tag, text)
        head = Markup(
            '<svg class="figure{kind}" viewBox="0 0 {width:g} {height:g}" role="img" '
            'aria-label="{label}" style="max-width:{width:g}px">'
        ).format(kind=" paper" if paper else "", width=self.width, height=self.height, label=label)
        return head + Markup(text.strip())


def mark(axes: Axes, point: Sequence[float] | NDArray[np.float64], marker: str) -> None:
    """Mark a point (2,) of the axes: "o" the start, "X" the sample with the largest error."""
    if marker == "X":
        face = TRACKING
        edge = GROUND
        edge_width = 0.8
    else:
        face = GROUND
        edge = TRACKING
        edge_width = 1.5
    axes.plot(
        *point,
        marker=marker,
        markersize=10.0,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=edge_width,
        clip_on=False,
        zorder=5,
    )


def dots(samples: int) -> str | None:
    """Return the marker of a curve.

    Few samples are drawn as dots too, for a short line hardly shows.
    """
    return "." if samples < MIN_LINE_SAMPLES else None


def few_ticks(most: int) -> Locator:
    """Return a locator of at most `most` ticks, at round numbers."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def plain_numbers() -> Formatter:
    """Return a formatter of tick labels without exponents and without an offset."""
    return FuncFormatter(lambda value, _: as_written(value))


def as_written(value: float) -> str:
    """Return a round number as text, without an exponent."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text.replace("-", MINUS) if text != "-0" else "0"


def prepare_time_axis(
    axes: Axes, begin: float, end: float, *, ticks: int, label: str = "Time (s)"
) -> None:
    """Let the horizontal axis show time.

    Args:
        axes: The axes of the horizontal axis.
        begin: The left end of the axis, s.
        end: The right end of the axis, s.
        ticks: The largest number of ticks.
        label: The label of the axis.
    """
    axes.set_xlim(begin, end)
    axes.xaxis.set_major_locator(few_ticks(ticks))
    axes.xaxis.set_major_formatter(plain_numbers())
    axes.set_xlabel(label)


def prepare_logarithmic(axes: Axes, bottom: float, top: float) -> None:
    """Let the vertical axis be logarithmic: a division per factor of ten, with finer lines between.

    Args:
        axes: The axes of the vertical axis.
        bottom: The lower end of the axis, a power of ten.
        top: The upper end of the axis.
    """
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(bottom, top)
    decades = range(round(math.log10(bottom)), math.floor(math.log10(top)) + 1)
    axes.set_yticks([10.0**decade for decade in decades], [_power(decade) for decade in decades])
    axes.yaxis.set_minor_locator(NullLocator())

    # The finer lines.
    values = []
    for decade in decades:
        values += [multiple * 10.0**decade for multiple in range(2, 10)]
    finer = np.array([value for value in values if value < top])
    # All in one line with gaps: one tick each would take ten times as long.
    gap = np.full(len(finer), np.nan)
    x = np.tile([0.0, 1.0, np.nan], len(finer))
    y = np.stack([finer, finer, gap], axis=1).ravel()
    axes.plot(x, y, color=GRID, linewidth=0.4, transform=axes.get_yaxis_transform(), zorder=0.5)


def _power(exponent: int) -> str:
    """Return a power of ten as text, as short as possible."""
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
