"""A worker of a sweep that sleeps in place of computing. It imports nothing, to start quickly."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from typing import Any

# The result of every point, pickled, and how long a point takes, s.
_result = b""
_duration = 0.0
# Keys of the contents that this worker has been sent.
_known: set[str] = set()


class Results:
    """Results of several points, which the receiving process unpickles one by one.

    Args:
        pickled: The result of each point, pickled.
        count: Number of points.
    """

    def __init__(self, pickled: bytes, count: int) -> None:
        self._pickled = pickled
        self._count = count

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickle_each, (self._pickled, self._count)


def unpickle_each(pickled: bytes, count: int) -> list[Any]:
    """Return several results, each unpickled by itself."""
    return [pickle.loads(pickled) for _ in range(count)]


def prepare(result: bytes, duration: float) -> None:
    """Set what this worker answers.

    Args:
        result: The result of every point, pickled.
        duration: How long a point takes, s.
    """
    global _result, _duration
    _result = result
    _duration = duration


def sleep_for(task: bytes, count: int, needed: Sequence[str], sent: Sequence[str]) -> Any:
    """Sleep for the points of a task; as a real worker does, ask for contents that are missing.

    Args:
        task: What a real worker gets, pickled.
        count: Number of points.
        needed: Keys of the contents that they need.
        sent: Keys of those that are in the task.
    """
    _known.update(sent)
    if not _known.issuperset(needed):
        return None
    time.sleep(count * _duration)
    return Results(_result, count)
