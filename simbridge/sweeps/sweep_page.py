"""sweep.html: how the error moves with what was varied, what it costs in smoothness, and every point.

The page is made of results.csv alone. It shows the points that were made by the newest version; the others are counted.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from simbridge.files.writing import write_file
from simbridge.report.drawing import Drawing, as_written, drawing_style, few_ticks, plain_numbers
from simbridge.report.palette import REFERENCE, RUNS
from simbridge.report.rendering import Figure, LegendEntry, render
from simbridge.robot.pose import Array
from simbridge.sweeps.grid import Point
from simbridge.sweeps.job import made_by
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.results import (
    AXES,
    ERROR,
    FAILED,
    FIXED,
    MAPS,
    PLANNED,
    QUANTITIES,
    REFUSED,
    RESULTS,
    RIVALS,
    Points,
    Quantity,
    Results,
    Row,
    number,
    reasons,
)
from simbridge.text import SMALLEST, counted, millimetres, significant

PAGE = "sweep.html"
LISTED, DRAWN = 200, 2000
"""Points at most in the table, those with the smallest error; and in a figure that draws each of them."""
_LINES, _TICKS = 7, 8
# The ground of labels that lines cross.
_ON_LINES = {"facecolor": "white", "alpha": 0.75, "pad": 0.5, "linewidth": 0.0}
# Largest over smallest value of a parameter, above which its axis is logarithmic.
_LOGARITHMIC = 20.0


def write_page(directory: Path) -> Path:
    """Write sweep.html from results.csv."""
    results = Results(directory / RESULTS)
    wanted = (*FIXED, *parameters(), *(one.column for one in (*QUANTITIES, *RIVALS.values())))
    path = directory / PAGE
    page = sweep_page(results.rows(wanted), directory.name)
    write_file(path, page.encode(), follow_links=False)
    return path


def sweep_page(rows: Sequence[Row], sweep: str) -> str:
    """The whole page as HTML."""
    current = newest_of(rows)
    points = Points.of([row for row in current if row["outcome"] not in (REFUSED, FAILED)])
    fronts = points.fronts()
    with drawing_style():
        figures = [
            *_over_parameters(points),
            *(_pareto(points, name, front) for name, front in fronts.items()),
        ]
    named: dict[str, list[str]] = defaultdict(list)
    for name, front in fronts.items():
        for row in front:
            named[row["identity"]].append(name)
    shown = [
        row
        for place, row in enumerate(points.rows)
        if place < LISTED or row["directory"] or row["identity"] in named
    ]
    notices = [sentence for outcome in (REFUSED, FAILED) for sentence in reasons(current, outcome)]
    if others := len(rows) - len(current):
        notices.append(
            f"{counted(others, 'row')} of results.csv made by other versions are left out."
        )
    scenarios = ", ".join(dict.fromkeys(row["scenario"] for row in current))
    return render(
        "sweep.html",
        title=f"Sweep: {scenarios}",
        scenarios=scenarios,
        name=sweep,
        headline=_headline(points),
        notices=notices,
        figures=figures,
        parallel=len(points.numeric) > AXES,
        legend=_legend(points),
        columns=list(points.varied),
        quantities=_known(points),
        fronts=bool(fronts),
        rows=[_listed(row, named[row["identity"]]) for row in shown],
        left=len(points.rows) - len(shown),
    )


def newest_of(rows: Sequence[Row]) -> list[Row]:
    """The rows that are shown: those made by this version, if it has made any; else by what made the last one."""
    made = dict.fromkeys(row["made_by"] for row in rows)
    newest = made_by() if made_by() in made else next(reversed(made), "")
    return [row for row in rows if row["made_by"] == newest]


def _known(points: Points) -> list[Quantity]:
    """The quantities that a point has."""
    return [one for one in QUANTITIES if any(row.get(one.column) for row in points.rows)]


def _legend(points: Points) -> list[LegendEntry]:
    """The families of lines."""
    if len(points.numeric) > 1 or not points.other:
        return []
    names = [", ".join(value or "default" for value in family) for family in points.families()]
    return [LegendEntry(name, colour) for name, colour in zip(names, RUNS, strict=False)]


def _listed(row: Row, fronts: Sequence[str]) -> Mapping[str, Any]:
    values = {name: text for name, text in row.items() if text and name in parameters()}
    command = Point(row["scenario"], values).command(plan_only=row["outcome"] == PLANNED)
    shown = {
        one.column: significant(one.of(row)) if row.get(one.column) else "–" for one in QUANTITIES
    }
    report = f"{row['directory']}/report.html" if row["directory"] else ""
    return {**row, **shown, "command": command, "report": report, "fronts": ", ".join(fronts)}


def _headline(points: Points) -> str:
    if not points.rows:
        return "No point has figures."
    best, worst = points.rows[0], points.rows[-1]
    varied = [*points.other, *points.numeric]
    where = ", ".join(f"{name} {best[name] or 'by default'}" for name in varied)
    low, high = (millimetres(number(row, points.error.column)) for row in (best, worst))
    ends = f"{low} mm{f', with {where}' if where else ''}; the largest {high} mm"
    return f"The smallest RMS {points.error.words} is {ends}."


def _over_parameters(points: Points) -> list[Figure]:
    """Lines over one parameter, a map over two, and parallel coordinates over more."""
    if not points.rows or not (points.numeric or points.other):
        return []
    # A point of another grid may not have a value of each.
    whole = [row for row in points.rows if all(row[name] for name in points.numeric)]
    left, points = len(points.rows) - len(whole), replace(points, rows=whole)
    if not whole:
        return []
    if len(points.numeric) > AXES:
        figures = [_parallel(points)]
    elif len(points.numeric) == AXES:
        figures = _maps(points)
    else:
        figures = [_lines(points, quantity, place) for place, quantity in enumerate(_known(points))]
    if left:
        words = f"{counted(left, 'point')} without a value of {' or '.join(points.numeric)} are not drawn here."
        figures[0] = replace(figures[0], notes=[*figures[0].notes, words])
    return figures


def _axis(axes: Axes, name: str, values: Iterable[float], *, vertical: bool = False) -> None:
    """An axis of a parameter or a figure: logarithmic where its values span more than a decade or so."""
    known = sorted(set(values))
    axis = axes.yaxis if vertical else axes.xaxis
    if known[0] > 0.0 and known[-1] / known[0] > _LOGARITHMIC:
        (axes.set_yscale if vertical else axes.set_xscale)("log")
        axis.set_major_locator(
            FixedLocator(known) if len(known) <= _TICKS else LogLocator(subs=(1, 2, 5))
        )
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(few_ticks(_TICKS))
    axis.set_major_formatter(plain_numbers())
    (axes.set_ylabel if vertical else axes.set_xlabel)(name)


def _not_magnified(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits for figures, at least 2 % of their values and SMALLEST apart: smaller differences are not to be seen."""
    low, high = limits
    if low > 0.0 and high / low > _LOGARITHMIC:
        return limits
    missing = max(0.01 * abs(low + high) - (high - low), SMALLEST - (high - low), 0.0)
    below = min(0.5 * missing, low) if low >= 0.0 else 0.5 * missing
    return low - below, high + missing - below


def _lines(points: Points, quantity: Quantity, place: int) -> Figure:
    """Each family's median over one parameter, with the spread of its points."""
    drawing = Drawing(540, 300)
    axes = drawing.axes(58, 44, 16, 12)
    families = points.families()
    name = points.numeric[0] if points.numeric else ""
    drawn: list[float] = []
    for colour, (_, rows) in zip(RUNS, families.items(), strict=False):
        values: dict[float, list[float]] = defaultdict(list)
        for row in rows:
            values[number(row, name, 0.0)].append(quantity.of(row))
        xs = sorted(values)
        low, middle, high = (
            [pick(values[x]) for x in xs] for pick in (min, statistics.median, max)
        )
        drawn += low + high
        axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(xs, middle, color=colour, marker="o", markersize=4.0, linewidth=1.6)
    if name:
        _axis(axes, name, {number(row, name) for row in points.rows})
    else:
        axes.set_xticks([])
    axes.set_ylim(_not_magnified(axes.get_ylim()))
    axes.yaxis.set_major_formatter(plain_numbers())
    label = f"{quantity.title}{f' over {name}' if name else ''}: {significant(min(drawn))} to {significant(max(drawn))}"
    notes = []
    if place == 0 and points.seeds:
        notes.append("Lines: the median; shaded: from the smallest to the largest of the seeds.")
    if place == 0 and len(families) > _LINES:
        notes.append(f"{_LINES} of {len(families)} families are drawn.")
    return Figure(quantity.title, drawing.svg(f"line{place}", label), notes)


def _maps(points: Points) -> list[Figure]:
    """The median of the error over two parameters: a map for each family."""
    across, up = points.numeric
    xs, ys = (sorted({number(row, name) for row in points.rows}) for name in points.numeric)
    least, most = (points.error.of(points.rows[k]) for k in (0, -1))
    norm = (LogNorm if least > 0.0 and most / least > _LOGARITHMIC else Normalize)(
        *_not_magnified((least, most))
    )
    found = []
    for place, (family, rows) in enumerate(list(points.families().items())[:MAPS]):
        cells: dict[tuple[float, float], list[float]] = defaultdict(list)
        for row in rows:
            cells[number(row, across), number(row, up)].append(points.error.of(row))
        values = np.array(
            [
                [statistics.median(cells[x, y]) if (x, y) in cells else math.nan for x in xs]
                for y in ys
            ]
        )
        drawing = _map(points, xs, ys, values, norm)
        words = ", ".join(
            f"{name} {value or 'by default'}"
            for name, value in zip(points.other, family, strict=True)
        )
        title = points.error.title + (f": {words}" if words else "")
        notes = ["White: refused, failed, or not asked for."] * bool(np.isnan(values).any())
        low, high = (significant(pick(values)) for pick in (np.nanmin, np.nanmax))
        label = f"{title} over {across} and {up}: {low} to {high}"
        found.append(Figure(title, drawing.svg(f"map{place}", label, paper=True), notes))
    return found


def _map(
    points: Points, xs: list[float], ys: list[float], values: Array, norm: Normalize
) -> Drawing:
    drawing = Drawing(540, 110 + 26 * min(len(ys), 20))
    axes = drawing.axes(70, 44, 16, 12)
    axes.grid(False)
    axes.pcolormesh(
        np.ma.masked_invalid(values), cmap="cividis_r", norm=norm, edgecolors="white", linewidth=1.0
    )
    for (row, column), value in np.ndenumerate(values):
        if values.size <= 120 and not math.isnan(value):
            colour = "#1a1a1a" if norm(value) < 0.5 else "white"
            axes.text(
                column + 0.5, row + 0.5, significant(value), ha="center", va="center", color=colour
            )
    for axis, numbers in ((axes.xaxis, xs), (axes.yaxis, ys)):
        step = math.ceil(len(numbers) / 12)
        axis.set_ticks(
            [k + 0.5 for k in range(0, len(numbers), step)],
            [as_written(v) for v in numbers[::step]],
        )
    axes.set(xlabel=points.numeric[0], ylabel=points.numeric[1])
    axes.yaxis.set_label_coords(-0.11, 0.5)
    return drawing


def _parallel(points: Points) -> Figure:
    """Each point as a line over all parameters to its error, the best on top."""
    names = [*points.other, *points.numeric]
    step = math.ceil(len(points.rows) / DRAWN)
    rows = points.rows[::step]
    errors = [points.error.of(row) for row in rows]
    # Of each axis: where it is crossed, and its labels from the bottom to the top.
    columns, labels = [], []
    for name in points.other:
        known = list(dict.fromkeys(row[name] for row in points.rows))
        columns.append(np.array([known.index(row[name]) / max(len(known) - 1, 1) for row in rows]))
        labels.append([text or "default" for text in known])
    for name in points.numeric:
        values = [number(row, name) for row in rows]
        columns.append(_shares(values, (min(values), max(values))))
        labels.append([as_written(min(values)), as_written(max(values))])
    limits = _not_magnified((errors[0], errors[-1]))
    columns.append(_shares(errors, limits))
    labels.append([significant(limit) for limit in limits])
    drawing = Drawing(1080, 380)
    axes = drawing.axes(20, 60, 30, 24)
    axes.grid(False)
    places = np.arange(len(columns))
    colours = matplotlib.colormaps["cividis_r"](np.linspace(0.0, 1.0, len(rows)))
    for line, colour in list(zip(np.stack(columns, axis=1), colours, strict=True))[::-1]:
        axes.plot(places, line, color=colour, linewidth=0.8, alpha=0.7)
    for place, texts in enumerate(labels):
        axes.axvline(place, color=REFERENCE, linewidth=0.8)
        for height, text in zip(
            np.linspace(0.0, 1.0, len(texts)) if len(texts) > 1 else [0.5], texts, strict=True
        ):
            axes.text(place + 0.015, height, text, va="center", fontsize=10, bbox=_ON_LINES)
    axes.set_xticks(places, [*names, points.error.title])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    notes = ["Each line is a point; dark lines have a large error."]
    if step > 1:
        notes.append(
            f"One point in {step} is drawn, evenly by its error, so that the page opens quickly."
        )
    title = f"{points.error.title} over {len(names)} parameters"
    label = f"{title}: {significant(errors[0])} to {significant(errors[-1])}"
    return Figure(title, drawing.svg("parallel", label, paper=True), notes)


def _shares(values: Sequence[float], limits: tuple[float, float]) -> Array:
    """Where values are on an axis: 0 at its lower limit, 1 at its upper one."""
    found, (low, high) = np.array(values, dtype=float), limits
    if low > 0.0 and high / low > _LOGARITHMIC:
        found, low, high = np.log(found), math.log(low), math.log(high)
    return np.asarray((found - low) / (high - low if high > low else 1.0))


def _pareto(points: Points, name: str, front: Sequence[Row]) -> Figure:
    """Error against smoothness or effort."""
    rival, rows = RIVALS[name], points.rows[:: math.ceil(len(points.rows) / DRAWN)]
    drawing = Drawing(540, 300)
    axes = drawing.axes(58, 44, 16, 12)
    errors = [ERROR.of(row) for row in rows]
    axes.plot(
        [rival.of(row) for row in rows],
        errors,
        linestyle="",
        marker="o",
        markersize=4.0,
        color=REFERENCE,
    )
    best = [rival.of(row) for row in front], [ERROR.of(row) for row in front]
    axes.step(*best, where="pre", color=RUNS[0], linewidth=1.2, marker="o", markersize=5.0)
    _axis(axes, "", errors, vertical=True)
    axes.set_ylim(_not_magnified(axes.get_ylim()))
    axes.set_xlim(_not_magnified(axes.get_xlim()))
    axes.set_xlabel(rival.title)
    axes.xaxis.set_major_locator(few_ticks(6))
    axes.xaxis.set_major_formatter(plain_numbers())
    note = f"Blue: {counted(len(front), 'point')} that no other point beats in both, marked in the table."
    title = f"Tracking error, RMS (mm), against {name}"
    label = f"{title}: {significant(min(errors))} to {significant(max(errors))} mm. {note}"
    return Figure(title, drawing.svg(f"front-{name}", label), [note])
