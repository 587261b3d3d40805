"""Draws every point of a sweep by category, such as solver or scenario."""

from __future__ import annotations

import math
import statistics

import numpy as np
from matplotlib.ticker import LogLocator

from simbridge.quoting import shorten
from simbridge.report.drawing import Drawing
from simbridge.report.palette import REFERENCE, RUNS
from simbridge.report.rendering import CaptionedDrawing
from simbridge.robot.pose import Array
from simbridge.sweeps.ranked_points import RankedPoints
from simbridge.sweeps.scales import is_logarithmic, scale_axis, widen_limits
from simbridge.text import counted, significant

# Largest number of categories that are drawn: those with the smallest medians.
MAX_CATEGORIES = 40
# Width of the figure, pixels.
WIDTH = 540
# Height of a category's row, pixels.
CATEGORY_HEIGHT = 26
# Height of the axis below the rows, pixels.
AXIS_HEIGHT = 60
# Width of a character in the names of the categories, pixels.
CHARACTER_WIDTH = 6.5
# Empty space beside the names of the categories, pixels.
NAME_MARGIN = 24.0
# Largest width of the names of the categories with that space, pixels.
MAX_NAME_WIDTH = 240
# A value in the name of a category is not cut to less than so many characters.
MIN_VALUE_LENGTH = 7
# Height of the band over which the points of a category are spread, in rows.
SPREAD = 0.28
# Half the height of the bar that marks a median, in rows.
MEDIAN_HALF_HEIGHT = 0.4
# Number of heights within the band on which the points of a category lie in turn.
LANES = 5
# Largest number of decades that are labelled on a logarithmic axis.
MAX_DECADES = 7


def draw_categories(points: RankedPoints) -> CaptionedDrawing:
    """Draw the error of every point in the row of its category, the best category on top.

    Args:
        points: Points with at least one label.
    """
    # The categories with the smallest median errors.
    families = points.families()
    names = {family: category_name(family) for family in families}
    errors = {
        family: [points.error.value(row) for row in rows] for family, rows in families.items()
    }
    ranked = sorted(families, key=lambda family: statistics.median(errors[family]))
    shown = ranked[:MAX_CATEGORIES]

    longest_name = max(len(names[family]) for family in shown)
    name_width = min(NAME_MARGIN + CHARACTER_WIDTH * longest_name, MAX_NAME_WIDTH)
    drawing = Drawing(WIDTH, AXIS_HEIGHT + CATEGORY_HEIGHT * len(shown))
    axes = drawing.axes(name_width, 44, 16, 12)

    # A row for each category, from the top: a dot for each point, and a bar at the median.
    for row, family in enumerate(shown):
        values = errors[family]
        heights = row + _spread_points(len(values))
        axes.plot(values, heights, "o", markersize=4.0, color=RUNS[0], alpha=0.9)
        median = statistics.median(values)
        bar = [row - MEDIAN_HALF_HEIGHT, row + MEDIAN_HALF_HEIGHT]
        axes.plot([median, median], bar, color=REFERENCE, linewidth=2.0)

    shown_errors = [value for family in shown for value in errors[family]]
    smallest = min(shown_errors)
    largest = max(shown_errors)
    scale_axis(axes, points.error.title, shown_errors)
    if is_logarithmic(smallest, largest):
        # Numbers beside each other need more room than numbers above each other.
        axes.xaxis.set_major_locator(LogLocator(numticks=MAX_DECADES))
    axes.set_xlim(widen_limits(axes.get_xlim()))
    max_length = math.floor((name_width - NAME_MARGIN) / CHARACTER_WIDTH)
    shown_names = [_shorten_name(family, max_length) for family in shown]
    axes.set_yticks(range(len(shown)), shown_names)
    # The first row is on top.
    axes.set_ylim(len(shown) - 0.5, -0.5)

    title = f"{points.error.title} by {', '.join(points.labels)}"
    notes = ["Each dot is a point; the bar is the median."]
    if len(shown) < len(ranked):
        notes.append(f"Showing {len(shown)} of {counted(len(ranked), 'combination')}.")
    label = f"{title}: {significant(smallest)} to {significant(largest)}"
    return CaptionedDrawing(title, drawing.svg("categories", label), notes)


def category_name(family: tuple[str, ...]) -> str:
    """Return the name of a family of points: the values of its labels, separated by commas."""
    return ", ".join(value or "default" for value in family)


def _spread_points(count: int) -> Array:
    """Return the heights (P,) of points in their row, in rows from its middle.

    The points lie in lanes, one after the other, so that points of equal error remain visible.
    """
    lanes = np.arange(count) % min(LANES, count)
    extent = max(float(np.ptp(lanes)), 1.0)
    return np.asarray(SPREAD * (lanes - lanes.mean()) / extent)


def _shorten_name(family: tuple[str, ...], max_length: int) -> str:
    """Return the name of a family of points, cut to a number of characters.

    The middle of its longest values is cut out, so that some of each value remains to tell families
    apart.
    """
    name = category_name(family)
    for value_length in range(max_length, MIN_VALUE_LENGTH - 1, -1):
        if len(name) <= max_length:
            break
        name = category_name(tuple(shorten(value, value_length) for value in family))
    return shorten(name, max_length)
