"""The ROS 2 messages of the run log, in the Common Data Representation (CDR).

CDR is what ROS 2 sends and what Foxglove and PlotJuggler read. Source: OMG DDS-XTypes 1.3, section 7.4.3 (XCDR version
1, PLAIN_CDR): four bytes of encapsulation header; then the fields in the order of the definition, each number aligned
to its own size counted from behind the header; strings as a uint32 length that counts a closing NUL, then the bytes;
sequences as a uint32 length, then the elements. An empty sequence has no padding behind its length.

Within one run joint names and frame never change, so every message of a type has the same size and its numbers are at
the same offsets. `Layout` computes those once. After that a message is a template with numbers filled in, and many
messages are one numpy array.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

LITTLE_ENDIAN_CDR = b"\x00\x01\x00\x00"

HEADER = """\
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
"""
TIME = """\
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
JOINT_STATE = """\
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
"""
POSE_STAMPED = """\
std_msgs/Header header
geometry_msgs/Pose pose
"""
POSE = """\
MSG: geometry_msgs/Pose
geometry_msgs/Point position
geometry_msgs/Quaternion orientation
"""
POINT = """\
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
"""
QUATERNION = """\
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
"""
JOINT_ACCELERATION = """\
std_msgs/Header header
string[] name
float64[] acceleration
"""
STATUS = """\
std_msgs/Header header
int64 index              # control period counter
float64 stamp            # s, due instant by the controller's clock since the start of the run
float64 plan_time        # s, time on the trajectory
float64 speed_scaling    # the controller's, 0 to 1
float64 host_monotonic   # s, the host's monotonic clock
int32 robot_mode
int32 safety_mode
int32 runtime_state
bool limited             # the limiter changed this setpoint
"""
LIVE = """\
std_msgs/Header header
int64 period             # counts the periods of a loop, from 0
int64 input              # number of the input that was taken in this period, 0 for none
float64 now              # s, the loop's clock
float64 rate             # share of full speed, 0 to 1
float64 speed            # share of the wanted step that was made, 0 to 1
float64 solver           # s, what solver and checks took; nan if it was not measured
int32 engagement
int32 order              # what was asked besides inputs
int32 fate               # of the input
int32 phase
float64[9] causes        # three times name, subject and value; -1 for none
"""
# Codes of the struct module.
_CODES = {"int64": "q", "float64": "d", "int32": "i", "bool": "?"}

SEPARATOR = "=" * 80 + "\n"

# Name of each message type -> its definition and those of the types it uses, as MCAP's schema encoding "ros2msg".
DEFINITIONS = {
    "sensor_msgs/msg/JointState": SEPARATOR.join([JOINT_STATE, HEADER, TIME]),
    "simbridge_msgs/msg/JointAcceleration": SEPARATOR.join([JOINT_ACCELERATION, HEADER, TIME]),
    "geometry_msgs/msg/PoseStamped": SEPARATOR.join(
        [POSE_STAMPED, HEADER, TIME, POSE, POINT, QUATERNION]
    ),
    "simbridge_msgs/msg/Status": SEPARATOR.join([STATUS, HEADER, TIME]),
    "simbridge_msgs/msg/Live": SEPARATOR.join([LIVE, HEADER, TIME]),
}


class Records:
    """Bytes of one length, again and again, of which only some numbers differ.

    Args:
        template: One of them.
        columns: Type and offset (in bytes) of the numbers by name.
        varying: Parts that differ as well.
    """

    def __init__(
        self,
        template: bytes,
        columns: Mapping[str, tuple[np.dtype[Any], int]],
        varying: Sequence[slice] = (),
    ) -> None:
        kinds, offsets = zip(*columns.values(), strict=True)
        size = len(template)
        self._kind = np.dtype(
            {"names": list(columns), "formats": kinds, "offsets": offsets, "itemsize": size}
        )
        self._mask = np.full(size, 0xFF, np.uint8)
        for part in (*(slice(at, at + kind.itemsize) for kind, at in columns.values()), *varying):
            self._mask[part] = 0
        self._template = np.frombuffer(template, np.uint8) & self._mask

    def decode(self, content: bytes) -> dict[str, NDArray[Any]] | None:
        """The numbers of T records: an array (T,) under each name, or (T, count) for a vector; None for other bytes."""
        if len(content) % self._kind.itemsize:
            return None
        found = np.frombuffer(content, np.uint8).reshape(-1, self._kind.itemsize)
        if ((found & self._mask) != self._template).any():
            return None
        rows = np.frombuffer(content, self._kind)
        return {name: np.ascontiguousarray(rows[name]) for name in self._kind.names or ()}


class Layout:
    """The bytes of one message type whose strings and sequence lengths never change.

    Built field by field, in the order of the message definition, from a std_msgs/Header, whose stamp is the group (sec,
    nanosec). Adjacent numbers form a group; `pack` takes one iterable a group.

    Attributes:
        message_type: Its name; those of the log are the keys of `DEFINITIONS`.
        template: A message.
        columns: Type and offset (in bytes from the message's beginning) of the numbers by name.
    """

    def __init__(self, message_type: str, frame_id: str) -> None:
        self.message_type = message_type
        self.template = bytearray(LITTLE_ENDIAN_CDR)
        self.columns: dict[str, tuple[np.dtype[Any], int]] = {}
        self._groups: list[tuple[struct.Struct, int, tuple[str, ...]]] = []
        self.numbers({"sec": "i", "nanosec": "I"})
        self.string(frame_id)

    def _align(self, size: int) -> int:
        """Fill up to a number of this size; by how many bytes."""
        gap = -(len(self.template) - len(LITTLE_ENDIAN_CDR)) % size
        self.template += bytes(gap)
        return gap

    def length(self, count: int) -> None:
        """A uint32 that never changes: the length of a sequence or of a string."""
        self._align(4)
        self.template += struct.pack("<I", count)

    def string(self, text: str) -> None:
        """A string that never changes."""
        encoded = text.encode() + b"\0"
        self.length(len(encoded))
        self.template += encoded

    def numbers(self, codes: Mapping[str, str]) -> None:
        """A group of numbers, each under its own name with its code of the struct module."""
        form, start = "<", 0
        for name, code in codes.items():
            kind = np.dtype(f"<{code}")
            gap = self._align(kind.itemsize)
            start, form = (
                (start, f"{form}{gap}x{code}") if start else (len(self.template), form + code)
            )
            self.columns[name] = (kind, len(self.template))
            self.template += bytes(kind.itemsize)
        self._groups.append((struct.Struct(form), start, tuple(codes)))

    def vector(self, name: str, count: int) -> None:
        """A group of `count` float64 under one name."""
        self._align(8)
        self._groups.append((struct.Struct(f"<{count}d"), len(self.template), (name,)))
        self.columns[name] = (np.dtype(("<f8", (count,))), len(self.template))
        self.template += bytes(8 * count)

    def pack(self, *groups: Iterable[float]) -> bytes:
        """One message with these numbers.

        Raises:
            ValueError: A group has another number of elements than in the layout, or one does not fit; with its names.
        """
        for (packer, offset, names), numbers in zip(self._groups, groups, strict=True):
            try:
                packer.pack_into(self.template, offset, *numbers)
            except struct.error as error:
                raise ValueError(f"{', '.join(names)}: {error}") from error
        return bytes(self.template)

    def pack_record(self, stamp: tuple[int, int], record: object) -> bytes:
        """One message with a stamp, s and ns, and the numbers of a record's attributes, named as in the layout."""
        groups = ([getattr(record, name) for name in names] for _, _, names in self._groups[1:])
        return self.pack(
            stamp, *(np.ravel(group[0]).tolist() if len(group) == 1 else group for group in groups)
        )

    @cached_property
    def _records(self) -> Records:
        return Records(bytes(self.template), self.columns)

    def unpack(self, messages: Sequence[bytes]) -> dict[str, NDArray[Any]]:
        """The numbers of T messages: under each name an array (T,), or (T, count) for a vector.

        Raises:
            ValueError: A message has another layout: its size or a constant byte differs.
        """
        if any(len(message) != len(self.template) for message in messages):
            raise ValueError(f"a message is not {len(self.template)} bytes long")
        if (columns := self._records.decode(b"".join(messages))) is None:
            raise ValueError("a message has other names or lengths than the first")
        return columns


def joint_state(
    frame_id: str,
    joint_names: Sequence[str],
    position: str,
    velocity: str | None = None,
    effort: str | None = None,
) -> Layout:
    """sensor_msgs/JointState: groups (sec, nanosec), position (n,), and velocity (n,) and effort (n,) where named."""
    return _joints("sensor_msgs/msg/JointState", frame_id, joint_names, position, velocity, effort)


def joint_acceleration(frame_id: str, joint_names: Sequence[str], acceleration: str) -> Layout:
    """simbridge_msgs/JointAcceleration: groups (sec, nanosec), acceleration (n,), which a JointState does not have."""
    return _joints("simbridge_msgs/msg/JointAcceleration", frame_id, joint_names, acceleration)


def _joints(
    message_type: str, frame_id: str, joint_names: Sequence[str], *columns: str | None
) -> Layout:
    layout = Layout(message_type, frame_id)
    layout.length(len(joint_names))
    for name in joint_names:
        layout.string(name)
    for column in columns:
        layout.length(len(joint_names) if column else 0)
        if column:
            layout.vector(column, len(joint_names))
    return layout


def pose_stamped(frame_id: str, pose: str) -> Layout:
    """geometry_msgs/PoseStamped: groups (sec, nanosec), pose [x y z qx qy qz qw]."""
    layout = Layout("geometry_msgs/msg/PoseStamped", frame_id)
    layout.vector(pose, 7)
    return layout


def vector_stamped(frame_id: str, vector: str) -> Layout:
    """geometry_msgs/Vector3Stamped: groups (sec, nanosec), vector [x y z]."""
    layout = Layout("geometry_msgs/msg/Vector3Stamped", frame_id)
    layout.vector(vector, 3)
    return layout


def status(frame_id: str) -> Layout:
    """simbridge_msgs/Status: groups (sec, nanosec), and all the other numbers in the order of the definition."""
    layout = Layout("simbridge_msgs/msg/Status", frame_id)
    layout.numbers(_codes(STATUS))
    return layout


def live(frame_id: str) -> Layout:
    """simbridge_msgs/Live: groups (sec, nanosec), the numbers in the order of the definition, and the causes (9,)."""
    layout = Layout("simbridge_msgs/msg/Live", frame_id)
    layout.numbers(_codes(LIVE))
    layout.vector("causes", 9)
    return layout


def _codes(definition: str) -> dict[str, str]:
    fields = [line.split()[:2] for line in definition.splitlines()[1:]]
    return {name: _CODES[kind] for kind, name in fields if kind in _CODES}
