"""The command `simbridge compare`: two tables of at most 60 columns in the terminal, and compare.html."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.cli.run_tables import RUN_COLUMNS, run_cells, say
from simbridge.errors import InvalidParameter
from simbridge.evaluation.comparison import Comparison, Deviations, compare_runs, iso_figures_of
from simbridge.evaluation.metrics.samples import statistics
from simbridge.evaluation.metrics.tracking import ERROR_PARTS
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.compare_page import about, compare_page, comparison_headline
from simbridge.robot.files import write_file, writing
from simbridge.sweeps.comparison import compare_sweeps, comparison_page, comparison_rows, is_sweep
from simbridge.text import counted, degrees, listed, millimetres, milliseconds, table_of

PAGE = "compare.html"
# Points of sweeps in the terminal.
_SHOWN = 20


def compare(runs: Sequence[str], *, out: str | None, as_json: bool) -> int:
    """Compare runs, or two sweeps: print tables or JSON, and write compare.html. The arguments are the command's flags.

    Raises:
        SimbridgeError: See `compare_runs`; or the page cannot be written.
    """
    paths = [Path(run) for run in runs]
    if any(map(is_sweep, paths)):
        return _compare_sweeps(paths, out, as_json)
    found = compare_runs(paths)
    path = _write(out, found.runs[0].summary["scenario"], compare_page(found, iso_figures_of(found)))
    if as_json:
        print(json.dumps({"page": str(path), **found.as_dict()}, indent=2, allow_nan=False))
    else:
        show_comparison(found, path)
    return 0


def _write(out: str | None, name: str, page: str) -> Path:
    directory = RunDirectory.create(None, f"compare_{name}").path if out is None else Path(out)
    path = directory / PAGE
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
    write_file(path, page.encode())
    return path


def _compare_sweeps(paths: Sequence[Path], out: str | None, as_json: bool) -> int:
    if len(paths) != 2 or not all(map(is_sweep, paths)):
        raise InvalidParameter("directories to compare", listed([*map(str, paths)]), "two sweeps, or runs alone")
    found = compare_sweeps(*paths)
    page = _write(out, "sweeps", comparison_page(found))
    lines = comparison_rows(found)
    if as_json:
        titles = (*found.varied, "first_m", "second_m")
        points = [
            dict(zip(titles, (*line[:-3], pair.first, pair.second), strict=True))
            for line, pair in zip(lines, found.pairs, strict=True)
        ]
        print(json.dumps({"page": str(page), "sweeps": list(found.names), "points": points}, indent=2))
        return 0
    console = Console(highlight=False)
    console.print(f"[bold]{escape(found.headline)}[/bold]\n", soft_wrap=True)
    columns = (*found.varied, f"{found.names[0]} mm", f"{found.names[1]} mm", "ratio")
    console.print(table_of(columns, [tuple(map(escape, line)) for line in lines[:_SHOWN]]))
    if len(lines) > _SHOWN:
        console.print(f"{len(lines) - _SHOWN} more points, with a smaller change, are on the page.")
    for name, count in zip(found.names, found.alone, strict=True):
        if count:
            console.print(f"{counted(count, 'point')} with figures only in {name}.", markup=False)
    console.print(f"Page: {page}", soft_wrap=True, markup=False)
    return 0


def show_comparison(comparison: Comparison, page: Path) -> None:
    """Show what the runs are, the tracking error of each, its parts, and its separation from the first run."""
    console, runs = Console(highlight=False), comparison.runs
    say(console, f"{comparison_headline(comparison)}\n", style="bold")
    numbers = [f"{number}" for number, _ in enumerate(runs, start=1)]
    for number, run in zip(numbers, runs, strict=True):
        say(console, f"{number}  {run.name}: {about(run.summary)}.")
    console.print()
    for warning in comparison.warnings:
        say(console, f"Note: {warning}")
    console.print(_errors(comparison, numbers))
    say(console, "\nParts of the error, RMS in mm; servo law and rest are parts of the plant's:")
    console.print(_parts(comparison, numbers))
    console.print()
    for number, separation in zip(numbers, comparison.separation, strict=True):
        if separation is not None:
            distances = statistics(separation[1].distance)
            amount = f"{millimetres(distances['rms'])} mm RMS (max {millimetres(distances['max'])} mm)"
            say(console, f"The tool of run {number} was {amount} from that of run 1.")
    if any(comparison.prediction):
        console.print("\nPrediction error, simulated to measured:")
        console.print(_predictions(comparison, numbers))
    console.print(f"Page: {page}", soft_wrap=True, markup=False)


def _errors(comparison: Comparison, names: Sequence[str]) -> Table:
    runs = zip(names, comparison.runs, strict=True)
    rows = [(name, run.summary["backend"], *run_cells(run.summary)) for name, run in runs]
    return table_of(("run", "backend", *RUN_COLUMNS), rows, left=("backend",))


def _predictions(comparison: Comparison, names: Sequence[str]) -> Table:
    lines = []
    for run, error in zip(names, comparison.prediction, strict=True):
        if error is None:
            continue
        removed = f"  less {milliseconds(error['delay_s'])} ms delay"
        rows: tuple[tuple[str, Deviations], ...] = ((run, error), (removed, error["delay_removed"]))
        for name, deviations in rows if error["delay_s"] is not None else rows[:1]:
            position, rotation, joints = (
                deviations["position_m"],
                deviations["rotation_rad"],
                deviations["joints_rad"],
            )
            lengths = (millimetres(position["rms"]), millimetres(position["max"]))
            angles = (degrees(each[key]) for each in (rotation, joints) for key in ("rms", "max"))
            lines.append((name, *lengths, *angles))
    return table_of(("run", "RMS mm", "max mm", "RMS deg", "max deg", "joints deg", "max deg"), lines)


def _parts(comparison: Comparison, names: Sequence[str]) -> Table:
    summaries: list[Mapping[str, Any]] = [run.summary for run in comparison.runs]
    parts = [part for part in ERROR_PARTS if any(summary[part.key] for summary in summaries)]
    rows = []
    for name, summary in zip(names, summaries, strict=True):
        errors = [summary[part.key] for part in parts]
        rows.append((name, *("–" if error is None else millimetres(error["position_m"]["rms"]) for error in errors)))
    return table_of(("run", *(part.name for part in parts)), rows)
