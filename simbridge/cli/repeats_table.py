"""Repeats as people see them in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.running.repeating import Repeats
from simbridge.text import degrees, millimetres, milliseconds, significant


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
    show_iso(console, summary["iso_9283_style"])
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


def show_iso(console: Console, iso: dict[str, Any]) -> None:
    """A line a stop, a line a figure of the path, and why some are missing.

    Args:
        console: Where.
        iso: What summary.json or evaluation.json holds as `iso_9283_style`.
    """
    at_stops = [figure for figure in iso["figures"] if figure["stop"] is not None]
    of_path = [figure for figure in iso["figures"] if figure["stop"] is None]
    if iso["figures"]:
        console.print(f"\nISO 9283-style figures, {iso['witness']}:", soft_wrap=True)
    if at_stops:
        console.print(_stops(at_stops, iso["stops_m"]))
        asked = {figure["symbol"]: figure["asked"] for figure in at_stops}
        console.print(f"Settled: within {millimetres(iso['limit_band_m'])} mm.")
        console.print(f"The standard asks for {asked['AP']} cycles for AP and RP, {asked['OV']} for settling and OV.\n")
    if of_path:
        console.print(_figures(of_path))
    for sentence in iso["missing"]:
        console.print(sentence, markup=False)


def _stops(figures: list[dict[str, Any]], positions: list[list[float]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("stop")
    for name in ("x, y, z mm", "AP mm", "RP mm", "settling ms", "OV mm", "cycles"):
        table.add_column(name, justify="right", no_wrap=True)
    for number in sorted({figure["stop"] for figure in figures}):
        here = {figure["symbol"]: figure for figure in figures if figure["stop"] == number}
        place = ", ".join(f"{1e3 * value:.0f}" for value in positions[number - 1])
        table.add_row(
            f"{number}",
            place,
            millimetres(here["AP"]["value"]),
            millimetres(here["RP"]["value"]),
            milliseconds(here["stabilisation time"]["value"]),
            millimetres(here["OV"]["value"]),
            str(here["AP"]["cycles"]),
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
