"""Compares two sweeps point by point.

A point of one sweep is compared with the point of the other that has the same scenario and the same
values of the parameters that vary. A parameter that has one value in each sweep may differ between
the sweeps, which is usually what the comparison is about.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.report.drawing import Drawing, drawing_style, few_ticks, plain_numbers
from simbridge.report.palette import REFERENCE, RUNS
from simbridge.report.rendering import CaptionedDrawing, render
from simbridge.sweeps.grid import Point
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.ranked_points import QUANTITIES, Quantity, rank_points
from simbridge.sweeps.results import (
    EXTRAPOLATED_GAIN,
    GRID,
    RESULTS,
    Row,
    describe_extrapolated_rows,
    number,
    read_results,
)
from simbridge.sweeps.sweep_page import MAX_LISTED, newest_rows
from simbridge.text import counted, millimetres

# Size of the drawing, pixels.
DRAWING_WIDTH = 540
DRAWING_HEIGHT = 420
# Margins around its axes, pixels: left, bottom, right and top.
DRAWING_MARGINS = (62, 48, 16, 12)
# Horizontal position of the vertical axis' label, as a fraction of the axes' width.
LABEL_POSITION = -0.1
# Largest number of ticks of an axis.
MAX_TICKS = 6


@dataclass(frozen=True)
class Pair:
    """A point that both sweeps have.

    Attributes:
        point: Scenario of the point, and its values of the parameters that vary.
        first: The compared figure in the first sweep, in SI units.
        second: The same figure in the second sweep, in SI units.
    """

    point: Point
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """The second figure divided by the first; infinite if the first is zero."""
        return self.second / self.first if self.first else math.inf


@dataclass(frozen=True)
class SweepComparison:
    """Two sweeps compared.

    Attributes:
        names: Names of the two directories.
        quantity: The figure that is compared.
        pairs: Points that both sweeps have, the largest change first.
        varied: Names of the parameters that differ between points, the scenario included.
        alone: Number of points that only the first sweep has, and number that only the second has.
        extrapolation: A sentence on the gains at which the servo law of the runs is
            extrapolated; "" for none.
    """

    names: tuple[str, str]
    quantity: Quantity
    pairs: tuple[Pair, ...]
    varied: tuple[str, ...]
    alone: tuple[int, int]
    extrapolation: str

    @property
    def headline(self) -> str:
        """A sentence that says how the figure changed from the first sweep to the second."""
        noun = self.quantity.noun
        equal = sum(pair.second == pair.first for pair in self.pairs)
        if equal == len(self.pairs):
            return f"All {counted(equal, 'point')} have the same {noun}."

        smaller = sum(pair.second < pair.first for pair in self.pairs)
        median = statistics.median(pair.ratio for pair in self.pairs)
        and_equal = f" and equal in {equal}" if equal else ""
        return (
            f"The {noun} of {self.names[1]} is smaller in {smaller} of "
            f"{counted(len(self.pairs), 'point')}{and_equal}; "
            f"the median of its ratio to that of {self.names[0]} is {median:.3g}."
        )


def is_sweep(path: Path) -> bool:
    """Return whether a directory is a sweep's."""
    return (path / GRID).is_file()


def compare_sweeps(first: Path, second: Path) -> SweepComparison:
    """Compare two sweeps.

    Args:
        first: Directory of a sweep.
        second: Directory of another sweep.

    Raises:
        InputFileError: One is not a sweep's directory, or they have no point in common.
    """
    first_rows = _read_newest(first)
    second_rows = _read_newest(second)

    # The first sweep decides which figure is compared; a parameter varies if it does in either.
    first_points = rank_points(first_rows)
    second_points = rank_points(second_rows)
    quantity = first_points.error
    varied = tuple(dict.fromkeys([*first_points.varied, *second_points.varied]))

    # Pair the figures of equal scenario and values.
    first_figures = _figures_by_values(first_rows, quantity, varied)
    second_figures = _figures_by_values(second_rows, quantity, varied)
    pairs = []
    for key, figure in first_figures.items():
        if key in second_figures:
            scenario, *values = key
            point = Point(scenario, dict(zip(varied, values, strict=True)))
            pairs.append(Pair(point, figure, second_figures[key]))

    if not pairs:
        raise InputFileError(second / RESULTS, f"it has no points in common with {first / RESULTS}")

    pairs.sort(key=lambda pair: -_change(pair))
    return SweepComparison(
        names=(first.name, second.name),
        quantity=quantity,
        pairs=tuple(pairs),
        varied=varied,
        alone=(len(first_figures) - len(pairs), len(second_figures) - len(pairs)),
        extrapolation=describe_extrapolated_rows([*first_rows, *second_rows]),
    )


def _read_newest(directory: Path) -> list[Row]:
    """Read the rows that the sweep's page shows, with the columns that are compared."""
    figures = [EXTRAPOLATED_GAIN, *(quantity.column for quantity in QUANTITIES)]
    columns = ("scenario", "outcome", "made_by", *parameters(), *figures)
    return newest_rows(read_results(directory / RESULTS, columns))


def _figures_by_values(
    rows: Sequence[Row], quantity: Quantity, varied: Sequence[str]
) -> dict[tuple[str, ...], float]:
    """Return the figure of each row that has one, by the row's scenario and varied values.

    Args:
        rows: Rows of a sweep.
        quantity: The figure.
        varied: Names of the parameters that vary.
    """
    figures = {}
    for row in rows:
        figure = number(row, quantity.column)
        if not math.isnan(figure):
            key = (row["scenario"], *(row.get(name, "") for name in varied))
            figures[key] = figure
    return figures


def _change(pair: Pair) -> float:
    """Return how much a figure changed: halved and doubled figures changed by the same amount.

    It is the size of the logarithm of the ratio; 0 for a ratio that has none.
    """
    if not 0.0 < pair.ratio < math.inf:
        return 0.0
    return abs(math.log(pair.ratio))


def comparison_page(comparison: SweepComparison) -> str:
    """Return the whole page as HTML."""
    first_name, second_name = comparison.names
    return render(
        "sweep_comparison.html",
        title=f"{first_name} and {second_name}: two sweeps compared",
        comparison=comparison,
        figure=_draw_pairs(comparison),
        rows=comparison_rows(comparison)[:MAX_LISTED],
        left=max(0, len(comparison.pairs) - MAX_LISTED),
    )


def _draw_pairs(comparison: SweepComparison) -> CaptionedDrawing:
    """Draw the second figure of each point over the first, and the line on which they are equal."""
    first_name, second_name = comparison.names
    scale = comparison.quantity.scale
    first = np.array([pair.first for pair in comparison.pairs])
    second = np.array([pair.second for pair in comparison.pairs])
    smallest = min(first.min(), second.min())
    largest = max(first.max(), second.max())
    diagonal = scale * np.array([smallest, largest])

    with drawing_style():
        drawing = Drawing(DRAWING_WIDTH, DRAWING_HEIGHT)
        axes = drawing.axes(*DRAWING_MARGINS)
        axes.plot(diagonal, diagonal, color=REFERENCE, linewidth=1.0)
        axes.plot(
            scale * first, scale * second, linestyle="", marker="o", markersize=5.0, color=RUNS[0]
        )
        axes.set(xlabel=first_name, ylabel=second_name)
        # `Drawing.axes` fixes the label's place on the axis itself, for axes without a label. This
        # one is to the left of the tick labels, at half the height.
        axes.yaxis.set_label_coords(LABEL_POSITION, 0.5)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(few_ticks(MAX_TICKS))
            axis.set_major_formatter(plain_numbers())

        title = f"{comparison.quantity.title} of each point"
        svg = drawing.svg("pairs", f"{title}. {comparison.headline}")
        return CaptionedDrawing(title, svg, ["Points below the line: the second sweep is better."])


def comparison_rows(comparison: SweepComparison) -> list[tuple[str, ...]]:
    """Return the rows of the table: the values that differ, both figures in mm, and their ratio."""
    rows = []
    for pair in comparison.pairs:
        values = {**pair.point.values, "scenario": pair.point.scenario}
        cells = [values.get(name) or "–" for name in comparison.varied]
        first = millimetres(pair.first)
        second = millimetres(pair.second)
        rows.append((*cells, first, second, f"{pair.ratio:.3g}"))
    return rows
