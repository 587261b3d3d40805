"""Trajectories as text, TUM and CSV. Every error is reported with its line and column."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.robot import pose
from simbridge.robot.pose import Array

QUATERNION = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")
ROTATION_VECTOR = ("t", "x", "y", "z", "rx", "ry", "rz")
NEEDED = f"'{' '.join(QUATERNION)}' or '{' '.join(ROTATION_VECTOR)}' (s, m, unit quaternion or rotation vector in rad)"

# Names of the columns in other programs: TUM, ROS exports, spreadsheets.
ALIASES = {
    **dict.fromkeys(("time", "timestamp", "stamp"), "t"),
    **{prefix + axis: axis for prefix in ("p", "p_", "t", "pos_", "position_", "position.") for axis in "xyz"},
    **{f"{prefix}{axis}": f"q{axis}" for prefix in ("q_", "quat_", "orientation_", "orientation.") for axis in "xyzw"},
}

# Units per one of ours (s, m, rad).
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "m": 1.0, "cm": 1e2, "mm": 1e3, "rad": 1.0, "deg": 180.0 / math.pi}
_ALLOWED = {
    "t": ("s", "ms", "us", "ns"),
    **dict.fromkeys("xyz", ("m", "cm", "mm")),
    **dict.fromkeys(("rx", "ry", "rz"), ("rad", "deg")),
}
# "x [mm]", "x (mm)" or "x_mm".
_WITH_UNIT = re.compile(rf"(.*?)(?:\s*\[(.*)\]|\s*\((.*)\)|_({'|'.join(UNITS)}))")
# A line is a header if no field begins like this; 0,5 is a misprinted number, not a name.
DIGITS = tuple("+-.0123456789")


def parse_text(path: str | Path, text: str) -> tuple[Array, Array, list[int]]:
    """Parse the text of a TUM or CSV file; see `simbridge.trajectory.files.read_trajectory`.

    Returns:
        Stamps (T,) in s, poses (T, 7), and the line (T) of each.

    Raises:
        InputFileError: It is not a trajectory; with line and column.
    """
    # Not str.splitlines, which also splits where editors do not count a line.
    table, names, lines = _table(path, text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    table = table / np.array(names.divisors)
    rotations = table[:, 4:]
    if names.rotation_vector:
        _check_turns(path, rotations, lines)
        rotations = pose.quaternions(rotations)
    return table[:, 0], np.column_stack([table[:, 1:4], rotations]), lines


def _separator(line: str) -> str | None:
    return next((separator for separator in ";," if separator in line), None)


def _layout(path: str | Path, lines: Sequence[str]) -> tuple[Columns, int]:
    """The columns, and the index of the first line with numbers."""
    header: Columns | None = None
    remark: Columns | None = None
    for number, line in enumerate(lines, start=1):
        content, _, comment = line.partition("#")
        content, comment = content.strip(), comment.strip()
        fields = content.split(_separator(content))
        if not content:
            # A comment that consists of exactly the names, as in files of numpy.savetxt and TUM.
            words = comment.split(_separator(comment))
            if sorted(map(_canonical, words)) in (sorted(QUATERNION), sorted(ROTATION_VECTOR)):
                remark = _header(path, number, words, "comment")
        elif header is None and not any(field.strip().startswith(DIGITS) for field in fields):
            header = _header(path, number, fields, "header")
        elif found := header or remark:
            return found, number - 1
        else:
            names = QUATERNION if len(fields) == len(QUATERNION) else ROTATION_VECTOR
            if len(fields) != len(names):
                reason = f"{len(fields)} columns; without a header 8 or 7 are expected: {NEEDED}"
                raise InputFileError(path, reason, line=number)
            width = len(names)
            return Columns(names, tuple(range(width)), width, f"as in line {number}", (1.0,) * width), number - 1
    raise InputFileError(path, f"it has no samples; expected are lines of {NEEDED}")


def _table(path: str | Path, lines: Sequence[str]) -> tuple[Array, Columns, list[int]]:
    """The numbers (T, 8) or (T, 7) in canonical order, their columns, and the line of each row."""
    found, first = _layout(path, lines)
    separator = _separator(lines[first].partition("#")[0])
    pick = itemgetter(*found.indices)
    # Fast for hundreds of thousands of lines: an error is analysed only when there is one.
    values = array("d")
    numbers: list[int] = []
    for number, line in enumerate(lines[first:], start=first + 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        fields = content.split(separator)
        if len(fields) != found.width:
            reason = f"{len(fields)} columns where {found.width} are expected, {found.origin}"
            raise InputFileError(path, reason, line=number)
        try:
            values.extend(map(float, pick(fields)))
        except ValueError:
            raise _word(path, number, found, pick(fields)) from None
        if "_" in content and not all(map(_is_number, pick(fields))):
            raise _word(path, number, found, pick(fields))
        numbers.append(number)
    table = np.frombuffer(values).reshape(-1, len(found.indices))
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        reason = f"{table[row, column]} is not a finite number"
        raise InputFileError(path, reason, line=numbers[row], field=found.names[column])
    return table, found, numbers


def _is_number(word: str) -> bool:
    # float() accepts 1_5 for 15; in a file it is a misprint.
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _word(path: str | Path, number: int, found: Columns, fields: Sequence[str]) -> InputFileError:
    """The error about the first field that is not a number."""
    name, word = next(pair for pair in zip(found.names, fields, strict=True) if not _is_number(pair[1]))
    word = word.strip()
    reason = f"'{word}' is not a number" if word else "a number is missing"
    if _is_number(word.replace(",", ".", 1)):
        reason += "; write it with a decimal point"
    return InputFileError(path, reason, line=number, field=name)


def _check_turns(path: str | Path, vectors: Array, lines: Sequence[int]) -> None:
    """Refuse rotation vectors of more than a full turn: they are most likely in degrees."""
    angles = np.linalg.norm(vectors, axis=1)
    bad = np.flatnonzero(angles > 2.0 * math.pi + 1e-3)
    if len(bad):
        reason = f"a rotation of {angles[bad[0]]:.6g} rad is more than a full turn; rx ry rz are in rad, not in degrees"
        raise InputFileError(path, reason, line=lines[bad[0]], field="rotation vector")


@dataclass(frozen=True)
class Columns:
    """The columns of a trajectory file.

    Attributes:
        names: Of the columns in the file, in the order of QUATERNION or ROTATION_VECTOR.
        indices: Of those columns, counted from 0, in the same order.
        width: Number of columns of every line.
        origin: Where the columns are defined, for messages: "the header in line 1".
        divisors: Of the numbers, which give s, m and rad, in the same order.
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


def _header(path: str | Path, line: int, fields: Sequence[str], kind: str) -> Columns:
    """The columns by their names, in any order and among others; a quaternion is preferred to a rotation vector.

    Raises:
        InputFileError: A required name is missing or appears twice, or its unit is unknown.
    """
    known = [_canonical(field) for field in fields]
    wanted = ROTATION_VECTOR if "rx" in known and not set(QUATERNION[4:]) <= set(known) else QUATERNION
    missing = [name for name in wanted if name not in known]
    if missing:
        reason = (
            f"read as a header, as none of it is a number, but it does not name {', '.join(missing)}; needed are "
            f"{NEEDED}, in any order (put a # before a comment)"
        )
        raise InputFileError(path, reason, line=line)
    twice = [name for name in wanted if known.count(name) > 1]
    if twice:
        same = [field.strip() for field, name in zip(fields, known, strict=True) if name == twice[0]]
        reason = f"more than one column is {twice[0]}: {', '.join(same)}; rename the others"
        raise InputFileError(path, reason, line=line)
    indices = tuple(known.index(name) for name in wanted)
    divisors = []
    for index, name in zip(indices, wanted, strict=True):
        unit = _name_and_unit(fields[index])[1]
        allowed = _ALLOWED.get(name, ())
        if not unit or (name in QUATERNION[4:] and unit in ("1", "-")):
            divisors.append(1.0)
        elif unit in allowed:
            divisors.append(UNITS[unit])
        else:
            units = f"known for {name} are {', '.join(allowed)}" if allowed else f"{name} has none"
            raise InputFileError(path, f"'{fields[index].strip()}' has the unit {unit}; {units}", line=line)
    names = tuple(fields[index].strip() for index in indices)
    return Columns(names, indices, len(fields), f"as the {kind} in line {line} names", tuple(divisors))


def _canonical(field: str) -> str:
    """Our name of a column, such as `t`, `x` or `qw`; an unknown name in lower case."""
    name, _ = _name_and_unit(field)
    return ALIASES.get(name, name)


def _name_and_unit(field: str) -> tuple[str, str]:
    """A column's name in lower case, and its unit or an empty text."""
    name = field.strip().strip("\"'").lower()
    found = _WITH_UNIT.fullmatch(name)
    if found is None or not found[1]:
        return name, ""
    return found[1], next((unit for unit in found.groups()[1:] if unit is not None), "").strip()
