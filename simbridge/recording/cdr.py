"""Messages of fixed layout in the Common Data Representation (CDR).

CDR is what ROS 2 sends and what Foxglove and PlotJuggler read. Source: OMG DDS-XTypes 1.3, section
7.4.3 (XCDR version 1, PLAIN_CDR): four bytes of encapsulation header; then the fields in the order
of the definition, each number aligned to its own size counted from behind the header; strings as a
uint32 length that counts a closing NUL, then the bytes; sequences as a uint32 length, then the
elements. An empty sequence has no padding behind its length.

Within one run joint names and frame never change, so every message of a type has the same size and
its numbers are at the same offsets. `Layout` computes those once. After that a message is a
template with numbers filled in, and many messages are one numpy array.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LITTLE_ENDIAN_CDR = b"\x00\x01\x00\x00"


class NumberField(NamedTuple):
    """A number, or a vector of numbers, at a fixed offset in a record of bytes.

    Attributes:
        dtype: The type of the number; a vector's type has a shape.
        offset: Distance from the record's beginning, bytes.
    """

    dtype: np.dtype[Any]
    offset: int

    @property
    def span(self) -> slice:
        """Its bytes in the record."""
        return slice(self.offset, self.offset + self.dtype.itemsize)


class NumberGroup(NamedTuple):
    """Adjacent numbers of a layout, which are packed together.

    Attributes:
        packer: Packs all of the numbers, with the gaps between them.
        offset: Distance of the first number from the message's beginning, bytes.
        names: A name for each number; a vector has one name.
        is_vector: True for the numbers of one vector.
    """

    packer: struct.Struct
    offset: int
    names: tuple[str, ...]
    is_vector: bool


class Records:
    """Decodes records of bytes that are all alike except for their numbers.

    Args:
        template: The bytes of one record.
        columns: The field of each number that is read, by name.
        ignored: Other bytes that may differ, which are not read.
    """

    def __init__(
        self,
        template: bytes,
        columns: Mapping[str, NumberField],
        ignored: Sequence[slice] = (),
    ) -> None:
        size = len(template)
        self._dtype = np.dtype(
            {
                "names": list(columns),
                "formats": [column.dtype for column in columns.values()],
                "offsets": [column.offset for column in columns.values()],
                "itemsize": size,
            }
        )

        # A mask of the bits that are the same in all records, and these bits.
        self._mask = np.full(size, 0xFF, np.uint8)
        for column in columns.values():
            self._mask[column.span] = 0
        for part in ignored:
            self._mask[part] = 0
        self._template = np.frombuffer(template, np.uint8) & self._mask

    def decode(self, content: bytes) -> dict[str, NDArray[Any]] | None:
        """Return the numbers of T records by name; None for other bytes.

        Each is an array (T,), or (T, count) for a vector.
        """
        size = self._dtype.itemsize
        if len(content) % size:
            return None
        records = np.frombuffer(content, np.uint8).reshape(-1, size)
        if ((records & self._mask) != self._template).any():
            return None

        rows = np.frombuffer(content, self._dtype)
        return {name: np.ascontiguousarray(rows[name]) for name in self._dtype.names or ()}


class Layout:
    """The bytes of one message type whose strings and sequence lengths never change.

    It is built field by field, in the order of the message definition, from a std_msgs/Header,
    whose stamp is the group (sec, nanosec), unless the message has no header. Adjacent numbers
    form a group; `pack` takes one iterable a group.

    Args:
        message_type: The name of the message type.
        frame_id: The frame in the header; None for a message without a header.

    Attributes:
        message_type: The name of the message type; those of the log are the keys of
            `ros_messages.DEFINITIONS`.
        template: The bytes of a message, whose numbers `pack` fills in.
        columns: The field of each number in a message, by name.
    """

    def __init__(self, message_type: str, frame_id: str | None) -> None:
        self.message_type = message_type
        self.template = bytearray(LITTLE_ENDIAN_CDR)
        self.columns: dict[str, NumberField] = {}
        self._groups: list[NumberGroup] = []
        if frame_id is not None:
            self.add_numbers({"sec": "i", "nanosec": "I"})
            self.add_string(frame_id)

    def _align(self, size: int) -> int:
        """Pad the template for a number of this size; return the number of bytes added."""
        gap = -(len(self.template) - len(LITTLE_ENDIAN_CDR)) % size
        self.template += bytes(gap)
        return gap

    def add_length(self, count: int) -> None:
        """Add a uint32 that never changes: the length of a sequence or of a string."""
        self._align(4)
        self.template += struct.pack("<I", count)

    def add_string(self, text: str) -> None:
        """Add a string that never changes."""
        encoded = text.encode() + b"\0"
        self.add_length(len(encoded))
        self.template += encoded

    def add_numbers(self, codes: Mapping[str, str]) -> None:
        """Add a group of numbers.

        Args:
            codes: Each number's code of the struct module, by name; at least one.
        """
        # The gaps between numbers, which their alignment needs, are packed as padding bytes.
        format_string = "<"
        offsets: list[int] = []
        for name, code in codes.items():
            dtype = np.dtype(f"<{code}")
            gap = self._align(dtype.itemsize)
            # The gap before the first number is not in the group.
            format_string += f"{gap}x{code}" if offsets else code
            offsets.append(len(self.template))
            self.columns[name] = NumberField(dtype, offsets[-1])
            self.template += bytes(dtype.itemsize)

        group = NumberGroup(
            packer=struct.Struct(format_string),
            offset=offsets[0],
            names=tuple(codes),
            is_vector=False,
        )
        self._groups.append(group)

    def add_vector(self, name: str, count: int) -> None:
        """Add a group of `count` float64 under one name."""
        self._align(8)
        group = NumberGroup(
            packer=struct.Struct(f"<{count}d"),
            offset=len(self.template),
            names=(name,),
            is_vector=True,
        )
        self._groups.append(group)
        self.columns[name] = NumberField(np.dtype(("<f8", (count,))), len(self.template))
        self.template += bytes(8 * count)

    def pack(self, *groups: Iterable[float]) -> bytes:
        """Return one message with these numbers.

        Raises:
            ValueError: A group has another number of elements than in the layout, or one does not
                fit; with its names.
        """
        for group, numbers in zip(self._groups, groups, strict=True):
            try:
                group.packer.pack_into(self.template, group.offset, *numbers)
            except struct.error as error:
                raise ValueError(f"{', '.join(group.names)}: {error}") from error
        return bytes(self.template)

    def pack_record(self, stamp: tuple[int, int], record: object) -> bytes:
        """Return one message with the numbers of a record's attributes, named as in the layout.

        Args:
            stamp: Seconds and nanoseconds.
            record: The object.
        """
        # The first group of every message is the stamp.
        groups: list[Iterable[float]] = [stamp]
        for group in self._groups[1:]:
            values = [getattr(record, name) for name in group.names]
            groups.append(np.ravel(values[0]).tolist() if group.is_vector else values)
        return self.pack(*groups)

    @cached_property
    def _records(self) -> Records:
        """The messages as records, once the layout is complete."""
        return Records(bytes(self.template), self.columns)

    def unpack(self, messages: Sequence[bytes]) -> dict[str, NDArray[Any]]:
        """Return the numbers of T messages: under each name (T,), or (T, count) for a vector.

        Raises:
            ValueError: A message has another layout: its size or a constant byte differs.
        """
        size = len(self.template)
        if any(len(message) != size for message in messages):
            raise ValueError(f"a message is not {size} bytes long")
        columns = self._records.decode(b"".join(messages))
        if columns is None:
            raise ValueError("a message has different names or lengths from the first")
        return columns
