"""What the benchmarks share: medians, wall times and memory."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

REPEATS = 9


def medians(*actions: Callable[[], object]) -> list[float]:
    """Median wall time of each action, s; taken in turns, so that all see the same machine."""
    for action in actions:
        action()
    taken = [[timed(action) for action in actions] for _ in range(REPEATS)]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


def timed(action: Callable[[], object]) -> float:
    """Wall time of an action, s."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def peak_memory() -> int:
    """The most memory that this process has had, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def process_time(*arguments: str, cache: str | None = None) -> float:
    """Wall time of a process that runs Python with these arguments, s; with its own kernel cache if one is given."""
    environment = os.environ if cache is None else {**os.environ, "SIMBRIDGE_CACHE": cache}
    command = [sys.executable, *arguments]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))
