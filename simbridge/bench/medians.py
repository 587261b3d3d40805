"""Times that can be compared on a machine whose cores are shared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

REPEATS = 9


def medians(*actions: Callable[[], object]) -> list[float]:
    """Median wall time of each action, s; taken in turns, so that all see the same machine."""
    for action in actions:
        action()
    taken: list[list[float]] = [[] for _ in actions]
    for _ in range(REPEATS):
        for times, action in zip(taken, actions, strict=True):
            begin = time.perf_counter()
            action()
            times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in taken]
