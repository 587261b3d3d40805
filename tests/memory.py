"""The memory that Python allocates in a block of a test."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator

MIB = 1 << 20


@contextlib.contextmanager
def takes_at_most(mebibytes: float) -> Iterator[None]:
    """The block inside allocates no more at a time; it may raise."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= mebibytes * MIB, f"{peak / MIB:.0f} MiB"
