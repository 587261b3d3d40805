"""sweep.html: how the error moves with what was varied, what it costs, and every point.

The page is made of results.csv alone. It shows the points that the newest version made; the others
are counted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simbridge.files.writing import write_file
from simbridge.report.drawing import drawing_style
from simbridge.report.palette import RUNS
from simbridge.report.rendering import LegendEntry, render
from simbridge.sweeps.category_figure import category_name
from simbridge.sweeps.grid import Point
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.ranked_points import (
    MAP_AXES,
    QUANTITIES,
    RIVALS,
    RankedPoints,
    rank_points,
)
from simbridge.sweeps.results import (
    EXTRAPOLATED_GAIN,
    FAILED,
    FIXED,
    PLANNED,
    REFUSED,
    RESULTS,
    Row,
    describe_extrapolated_rows,
    number,
    read_results,
    reasons,
)
from simbridge.sweeps.sweep_figures import draw_figures, known_quantities
from simbridge.text import counted, millimetres, significant

# Name of the page in a sweep's directory.
PAGE = "sweep.html"
# Points in the table at most: those with the smallest error.
MAX_LISTED = 200


def write_page(directory: Path) -> Path:
    """Write sweep.html from results.csv, and return its path."""
    quantities = (*QUANTITIES, *RIVALS.values())
    figures = [EXTRAPOLATED_GAIN, *(quantity.column for quantity in quantities)]
    columns = (*FIXED, *parameters(), *figures)
    rows = read_results(directory / RESULTS, columns)

    path = directory / PAGE
    page = sweep_page(rows, directory.name)
    write_file(path, page.encode(), follow_links=False)
    return path


def sweep_page(rows: Sequence[Row], sweep: str) -> str:
    """Return the whole page as HTML.

    Args:
        rows: All rows of results.csv.
        sweep: Name of the sweep's directory.
    """
    newest = newest_rows(rows)
    points = rank_points([row for row in newest if row["outcome"] not in (REFUSED, FAILED)])
    fronts = points.fronts()
    with drawing_style():
        figures = draw_figures(points, fronts)

    # The table lists the best points, and those that the page refers to.
    front_names: dict[str, list[str]] = defaultdict(list)
    for name, front in fronts.items():
        for row in front:
            front_names[row["identity"]].append(name)
    table = [
        row
        for rank, row in enumerate(points.rows)
        if rank < MAX_LISTED or row["directory"] or row["identity"] in front_names
    ]

    notices = [*reasons(newest, REFUSED), *reasons(newest, FAILED)]
    older_count = len(rows) - len(newest)
    if older_count:
        counted_rows = counted(older_count, "row")
        notices.append(f"{counted_rows} of results.csv made by other versions are left out.")

    scenarios = ", ".join(dict.fromkeys(row["scenario"] for row in newest))
    return render(
        "sweep.html",
        title=f"Sweep: {scenarios}",
        scenarios=scenarios,
        name=sweep,
        headline=_headline(points),
        extrapolation=describe_extrapolated_rows(points.rows),
        extremes=_extremes(points),
        notices=notices,
        figures=figures,
        parallel=len(points.axes) > MAP_AXES,
        legend=_legend(points),
        columns=list(points.varied),
        texts=[name for name in points.varied if _has_text(table, name)],
        quantities=known_quantities(points),
        fronts=bool(fronts),
        rows=[_table_row(row, front_names[row["identity"]]) for row in table],
        left=len(points.rows) - len(table),
    )


def newest_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are shown.

    They are those that this version made, if it made any; else those of the version that made the
    last one.
    """
    versions = dict.fromkeys(row["made_by"] for row in rows)
    newest = made_by() if made_by() in versions else next(reversed(versions), "")
    return [row for row in rows if row["made_by"] == newest]


def _has_text(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column has texts, such as the names of solvers, instead of numbers."""
    return any(row.get(column) and math.isnan(number(row, column)) for row in rows)


def _legend(points: RankedPoints) -> list[LegendEntry]:
    """Return the families of lines with their colours; maps and single families have none."""
    if len(points.axes) != 1 or not points.labels:
        return []
    names = [category_name(family) for family in points.families()]
    return [LegendEntry(name, colour) for name, colour in zip(names, RUNS, strict=False)]


def _table_row(row: Row, fronts: Sequence[str]) -> Mapping[str, Any]:
    """Return the cells of a point in the table, with its command line and its report.

    Args:
        row: A row of results.csv.
        fronts: Names of the Pareto fronts that the point belongs to.
    """
    values = {name: text for name, text in row.items() if text and name in parameters()}
    command = Point(row["scenario"], values).command(plan_only=row["outcome"] == PLANNED)

    figures = {}
    for quantity in QUANTITIES:
        is_known = bool(row.get(quantity.column))
        figures[quantity.column] = significant(quantity.value(row)) if is_known else "–"

    return {
        **row,
        **figures,
        "command": command,
        "report": _report_of(row),
        "fronts": ", ".join(fronts),
    }


def _extremes(points: RankedPoints) -> list[tuple[str, str]]:
    """Return the names and reports of the points with the smallest and the largest error.

    They are left out where their runs were not kept.
    """
    if not points.rows:
        return []
    ends = {"Best point": points.rows[0], "Worst point": points.rows[-1]}
    return [(name, _report_of(row)) for name, row in ends.items() if row["directory"]]


def _report_of(row: Row) -> str:
    """Return the report of a point's run, relative to the page; "" where it was not kept."""
    return f"{row['directory']}/report.html" if row["directory"] else ""


def _headline(points: RankedPoints) -> str:
    """Return the smallest and the largest error as a sentence; one error where all are equal."""
    if not points.rows:
        return "No points have results."

    errors = [millimetres(number(row, points.error.column)) for row in points.rows]
    smallest = errors[0]
    largest = errors[-1]
    varied = [*points.labels, *points.axes]
    best = points.rows[0]
    values = ", ".join(f"{name} {best[name] or 'by default'}" for name in varied)

    if len(errors) == 1:
        with_values = f", with {values}" if values else ""
        return f"The RMS {points.error.noun} of the only point is {smallest} mm{with_values}."
    if smallest == largest:
        return f"All {len(errors)} points have the same RMS {points.error.noun}: {smallest} mm."

    # Several points may share the smallest error.
    ties = errors.count(smallest) - 1
    with_values = f", with {values}" if values else ""
    if ties:
        with_values += f" (and {counted(ties, 'other point')})"
    return (
        f"The smallest RMS {points.error.noun} is {smallest} mm{with_values}; "
        f"the largest {largest} mm."
    )
