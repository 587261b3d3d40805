"""How fast a whole run is, and how long whole processes take from start to end."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from simbridge.backends.backend import ArmState
from simbridge.bench import Row
from simbridge.bench.bench import medians, process_time
from simbridge.recording.log import LogWriter
from simbridge.running.run_setup import prepare
from simbridge.running.runner import execute, open_backend
from simbridge.running.samples import Samples

_FIRST_STARTS = 3


def measure_run() -> list[Row]:
    """Simulated seconds per second of a run with its log, and what logging costs per sample."""
    prepared = prepare("square_tracking")
    plan = prepared.plan

    def streamed(record: Callable[[ArmState], None]) -> None:
        with open_backend(prepared) as arm:
            arm.move_to(plan.setpoints[0])
            for state in arm.stream(plan.setpoints):
                record(state)

    def logged() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path, samples = Path(directory) / "log.mcap", Samples(plan)
            with LogWriter(path, joint_names=prepared.robot.joint_names, period=plan.period) as log:
                streamed(lambda state: log.write(samples.of(state)))

    def reported() -> None:
        with tempfile.TemporaryDirectory() as directory:
            execute(prepared, out=Path(directory) / "run")

    with_log, without, whole = medians(logged, lambda: streamed(lambda state: None), reported)
    factor = f"{plan.duration / with_log:.0f} x real time"
    share = (with_log - without) / plan.samples
    return [
        ("the square, with its log", factor, "required", "20 x"),
        ("the same, no log", f"{plan.duration / without:.0f} x real time", "with its log", factor),
        ("the same, metrics, report", f"{whole:.2f} s", "simulated time", f"{plan.duration:.0f} s"),
        ("logging, one sample", f"{share * 1e6:.0f} us", "5 % of a 500 Hz period", "100 us"),
    ]


def measure_startup() -> list[Row]:
    """Whole processes: commands that only print, a plan check and a run with everything cached, and a first start."""
    with tempfile.TemporaryDirectory() as directory:
        counter = iter(range(1000))

        def simbridge(*arguments: str, cache: str | None = None) -> float:
            return process_time("-m", "simbridge", *arguments, cache=cache)

        empty, *printed, checked, ran = medians(
            lambda: process_time("-c", "pass"),
            lambda: simbridge("--help"),
            lambda: simbridge("robots"),
            lambda: simbridge("scenarios"),
            lambda: simbridge("check", "square_tracking"),
            lambda: simbridge("run", "square_tracking", "--out", f"{directory}/run{next(counter)}"),
        )
        first_starts = []
        for start in range(_FIRST_STARTS):
            first_starts.append(simbridge("check", "square_tracking", cache=f"{directory}/cache{start}"))
    commands = zip(("--help", "robots", "scenarios"), printed, strict=True)
    first = statistics.median(first_starts)
    return [
        ("an empty Python process", f"{empty:.2f} s", "simbridge --help", f"{printed[0]:.2f} s"),
        *((f"simbridge {name}", f"{taken:.2f} s", "required, at most", "0.30 s") for name, taken in commands),
        ("check square_tracking, compiled", f"{checked:.2f} s", "required, at most", "1.20 s"),
        ("check square_tracking, first time", f"{first:.2f} s", "required, at most", "15.00 s"),
        ("run square_tracking, compiled", f"{ran:.2f} s", "required, below", "4.00 s"),
    ]
