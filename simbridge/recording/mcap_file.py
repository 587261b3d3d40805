"""An MCAP file whose chunks come whole: what mcap's own writer puts together message by message.

The records and their order are those of the specification (https://mcap.dev/spec); mcap's own classes write them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from numpy.typing import NDArray

from simbridge.recording.log_file import LogFile

MAGIC = bytes([0x89, *b"MCAP0\r\n"])
COMPRESSION = "zstd"
# Of an arm's noisy numbers it makes 4 % less than the next lower level, higher ones hardly any less.
LEVEL = 4
# What the footer's checksum covers of the footer itself: opcode, length, and the two places that it names.
_FOOTER = struct.Struct("<BQQQ")
# A message index before its entries: opcode, length, channel, length of the entries; an entry is time and place.
_INDEX = struct.Struct("<BQHI")
_ENTRY = np.dtype([("time", "<u8"), ("place", "<u8")])


class McapFile:
    """Writes one MCAP file.

    Args:
        file: It is empty, and closed by its owner.
        profile: Of the whole file, such as "ros2".
        metadata: Names of metadata records and what they hold; written first.
        schemas, channels: Written next, before any message.
        indexed: Whether messages can be found by their time without reading all of them.

    Raises:
        LogWriteError: From every method.
    """

    def __init__(
        self,
        file: LogFile,
        *,
        profile: str,
        metadata: Mapping[str, dict[str, str]],
        schemas: Sequence[Schema],
        channels: Sequence[Channel],
        indexed: bool,
    ) -> None:
        self._file, self._schemas, self._channels, self._indexed = file, schemas, channels, indexed
        self._metadata: list[MetadataIndex] = []
        self._chunks: list[ChunkIndex] = []
        # Chunks, messages of each channel, and the first and last log time, ns.
        self._count, self._messages, self._first, self._last = 0, 0, 0, 0
        self._zstd = zstandard.ZstdCompressor(level=LEVEL)
        records = RecordBuilder()
        file.write(MAGIC)
        Header(profile, "simbridge").write(records)
        file.write(records.end())
        for name, content in metadata.items():
            place = file.tell()
            Metadata(name=name, metadata=content).write(records)
            self._metadata.append(MetadataIndex(offset=place, length=records.count, name=name))
            file.write(records.end())
        for record in (*schemas, *channels):
            record.write(records)
        file.write(records.end())

    def write_chunk(self, content: bytes, times: NDArray[np.uint64], places: Mapping[int, NDArray[np.uint64]]) -> None:
        """Write messages.

        Args:
            content: Their records.
            times: Log times (T,) in ns of each channel's messages; the same for all channels.
            places: Of each channel, where in the content its messages (T,) begin, in bytes.
        """
        first, last = int(times.min()), int(times.max())
        records = RecordBuilder()
        data = self._zstd.compress(content)
        begin = self._file.tell()
        Chunk(
            compression=COMPRESSION,
            data=data,
            message_start_time=first,
            message_end_time=last,
            uncompressed_crc=zlib.crc32(content),
            uncompressed_size=len(content),
        ).write(records)
        chunk = records.end()
        index, offsets = b"", {}
        if self._indexed:
            for channel, place in places.items():
                offsets[channel] = begin + len(chunk) + len(index)
                entries = np.empty(len(times), _ENTRY)
                entries["time"], entries["place"] = times, place
                index += _INDEX.pack(Opcode.MESSAGE_INDEX, _INDEX.size - 9 + entries.nbytes, channel, entries.nbytes)
                index += entries.tobytes()
            self._chunks.append(
                ChunkIndex(
                    message_start_time=first,
                    message_end_time=last,
                    chunk_start_offset=begin,
                    chunk_length=len(chunk),
                    message_index_offsets=offsets,
                    message_index_length=len(index),
                    compression=COMPRESSION,
                    compressed_size=len(data),
                    uncompressed_size=len(content),
                )
            )
        self._file.write(chunk + index)
        self._first = min(first, self._first) if self._count else first
        self._last = max(last, self._last)
        self._count, self._messages = self._count + 1, self._messages + len(times)

    def finish(self) -> None:
        """Write the summary and the end of the file."""
        records = RecordBuilder()
        DataEnd(0).write(records)
        self._file.write(records.end())
        start = self._file.tell()
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts={channel.id: self._messages for channel in self._channels},
            chunk_count=self._count,
            message_count=self._messages * len(self._channels),
            metadata_count=len(self._metadata),
            message_start_time=self._first,
            message_end_time=self._last,
            schema_count=len(self._schemas),
        )
        groups = {
            Opcode.SCHEMA: self._schemas,
            Opcode.CHANNEL: self._channels,
            Opcode.STATISTICS: [statistics],
            Opcode.CHUNK_INDEX: self._chunks,
            Opcode.METADATA_INDEX: self._metadata,
        }
        offsets: list[SummaryOffset] = []
        for opcode, group in groups.items():
            place = records.count
            for record in group:
                record.write(records)  # type: ignore[attr-defined]
            if group:
                offsets.append(SummaryOffset(opcode, start + place, records.count - place))
        offsets_start = start + records.count
        for offset in offsets:
            offset.write(records)
        content = records.end()
        crc = zlib.crc32(_FOOTER.pack(Opcode.FOOTER, 20, start, offsets_start), zlib.crc32(content))
        Footer(summary_start=start, summary_offset_start=offsets_start, summary_crc=crc).write(records)
        self._file.write(content + records.end() + MAGIC)
