"""The names that files give to times, positions and rotations: one line per alias.

A name is compared in lower case, without its unit and whatever separates its words:
`Pose.Position.X`, `pose_position_x [m]` and `/pose/position/x` are alike. The component of a vector
is its last letter or number; what is before it names the vector, and other words may come before
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class VectorKind(Enum):
    """The kind of a vector, which says what its components are.

    An orientation without a component w is angles, which are not read. A rotation vector with one
    is a quaternion, as in Vicon's RX RY RZ RW.
    """

    POSITION = "position"
    QUATERNION = "quaternion"
    ORIENTATION = "orientation"
    ROTATION_VECTOR = "rotation vector"


class Numbering(Enum):
    """Ways in which the components of a vector may be numbered instead of lettered."""

    NEVER = "never"
    # p[0], as the elements of an array are called.
    IN_BRACKETS = "in brackets"
    # position_0, position0 or position[0].
    ALWAYS = "always"


class VectorAlias(NamedTuple):
    """The meaning of a vector's name.

    Attributes:
        kind: Kind of the vector.
        numbering: Way in which its components may be numbered.
        alone: Whether the name has this meaning only without other words before it: `tcp_x` is a
            position, `force_tcp_x` is not.
        is_clear: Whether the name leaves no doubt. Other names count only if no clear one is there.
        may_be_torque: Whether the name may be that of a torque: `tx`. Beside it, names that are not
            clear count, too.
    """

    kind: VectorKind
    numbering: Numbering = Numbering.NEVER
    alone: bool = False
    is_clear: bool = True
    may_be_torque: bool = False


# The kinds of which a component w makes a quaternion.
QUATERNION_KINDS = (VectorKind.QUATERNION, VectorKind.ORIENTATION)
# The words of an alias at most: "time since start".
MAX_ALIAS_WORDS = 3

VECTORS = {
    # x y z
    "": VectorAlias(VectorKind.POSITION, alone=True),
    "p": VectorAlias(VectorKind.POSITION, Numbering.IN_BRACKETS),
    "xyz": VectorAlias(VectorKind.POSITION, Numbering.IN_BRACKETS),
    "pos": VectorAlias(VectorKind.POSITION, Numbering.ALWAYS),
    "position": VectorAlias(VectorKind.POSITION, Numbering.ALWAYS),
    "trans": VectorAlias(VectorKind.POSITION, Numbering.ALWAYS),
    "translation": VectorAlias(VectorKind.POSITION, Numbering.ALWAYS),
    "location": VectorAlias(VectorKind.POSITION, Numbering.ALWAYS),
    "t": VectorAlias(VectorKind.POSITION, may_be_torque=True),
    "tcp": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "tool": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "tool0": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "flange": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "ee": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "eef": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "endeffector": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "pose": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "cart": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    "cartesian": VectorAlias(VectorKind.POSITION, alone=True, is_clear=False),
    # qx qy qz qw
    "q": VectorAlias(VectorKind.QUATERNION, Numbering.ALWAYS),
    "quat": VectorAlias(VectorKind.QUATERNION, Numbering.ALWAYS),
    "quaternion": VectorAlias(VectorKind.QUATERNION, Numbering.ALWAYS),
    "o": VectorAlias(VectorKind.ORIENTATION),
    "ori": VectorAlias(VectorKind.ORIENTATION),
    "orient": VectorAlias(VectorKind.ORIENTATION, Numbering.ALWAYS),
    "orientation": VectorAlias(VectorKind.ORIENTATION, Numbering.ALWAYS),
    "rot": VectorAlias(VectorKind.ORIENTATION, Numbering.ALWAYS),
    "rotation": VectorAlias(VectorKind.ORIENTATION, Numbering.ALWAYS),
    "attitude": VectorAlias(VectorKind.ORIENTATION, Numbering.ALWAYS),
    # rx ry rz
    "r": VectorAlias(VectorKind.ROTATION_VECTOR),
    "rotvec": VectorAlias(VectorKind.ROTATION_VECTOR, Numbering.IN_BRACKETS),
    "rotationvector": VectorAlias(VectorKind.ROTATION_VECTOR, Numbering.IN_BRACKETS),
}

# The real part of a quaternion whose other components are i, j and k.
REAL_PARTS = ("w", "r", "real", "scalar")
# Arrays of rotation matrices, by the last words of their names: "R", "tool.rotmat".
ROTATION_NAMES = ("r", "rot", "rots", "rotation", "rotations", "orientation", "orientations")
MATRIX_ENDS = ("mat", "mats", "matrix", "matrices")
# Words of names that are those of other vectors than a pose's: they are never offered as one.
OTHER_VECTORS = (
    "v",
    "twist",
    "linear",
    "angular",
    "wrench",
    "gyro",
    "omega",
    "magnetic",
    "mag",
    "roll",
    "pitch",
    "yaw",
    "rpy",
    "euler",
    "scale",
    "size",
    "normal",
)

# Times word by word, in order of preference: the stamp of the measurement, the time of a row, and
# what counts seconds where nothing else is a time and no rate is given.
STAMP = "header stamp"
TIMES = (
    "t",
    "time",
    "times",
    "timestamp",
    "timestamps",
    "stamp",
    "stamps",
    "datetime",
    "date",
    "rosbagtimestamp",
    "elapsed",
    "elapsed time",
)
UNCLEAR_TIMES = (
    "ts",
    "sec",
    "secs",
    "second",
    "seconds",
    "time s",
    "time stamp",
    "time stamps",
    "time since start",
    "recv time",
    "recv timestamp",
    "recv time stamp",
    "ros time",
    "ros timestamp",
    "ros time stamp",
    "system time",
    "system timestamp",
    "system time stamp",
    "unix time",
    "unix timestamp",
    "unix time stamp",
    "sim time",
    "sim timestamp",
    "sim time stamp",
    "rel time",
    "time rel",
    "t rel",
    "time from start",
    "time since begin",
    "time since beginning",
    "relative time",
    "relative timestamp",
    "relative time stamp",
    "index time",
    "index timestamp",
    "index time stamp",
)
# Words of names that count rows, or name something, beside a time.
NO_TIMES = ("index", "idx", "id", "frame", "seq", "row", "count", "counter", "name", "label", "no")
# The last words of a stamp in two columns, "header.stamp.sec" and "header.stamp.nanosec": those of
# the whole seconds, and those of their fraction with its unit.
SECONDS = ("s", "sec", "secs", "second", "seconds")
NANOSECONDS = ("nanosec", "nanosecs", "nsec", "nsecs", "nanosecond", "nanoseconds")
FRACTION_UNITS = {
    f"{prefix}{word}": unit
    for unit, prefixes, words in (
        ("ms", ("m", "milli"), SECONDS),
        ("us", ("u", "micro"), SECONDS),
        ("ns", ("n", "nano"), SECONDS),
    )
    for prefix in prefixes
    for word in words
}
# The frame of the poses. That of what moves is another column.
FRAME_ID = "frame id"
CHILD_FRAME_ID = "child frame id"


def find_vector_alias(words: Sequence[str]) -> VectorAlias | None:
    """Return what a vector's name means, by the longest end of it that is an alias; else None."""
    if not words:
        return VECTORS[""]

    for first in range(max(0, len(words) - MAX_ALIAS_WORDS), len(words)):
        alias = VECTORS.get("".join(words[first:]))
        if alias is not None and (first == 0 or not alias.alone):
            return alias
    return None


def ends_with(words: Sequence[str], alias: str) -> bool:
    """Return whether the last words of a name are those of an alias."""
    alias_words = alias.split()
    return list(words[-len(alias_words) :]) == alias_words
