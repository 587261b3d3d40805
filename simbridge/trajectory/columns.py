"""Which column of a text file is which: by their number, or by the names in a header."""

from __future__ import annotations

import math
import re
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

# How many of a unit make one of ours (s, m, rad).
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "m": 1.0, "cm": 1e2, "mm": 1e3, "rad": 1.0, "deg": 180.0 / math.pi}
_ALLOWED = {
    "t": ("s", "ms", "us", "ns"),
    **dict.fromkeys("xyz", ("m", "cm", "mm")),
    **dict.fromkeys(("rx", "ry", "rz"), ("rad", "deg")),
}
# "x [mm]", "x (mm)" or "x_mm".
_WITH_UNIT = re.compile(rf"(.*?)(?:\s*\[(.*)\]|\s*\((.*)\)|_({'|'.join(UNITS)}))")
CSV_HEADER = "t [s],x [m],y [m],z [m],qx,qy,qz,qw"


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
        divisors: What to divide the numbers by to have s, m and rad, in the same order.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]
    width: int
    origin: str
    divisors: tuple[float, ...]

    @property
    def rotation_vector(self) -> bool:
        """Whether rotations are rotation vectors rather than quaternions."""
        return len(self.indices) == len(ROTATION_VECTOR)


def from_count(count: int, origin: str) -> Columns | None:
    """The columns of a file without a header, by how many there are; None if that is neither 7 nor 8."""
    for names in (QUATERNION, ROTATION_VECTOR):
        if count == len(names):
            return Columns(names, tuple(range(count)), count, origin, (1.0,) * count)
    return None


def from_header(fields: Sequence[str], origin: str) -> Columns:
    """The columns by their names, in any order and among others; the quaternion wins over a rotation vector.

    Raises:
        UnusableHeader: A needed name is missing or appears twice, or its unit is not known.
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
    divisors = tuple(_divisor(fields[index], known[index]) for index in indices)
    return Columns(tuple(fields[index].strip() for index in indices), indices, len(fields), origin, divisors)


def from_comment(fields: Sequence[str], origin: str) -> Columns | None:
    """The columns, if a comment consists of their names and nothing else, as numpy.savetxt and TUM files have it."""
    if sorted(map(canonical, fields)) in (sorted(QUATERNION), sorted(ROTATION_VECTOR)):
        return from_header(fields, origin)
    return None


def canonical(field: str) -> str:
    """The name simbridge uses for a column: `t`, `x`, `qw`; an unknown name comes back in lower case."""
    name, _ = _split(field)
    return ALIASES.get(name, name)


def _split(field: str) -> tuple[str, str]:
    """A column's name in lower case, and the unit behind it or an empty text."""
    name = field.strip().strip("\"'").lower()
    found = _WITH_UNIT.fullmatch(name)
    if found is None or not found[1]:
        return name, ""
    return found[1], next((unit for unit in found.groups()[1:] if unit is not None), "").strip()


def _divisor(field: str, name: str) -> float:
    _, unit = _split(field)
    if not unit or (name in QUATERNION[4:] and unit in ("1", "-")):
        return 1.0
    allowed = _ALLOWED.get(name, ())
    if unit not in allowed:
        known = f"known for {name} are {', '.join(allowed)}" if allowed else f"{name} has none"
        raise UnusableHeader(f"'{field.strip()}' gives the unit {unit}; {known}")
    return UNITS[unit]
