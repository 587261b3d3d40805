"""Defines the outcome of an experiment: figures, the known ones among them, tables and plots."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from simbridge.files.writing import write_file
from simbridge.report.drawing import drawing_style
from simbridge.report.palette import ATTAINED, LIMITER, PLANT, SAMPLING, SETPOINT, SOLVER, TRACKING
from simbridge.robot.pose import Array
from simbridge.text import plain, significant

# Colours of the solvers: those of Okabe and Ito, which people with any kind of colour vision can
# distinguish, and one more for the closed form.
SOLVER_COLOURS = {
    "forward-dynamics": SETPOINT,
    "jacobian-transpose": ATTAINED,
    "pseudoinverse": SOLVER,
    "damped-least-squares": SAMPLING,
    "selectively-damped": LIMITER,
    "feedback": PLANT,
    "constrained": TRACKING,
    "closed-form": "#8c6d46",
}
# Colour of all custom solvers.
CUSTOM_SOLVER_COLOUR = "#6a51a3"

# Settings of matplotlib for all plots, in addition to those for reports.
PLOT_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.titley": None,
    "lines.linewidth": 1.4,
    "savefig.facecolor": "white",
}
# Resolution of the plots, dots per inch.
DOTS_PER_INCH = 120
# Empty space around each panel, inches.
PANEL_PAD = 0.08


@dataclass(frozen=True)
class Expected:
    """The range in which a figure is known to lie.

    Attributes:
        figure: Name of the figure among the outcome's figures.
        low: Lower end of the range, in the unit that the figure's name states.
        high: Upper end of the range, in the same unit.
        text: The range as text ("0.469 within 2 %").
        source: Source of the known value.
    """

    figure: str
    low: float
    high: float
    text: str
    source: str

    def holds(self, measured: float) -> bool:
        """Return whether a measured figure is in the range."""
        return self.low <= measured <= self.high


def within_part(figure: str, value: float, part: float, source: str) -> Expected:
    """Expect a figure within a fraction of a value.

    Args:
        figure: Name of the figure.
        value: The known value.
        part: Largest relative difference from it: 0.02 is 2 %.
        source: Source of the known value.
    """
    return Expected(
        figure=figure,
        low=value * (1.0 - part),
        high=value * (1.0 + part),
        text=f"{value:g} within {100.0 * part:g} %",
        source=source,
    )


def within(figure: str, value: float, margin: float, source: str) -> Expected:
    """Expect a figure within a margin of a value.

    Args:
        figure: Name of the figure.
        value: The known value.
        margin: Largest difference from it, in the same unit.
        source: Source of the known value.
    """
    return Expected(
        figure=figure,
        low=value - margin,
        high=value + margin,
        text=f"{value:g} within {margin:g}" if margin else f"{value:g}",
        source=source,
    )


@dataclass(frozen=True)
class ResultTable:
    """A table for the terminal.

    Attributes:
        title: Title above the table.
        columns: Headings of the columns.
        rows: Cells of each row: the first one is text, the others are numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Plot:
    """A plot that is drawn when it is saved.

    Attributes:
        width: Width of the plot, inches.
        height: Height of the plot, inches.
        draw: Function that draws into an empty figure.
    """

    width: float
    height: float
    draw: Callable[[Figure], None]

    def save(self, path: Path) -> None:
        """Write the plot as PNG, which is the same every time, byte for byte."""
        buffer = io.BytesIO()
        with drawing_style(), matplotlib.rc_context(PLOT_STYLE):
            figure = Figure(
                figsize=(self.width, self.height),
                layout=ConstrainedLayoutEngine(w_pad=PANEL_PAD, h_pad=PANEL_PAD),
            )
            FigureCanvasAgg(figure)
            self.draw(figure)
            figure.savefig(buffer, dpi=DOTS_PER_INCH, metadata={"Software": None})
        write_file(path, buffer.getvalue(), follow_links=False)


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment.

    Attributes:
        figures: Single numbers, by names that include their unit.
        data: Everything that was measured, in SI units, as plain data for JSON.
        tables: Tables for the terminal.
        plots: Plots by file name.
        notes: Sentences to be read with the tables; empty ones are not shown.
        expected: Known ranges of figures; empty unless arm and settings are those of the paper.
    """

    figures: Mapping[str, float]
    data: Mapping[str, Any]
    tables: Sequence[ResultTable]
    plots: Mapping[str, Plot]
    notes: Sequence[str]
    expected: Sequence[Expected] = ()

    @property
    def comparisons(self) -> list[tuple[Expected, float]]:
        """Each expected range with the figure as measured."""
        return [
            (expected, self.figures[expected.figure])
            for expected in self.expected
            if expected.figure in self.figures
        ]


def solver_colour(solver: str) -> str:
    """Return the colour of a solver in every plot; all custom solvers have the same.

    Args:
        solver: Name of the solver; a comma and its Jacobian may follow.
    """
    name = solver.partition(",")[0]
    return SOLVER_COLOURS.get(name, CUSTOM_SOLVER_COLOUR)


def format_number(value: float | None) -> str:
    """Return a number for a table; a dash for None or NaN."""
    if value is None or math.isnan(value):
        return significant(None)
    return plain(value) if value == round(value) else significant(value, decimals=5)


def format_iterations(value: float) -> str:
    """Return a count of iterations for a table; "never" for NaN."""
    return plain(value) if math.isfinite(value) else "never"


def arrival_index(distances: Array, tolerance: float) -> float:
    """Return the index from which on distances (K,) stay within a tolerance; NaN if they do not."""
    beyond = np.flatnonzero(distances > tolerance)
    first_within = int(beyond[-1]) + 1 if len(beyond) else 0
    return float(first_within) if first_within < len(distances) else math.nan
