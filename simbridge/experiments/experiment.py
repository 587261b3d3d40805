"""Runs the command `simbridge experiment NAME`: measures, shows the outcome and writes it."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from simbridge import __version__
from simbridge.console import Terminal
from simbridge.experiments import EXPERIMENTS, ExperimentParameters
from simbridge.experiments.outcome import Outcome, format_number
from simbridge.files.writing import write_file
from simbridge.json_output import print_json, versioned
from simbridge.recording.run_directory import RunDirectory
from simbridge.text import make_table

# Name of the file with the results, in the experiment's directory.
RESULTS = "results.json"
# Parameters that say how a result is shown, and do not belong to it.
OUTPUT_PARAMETERS = ("out", "json")


def run_experiment(parameters: ExperimentParameters) -> int:
    """Run an experiment, show its result and write it into a new directory.

    Returns:
        The exit status, 0.

    Raises:
        InvalidParameter, UnknownName: A value is out of its range, or there is no such robot or
            solver.
        OutputError: The directory exists already, or cannot be created.
    """
    parameters.check()
    name = next(name for name, kind in EXPERIMENTS.items() if kind is type(parameters))
    module = importlib.import_module(f"simbridge.experiments.{name}")

    # The directory is created first, so that one which cannot be written is reported at once.
    directory = RunDirectory.create(parameters.out, f"experiment_{name}").path
    try:
        with Terminal(stderr=True).status(f"Measuring {name} ..."):
            outcome: Outcome = module.run(parameters)
    except BaseException:
        # The directory is still empty, or was deleted meanwhile.
        with contextlib.suppress(OSError):
            directory.rmdir()
        raise

    results = _collect_results(name, parameters, outcome)
    write_results(directory, results, outcome)
    if parameters.json:
        print_json({"directory": str(directory), **results})
    else:
        _show(Terminal(), outcome, directory)
    return 0


def _collect_results(
    name: str, parameters: ExperimentParameters, outcome: Outcome
) -> dict[str, Any]:
    """Return the content of results.json.

    Values are in SI units, unless their names state another unit. Null stands for a figure that is
    not defined, such as the arrival of a solver that never arrives.

    Args:
        name: Name of the experiment.
        parameters: Parameters of the experiment.
        outcome: Outcome of the experiment.
    """
    # Known figures beside the measured ones.
    expected = []
    for item, measured in outcome.comparisons:
        expected.append(
            {
                "figure": item.figure,
                "measured": measured,
                "low": item.low,
                "high": item.high,
                "holds": item.holds(measured),
                "source": item.source,
            }
        )

    values = asdict(parameters)
    for parameter in OUTPUT_PARAMETERS:
        del values[parameter]

    results = {
        "experiment": name,
        "simbridge": __version__,
        "parameters": values,
        "figures": outcome.figures,
        "expected": expected,
        **outcome.data,
    }
    # JSON has no NaN: msgspec writes null instead, and numbers of numpy as plain ones.
    encoded = msgspec.json.encode(results, enc_hook=float)
    finite: dict[str, Any] = msgspec.json.decode(encoded)
    return finite


def write_results(directory: Path, results: Mapping[str, Any], outcome: Outcome) -> None:
    """Write results.json and the plots into a directory."""
    text = json.dumps(versioned(results)) + "\n"
    write_file(directory / RESULTS, text.encode(), follow_links=False)
    for name, plot in outcome.plots.items():
        plot.save(directory / name)


def _show(console: Terminal, outcome: Outcome, directory: Path) -> None:
    """Show the tables, the comparison with known figures, the notes, and the files."""
    for table in outcome.tables:
        console.print(f"[bold]{table.title}[/bold]", soft_wrap=True)
        console.print(make_table(table.columns, table.rows))
        console.print()

    if outcome.comparisons:
        _show_comparisons(console, outcome)
    for note in filter(None, outcome.notes):
        console.print(note)
    console.print(f"Results: {directory / RESULTS}", soft_wrap=True, markup=False)
    for name in outcome.plots:
        console.print(f"Plot:    {directory / name}", soft_wrap=True, markup=False)


def _show_comparisons(console: Terminal, outcome: Outcome) -> None:
    """Show measured figures beside the known ones."""
    rows = []
    for expected, measured in outcome.comparisons:
        verdict = "[green]yes[/green]" if expected.holds(measured) else "[red]no[/red]"
        rows.append((expected.figure, format_number(measured), expected.text, verdict))
    columns = ("figure", "measured", "expected", "holds")
    console.print(make_table(columns, rows, left=columns[2:]))

    source = outcome.comparisons[0][0].source
    console.print(f"Expected: {source}.\n", soft_wrap=True)
