"""The last values that a process has computed, by all that they depend on."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A bounded store of values, for any number of threads.

    Args:
        size: Number of values that are kept. Beyond it the oldest is dropped, and must be computed
            again.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        # Values by key, the oldest first.
        self._values: dict[Hashable, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key; None where there is none."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: Hashable, value: Value) -> None:
        """Store the value of a key."""
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._size:
                oldest = next(iter(self._values))
                del self._values[oldest]
