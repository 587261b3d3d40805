"""The command `simbridge compare`: runs of one scenario, or two sweeps, next to each other.

It shows tables of at most 60 columns, and writes compare.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from simbridge.cli.flags import CompareFlags
from simbridge.cli.run_tables import RUN_COLUMNS, run_cells
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.errors import Refusal
from simbridge.evaluation.comparison import Comparison, compare_runs, iso_figures_of
from simbridge.evaluation.metrics.samples import statistics
from simbridge.evaluation.metrics.tracking import TRACKING_ERROR, known_parts
from simbridge.evaluation.prediction import Deviations, PredictionError
from simbridge.files.writing import write_file, writing
from simbridge.json_output import print_json
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.compare_columns import motion_columns
from simbridge.report.compare_headline import comparison_extrapolation, comparison_headline
from simbridge.report.compare_page import about, compare_page
from simbridge.report.figure_files import check_figure_format, write_comparison_figures
from simbridge.report.verdict import PARTS_CANCEL, parts_cancel
from simbridge.sweeps.comparison import (
    SweepComparison,
    compare_sweeps,
    comparison_page,
    comparison_rows,
    is_sweep,
)
from simbridge.text import counted, degrees, join_words, make_table, millimetres, milliseconds

# Points of sweeps in the terminal at most; the page has all.
MAX_SHOWN_POINTS = 20
# Names of columns that would be too long in the terminal.
SHORT_NAMES = {
    "time per step": "step",
    "joint speed": "speed",
    "joint acceleration": "accel.",
    "joint jerk": "jerk",
}
# Runs side by side in a table of metrics in the terminal; more runs get further tables.
RUNS_PER_TABLE = 3
# With more runs, the table of time per step and joint motion needs --verbose.
MAX_RUNS_WITH_MOTION = 2


def compare(flags: CompareFlags) -> int:
    """Compare runs, or two sweeps: print tables or JSON, and write compare.html.

    Returns:
        The exit status, 0.

    Raises:
        SimbridgeError: See `compare_runs`; or the page cannot be written.
    """
    paths = [Path(run) for run in flags.runs]
    if any(map(is_sweep, paths)):
        if flags.figures is not None:
            raise Refusal("--figures draws runs: it cannot be used with sweeps.")
        return _compare_sweeps(paths, flags.out, as_json=flags.as_json)

    check_figure_format(flags.format)
    comparison = compare_runs(paths)
    scenario = comparison.runs[0].summary["scenario"]
    html = compare_page(comparison, iso_figures_of(comparison))
    page = _write_page(flags.out, scenario, html)
    figures: list[Path] = []
    if flags.figures is not None:
        figures = write_comparison_figures(comparison, Path(flags.figures), flags.format)

    if flags.as_json:
        facts: dict[str, Any] = {"page": str(page), **comparison.as_dict()}
        if flags.figures is not None:
            facts["figures"] = [str(file) for file in figures]
        print_json(facts)
    else:
        _show_runs(comparison, page, verbose=flags.verbose)
        for file in figures:
            print(file)
    return 0


def _write_page(out: str | None, name: str, html: str) -> Path:
    """Write compare.html into the directory, or a new one under runs/, and return its path."""
    directory = RunDirectory.create(None, f"compare_{name}").path if out is None else Path(out)
    path = directory / "compare.html"
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
    write_file(path, html.encode(), follow_links=False)
    return path


def _compare_sweeps(paths: Sequence[Path], out: str | None, *, as_json: bool) -> int:
    """Compare two sweeps; the exit status is 0."""
    if len(paths) != 2 or not all(map(is_sweep, paths)):
        names = join_words([*map(str, paths)])
        raise Refusal(f"Cannot compare {names}: give two sweeps, or only runs.")

    comparison = compare_sweeps(*paths)
    page = _write_page(out, "sweeps", comparison_page(comparison))

    if as_json:
        facts = {
            "page": str(page),
            "sweeps": list(comparison.names),
            "points": _point_facts(comparison),
        }
        print_json(facts)
    else:
        _show_sweeps(comparison, page)
    return 0


def _point_facts(comparison: SweepComparison) -> list[dict[str, object]]:
    """Return the points that two sweeps share for JSON: what was varied, and both errors, m."""
    titles = (*comparison.varied, "first_m", "second_m")
    points = []
    for row, pair in zip(comparison_rows(comparison), comparison.pairs, strict=True):
        # The last three cells are both errors and their ratio, as texts.
        values = (*row[:-3], pair.first, pair.second)
        points.append(dict(zip(titles, values, strict=True)))
    return points


def _show_sweeps(comparison: SweepComparison, page: Path) -> None:
    """Show the points of two sweeps with the largest change."""
    console = Terminal()
    console.print(f"[bold]{escape(comparison.headline)}[/bold]", soft_wrap=True)
    if comparison.extrapolation:
        say(console, comparison.extrapolation)
    console.print()

    first, second = map(escape, comparison.names)
    columns = (*comparison.varied, f"{first} mm", f"{second} mm", "ratio")
    rows = [tuple(map(escape, row)) for row in comparison_rows(comparison)]
    console.print(make_table(columns, rows[:MAX_SHOWN_POINTS]))

    if len(rows) > MAX_SHOWN_POINTS:
        more = len(rows) - MAX_SHOWN_POINTS
        console.print(f"The page shows {more} more points, with smaller changes.")
    for name, count in zip(comparison.names, comparison.alone, strict=True):
        if count:
            console.print(f"{counted(count, 'point')} with figures only in {name}.", markup=False)
    console.print(f"Page: {page}", soft_wrap=True, markup=False)


def _show_runs(comparison: Comparison, page: Path, *, verbose: bool) -> None:
    """Show what differs between the runs and what it changes; more of it if asked for."""
    console = Terminal()
    say(console, comparison_headline(comparison), style="bold")
    for warning in comparison.warnings:
        say(console, f"Note: {warning}")
    # An empty line, unless the sentence sets the table off.
    say(console, comparison_extrapolation(comparison))

    console.print(_error_table(comparison))
    if verbose or len(comparison.runs) <= MAX_RUNS_WITH_MOTION:
        console.print(_motion_table(comparison))
    _show_predictions(console, comparison)
    if verbose:
        _show_more(console, comparison)
    console.print(f"Page: {page}", soft_wrap=True, markup=False)


def _error_table(comparison: Comparison) -> Table:
    """Return a table of the error of each run: the one that is compared first, and the whole."""
    main_part = comparison.main_part
    title = "" if main_part is TRACKING_ERROR else f"{main_part.name} mm"
    columns = comparison.differences.columns
    rows = []
    for number, run in enumerate(comparison.runs):
        names = [escape(column[number]) for column in columns.values()]
        error = run.summary[main_part.key]
        assert error is not None, "each run has the part of the error by which runs are compared"
        first_cells = (millimetres(error["position_m"]["rms"]),) if title else ()
        rows.append((*names, *first_cells, *run_cells(run.summary)))
    first_columns = (title,) if title else ()
    return make_table((*columns, *first_columns, *RUN_COLUMNS), rows, left=tuple(columns))


def _motion_table(comparison: Comparison) -> Table:
    """Return a table of time per step and joint motion; a share above 1 is bold."""
    columns = motion_columns(comparison.runs)
    # The first column names the runs; the table of errors has the others.
    heading, names = next(iter(comparison.differences.columns.items()))
    titles = [heading]
    for column in columns:
        titles.append(f"{SHORT_NAMES.get(column.name, column.name)} {column.unit}")
        if column.limit:
            titles.append("of limit")

    rows = []
    for number, name in enumerate(names):
        cells = [escape(name)]
        for column in columns:
            cell = column.cells[number]
            cells.append(cell.value)
            if column.limit:
                cells.append(
                    f"[bold red]{cell.limit_share}[/bold red]" if cell.exceeds else cell.limit_share
                )
        rows.append(tuple(cells))
    return make_table(titles, rows)


def _show_more(console: Terminal, comparison: Comparison) -> None:
    """Show what the runs are, parts of the error, metrics, and distances from the first run."""
    console.print()
    labels = comparison.differences.labels
    for run, label in zip(comparison.runs, labels, strict=True):
        say(console, f"{label}, in {run.name}: {about(run.summary)}.")
    _show_parts(console, comparison)
    _show_metrics(console, comparison)
    _show_separations(console, comparison)


def _show_parts(console: Terminal, comparison: Comparison) -> None:
    """Show a table with the parts of the tracking error of each run."""
    say(
        console,
        "\nParts of the error, RMS in mm (the plant's part consists of servo law and rest):",
    )
    parts = known_parts(*(run.summary for run in comparison.runs))

    rows = []
    for run, label in zip(comparison.runs, comparison.differences.labels, strict=True):
        cells = [escape(label)]
        for part in parts:
            error = run.summary[part.key]
            cells.append("–" if error is None else millimetres(error["position_m"]["rms"]))
        rows.append(tuple(cells))
    console.print(make_table(("run", *(part.name for part in parts)), rows))
    if any(parts_cancel(run.summary) for run in comparison.runs):
        say(console, PARTS_CANCEL)
    console.print()


def _show_metrics(console: Terminal, comparison: Comparison) -> None:
    """Show the metrics in tables with a column for each run."""
    labels = [escape(label) for label in comparison.differences.labels]
    for begin in range(0, len(labels), RUNS_PER_TABLE):
        shown = slice(begin, begin + RUNS_PER_TABLE)
        rows = [(line.name, *line.values[shown], line.unit) for line in comparison.metrics]
        console.print(make_table(("metric", *labels[shown], "unit"), rows, left=("unit",)))
        console.print()


def _show_separations(console: Terminal, comparison: Comparison) -> None:
    """Say how far apart the tools of the runs and that of the first were."""
    labels = comparison.differences.labels
    for label, separation in zip(labels, comparison.separation, strict=True):
        if separation is None:
            continue
        distances = statistics(separation[1].distance)
        rms = millimetres(distances["rms"])
        largest = millimetres(distances["max"])
        say(
            console,
            f"The TCP of {label} differs from that of {labels[0]} by {rms} mm RMS (max {largest} "
            "mm).",
        )


def _show_predictions(console: Terminal, comparison: Comparison) -> None:
    """Show how far the simulated runs were from the measured ones, if there are both."""
    if not any(comparison.prediction):
        return

    console.print("\nPrediction error, simulated to measured:")
    rows: list[tuple[str, ...]] = []
    labels = comparison.differences.labels
    for label, error in zip(labels, comparison.prediction, strict=True):
        if error is not None:
            rows += _prediction_rows(escape(label), error)
    columns = ("run", "RMS mm", "max mm", "RMS deg", "max deg", "joints deg", "max deg")
    console.print(make_table(columns, rows))


def _prediction_rows(run: str, error: PredictionError) -> Iterator[tuple[str, ...]]:
    """Yield the row of the deviations, and of those that are left without a known delay."""
    deviations: dict[str, Deviations] = {run: error}
    if error["delay_s"] is not None:
        name = f"  after removing the delay ({milliseconds(error['delay_s'])} ms)"
        deviations[name] = error["delay_removed"]

    for name, deviation in deviations.items():
        position = deviation["position_m"]
        rotation = deviation["rotation_rad"]
        joints = deviation["joints_rad"]
        yield (
            name,
            millimetres(position["rms"]),
            millimetres(position["max"]),
            degrees(rotation["rms"]),
            degrees(rotation["max"]),
            degrees(joints["rms"]),
            degrees(joints["max"]),
        )
