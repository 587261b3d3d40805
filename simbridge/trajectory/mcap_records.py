"""The records of an MCAP file, and decompression, both within limits that follow from the file's size."""

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
from simbridge.robot.input_file import expansion

_BLOCK = 1 << 20


class Expander:
    """Decompresses the parts of one file, together at most as much as `expansion` allows for its size.

    Args:
        path: The file.

    Raises:
        InputFileError: From every method: the parts are larger.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._left = path, expansion(path.stat().st_size)

    def spend(self, count: int) -> None:
        """Count bytes that came out of the file."""
        self._left -= count
        if self._left < 0:
            reason = "it holds more than 50 times its size when it is decompressed: a file made to fill memory"
            raise InputFileError(self._path, reason)

    def read(self, compressed: Any) -> bytes:
        """All that a decompressing stream gives."""
        return b"".join(self._pieces(compressed))

    def zstd(self, data: bytes) -> bytes:
        return self.read(zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True))

    def lz4(self, data: bytes) -> bytes:
        return self.read(lz4.frame.open(io.BytesIO(data)))

    def bz2(self, data: bytes) -> bytes:
        return self.read(bz2.open(io.BytesIO(data)))

    def copy(self, compressed: Any, target: BinaryIO) -> None:
        """Write all that a decompressing stream gives."""
        target.writelines(self._pieces(compressed))

    def _pieces(self, compressed: Any) -> Iterator[bytes]:
        while piece := compressed.read(_BLOCK):
            self.spend(len(piece))
            yield piece


class _Bounded:
    """A file whose `read` never asks for more than there is: a length in the file may be any number."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    def read(self, length: int) -> bytes:
        return self._file.read(min(length, max(self._size, 1)))


def mcap_records(
    file: BinaryIO, path: Path, decode: Callable[[bytes], Any] = lambda content: None
) -> Iterator[McapRecord | Any]:
    """The records of an MCAP file in file order, those of its chunks in their places.

    Args:
        file: The file, at its beginning.
        path: Its path.
        decode: Takes the content of each chunk; what it returns is yielded instead of the chunk's records, unless it
            is None.

    Raises:
        InputFileError: Its chunks are much larger than the file.
        Exception: Anything where the file is damaged or cut off.
    """
    size, expander = os.fstat(file.fileno()).st_size, Expander(path)
    content_of: dict[str, Callable[[bytes], bytes]] = {"": bytes, "zstd": expander.zstd, "lz4": expander.lz4}
    reader = StreamReader(_Bounded(file, size), emit_chunks=True, validate_crcs=True, record_size_limit=size)  # type: ignore[arg-type]
    for record in reader.records:
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
        inside = StreamReader(io.BytesIO(content), skip_magic=True, emit_chunks=True, record_size_limit=len(content))
        with contextlib.suppress(EndOfFile):
            yield from (part for part in inside.records if isinstance(part, Schema | Channel | Message))
