"""The messages in the files of ROS bags: ROS 1 (.bag), ROS 2 (a directory, .db3) and MCAP.

Files come from anywhere, so they are read here and not by a library: each part is decompressed once
and within a limit, no index, message definition or name of a file in them is followed, and what
they declare is not executed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import zstandard
from mcap.records import Channel, Message, Schema

from simbridge.errors import InputFileError
from simbridge.files.decompression import Expander
from simbridge.files.mcap_records import mcap_records
from simbridge.files.reading import open_file, read_yaml
from simbridge.quoting import quoted

BagItem = tuple[str, str, int, bytes | None]
"""Topic, type, time of recording (ns) and message; None if the topic is only declared."""

# How a bag of ROS 1 begins.
ROS1_MAGIC = b"#ROSBAG V2.0\n"
# The kinds of its records, by the field "op" of their headers.
ROS1_MESSAGE = b"\x02"
ROS1_CHUNK = b"\x05"
ROS1_CONNECTION = b"\x07"

# A view or a computed column, which has no end.
_COMPUTED_SQL = re.compile(r"\b(AS|VIRTUAL)\b", re.IGNORECASE)


def read_mcap(path: Path) -> Iterator[BagItem]:
    """Iterate over the messages of an MCAP file, and over the topics that it declares."""
    # The type of each schema, by its number.
    kinds: dict[int, str] = {}
    # Name and type of each channel's topic, by the channel's number.
    topics: dict[int, tuple[str, str]] = {}
    with open_file(path) as file:
        for record in mcap_records(file, path, lambda content: None):
            if isinstance(record, Schema):
                kinds[record.id] = record.name
            elif isinstance(record, Channel):
                kind = _kind(kinds.get(record.schema_id, "no type"), record.message_encoding)
                topics[record.id] = (record.topic, kind)
                yield *topics[record.id], 0, None
            elif isinstance(record, Message):
                yield *topics[record.channel_id], record.log_time, record.data


def _kind(name: str, encoding: str) -> str:
    """Return the type of a topic's messages, with an encoding that is not ROS 2's."""
    return name if encoding == "cdr" else f"{name} as {encoding}"


def read_ros1(path: Path) -> Iterator[BagItem]:
    """Iterate over the messages of a bag of ROS 1."""
    topics: dict[bytes, tuple[str, str]] = {}
    with open_file(path) as file:
        if file.readline(64) != ROS1_MAGIC:
            raise ValueError("only bags of version 2.0 are read")
        for fields, data in _all_ros1_records(file, path):
            if fields[b"op"] == ROS1_CONNECTION:
                kind = dict(_ros1_fields(data))[b"type"].decode().replace("/", "/msg/")
                topics[fields[b"conn"]] = (fields[b"topic"].decode(), kind)
                yield *topics[fields[b"conn"]], 0, None
            elif fields[b"op"] == ROS1_MESSAGE:
                seconds, nanoseconds = struct.unpack("<II", fields[b"time"])
                yield *topics[fields[b"conn"]], seconds * 10**9 + nanoseconds, data


def _all_ros1_records(file: BinaryIO, path: Path) -> Iterator[tuple[dict[bytes, bytes], bytes]]:
    """Iterate over header and data of each record, those of chunks in their places."""
    expander = Expander(path)
    decompress: dict[bytes, Callable[[bytes], bytes]] = {
        b"none": bytes,
        b"lz4": expander.lz4,
        b"bz2": expander.bz2,
    }
    for fields, data in _ros1_records(file, os.fstat(file.fileno()).st_size):
        if fields[b"op"] == ROS1_CHUNK:
            content = decompress[fields[b"compression"]](data)
            yield from _ros1_records(io.BytesIO(content), len(content))
        else:
            yield fields, data


def _ros1_records(stream: BinaryIO, size: int) -> Iterator[tuple[dict[bytes, bytes], bytes]]:
    """Iterate over header and data of each record from here to the end of a stream.

    Args:
        stream: The bag, or a chunk of it.
        size: Size of the stream, bytes.
    """

    def read_sized() -> bytes:
        (length,) = struct.unpack("<I", stream.read(4))
        if length > size - stream.tell():
            raise ValueError(f"it is truncated: a part of {length} bytes is missing")
        return stream.read(length)

    while stream.tell() < size:
        header = read_sized()
        yield dict(_ros1_fields(header)), read_sized()


def _ros1_fields(header: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over name and value of each field of a header."""
    begin = 0
    while begin < len(header):
        (length,) = struct.unpack_from("<I", header, begin)
        end = begin + 4 + length
        name, _, value = header[begin + 4 : end].partition(b"=")
        yield name, value
        begin = end


def read_sqlite(path: Path) -> Iterator[BagItem]:
    """Iterate over the messages of an SQLite file of ROS 2."""
    open_file(path).close()
    expander = Expander(path)
    address = f"{path.absolute().as_uri()}?immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        for kind, sql in database.execute("SELECT type, sql FROM sqlite_master"):
            # Only what is stored.
            if kind not in ("table", "index") or _COMPUTED_SQL.search(sql or ""):
                raise ValueError(f"it contains a computed {kind}")

        topics = {}
        query = "SELECT id, name, type, serialization_format FROM topics"
        for number, name, kind, encoding in database.execute(query):
            topics[number] = (str(name), _kind(str(kind), encoding))
            yield *topics[number], 0, None

        query = "SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp"
        for number, recorded, data in database.execute(query):
            yield *topics[number], int(recorded), expander.spend(bytes(data))


@contextlib.contextmanager
def open_directory(path: Path) -> Iterator[Callable[[], Iterator[BagItem]]]:
    """Open a directory of ROS 2 with its metadata.yaml.

    Yields:
        A function that iterates over the messages.
    """
    metadata = path / "metadata.yaml"
    facts = read_yaml(metadata)["rosbag2_bagfile_information"]
    mode = str(facts.get("compression_mode") or "").lower()
    codec = str(facts.get("compression_format") or "").lower()
    if mode in ("file", "message") and codec != "zstd":
        reason = f"the compression {quoted(codec)} is not supported; only zstd is"
        raise InputFileError(metadata, reason)
    read_file = {"sqlite3": read_sqlite, "mcap": read_mcap}[facts["storage_identifier"]]
    files = _files_in(path, facts)

    with contextlib.ExitStack() as stack:
        if mode == "file":
            temporary = tempfile.TemporaryDirectory(prefix="simbridge-bag")
            folder = stack.enter_context(temporary)
            files = [_decompress_file(file, Path(folder, file.stem)) for file in files]

        def read() -> Iterator[BagItem]:
            for file in files:
                expander = Expander(file)
                for topic, kind, recorded, data in read_file(file):
                    if data is not None and mode == "message":
                        yield topic, kind, recorded, expander.zstd(data)
                    else:
                        yield topic, kind, recorded, data

        yield read


def _files_in(directory: Path, facts: dict[str, Any]) -> list[Path]:
    """Return the files of a ROS 2 bag, in the order of their recording.

    The bag's metadata.yaml names them. It may come from anywhere, so names that lead out of the
    bag's directory are refused.

    Args:
        directory: The directory of the bag.
        facts: The content of metadata.yaml.

    Raises:
        InputFileError: A name is not that of a file in the directory, or is there twice.
    """
    metadata = directory / "metadata.yaml"
    files: list[Path] = []
    for text in facts["relative_file_paths"]:
        name = PurePath(str(text))
        # Metadata up to version 3 names files as directory/file, later ones by the file alone.
        is_one_or_two_parts = len(name.parts) in {1, 2}
        file = directory / name.name
        leads_elsewhere = name.is_absolute() or ".." in name.parts or file.is_symlink()
        if leads_elsewhere or not is_one_or_two_parts:
            reason = f"it refers to {quoted(name)}, which is not a file in its directory"
            raise InputFileError(metadata, reason)

        if file in files:
            raise InputFileError(metadata, f"it refers to {quoted(name)} twice")
        files.append(file)
    return files


def _decompress_file(file: Path, target: Path) -> Path:
    """Decompress a file of zstd, and return the target."""
    with open_file(file) as source, target.open("wb") as output:
        compressed = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        output.writelines(Expander(file).pieces(compressed))
    return target
