"""Read a log, also one that is still being written, was cut off, or was rewritten by another tool.

A chunk of our own holds the same messages again and again, each with the same bytes except for its numbers, so it is
one numpy array: an hour is read a hundred times faster than message by message, which is how all other chunks are read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from mcap.opcode import Opcode
from mcap.records import Channel, Footer, McapRecord, Message, Metadata
from numpy.typing import NDArray

from simbridge.errors import InputFileError, LogReadError
from simbridge.files.decompression import mcap_records
from simbridge.files.mapped_arrays import MappedArrays
from simbridge.files.reading import open_file
from simbridge.recording import cdr
from simbridge.recording.log_layout import LAYOUT, LAYOUT_VERSION, METADATA, layouts
from simbridge.recording.samples import LIVE_FIELDS, SAMPLE_FIELDS, LogColumns

# Samples after which what was read is no longer in use.
RELEASED = 50_000
# Messages are gathered for so many samples before they become arrays: bounds the memory of reading.
BLOCK = 2048

# An MCAP message before its data: opcode, length, channel; sequence number, log time, publish time.
_BEGIN = struct.Struct("<BQH")
_HEAD = _BEGIN.size + struct.calcsize("<IQQ")

Columns = dict[str, NDArray[Any]]


def read_log(path: str | Path) -> LogColumns:
    """Read a log: all samples before its end, or before the place where it was cut off or damaged.

    Raises:
        LogReadError: The file is not a log, or was cut off before the first sample.
        OSError: The file cannot be opened or read.
    """
    path = Path(path)
    with _opened(path) as file:
        decoder = _Decoder()
        records = _intact_records(file, path, decoder.own_chunk)
        metadata, joint_names, frame_id, live = _read_header(path, records)
        decoder.layouts = layouts(joint_names, frame_id, live=live)
        try:
            for record in records:
                decoder.take(record)
            decoder.end_block()
        except LogReadError:
            raise
        except ValueError as error:
            raise LogReadError(
                path, f"its messages are not those of a simbridge log: {error}."
            ) from error
    found = decoder.samples.columns()
    columns = {name: found[name] for name in SAMPLE_FIELDS if name in found}
    more = {name: found[name] for name in LIVE_FIELDS if name in found}
    for column in (*columns.values(), *more.values()):
        column.setflags(write=False)
    return LogColumns(
        joint_names=joint_names,
        frame_id=frame_id,
        metadata=metadata,
        complete=decoder.complete,
        live=more,
        arrays=decoder.samples.arrays,
        **columns,
    )


def _opened(path: Path) -> BinaryIO:
    try:
        return open_file(path)
    except InputFileError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise LogReadError(path, f"{error.reason}.") from None


class _Samples:
    """Columns that grow by blocks of samples."""

    def __init__(self) -> None:
        self.arrays = MappedArrays()
        self._columns: Columns = {}
        self._count = self._room = 0

    @property
    def empty(self) -> bool:
        """Whether there was no block yet."""
        return not self._columns

    def add(self, block: Columns) -> None:
        """The next samples: the same columns each time."""
        begin, end = self._count, self._count + len(next(iter(block.values())))
        if self.empty or end > self._room:
            self._grow(max(2 * self._room, end), block)
        for name, values in block.items():
            self._columns[name][begin:end] = values
        self._count = end
        if begin // RELEASED != end // RELEASED:
            self.arrays.release()

    def _grow(self, room: int, block: Columns) -> None:
        before = self.arrays
        self.arrays, self._room = MappedArrays(), room
        for name, values in block.items():
            grown = self.arrays.empty((room, *values.shape[1:]), values.dtype)
            if name in self._columns:
                grown[: self._count] = self._columns[name][: self._count]
            self._columns[name] = grown
            before.release()
            self.arrays.release()

    def columns(self) -> Columns:
        """The samples so far."""
        return {name: values[: self._count] for name, values in self._columns.items()}


class _Decoder:
    """From records to arrays: a whole chunk at once where possible, else message by message.

    Attributes:
        layouts: See `simbridge.recording.log_layout.layouts`; known once the log's beginning has been read.
        samples: The samples so far, in order.
        complete: Whether the log's end has been seen.
    """

    def __init__(self) -> None:
        self.layouts: dict[str, cdr.Layout] = {}
        self.samples = _Samples()
        self.complete = False
        self._topics: dict[int, str] = {}
        self._sample: dict[str, bytes] = {}
        self._rows: dict[str, list[bytes]] = {}
        self._own: OwnChunks | None = None

    def own_chunk(self, content: bytes) -> Columns | None:
        """The samples of a chunk that holds whole samples and nothing else."""
        return None if self._own is None or self._sample else self._own.decode(content)

    def take(self, record: McapRecord | Columns) -> None:
        """The next record, or the samples of the next chunk.

        Raises:
            ValueError: The messages are not those that the log's beginning describes.
        """
        if isinstance(record, dict):
            self.end_block()
            self.samples.add(record)
        elif isinstance(record, Message):
            if record.channel_id in self._topics:
                self._take_message(self._topics[record.channel_id], record.data)
        elif isinstance(record, Channel):
            if record.topic in self.layouts:
                self._topics[record.id] = record.topic
                channels = {topic: number for number, topic in self._topics.items()}
                if channels.keys() == self.layouts.keys():
                    self._own = OwnChunks(
                        {channels[topic]: layout for topic, layout in self.layouts.items()}
                    )
        elif isinstance(record, Footer):
            self.complete = True

    def _take_message(self, topic: str, message: bytes) -> None:
        self._sample[topic] = message
        # The messages of a sample come in one order, so an incomplete sample is overwritten by the next one.
        if len(self._sample) == len(self.layouts):
            for name, data in self._sample.items():
                self._rows.setdefault(name, []).append(data)
            self._sample.clear()
            if len(self._rows["/status"]) == BLOCK:
                self.end_block()

    def end_block(self) -> None:
        """Turn the messages so far into arrays.

        Raises:
            ValueError: One has another size or layout than expected.
        """
        if self._rows or self.samples.empty:
            columns: Columns = {}
            for topic, layout in self.layouts.items():
                columns |= layout.unpack(self._rows.pop(topic, []))
            self.samples.add(columns)


class OwnChunks(cdr.Records):
    """Decodes chunks that hold whole samples: a message on each channel, in one order, and nothing else.

    Args:
        channels: The layout of each channel's messages, in the order of a sample.
    """

    def __init__(self, channels: Mapping[int, cdr.Layout]) -> None:
        sample, columns, varying = b"", {}, []
        for channel, layout in channels.items():
            varying.append(slice(len(sample) + _BEGIN.size, len(sample) + _HEAD))
            sample += _BEGIN.pack(Opcode.MESSAGE, _HEAD - 9 + len(layout.template), channel).ljust(
                _HEAD, b"\0"
            )
            for name, (kind, offset) in layout.columns.items():
                if name in {"sec", "nanosec"}:
                    varying.append(
                        slice(len(sample) + offset, len(sample) + offset + kind.itemsize)
                    )
                else:
                    columns[name] = (kind, len(sample) + offset)
            sample += layout.template
        super().__init__(sample, columns, varying)


def _intact_records(
    file: BinaryIO, path: Path, decode: Callable[[bytes], Columns | None]
) -> Iterator[McapRecord | Columns]:
    """The records of an MCAP file, see `mcap_records`, up to its end or the first incomplete or damaged one.

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
        # Damaged bytes can fail anywhere in the parser and the decompressor; nothing after them can be trusted.
        return


def _read_header(
    path: Path, records: Iterator[McapRecord | Columns]
) -> tuple[dict[str, str], tuple[str, ...], str, bool]:
    """Metadata, joint names, frame and whether it is of a live session, from a log's start."""
    header: dict[str, dict[str, str]] = {}
    for record in records:
        if isinstance(record, Metadata):
            header[record.name] = record.metadata
            if record.name == LAYOUT:
                break
    if METADATA not in header or LAYOUT not in header:
        raise LogReadError(path, "it is another kind of file, or the run was killed as it began.")
    layout = header[LAYOUT]
    version = layout.get("version", "")
    if version != LAYOUT_VERSION:
        reason = (
            f"it has layout {version}, and this version of simbridge reads layout {LAYOUT_VERSION}."
        )
        raise LogReadError(path, reason)
    try:
        names = msgspec.json.decode(layout["joint_names"], type=tuple[str, ...])
        return header[METADATA], names, layout["frame_id"], layout.get("live") == "true"
    except (KeyError, msgspec.MsgspecError) as error:
        raise LogReadError(path, f"its description of its layout is damaged: {error}.") from error
