"""The command `simbridge sweep`: makes the points of a grid, and shows the best and the worst."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from simbridge.backends import ENGINES, SIMULATION
from simbridge.cli.flags import SweepFlags
from simbridge.cli.terminal import NARROW_COLUMNS, say
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter
from simbridge.json_output import print_json_line
from simbridge.sweeps.grid import Grid, read_grid, read_points, split_assignments
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.results import (
    EXTRAPOLATED_GAIN,
    FAILED,
    FIXED,
    MAIN_FIGURE,
    NUMBERS_OF_A_ROW,
    OUTCOME,
    PLANNED_FIGURE,
    REFUSED,
    Row,
    describe_extrapolated_rows,
    is_figure,
    number,
    reasons,
)
from simbridge.sweeps.sweep import Progress, Sweep, make
from simbridge.text import counted, make_table, millimetres

# Best and worst points that are shown, and with --verbose.
SHOWN_POINTS = 3
VERBOSE_POINTS = 10
# Shortest time between two lines of progress where standard error is no terminal, s.
LINE_INTERVAL_S = 10.0


def sweep(flags: SweepFlags) -> int:
    """Make a sweep, and show its best and worst points.

    Returns:
        The exit status: 0, or 1 where points have failed.

    Raises:
        SimbridgeError: See `simbridge.sweeps.sweep.sweep`.
    """
    _check_computer(flags)
    grid = _choose_grid(flags)

    with _progress(as_json=flags.as_json) as update:
        finished = make(
            grid,
            out=flags.out,
            jobs=flags.jobs or 0,
            cluster=flags.cluster,
            keep=flags.keep,
            progress=update,
        )

    if flags.as_json:
        print_json_line({"directory": str(finished.directory), "points": len(finished.identities)})
    else:
        _show(finished, VERBOSE_POINTS if flags.verbose else SHOWN_POINTS)
    has_failures = any(row["outcome"] == FAILED for row in finished.rows("outcome"))
    return 1 if has_failures else 0


def _check_computer(flags: SweepFlags) -> None:
    """Refuse what no sweep runs on, and jobs that do not fit.

    Raises:
        InvalidParameter: It is not a physics engine, or the number of jobs does not fit.
    """
    if flags.backend not in ENGINES:
        needed = (
            f"{' or '.join(ENGINES)}: sweeps run only in simulation, because a person must watch "
            "every run on an arm"
        )
        raise InvalidParameter("backend", flags.backend, needed)

    if flags.jobs is not None and (flags.jobs < 1 or flags.cluster is not None):
        needed = "1 or more, and left out with --cluster"
        raise InvalidParameter("number of jobs", flags.jobs, needed)


def _choose_grid(flags: SweepFlags) -> Grid:
    """Return the grid of a TOML file, or the one that the flags describe.

    Raises:
        InvalidParameter, UnknownName, InputFileError: There is no such grid.
    """
    if len(flags.scenarios) == 1 and flags.scenarios[0].endswith(".toml"):
        file = flags.scenarios[0]
        _check_alone(flags, file)
        return read_grid(file)

    grid = {}
    for name, text in split_assignments(flags.grid, "grid").items():
        grid[name] = [value.strip() for value in text.split(",")]
    points = () if flags.points is None else read_points(flags.points)

    # An engine that is not the default one holds for all points that name none.
    if flags.backend != SIMULATION:
        points = tuple(
            {**point, "backend": point.get("backend") or flags.backend} for point in points
        )
        if not points:
            grid.setdefault("backend", [flags.backend])

    return Grid(
        scenarios=flags.scenarios,
        grid=grid,
        random=split_assignments(flags.random, "random"),
        samples=flags.samples,
        points=points,
        seeds=flags.seeds,
        plan_only=flags.plan_only,
    )


def _check_alone(flags: SweepFlags, file: str) -> None:
    """Refuse a grid's file together with flags that describe a grid.

    Raises:
        InvalidParameter: There are both.
    """
    describes_values = flags.grid or flags.random or flags.points or flags.samples
    describes_values = describes_values or flags.backend != SIMULATION
    if describes_values or flags.seeds != 1 or flags.plan_only:
        needed = "given alone: the file already defines the sweep"
        raise InvalidParameter("grid", file, needed)


@contextlib.contextmanager
def _progress(*, as_json: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield what is called after each point.

    It prints a line of JSON, moves the bar, or prints a line now and then where standard error is
    no terminal.
    """
    if as_json:
        yield _print_row
        return

    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield ProgressLines(console).update
        return

    columns = [TextColumn("{task.description}")]
    bars = [] if console.width < NARROW_COLUMNS else [BarColumn(bar_width=12)]
    counts = TextColumn("{task.fields[counts]}")
    with Bar(*columns, *bars, counts, console=console, transient=True) as bar:
        task = bar.add_task("Points", total=None, counts="starting")

        def update(state: Progress) -> None:
            if state.keeping is not None:
                bar.update(
                    task,
                    description="Reports",
                    completed=0,
                    total=None,
                    counts=f"{state.keeping} left",
                )
            else:
                completed = state.known + state.done
                bar.update(task, completed=completed, total=state.total, counts=_counts(state))

        yield update


class ProgressLines:
    """The progress of a sweep in a file or a pipe: a line every `LINE_INTERVAL_S` seconds.

    Args:
        console: A console on standard error.
        clock: Returns the time, s (monotonic).
    """

    def __init__(self, console: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        # When the last line was printed, s; in the beginning, when the sweep began.
        self._last_line = clock()

    def update(self, state: Progress) -> None:
        """Print a line if the last one is old enough."""
        now = self._clock()
        if now - self._last_line < LINE_INTERVAL_S:
            return
        self._last_line = now

        text = f"Points  {_counts(state)}"
        if state.keeping is not None:
            text = f"Reports  {state.keeping} left"
        self._console.print(text, soft_wrap=True, markup=False)


def _print_row(state: Progress) -> None:
    """Print the last row as a line of JSON, in which figures and parameters are numbers."""
    if not state.last:
        return
    facts: dict[str, Any] = {}
    for name, text in state.last.items():
        # `print_json_line` adds the version of the schema.
        if not text or name == "schema_version":
            continue
        value = number(state.last, name)
        is_text = name in FIXED and name not in NUMBERS_OF_A_ROW
        facts[name] = text if is_text or math.isnan(value) else value
    print_json_line(facts)


def _counts(state: Progress) -> str:
    """Say how many points are made, refused and failed, the time that remains, and the best."""
    parts = [f"{state.known + state.done}/{state.total}"]
    if state.refused:
        parts.append(f"{state.refused} {REFUSED}")
    if state.failed:
        parts.append(f"{state.failed} {FAILED}")

    rate = state.rate
    parts.append(f"{rate:.1f}/s")
    parts.append(f"{state.remaining / max(rate, 1e-9):.0f} s left")

    if state.best is not None:
        error, _ = state.best
        parts.append(f"best {millimetres(error)} mm")
    return "  ".join(parts)


def _show(finished: Sweep, shown_points: int) -> None:
    """Show how many points there are, the best and the worst, and why some have no figures.

    Args:
        finished: The sweep.
        shown_points: How many of the best, and of the worst.
    """
    console = Terminal()
    figures = (MAIN_FIGURE, PLANNED_FIGURE, EXTRAPOLATED_GAIN)
    rows = finished.rows("scenario", *parameters(), *OUTCOME, *figures)

    # The tracking error, or that of the solver where nothing was simulated.
    figure = PLANNED_FIGURE
    title = "solver's error"
    if any(_has_figure(row, MAIN_FIGURE) for row in rows):
        figure = MAIN_FIGURE
        title = "tracking error"
    ranked = [row for row in rows if _has_figure(row, figure)]
    ranked.sort(key=lambda row: number(row, figure))

    point_count = f"[bold]{counted(len(rows), 'point')}[/bold]"
    if not ranked:
        console.print(f"{point_count}, none of which could be evaluated.")
    else:
        console.print(f"{point_count}, by the RMS of the {title}:\n")
        varied = _varied_columns(rows)
        lines = _ranked_lines(ranked, varied, figure, shown_points)
        console.print(make_table((*varied, "mm"), lines))
        extrapolation = describe_extrapolated_rows(ranked)
        if extrapolation:
            say(console, extrapolation)

    for outcome in (REFUSED, FAILED):
        for sentence in reasons(rows, outcome):
            console.print(sentence, soft_wrap=True, markup=False)
    console.print(f"Page: {finished.directory / 'sweep.html'}", soft_wrap=True, markup=False)
    console.print(f"Rows: {finished.directory / 'results.csv'}", soft_wrap=True, markup=False)


def _has_figure(row: Row, figure: str) -> bool:
    return not math.isnan(number(row, figure))


def _varied_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of scenario and parameters that differ between rows."""
    varied = []
    for name in rows[0]:
        is_parameter = name not in FIXED and not is_figure(name)
        if is_parameter and len({row.get(name, "") for row in rows}) > 1:
            varied.append(name)
    if len({row["scenario"] for row in rows}) > 1:
        varied.insert(0, "scenario")
    return varied


def _ranked_lines(
    ranked: Sequence[Row], varied: Sequence[str], figure: str, shown_points: int
) -> list[tuple[str, ...]]:
    """Return the best and the worst points as cells, with dots where points are left out.

    Args:
        ranked: The rows, the smallest figure first.
        varied: The columns that are shown besides the figure.
        figure: The column of the figure, m.
        shown_points: How many of the best, and of the worst.
    """
    best = ranked[:shown_points]
    worst = ranked[shown_points:][-shown_points:]
    lines = []
    for row in (*best, *worst):
        cells = [escape(row.get(name, "")) or "–" for name in varied]
        lines.append((*cells, millimetres(number(row, figure))))

    if len(ranked) > 2 * shown_points:
        dots = ("...", *[""] * len(varied))
        lines.insert(shown_points, dots)
    return lines
