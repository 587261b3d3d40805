"""Which column of a text file is which: by their number, or by the names in a header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUATERNION = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")
ROTATION_VECTOR = ("t", "x", "y", "z", "rx", "ry", "rz")
NEEDED = f"'{' '.join(QUATERNION)}' or '{' '.join(ROTATION_VECTOR)}' (s, m, unit quaternion or rotation vector in rad)"

# What other programs call the columns: TUM, ROS exports, spreadsheets.
ALIASES = {
    **dict.fromkeys(("time", "timestamp", "stamp"), "t"),
    **{prefix + axis: axis for prefix in ("p", "p_", "t", "pos_", "position_", "position.") for axis in "xyz"},
    **{f"{prefix}{axis}": f"q{axis}" for prefix in ("q_", "quat_", "orientation_", "orientation.") for axis in "xyzw"},
}


class UnusableHeader(Exception):
    """A header that does not name the columns of a trajectory; its message says why."""


@dataclass(frozen=True)
class Columns:
    """The columns of a trajectory file.

    Attributes:
        names: What the columns are called in the file, in the order of QUATERNION or ROTATION_VECTOR.
        indices: Where those columns are, counted from 0, in the same order.
        width: How many columns every line has.
        origin: Where this was learned, for messages: "the header in line 1".
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]
    width: int
    origin: str

    @property
    def rotation_vector(self) -> bool:
        """Whether rotations are rotation vectors rather than quaternions."""
        return len(self.indices) == len(ROTATION_VECTOR)


def from_count(count: int, origin: str) -> Columns | None:
    """The columns of a file without a header, by how many there are; None if that is neither 7 nor 8."""
    for names in (QUATERNION, ROTATION_VECTOR):
        if count == len(names):
            return Columns(names, tuple(range(count)), count, origin)
    return None


def from_header(fields: Sequence[str], origin: str) -> Columns:
    """The columns by their names, in any order and among others; the quaternion wins over a rotation vector.

    Raises:
        UnusableHeader: A needed name is missing or appears twice.
    """
    known = [canonical(field) for field in fields]
    wanted = ROTATION_VECTOR if "rx" in known and not set(QUATERNION[4:]) <= set(known) else QUATERNION
    missing = [name for name in wanted if name not in known]
    if missing:
        raise UnusableHeader(
            f"taken for a header, since none of it is a number, but it does not name {', '.join(missing)}; needed are "
            f"{NEEDED}, in any order (put a # before a line that is a remark)"
        )
    twice = [name for name in wanted if known.count(name) > 1]
    if twice:
        same = [field.strip() for field, name in zip(fields, known, strict=True) if name == twice[0]]
        raise UnusableHeader(f"more than one column is {twice[0]}: {', '.join(same)}; rename the ones not meant")
    indices = tuple(known.index(name) for name in wanted)
    return Columns(tuple(fields[index].strip() for index in indices), indices, len(fields), origin)


def from_comment(fields: Sequence[str], origin: str) -> Columns | None:
    """The columns, if a comment consists of their names and nothing else, as numpy.savetxt and TUM files have it."""
    if sorted(map(canonical, fields)) in (sorted(QUATERNION), sorted(ROTATION_VECTOR)):
        return from_header(fields, origin)
    return None


def canonical(field: str) -> str:
    """The name simbridge uses for a column: `t`, `x`, `qw`; an unknown name comes back in lower case."""
    name = field.strip().strip("\"'").lower()
    return ALIASES.get(name, name)
