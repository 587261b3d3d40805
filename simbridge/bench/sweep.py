"""Sweeps: two cores beside one, many plans, what the engine costs, and the page of many rows."""

from __future__ import annotations

import importlib
import importlib.util
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simbridge.bench import Row
from simbridge.robot.output_file import write_file
from simbridge.sweeps.engine import Cluster, Cores, Engine, Task, results
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.page import write_page
from simbridge.sweeps.results import RESULTS
from simbridge.sweeps.sweep import sweep

_RUNS, _PLANS, _TASKS, _ROWS = 200, 10_000, 2_000, 100_000


def measure() -> list[Row]:
    """The figures of docs/sweeps.md."""
    gains = {"servo-gain": [500 + 5 * k for k in range(_RUNS)]}
    one, two = (_seconds("circle", grid=gains, keep="none", jobs=jobs) for jobs in (1, 2))
    kp, gain = [10 + 0.4 * k for k in range(100)], [500 + 10 * k for k in range(_PLANS // 100)]
    grid = {"period": [0.016], "solver.iterations": [10], "solver.kp": kp, "servo-gain": gain}
    before = _resident()
    planned = _seconds("circle", grid=grid, plan_only=True, jobs=2)
    grown = _resident() - before
    rows = [
        (f"sweep: {_RUNS} runs, two cores", f"{two:.0f} s", "one core", f"{one:.0f} s"),
        ("sweep: two cores are faster by", f"{one / two:.2f} x", "required", "1.85 x"),
        (f"sweep: {_PLANS} plans, two cores", f"{planned:.0f} s", "wanted", "60 s"),
        ("sweep: memory of these rows", f"{grown:.0f} MB", "rows", f"{_PLANS}"),
        ("sweep: engine, one point", f"{_overhead(Cores(2)):.2f} ms", "required, at most", "2 ms"),
    ]
    if importlib.util.find_spec("distributed") is not None:
        rows.append(("sweep: engine with Dask", f"{_with_dask():.2f} ms", "loky's bound", "2 ms"))
    return [*rows, (f"sweep: page of {_ROWS} rows", f"{_page():.1f} s", "required, at most", "5 s")]


def _seconds(scenario: str, **arguments: Any) -> float:
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        sweep(scenario, out=Path(directory, "sweep"), **arguments)
        return time.perf_counter() - begin


def _resident() -> float:
    """The most memory that this process has had, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _overhead(engine: Engine) -> float:
    """Time of a point that is none, ms: what remains is the engine's."""
    tasks: Sequence[Task] = [Task(f"{k}", b"") for k in range(_TASKS)]
    made = results(tasks, engine, made_by())
    next(made)
    begin = time.perf_counter()
    rest = sum(1 for _ in made)
    return 1e3 * (time.perf_counter() - begin) / rest


def _with_dask() -> float:
    distributed = importlib.import_module("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        return _overhead(Cluster(cluster.scheduler_address))


def _page() -> float:
    """From results.csv of many rows to its page."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "sweep")
        sweep("circle", grid={"solver.kp": [10, 20], "servo-gain": [500, 900]}, keep="none", jobs=2, out=place)
        header, *lines = (place / RESULTS).read_text().splitlines(keepends=True)
        many = [f"{k:016x}{lines[k % len(lines)][16:]}" for k in range(_ROWS)]
        write_file(place / RESULTS, (header + "".join(many)).encode())
        begin = time.perf_counter()
        write_page(place)
        return time.perf_counter() - begin
