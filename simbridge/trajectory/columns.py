"""Which column of a table is the time, and which are position and rotation: by its names, or as asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError, InvalidParameter
from simbridge.quoting import quoted, quoted_list, unquoted
from simbridge.robot.pose import Array

POSITION = ("x", "y", "z")
QUATERNION = ("qx", "qy", "qz", "qw")
ROTATION_VECTOR = ("rx", "ry", "rz")
MATRIX = tuple(f"m{row}{column}" for row in range(3) for column in range(3))
# Where POSITION and MATRIX are in the first three rows of a homogeneous matrix.
FIRST_ROWS = (3, 7, 11, 0, 1, 2, 4, 5, 6, 8, 9, 10)
ROLES = ("t", *POSITION, *QUATERNION, *ROTATION_VECTOR)
NO_ROTATION = (
    "Rotations are read as quaternions, rotation vectors or matrices only: convert roll, pitch and yaw first (with "
    "scipy: Rotation.from_euler('xyz', angles).as_quat()), and give positions alone a constant quaternion"
)
NEEDED = (
    "'t x y z qx qy qz qw' or 't x y z rx ry rz' (s, m, unit quaternion or rotation vector in rad)"
)

# Units per one of ours (s, m, rad).
UNITS = {
    "s": 1.0,
    "ms": 1e3,
    "us": 1e6,
    "ns": 1e9,
    "m": 1.0,
    "cm": 1e2,
    "mm": 1e3,
    "rad": 1.0,
    "deg": 180.0 / math.pi,
}
UNIT_NAMES = {
    **{name: name for name in UNITS},
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "micros", "microseconds", "µs"), "us"),
    **dict.fromkeys(("nsec", "nanos", "nanosec", "nanoseconds"), "ns"),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("centimeters", "centimetres"), "cm"),
    **dict.fromkeys(("millimeters", "millimetres"), "mm"),
    **dict.fromkeys(("degree", "degrees"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
}
"""Every way in which files write these units."""
_ALLOWED = {
    "t": ("s", "ms", "us", "ns"),
    **dict.fromkeys(POSITION, ("m", "cm", "mm")),
    **dict.fromkeys(ROTATION_VECTOR, ("rad", "deg")),
}
# "x [mm]", "x (mm)" or "x_mm".
_WITH_UNIT = re.compile(rf"(.*?)(?:\s+\[(.*)\]|\[(\D.*)\]|\s*\((.*)\)|_({'|'.join(UNIT_NAMES)}))")

# The end of a name, after which fields it is one of: "field.pose.position.x", "/tool/pose/position/x", "pos_x", "px".
_BEFORE = r"(?:.*\.)?"
_PLACE, _TURN = (
    "position|pos|translation|trans|location",
    "orientation|orient|rotation|rot|quaternion|quat|attitude",
)
_TOOL = r"tcp|tool0?|flange|eef?|end\.effector|pose|cart(?:esian)?"
_NAMES = (
    (re.compile(rf"{_BEFORE}(?:{_PLACE}|p|t)\.?([xyz])|([xyz])"), "{}"),
    (re.compile(rf"{_BEFORE}(?:{_TURN}|ori|q|o)\.?([xyzw])"), "q{}"),
    (re.compile(rf"{_BEFORE}(?:rotvec|rotation\.?vector|r)\.?([xyzw])"), "r{}"),
)
_NUMBERED = ((re.compile(rf"({_BEFORE}(?:{_PLACE})s?\.?)(\d+)(?:\[\])?"), "{}"),)
# Where no position, or no rotation, has one of those names.
_FURTHER = (
    (re.compile(rf"(?:{_TOOL})\.([xyz])"), "{}"),
    (re.compile(rf"{_BEFORE}([xyz])\.?(?:{_PLACE})"), "{}"),
    (re.compile(rf"{_BEFORE}([xyzw])\.?(?:{_TURN})"), "q{}"),
)
# Of arrays of several numbers a row only: "p[0]".
_FURTHER_NUMBERED = (
    (re.compile(rf"({_BEFORE}(?:p|xyz)\.)(\d+)\[\]"), "{}"),
    (re.compile(rf"({_BEFORE}(?:rot\.?vecs?|rotation\.?vectors?)\.)(\d+)\[\]"), "r{}"),
)
_Patterns = Sequence[tuple[re.Pattern[str], str]]
# Of a translation, or of a torque.
_TRANSLATION_OR_TORQUE = re.compile(rf"{_BEFORE}t\.?[xyz]")
_NUMBERED_TURN = re.compile(rf"{_BEFORE}(?:{_TURN}|q)s?\.?(?:quat\.?)?(xyzw|wxyz)?\.?([0-4])")
# In order of preference: the time of measurement before that of the recording program.
_TIMES = (
    re.compile(rf"{_BEFORE}header\.stamp"),
    re.compile(r"t|times?|timestamps?|stamps?|datetime|date|rosbagtimestamp|elapsed(?:\.time)?"),
)
# Where none has one of those names, and the rate is not given.
_FURTHER_TIMES = re.compile(
    r"ts|secs?|seconds|(?:recv|ros|system|unix|sim|relative|index)\.time(?:\.?stamp)?|time\.(?:stamps?|s|since\.start)"
)
# What may belong to a column of whole seconds.
_FRACTIONS = re.compile(r"(?:m|u|n|milli|micro|nano)s(?:ec(?:ond)?s?)?")
_SECONDS = re.compile(r"(|.*\.)secs?(?:onds)?")
_FRAME = re.compile(rf"{_BEFORE}(?<!child\.)frame\.id")

MAX_COLUMNS = 10_000
"""Columns of a table at most: names are recognised slowly."""
# Characters of a column's name that may state a unit: the pattern for units takes time with the square of them.
MAX_NAME = 1000

LONG = 10**14
"""Whole stamps from here on are kept whole: divided, they would be rounded to more than 0.01 ns in ns."""
# 2026-11-25T18:59:42.123456789Z, or with a blank, or slashes; in ns, years from 1678 to 2261 can be represented.
WALL_CLOCK = re.compile(r"(?:17|18|19|20|21)\d\d([-/])\d\d\1\d\d[T ]\d\d:\d\d")
OF_DAY = "times of day are read as 2026-11-25 18:59:42.5, in UTC unless +01:00 or the like follows"


@dataclass(frozen=True)
class Columns:
    """The columns of a table of poses.

    Attributes:
        roles: What each is, in order: position, then QUATERNION, ROTATION_VECTOR or MATRIX.
        names: As the table calls them.
        indices: Their places, counted from 0.
        units: Of each; "" where none is stated.
        times: The names of the column of time; of two, for s and ns or date and time; of none, where the rate is known.
        time_indices: Their places.
        date_and_time: Whether the two are a date and a time of day.
        understood: What names them, for the line that says how a file was read: "header names px..".
        time_unit: Stated, "" if it is not.
        width: Number of columns of every line; None for motion capture, where lines without a pose are left out.
        origin: What names them, for messages: "as the header in line 1 names".
        frame_index: Place of the column that names the poses' frame; None if there is none.
        frame: The poses' frame where the format defines it.
        rate: Samples per s; None where times are in the file.
    """

    roles: tuple[str, ...]
    names: tuple[str, ...]
    indices: tuple[int, ...]
    units: tuple[str, ...]
    times: tuple[str, ...]
    time_indices: tuple[int, ...]
    understood: str
    time_unit: str = ""
    date_and_time: bool = False
    width: int | None = None
    origin: str = "as the header names"
    frame_index: int | None = None
    frame: str = ""
    rate: float | None = None


class Table(NamedTuple):
    """The numbers of a table of poses, as in the file.

    Attributes:
        stamps: One number or datetime64 a row (T,), or the words of its columns of time, a tuple a row.
        values: Position and rotation (T, k), in the order of the columns' roles.
        lines: The line of each row; empty where a file has no lines.
        frame: Of the poses; "" if the table names none.
        left_out: The number of rows without a pose.
    """

    columns: Columns
    stamps: Array | NDArray[np.datetime64] | Sequence[tuple[str, ...]]
    values: Array
    lines: Sequence[int]
    frame: str = ""
    left_out: int = 0

    def line(self, row: int) -> int | None:
        return self.lines[row] if len(self.lines) else None


@dataclass(frozen=True)
class Choice:
    """What `--columns` says: for roles a column (its name, or its number counted from 1) and a unit."""

    columns: Mapping[str, str]
    units: Mapping[str, str]

    @classmethod
    def of(cls, text: str | None) -> Choice:
        """The choice of a text ROLE[UNIT]=NAME,...; any other is InvalidParameter."""
        columns: dict[str, str] = {}
        units: dict[str, str] = {}
        for item in (text or "").split(",") if text else ():
            found = re.fullmatch(r"\s*(\w+)\s*(?:\[(\w+)\])?\s*(?:=(.*))?", item)
            role, unit, name = found.groups() if found else ("", None, None)
            if (
                role not in ROLES
                or (unit is None and not name)
                or (unit and unit not in _ALLOWED.get(role, ()))
            ):
                known = f"known are {', '.join(ROLES)}, and the units {', '.join(UNITS)}"
                raise InvalidParameter(
                    "choice of columns", text, f"like t[ns]=stamp,x=px or x[mm]; {known}"
                )
            if name:
                columns[role] = name.strip()
            if unit:
                same = next(
                    (group for group in (POSITION, ROTATION_VECTOR) if role in group), (role,)
                )
                units |= {each: unit for each in same if each not in units} | {role: unit}
        return cls(columns, units)


def known_columns(
    path: str | Path,
    names: Sequence[str],
    choice: Choice,
    *,
    where: str,
    rate: float | None,
    line: int | None = None,
) -> Columns:
    """The columns of a table with these names, in any order and among others; a quaternion is preferred.

    The choice decides before the names do. One that is missing, appears twice, has an unknown unit or may mean two
    things is refused.
    """
    check_column_count(path, len(names), line)
    found = _found(names, rate)
    for role, wanted in choice.columns.items():
        found[role] = [_place(path, wanted, names, line)]
    numbered = _numbered(names)
    if "qw" not in found and numbered and not set(ROTATION_VECTOR) <= set(found):
        places, order = numbered
        if order is None:
            words = [bare(names[place]) for place in places]
            numbers = [str(place + 1) for place in places]
            xyzw = columns_flag(QUATERNION, words, numbers)
            wxyz = columns_flag(QUATERNION, words[1:] + words[:1], numbers[1:] + numbers[:1])
            reason = (
                "the order of the quaternion is not known: its four columns are numbered, and no motion shows which of "
                f"them is w. If it is xyzw, add {xyzw}; if it is wxyz, {wxyz}"
            )
            raise InputFileError(path, reason, line=line)
        found |= {f"q{axis}": [place] for axis, place in zip(order, places, strict=True)}
    pair = _seconds_and_nanoseconds(names) if "t" not in choice.columns else ()
    plain = {_normal(names[place]): place for place in found.get("t", ())}
    dated = not pair and len(found.get("t", ())) == 2 and plain.keys() == {"date", "time"}
    pair = (plain["date"], plain["time"]) if dated else pair
    vector = "rx" in choice.columns or ("rx" in found and not set(QUATERNION) <= set(found))
    roles = POSITION + (ROTATION_VECTOR if vector else QUATERNION)
    timed = () if pair or (rate is not None and "t" not in found) else ("t",)
    missing = [role for role in (*timed, *roles) if role not in found]
    if missing:
        more = ""
        if missing == ["t"]:
            more = "; a table without time needs --rate HZ, a column without a name is chosen by its number: t=1"
        if [role for role in missing if role != "t"] == list(roles[3:]):
            more = f". {NO_ROTATION}"
        listed = " (put a # before a comment)" if line else ""
        if where == "table":
            listed = f"; it has {quoted_list(names) or 'no numbers'}"
        reason = (
            f"read as a {where}{', as none of it is a number,' if where == 'header' else ''} but it does not name "
            f"{', '.join(missing)}; it needs {NEEDED}, in any order, or --columns t=NAME,x=NAME,...{listed}{more}"
        )
        raise InputFileError(path, reason, line=line)
    if twice := [role for role in (*timed, *roles) if len(found[role]) > 1]:
        same = "; ".join(
            f"{role}: {quoted_list(names[place].strip() for place in found[role])}"
            for role in twice
        )
        flag = ",".join(f"{role}=NAME" for role in twice)
        times = [_normal(names[place]) for place in found.get("t", ())]
        joined = "join them if parts of one, " if any(map(_FRACTIONS.fullmatch, times)) else ""
        reason = f"more than one column is {same}; {joined}rename the others, or choose: --columns {flag}"
        raise InputFileError(path, reason, line=line)
    indices = tuple(found[role][0] for role in roles)
    time_indices = pair or tuple(found["t"][:1] if timed else ())
    units = tuple(
        _unit(path, line, role, names[place], choice)
        for role, place in zip(roles, indices, strict=True)
    )
    time_unit = _unit(path, line, "t", names[time_indices[0]], choice) if timed else ""
    frames = [place for place, name in enumerate(names) if _FRAME.fullmatch(_normal(name))]
    return Columns(
        roles=roles,
        names=tuple(names[place].strip() for place in indices),
        indices=indices,
        units=units,
        times=tuple(names[place].strip() for place in time_indices),
        time_indices=time_indices,
        time_unit=time_unit,
        date_and_time=dated,
        width=len(names),
        origin=f"as the {where} in line {line} names" if line else f"as the {where} names",
        understood=f"{where} names {bare(names[indices[0]])}..",
        frame_index=frames[0] if len(frames) == 1 else None,
        rate=None if time_indices else rate,
    )


def check_column_count(path: str | Path, count: int, line: int | None = None) -> None:
    """Refuse a table of more than MAX_COLUMNS columns."""
    if count > MAX_COLUMNS:
        reason = f"it has {count:,} columns; at most {MAX_COLUMNS:,} are read"
        raise InputFileError(path, reason, line=line)


# Numbers of names of a table with nothing else: with a rotation vector, and with a quaternion.
BARE_HEADER_LENGTHS = (7, 8)


def is_bare_header(words: Sequence[str]) -> bool:
    """Whether words are exactly the names of a table of poses: time, position and one kind of rotation."""
    if len(words) not in BARE_HEADER_LENGTHS:
        return False
    roles = [role for role, places in _found(words).items() for _ in places]
    known = [sorted(("t", *POSITION, *rotation)) for rotation in (QUATERNION, ROTATION_VECTOR)]
    return sorted(roles) in known and len(roles) == len(words)


def roles_named(names: Sequence[str], rate: float | None = None) -> set[str]:
    """The roles of which there is a column, or several, by these names; with a rate, of the time only a plain one."""
    pair, quaternion = _seconds_and_nanoseconds(names), _numbered(names)
    return {*_found(names, rate), *("t" for _ in pair[:1]), *(QUATERNION if quaternion else ())}


def _found(names: Sequence[str], rate: float | None = None) -> dict[str, list[int]]:
    """The places of the columns that names tell to be of a role."""
    words = [
        _normal(name) + ("[]" if re.search(r"\[\d+\]$", name) else "")
        for name, _ in map(_name_and_unit, names)
    ]
    found = _matched(words, _NAMES, _NUMBERED)
    angles = [
        place
        for role in ROTATION_VECTOR
        for place in found.get(role, ())
        if _name_and_unit(names[place])[1]
    ]
    if (
        {"rw", *ROTATION_VECTOR} <= found.keys()
        and not set(QUATERNION) & found.keys()
        and not angles
    ):
        # "rx ry rz rw", as of Vicon, is no rotation vector.
        found |= {f"q{axis}": found.pop(f"r{axis}") for axis in "xyzw"}
    further = _matched(words, _FURTHER, _FURTHER_NUMBERED)
    if not set(QUATERNION) <= further.keys():
        # "x_rot y_rot z_rot" are angles.
        further = {role: places for role, places in further.items() if role not in QUATERNION}
    for group in (POSITION, () if _numbered(names) else QUATERNION + ROTATION_VECTOR):
        known = [words[place] for role in group for place in found.get(role, ())]
        # Beside tcp_x, tx may be a torque: then both are candidates.
        if all(map(_TRANSLATION_OR_TORQUE.fullmatch, known)):
            found |= {
                role: [*found.get(role, ()), *further[role]] for role in group if role in further
            }
    for pattern in _TIMES:
        if times := [place for place, word in enumerate(words) if pattern.fullmatch(word)]:
            found["t"] = times
            return found
    times = [place for place, word in enumerate(words) if _FURTHER_TIMES.fullmatch(word)]
    if times and rate is None:
        # Beside sec, usec may be its fraction: then both are candidates.
        found["t"] = times + [
            place for place, word in enumerate(words) if _FRACTIONS.fullmatch(word)
        ]
    return found


def _matched(
    words: Sequence[str], patterns: _Patterns, numbered: _Patterns
) -> dict[str, list[int]]:
    """The places by roles of the words that match a pattern, or are one of exactly three, numbered from 0, that do."""
    found: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        for pattern, role in patterns:
            if match := pattern.fullmatch(word):
                axis = next(part for part in match.groups() if part)
                found.setdefault(role.format(axis), []).append(place)
                break
    for pattern, role in numbered:
        matches = [
            (place, match) for place, word in enumerate(words) if (match := pattern.fullmatch(word))
        ]
        numbers: dict[str, set[str]] = {}
        for _, match in matches:
            numbers.setdefault(match[1], set()).add(match[2])
        for place, match in matches:
            if numbers[match[1]] == {"0", "1", "2"}:
                found.setdefault(role.format("xyz"[int(match[2])]), []).append(place)
    return found


def _numbered(names: Sequence[str]) -> tuple[tuple[int, ...], str | None] | None:
    """The places of four numbered components of a quaternion, and their order if the name says it."""
    places: dict[tuple[str, int], int] = {}
    for place, name in enumerate(names):
        if match := _NUMBERED_TURN.fullmatch(_normal(name)):
            places[match[1] or "", int(match[2])] = place
    numbers = sorted(number for _, number in places)
    orders = {order for order, _ in places}
    if len(orders) != 1 or numbers not in ([0, 1, 2, 3], [1, 2, 3, 4]):
        return None
    order = orders.pop()
    return tuple(places[order, number] for number in numbers), order or None


def _seconds_and_nanoseconds(names: Sequence[str]) -> tuple[int, ...]:
    """The places of a stamp in two columns: "header.stamp.sec" and "header.stamp.nanosec"."""
    plain = {_normal(name): place for place, name in reversed(list(enumerate(names)))}
    for name, place in plain.items():
        if match := _SECONDS.fullmatch(name):
            for rest in ("nanosec", "nanosecs", "nsec", "nsecs", "nanoseconds"):
                if match[1] + rest in plain:
                    return place, plain[match[1] + rest]
    return ()


def _place(path: str | Path, wanted: str, names: Sequence[str], line: int | None) -> int:
    """The place of a column that was asked for by its name, or by its number counted from 1."""
    plain = [bare(name).lower() for name in names]
    if wanted.lower() in plain:
        return plain.index(wanted.lower())
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    listed = quoted_list(name.strip() for name in names)
    raise InputFileError(
        path, f"there is no column {quoted(wanted)} (--columns); there are {listed}", line=line
    )


def _unit(path: str | Path, line: int | None, role: str, name: str, choice: Choice) -> str:
    """The unit of a column: as asked for, else as its name says; "" if nothing says it."""
    if role in choice.units:
        return choice.units[role]
    said = _name_and_unit(name)[1]
    unit = UNIT_NAMES.get(said, said)
    allowed = _ALLOWED.get(role, ())
    if not unit or (role in QUATERNION and unit in ("1", "-")):
        return ""
    if unit not in allowed:
        units = f"known for {role} are {', '.join(allowed)}" if allowed else f"{role} has none"
        raise InputFileError(
            path, f"{quoted(name.strip())} has the unit {unquoted(unit)}; {units}", line=line
        )
    return unit


# A name that can be pasted into a shell and into --columns as it is, and is no column's number.
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.\-/:]*", re.ASCII)


def columns_flag(roles: Sequence[str], names: Sequence[str], numbers: Sequence[str]) -> str:
    """Return the flag --columns that chooses these columns, to be copied.

    It names them, or where a name would have to be quoted, gives their numbers.
    """
    chosen = names if all(map(_PLAIN_NAME.fullmatch, names)) else numbers
    return "--columns " + ",".join(
        f"{role}={name}" for role, name in zip(roles, chosen, strict=True)
    )


def bare(word: str) -> str:
    """A word without blanks and quotation marks around it."""
    return word.strip().strip("\"'")


def _normal(name: str) -> str:
    """A name in lower case with dots between its parts."""
    return re.sub(r"[^a-z0-9]+", ".", bare(name).lower()).strip(".")


def _name_and_unit(field: str) -> tuple[str, str]:
    """A column's name in lower case, and its unit or an empty text; of an array, "p_mm[0]" is p[0] in mm."""
    name = bare(field).lower()
    if len(name) > MAX_NAME:
        return name, ""
    array = re.sub(r"\[\d+\]$", "", name)
    found = _WITH_UNIT.fullmatch(array)
    if found is None or not found[1]:
        return name, ""
    unit = next((unit for unit in found.groups()[1:] if unit is not None), "").strip()
    return found[1] + name[len(array) :], unit
