"""What is compressed in files, decompressed once and within a limit; and the records of MCAP files."""

from __future__ import annotations

import bz2
import contextlib
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import lz4.frame
import zstandard
from mcap.exceptions import EndOfFile
from mcap.records import Channel, Chunk, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader

from simbridge.errors import InputFileError

_MIB = 1 << 20


def expansion(size: int) -> int:
    """How many bytes the compressed parts of a file of this size, bytes, may have when they are decompressed."""
    return 50 * size + 16 * _MIB


class Expander:
    """Decompresses the parts of one file; each method raises InputFileError when there is more than `expansion`."""

    def __init__(self, path: Path) -> None:
        self._path, self._left = path, expansion(path.stat().st_size)

    def spend(self, data: bytes) -> bytes:
        """Count data that came out of the file."""
        self._left -= len(data)
        if self._left < 0:
            reason = "it holds more than 50 times its size when it is decompressed: a file made to fill memory"
            raise InputFileError(self._path, reason)
        return data

    def pieces(self, compressed: Any) -> Iterator[bytes]:
        """All that a decompressing stream gives."""
        while piece := compressed.read(_MIB):
            yield self.spend(piece)

    def zstd(self, data: bytes | BinaryIO) -> bytes:
        return b"".join(
            self.pieces(zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True))
        )

    def lz4(self, data: bytes) -> bytes:
        return b"".join(self.pieces(lz4.frame.open(io.BytesIO(data))))

    def bz2(self, data: bytes) -> bytes:
        return b"".join(self.pieces(bz2.open(io.BytesIO(data))))


class _Bounded:
    """A file whose `read` never asks for more than its size: a length in the file may be any number."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, max(size, 1)

    def read(self, length: int) -> bytes:
        return self._file.read(min(length, self._size))


def mcap_records(
    file: BinaryIO, path: Path, decode: Callable[[bytes], Any]
) -> Iterator[McapRecord | Any]:
    """The records of an MCAP file, open at its beginning, in file order, those of its chunks in their places.

    `decode` takes the content of each chunk; what it returns is yielded instead of the chunk's records, except None.
    Where chunks are much larger than the file it is InputFileError, where it is damaged or cut off any exception.
    """
    size, expander = os.fstat(file.fileno()).st_size, Expander(path)
    content_of: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        "zstd": expander.zstd,
        "lz4": expander.lz4,
    }
    source: Any = _Bounded(file, size)
    for record in StreamReader(
        source, emit_chunks=True, validate_crcs=True, record_size_limit=size
    ).records:
        if not isinstance(record, Chunk):
            yield record
            continue
        content = content_of[record.compression](record.data)
        if record.uncompressed_crc not in (0, zlib.crc32(content)):
            raise ValueError("the checksum of a chunk is another")
        decoded = decode(content)
        if decoded is not None:
            yield decoded
            continue
        inside = StreamReader(
            io.BytesIO(content), skip_magic=True, emit_chunks=True, record_size_limit=len(content)
        )
        with contextlib.suppress(EndOfFile):
            yield from (
                part for part in inside.records if isinstance(part, Schema | Channel | Message)
            )
