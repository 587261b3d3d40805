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
from numpy.typing import ArrayLike

from simbridge.errors import InputFileError, InvalidTrajectory
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
CSV_HEADER = "t [s],x [m],y [m],z [m],qx,qy,qz,qw"
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


def write_tum(path: str | Path, times: ArrayLike, poses: ArrayLike) -> None:
    """Write a TUM file: one line `t x y z qx qy qz qw` a sample; read_trajectory and evo read it back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        times: Stamps (T,) in s.
        poses: Poses (T, 7) in m and unit quaternions.

    Raises:
        InvalidTrajectory: The shapes do not fit.
        OSError: The file cannot be written.
    """
    _write(path, times, poses, header="", separator=" ")


def write_csv(path: str | Path, times: ArrayLike, poses: ArrayLike) -> None:
    """As `write_tum`, but CSV with a header that names columns and units."""
    _write(path, times, poses, header=CSV_HEADER + "\n", separator=",")


def _write(path: str | Path, times: ArrayLike, poses: ArrayLike, header: str, separator: str) -> None:
    t, p = np.asarray(times, dtype=float), np.asarray(poses, dtype=float)
    if t.ndim != 1 or p.shape != (len(t), 7):
        reason = f"times of shape (T,) and poses of shape (T, 7) are needed; got {t.shape} and {p.shape}"
        raise InvalidTrajectory(reason, source=str(path))
    rows = np.column_stack([t, p]).tolist()
    text = header + "".join(separator.join(map(repr, row)) + "\n" for row in rows)
    Path(path).write_text(text, encoding="utf-8", newline="\n")


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
        origin = f"in line {number}"
        numbers = any(field.strip().startswith(DIGITS) for field in fields)
        if not content or (header is None and not numbers):
            try:
                if content:
                    header = from_header(fields, f"as the header {origin} names")
                else:
                    words = comment.split(_separator(comment))
                    remark = from_comment(words, f"as the comment {origin} names") or remark
            except UnusableHeader as problem:
                raise InputFileError(path, str(problem), line=number) from None
        else:
            found = header or remark or from_count(len(fields), f"as {origin}")
            if found is None:
                reason = f"{len(fields)} columns; without a header 8 or 7 are expected: {NEEDED}"
                raise InputFileError(path, reason, line=number)
            return found, number - 1
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


class UnusableHeader(Exception):
    """A header that does not name the columns of a trajectory; the message is the reason."""


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


def from_count(count: int, origin: str) -> Columns | None:
    """The columns of a file without a header, from their number; None if that is neither 7 nor 8."""
    for names in (QUATERNION, ROTATION_VECTOR):
        if count == len(names):
            return Columns(names, tuple(range(count)), count, origin, (1.0,) * count)
    return None


def from_header(fields: Sequence[str], origin: str) -> Columns:
    """The columns by their names, in any order and among others; a quaternion is preferred to a rotation vector.

    Raises:
        UnusableHeader: A required name is missing or appears twice, or its unit is unknown.
    """
    known = [canonical(field) for field in fields]
    wanted = ROTATION_VECTOR if "rx" in known and not set(QUATERNION[4:]) <= set(known) else QUATERNION
    missing = [name for name in wanted if name not in known]
    if missing:
        raise UnusableHeader(
            f"read as a header, as none of it is a number, but it does not name {', '.join(missing)}; needed are "
            f"{NEEDED}, in any order (put a # before a comment)"
        )
    twice = [name for name in wanted if known.count(name) > 1]
    if twice:
        same = [field.strip() for field, name in zip(fields, known, strict=True) if name == twice[0]]
        raise UnusableHeader(f"more than one column is {twice[0]}: {', '.join(same)}; rename the others")
    indices = tuple(known.index(name) for name in wanted)
    divisors = tuple(_divisor(fields[index], known[index]) for index in indices)
    return Columns(tuple(fields[index].strip() for index in indices), indices, len(fields), origin, divisors)


def from_comment(fields: Sequence[str], origin: str) -> Columns | None:
    """The columns, if a comment consists of exactly their names, as in files of numpy.savetxt and TUM."""
    if sorted(map(canonical, fields)) in (sorted(QUATERNION), sorted(ROTATION_VECTOR)):
        return from_header(fields, origin)
    return None


def canonical(field: str) -> str:
    """Our name of a column, such as `t`, `x` or `qw`; an unknown name in lower case."""
    name, _ = _split(field)
    return ALIASES.get(name, name)


def _split(field: str) -> tuple[str, str]:
    """A column's name in lower case, and its unit or an empty text."""
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
        raise UnusableHeader(f"'{field.strip()}' has the unit {unit}; {known}")
    return UNITS[unit]
