"""Wall time of whole processes: what a user waits for at the terminal.

`python -m benchmarks.startup CHECKOUT` measures another checkout beside this one, in turns, with
the same Python and the same libraries.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.measuring import medians, process_time
from benchmarks.runs import SHORT, synthetic_run
from simbridge.bench import Row
from simbridge.text import make_table

# The checkout that this file is in.
HERE = Path(__file__).parents[1]
# How often a command is started with an empty cache of kernels.
FIRST_STARTS = 3

# Commands that a user waits for, without the arguments that name directories; and how long each may
# take, s.
WAITED_FOR = {
    "--help": 0.2,
    "check square_tracking": 0.8,
    "run square_tracking": 2.5,
    "report": 2.3,
}
# Commands that only print, and how long each may take, s.
PRINTING = ("robots", "scenarios")
MAX_PRINTING_S = 0.3
# How long a check may take that compiles its kernels, s.
MAX_FIRST_CHECK_S = 15.0


def measure() -> list[Row]:
    """Measure the commands that a user waits for, those that only print, and a first check."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        commands = [*waited_for(folder), *([name] for name in PRINTING)]
        times = median_times(commands, [HERE], folder)[HERE]
        caches = (f"{directory}/cache{start}" for start in range(FIRST_STARTS))
        first_check = statistics.median(
            process_time("-m", "simbridge", "check", "square_tracking", cache=cache)
            for cache in caches
        )

    limits = {**WAITED_FOR, **dict.fromkeys(PRINTING, MAX_PRINTING_S)}
    rows = [
        (f"simbridge {name}", f"{time:.2f} s", "required, at most", f"{limit:.2f} s")
        for (name, limit), time in zip(limits.items(), times, strict=True)
    ]
    first_limit = f"{MAX_FIRST_CHECK_S:.2f} s"
    rows.append(
        (
            "simbridge check square_tracking, first time",
            f"{first_check:.2f} s",
            "required, at most",
            first_limit,
        )
    )
    return rows


def waited_for(folder: Path) -> list[list[str]]:
    """Return the command lines of the commands that a user waits for.

    Args:
        folder: A directory, in which the run is made that is reported.
    """
    run = folder / "reported"
    synthetic_run(run, SHORT, "ur10")
    commands = [name.split() for name in WAITED_FOR]
    commands[-1].append(str(run))
    return commands


def median_times(
    commands: Sequence[Sequence[str]], checkouts: Sequence[Path], folder: Path
) -> dict[Path, list[float]]:
    """Return the median wall times of commands in each checkout, s; all take turns.

    Args:
        commands: Command lines of simbridge.
        checkouts: The directories that hold the package.
        folder: The directory in which they run, and make their runs.
    """
    actions = [
        partial(_run, checkout, command, folder) for command in commands for checkout in checkouts
    ]
    times = medians(*actions)
    return {checkout: times[number :: len(checkouts)] for number, checkout in enumerate(checkouts)}


def _run(checkout: Path, command: Sequence[str], folder: Path) -> None:
    """Run a command of a checkout in a folder."""
    words = [sys.executable, "-m", "simbridge", *command]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(words, check=True, capture_output=True, cwd=folder, env=environment)


def compare(other: Path) -> list[Row]:
    """Measure the commands that a user waits for in another checkout and in this one."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        times = median_times(waited_for(folder), [other, HERE], folder)
    return [
        (f"simbridge {name}", f"{here:.2f} s", str(other), f"{there:.2f} s")
        for name, here, there in zip(WAITED_FOR, times[HERE], times[other], strict=True)
    ]


if __name__ == "__main__":
    columns = ("process", "median", "compared to", "its median")
    Console().print(
        make_table(columns, compare(Path(sys.argv[1]).resolve()), left=("compared to",))
    )
