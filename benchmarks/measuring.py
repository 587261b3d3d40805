"""Medians of wall times, and the memory of a process."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

# How often each action is measured.
REPEATS = 9


def medians(*actions: Callable[[], object]) -> list[float]:
    """Return the median wall time of each action, s.

    The actions take turns, so that all see the same machine. Each is carried out once before.
    """
    for action in actions:
        action()

    rounds = []
    for _ in range(REPEATS):
        rounds.append([wall_time(action) for action in actions])
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def wall_time(action: Callable[[], object]) -> float:
    """Return the wall time of an action, s."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def peak_memory() -> int:
    """Return the most memory that this process has had, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def process_time(*arguments: str, cache: str | None = None) -> float:
    """Return the wall time of a process that runs Python, s.

    Args:
        arguments: Of Python.
        cache: Directory for its kernels; by default the one of this process.
    """
    environment = os.environ if cache is None else {**os.environ, "SIMBRIDGE_CACHE": cache}
    command = [sys.executable, *arguments]
    return wall_time(
        lambda: subprocess.run(command, check=True, capture_output=True, env=environment)
    )
