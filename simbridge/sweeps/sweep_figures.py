"""Draws the figures of a sweep's page: the error over the varied parameters, and its trade-offs.

Over one parameter the figures are lines, over two a map, and over more parallel coordinates. The
trade-offs are between a small error and its rivals: smoothness and effort.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from simbridge.report.drawing import Drawing, as_written, few_ticks, plain_numbers
from simbridge.report.palette import REFERENCE, RUNS
from simbridge.report.rendering import CaptionedDrawing
from simbridge.robot.pose import Array
from simbridge.sweeps.category_figure import draw_categories
from simbridge.sweeps.ranked_points import (
    ERROR,
    MAP_AXES,
    MAX_MAPS,
    QUANTITIES,
    RIVALS,
    Quantity,
    RankedPoints,
)
from simbridge.sweeps.results import Row, number
from simbridge.sweeps.scales import is_logarithmic, scale_axis, widen_limits
from simbridge.text import counted, significant

# Size of a figure of the error over one quantity, pixels.
FIGURE_WIDTH = 540
FIGURE_HEIGHT = 300
# Margins around the axes of such a figure, pixels: left, bottom, right and top.
MARGINS = (58, 44, 16, 12)
# Size of a map without the height of its cells, pixels.
MAP_WIDTH = 540
MAP_BASE_HEIGHT = 110
# Margins around the axes of a map, pixels: left, bottom, right and top.
MAP_MARGINS = (70, 44, 16, 12)
# Size of a figure in parallel coordinates, pixels.
PARALLEL_WIDTH = 1080
PARALLEL_HEIGHT = 380
# Margins around parallel coordinates, pixels: left, bottom, right and top.
PARALLEL_MARGINS = (20, 60, 30, 24)

# Largest number of points in a figure that draws each of them.
MAX_DRAWN = 2000
# Largest number of families that are drawn as lines: one for each colour.
MAX_LINES = 7
# Largest number of ticks of a map's axis.
MAX_MAP_TICKS = 12
# Largest number of cells in a map that has their values written into them.
MAX_WRITTEN_CELLS = 120
# Height of a cell of a map, pixels.
CELL_HEIGHT = 26
# Largest number of rows of a map that have this height; more rows are lower.
MAX_FULL_ROWS = 20
# Background of labels that lines cross.
LABEL_GROUND = {"facecolor": "white", "alpha": 0.75, "pad": 0.5, "linewidth": 0.0}


class ParallelAxis(NamedTuple):
    """One of the axes of parallel coordinates.

    Attributes:
        heights: Height at which the line of each point crosses the axis (P,), from 0 to 1.
        labels: Labels of the axis at equal distances, from the bottom to the top.
    """

    heights: Array
    labels: list[str]


def draw_figures(
    points: RankedPoints, fronts: Mapping[str, Sequence[Row]]
) -> list[CaptionedDrawing]:
    """Draw all figures of the page.

    Args:
        points: Points of the sweep.
        fronts: Pareto fronts of the points, by the name of the rival.
    """
    over_parameters = _draw_over_parameters(points)
    against_rivals = [_draw_front(points, name, front) for name, front in fronts.items()]
    return [*over_parameters, *against_rivals]


def known_quantities(points: RankedPoints) -> list[Quantity]:
    """Return the quantities that at least one point has."""
    return [
        quantity for quantity in QUANTITIES if any(row.get(quantity.column) for row in points.rows)
    ]


def _draw_over_parameters(points: RankedPoints) -> list[CaptionedDrawing]:
    """Draw the figures over the parameters that differ."""
    if not points.rows or not (points.axes or points.labels):
        return []

    # A point of another grid, in the same directory, may lack a value of one of the axes.
    drawable = [row for row in points.rows if all(row[name] for name in points.axes)]
    missing_count = len(points.rows) - len(drawable)
    if not drawable:
        return []

    figures = _draw_points(replace(points, rows=drawable))
    if missing_count:
        names = " or ".join(points.axes)
        note = f"{counted(missing_count, 'point')} without a value of {names} are not shown here."
        figures[0] = replace(figures[0], notes=[*figures[0].notes, note])
    return figures


def _draw_points(points: RankedPoints) -> list[CaptionedDrawing]:
    """Draw points that have a value of every axis."""
    if len(points.axes) > MAP_AXES:
        # Parallel coordinates have an axis for each label, too.
        return [_draw_parallel(points)]

    figures = []
    if len(points.axes) == MAP_AXES:
        figures = _draw_maps(points)
    elif points.axes:
        figures = [
            _draw_lines(points, quantity, f"line{index}", has_notes=index == 0)
            for index, quantity in enumerate(known_quantities(points))
        ]
    if points.labels:
        # The figure of all points comes first if not all families fit into the other figures.
        index = 0 if len(points.families()) > MAX_LINES else len(figures)
        figures.insert(index, draw_categories(points))
    return figures


def _draw_lines(
    points: RankedPoints, quantity: Quantity, svg_name: str, *, has_notes: bool
) -> CaptionedDrawing:
    """Draw each family's median over one parameter, with the range of its points.

    A family is the points that differ only in this parameter and in the seed.

    Args:
        points: The points, with one axis.
        quantity: The quantity that is drawn.
        svg_name: Name that identifies the drawing on the page.
        has_notes: Whether the figure explains its lines in notes.
    """
    drawing = Drawing(FIGURE_WIDTH, FIGURE_HEIGHT)
    axes = drawing.axes(*MARGINS)
    families = points.families()
    (name,) = points.axes

    # Families beyond the number of colours are not drawn.
    limits: list[float] = []
    for colour, rows in zip(RUNS, families.values(), strict=False):
        limits += _draw_family(axes, rows, name, quantity=quantity, colour=colour)

    scale_axis(axes, name, {number(row, name) for row in points.rows})
    axes.set_ylim(widen_limits(axes.get_ylim()))
    axes.yaxis.set_major_formatter(plain_numbers())

    # The label describes the drawing to those who cannot see it.
    extent = f"{significant(min(limits))} to {significant(max(limits))}"
    label = f"{quantity.title} over {name}: {extent}"

    notes = []
    if has_notes and points.has_seeds:
        notes.append("Lines: median of the seeds; shaded: their range.")
    if has_notes and len(families) > MAX_LINES:
        notes.append(f"Showing {MAX_LINES} of {len(families)} combinations.")
    return CaptionedDrawing(quantity.title, drawing.svg(svg_name, label), notes)


def _draw_family(
    axes: Axes, rows: Iterable[Row], name: str, *, quantity: Quantity, colour: str
) -> list[float]:
    """Draw the median of some points over a parameter, with their range.

    Args:
        axes: Axes of the drawing.
        rows: The points.
        name: Name of the parameter.
        quantity: The quantity that is drawn.
        colour: Colour of the line.

    Returns:
        The smallest and the largest figure at each value of the parameter, in the unit of the
        quantity.
    """
    # The figures at each value of the parameter.
    figures: dict[float, list[float]] = defaultdict(list)
    for row in rows:
        figures[number(row, name, 0.0)].append(quantity.value(row))

    xs = sorted(figures)
    smallest = [min(figures[x]) for x in xs]
    medians = [statistics.median(figures[x]) for x in xs]
    largest = [max(figures[x]) for x in xs]
    axes.fill_between(xs, smallest, largest, color=colour, alpha=0.2, linewidth=0)
    axes.plot(xs, medians, color=colour, marker="o", markersize=4.0, linewidth=1.6)
    return smallest + largest


def _draw_maps(points: RankedPoints) -> list[CaptionedDrawing]:
    """Draw the median of the error over two parameters: a map for each family."""
    x_name, y_name = points.axes
    xs = sorted({number(row, x_name) for row in points.rows})
    ys = sorted({number(row, y_name) for row in points.rows})

    # One scale of colours for all maps; the rows are sorted by their error.
    smallest = points.error.value(points.rows[0])
    largest = points.error.value(points.rows[-1])
    norm_type = LogNorm if is_logarithmic(smallest, largest) else Normalize
    norm = norm_type(*widen_limits((smallest, largest)))

    figures = []
    families = points.families()
    for index, (family, rows) in enumerate(list(families.items())[:MAX_MAPS]):
        errors = _median_errors(points, rows, xs, ys)
        drawing = _draw_map(points, xs, ys, errors=errors, norm=norm)

        family_text = ", ".join(
            f"{name} {value or 'by default'}"
            for name, value in zip(points.labels, family, strict=True)
        )
        title = f"{points.error.title}: {family_text}" if family_text else points.error.title
        extent = f"{significant(np.nanmin(errors))} to {significant(np.nanmax(errors))}"
        label = f"{title} over {x_name} and {y_name}: {extent}"

        notes = []
        if np.isnan(errors).any():
            notes.append("White: refused, failed, or not part of the sweep.")
        if index == 0 and len(families) > MAX_MAPS:
            notes.append(f"Showing {MAX_MAPS} of {len(families)} combinations.")
        figures.append(
            CaptionedDrawing(title, drawing.svg(f"map{index}", label, paper=True), notes)
        )
    return figures


def _median_errors(
    points: RankedPoints, rows: Iterable[Row], xs: list[float], ys: list[float]
) -> Array:
    """Return the median error of some points at each pair of values; NaN without a point there.

    Args:
        points: The points, with two axes.
        rows: The rows that count.
        xs: Values of the first parameter.
        ys: Values of the second parameter.

    Returns:
        Errors (len(ys), len(xs)), in the unit of the figure.
    """
    x_name, y_name = points.axes
    cells: dict[tuple[float, float], list[float]] = defaultdict(list)
    for row in rows:
        cells[number(row, x_name), number(row, y_name)].append(points.error.value(row))

    medians = {cell: statistics.median(errors) for cell, errors in cells.items()}
    return np.array([[medians.get((x, y), math.nan) for x in xs] for y in ys])


def _draw_map(
    points: RankedPoints, xs: list[float], ys: list[float], *, errors: Array, norm: Normalize
) -> Drawing:
    """Draw one map.

    Args:
        points: The points, with two axes.
        xs: Values of the first parameter, ascending.
        ys: Values of the second parameter, ascending.
        errors: Errors (len(ys), len(xs)), in the unit of the figure; NaN where there is no point.
        norm: Normalization of the errors for the scale of colours, to 0 to 1.
    """
    height = MAP_BASE_HEIGHT + CELL_HEIGHT * min(len(ys), MAX_FULL_ROWS)
    drawing = Drawing(MAP_WIDTH, height)
    axes = drawing.axes(*MAP_MARGINS)
    axes.grid(False)
    axes.pcolormesh(
        np.ma.masked_invalid(errors), cmap="cividis_r", norm=norm, edgecolors="white", linewidth=1.0
    )

    # The values in the cells: dark text in the light half of the colours, white in the dark half.
    if errors.size <= MAX_WRITTEN_CELLS:
        for (row, column), error in np.ndenumerate(errors):
            if math.isnan(error):
                continue
            colour = "#1a1a1a" if norm(error) < 0.5 else "white"
            text = significant(error)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=colour)

    # The values of the parameters below and beside the middles of the cells.
    for axis, numbers in ((axes.xaxis, xs), (axes.yaxis, ys)):
        step = math.ceil(len(numbers) / MAX_MAP_TICKS)
        middles = [index + 0.5 for index in range(0, len(numbers), step)]
        axis.set_ticks(middles, [as_written(value) for value in numbers[::step]])
    axes.set(xlabel=points.axes[0], ylabel=points.axes[1])
    axes.yaxis.set_label_coords(-0.11, 0.5)
    return drawing


def _draw_parallel(points: RankedPoints) -> CaptionedDrawing:
    """Draw each point as a line over all parameters to its error, the best on top."""
    step = math.ceil(len(points.rows) / MAX_DRAWN)
    rows = points.rows[::step]
    errors = [points.error.value(row) for row in rows]
    parallel_axes = _make_parallel_axes(points, rows, errors)
    names = [*points.labels, *points.axes]

    drawing = Drawing(PARALLEL_WIDTH, PARALLEL_HEIGHT)
    axes = drawing.axes(*PARALLEL_MARGINS)
    axes.grid(False)

    # The lines, the largest error first, so that the best lie on top.
    positions = np.arange(len(parallel_axes))
    lines = np.stack([axis.heights for axis in parallel_axes], axis=1)
    colours = matplotlib.colormaps["cividis_r"](np.linspace(0.0, 1.0, len(rows)))
    for line, colour in zip(lines[::-1], colours[::-1], strict=True):
        axes.plot(positions, line, color=colour, linewidth=0.8, alpha=0.7)

    # The axes with their labels.
    for position, axis in enumerate(parallel_axes):
        axes.axvline(position, color=REFERENCE, linewidth=0.8)
        label_count = len(axis.labels)
        heights = np.linspace(0.0, 1.0, label_count) if label_count > 1 else [0.5]
        for height, text in zip(heights, axis.labels, strict=True):
            axes.text(position + 0.015, height, text, va="center", fontsize=10, bbox=LABEL_GROUND)
    axes.set_xticks(positions, [*names, points.error.title])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)

    notes = ["Each line is a point; darker lines have larger errors."]
    if step > 1:
        notes.append(
            f"Showing one point in {step}, in order of error, so that the page opens quickly."
        )
    title = f"{points.error.title} over {len(names)} parameters"
    label = f"{title}: {significant(errors[0])} to {significant(errors[-1])}"
    return CaptionedDrawing(title, drawing.svg("parallel", label, paper=True), notes)


def _make_parallel_axes(
    points: RankedPoints, rows: Sequence[Row], errors: Sequence[float]
) -> list[ParallelAxis]:
    """Return the axes of parallel coordinates: texts, then numbers, then the error.

    Args:
        points: All points.
        rows: Rows of the points that are drawn, the smallest error first.
        errors: Errors of the points that are drawn, in the unit of the figure.
    """
    parallel_axes = []

    # Texts are at equal distances; the axis has them all, also those of points that are not drawn.
    for name in points.labels:
        texts = list(dict.fromkeys(row[name] for row in points.rows))
        last_index = max(len(texts) - 1, 1)
        heights = np.array([texts.index(row[name]) / last_index for row in rows])
        parallel_axes.append(ParallelAxis(heights, [text or "default" for text in texts]))

    # An axis of numbers has only its limits as labels.
    for name in points.axes:
        values = [number(row, name) for row in rows]
        limits = (min(values), max(values))
        labels = [as_written(limit) for limit in limits]
        parallel_axes.append(ParallelAxis(_scale_heights(values, limits), labels))

    error_limits = widen_limits((errors[0], errors[-1]))
    error_labels = [significant(limit) for limit in error_limits]
    parallel_axes.append(ParallelAxis(_scale_heights(errors, error_limits), error_labels))
    return parallel_axes


def _draw_front(points: RankedPoints, name: str, front: Sequence[Row]) -> CaptionedDrawing:
    """Draw the error against one of its rivals, smoothness or effort.

    Args:
        points: Points of the sweep.
        name: Name of the rival.
        front: Rows of the Pareto front: no other point is better in both.
    """
    rival = RIVALS[name]
    step = math.ceil(len(points.rows) / MAX_DRAWN)
    rows = points.rows[::step]
    errors = [ERROR.value(row) for row in rows]

    # A dot for each point, and the front as a line of steps.
    drawing = Drawing(FIGURE_WIDTH, FIGURE_HEIGHT)
    axes = drawing.axes(*MARGINS)
    axes.plot(
        [rival.value(row) for row in rows],
        errors,
        linestyle="",
        marker="o",
        markersize=4.0,
        color=REFERENCE,
    )
    axes.step(
        [rival.value(row) for row in front],
        [ERROR.value(row) for row in front],
        where="pre",
        color=RUNS[0],
        linewidth=1.2,
        marker="o",
        markersize=5.0,
    )

    scale_axis(axes, "", errors, vertical=True)
    axes.set_ylim(widen_limits(axes.get_ylim()))
    axes.set_xlim(widen_limits(axes.get_xlim()))
    axes.set_xlabel(rival.title)
    axes.xaxis.set_major_locator(few_ticks(6))
    axes.xaxis.set_major_formatter(plain_numbers())

    note = f"Blue: Pareto-optimal ({counted(len(front), 'point')}), marked in the table."
    title = f"Tracking error, RMS (mm), against {name}"
    label = f"{title}: {significant(min(errors))} to {significant(max(errors))} mm. {note}"
    return CaptionedDrawing(title, drawing.svg(f"front-{name}", label), [note])


def _scale_heights(values: Sequence[float], limits: tuple[float, float]) -> Array:
    """Return the heights of values on an axis (P,): 0 at its lower limit, 1 at its upper one."""
    low, high = limits
    heights = np.array(values, dtype=float)
    if is_logarithmic(low, high):
        heights = np.log(heights)
        low = math.log(low)
        high = math.log(high)

    extent = high - low if high > low else 1.0
    return np.asarray((heights - low) / extent)
