"""The messages of a ROS bag from its beginning to its end: ROS 1 (.bag), ROS 2 (a directory, .db3) and MCAP.

Files come from anywhere, so they are read here and not by a library: each part is decompressed once and within a limit,
no index, message definition or name of a file in them is followed, and what they declare is not executed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

import zstandard
from mcap.records import Channel, Message, Schema

from simbridge.errors import InputFileError
from simbridge.files.decompression import Expander
from simbridge.files.mcap_records import mcap_records
from simbridge.files.reading import open_file, read_yaml
from simbridge.quoting import quoted

TF = "tf2_msgs/msg/TFMessage"
_BEGINNINGS = {
    ".bag": ("a bag of ROS 1", b"#ROSBAG V"),
    ".mcap": ("an MCAP file", b"\x89MCAP"),
    ".db3": ("an SQLite file", b"SQLite format 3"),
}

_Item = tuple[str, str, int, bytes | None]
"""Topic, type, time of recording (ns) and message; None where the topic is only declared."""


class Connection(NamedTuple):
    """A topic, the type and the number of its messages."""

    topic: str
    msgtype: str
    msgcount: int


class Bag:
    """An open bag: its topics (connections), and the messages (read) and their content (decode)."""

    def __init__(
        self, path: Path, read: Callable[[], Iterator[_Item]], decode: Callable[[bytes, str], Any]
    ) -> None:
        self.path, self._read, self._decode = path, read, decode
        counts: dict[tuple[str, str], int] = {}
        for topic, kind, _, message in read():
            counts[topic, kind] = counts.get((topic, kind), 0) + (message is not None)
        self.connections = [Connection(*key, count) for key, count in counts.items()]

    def deserialize(self, message: bytes, msgtype: str) -> Any:
        """The content of a message as an object."""
        return self._decode(message, msgtype)

    def messages(
        self, *, topic: str = "", kinds: Collection[str] = ()
    ) -> Iterator[tuple[str, int, int, Any]]:
        """Topic, number on it from 1, time of recording (ns) and content of each message of a topic or of some types,
        in the order of the file."""
        numbers: dict[str, int] = {}
        for name, kind, when, raw in self._read():
            if raw is None or not (name == topic or kind in kinds):
                continue
            number = numbers[name] = numbers.get(name, 0) + 1
            try:
                message = self.deserialize(raw, kind)
            except Exception as problem:
                reason = f"{name}, message {number} cannot be decoded: {problem}"
                raise InputFileError(self.path, reason) from problem
            yield name, number, when, message


@contextlib.contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """The bag in a file or directory; InputFileError if its bytes are not those of a bag."""
    # Start-up time: logs need only the records of MCAP.
    from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415

    suffix = path.suffix.lower()
    if not path.exists():
        raise InputFileError(path, "there is no such file")
    if path.is_dir() and not (path / "metadata.yaml").exists():
        raise InputFileError(
            path, "this is a directory without the metadata.yaml of a ROS 2 bag; name a file in it"
        )
    if suffix in _BEGINNINGS and not path.is_dir():
        with open_file(path) as file:
            first = file.read(16)
        if not first:
            raise InputFileError(path, "it is empty")
        what, beginning = _BEGINNINGS[suffix]
        if not first.startswith(beginning):
            reason = f"it does not begin like {what}: another kind of file, or its start is missing"
            raise InputFileError(path, reason)
    ros2 = get_typestore(Stores.ROS2_HUMBLE)
    try:
        if path.is_dir():
            with _directory(path) as read:
                yield Bag(path, read, ros2.deserialize_cdr)
        elif suffix == ".bag":
            ros1 = get_typestore(Stores.ROS1_NOETIC)
            ros1.register({TF: ros2.fielddefs[TF]})
            yield Bag(path, lambda: _ros1(path), ros1.deserialize_ros1)
        else:
            read_file = _mcap if suffix == ".mcap" else _sqlite
            yield Bag(path, lambda: read_file(path), ros2.deserialize_cdr)
    except InputFileError:
        raise
    except Exception as problem:
        # A broken bag can fail anywhere in the reader: struct, sqlite, decompression.
        reason = str(problem).strip() or type(problem).__name__
        raise InputFileError(
            path, f"cannot be read as a ROS bag: {reason.rstrip('.')}"
        ) from problem


def _mcap(path: Path) -> Iterator[_Item]:
    kinds: dict[int, str] = {}
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
    return name if encoding == "cdr" else f"{name} as {encoding}"


def _ros1(path: Path) -> Iterator[_Item]:
    topics: dict[bytes, tuple[str, str]] = {}
    expander = Expander(path)
    content_of: dict[bytes, Callable[[bytes], bytes]] = {
        b"none": bytes,
        b"lz4": expander.lz4,
        b"bz2": expander.bz2,
    }
    with open_file(path) as file:
        if file.readline(64) != b"#ROSBAG V2.0\n":
            raise ValueError("only bags of version 2.0 are read")
        for record in _ros1_records(file, os.fstat(file.fileno()).st_size):
            records = iter([record])
            if record[0][b"op"] == b"\x05":
                content = content_of[record[0][b"compression"]](record[1])
                records = _ros1_records(io.BytesIO(content), len(content))
            for fields, data in records:
                if fields[b"op"] == b"\x07":
                    kind = dict(_ros1_fields(data))[b"type"].decode().replace("/", "/msg/")
                    topics[fields[b"conn"]] = (fields[b"topic"].decode(), kind)
                    yield *topics[fields[b"conn"]], 0, None
                elif fields[b"op"] == b"\x02":
                    seconds, nanoseconds = struct.unpack("<II", fields[b"time"])
                    yield *topics[fields[b"conn"]], seconds * 10**9 + nanoseconds, data


def _ros1_records(stream: BinaryIO, size: int) -> Iterator[tuple[dict[bytes, bytes], bytes]]:
    """Header and data of each record from here to the end of a stream of this size, bytes."""

    def sized() -> bytes:
        (length,) = struct.unpack("<I", stream.read(4))
        if length > size - stream.tell():
            raise ValueError(f"it is cut off: a part of {length} bytes is not there")
        return stream.read(length)

    while stream.tell() < size:
        yield dict(_ros1_fields(sized())), sized()


def _ros1_fields(header: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(header):
        (length,) = struct.unpack_from("<I", header, at)
        name, _, value = header[at + 4 : at + 4 + length].partition(b"=")
        yield name, value
        at += 4 + length


def _sqlite(path: Path) -> Iterator[_Item]:
    open_file(path).close()
    expander = Expander(path)
    with contextlib.closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
    ) as database:
        for kind, sql in database.execute("SELECT type, sql FROM sqlite_master"):
            # Only what is stored: a view or a computed column has no end.
            if kind not in ("table", "index") or re.search(
                r"\b(AS|VIRTUAL)\b", sql or "", re.IGNORECASE
            ):
                raise ValueError(f"it has a {kind} that is computed")
        topics = {}
        for number, name, kind, encoding in database.execute(
            "SELECT id, name, type, serialization_format FROM topics"
        ):
            topics[number] = (str(name), _kind(str(kind), encoding))
            yield *topics[number], 0, None
        for number, when, data in database.execute(
            "SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp"
        ):
            yield *topics[number], int(when), expander.spend(bytes(data))


@contextlib.contextmanager
def _directory(path: Path) -> Iterator[Callable[[], Iterator[_Item]]]:
    """The messages of a directory of ROS 2 with its metadata.yaml."""
    metadata = path / "metadata.yaml"
    about = read_yaml(metadata)["rosbag2_bagfile_information"]
    mode, codec = (
        str(about.get(f"compression_{name}") or "").lower() for name in ("mode", "format")
    )
    if mode in ("file", "message") and codec != "zstd":
        raise InputFileError(
            metadata, f"the compression {quoted(codec)} is not known, only zstd is"
        )
    read_file = {"sqlite3": _sqlite, "mcap": _mcap}[about["storage_identifier"]]
    files = []
    for name in map(PurePath, map(str, about["relative_file_paths"])):
        # Up to version 3 a name begins with that of the directory.
        file = path / name.name
        if (
            name.is_absolute()
            or ".." in name.parts
            or not 0 < len(name.parts) <= 2
            or file.is_symlink()
        ):
            raise InputFileError(
                metadata, f"it names {quoted(name)}, which is not a file in its directory"
            )
        if file in files:
            raise InputFileError(metadata, f"it names {quoted(name)} twice")
        files.append(file)
    with contextlib.ExitStack() as stack:
        if mode == "file":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="simbridge-bag"))
            files = [_decompressed(file, Path(folder, file.stem)) for file in files]

        def read() -> Iterator[_Item]:
            for file in files:
                expander = Expander(file)
                for topic, kind, when, data in read_file(file):
                    yield (
                        topic,
                        kind,
                        when,
                        expander.zstd(data) if data is not None and mode == "message" else data,
                    )

        yield read


def _decompressed(file: Path, target: Path) -> Path:
    with open_file(file) as source, target.open("wb") as output:
        compressed = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        output.writelines(Expander(file).pieces(compressed))
    return target
