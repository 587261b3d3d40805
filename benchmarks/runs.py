"""Speed of whole runs, recordings of an hour, and pages.

The hour repeats one lap of the paper's square on the UR10e, tracked with lag and noise: such
numbers hardly compress, like those of a real arm. `python -m benchmarks.runs RUN` measures such a
run in a separate process, whose peak memory is that of the measurement alone.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.measuring import medians, peak_memory, process_time
from simbridge.backends.backend import ArmState
from simbridge.bench import Row
from simbridge.bench.measuring import client
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.lifeline import end_with_parent
from simbridge.planning.plan import Plan
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.run_page import report_page
from simbridge.running.run_recording import record_run
from simbridge.running.run_samples import PlanSamples
from simbridge.running.run_setup import prepare
from simbridge.running.runner import execute, open_backend
from simbridge.trajectory.trajectory import Trajectory

# Durations of synthetic runs, s.
HOUR = 3600.0
SHORT = 16.0
# How often each process is started.
STARTS = 5

# The servo's lag, s, and the noise of an arm's measurements, rad, rad/s and N m.
LAG = 0.03
POSITION_NOISE = 2e-5
VELOCITY_NOISE = 1e-3
EFFORT_NOISE = 0.5
# States per block: the memory of the benchmark itself is not to be measured.
BLOCK_STATES = 5000


def measure_run() -> list[Row]:
    """Measure simulated seconds per second of a run with its log, and the cost of logging."""
    prepared = prepare("square_tracking")
    plan = prepared.plan

    def streamed(record: Callable[[ArmState], None]) -> None:
        with open_backend(prepared) as arm:
            arm.move_to(plan.setpoints[0])
            for state in arm.stream(plan.setpoints):
                record(state)

    def logged() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "log.mcap"
            samples = PlanSamples(plan)
            with LogWriter(path, joint_names=prepared.robot.joint_names, period=plan.period) as log:
                streamed(lambda state: log.write(samples.of(state)))

    def reported() -> None:
        with tempfile.TemporaryDirectory() as directory:
            execute(prepared, out=Path(directory) / "run")

    with_log, without, whole = medians(logged, lambda: streamed(lambda state: None), reported)
    factor = f"{plan.duration / with_log:.0f} x real time"
    logging_time = (with_log - without) / plan.samples
    return [
        ("the square, with its log", factor, "required", "20 x"),
        ("the same, no log", f"{plan.duration / without:.0f} x real time", "with its log", factor),
        ("the same, metrics, report", f"{whole:.2f} s", "simulated time", f"{plan.duration:.0f} s"),
        ("logging, one sample", f"{logging_time * 1e6:.0f} us", "5 % of a 500 Hz period", "100 us"),
    ]


def measure_recording(seconds: float = HOUR) -> list[Row]:
    """Measure recording a sample, and storing, reading, evaluating and plotting an hour."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run"
        cost, grown, count = synthetic_run(path, seconds)
        size = (path / "log.mcap").stat().st_size / count
        with client("benchmarks.runs", path) as measured:
            times = json.loads(measured.communicate()[0])
        exported = process_time("-m", "simbridge", "export", str(path), "--to", "csv")
    hour = HOUR / seconds
    whole = times["read"] + times["summary"] + times["report"]
    return [
        ("recording, one sample", f"{1e6 * cost:.0f} us", "5 % of a 500 Hz period", "100 us"),
        ("recording, memory growth", f"{grown / 1e6:.0f} MB", "samples", f"{count}"),
        ("log, one sample", f"{size:.0f} bytes", "its numbers as float64", "405 bytes"),
        (
            "log, an hour at 500 Hz",
            f"{1e-6 * size * count * hour:.0f} MB",
            "required, below",
            "800 MB",
        ),
        ("reading the log", f"{times['read']:.1f} s", "samples", f"{count}"),
        ("evaluating it", f"{times['summary']:.1f} s", "reading the log", f"{times['read']:.1f} s"),
        (
            "its report page",
            f"{times['report']:.1f} s",
            "reading the log",
            f"{times['read']:.1f} s",
        ),
        ("log, summary and report", f"{whole:.1f} s", "required of an hour, below", "30 s"),
        ("simbridge export --to csv", f"{exported:.1f} s", "required of an hour, below", "30 s"),
        (
            "largest memory for a report",
            f"{times['memory'] / 1e9:.2f} GB",
            "required of an hour, below",
            "1 GB",
        ),
    ]


def measure_pages() -> list[Row]:
    """Measure processes that write the pages and the table of 16 s at 125 Hz, and their sizes."""
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
            taken = statistics.median(
                process_time("-m", "simbridge", *words) for _ in range(STARTS)
            )
            rows.append(
                (f"{words[0]}, {SHORT:g} s at 125 Hz", f"{taken:.2f} s", "required, below", most)
            )
        pages = (
            Path(runs[0]) / "report.html",
            Path(runs[0]) / "replay.html",
            Path(compared) / "compare.html",
        )
        sizes = [
            (page.name, f"{page.stat().st_size / 1e6:.2f} MB", "required, at most", "3 MB")
            for page in pages
        ]
    return rows + sizes


def synthetic_run(path: Path, seconds: float, robot: str = "ur10e") -> tuple[float, int, int]:
    """Write the run directory of a synthetic run, without summary and report.

    Args:
        path: The directory to create.
        seconds: Duration of the run, s.
        robot: Its arm.

    Returns:
        Mean time to record a sample, s; growth of the process meanwhile, bytes; number of samples.
    """
    prepared = prepare("square_tracking", robot=robot)
    prepared = replace(prepared, plan=_laps(prepared.plan, seconds))
    plan = prepared.plan
    directory = RunDirectory.create(path, "")
    directory.write_settings(record_run(prepared))
    directory.write_plan(plan.as_arrays())
    samples = PlanSamples(plan)
    recording_time = 0.0
    # Not part of the recording: the plan computes the targets of all samples when the first is
    # asked for.
    _ = plan.targets
    before = peak_memory()
    with LogWriter(
        directory.log_file,
        joint_names=prepared.robot.joint_names,
        period=plan.period,
        indexed=False,
    ) as log:
        for states in _states(plan):
            begin = time.perf_counter()
            for state in states:
                log.write(samples.of(state))
            recording_time += time.perf_counter() - begin
    return recording_time / plan.samples, peak_memory() - before, plan.samples


def _laps(plan: Plan, seconds: float) -> Plan:
    """Repeat the plan of a lap for so many seconds."""
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
    """Yield the states of an arm that tracks a plan with lag and noise, block by block."""
    random = np.random.default_rng(0)
    lag = round(LAG / plan.period)
    for first in range(0, plan.samples, BLOCK_STATES):
        k = np.arange(first, min(first + BLOCK_STATES, plan.samples))
        shape = (len(k), plan.setpoints.shape[1])
        setpoints = plan.setpoints[k]
        # Between two setpoints: numbers that the log does not contain elsewhere.
        target = (
            0.37 * plan.setpoints[np.maximum(k - lag // 2, 0)]
            + 0.63 * plan.setpoints[np.maximum(k - lag, 0)]
        )
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


def _measure_report(path: str) -> dict[str, float]:
    """Measure reading a log, evaluating it and making its page, s, and the memory, bytes."""
    directory = RunDirectory.open(path)
    times = [time.perf_counter()]
    evaluation = Evaluation.of(directory)
    times.append(time.perf_counter())
    summary = summarize(evaluation, "completed")
    times.append(time.perf_counter())
    report_page(evaluation, summary)
    times.append(time.perf_counter())
    read, summarised, reported = np.diff(times).tolist()
    return {"read": read, "summary": summarised, "report": reported, "memory": float(peak_memory())}


if __name__ == "__main__":
    end_with_parent()
    print(json.dumps(_measure_report(sys.argv[1])))
