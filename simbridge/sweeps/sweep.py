"""Makes a sweep: the points of a grid, with results, kept runs and a page in one directory."""

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
from simbridge.running.signals import describe_signal, end_on_signals, signal_number
from simbridge.sweeps.engine import Cluster, Cores, Engine, PointTask, make_points
from simbridge.sweeps.grid import Grid, Point
from simbridge.sweeps.identity import digest, made_by
from simbridge.sweeps.job import CannotTravel, forget_files, job_of
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

# The runs that a sweep keeps.
Keep = Literal["none", "extremes", "all"]
# Name of the directory in which a sweep keeps runs, in its own directory.
RUNS = "runs"
# Number of runs with the smallest error that "extremes" keeps, and of runs with the largest.
EXTREME_COUNT = 5


@dataclass
class Progress:
    """The progress of a sweep.

    Attributes:
        total: Number of points.
        known: Number of points that need not be made: an earlier call has made them, or they
            repeat another point.
        done: Number of points that this call has made.
        refused: Number of points that this call has made and that were refused.
        failed: Number of points that this call has made and that failed.
        begin: When the sweep began, s (monotonic clock).
        best: The smallest main figure so far, m, and its point; None before the first figure.
        last: The row that was added last; None before the first row, and while runs are kept.
        keeping: Number of runs that are still to be made again to be kept; None while points are
            made.
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
    def remaining(self) -> int:
        """Number of points that are still to be made."""
        return self.total - self.known - self.done

    @property
    def rate(self) -> float:
        """Number of points that this call makes per second."""
        # The lower bound only prevents a division by zero.
        duration = max(time.monotonic() - self.begin, 1e-9)
        return self.done / duration

    def count(self, point: Point, row: Row) -> None:
        """Count a point that was made.

        Args:
            point: The point.
            row: Row of the point in the results.
        """
        self.done += 1
        self.last = row
        if row["outcome"] == REFUSED:
            self.refused += 1
        if row["outcome"] == FAILED:
            self.failed += 1

        error = number(row, MAIN_FIGURE, number(row, PLANNED_FIGURE))
        if math.isnan(error):
            return
        if self.best is None or error < self.best[0]:
            self.best = (error, point)


@dataclass(frozen=True)
class Sweep:
    """A sweep that was made.

    Attributes:
        directory: Directory of the sweep, with sweep.toml, results.csv, sweep.html, and runs/.
        identities: Identities of the sweep's points, in the grid's order.
    """

    directory: Path
    identities: tuple[str, ...]

    def rows(self, *names: str) -> list[Row]:
        """Return the rows of the sweep's points.

        Args:
            names: Names of the columns; all columns by default.
        """
        return Results(self.directory / RESULTS).rows(names or None, self.identities)


def sweep(  # noqa: PLR0913 (a public call, by keyword)
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
    keep: Keep = "extremes",
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Run scenarios in simulation for many values of options and settings.

    Points that `out` already has are not run again: the same call resumes an interrupted sweep, and
    a call with other values adds its points to the sweep.

    Args:
        scenarios: Names of scenarios, scripts, or files.
        grid: Values by parameter: `{"solver.kp": [10, 20], "sample-noise": [(0, 0), (1, 0.1)]}`,
            in the units of flags.
        random: Ranges by parameter: `{"solver.kp": "1:100:log"}`.
        samples: Number of random draws.
        points: Listed points in place of a grid: values by parameter.
        seeds: Number of seeds of the targets' noise for each point.
        jobs: Number of processes on this computer; 0 for one for each core.
        cluster: Address of a Dask scheduler, whose workers run the points; None to run them here.
        out: Directory of the sweep; a new one under runs/ by default.
        plan_only: Whether points are only planned and checked, without a simulation.
        keep: Runs that are kept with their reports: the five with the smallest and the five with
            the largest error, all, or none.
        progress: Function that is called after each point.

    Raises:
        InvalidParameter, UnknownName, InputFileError: An argument is wrong; nothing was begun.
        SimbridgeError: The sweep cannot go on; points that were made are in results.csv.
    """
    if isinstance(scenarios, (str, os.PathLike)):
        scenarios = (scenarios,)
    parsed = Grid(
        scenarios=tuple(os.fspath(scenario) for scenario in scenarios),
        grid=grid or {},
        random=random or {},
        samples=samples,
        points=points,
        seeds=seeds,
        plan_only=plan_only,
    )
    return make(parsed, out=out, jobs=jobs, cluster=cluster, keep=keep, progress=progress)


@end_on_signals()
def make(
    grid: Grid,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 0,
    cluster: str | None = None,
    keep: Keep = "extremes",
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Make the points of a grid; see `sweep`.

    Args:
        grid: Grid with the points.
        out: Directory of the sweep; a new one under runs/ by default.
        jobs: Number of processes on this computer; 0 for one for each core.
        cluster: Address of a Dask scheduler; None to run the points here.
        keep: Runs that are kept with their reports.
        progress: Function that is called after each point.
    """
    forget_files()
    _check_values(grid)
    engine: Engine = Cores(jobs) if cluster is None else Cluster(cluster)
    directory = _open_directory(out)

    # If all runs are kept, the workers write them as they make them. Those of a cluster cannot
    # write into this directory: their runs are made again here.
    keeps_runs = keep != "none" and not grid.plan_only
    keeps_while_made = keeps_runs and keep == "all" and cluster is None

    with _lock_directory(directory):
        results = Results(directory / RESULTS)
        write_file(directory / GRID, grid.as_text().encode(), follow_links=False)
        results.begin(grid.parameters)
        making = _Making(grid, directory, results, Progress(grid.count), report=progress)

        try:
            making.make_missing(engine, keeps_runs=keeps_while_made)
            if keeps_runs:
                making.keep_runs(keep, jobs)
        except KeyboardInterrupt as error:
            raise making.describe_interruption(error) from None
        finally:
            results.close()

        results.write_parquet()
        write_page(directory)
    return Sweep(directory, making.identities)


@dataclass
class _Making:
    """A sweep while its points are made.

    Attributes:
        grid: Grid with the points.
        directory: Directory of the sweep.
        results: Rows of the sweep's points.
        state: Progress of the sweep.
        report: Function that is called with the progress after each point; None for none.
        points: The points that this call makes, by identity.
        order: Identities of all points so far, in the grid's order, repeated ones included.
    """

    grid: Grid
    directory: Path
    results: Results
    state: Progress
    report: Callable[[Progress], None] | None
    points: dict[str, Point] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    @property
    def identities(self) -> tuple[str, ...]:
        """Identities of the points, each once."""
        return tuple(dict.fromkeys(self.order))

    def make_missing(self, engine: Engine, *, keeps_runs: bool) -> None:
        """Make the points that have no row yet.

        Args:
            engine: Engine that makes the points.
            keeps_runs: Whether each point writes its run into the sweep's directory.
        """
        tasks = self._list_missing_tasks(keeps_runs=keeps_runs)
        made_points = make_points(tasks, engine, made_by(), count=self.grid.count)
        for identity, result, attempts in made_points:
            point = self.points[identity]
            row = self.results.add(identity, point, result, attempts=attempts, made_by=made_by())
            self.state.count(point, row)
            self._report()

    def _list_missing_tasks(self, *, keeps_runs: bool) -> Iterator[PointTask]:
        """Yield a task for each point of the grid that has no row yet."""
        for point in self.grid:
            task = _make_task(point, plan_only=self.grid.plan_only)
            self.order.append(task.identity)
            if self.results.reuse(task.identity, point) or task.identity in self.points:
                self.state.known += 1
                continue

            self.points[task.identity] = point
            out = self._run_directory(task.identity) if keeps_runs else None
            yield replace(task, out=out)

    def keep_runs(self, keep: Keep, jobs: int) -> None:
        """Keep runs with their reports, and store the directory of each run in its point's row.

        Runs that do not exist yet are made once more, on this computer; they are the same, bit for
        bit.

        Args:
            keep: "extremes" or "all".
            jobs: Number of processes on this computer; 0 for one for each core.
        """
        # The runs to keep. A point that was refused or has failed has no figure, and no run.
        columns = ("identity", MAIN_FIGURE)
        rows = self.results.rows(columns, self.identities)
        kept = [row for row in rows if not math.isnan(number(row, MAIN_FIGURE))]
        if keep == "extremes" and len(kept) > 2 * EXTREME_COUNT:
            kept.sort(key=lambda row: number(row, MAIN_FIGURE))
            kept = kept[:EXTREME_COUNT] + kept[-EXTREME_COUNT:]
        directories = {row["identity"]: self._run_directory(row["identity"]) for row in kept}

        # Make those that do not exist yet.
        tasks = []
        for identity, out in directories.items():
            if not (out / "summary.json").is_file():
                job = job_of(self.results.point(identity))
                tasks.append(PointTask(identity, job.order, job.contents, out))
        self.state.last = None
        self.state.keeping = len(tasks)
        for _ in make_points(tasks, Cores(jobs), made_by(), count=len(tasks)):
            self.state.keeping -= 1
            self._report()

        # Store the directories. A run that could not be made again has none.
        for identity, out in directories.items():
            relative = str(out.relative_to(self.directory)) if out.is_dir() else ""
            self.results.set_directory(identity, relative)

    def describe_interruption(self, error: KeyboardInterrupt) -> Interrupted:
        """Return the error that says how far the sweep came, and how it continues."""
        count = self.state.known + self.state.done
        message = (
            f"The sweep was {describe_signal(error)}: {count} of {self.state.total} points are in "
            f"{self.directory}. The same command with `--out {shell_quoted(self.directory)}` "
            "continues."
        )
        return Interrupted(message, signal_number(error))

    def _run_directory(self, identity: str) -> Path:
        """Return the directory in which the run of a point is kept."""
        return self.directory / RUNS / identity

    def _report(self) -> None:
        """Report the progress."""
        if self.report is not None:
            self.report(self.state)


def _open_directory(out: str | os.PathLike[str] | None) -> Path:
    """Return the directory of a sweep, and create it if it does not exist.

    Args:
        out: A new or empty directory, or that of a sweep; None for a new one under runs/.

    Raises:
        OutputError: The directory has other files in it, or cannot be created.
    """
    if out is None:
        return RunDirectory.create(None, "sweep").path

    path = Path(out)
    if path.exists() and not (path / GRID).is_file():
        entries = path.iterdir() if path.is_dir() else [path]
        # A killed call may have left its scratch directories.
        if any(not entry.name.startswith(".simbridge-") for entry in entries):
            raise OutputError(path, "it is not the directory of a sweep; choose another with --out")

    with writing(path, "; choose another with --out"):
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def _lock_directory(directory: Path) -> Iterator[None]:
    """Keep other sweeps from writing into a directory until the block ends.

    Raises:
        OutputError: Another sweep is writing into the directory.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another sweep is writing to it; wait for it, or stop it"
            raise OutputError(directory, reason) from None
        yield
    finally:
        os.close(descriptor)


def _make_task(point: Point, *, plan_only: bool) -> PointTask:
    """Return the task of a point; if its values do not go together, a task that is refused."""
    try:
        job = job_of(point, plan_only=plan_only)
    except CannotTravel:
        raise
    except SimbridgeError as error:
        identity = digest(made_by(), point.scenario, point.values, plan_only)
        return PointTask(identity, refused=str(error))
    return PointTask(job.identity, job.order, job.contents)


def _check_values(grid: Grid) -> None:
    """Refuse a grid with a scenario or a value that does not exist or cannot be read.

    Each scenario and value is tried by itself: it replaces that of the grid's first point. Values
    that do not go together make a refused point, not an error.
    """
    first = next(iter(grid))
    points = [replace(first, scenario=scenario) for scenario in grid.scenarios]
    for name, texts in grid.grid.items():
        points += [replace(first, values={**first.values, name: text}) for text in texts if text]
    points += [replace(first, values=values) for values in grid.points]

    for point in points:
        with contextlib.suppress(InvalidParameter, InvalidHome, UnstableSolver, NoClosedForm):
            job_of(point, plan_only=grid.plan_only)
