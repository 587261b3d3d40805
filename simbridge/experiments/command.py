"""`simbridge experiment NAME`: measure, print, write results.json and the figures."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from simbridge import __version__
from simbridge.errors import OutputError
from simbridge.experiments.outcome import Comparison, Outcome, Table, written
from simbridge.experiments.parameters import (
    ConvergenceParameters,
    HomogenizationParameters,
    InterpolationParameters,
    Parameters,
    SolversParameters,
    TrackingParameters,
)
from simbridge.recording.run_directory import RunDirectory

RESULTS = "results.json"

NAMES: Mapping[type, str] = {
    HomogenizationParameters: "homogenization",
    ConvergenceParameters: "convergence",
    InterpolationParameters: "interpolation",
    TrackingParameters: "tracking",
    SolversParameters: "solvers",
}
"""Every experiment by its parameters: the name of its module here, and of its command."""


def experiment(parameters: Parameters) -> int:
    """Run an experiment, show its result and write it into a new directory.

    Raises:
        UnknownName: There is no such robot or solver.
        OutputError: The directory exists already, or cannot be made.
    """
    name = NAMES[type(parameters)]
    module = importlib.import_module(f"simbridge.experiments.{name}")
    console = Console(stderr=True)
    # Before anything is measured: what cannot be written need not be waited for.
    directory = RunDirectory.create(parameters.out, f"experiment_{name}").path
    try:
        with console.status(f"Measuring {name} ..."):
            outcome = module.run(parameters)
    except BaseException:
        # Nothing is in it yet.
        directory.rmdir()
        raise
    data = as_data(name, parameters, outcome)
    _write(directory, data, outcome)
    if parameters.json:
        print(json.dumps({"directory": str(directory), **data}, indent=2))
    else:
        _show(Console(highlight=False), outcome, directory)
    return 0


def as_data(name: str, parameters: Parameters, outcome: Outcome) -> dict[str, Any]:
    """What results.json holds. SI units, but for figures whose names say otherwise; null is what never happened."""
    settings = {key: value for key, value in asdict(parameters).items() if key not in ("out", "json")}
    finite: dict[str, Any] = _finite(
        {
            "experiment": name,
            "simbridge": __version__,
            "parameters": settings,
            "figures": outcome.figures,
            "expected": [comparison.as_data() for comparison in outcome.comparisons],
            **outcome.data,
        }
    )
    return finite


def _finite(value: Any) -> Any:
    """The same with None for what is not a number: JSON has no other word for it."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(directory: Path, data: Mapping[str, Any], outcome: Outcome) -> None:
    path = directory / RESULTS
    try:
        path.write_text(json.dumps(data) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from None
    for name, picture in outcome.pictures.items():
        picture.save(directory / name)


def _show(console: Console, outcome: Outcome, directory: Path) -> None:
    for table in outcome.tables:
        console.print(f"[bold]{table.title}[/bold]", soft_wrap=True)
        console.print(_as_rich(table))
        console.print()
    if outcome.comparisons:
        console.print(_against_expected(outcome.comparisons))
        console.print(f"Expected: {outcome.comparisons[0].expected.source}.\n", soft_wrap=True)
    for note in outcome.notes:
        console.print(note)
    console.print(f"Results: {directory / RESULTS}", soft_wrap=True, markup=False)
    for name in outcome.pictures:
        console.print(f"Figure:  {directory / name}", soft_wrap=True, markup=False)


def _as_rich(table: Table) -> RichTable:
    shown = RichTable(box=None, pad_edge=False)
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if number else "left")
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _against_expected(comparisons: Sequence[Comparison]) -> RichTable:
    shown = RichTable(box=None, pad_edge=False)
    shown.add_column("figure")
    shown.add_column("measured", justify="right")
    shown.add_column("expected")
    shown.add_column("holds")
    for comparison in comparisons:
        holds = "[green]yes[/green]" if comparison.holds else "[red]no[/red]"
        expected = comparison.expected
        shown.add_row(expected.figure, written(comparison.measured), expected.words, holds)
    return shown
