"""Read a log, also one that is still being written, was cut off, or was rewritten by another tool.

A chunk of our own holds the same messages again and again, each with the same bytes except for its
numbers, so it is one numpy array: an hour is read a hundred times faster than message by message,
which is how all other chunks are read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from mcap.opcode import Opcode
from mcap.records import Channel, Footer, McapRecord, Message, Metadata
from numpy.typing import NDArray

from simbridge.errors import InputFileError, LogReadError
from simbridge.files.mapped_arrays import MappedArrays
from simbridge.files.mcap_records import mcap_records
from simbridge.files.reading import open_file
from simbridge.recording.cdr import Layout, NumberField, Records
from simbridge.recording.log_layout import (
    ENVELOPE_BEGIN,
    ENVELOPE_BYTES,
    LAYOUT,
    LAYOUT_VERSION,
    METADATA,
    layouts,
)
from simbridge.recording.samples import LIVE_FIELDS, SAMPLE_FIELDS, LogColumns

# Samples after which the memory of those that were read is given back.
RELEASED = 50_000

# Samples whose messages are gathered before they become arrays: this bounds the memory of reading.
BLOCK = 2048

# The beginning of an MCAP record, which its length does not count: opcode and the length itself.
RECORD_PREFIX_BYTES = struct.calcsize("<BQ")

Columns = dict[str, NDArray[Any]]
"""Arrays with a row per sample, by the names of the fields of `Sample` and `LiveSample`."""


@dataclass(frozen=True)
class LogHeader:
    """The facts at the beginning of a log.

    Attributes:
        metadata: The facts that the writer was given.
        joint_names: Names of the n joints.
        frame_id: The frame in which the targets are given.
        live: Whether the log is that of a live session.
    """

    metadata: dict[str, str]
    joint_names: tuple[str, ...]
    frame_id: str
    live: bool


def read_log(path: str | Path) -> LogColumns:
    """Read all samples before a log's end, or before the point where it was cut off or damaged.

    Raises:
        LogReadError: The file is not a log, or was cut off before the first sample.
        OSError: The file cannot be opened or read.
    """
    path = Path(path)
    decoder = _LogDecoder()
    with _open_log(path) as file:
        # One iterator: the header takes its first records, and the loop goes on behind them.
        records = _intact_records(file, path, decoder.decode_chunk)
        header = _read_header(path, records)
        decoder.layouts = layouts(header.joint_names, header.frame_id, live=header.live)
        try:
            for record in records:
                decoder.take(record)
            decoder.end_block()
        except LogReadError:
            # The file's own error, from `records`; it is a ValueError, too.
            raise
        except ValueError as error:
            reason = f"its messages are not those of a simbridge log: {error}."
            raise LogReadError(path, reason) from error

    columns = decoder.samples.columns()
    for column in columns.values():
        column.setflags(write=False)
    return LogColumns(
        joint_names=header.joint_names,
        frame_id=header.frame_id,
        metadata=header.metadata,
        complete=decoder.complete,
        # The memory that the columns are parts of.
        arrays=decoder.samples.arrays,
        live={name: columns[name] for name in LIVE_FIELDS if name in columns},
        **{name: columns[name] for name in SAMPLE_FIELDS if name in columns},
    )


def _open_log(path: Path) -> BinaryIO:
    """Open a log.

    Raises:
        OSError: The system refuses.
        LogReadError: The path is not that of a regular file.
    """
    try:
        return open_file(path)
    except InputFileError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise LogReadError(path, f"{error.reason}.") from None


class _GrowingColumns:
    """Columns that grow by blocks of samples.

    Attributes:
        arrays: The memory that the columns are parts of.
    """

    def __init__(self) -> None:
        self.arrays = MappedArrays()
        self._columns: Columns = {}
        self._count = 0
        self._capacity = 0

    @property
    def empty(self) -> bool:
        """True until the first block is added."""
        return not self._columns

    def add(self, block: Columns) -> None:
        """Add the next samples; a block has the same columns each time."""
        begin = self._count
        end = begin + len(next(iter(block.values())))
        if self.empty or end > self._capacity:
            self._grow(max(2 * self._capacity, end), block)

        for name, values in block.items():
            self._columns[name][begin:end] = values
        self._count = end
        if begin // RELEASED != end // RELEASED:
            self.arrays.release()

    def _grow(self, capacity: int, block: Columns) -> None:
        """Make room for `capacity` samples, of the shapes and types of a block."""
        previous = self.arrays
        self.arrays = MappedArrays()
        self._capacity = capacity
        for name, values in block.items():
            column = self.arrays.empty((capacity, *values.shape[1:]), values.dtype)
            if name in self._columns:
                column[: self._count] = self._columns[name][: self._count]
            self._columns[name] = column
            previous.release()
            self.arrays.release()

    def columns(self) -> Columns:
        """Return the samples so far."""
        return {name: values[: self._count] for name, values in self._columns.items()}


class _LogDecoder:
    """Makes arrays of records: of a whole chunk at once where possible, else message by message.

    Attributes:
        layouts: The layout of each topic; known once the log's beginning has been read.
        samples: The samples so far, in order.
        complete: Whether the log's end has been seen.
    """

    def __init__(self) -> None:
        self.layouts: dict[str, Layout] = {}
        self.samples = _GrowingColumns()
        self.complete = False
        # The topics of the channels seen so far, by the channel's number.
        self._topics: dict[int, str] = {}
        # The messages of the sample that is being read, by topic.
        self._sample: dict[str, bytes] = {}
        # The messages of whole samples that are not arrays yet, by topic.
        self._messages: dict[str, list[bytes]] = {}
        # The decoder of whole chunks, once every topic has its channel.
        self._chunk_decoder: ChunkDecoder | None = None

    def decode_chunk(self, content: bytes) -> Columns | None:
        """Return the samples of a chunk that holds whole samples and nothing else."""
        if self._chunk_decoder is None or self._sample:
            return None
        return self._chunk_decoder.decode(content)

    def take(self, record: McapRecord | Columns) -> None:
        """Add the next record of the file, or the samples of its next chunk.

        Raises:
            ValueError: The messages are not those that the log's beginning describes.
        """
        if isinstance(record, dict):
            # The columns of a whole chunk: they come after the messages so far.
            self.end_block()
            self.samples.add(record)
        elif isinstance(record, Message):
            topic = self._topics.get(record.channel_id)
            if topic is not None:
                self._take_message(topic, record.data)
        elif isinstance(record, Channel):
            if record.topic in self.layouts:
                self._take_channel(record)
        elif isinstance(record, Footer):
            self.complete = True

    def _take_channel(self, channel: Channel) -> None:
        """Note the channel of a topic; with the last one, chunks can be decoded whole."""
        self._topics[channel.id] = channel.topic
        channels = {topic: number for number, topic in self._topics.items()}
        if channels.keys() == self.layouts.keys():
            self._chunk_decoder = ChunkDecoder(
                {channels[topic]: layout for topic, layout in self.layouts.items()}
            )

    def _take_message(self, topic: str, message: bytes) -> None:
        """Gather the messages of a sample; with the last one it is whole."""
        # The messages of a sample come in one order, so an incomplete sample is overwritten by the
        # next one.
        self._sample[topic] = message
        if len(self._sample) < len(self.layouts):
            return

        for name, data in self._sample.items():
            self._messages.setdefault(name, []).append(data)
        self._sample.clear()
        if len(self._messages["/status"]) == BLOCK:
            self.end_block()

    def end_block(self) -> None:
        """Turn the messages so far into arrays.

        Raises:
            ValueError: One has another size or layout than expected.
        """
        if not self._messages and not self.samples.empty:
            return
        columns: Columns = {}
        for topic, layout in self.layouts.items():
            columns |= layout.unpack(self._messages.pop(topic, []))
        self.samples.add(columns)


class ChunkDecoder(Records):
    """Decodes chunks that hold whole samples: a message on each channel, in one order, no more.

    Args:
        channels: The layout of each channel's messages, in the order of a sample.
    """

    def __init__(self, channels: Mapping[int, Layout]) -> None:
        # The bytes of one sample as a chunk holds them, with zeros where numbers are.
        template = b""
        # The numbers that are read, and the bytes that may differ without being read.
        columns = {}
        ignored = []
        for channel, layout in channels.items():
            # The envelope. MCAP counts a record's length from behind the length itself.
            length = ENVELOPE_BYTES - RECORD_PREFIX_BYTES + len(layout.template)
            begin = ENVELOPE_BEGIN.pack(Opcode.MESSAGE, length, channel)
            ignored.append(slice(len(template) + len(begin), len(template) + ENVELOPE_BYTES))
            template += begin.ljust(ENVELOPE_BYTES, b"\0")

            # The data. The stamp in its ROS header is not read: /status has it as a float64.
            for name, field in layout.columns.items():
                column = NumberField(field.dtype, len(template) + field.offset)
                if name in {"sec", "nanosec"}:
                    ignored.append(column.span)
                else:
                    columns[name] = column
            template += layout.template
        super().__init__(template, columns, ignored)


def _intact_records(
    file: BinaryIO, path: Path, decode: Callable[[bytes], Columns | None]
) -> Iterator[McapRecord | Columns]:
    """Yield the records of an MCAP file up to its end or the first incomplete or damaged one.

    Args:
        file: The open file.
        path: The file's path, for messages.
        decode: Makes columns of a chunk's content, or None (see `mcap_records`).

    Raises:
        OSError: The file cannot be read.
        LogReadError: Its chunks are much larger than the file.
    """
    try:
        yield from mcap_records(file, path, decode)
    except OSError:
        raise
    except InputFileError as error:
        raise LogReadError(path, f"{error.reason}.") from None
    except Exception:
        # Damaged bytes can fail anywhere in the parser and the decompressor; nothing after them can
        # be trusted.
        return


def _read_header(path: Path, records: Iterator[McapRecord | Columns]) -> LogHeader:
    """Read the beginning of a log: the records up to the description of its layout.

    Raises:
        LogReadError: The file does not begin as a log, or has an unknown layout.
    """
    header: dict[str, dict[str, str]] = {}
    for record in records:
        if isinstance(record, Metadata):
            header[record.name] = record.metadata
            if record.name == LAYOUT:
                break
    if METADATA not in header or LAYOUT not in header:
        raise LogReadError(path, "it is another kind of file, or the run was killed at its start.")

    layout = header[LAYOUT]
    version = layout.get("version", "")
    if version != LAYOUT_VERSION:
        reason = (
            f"it has layout {version}, and this version of simbridge reads layout {LAYOUT_VERSION}."
        )
        raise LogReadError(path, reason)

    try:
        return LogHeader(
            metadata=header[METADATA],
            joint_names=msgspec.json.decode(layout["joint_names"], type=tuple[str, ...]),
            frame_id=layout["frame_id"],
            live=layout.get("live") == "true",
        )
    except (KeyError, msgspec.MsgspecError) as error:
        raise LogReadError(path, f"its description of its layout is damaged: {error}.") from error
