"""Decompresses the compressed parts of a file within a limit on their total size."""

from __future__ import annotations

import bz2
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import lz4.frame
import zstandard

from simbridge.errors import InputFileError
from simbridge.files.reading import MIB

# How much larger than a file its content may be: a factor of its size, and a constant, bytes.
MAX_EXPANSION = 50
FREE_BYTES = 16 * MIB


def expansion(size: int) -> int:
    """Return how much the compressed parts of a file may be when they are decompressed, bytes.

    Args:
        size: Size of the file, bytes.
    """
    return MAX_EXPANSION * size + FREE_BYTES


class Expander:
    """Decompresses the parts of one file.

    Each method raises InputFileError when there is more than `expansion`.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Bytes that may still come out of it.
        self._remaining = expansion(path.stat().st_size)

    def spend(self, data: bytes) -> bytes:
        """Count data that came out of the file, and return it."""
        self._remaining -= len(data)
        if self._remaining < 0:
            reason = (
                f"it decompresses to more than {MAX_EXPANSION} times its size, which suggests a "
                "decompression bomb"
            )
            raise InputFileError(self._path, reason)
        return data

    def pieces(self, compressed: Any) -> Iterator[bytes]:
        """Iterate over all that a decompressing stream gives."""
        while piece := compressed.read(MIB):
            yield self.spend(piece)

    def zstd(self, data: bytes | BinaryIO) -> bytes:
        """Decompress the frames of zstd."""
        stream = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        return b"".join(self.pieces(stream))

    def lz4(self, data: bytes) -> bytes:
        """Decompress frames of lz4."""
        return b"".join(self.pieces(lz4.frame.open(io.BytesIO(data))))

    def bz2(self, data: bytes) -> bytes:
        """Decompress bzip2."""
        return b"".join(self.pieces(bz2.open(io.BytesIO(data))))
