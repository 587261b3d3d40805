"""An experiment's outcome, and how an experiment is run, shown and written: `simbridge experiment NAME`."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib
import msgspec
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from simbridge import __version__
from simbridge.console import Terminal
from simbridge.experiments import EXPERIMENTS, ExperimentParameters
from simbridge.files.writing import write_file
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.drawing import drawing_style
from simbridge.report.palette import ATTAINED, LIMITER, PLANT, SAMPLING, SETPOINT, SOLVER, TRACKING
from simbridge.robot.pose import Array
from simbridge.text import plain, significant, table_of

RESULTS = "results.json"

# Okabe and Ito's colours, distinguishable with every kind of colour vision; one more for the closed form.
_SOLVER_COLOURS = {
    "forward-dynamics": SETPOINT,
    "jacobian-transpose": ATTAINED,
    "pseudoinverse": SOLVER,
    "damped-least-squares": SAMPLING,
    "selectively-damped": LIMITER,
    "feedback": PLANT,
    "constrained": TRACKING,
    "closed-form": "#8c6d46",
}
_CUSTOM_SOLVERS = "#6a51a3"
_STYLE: dict[Any, Any] = {
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
_DOTS_PER_INCH = 120
_PAD = 0.08  # inches


@dataclass(frozen=True)
class Expected:
    """The range in which a figure is known to lie.

    Attributes:
        figure: Its name among the outcome's figures.
        low, high: The range, in the unit in the figure's name.
        words: The same as text ("0.469 within 2 %").
        source: Where the value comes from.
    """

    figure: str
    low: float
    high: float
    words: str
    source: str

    def holds(self, measured: float) -> bool:
        """Whether a measured figure is in the range."""
        return self.low <= measured <= self.high


def within_part(figure: str, value: float, part: float, source: str) -> Expected:
    """Expected within a part of the value: 0.02 is 2 %."""
    words = f"{value:g} within {100.0 * part:g} %"
    return Expected(figure, value * (1.0 - part), value * (1.0 + part), words, source)


def within(figure: str, value: float, margin: float, source: str) -> Expected:
    """Expected no further than `margin` from the value."""
    words = f"{value:g} within {margin:g}" if margin else f"{value:g}"
    return Expected(figure, value - margin, value + margin, words, source)


@dataclass(frozen=True)
class Table:
    """A table for the terminal; the first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Plot:
    """A plot that is drawn when it is saved.

    Attributes:
        width, height: In inches.
        draw: Fills an empty figure.
    """

    width: float
    height: float
    draw: Callable[[Figure], None]

    def save(self, path: Path) -> None:
        """Write a PNG, byte for byte the same every time."""
        with drawing_style(), matplotlib.rc_context(_STYLE):
            figure = Figure(
                figsize=(self.width, self.height),
                layout=ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD),
            )
            FigureCanvasAgg(figure)
            self.draw(figure)
            figure.savefig(buffer := io.BytesIO(), dpi=_DOTS_PER_INCH, metadata={"Software": None})
        write_file(path, buffer.getvalue(), follow_links=False)


@dataclass(frozen=True)
class Outcome:
    """An experiment's result.

    Attributes:
        figures: Single numbers, by names that include their unit.
        data: Everything measured, SI units, as JSON takes it.
        tables: For the terminal.
        plots: By file name.
        notes: Sentences to be read with the tables; empty ones are not shown.
        expected: What is known of the figures; nothing unless the arm and the settings are the paper's.
    """

    figures: Mapping[str, float]
    data: Mapping[str, Any]
    tables: Sequence[Table]
    plots: Mapping[str, Plot]
    notes: Sequence[str]
    expected: Sequence[Expected] = ()

    @property
    def comparisons(self) -> list[tuple[Expected, float]]:
        """What is expected of a figure, and the figure as measured."""
        return [(e, self.figures[e.figure]) for e in self.expected if e.figure in self.figures]


def solver_colour(solver: str) -> str:
    """The colour of a solver in every plot, whatever its Jacobian; custom solvers share one."""
    return _SOLVER_COLOURS.get(solver.partition(",")[0], _CUSTOM_SOLVERS)


def number(value: float | None) -> str:
    """A number for a table; a dash where there is none."""
    if value is None or math.isnan(value):
        return significant(None)
    return plain(value) if value == round(value) else significant(value, decimals=5)


def iterations(value: float) -> str:
    """A count of iterations for a table; "never" where it is not a number."""
    return plain(value) if math.isfinite(value) else "never"


def arrival(distances: Array, arrived: float) -> float:
    """The index from which on distances (K,) stay within `arrived`; not a number if they do not."""
    away = np.flatnonzero(distances > arrived)
    first = int(away[-1]) + 1 if len(away) else 0
    return float(first) if first < len(distances) else math.nan


def run_experiment(parameters: ExperimentParameters) -> int:
    """Run an experiment, show its result and write it into a new directory.

    Raises:
        InvalidParameter, UnknownName: A value is out of its range, or there is no such robot or solver.
        OutputError: The directory exists already, or cannot be created.
    """
    parameters.check()
    name = next(name for name, kind in EXPERIMENTS.items() if kind is type(parameters))
    module = importlib.import_module(f"simbridge.experiments.{name}")
    # Created before anything is measured: a directory that cannot be written is reported at once.
    directory = RunDirectory.create(parameters.out, f"experiment_{name}").path
    try:
        with Terminal(stderr=True).status(f"Measuring {name} ..."):
            outcome: Outcome = module.run(parameters)
    except BaseException:
        # It is still empty, unless it was deleted.
        with contextlib.suppress(OSError):
            directory.rmdir()
        raise
    data = _results(name, parameters, outcome)
    write_results(directory, data, outcome)
    if parameters.json:
        print(json.dumps({"directory": str(directory), **data}, indent=2))
    else:
        _show(Terminal(), outcome, directory)
    return 0


def _results(name: str, parameters: ExperimentParameters, outcome: Outcome) -> dict[str, Any]:
    """The content of results.json, in SI units except where a name says otherwise; null is what never happened."""
    expected = [
        {
            "figure": e.figure,
            "measured": value,
            "low": e.low,
            "high": e.high,
            "holds": e.holds(value),
            "source": e.source,
        }
        for e, value in outcome.comparisons
    ]
    known = {
        "experiment": name,
        "simbridge": __version__,
        "parameters": {
            key: value for key, value in asdict(parameters).items() if key not in ("out", "json")
        },
        "figures": outcome.figures,
        "expected": expected,
        **outcome.data,
    }
    # JSON has no NaN: msgspec writes null.
    finite: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(known, enc_hook=float))
    return finite


def write_results(directory: Path, data: Mapping[str, Any], outcome: Outcome) -> None:
    write_file(directory / RESULTS, json.dumps(data).encode() + b"\n", follow_links=False)
    for name, plot in outcome.plots.items():
        plot.save(directory / name)


def _show(console: Terminal, outcome: Outcome, directory: Path) -> None:
    for table in outcome.tables:
        console.print(f"[bold]{table.title}[/bold]", soft_wrap=True)
        console.print(table_of(table.columns, table.rows))
        console.print()
    if outcome.comparisons:
        rows = [
            (
                e.figure,
                number(measured),
                e.words,
                "[green]yes[/green]" if e.holds(measured) else "[red]no[/red]",
            )
            for e, measured in outcome.comparisons
        ]
        columns = ("figure", "measured", "expected", "holds")
        console.print(table_of(columns, rows, left=columns[2:]))
        console.print(f"Expected: {outcome.comparisons[0][0].source}.\n", soft_wrap=True)
    for note in filter(None, outcome.notes):
        console.print(note)
    console.print(f"Results: {directory / RESULTS}", soft_wrap=True, markup=False)
    for name in outcome.plots:
        console.print(f"Plot:    {directory / name}", soft_wrap=True, markup=False)
