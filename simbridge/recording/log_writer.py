"""Write the log of a run while it goes on.

Samples go to the file in chunks of at most 0.25 s. A chunk that was written is in the system's
hands and survives `kill -9` (not a power cut), so a killed run loses less than its last half
second. In memory are the open chunk and MCAP's index of the earlier chunks: about 14 MB an hour.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from mcap.writer import IndexType, Writer

from simbridge.errors import InvalidParameter, LogWriteError
from simbridge.recording.log_layout import (
    ENVELOPE_BYTES,
    LAYOUT,
    LAYOUT_VERSION,
    METADATA,
    layouts,
)
from simbridge.recording.ros_messages import DEFINITIONS
from simbridge.recording.samples import Sample

CHUNK_DURATION_S = 0.25

# zstd compresses an arm's noisy numbers by 1 % more in chunks of up to this many bytes than in
# larger ones.
MAX_CHUNK_BYTES = 2**17

# The seconds of a ROS 2 stamp are an int32.
MAX_STAMP_S = 2.0**31


class _LogFile:
    """The stream that MCAP's writer writes to: an unbuffered file that counts its bytes.

    Attributes:
        path: The file.
        failure: The first failure; after it the file is no longer written.

    Raises:
        LogWriteError: The file cannot be opened, written or closed. After a failure `close` is
            silent.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: LogWriteError | None = None
        self._written_bytes = 0
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise self._note_failure(error) from error

    def write(self, data: bytes) -> int:
        """Write all of the data; return its length."""
        # A nearly full disk takes a part, and reports an error only for the rest.
        rest = memoryview(data)
        while rest:
            try:
                count = self._file.write(rest)
            except OSError as error:
                raise self._note_failure(error) from error
            self._written_bytes += count
            rest = rest[count:]
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._written_bytes

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            if self.failure is None:
                raise self._note_failure(error) from error

    def _note_failure(self, error: OSError) -> LogWriteError:
        """Keep an error of the system as the failure of the log, and return it."""
        self.failure = LogWriteError(self.path, self._written_bytes, error.errno or errno.EIO)
        return self.failure


class LogWriter:
    """Writes the log of one run; a context manager.

    Args:
        path: The file; an existing one is replaced.
        joint_names: Names of the n joints, in the order of the samples' arrays.
        period: The control period, s, from which follows how many samples make a chunk.
        frame_id: The frame in which the targets are given.
        metadata: Facts about the run, written first, so that a killed run has them, too.
        live: Whether samples are `LiveSample`s.
        indexed: Whether other tools can jump to an instant; without it they read the file from its
            beginning, and a sample takes 128 bytes less.

    Raises:
        LogWriteError: From every method: the file cannot be opened or written. Then no more samples
            are taken, and `close` is silent.
        InvalidParameter: The period is not positive, or there are no joints.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        joint_names: Sequence[str],
        period: float,
        frame_id: str = "base_link",
        metadata: Mapping[str, str] | None = None,
        live: bool = False,
        indexed: bool = True,
    ) -> None:
        if not period > 0.0:
            raise InvalidParameter("period", period, "a positive number of seconds")
        if not joint_names:
            raise InvalidParameter("number of joints", 0, "at least 1")

        self._layouts = layouts(joint_names, frame_id, live=live)
        self._closed = False
        self._sample_count = 0
        # The number of samples in a chunk, which neither lasts too long nor gets too large. Each
        # message of a sample is in an envelope.
        message_bytes = [len(layout.template) for layout in self._layouts.values()]
        sample_bytes = sum(message_bytes) + ENVELOPE_BYTES * len(message_bytes)
        self._samples_per_chunk = max(
            1, min(int(CHUNK_DURATION_S / period), MAX_CHUNK_BYTES // sample_bytes)
        )

        self._file = _LogFile(Path(path))
        # The writer only needs `write`, `tell` and `flush` of a file.
        self._mcap = Writer(
            self._file,  # type: ignore[arg-type]
            # Chunks are ended by `flush`, between two samples.
            chunk_size=2 * MAX_CHUNK_BYTES,
            index_types=IndexType.ALL if indexed else IndexType.METADATA,
        )

        # The beginning of the file.
        layout = {
            "version": LAYOUT_VERSION,
            "joint_names": msgspec.json.encode(list(joint_names)).decode(),
            "frame_id": frame_id,
        }
        if live:
            layout["live"] = "true"
        try:
            self._mcap.start(profile="ros2", library="simbridge")
            self._mcap.add_metadata(METADATA, dict(metadata or {}))
            self._mcap.add_metadata(LAYOUT, layout)
        except BaseException:
            self._file.close()
            raise

        # The identifiers of the topics' channels, in the order of the layouts.
        self._channels = self._register_channels()

    def _register_channels(self) -> list[int]:
        """Register a schema for each type of message and a channel for each topic."""
        schemas: dict[str, int] = {}
        for layout in self._layouts.values():
            name = layout.message_type
            if name not in schemas:
                definition = DEFINITIONS[name].encode()
                schemas[name] = self._mcap.register_schema(name, "ros2msg", definition)

        return [
            self._mcap.register_channel(topic, "cdr", schemas[layout.message_type])
            for topic, layout in self._layouts.items()
        ]

    def write(self, sample: Sample) -> None:
        """Write one sample. The system gets the samples in chunks of at most 0.25 s.

        Raises:
            InvalidParameter: The stamp is negative or not finite.
            ValueError: An array has not one number per joint, or the log is closed.
        """
        if self._closed:
            raise ValueError(f"the log {self._file.path} is closed")
        if self._file.failure is not None:
            raise self._file.failure
        if not 0.0 <= sample.stamp < MAX_STAMP_S:
            name = f"stamp of sample {sample.index}"
            raise InvalidParameter(name, sample.stamp, "from 0 to 2^31 s")

        # The stamp as MCAP has it, in ns, and as ROS has it, in s and ns.
        log_time = round(sample.stamp * 1e9)
        stamp = divmod(log_time, 10**9)

        # Pack all messages before the first is added: a sample that does not fit leaves nothing
        # behind.
        try:
            messages = [layout.pack_record(stamp, sample) for layout in self._layouts.values()]
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"sample {sample.index} does not fit the log {self._file.path}: {error}"
            ) from error

        for channel, message in zip(self._channels, messages, strict=True):
            self._mcap.add_message(channel, log_time, message, publish_time=log_time)
        self._sample_count += 1
        if self._sample_count % self._samples_per_chunk == 0:
            self._mcap.flush()

    def close(self) -> None:
        """Write the open chunk and the index, and close the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._file.failure is None:
                self._mcap.finish()
        finally:
            self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except LogWriteError:
            # The error that ended the run matters more than the log that could not be closed after
            # it.
            if error is None:
                raise
