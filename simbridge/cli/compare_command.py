"""The command `simbridge compare`: two tables of at most 80 columns in the terminal, and compare.html."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.cli.run_tables import RUN_COLUMNS, run_cells
from simbridge.errors import writing
from simbridge.evaluation.comparison import Comparison, compare_runs, iso_figures_of
from simbridge.evaluation.metrics.pose_errors import statistics
from simbridge.evaluation.metrics.tracking import ERROR_PARTS
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.compare_page import compare_page
from simbridge.text import millimetres, table_of

PAGE = "compare.html"
_NARROW = 72  # columns of a terminal


def compare(runs: Sequence[str], *, out: str | None, as_json: bool) -> int:
    """Compare runs: print tables or JSON, and write compare.html. The arguments are the command's flags.

    Raises:
        SimbridgeError: See `compare_runs`; or the page cannot be written.
    """
    found = compare_runs([Path(run) for run in runs])
    if out is None:
        directory = RunDirectory.create(None, f"compare_{found.runs[0].summary['scenario']}").path
    else:
        directory = Path(out)
    path = directory / PAGE
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(compare_page(found, iso_figures_of(found)), encoding="utf-8")
    if as_json:
        print(json.dumps({"page": str(path), **found.as_dict()}, indent=2, allow_nan=False))
    else:
        show_comparison(found, path)
    return 0


def show_comparison(comparison: Comparison, page: Path) -> None:
    """Show the tracking error of each run, its parts, and its separation from the first run."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(comparison.runs[0].summary['scenario'])}, {len(comparison.runs)} runs[/bold]\n")
    for warning in comparison.warnings:
        console.print(f"Note: {warning}", soft_wrap=True, markup=False)
    names = [escape(run.name) for run in comparison.runs]
    # With that many columns, long names would be folded to a few letters each.
    if console.width < _NARROW:
        for number, name in enumerate(names, start=1):
            console.print(f"{number}  {name}", soft_wrap=True)
        names = [f"{number}" for number, _ in enumerate(names, start=1)]
    console.print(_errors(comparison, names))
    console.print("\nParts of the error, RMS in mm, and separation from the first run's tool, mm:")
    console.print(_parts(comparison, names))
    console.print(f"Page: {page}", soft_wrap=True, markup=False)


def _errors(comparison: Comparison, names: Sequence[str]) -> Table:
    runs = zip(names, comparison.runs, strict=True)
    rows = [(name, run.summary["backend"], *run_cells(run.summary)) for name, run in runs]
    return table_of(("run", "backend", *RUN_COLUMNS), rows, left=("backend",))


def _parts(comparison: Comparison, names: Sequence[str]) -> Table:
    parts = [part for part in ERROR_PARTS if not part.of]
    rows = []
    for name, run, separation in zip(names, comparison.runs, comparison.separation, strict=True):
        errors: Mapping[str, Any] = run.summary
        lengths = (millimetres(errors[part.key]["position_m"]["rms"]) for part in parts)
        distances = None if separation is None else statistics(separation[1].distance)
        cells = ("–", "–") if distances is None else (millimetres(distances["rms"]), millimetres(distances["max"]))
        rows.append((name, *lengths, *cells))
    return table_of(("run", *(part.name for part in parts), "separation RMS", "max"), rows)
