"""The command `simbridge compare`: two tables of at most 80 columns in the terminal, and compare.html."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.errors import OutputError
from simbridge.evaluation.comparison import Comparison, compared, cycles_of
from simbridge.evaluation.metrics.pose_errors import statistics
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.compare_page import compare_page
from simbridge.text import degrees, millimetres, milliseconds

PARTS = ("sampling", "solver", "limiter", "plant")


PAGE = "compare.html"


def compare(runs: Sequence[str], *, out: str | None, as_json: bool) -> int:
    """Compare runs: print a table or JSON, and write compare.html.

    Args:
        runs: Run directories, or those of repeats.
        out: The directory of the page; a new one under runs/ by default.
        as_json: Print JSON in place of the table.

    Returns:
        The exit status, 0.

    Raises:
        SimbridgeError: See `compared`; or the page cannot be written.
    """
    found = compared([Path(run) for run in runs])
    if out is None:
        directory = RunDirectory.create(None, f"compare_{found.runs[0].summary['scenario']}").path
    else:
        directory = Path(out)
    path = directory / PAGE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(compare_page(found, cycles_of(found)), encoding="utf-8")
    except OSError as error:
        raise OutputError(directory / PAGE, str(error.strerror or error)) from None
    if as_json:
        print(json.dumps({"page": str(path), **found.as_dict()}, indent=2, allow_nan=False))
    else:
        show_comparison(found, path)
    return 0


def show_comparison(comparison: Comparison, page: Path) -> None:
    """How well each run tracked, where its error comes from, and how far it is from the first."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(comparison.runs[0].summary['scenario'])}, {len(comparison.runs)} runs[/bold]\n")
    for warning in comparison.warnings:
        console.print(f"Note: {warning}", soft_wrap=True, markup=False)
    console.print(_errors(comparison))
    console.print("\nThe error's parts, RMS in mm; and how far the tool is from that of the first run, mm:")
    console.print(_parts(comparison))
    console.print(f"Page: {page}", soft_wrap=True, markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("run", max_width=18, overflow="fold")
    for name in columns:
        table.add_column(name, justify="left" if name == "backend" else "right", no_wrap=True)
    return table


def _errors(comparison: Comparison) -> Table:
    table = _table("backend", "RMS mm", "max mm", "RMS deg", "delay ms", "off path")
    for run in comparison.runs:
        error, summary = run.summary["tracking_error"], run.summary
        table.add_row(
            escape(run.name),
            summary["backend"],
            millimetres(error["position_m"]["rms"]),
            millimetres(error["position_m"]["max"]),
            degrees(error["rotation_rad"]["rms"]),
            milliseconds(summary["delay_s"]),
            millimetres(summary["contour_error"]["position_m"]["rms"]),
        )
    return table


def _parts(comparison: Comparison) -> Table:
    table = _table(*PARTS, "apart", "at most")
    for run, apart in zip(comparison.runs, comparison.apart, strict=True):
        parts = (millimetres(run.summary[f"{part}_error"]["position_m"]["rms"]) for part in PARTS)
        away = None if apart is None else statistics(apart[1].distance)
        cells = ("–", "–") if away is None else (millimetres(away["rms"]), millimetres(away["max"]))
        table.add_row(escape(run.name), *parts, *cells)
    return table
