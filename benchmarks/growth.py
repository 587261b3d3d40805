"""How the cost of each command grows with its work.

Each command runs at 1, 4, 16 and 64 times a small amount of work, as a process of its own. Its rows
show processor time and peak memory at each amount, and the growth: what a unit of work costs
between the two largest amounts, compared with what it costs between the two before. The time that a
command needs to start is in neither. A growth above 1.3 is explained in docs/metrics.md.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.runs import synthetic_run
from simbridge.backends import SIMULATION
from simbridge.bench import Row
from simbridge.evaluation.evaluation import Evaluation
from simbridge.sessions.setup import live
from simbridge.trajectory import write_tum
from simbridge.trajectory.shapes import TOOL_DOWN

FACTORS = (1, 4, 16, 64)
# The growth up to which a cost counts as proportional to the work.
REQUIRED_GROWTH = 1.3
# Smallest differences of time, s, and of memory, bytes, from which growth is computed: smaller ones
# are noise.
MIN_SECONDS = 0.5
MIN_BYTES = 50e6

# Period of recorded poses, s, and the arm that tracks them.
PERIOD = 0.008
ROBOT = "ur10"
# Poses at the smallest amount of work: 16 s.
POSES = 2000

# Mass and inertia of a link of the arm with many links.
INERTIAL = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
)
# Runs a command, and prints its exit status, processor time, s, and peak memory. A process begins
# with the memory of the one that starts it, so this one is small.
WAITING = """import json, os, subprocess, sys

process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
seconds = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss]))
"""
# A scenario script: a circle of so many laps.
LAPS_SCRIPT = """from simbridge import Robot, Scenario
from simbridge.trajectory import MinimumJerk, paper_size, paths, trace


def scenario(robot: Robot) -> Scenario:
    size = paper_size(robot)
    path = paths.circle(radius=0.15 * size.scale, centre=size.centre)
    return Scenario(
        trajectory=trace(path, MinimumJerk(size.speed), orientation=size.orientation, laps={laps})
    )
"""


@dataclass(frozen=True)
class Case:
    """A command whose work can be multiplied.

    Attributes:
        command: Name of the command, for the table.
        unit: Name of the units of work, in the plural.
        smallest: Number of units at the smallest amount of work.
        arrange: Writes the input for a number of units into a directory, and returns the command
            line.
        factors: The multiples of the smallest amount.
        compiles: Whether a first run compiles kernels for its input; then a second one is measured.
    """

    command: str
    unit: str
    smallest: int
    arrange: Callable[[Path, int], Sequence[str]]
    factors: Sequence[int] = FACTORS
    compiles: bool = False


@dataclass(frozen=True)
class Cost:
    """What a process has cost.

    Attributes:
        seconds: Processor time, with that of the processes that it started, s.
        memory: Peak memory, bytes.
    """

    seconds: float
    memory: float


def measure(cases: Sequence[Case] | None = None) -> list[Row]:
    """Measure how the cost of each command grows.

    Args:
        cases: The commands; all by default.
    """
    rows: list[Row] = []
    for case in CASES if cases is None else cases:
        amounts = [case.smallest * factor for factor in case.factors]
        with tempfile.TemporaryDirectory() as directory:
            costs = [_measure_amount(case, Path(directory), amount) for amount in amounts]
        rows += _rows(case, amounts, costs)
    return rows


def _measure_amount(case: Case, directory: Path, amount: int) -> Cost:
    """Return what a command costs for a number of units."""
    folder = directory / str(amount)
    folder.mkdir()
    arguments = case.arrange(folder, amount)
    if case.compiles:
        run_process(arguments, folder)
    return run_process(arguments, folder)


def run_process(arguments: Sequence[str], folder: Path) -> Cost:
    """Run simbridge in a folder, and return what it has cost.

    Raises:
        subprocess.CalledProcessError: It has not ended with status 0 or 1.
    """
    command = [sys.executable, "-m", "simbridge", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    waiting = subprocess.run(
        [sys.executable, "-c", WAITING, *command],
        check=True,
        capture_output=True,
        cwd=folder,
        env=environment,
    )
    status, seconds, memory = json.loads(waiting.stdout)
    if status not in (0, 1):
        raise subprocess.CalledProcessError(status, command, stderr=waiting.stderr)
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(seconds, float(unit * memory))


def _rows(case: Case, amounts: Sequence[int], costs: Sequence[Cost]) -> list[Row]:
    """Return the rows of a command: its time and its memory at each amount, and their growth."""
    title = f"{case.command}, {amounts[0]} to {amounts[-1]} {case.unit}"
    times = [cost.seconds for cost in costs]
    memory = [cost.memory for cost in costs]
    time_growth = growth(amounts, times, MIN_SECONDS)
    memory_growth = growth(amounts, memory, MIN_BYTES)
    required = f"required, at most {REQUIRED_GROWTH:g}"
    return [
        (
            f"{title}: time",
            f"{', '.join(f'{seconds:.2f}' for seconds in times)} s",
            required,
            _growth_text(time_growth),
        ),
        (
            f"{title}: memory",
            f"{', '.join(f'{1e-6 * size:.0f}' for size in memory)} MB",
            required,
            _growth_text(memory_growth),
        ),
    ]


def growth(amounts: Sequence[int], costs: Sequence[float], smallest: float) -> float | None:
    """Return what a unit costs between the last two amounts, relative to the two before.

    Args:
        amounts: Numbers of units, increasing.
        costs: What each amount costs.
        smallest: The smallest difference of costs that is not noise.

    Returns:
        The relative cost; None where the costs do not differ by enough.
    """
    units = np.diff(amounts)
    differences = np.diff(costs)
    if differences[-1] < smallest:
        return None
    # A difference that is noise is an upper bound of what the work before has cost.
    before = max(differences[-2], smallest) / units[-2]
    return float(differences[-1] / units[-1] / before)


def _growth_text(value: float | None) -> str:
    return "too small to tell" if value is None else f"{value:.2f}"


# The input of the commands


def _poses(folder: Path, amount: int) -> Path:
    """Write a slow figure in front of the arm as poses at 125 Hz, and return the file."""
    times = PERIOD * np.arange(amount)
    positions = np.column_stack(
        [
            0.7 + 0.05 * np.sin(0.5 * times),
            0.164 + 0.1 * np.sin(0.3 * times),
            0.3 + 0.05 * np.sin(0.2 * times),
        ]
    )
    rotations = np.tile(TOOL_DOWN, (amount, 1))
    path = folder / "poses.tum"
    write_tum(path, times, np.hstack([positions, rotations]))
    return path


def _of_poses(command: str) -> Callable[[Path, int], Sequence[str]]:
    """Return what arranges a command on a file of so many poses."""
    return lambda folder, amount: (command, str(_poses(folder, amount)), "--robot", ROBOT)


def _run(folder: Path, amount: int) -> Path:
    """Write the directory of a run of so many poses, and return it."""
    path = folder / "run"
    synthetic_run(path, amount * PERIOD, ROBOT)
    return path


def _of_run(command: str) -> Callable[[Path, int], Sequence[str]]:
    """Return what arranges a command on a run of so many poses."""
    return lambda folder, amount: (command, str(_run(folder, amount)))


def _export(folder: Path, amount: int) -> Sequence[str]:
    return ("export", str(_run(folder, amount)), "--to", "csv")


def _evaluate(folder: Path, amount: int) -> Sequence[str]:
    """Measure a run by what another device has seen of it: the run's own poses."""
    run = _run(folder, amount)
    evaluation = Evaluation.of(run)
    attained = folder / "attained.tum"
    write_tum(attained, evaluation.log.stamp, evaluation.attained)
    return ("evaluate", str(run), "--attained", str(attained))


def _laps(command: str) -> Callable[[Path, int], Sequence[str]]:
    """Return what arranges a command on a scenario of so many laps."""

    def arrange(folder: Path, amount: int) -> Sequence[str]:
        script = folder / "laps.py"
        script.write_text(LAPS_SCRIPT.format(laps=amount), encoding="utf-8")
        return (command, str(script), "--robot", ROBOT)

    return arrange


def _obstacles(folder: Path, amount: int) -> Sequence[str]:
    """Check a path in a cell with boxes around the arm, at least 2 m away."""
    boxes = []
    for box in range(amount):
        angle = 2.0 * math.pi * box / amount
        centre = [2.5 * math.cos(angle), 2.5 * math.sin(angle), 0.5]
        boxes.append(
            f'[[keep_out_boxes]]\nname = "box {box}"\ncentre = {centre}\nsize = [0.1, 0.1, 0.1]\n'
        )
    cell = folder / "cell.toml"
    cell.write_text("\n".join(boxes), encoding="utf-8")
    return ("check", "square_tracking", "--robot", ROBOT, "--cell", str(cell))


def _links(folder: Path, amount: int) -> Sequence[str]:
    """Check a short motion of a planar arm of so many links, 1 m long altogether."""
    length = 1.0 / amount
    parts = ['<link name="base_link"/>']
    parent = "base_link"
    for joint in range(amount):
        child = f"link{joint}"
        origin = 0.0 if joint == 0 else length
        parts.append(
            f'<link name="{child}">{INERTIAL}</link><joint name="joint{joint}" type="revolute">'
            f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{origin} 0 0"/>'
            '<axis xyz="0 0 1"/><limit lower="-3.1" upper="3.1" effort="100" velocity="3"/></joint>'
        )
        parent = child
    parts.append(
        f'<link name="tool0"/><joint name="flange" type="fixed"><parent link="{parent}"/>'
        f'<child link="tool0"/><origin xyz="{length} 0 0"/></joint>'
    )
    arm = folder / "arm.urdf"
    arm.write_text(f'<robot name="chain">{"".join(parts)}</robot>', encoding="utf-8")

    # Around its home: bent into a quarter of a circle.
    home = [f"{math.pi / 2.0 / amount:.6f}"] * amount
    times = PERIOD * np.arange(500)
    rows = [f"{time:.3f} {0.01 * math.sin(time):.6f} 0 0 0 0 0 1" for time in times]
    motion = folder / "motion.tum"
    motion.write_text("\n".join(rows), encoding="utf-8")
    return (
        "check",
        str(motion),
        *("--robot", str(arm), "--home", *home),
        *("--anchor", "start", "--floor", "none"),
        *("--solver", "damped-least-squares", "--solver.task", "position"),
    )


def _compared_runs(folder: Path, amount: int) -> Sequence[str]:
    """Compare runs of 4 s."""
    runs = [folder / f"run{number}" for number in range(amount)]
    for run in runs:
        synthetic_run(run, 4.0, ROBOT)
    return ("compare", *map(str, runs), "--out", str(folder / "compared"))


def _listed_runs(folder: Path, amount: int) -> Sequence[str]:
    """List runs of 0.1 s."""
    for number in range(amount):
        synthetic_run(folder / "runs" / f"run{number}", 0.1, ROBOT)
    return ("runs", str(folder / "runs"))


def _repeats(folder: Path, amount: int) -> Sequence[str]:
    """Repeat a run of 2 s."""
    path = _poses(folder, 250)
    return ("run", str(path), "--robot", ROBOT, "--repeat", str(amount))


def _sweep(folder: Path, amount: int) -> Sequence[str]:
    """Plan a circle with so many stiffnesses of the solver."""
    values = ",".join(f"{30.0 + 0.1 * point:g}" for point in range(amount))
    command = ("sweep", "circle", "--grid", f"solver.kp={values}", "--plan-only", "--jobs", "1")
    return (*command, "--out", str(folder / "sweep"))


def _session(folder: Path, amount: int) -> Sequence[str]:
    """Report a live session of so many seconds, in which the tool is moved to and fro."""
    path = folder / "session"
    with live(SIMULATION, robot="ur10e", out=path, realtime=False) as session:
        session.engage()
        for step in range(10 * amount):
            speed = 0.05 if step % 20 < 10 else -0.05
            session.twist([0.0, 0.0, speed, 0.0, 0.0, 0.0])
            session.wait(0.1)
        session.disengage()
        session.wait(0.1)
    return ("report", str(path))


def _program(folder: Path, amount: int) -> Sequence[str]:
    """Check a URScript program of so many statements."""
    statements = [f"  value = value + {number % 7} * 2" for number in range(amount)]
    program = folder / "program.script"
    lines = ["def program():", "  value = 0", *statements, "end", ""]
    program.write_text("\n".join(lines), encoding="utf-8")
    return ("emulate", "--check", str(program))


CASES = (
    Case("inspect", "poses", POSES, _of_poses("inspect")),
    Case("check", "poses", POSES, _of_poses("check")),
    Case("run", "poses", POSES, _of_poses("run")),
    Case("report", "poses", POSES, _of_run("report")),
    Case("export", "poses", POSES, _export),
    Case("evaluate", "poses", POSES, _evaluate),
    Case("identify", "poses", POSES, _of_run("identify")),
    Case("judge", "poses", POSES, _of_run("judge")),
    Case("run", "laps", 1, _laps("run")),
    Case("check", "obstacles", 4, _obstacles),
    # At most 64 joints are read.
    Case("check", "links", 4, _links, factors=(1, 4, 16), compiles=True),
    Case("compare", "runs compared", 2, _compared_runs),
    Case("runs", "runs listed", 4, _listed_runs),
    Case("run", "repeats", 2, _repeats),
    Case("sweep", "points", 5, _sweep),
    Case("report", "seconds of a session", 3, _session),
    Case("emulate --check", "statements", 100, _program),
)
