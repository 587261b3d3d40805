"""Two sweeps compared point by point: points of one scenario with the same values of what was varied.

What is set to one value in each sweep may differ: that is mostly what the comparison is about.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.report.drawing import Drawing, drawing_style, few_ticks, plain_numbers
from simbridge.report.palette import REFERENCE, RUNS
from simbridge.report.rendering import Figure, render
from simbridge.sweeps.grid import Point
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.results import GRID, QUANTITIES, RESULTS, Points, Quantity, Results, number
from simbridge.sweeps.sweep_page import LISTED, newest_of
from simbridge.text import counted, millimetres


@dataclass(frozen=True)
class Pair:
    """A point of both sweeps: the figure in each."""

    point: Point
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """Second over first."""
        return self.second / self.first if self.first else math.inf


@dataclass(frozen=True)
class SweepComparison:
    """Two sweeps.

    Attributes:
        names: Of their directories.
        quantity: The figure that is compared.
        pairs: The points of both, the largest change first.
        varied: Names of the parameters that differ between points, the scenario included.
        alone: How many points only the first, and only the second has.
    """

    names: tuple[str, str]
    quantity: Quantity
    pairs: tuple[Pair, ...]
    varied: tuple[str, ...]
    alone: tuple[int, int]

    @property
    def headline(self) -> str:
        """What changed, as a sentence."""
        smaller = sum(pair.second < pair.first for pair in self.pairs)
        equal = sum(pair.second == pair.first for pair in self.pairs)
        median = statistics.median(pair.ratio for pair in self.pairs)
        what = self.quantity.words
        if equal == len(self.pairs):
            return f"All {counted(equal, 'point')} have the same {what}."
        same = f" and equal in {equal}" if equal else ""
        return (
            f"The {what} of {self.names[1]} is smaller in {smaller} of {counted(len(self.pairs), 'point')}{same}; "
            f"the median of its ratio to that of {self.names[0]} is {median:.3g}."
        )


def is_sweep(path: Path) -> bool:
    """Whether a directory is a sweep's."""
    return (path / GRID).is_file()


def compare_sweeps(first: Path, second: Path) -> SweepComparison:
    """Compare two sweeps.

    Raises:
        InputFileError: One is no sweep, or they have no point in common.
    """
    wanted = ("scenario", "outcome", "made_by", *parameters(), *(one.column for one in QUANTITIES))
    tables = [newest_of(Results(path / RESULTS).rows(wanted)) for path in (first, second)]
    shown = [Points.of(table) for table in tables]
    quantity = shown[0].error
    varied = tuple(dict.fromkeys(name for points in shown for name in points.varied))
    # By scenario and values.
    one, other = (
        {
            (row["scenario"], *(row.get(name, "") for name in varied)): number(row, quantity.column)
            for row in table
            if not math.isnan(quantity.of(row))
        }
        for table in tables
    )
    pairs = [
        Pair(Point(values[0], dict(zip(varied, values[1:], strict=True))), value, other[values])
        for values, value in one.items()
        if values in other
    ]
    if not pairs:
        raise InputFileError(second / RESULTS, f"it has no point in common with {first / RESULTS}")
    pairs.sort(key=lambda pair: -abs(math.log(pair.ratio)) if 0.0 < pair.ratio < math.inf else 0.0)
    alone = (len(one) - len(pairs), len(other) - len(pairs))
    return SweepComparison((first.name, second.name), quantity, tuple(pairs), varied, alone)


def comparison_page(comparison: SweepComparison) -> str:
    """The whole page as HTML."""
    first, second = (
        np.array([getattr(p, name) for p in comparison.pairs]) for name in ("first", "second")
    )
    scale = comparison.quantity.scale
    with drawing_style():
        drawing = Drawing(540, 420)
        axes = drawing.axes(62, 48, 16, 12)
        ends = scale * np.array([min(first.min(), second.min()), max(first.max(), second.max())])
        axes.plot(ends, ends, color=REFERENCE, linewidth=1.0)
        axes.plot(
            scale * first, scale * second, linestyle="", marker="o", markersize=5.0, color=RUNS[0]
        )
        axes.set(xlabel=comparison.names[0], ylabel=comparison.names[1])
        axes.yaxis.set_label_coords(-0.1, 0.5)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(few_ticks(6))
            axis.set_major_formatter(plain_numbers())
        title = f"{comparison.quantity.title} of each point"
        figure = Figure(
            title,
            drawing.svg("pairs", f"{title}. {comparison.headline}"),
            ["Below the line the second sweep is better."],
        )
    return render(
        "sweep_comparison.html",
        title=f"{comparison.names[0]} and {comparison.names[1]}: two sweeps compared",
        comparison=comparison,
        figure=figure,
        rows=comparison_rows(comparison)[:LISTED],
        left=max(0, len(comparison.pairs) - LISTED),
    )


def comparison_rows(comparison: SweepComparison) -> list[tuple[str, ...]]:
    """The lines of the table: the values that differ, the figure of both in mm, and their ratio."""
    found = []
    for pair in comparison.pairs:
        values = {**pair.point.values, "scenario": pair.point.scenario}
        cells = (values.get(name) or "–" for name in comparison.varied)
        found.append(
            (*cells, millimetres(pair.first), millimetres(pair.second), f"{pair.ratio:.3g}")
        )
    return found
