"""A sweep: the points of a grid, made on an engine; results, kept runs and a page in one directory."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from simbridge.errors import (
    Interrupted,
    InvalidHome,
    InvalidParameter,
    NoClosedForm,
    OutputError,
    SimbridgeError,
    UnstableSolver,
)
from simbridge.files.writing import write_file, writing
from simbridge.quoting import shell_quoted
from simbridge.recording.run_directory import RunDirectory
from simbridge.resources import AnyPath
from simbridge.running.signals import ended_by_signals, ended_words, number_of
from simbridge.sweeps.engine import Cluster, Cores, Engine, Task, results
from simbridge.sweeps.grid import Grid, Point, Range, text_of
from simbridge.sweeps.job import CannotTravel, digest, forget_files, job_of, made_by
from simbridge.sweeps.results import (
    FAILED,
    GRID,
    MAIN_FIGURE,
    PLANNED_FIGURE,
    REFUSED,
    RESULTS,
    Results,
    Row,
    number,
)
from simbridge.sweeps.sweep_page import write_page

Keep = Literal["none", "worst", "all"]
RUNS = "runs"
"""Where a sweep keeps runs, in its directory."""
WORST = 10
"""Runs that are kept unless others are asked for: those with the largest error."""


@dataclass
class Progress:
    """How far a sweep is.

    Attributes:
        total: Points in all.
        known: Those that an earlier call has made.
        done, refused, failed: Those made now.
        begin: When it began, on the monotonic clock, s.
        best: The smallest main figure so far, and its point.
        last: The row that was added last.
        keeping: Runs that are still made again to be kept; None before that.
    """

    total: int
    known: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    begin: float = field(default_factory=time.monotonic)
    best: tuple[float, Point] | None = None
    last: Row | None = None
    keeping: int | None = None

    @property
    def left(self) -> int:
        """Points that are still to be made."""
        return self.total - self.known - self.done

    @property
    def rate(self) -> float:
        """Points a second."""
        return self.done / max(time.monotonic() - self.begin, 1e-9)

    def count(self, point: Point, row: Row) -> None:
        """Another point was made."""
        self.done += 1
        self.last = row
        self.refused += row["outcome"] == REFUSED
        self.failed += row["outcome"] == FAILED
        value = number(row, MAIN_FIGURE, number(row, PLANNED_FIGURE))
        if not math.isnan(value) and (self.best is None or value < self.best[0]):
            self.best = value, point


@dataclass(frozen=True)
class Sweep:
    """A sweep that was made.

    Attributes:
        directory: Its files: sweep.toml, results.csv, sweep.html, and runs/.
        identities: Of its points, in the grid's order.
    """

    directory: Path
    identities: tuple[str, ...]

    def rows(self, *names: str) -> list[Row]:
        """The rows of its points, with these columns, or all."""
        return Results(self.directory / RESULTS).rows(names or None, self.identities)


def sweep(
    scenarios: AnyPath | Sequence[AnyPath],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    random: Mapping[str, str] | None = None,
    samples: int = 0,
    points: Sequence[Mapping[str, Any]] = (),
    seeds: int = 1,
    jobs: int = 0,
    cluster: str | None = None,
    out: str | os.PathLike[str] | None = None,
    plan_only: bool = False,
    keep: Keep = "worst",
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Run scenarios in simulation for many values of options and settings.

    Points that `out` already holds are not run again: the same call resumes an interrupted sweep, others add to it.

    Args:
        scenarios: Names, scripts, or files.
        grid: Values by parameter: `{"solver.kp": [10, 20], "sample-noise": [(0, 0), (1, 0.1)]}`, in the units of flags.
        random: Ranges by parameter: `{"solver.kp": "1:100:log"}`.
        samples: How many random draws.
        points: Listed points in place of a grid: values by parameter.
        seeds: Number of seeds of the targets' noise for each point.
        jobs: Processes on this computer; 0 for one for each core.
        cluster: Address of a Dask scheduler, whose workers run the points.
        out: The directory; a new one under runs/ by default.
        plan_only: Plan and check, without a simulation.
        keep: Which runs to keep with their report: the `WORST` ones, all, or none.
        progress: Called after each point.

    Raises:
        InvalidParameter, UnknownName, InputFileError: Nothing was begun.
        SimbridgeError: One of its subclasses; what was made is in results.csv.
    """
    names = (scenarios,) if isinstance(scenarios, (str, os.PathLike)) else scenarios
    made = Grid(
        tuple(os.fspath(name) for name in names),
        {name: tuple(map(text_of, values)) for name, values in (grid or {}).items()},
        {name: Range.of(name, text) for name, text in (random or {}).items()},
        samples,
        tuple({name: text_of(value) for name, value in point.items()} for point in points),
        seeds,
        plan_only,
    )
    return make(made, out=out, jobs=jobs, cluster=cluster, keep=keep, progress=progress)


@ended_by_signals()
def make(
    grid: Grid,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 0,
    cluster: str | None = None,
    keep: Keep = "worst",
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Make the points of a grid. See `sweep`."""
    forget_files()
    _check(grid)
    engine: Engine = Cores(jobs) if cluster is None else Cluster(cluster)
    directory = _directory(out)
    points, order, state = dict[str, Point](), list[str](), Progress(grid.count)
    keeps_all = keep == "all" and not grid.plan_only and cluster is None

    def missing() -> Iterator[Task]:
        for point in grid:
            task = _resolved(point, grid.plan_only)
            order.append(task.identity)
            if found.has(task.identity, point) or task.identity in points:
                state.known += 1
                continue
            points[task.identity] = point
            yield replace(task, out=directory / RUNS / task.identity if keeps_all else None)

    with _alone(directory):
        found = Results(directory / RESULTS)
        write_file(directory / GRID, grid.as_text().encode(), follow_links=False)
        found.begin(grid.parameters)
        try:
            for identity, result, attempts in results(missing(), engine, made_by()):
                row = found.add(identity, points[identity], result, attempts, made_by())
                state.count(points[identity], row)
                if progress is not None:
                    progress(state)
            if not grid.plan_only and keep != "none":
                rows = found.rows(("identity", MAIN_FIGURE), dict.fromkeys(order))
                completed = [row for row in rows if not math.isnan(number(row, MAIN_FIGURE))]
                worst = sorted(completed, key=lambda row: -number(row, MAIN_FIGURE))[:WORST]
                _keep(
                    completed if keep == "all" else worst, found, directory, jobs, state, progress
                )
        except KeyboardInterrupt as error:
            made = state.known + state.done
            words = f"The sweep was {ended_words(error)}: {made} of {state.total} points are in {directory}"
            words += f". The same command with `--out {shell_quoted(directory)}` continues."
            raise Interrupted(words, number_of(error)) from None
        finally:
            found.close()
        found.write_parquet()
        write_page(directory)
    return Sweep(directory, tuple(dict.fromkeys(order)))


def _directory(out: str | os.PathLike[str] | None) -> Path:
    if out is None:
        return RunDirectory.create(None, "sweep").path
    path = Path(out)
    if path.exists() and not (path / GRID).is_file():
        parts = path.iterdir() if path.is_dir() else [path]
        # Except what a killed call has left.
        if any(not part.name.startswith(".simbridge-") for part in parts):
            raise OutputError(path, "it is not a sweep's directory; choose another with --out")
    with writing(path, "; choose another with --out"):
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """No other sweep writes into this directory within the block."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                directory, "another sweep is writing into it; wait for it, or end it"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _resolved(point: Point, plan_only: bool) -> Task:
    """A point as a task; one whose values do not go together has nothing to be made, but a reason."""
    try:
        job = job_of(point, plan_only=plan_only)
    except CannotTravel:
        raise
    except SimbridgeError as error:
        return Task(
            digest(made_by(), point.scenario, point.values, plan_only), b"", refused=str(error)
        )
    return Task(job.identity, job.packed())


def _check(grid: Grid) -> None:
    """Every scenario, and every value in place of the first one of its parameter, exists and can be read.

    What does not fit together is a refused point, not an error.
    """
    first = next(iter(grid))
    others = [replace(first, scenario=scenario) for scenario in grid.scenarios]
    for name, texts in grid.grid.items():
        others += [replace(first, values={**first.values, name: text}) for text in texts if text]
    for point in (*others, *(replace(first, values=values) for values in grid.points)):
        with contextlib.suppress(InvalidParameter, InvalidHome, UnstableSolver, NoClosedForm):
            job_of(point, plan_only=grid.plan_only)


def _keep(
    rows: Sequence[Row],
    found: Results,
    directory: Path,
    jobs: int,
    state: Progress,
    progress: Callable[[Progress], None] | None,
) -> None:
    """Make runs once more, on this computer, with their reports: they are the same to the bit."""
    places = {row["identity"]: directory / RUNS / row["identity"] for row in rows}
    tasks = [
        Task(identity, job_of(found.point(identity)).packed(), out)
        for identity, out in places.items()
        if not (out / "summary.json").is_file()
    ]
    state.keeping, state.last = len(tasks), None
    for _ in results(tasks, Cores(jobs), made_by()):
        state.keeping -= 1
        if progress is not None:
            progress(state)
    for identity, out in places.items():
        found.kept(identity, str(out.relative_to(directory)) if out.is_dir() else "")
