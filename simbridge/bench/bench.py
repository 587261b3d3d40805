"""How fast it is, each figure beside what it is compared to, measured in one run.

Machines differ and share their cores: medians are quoted, and rivals are timed in turn with what they are compared to.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from simbridge.bench.medians import medians

# These take minutes, and so are only measured when asked for.
_MINUTES = ("servo", "emulator", "recording")


class _Results:
    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.table = Table(box=None, pad_edge=False)
        for name in ("figure", "median", "compared to", "its value"):
            self.table.add_column(name, justify="right" if name in {"median", "its value"} else "left")

    def add(self, figure: str, value: str, rival: str, rival_value: str) -> None:
        self.table.add_row(figure, value, rival, rival_value)
        self.rows.append({"figure": figure, "median": value, "compared_to": rival, "its_value": rival_value})


def bench(what: str, *, as_json: bool = False) -> int:
    """Measure "all" (but for servo, emulator and recording, which take minutes), or one part, and print a table."""
    results = _Results()
    console = Console(highlight=False, stderr=as_json)
    parts: dict[str, Callable[[_Results], None]] = {
        "solvers": _solvers,
        "run": _run,
        "startup": _startup,
        "servo": _servo,
        "emulator": _emulator,
        "recording": _recording,
    }
    for name, part in parts.items():
        if what == name or (what == "all" and name not in _MINUTES):
            with console.status(f"Measuring {name} ..."):
                part(results)
    if as_json:
        print(json.dumps(results.rows, indent=2))
    else:
        console.print(results.table)
    return 0


def _solvers(results: _Results) -> None:
    """The solvers, compiled, beside what they replace."""
    from simbridge.bench.solvers import measure

    for row in measure():
        results.add(*row)


def _run(results: _Results) -> None:
    """Simulated seconds per wall second of a whole run with logging, and how much of a period its parts take."""
    from simbridge.recording.log import LogWriter
    from simbridge.running.runner import execute, open_backend, prepare
    from simbridge.running.samples import Samples

    prepared = prepare("square_tracking")
    plan = prepared.plan

    def logged() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "log.mcap"
            samples = Samples(plan)
            log = LogWriter(path, joint_names=prepared.robot.joint_names, period=plan.period)
            with open_backend("pybullet", prepared.robot, prepared.options) as arm, log:
                arm.move_to(plan.setpoints[0])
                for state in arm.stream(plan.setpoints):
                    log.write(samples.of(state))

    def unlogged() -> None:
        with open_backend("pybullet", prepared.robot, prepared.options) as arm:
            arm.move_to(plan.setpoints[0])
            for _state in arm.stream(plan.setpoints):
                pass

    def reported() -> None:
        with tempfile.TemporaryDirectory() as directory:
            execute(prepared, out=Path(directory) / "run")

    with_log, without, whole = medians(logged, unlogged, reported)
    factor = f"{plan.duration / with_log:.0f} x real time"
    results.add("the square, with its log", factor, "required", "20 x")
    results.add("the same, no log", f"{plan.duration / without:.0f} x real time", "with its log", factor)
    results.add("the same, metrics, report", f"{whole:.2f} s", "simulated time", f"{plan.duration:.0f} s")
    share = (with_log - without) / plan.samples
    results.add("logging, one sample", f"{share * 1e6:.0f} us", "5 % of a 500 Hz period", "100 us")


def _startup(results: _Results) -> None:
    """Whole processes: the help, and a repeated run with everything cached."""
    program = [sys.executable, "-m", "simbridge"]
    with tempfile.TemporaryDirectory() as directory:
        counter = iter(range(1000))

        def call(*arguments: str) -> None:
            subprocess.run([*program, *arguments], check=True, capture_output=True, cwd=directory)

        helped, bare, ran = medians(
            lambda: call("--help"),
            lambda: subprocess.run([sys.executable, "-c", "pass"], check=True, cwd=directory),
            lambda: call("run", "square_tracking", "--out", f"run{next(counter)}"),
        )
    results.add("simbridge --help", f"{helped:.2f} s", "required, below", "0.30 s")
    results.add("an empty Python process", f"{bare:.2f} s", "simbridge --help", f"{helped:.2f} s")
    results.add("repeated run, whole process", f"{ran:.2f} s", "required, below", "4.00 s")


def _emulator(results: _Results) -> None:
    """The emulator's ticks while the real client streams servoJ for a minute, and under hostile load."""
    from simbridge.emulator.benchmark import measure

    for row in measure():
        results.add(*row)


def _servo(results: _Results) -> None:
    """The servo loop on the emulator for a minute, then for another with the parent computing all the while."""
    from simbridge.bench.servo import measure

    for row in measure():
        results.add(*row)


def _recording(results: _Results) -> None:
    """What a sample costs to record, and an hour at 500 Hz to store, to read, to measure and to draw."""
    from simbridge.bench.recording import measure

    for row in measure():
        results.add(*row)
