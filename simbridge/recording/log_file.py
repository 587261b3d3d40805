"""The file under a log, and what can go wrong with it: a full disk while writing, a cut or damage while reading."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from mcap.records import Chunk, McapRecord
from mcap.stream_reader import StreamReader, breakup_chunk, get_chunk_data_stream

from simbridge.errors import LogWriteError


class LogFile:
    """What the MCAP writer writes to: an unbuffered file that counts its bytes and names its failures.

    Attributes:
        path: The file.
        failure: The first failure; after it the file is of no more use.

    Raises:
        LogWriteError: The file cannot be opened, written or closed. After a failure `close` is silent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: LogWriteError | None = None
        self._stored = 0
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise self._failed(error) from error

    def write(self, data: bytes) -> int:
        """Hands all of the data to the system, and returns its length."""
        # A nearly full disk takes a part, and says why only when it is asked again.
        rest = memoryview(data)
        while rest:
            try:
                count = self._file.write(rest)
            except OSError as error:
                raise self._failed(error) from error
            self._stored += count
            rest = rest[count:]
        return len(data)

    def tell(self) -> int:
        """How many bytes the system has taken."""
        return self._stored

    def flush(self) -> None:
        """Does nothing: nothing is held back here."""

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        try:
            self._file.close()
        except OSError as error:
            if self.failure is None:
                raise self._failed(error) from error

    def _failed(self, error: OSError) -> LogWriteError:
        self.failure = LogWriteError(self.path, self._stored, error.errno or errno.EIO)
        return self.failure


Decoded = TypeVar("Decoded")


def sound_records(
    file: IO[bytes], decode: Callable[[bytes], Decoded | None] = lambda content: None
) -> Iterator[McapRecord | Decoded]:
    """The records of an MCAP file in file order, up to its end or the first that is incomplete or damaged.

    Args:
        file: The file, at its beginning.
        decode: Given the uncompressed content of each chunk as it comes; what it makes of it is yielded in place of the
            records in the chunk, unless it is None.

    Raises:
        OSError: The file cannot be read.
    """
    size = os.fstat(file.fileno()).st_size
    reader = StreamReader(file, emit_chunks=True, validate_crcs=True, record_size_limit=size)
    try:
        for record in reader.records:
            if not isinstance(record, Chunk):
                yield record
                continue
            stream, length = get_chunk_data_stream(record, validate_crc=True)
            decoded = decode(stream.read(length))
            if decoded is None:
                yield from breakup_chunk(record, validate_crc=False)
            else:
                yield decoded
    except OSError:
        raise
    except Exception:
        # What damaged bytes lead to is up to the parser and the decompressors; behind them nothing can be trusted.
        return
