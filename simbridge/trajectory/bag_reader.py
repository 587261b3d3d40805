"""The messages of a ROS bag from its beginning to its end, decoded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mcap.exceptions import EndOfFile

from simbridge.errors import InputFileError
from simbridge.files.reading import open_file
from simbridge.trajectory.bag_formats import (
    BagItem,
    open_directory,
    read_mcap,
    read_ros1,
    read_sqlite,
)

TF = "tf2_msgs/msg/TFMessage"
# What the files of bags are, and how they begin, by their suffixes.
BEGINNINGS = {
    ".bag": ("a bag of ROS 1", b"#ROSBAG V"),
    ".mcap": ("an MCAP file", b"\x89MCAP"),
    ".db3": ("an SQLite file", b"SQLite format 3"),
}
LONGEST_BEGINNING = 16
# Programs that restore what a broken bag still has, by the suffixes of its files.
RECOVERY_COMMANDS = {
    ".bag": "rosbag reindex",
    ".mcap": "mcap recover",
    ".db3": "sqlite3 FILE .recover",
}

Decode = Callable[[bytes, str], Any]
"""Returns the content of a message of a type as an object."""

Definitions = Mapping[str, Sequence[str]]
"""Definitions of types by their names: one for each generation of the type."""

NO_DEFINITIONS: Definitions = {}


class Connection(NamedTuple):
    """The messages of a type on a topic.

    Attributes:
        topic: Name of the topic.
        msgtype: The type.
        msgcount: The number of messages.
    """

    topic: str
    msgtype: str
    msgcount: int


class Bag:
    """An open bag.

    Args:
        path: File or directory of the bag.
        read: Iterates over its messages.
        decode: Decodes a message.

    Attributes:
        path: File or directory of the bag.
        connections: Connections of the bag: its topics, with their types.
    """

    def __init__(self, path: Path, read: Callable[[], Iterator[BagItem]], decode: Decode) -> None:
        self.path = path
        self._read = read
        self._decode = decode

        counts: dict[tuple[str, str], int] = {}
        for topic, kind, _, message in read():
            is_message = message is not None
            counts[topic, kind] = counts.get((topic, kind), 0) + is_message
        self.connections = [Connection(*key, count) for key, count in counts.items()]

    def deserialize(self, message: bytes, msgtype: str) -> Any:
        """Return the content of a message as an object."""
        return self._decode(message, msgtype)

    def messages(
        self, *, topic: str = "", topics: Collection[str] = (), kinds: Collection[str] = ()
    ) -> Iterator[tuple[str, int, int, Any]]:
        """Iterate over the messages of topics, or of some types, in the order of the file.

        Args:
            topic: Name of a topic; "" for none.
            topics: Names of more topics.
            kinds: Types of messages that are read from every topic.

        Yields:
            Topic, number on it from 1, time of recording (ns) and content of each message.

        Raises:
            InputFileError: A message cannot be decoded.
        """
        numbers: dict[str, int] = {}
        for name, kind, recorded, data in self._read():
            is_wanted = name == topic or name in topics or kind in kinds
            if data is None or not is_wanted:
                continue
            number = numbers.get(name, 0) + 1
            numbers[name] = number
            try:
                message = self.deserialize(data, kind)
            except Exception as problem:
                reason = f"{name}, message {number} cannot be decoded: {problem}"
                raise InputFileError(self.path, reason) from problem
            yield name, number, recorded, message


@contextlib.contextmanager
def open_bag(path: Path, definitions: Definitions = NO_DEFINITIONS) -> Iterator[Bag]:
    """Open the bag in a file or directory.

    Args:
        path: The file or directory.
        definitions: Types of messages that are read besides the standard ones.

    Raises:
        InputFileError: There is no bag, or its bytes are not those of a bag.
    """
    _check_beginning(path)
    suffix = path.suffix.lower()
    is_ros1 = suffix == ".bag" and not path.is_dir()
    with contextlib.ExitStack() as stack:
        with _refuse_broken(path):
            if path.is_dir():
                read = stack.enter_context(open_directory(path))
            elif is_ros1:
                read = partial(read_ros1, path)
            else:
                read = partial(read_mcap if suffix == ".mcap" else read_sqlite, path)
        decode = _decoder(definitions, is_ros1=is_ros1)
        yield Bag(path, partial(_read_items, path, read), decode)


def _decoder(definitions: Definitions, *, is_ros1: bool) -> Decode:
    """Return the function that decodes messages of the standard types, and of some others.

    A type with several definitions is decoded by the first one that fits the message's length: no
    two of a message fit the same bytes.

    Args:
        definitions: The definitions of other types.
        is_ros1: Whether the messages are those of ROS 1.
    """
    # rosbags takes long to import, and those who read logs need only this module's MCAP records.
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: PLC0415

    def decode_with(definition: str, name: str) -> Decode:
        """Return the function that decodes the standard types and one more; "" for no more."""
        store = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)
        if is_ros1:
            # The types of ROS 1 lack TFMessage, whose fields are those of ROS 2.
            store.register({TF: get_typestore(Stores.ROS2_HUMBLE).fielddefs[TF]})
        if definition:
            store.register(get_types_from_msg(definition, name))
        return store.deserialize_ros1 if is_ros1 else store.deserialize_cdr

    standard = decode_with("", "")
    others = {
        name: [decode_with(definition, name) for definition in alternatives]
        for name, alternatives in definitions.items()
    }

    def decode(message: bytes, kind: str) -> Any:
        """Return the content of a message."""
        decoders = others.get(kind)
        if decoders is None:
            return standard(message, kind)

        for decoder in decoders:
            # A definition that does not fit fails in whatever way its fields meet the bytes.
            with contextlib.suppress(Exception):
                content = decoder(message, kind)
                # The next messages are most likely of the same generation.
                decoders.remove(decoder)
                decoders.insert(0, decoder)
                return content
        raise ValueError(f"it fits none of the {len(decoders)} known definitions of {kind}")

    return decode


def _read_items(path: Path, read: Callable[[], Iterator[BagItem]]) -> Iterator[BagItem]:
    """Iterate over the items of a bag; any error of its reader refuses the file.

    An error of whoever uses the items does not pass here.
    """
    with _refuse_broken(path):
        yield from read()


@contextlib.contextmanager
def _refuse_broken(path: Path) -> Iterator[None]:
    """Refuse a bag for whatever its reader raises.

    A broken bag can fail anywhere in it: struct, sqlite, decompression.
    """
    try:
        yield
    except InputFileError:
        raise
    except Exception as problem:
        text = str(problem).strip() or type(problem).__name__
        if isinstance(problem, EndOfFile):
            text = "it is truncated"
        reason = f"cannot be read as a ROS bag: {text.rstrip('.')}"
        command = _recovery_command(path)
        if command:
            reason += f"; `{command}` may restore what it still has"
        raise InputFileError(path, reason) from problem


def _recovery_command(path: Path) -> str:
    """Return the program that may restore the files of a broken bag; "" if there is none."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    suffixes = [file.suffix.lower() for file in files]
    return next((RECOVERY_COMMANDS[suffix] for suffix in suffixes if suffix in BEGINNINGS), "")


def _check_beginning(path: Path) -> None:
    """Refuse what is not there, and a file that does not begin like one of its suffix."""
    if not path.exists():
        raise InputFileError(path, "file not found")
    if path.is_dir():
        if not (path / "metadata.yaml").exists():
            reason = "this is a directory, but without the metadata.yaml of a ROS 2 bag"
            raise InputFileError(path, f"{reason}; name a file in it")
        return

    suffix = path.suffix.lower()
    if suffix not in BEGINNINGS:
        return
    with open_file(path) as file:
        first = file.read(LONGEST_BEGINNING)
    if not first:
        raise InputFileError(path, "it is empty")
    kind, beginning = BEGINNINGS[suffix]
    if not first.startswith(beginning):
        reason = (
            f"it does not start like {kind}: it is another kind of file, or its beginning "
            "is missing"
        )
        raise InputFileError(path, reason)
