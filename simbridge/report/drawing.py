"""Figures as SVG inside the page: sized in CSS pixels, in the page's font, the same bytes for the same run.

The same figures are drawn for paper: then a pixel is so many points that the text has the size of a paper's.
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
_POINTS_PER_INCH = 72.0
# Size of the text, in pixels on the page and in points on paper.
_TEXT, _PAPER_TEXT = 11.0, 8.0

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "simbridge",
    "font.family": ["DejaVu Sans"],
    "font.size": _TEXT,
    "axes.labelsize": _TEXT,
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
    "axes.titlesize": _TEXT,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    # Names are shown as they are: a $ in one begins no formula.
    "text.parse_math": False,
    # The grid shows where the numbers belong; tick marks would add a tenth to the drawing time.
    "xtick.bottom": False,
    "ytick.left": False,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": _TEXT,
    "ytick.labelsize": _TEXT,
    "lines.solid_joinstyle": "round",
    "path.simplify": True,
}

# What matplotlib writes and the page does not need.
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
    """The style of the pages' figures, or of the same on paper, independent of the user's matplotlib settings."""
    style: dict[Any, Any] = {
        k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")
    }
    style |= _STYLE
    if paper:
        style |= {name: _PAPER_TEXT for name, value in _STYLE.items() if value == _TEXT}
        # Journals want embedded fonts; an SVG is shown alike everywhere only with its letters as shapes.
        style |= {"svg.fonttype": "path", "pdf.fonttype": 42, "lines.scale_dashes": True}
    return matplotlib.rc_context(style)


class Drawing:
    """A figure.

    Args:
        width, height: In CSS pixels; the page may scale it down.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        # 1 on the page.
        points = matplotlib.rcParams["font.size"] / _TEXT / _POINTS_PER_INCH
        self._figure = Figure(figsize=(width * points, height * points), dpi=_POINTS_PER_INCH)
        self._figure.patch.set_visible(False)
        FigureCanvasSVG(self._figure)

    def axes(self, left: float, bottom: float, right: float, top: float, **more: Any) -> Axes:
        """Axes between four margins, in pixels from the figure's left, bottom, right and top edge."""
        width, height = self.width - left - right, self.height - bottom - top
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        axes = self._figure.add_axes(place, **more)
        axes.patch.set_visible(False)
        # It has no label: without this, all tick labels are measured once more to place one.
        axes.yaxis.set_label_coords(0.0, 0.5)
        return axes

    def places(self, axes: Axes, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points (K, 2) of the axes in pixels from the figure's upper left corner (K, 2)."""
        found = np.asarray(axes.transData.transform(points), dtype=float)
        return np.stack([found[:, 0], self.height - found[:, 1]], axis=1)

    def legend(self, entries: Sequence[tuple[str, str, str]], columns: int = 3) -> None:
        """Names, colours and dashes (of `DASHES`), at the upper edge: on a page they are elements beside the figure."""
        handles = [Line2D([], [], color=colour, linewidth=1.0) for _, colour, _ in entries]
        for handle, (_, _, dash) in zip(handles, entries, strict=True):
            if dash:
                handle.set_dashes(DASHES[dash])
        names = [name for name, *_ in entries]
        legend = {
            "ncols": columns,
            "frameon": False,
            "borderaxespad": 0.0,
            "handlelength": 2.0,
            "columnspacing": 1.0,
        }
        self._figure.legend(handles, names, loc="upper left", **legend)

    def save(self, new: str | Path, kind: str) -> None:
        """The figure as a file for a paper: "svg" or "pdf", without a date."""
        metadata = {"Date": None} if kind == "svg" else {"CreationDate": None}
        self._figure.savefig(new, format=kind, metadata=metadata)

    def svg(self, name: str, label: str, *, paper: bool = False) -> Markup:
        """The figure as an element of the page.

        Args:
            name: Unique on the page: identifiers inside begin with it.
            label: The alternative text.
            paper: On white even where the page is dark: for scales of colours.
        """
        buffer = io.StringIO()
        self._figure.savefig(buffer, format="svg", metadata={"Date": None})
        text = buffer.getvalue()
        for pattern, shorter in _SHORTER:
            text = pattern.sub(shorter, text)

        def shorten_tag(tag: re.Match[str]) -> str:
            short = on_page(_LONG_NUMBER.sub(r"\1", tag[0]))
            short = short.replace(' id="', f' id="{name}-').replace("url(#", f"url(#{name}-")
            return short.replace('xlink:href="#', f'href="#{name}-')

        # Only inside tags: between them are the labels, which stay as they are.
        text = _TAG.sub(shorten_tag, text)
        return Markup(
            '<svg class="figure{4}" viewBox="0 0 {0:g} {1:g}" role="img" aria-label="{2}" style="max-width:{0:g}px">{3}'
        ).format(self.width, self.height, label, Markup(text.strip()), " paper" if paper else "")


def mark(axes: Axes, place: Sequence[float] | NDArray[np.float64], marker: str) -> None:
    """Mark a point: "o" the start, "X" the sample with the largest error."""
    face, edge, width = (TRACKING, GROUND, 0.8) if marker == "X" else (GROUND, TRACKING, 1.5)
    axes.plot(
        *place,
        marker=marker,
        markersize=10.0,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=width,
        clip_on=False,
        zorder=5,
    )


def dots(samples: int) -> str | None:
    """The marker of a curve: few samples are drawn as dots too, for a short line hardly shows."""
    return "." if samples < 20 else None


def few_ticks(most: int) -> Locator:
    """At most `most` ticks, at round numbers."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def plain_numbers() -> Formatter:
    """Tick labels without exponents and without an offset."""

    return FuncFormatter(lambda value, _: as_written(value))


def as_written(value: float) -> str:
    """A round number without an exponent."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text.replace("-", MINUS) if text != "-0" else "0"


def prepare_time_axis(
    axes: Axes, begin: float, end: float, ticks: int, label: str = "Time (s)"
) -> None:
    """Seconds from begin to end."""
    axes.set_xlim(begin, end)
    axes.xaxis.set_major_locator(few_ticks(ticks))
    axes.xaxis.set_major_formatter(plain_numbers())
    axes.set_xlabel(label)


def prepare_logarithmic(axes: Axes, bottom: float, top: float) -> None:
    """One division per factor of ten, with finer lines between."""
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(bottom, top)
    decades = range(round(math.log10(bottom)), math.floor(math.log10(top)) + 1)
    axes.set_yticks([10.0**d for d in decades], [_power(d) for d in decades])
    axes.yaxis.set_minor_locator(NullLocator())
    finer = np.array([m * 10.0**d for d in decades for m in range(2, 10) if m * 10.0**d < top])
    # All in one line with gaps: one tick each would take ten times as long.
    across, gap = np.tile([0.0, 1.0, np.nan], len(finer)), np.full(len(finer), np.nan)
    up = np.stack([finer, finer, gap], axis=1).ravel()
    axes.plot(
        across, up, color=GRID, linewidth=0.4, transform=axes.get_yaxis_transform(), zorder=0.5
    )


def _power(exponent: int) -> str:
    """A power of ten, as short as possible."""
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
