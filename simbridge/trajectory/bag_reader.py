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
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

import zstandard
from mcap.records import Channel, Message, Schema
from rosbags.typesys import Stores, get_typestore

from simbridge.errors import InputFileError
from simbridge.robot.input_file import open_file, read_yaml
from simbridge.trajectory.mcap_records import Expander, mcap_records

TF = "tf2_msgs/msg/TFMessage"

_Item = tuple[str, str, int, bytes | None]
"""Topic, type, time of recording (ns) and message; None where the topic is only declared."""


class Connection(NamedTuple):
    """A topic, the type and the number of its messages."""

    topic: str
    msgtype: str
    msgcount: int


class Bag:
    """An open bag.

    Args:
        read: The messages in the order of the file, each time from the beginning.
        decode: A message of a type as an object.

    Attributes:
        connections: The topics.
    """

    def __init__(self, read: Callable[[], Iterator[_Item]], decode: Callable[[bytes, str], Any]) -> None:
        self._read, self._decode = read, decode
        counts: dict[tuple[str, str], int] = {}
        for topic, kind, _, message in read():
            counts[topic, kind] = counts.get((topic, kind), 0) + (message is not None)
        self.connections = [Connection(*key, count) for key, count in counts.items()]

    def deserialize(self, message: bytes, msgtype: str) -> Any:
        """The content of a message as an object."""
        return self._decode(message, msgtype)

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Topic, time of recording (ns) and content of each message of these topics, in the order of the file."""
        wanted = {connection[:2]: connection for connection in connections}
        for topic, kind, when, message in self._read():
            if message is not None and (topic, kind) in wanted:
                yield wanted[topic, kind], when, message


@contextlib.contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """The bag in a file or directory.

    Raises:
        InputFileError: A file of it cannot be opened, or is much larger decompressed than it is.
        Exception: Anything else where its bytes are not those of a bag.
    """
    ros2 = get_typestore(Stores.ROS2_HUMBLE)
    if path.suffix.lower() == ".bag" and not path.is_dir():
        ros1 = get_typestore(Stores.ROS1_NOETIC)
        ros1.register({TF: ros2.fielddefs[TF]})
        yield Bag(lambda: _ros1(path), lambda data, kind: ros1.deserialize_ros1(data, kind))
    elif path.is_dir():
        with _directory(path) as read:
            yield Bag(read, lambda data, kind: ros2.deserialize_cdr(data, kind))
    else:
        read_file = _mcap if path.suffix.lower() == ".mcap" else _sqlite
        yield Bag(lambda: read_file(path), lambda data, kind: ros2.deserialize_cdr(data, kind))


def _ros1(path: Path) -> Iterator[_Item]:
    topics: dict[bytes, tuple[str, str]] = {}
    with open_file(path) as file:
        expander = Expander(path)
        content_of: dict[bytes, Callable[[bytes], bytes]] = {b"none": bytes, b"lz4": expander.lz4, b"bz2": expander.bz2}
        if file.readline(64) != b"#ROSBAG V2.0\n":
            raise ValueError("only bags of version 2.0 are read")
        for record in _ros1_records(file, os.fstat(file.fileno()).st_size):
            fields, data = record
            inside: Iterator[tuple[Mapping[bytes, bytes], bytes]] = iter([record])
            if fields[b"op"] == b"\x05":
                content = content_of[fields[b"compression"]](data)
                inside = _ros1_records(io.BytesIO(content), len(content))
            for part, content in inside:
                if part[b"op"] == b"\x07":
                    kind = dict(_ros1_fields(content))[b"type"].decode()
                    topics[part[b"conn"]] = (part[b"topic"].decode(), kind.replace("/", "/msg/"))
                    yield *topics[part[b"conn"]], 0, None
                elif part[b"op"] == b"\x02":
                    seconds, nanoseconds = struct.unpack("<II", part[b"time"])
                    yield *topics[part[b"conn"]], seconds * 10**9 + nanoseconds, content


def _ros1_records(stream: BinaryIO, size: int) -> Iterator[tuple[Mapping[bytes, bytes], bytes]]:
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


def _mcap(path: Path) -> Iterator[_Item]:
    kinds: dict[int, str] = {}
    topics: dict[int, tuple[str, str]] = {}
    with open_file(path) as file:
        for record in mcap_records(file, path):
            if isinstance(record, Schema):
                kinds[record.id] = record.name
            elif isinstance(record, Channel):
                kind = kinds.get(record.schema_id, "no type")
                encoded = "" if record.message_encoding == "cdr" else f" as {record.message_encoding}"
                topics[record.id] = (record.topic, kind + encoded)
                yield *topics[record.id], 0, None
            elif isinstance(record, Message):
                yield *topics[record.channel_id], record.log_time, record.data


def _sqlite(path: Path) -> Iterator[_Item]:
    open_file(path).close()
    expander = Expander(path)
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as database:
        for kind, sql in database.execute("SELECT type, sql FROM sqlite_master"):
            # Only what is stored: a view or a computed column has no end.
            if kind not in ("table", "index") or re.search(r"\b(AS|VIRTUAL)\b", sql or "", re.IGNORECASE):
                raise ValueError(f"it has a {kind} that is computed")
        topics = {}
        for number, *found, encoding in database.execute("SELECT id, name, type, serialization_format FROM topics"):
            name, kind = map(str, found)
            topics[number] = (name, kind if encoding == "cdr" else f"{kind} as {encoding}")
            yield *topics[number], 0, None
        for number, when, data in database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp"):
            expander.spend(len(data))
            yield *topics[number], int(when), bytes(data)


@contextlib.contextmanager
def _directory(path: Path) -> Iterator[Callable[[], Iterator[_Item]]]:
    """The messages of a directory of ROS 2 with its metadata.yaml."""
    metadata = path / "metadata.yaml"
    about = read_yaml(metadata)["rosbag2_bagfile_information"]
    mode, codec = (str(about.get(f"compression_{name}") or "").lower() for name in ("mode", "format"))
    if mode not in ("", "none", "storage") and codec != "zstd":
        raise InputFileError(metadata, f"the compression '{codec}' is not known, only zstd is")
    read_file = {"sqlite3": _sqlite, "mcap": _mcap}[about["storage_identifier"]]
    with contextlib.ExitStack() as stack:
        files = [_inside(path, str(name)) for name in about["relative_file_paths"]]
        if len(set(files)) < len(files):
            raise InputFileError(metadata, "it names a file twice")
        if mode == "file":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="simbridge-bag")))
            files = [_decompressed(file, folder / f"{i}{Path(file.stem).suffix}") for i, file in enumerate(files)]

        def read() -> Iterator[_Item]:
            for file in files:
                expander = Expander(file)
                for topic, kind, when, message in read_file(file):
                    if message is not None and mode == "message":
                        message = expander.zstd(message)
                    yield topic, kind, when, message

        yield read


def _inside(folder: Path, name: str) -> Path:
    """The file of this name in a bag's directory. Up to version 3 a name begins with that of the directory.

    Raises:
        InputFileError: It names a file elsewhere.
    """
    parts, file = PurePath(name).parts, folder / PurePath(name).name
    if PurePath(name).is_absolute() or ".." in parts or not 0 < len(parts) <= 2 or file.is_symlink():
        raise InputFileError(folder / "metadata.yaml", f"it names '{name}', which is not a file in its directory")
    return file


def _decompressed(file: Path, target: Path) -> Path:
    with open_file(file) as source, target.open("wb") as output:
        Expander(file).copy(zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True), output)
    return target
