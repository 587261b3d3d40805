"""The outcome of an experiment: figures, what is known of them, tables and plots."""

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

# Okabe and Ito's colours, distinguishable with every kind of colour vision; one more for the closed
# form.
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
CUSTOM_SOLVER_COLOUR = "#6a51a3"

# Settings of matplotlib for all plots, besides those of reports.
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
DOTS_PER_INCH = 120
# Around each panel, inches.
PANEL_PAD = 0.08


@dataclass(frozen=True)
class Expected:
    """The range in which a figure is known to lie.

    Attributes:
        figure: Its name among the outcome's figures.
        low: Lower end of the range, in the unit in the figure's name.
        high: Upper end of the range, in the same unit.
        text: The range as text ("0.469 within 2 %").
        source: Where the value comes from.
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
    """Expect a figure within a part of a value: 0.02 is 2 %."""
    return Expected(
        figure=figure,
        low=value * (1.0 - part),
        high=value * (1.0 + part),
        text=f"{value:g} within {100.0 * part:g} %",
        source=source,
    )


def within(figure: str, value: float, margin: float, source: str) -> Expected:
    """Expect a figure no further than a margin from a value."""
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
        title: Printed above it.
        columns: Their headings.
        rows: The first cell is text, the others are numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Plot:
    """A plot that is drawn when it is saved.

    Attributes:
        width: Width, in inches.
        height: Height, in inches.
        draw: Fills an empty figure.
    """

    width: float
    height: float
    draw: Callable[[Figure], None]

    def save(self, path: Path) -> None:
        """Write a PNG, byte for byte the same every time."""
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
    """An experiment's result.

    Attributes:
        figures: Single numbers, by names that include their unit.
        data: Everything measured, SI units, as JSON takes it.
        tables: Tables for the terminal.
        plots: Plots by file name.
        notes: Sentences to be read with the tables; empty ones are not shown.
        expected: What is known of the figures; nothing unless the arm and the settings are the
            paper's.
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
    """Return the colour of a solver in every plot, whatever its Jacobian; custom ones share one."""
    name = solver.partition(",")[0]
    return SOLVER_COLOURS.get(name, CUSTOM_SOLVER_COLOUR)


def format_number(value: float | None) -> str:
    """Return a number for a table; a dash where there is none."""
    if value is None or math.isnan(value):
        return significant(None)
    return plain(value) if value == round(value) else significant(value, decimals=5)


def format_iterations(value: float) -> str:
    """Return a count of iterations for a table; "never" where it is not a number."""
    return plain(value) if math.isfinite(value) else "never"


def arrival_index(distances: Array, tolerance: float) -> float:
    """Return the index from which on distances (K,) stay within a tolerance.

    It is not a number if they do not.
    """
    beyond = np.flatnonzero(distances > tolerance)
    first = int(beyond[-1]) + 1 if len(beyond) else 0
    return float(first) if first < len(distances) else math.nan
