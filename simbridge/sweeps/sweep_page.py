"""Makes the page sweep.html: the error over the varied parameters, its trade-offs, and all points.

The page is made from results.csv alone. It shows the points that the newest version of simbridge
made; those of other versions are only counted.
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
# Largest number of points in the table: those with the smallest error.
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

    # The table lists the best points, those with a kept run, and those on a Pareto front.
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
    """Return the rows that one version of simbridge made: this one, else that of the last row."""
    versions = dict.fromkeys(row["made_by"] for row in rows)
    newest = made_by() if made_by() in versions else next(reversed(versions), "")
    return [row for row in rows if row["made_by"] == newest]


def _has_text(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column has a text, such as the name of a solver, instead of a number."""
    return any(row.get(column) and math.isnan(number(row, column)) for row in rows)


def _legend(points: RankedPoints) -> list[LegendEntry]:
    """Return the families of lines with their colours; none for other figures, or one family."""
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

    A point whose run was not kept is left out.
    """
    if not points.rows:
        return []
    ends = {"Best point": points.rows[0], "Worst point": points.rows[-1]}
    return [(name, _report_of(row)) for name, row in ends.items() if row["directory"]]


def _report_of(row: Row) -> str:
    """Return the path of the report on a point's run from the page; "" if it was not kept."""
    return f"{row['directory']}/report.html" if row["directory"] else ""


def _headline(points: RankedPoints) -> str:
    """Return a sentence on the smallest and the largest error, or on the only error."""
    if not points.rows:
        return "No points have results."

    # Rows are sorted by their error; texts that are equal count as equal errors.
    errors = [millimetres(number(row, points.error.column)) for row in points.rows]
    smallest = errors[0]
    largest = errors[-1]

    # The values of the best point: ", with solver.kp 100".
    best = points.rows[0]
    varied = [*points.labels, *points.axes]
    values = ", ".join(f"{name} {best[name] or 'by default'}" for name in varied)
    with_values = f", with {values}" if values else ""

    if len(errors) == 1:
        return f"The RMS {points.error.noun} of the only point is {smallest} mm{with_values}."
    if smallest == largest:
        return f"All {len(errors)} points have the same RMS {points.error.noun}: {smallest} mm."

    # Several points may share the smallest error.
    tie_count = errors.count(smallest) - 1
    if tie_count:
        with_values += f" (and {counted(tie_count, 'other point')})"
    return (
        f"The smallest RMS {points.error.noun} is {smallest} mm{with_values}; "
        f"the largest {largest} mm."
    )
