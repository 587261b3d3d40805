"""Repeats as people see them in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.readable import degrees, millimetres, milliseconds, significant
from simbridge.repeating import Repeats


def show_repeats(repeats: Repeats) -> None:
    """A line a run, then the ISO 9283-style figures of all of them."""
    console = Console(highlight=False)
    summary = repeats.summary
    console.print(
        f"[bold]{escape(summary['robot'])} ran {escape(summary['scenario'])} {summary['completed']} of "
        f"{summary['repeats']} times[/bold]\n",
        soft_wrap=True,
    )
    console.print(_runs(summary["runs"]))
    iso = summary["iso_9283_style"]
    if iso["figures"]:
        console.print(f"\nISO 9283-style figures, {iso['witness']}:", soft_wrap=True)
        console.print(_figures(iso["figures"]))
    else:
        console.print(f"\nNo ISO 9283-style figures: {iso['missing']}", soft_wrap=True, markup=False)
    if summary["passed"] is not None:
        kept = "[green]All within the tolerance.[/green]" if summary["passed"] else "[red]Beyond the tolerance.[/red]"
        console.print(kept)
    console.print(f"Runs: {repeats.directory}", soft_wrap=True, markup=False)


def _runs(runs: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("run")
    for name in ("RMS mm", "max mm", "RMS deg", "delay ms", "off path mm"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        error = run["tracking_error"]
        if error is None:
            table.add_row(run["run"], "no sample")
            continue
        table.add_row(
            run["run"],
            millimetres(error["position_m"]["rms"]),
            millimetres(error["position_m"]["max"]),
            degrees(error["rotation_rad"]["rms"]),
            milliseconds(run["delay_s"]),
            millimetres(run["contour_error"]["position_m"]["rms"]),
        )
    return table


def _figures(figures: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("figure")
    for name in ("value", "unit", "cycles", "asked"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    for figure in figures:
        value, unit = figure["value"], figure["unit"]
        shown, unit = (millimetres(value), "mm") if unit == "m" else (significant(value), unit)
        table.add_row(figure["symbol"], shown, unit, str(figure["cycles"]), str(figure["asked"]))
    return table
