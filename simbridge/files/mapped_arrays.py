"""Arrays of which the large ones are in files without a name: memory holds only what is in use."""

from __future__ import annotations

import math
import mmap
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A mapped array of more bytes is in a file without a name.
MIN_MAPPED_BYTES = 1 << 23


class MappedArrays:
    """Makes arrays, and keeps the files of the large ones open."""

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []

    def empty(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
        """Return an array to be filled in."""
        size = math.prod(shape) * kind.itemsize
        if size <= MIN_MAPPED_BYTES or sys.platform != "linux":
            return np.empty(shape, kind)

        try:
            # Not /tmp, which is memory on many computers.
            with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp")) as file:
                # If the disk is full, a file that only grows when it is written would kill the
                # process.
                os.posix_fallocate(file.fileno(), 0, size)
                self._maps.append(mmap.mmap(file.fileno(), size))
        except OSError:
            return np.empty(shape, kind)
        return np.frombuffer(self._maps[-1], kind).reshape(shape)

    def gather(
        self, count: int, blocks: Iterable[Mapping[Any, NDArray[Any]]]
    ) -> dict[Any, NDArray[Any]]:
        """Gather blocks of rows into read-only arrays.

        Args:
            count: Number of all rows.
            blocks: Rows in order, by name; each block has the same names.

        Returns:
            Arrays of `count` rows by name.
        """
        arrays: dict[Any, NDArray[Any]] = {}
        begin = 0
        for block in blocks:
            if not arrays:
                for name, rows in block.items():
                    arrays[name] = self.empty((count, *rows.shape[1:]), rows.dtype)

            end = begin + len(next(iter(block.values())))
            for name, rows in block.items():
                arrays[name][begin:end] = rows
            begin = end

        for array in arrays.values():
            array.setflags(write=False)
        self.release()
        return arrays

    def release(self) -> None:
        """Give the arrays' memory back; what is used again is read from the files."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)
