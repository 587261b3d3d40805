"""The records of MCAP files."""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mcap.exceptions import EndOfFile
from mcap.records import Channel, Chunk, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader

from simbridge.files.decompression import Expander


class _BoundedFile:
    """A file whose `read` never asks for more than its size: a length in it may be any number.

    Args:
        file: The file.
        size: Size of the file, bytes.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = max(size, 1)

    def read(self, length: int) -> bytes:
        return self._file.read(min(length, self._size))


def mcap_records(
    file: BinaryIO, path: Path, decode: Callable[[bytes], Any]
) -> Iterator[McapRecord | Any]:
    """Iterate over the records of an MCAP file in file order, those of its chunks in their places.

    If the file is damaged or cut off, any exception may be raised.

    Args:
        file: The file, open at its beginning.
        path: The file, for the error.
        decode: Takes the content of each chunk; what it returns is yielded instead of the chunk's
            records, except None.

    Raises:
        InputFileError: Chunks are much larger than the file.
    """
    size = os.fstat(file.fileno()).st_size
    expander = Expander(path)
    decompress: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        "zstd": expander.zstd,
        "lz4": expander.lz4,
    }

    bounded: Any = _BoundedFile(file, size)
    reader = StreamReader(bounded, emit_chunks=True, validate_crcs=True, record_size_limit=size)
    for record in reader.records:
        if not isinstance(record, Chunk):
            yield record
            continue

        content = decompress[record.compression](record.data)
        # A checksum of 0 means that the chunk has none.
        if record.uncompressed_crc not in (0, zlib.crc32(content)):
            raise ValueError("the checksum of a chunk does not match")
        decoded = decode(content)
        if decoded is not None:
            yield decoded
            continue
        yield from _chunk_records(content)


def _chunk_records(content: bytes) -> Iterator[McapRecord]:
    """Iterate over the records in the content of a chunk."""
    reader = StreamReader(
        io.BytesIO(content), skip_magic=True, emit_chunks=True, record_size_limit=len(content)
    )
    with contextlib.suppress(EndOfFile):
        for record in reader.records:
            if isinstance(record, Schema | Channel | Message):
                yield record
