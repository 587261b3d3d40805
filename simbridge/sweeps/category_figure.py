"""A figure of every point of a sweep by category, such as solver or scenario."""

from __future__ import annotations

import math
import statistics

import numpy as np
from matplotlib.ticker import LogLocator

from simbridge.report.drawing import Drawing
from simbridge.report.palette import REFERENCE, RUNS
from simbridge.report.rendering import CaptionedDrawing
from simbridge.sweeps.ranked_points import RankedPoints
from simbridge.sweeps.scales import is_logarithmic, scale_axis, widen_limits
from simbridge.text import counted, significant

# Categories that are drawn at most: those with the smallest median.
MAX_CATEGORIES = 40
# Width of the figure, and heights of a category and of the axis below them, pixels.
WIDTH = 540
CATEGORY_HEIGHT = 26
AXIS_HEIGHT = 60
# Width of the names of the categories, for each character, and at most, pixels.
CHARACTER_WIDTH = 6.5
MAX_NAME_WIDTH = 220
# Half the height over which the points of a category are spread, in categories.
SPREAD = 0.28
# Decades that are named on a logarithmic axis at most.
MAX_DECADES = 7
# Points next to each other in a category, one above the other.
LANES = 5


def draw_categories(points: RankedPoints) -> CaptionedDrawing:
    """Draw the error of every point in the row of its category, the best category on top.

    Args:
        points: Points with at least one label.
    """
    families = points.families()
    names = {family: category_name(family) for family in families}
    errors = {
        family: [points.error.value(row) for row in rows] for family, rows in families.items()
    }
    ranked = sorted(families, key=lambda family: statistics.median(errors[family]))
    shown = ranked[:MAX_CATEGORIES]

    longest = max(len(names[family]) for family in shown)
    left = min(24.0 + CHARACTER_WIDTH * longest, MAX_NAME_WIDTH)
    drawing = Drawing(WIDTH, AXIS_HEIGHT + CATEGORY_HEIGHT * len(shown))
    axes = drawing.axes(left, 44, 16, 12)
    for height, family in enumerate(shown):
        values = errors[family]
        # Points of one category lie in lanes, so that equal ones are seen.
        lanes = np.arange(len(values)) % min(LANES, len(values))
        offsets = SPREAD * (lanes - lanes.mean()) / max(float(np.ptp(lanes)), 1.0)
        axes.plot(values, height + offsets, "o", markersize=4.0, color=RUNS[0], alpha=0.9)
        middle = statistics.median(values)
        axes.plot([middle, middle], [height - 0.4, height + 0.4], color=REFERENCE, linewidth=2.0)

    everything = [value for family in shown for value in errors[family]]
    scale_axis(axes, points.error.title, everything)
    if is_logarithmic(min(everything), max(everything)):
        # Numbers beside each other need more room than above each other.
        axes.xaxis.set_major_locator(LogLocator(numticks=MAX_DECADES))
    axes.set_xlim(widen_limits(axes.get_xlim()))
    axes.set_yticks(range(len(shown)), [_shortened(names[family], left) for family in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)

    title = f"{points.error.title} by {', '.join(points.labels)}"
    notes = ["Each dot is a point; the bar is the median."]
    if len(shown) < len(ranked):
        notes.append(f"Showing {len(shown)} of {counted(len(ranked), 'combination')}.")
    label = f"{title}: {significant(min(everything))} to {significant(max(everything))}"
    return CaptionedDrawing(title, drawing.svg("categories", label), notes)


def category_name(family: tuple[str, ...]) -> str:
    """Return the name of a family of points."""
    return ", ".join(value or "default" for value in family)


def _shortened(name: str, width: float) -> str:
    """Return a name that fits a width in pixels; its end distinguishes similar names."""
    room = math.floor((width - 24.0) / CHARACTER_WIDTH)
    return name if len(name) <= room else f"…{name[1 - room :]}"
