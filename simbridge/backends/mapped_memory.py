"""Memory that two processes share: numbers in a file that is mapped."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from simbridge.robot.pose import Array

NUMBER_BYTES = 8


def map_numbers(path: Path | None, count: int) -> Array:
    """Return numbers (count,) that are in a file, and change with it.

    Args:
        path: The file, of that size; None for memory of this process alone.
        count: How many there are.
    """
    size = NUMBER_BYTES * count
    if path is None:
        return np.frombuffer(mmap.mmap(-1, size), dtype=np.float64)
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), size), dtype=np.float64)
