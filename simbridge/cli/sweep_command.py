"""`simbridge sweep`: makes the points of a grid, with a line of progress, and shows the best and the worst."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from simbridge.backends import SIMULATION
from simbridge.console import Terminal
from simbridge.errors import InvalidParameter
from simbridge.sweeps.grid import Grid, Range, listed_values, read_grid, read_points
from simbridge.sweeps.parameters import parameters
from simbridge.sweeps.results import (
    FAILED,
    FIXED,
    MAIN_FIGURE,
    OUTCOME,
    PLANNED_FIGURE,
    REFUSED,
    Row,
    is_figure,
    number,
    reasons,
)
from simbridge.sweeps.sweep import Keep, Progress, Sweep, make
from simbridge.text import counted, millimetres, table_of

# Best and worst points that are shown, and columns of a terminal that are too few for a bar.
_SHOWN, _NARROW = 5, 72


def sweep(
    scenarios: Sequence[str],
    *,
    grid: Sequence[str],
    random: Sequence[str],
    samples: int,
    points: str | None,
    seeds: int,
    jobs: int | None,
    cluster: str | None,
    out: str | None,
    plan_only: bool,
    keep: Keep,
    backend: str,
    as_json: bool,
) -> int:
    """Make a sweep; returns the exit status: 0, or 1 where points have failed. The arguments are the command's flags.

    Raises:
        SimbridgeError: See `simbridge.sweeps.sweep.sweep`.
    """
    if backend != SIMULATION:
        needed = f"{SIMULATION}: a sweep runs in simulation only, because a person must watch every run on an arm"
        raise InvalidParameter("backend", backend, needed)
    if jobs is not None and (jobs < 1 or cluster is not None):
        raise InvalidParameter("number of jobs", jobs, "1 or more, and left out with --cluster")
    if len(scenarios) == 1 and scenarios[0].endswith(".toml"):
        if grid or random or points or samples or seeds != 1 or plan_only:
            raise InvalidParameter(
                "grid", scenarios[0], "given alone: the file already says what is swept"
            )
        chosen = read_grid(scenarios[0])
    else:
        chosen = Grid(
            tuple(scenarios),
            {
                name: tuple(map(str.strip, text.split(",")))
                for name, text in listed_values(grid, "grid").items()
            },
            {name: Range.of(name, text) for name, text in listed_values(random, "random").items()},
            samples,
            () if points is None else read_points(points),
            seeds,
            plan_only,
        )
    with _progress(as_json) as update:
        made = make(chosen, out=out, jobs=jobs or 0, cluster=cluster, keep=keep, progress=update)
    if as_json:
        print(json.dumps({"directory": str(made.directory), "points": len(made.identities)}))
    else:
        show(made)
    return 1 if any(row["outcome"] == FAILED for row in made.rows("outcome")) else 0


@contextlib.contextmanager
def _progress(as_json: bool) -> Iterator[Callable[[Progress], None] | None]:
    """What is called after each point: it prints a line of JSON, moves the bar, or does nothing without a terminal."""
    console = Terminal(stderr=True)
    if as_json:
        yield (
            lambda state: print(json.dumps(_plain(state.last)), flush=True) if state.last else None
        )
        return
    if not console.is_terminal:
        yield None
        return
    bars = [] if console.width < _NARROW else [BarColumn(bar_width=12)]
    words = TextColumn("{task.fields[words]}")
    with Bar(
        TextColumn("{task.description}"), *bars, words, console=console, transient=True
    ) as bar:
        task = bar.add_task("Points", total=None, words="starting")

        def update(state: Progress) -> None:
            if state.keeping is not None:
                bar.update(
                    task,
                    description="Reports",
                    completed=0,
                    total=None,
                    words=f"{state.keeping} left",
                )
                return
            bar.update(
                task, completed=state.known + state.done, total=state.total, words=_words(state)
            )

        yield update


def _words(state: Progress) -> str:
    parts = [f"{state.known + state.done}/{state.total}"]
    parts += [
        f"{count} {what}"
        for count, what in ((state.refused, REFUSED), (state.failed, FAILED))
        if count
    ]
    parts += [f"{state.rate:.1f}/s", f"{state.left / max(state.rate, 1e-9):.0f} s left"]
    if state.best is not None:
        parts.append(f"best {millimetres(state.best[0])} mm")
    return "  ".join(parts)


def _plain(row: Row) -> dict[str, Any]:
    """A row for JSON: figures and parameters are numbers where they are."""
    return {
        name: text if name in FIXED or math.isnan(number(row, name)) else number(row, name)
        for name, text in row.items()
        if text
    }


def show(made: Sweep) -> None:
    """Show how many points there are, the best and the worst of them, and why others have no figures."""
    console = Terminal()
    rows = made.rows("scenario", *parameters(), *OUTCOME, MAIN_FIGURE, PLANNED_FIGURE)
    name = (
        MAIN_FIGURE
        if any(not math.isnan(number(row, MAIN_FIGURE)) for row in rows)
        else PLANNED_FIGURE
    )
    ranked = sorted(
        (row for row in rows if not math.isnan(number(row, name))),
        key=lambda row: number(row, name),
    )
    varied = [
        key
        for key in rows[0]
        if key not in FIXED and not is_figure(key) and len({r.get(key, "") for r in rows}) > 1
    ]
    if len({row["scenario"] for row in rows}) > 1:
        varied.insert(0, "scenario")
    error = "tracking error" if name == MAIN_FIGURE else "solver's error"
    console.print(f"[bold]{counted(len(rows), 'point')}[/bold], by the RMS of the {error}:\n")
    best, worst = ranked[:_SHOWN], ranked[_SHOWN:][-_SHOWN:]
    lines = [
        (*(escape(row.get(key, "")) or "–" for key in varied), millimetres(number(row, name)))
        for row in (*best, *worst)
    ]
    if len(ranked) > 2 * _SHOWN:
        lines.insert(_SHOWN, ("...", *[""] * len(varied)))
    if lines:
        console.print(table_of((*varied, "mm"), lines))
    for outcome in (REFUSED, FAILED):
        for sentence in reasons(rows, outcome):
            console.print(sentence, soft_wrap=True, markup=False)
    console.print(f"Page: {made.directory / 'sweep.html'}", soft_wrap=True, markup=False)
    console.print(f"Rows: {made.directory / 'results.csv'}", soft_wrap=True, markup=False)
