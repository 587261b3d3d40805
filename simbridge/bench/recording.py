"""The cost of recording, and of reading, evaluating and plotting an hour of it, on a synthetic hour at 500 Hz.

The hour repeats one lap of the paper's square on the UR10e, tracked with lag and noise: such numbers hardly compress,
like those of a real arm. `python -m simbridge.bench.recording RUN` measures such a run in a separate process, whose
peak memory is that of the measurement alone.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.bench import Row
from simbridge.bench.bench import process_time
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.planning.plan import Plan
from simbridge.recording.log import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.page import report_page
from simbridge.running.run_setup import prepare, resolved_settings
from simbridge.running.runner import open_backend
from simbridge.running.samples import Samples
from simbridge.trajectory.trajectory import Trajectory

HOUR, SHORT = 3600.0, 16.0  # s
# How often each process is started.
PROCESSES = 5
# The servo's lag, and the noise of an arm's measurements.
LAG = 0.03  # s
POSITION_NOISE, VELOCITY_NOISE, EFFORT_NOISE = 2e-5, 1e-3, 0.5
# States per block: the memory of the benchmark itself is not to be measured.
BLOCK = 5000


def measure(seconds: float = HOUR) -> list[Row]:
    """The cost of recording a sample, and of storing, reading, evaluating and plotting an hour."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run"
        cost, grown, count = synthetic_run(path, seconds)
        size = (path / "log.mcap").stat().st_size / count
        found = subprocess.run(
            [sys.executable, "-m", "simbridge.bench.recording", str(path)], check=True, capture_output=True, text=True
        )
        times = json.loads(found.stdout)
        exported = process_time("-m", "simbridge", "export", str(path), "--to", "csv")
    hour = HOUR / seconds
    whole = times["read"] + times["summary"] + times["report"]
    return [
        ("recording, one sample", f"{1e6 * cost:.0f} us", "5 % of a 500 Hz period", "100 us"),
        ("recording, memory growth", f"{grown / 1e6:.0f} MB", "samples", f"{count}"),
        ("log, one sample", f"{size:.0f} bytes", "its numbers as float64", "405 bytes"),
        ("log, an hour at 500 Hz", f"{1e-6 * size * count * hour:.0f} MB", "required, below", "800 MB"),
        ("reading the log", f"{times['read']:.1f} s", "samples", f"{count}"),
        ("evaluating it", f"{times['summary']:.1f} s", "reading the log", f"{times['read']:.1f} s"),
        ("its report page", f"{times['report']:.1f} s", "reading the log", f"{times['read']:.1f} s"),
        ("log, summary and report", f"{whole:.1f} s", "required of an hour, below", "30 s"),
        ("simbridge export --to csv", f"{exported:.1f} s", "required of an hour, below", "30 s"),
        ("largest memory for a report", f"{times['memory'] / 1e9:.2f} GB", "required of an hour, below", "1 GB"),
    ]


def measure_pages() -> list[Row]:
    """Whole processes that write the pages and the table of 16 s of motion at 125 Hz, and their sizes."""
    with tempfile.TemporaryDirectory() as directory:
        runs = [str(Path(directory) / name) for name in ("one", "other")]
        for run in runs:
            synthetic_run(Path(run), SHORT, "ur10")
        compared = str(Path(directory) / "compared")
        required = {
            ("report", runs[0]): "3 s",
            ("compare", *runs, "--out", compared): "4 s",
            ("export", runs[0], "--to", "csv"): "1.5 s",
        }
        rows = []
        for words, most in required.items():
            taken = statistics.median(process_time("-m", "simbridge", *words) for _ in range(PROCESSES))
            rows.append((f"{words[0]}, {SHORT:g} s at 125 Hz", f"{taken:.2f} s", "required, below", most))
        pages = (Path(runs[0]) / "report.html", Path(runs[0]) / "replay.html", Path(compared) / "compare.html")
        sizes = [(page.name, f"{page.stat().st_size / 1e6:.2f} MB", "required, at most", "3 MB") for page in pages]
    return rows + sizes


def synthetic_run(path: Path, seconds: float, robot: str = "ur10e") -> tuple[float, int, int]:
    """Write the run directory of a synthetic run, without summary and report.

    Returns:
        Mean time to record a sample, s; growth of the process meanwhile, bytes; number of samples.
    """
    prepared = prepare("square_tracking", robot=robot)
    prepared = replace(prepared, plan=_laps(prepared.plan, seconds))
    plan = prepared.plan
    directory = RunDirectory.create(path, "")
    directory.write_settings(resolved_settings(prepared, open_backend(prepared)))
    directory.write_plan(plan.as_arrays())
    samples, spent = Samples(plan), 0.0
    # Not part of the recording: the plan computes the targets of all samples when the first is asked for.
    _ = plan.targets
    before = _memory()
    with LogWriter(
        directory.log_file, joint_names=prepared.robot.joint_names, period=plan.period, indexed=False
    ) as log:
        for states in _states(plan):
            begin = time.perf_counter()
            for state in states:
                log.write(samples.of(state))
            spent += time.perf_counter() - begin
    return spent / plan.samples, _memory() - before, plan.samples


def _laps(plan: Plan, seconds: float) -> Plan:
    """A plan repeated for this many seconds."""
    lap = plan.samples - 1
    count = round(seconds / plan.period)
    path = plan.trajectory
    laps = 1 + int(seconds / path.duration)
    stamps = np.concatenate([path.elapsed[:-1] + lap * path.duration for lap in range(laps)])
    poses = np.tile(path.poses[:-1], (laps, 1))
    rows = np.arange(count) % lap
    return replace(
        plan,
        trajectory=Trajectory(stamps, poses, path.source),
        trajectory_times=np.minimum(np.arange(count) * plan.period, stamps[-1]),
        solution=plan.solution[rows],
        setpoints=plan.setpoints[rows],
        limited=plan.limited[rows],
    )


def _states(plan: Plan) -> Iterator[list[ArmState]]:
    random = np.random.default_rng(0)
    lag = round(LAG / plan.period)
    for first in range(0, plan.samples, BLOCK):
        k = np.arange(first, min(first + BLOCK, plan.samples))
        shape = (len(k), plan.setpoints.shape[1])
        setpoints = plan.setpoints[k]
        # Between two setpoints: numbers that the log does not contain elsewhere.
        target = 0.37 * plan.setpoints[np.maximum(k - lag // 2, 0)] + 0.63 * plan.setpoints[np.maximum(k - lag, 0)]
        q = plan.setpoints[np.maximum(k - lag, 0)] + POSITION_NOISE * random.standard_normal(shape)
        qd = (target - plan.setpoints[np.maximum(k - lag // 2 - 1, 0)]) / plan.period
        qd += VELOCITY_NOISE * random.standard_normal(shape)
        effort = 20.0 + EFFORT_NOISE * random.standard_normal(shape)
        yield [
            ArmState(
                sequence=int(number),
                host_monotonic=time.monotonic(),
                timestamp=float(number * plan.period),
                plan_time=float(number * plan.period),
                q=q[i],
                qd=qd[i],
                effort=effort[i],
                controller_target=target[i],
                command=setpoints[i],
            )
            for i, number in enumerate(k)
        ]


def _memory() -> int:
    """Peak memory of this process, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _measured(path: str) -> dict[str, float]:
    directory = RunDirectory.open(path)
    times = [time.perf_counter()]
    evaluation = Evaluation.of(directory)
    times.append(time.perf_counter())
    summary = summarize(evaluation, "completed")
    times.append(time.perf_counter())
    report_page(evaluation, summary)
    times.append(time.perf_counter())
    read, summarised, reported = np.diff(times).tolist()
    return {"read": read, "summary": summarised, "report": reported, "memory": float(_memory())}


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1])))
