"""Speed of sweeps: runs, plans, the process that collects their rows, and the page.

How many cores the collecting process can feed is measured with workers that sleep in place of
computing. They are processes of loky, like those of a sweep, and answer with the result of a real
plan; everything in the collecting process is that of a sweep. The other end of the pipes is on the
same computer, so the rates are what a computer with more cores reaches at least.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from loky import ProcessPoolExecutor

from benchmarks import sleeping
from benchmarks.measuring import peak_memory, wall_time
from simbridge.bench import Row
from simbridge.bench.measuring import client
from simbridge.files.writing import write_file
from simbridge.lifeline import end_with_parent
from simbridge.sweeps import sweep as sweep_module
from simbridge.sweeps.engine import Cluster, Cores, Engine, PointTask, make_points
from simbridge.sweeps.grid import Grid
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.job import job_of
from simbridge.sweeps.results import RESULTS, Result
from simbridge.sweeps.sweep import sweep
from simbridge.sweeps.sweep_page import write_page
from simbridge.sweeps.worker import WorkItem, work

# Sizes of sweeps: runs, plans, tasks of the engine, and rows of a page.
SWEPT_RUNS = 200
SWEPT_PLANS = 10_000
ENGINE_TASKS = 2_000
PAGE_ROWS = 100_000

# Numbers of workers that sleep, and how long they sleep for each point, s.
SLEEPERS = (16, 64)
SLEEPS_S = (0.03, 0.003)
# How long each of them sleeps before the sweep, s, so that all have started.
START_S = 1.0
# Points at the beginning and the end whose rates are compared.
COMPARED_POINTS = 1000

# A plan of 17 s at 62.5 Hz, for 100 stiffnesses of the solver and 100 gains of the servo.
PLANS: dict[str, list[Any]] = {
    "period": [0.016],
    "solver.iterations": [10],
    "solver.kp": [10 + 0.4 * k for k in range(100)],
    "servo-gain": [500 + 10 * k for k in range(SWEPT_PLANS // 100)],
}


def measure() -> list[Row]:
    """Measure the figures of docs/sweeps.md."""
    gains = {"servo-gain": [500 + 5 * k for k in range(SWEPT_RUNS)]}
    one = _sweep_time("circle", grid=gains, keep="none", jobs=1)
    two = _sweep_time("circle", grid=gains, keep="none", jobs=2)
    before = peak_memory()
    planned = _sweep_time("circle", grid=PLANS, plan_only=True, jobs=2)
    grown = 1e-6 * (peak_memory() - before)
    rows = [
        (f"sweep: {SWEPT_RUNS} runs, two cores", f"{two:.0f} s", "one core", f"{one:.0f} s"),
        ("sweep: two cores are faster by", f"{one / two:.2f} x", "required", "1.85 x"),
        (f"sweep: {SWEPT_PLANS} plans, two cores", f"{planned:.0f} s", "wanted", "60 s"),
        ("sweep: memory of these rows", f"{grown:.0f} MB", "rows", f"{SWEPT_PLANS}"),
        ("sweep: engine, one point", f"{_overhead(Cores(2)):.2f} ms", "required, at most", "2 ms"),
    ]
    if importlib.util.find_spec("distributed") is not None:
        rows.append(("sweep: engine with Dask", f"{_with_dask():.2f} ms", "loky's bound", "2 ms"))
    rows += measure_collecting()
    return [
        *rows,
        (f"sweep: page of {PAGE_ROWS} rows", f"{_page():.1f} s", "required, at most", "5 s"),
    ]


def measure_collecting() -> list[Row]:
    """Measure how many points a second one process hands out and collects, each in a new one."""
    rows = []
    for workers in SLEEPERS:
        for sleep in SLEEPS_S:
            with client("benchmarks.sweeps", str(workers), str(sleep)) as measured:
                rates = json.loads(measured.communicate()[0])
            ideal = workers / sleep
            name = f"sweep: {workers} workers, {1e3 * sleep:g} ms a point"
            rows += [
                (name, _per_second(rates["all"]), "workers alone", _per_second(ideal)),
                (
                    f"{name}: first {COMPARED_POINTS}",
                    _per_second(rates["first"]),
                    f"last {COMPARED_POINTS}",
                    _per_second(rates["last"]),
                ),
                (
                    f"{name}: collecting one",
                    f"{rates['all_cpu_ms']:.2f} ms",
                    "required, at most",
                    "0.50 ms",
                ),
            ]
    return rows


def _per_second(rate: float) -> str:
    return f"{rate:.0f} points/s"


class SleepingPool(Executor):
    """Processes that sleep in place of making points.

    Args:
        workers: Number of processes.
        result: The result of every point.
        duration: How long a point takes, s.
    """

    def __init__(self, workers: int, result: Result, duration: float) -> None:
        self._pool = ProcessPoolExecutor(
            workers,
            timeout=None,
            initializer=sleeping.prepare,
            initargs=(pickle.dumps(replace(result, wall=duration)), duration),
        )
        # All of them run before anything is measured.
        list(self._pool.map(time.sleep, [START_S] * workers))

    def submit(self, call: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Submit a task of `work`, whose points a process sleeps for."""
        items, contents, _ = arguments
        needed = {key for item in items for key in item.shared}
        task = pickle.dumps(arguments)
        return self._pool.submit(
            sleeping.sleep_for, task, len(items), sorted(needed), sorted(contents)
        )

    def end(self) -> None:
        """End the processes, also those that sleep."""
        self._pool.shutdown(wait=True, kill_workers=True)


class SleepingCores(Cores):
    """Workers that sleep, in place of those of a sweep; see `SleepingPool`."""

    def __init__(self, workers: int, result: Result, duration: float) -> None:
        super().__init__(workers)
        self._pool = SleepingPool(workers, result, duration)

    def open(self) -> Executor:
        return self._pool

    def close(self, running: Iterable[Future[Any]] = ()) -> None:
        self._pool.end()
        super().close(running)


def _collect_sleeping(workers: int, duration: float) -> dict[str, float]:
    """Make plans with workers that sleep.

    Args:
        workers: Number of workers.
        duration: How long they sleep for each point, s.

    Returns:
        Points a second of all, the first and the last COMPARED_POINTS; and under the same names
        with "_cpu_ms" the CPU time of this process for one of them, ms.
    """
    grid = Grid(("circle",), PLANS, plan_only=True)
    job = job_of(next(iter(grid)), plan_only=True)
    results = work([WorkItem(job.order, tuple(job.contents))], job.contents, made_by())
    assert results is not None
    cores = SleepingCores(workers, results[0], duration)

    # When the sweep began, and when each row was written: wall time and CPU time, s.
    stamps: list[tuple[float, float]] = []

    def note(_: object = None) -> None:
        stamps.append((time.perf_counter(), time.process_time()))

    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.object(sweep_module, "Cores", lambda jobs: cores),
        mock.patch.object(sweep_module, "write_page"),
    ):
        note()
        sweep_module.make(grid, out=Path(directory, "sweep"), progress=note)

    rates = {}
    ends = {
        "all": (0, len(stamps) - 1),
        "first": (1, 1 + COMPARED_POINTS),
        "last": (-1 - COMPARED_POINTS, -1),
    }
    for name, (begin, end) in ends.items():
        count = (end - begin) % len(stamps)
        wall, cpu = np.subtract(stamps[end], stamps[begin])
        rates[name] = count / wall
        rates[f"{name}_cpu_ms"] = 1e3 * cpu / count
    return rates


def _sweep_time(scenario: str, **arguments: Any) -> float:
    """Return the wall time of a sweep, s."""
    with tempfile.TemporaryDirectory() as directory:
        return wall_time(lambda: sweep(scenario, out=Path(directory, "sweep"), **arguments))


def _overhead(engine: Engine) -> float:
    """Return the time of a point that does nothing, ms: it is the engine's."""
    tasks = [PointTask(f"{k}") for k in range(ENGINE_TASKS)]
    points = make_points(tasks, engine, made_by(), count=ENGINE_TASKS)
    next(points)
    begin = time.perf_counter()
    rest = sum(1 for _ in points)
    return 1e3 * (time.perf_counter() - begin) / rest


def _with_dask() -> float:
    """Return the same with workers of Dask, ms."""
    distributed = importlib.import_module("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        return _overhead(Cluster(cluster.scheduler_address))


def _page() -> float:
    """Return the time from results.csv of many rows to its page, s."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "sweep")
        sweep(
            "circle",
            grid={"solver.kp": [10, 20], "servo-gain": [500, 900]},
            keep="none",
            jobs=2,
            out=out,
        )
        header, *lines = (out / RESULTS).read_text().splitlines(keepends=True)
        many = [f"{k:016x}{lines[k % len(lines)][16:]}" for k in range(PAGE_ROWS)]
        write_file(out / RESULTS, (header + "".join(many)).encode())
        return wall_time(lambda: write_page(out))


if __name__ == "__main__":
    end_with_parent()
    print(json.dumps(_collect_sleeping(int(sys.argv[1]), float(sys.argv[2]))))
