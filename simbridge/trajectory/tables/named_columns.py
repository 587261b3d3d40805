"""The columns of poses in a table by their names, or as `--columns` chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list, unquoted
from simbridge.trajectory.tables.aliases import FRACTIONS, TIMES
from simbridge.trajectory.tables.choice import Choice, columns_flag
from simbridge.trajectory.tables.column_names import bare, parse_column_name
from simbridge.trajectory.tables.column_roles import ColumnRoles, find_roles
from simbridge.trajectory.tables.roles import (
    NEEDED,
    NO_ROTATION,
    POSITION,
    QUATERNION,
    ROTATION_VECTOR,
)
from simbridge.trajectory.tables.table import Columns, check_column_count
from simbridge.trajectory.tables.units import UNIT_SPELLINGS, units_of

# What stands for the unit of a number without one, in brackets.
NO_UNIT = ("1", "-")
# A controller's poses of the TCP, which are in the pendant's base.
TCP_POSE_FIELDS = ("actual_tcp_pose", "target_tcp_pose")


@dataclass(frozen=True)
class Header:
    """The names of a table's columns.

    Attributes:
        path: The file, for messages.
        names: As the table has them.
        kind: What has them, for messages: "header", "comment", "table" or "flag --columns".
        line: Its line, counted from 1; None if the file has no lines.
    """

    path: str | Path
    names: Sequence[str]
    kind: str
    line: int | None = None

    @property
    def origin(self) -> str:
        """What names the columns, for messages: "as the header in line 1 names"."""
        place = f" in line {self.line}" if self.line else ""
        return f"as the {self.kind}{place} names"

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the file for what its names say."""
        raise InputFileError(self.path, reason, line=self.line)


def pose_columns_of(header: Header, choice: Choice, rate: float | None = None) -> Columns:
    """Return the columns of the poses in a table with these names, in any order and among others.

    The choice decides before the names do. A quaternion goes before a rotation vector.

    Args:
        header: The names.
        choice: What `--columns` says.
        rate: Samples per s, for a table without time.

    Raises:
        InputFileError: A column is missing, may be one of several, or has an unknown unit.
    """
    check_column_count(header.path, len(header.names), header.line)
    roles_found = find_roles(header.names, has_rate=rate is not None)
    columns = dict(roles_found.columns)
    for role, name in choice.columns.items():
        columns[role] = [chosen_column(header, name)]
    if roles_found.numbered_quaternion and not _has_rotation(columns):
        _refuse_unknown_order(header, roles_found)

    # The time is in two columns, or in one, or follows from the rate.
    time_indices = time_columns(header, choice, roles_found)
    is_date_and_time = bool(time_indices) and time_indices != roles_found.stamp_pair
    has_time_column = not time_indices and (rate is None or "t" in columns)

    # Each role has one column.
    roles = (*POSITION, *_rotation_roles(columns, choice))
    timed_roles = ("t", *roles) if has_time_column else roles
    missing = [role for role in timed_roles if role not in columns]
    if missing:
        _refuse_missing(header, missing, roles, columns)
    refuse_repeated(header, timed_roles, columns)

    time_unit = ""
    if has_time_column:
        time_indices = (columns["t"][0],)
        time_unit = unit_of(header, "t", header.names[time_indices[0]], choice)
    indices = tuple(columns[role][0] for role in roles)
    names = [header.names[index].strip() for index in indices]
    units = [unit_of(header, role, name, choice) for role, name in zip(roles, names, strict=True)]
    return Columns(
        roles=roles,
        names=tuple(names),
        indices=indices,
        units=tuple(units),
        times=tuple(header.names[index].strip() for index in time_indices),
        time_indices=time_indices,
        time_unit=time_unit,
        is_date_and_time=is_date_and_time,
        width=len(header.names),
        origin=header.origin,
        understood=f"{header.kind} names {bare(names[0])}..",
        frame_index=roles_found.frame,
        rate=None if time_indices else rate,
        is_in_pendant_base=all(map(_is_tcp_pose, names[:3])),
    )


def _is_tcp_pose(name: str) -> bool:
    """Return whether a column is a component of a controller's TCP pose."""
    return bare(name).lower().startswith(TCP_POSE_FIELDS)


def chosen_column(header: Header, choice: str) -> int:
    """Return the column that was chosen by its name, or by its number counted from 1."""
    plain = [bare(name).lower() for name in header.names]
    if choice.lower() in plain:
        return plain.index(choice.lower())
    if choice.isdecimal() and 1 <= int(choice) <= len(plain):
        return int(choice) - 1
    listed = quoted_list(name.strip() for name in header.names)
    header.refuse(f"there is no column {quoted(choice)} (--columns); there are {listed}")


def _has_rotation(columns: dict[str, list[int]]) -> bool:
    """Return whether the columns have a rotation whose order is known."""
    return "qw" in columns or set(ROTATION_VECTOR) <= set(columns)


def _rotation_roles(columns: dict[str, list[int]], choice: Choice) -> tuple[str, ...]:
    """Return the roles of the rotation that is read."""
    if "rx" in choice.columns:
        return ROTATION_VECTOR
    has_quaternion = set(QUATERNION) <= set(columns)
    return ROTATION_VECTOR if "rx" in columns and not has_quaternion else QUATERNION


def time_columns(header: Header, choice: Choice, roles_found: ColumnRoles) -> tuple[int, ...]:
    """Return the two columns that are the time together; empty if one column is."""
    if "t" in choice.columns:
        return ()
    if roles_found.stamp_pair:
        return roles_found.stamp_pair
    words = {
        " ".join(parse_column_name(header.names[index]).words): index
        for index in roles_found.columns.get("t", ())
    }
    if words.keys() == {"date", "time"}:
        return words["date"], words["time"]
    return ()


def _refuse_unknown_order(header: Header, roles_found: ColumnRoles) -> NoReturn:
    """Refuse a quaternion whose components are numbered, with both readings."""
    indices = roles_found.numbered_quaternion
    names = [bare(header.names[index]) for index in indices]
    xyzw = columns_flag(QUATERNION, names, indices)
    wxyz = columns_flag(("qw", "qx", "qy", "qz"), names, indices)
    header.refuse(
        "the order of the quaternion is not known: its four columns are numbered, and no motion "
        f"shows which of them is w. If it is xyzw, add {xyzw}; if it is wxyz, {wxyz}"
    )


def _refuse_missing(
    header: Header, missing: Sequence[str], roles: Sequence[str], columns: dict[str, list[int]]
) -> NoReturn:
    """Refuse a table that lacks columns, with a ready `--columns`."""
    advice = ""
    flag = _ready_flag(missing)
    if missing == ["t"]:
        flag = _time_flag(header)
        advice = (
            "; a table without time needs --rate HZ, a column without a name is chosen by its "
            "number: t=1"
        )
    if [role for role in missing if role != "t"] == list(roles[3:]):
        advice = f". {NO_ROTATION}"

    # Of a header, other words in the first line may be meant as a comment.
    comment = ""
    if header.kind == "table":
        comment = f"; it has {quoted_list(header.names) or 'no numbers'}"
    elif header.line:
        comment = " (put a # before a comment)"
    why = ", as none of it is a number," if header.kind == "header" else ""
    header.refuse(
        f"read as a {header.kind}{why} but it does not name {', '.join(missing)}; it needs "
        f"{NEEDED}, in any order, or {flag}{comment}{advice}"
    )


def _ready_flag(missing: Sequence[str]) -> str:
    """Return the flag --columns in which only names have to be put in."""
    return "--columns " + ",".join(f"{role}=NAME" for role in missing)


def _time_flag(header: Header) -> str:
    """Return the flag --columns for the time: ready, if one column alone may be one."""
    plain = [bare(name) for name in header.names]
    words = [parse_column_name(name).words for name in header.names]
    candidates = [i for i, name in enumerate(plain) if not name or set(words[i]) & set(TIMES)]
    if len(candidates) != 1:
        return _ready_flag(["t"])
    return columns_flag(["t"], [plain[candidates[0]]], candidates)


def refuse_repeated(header: Header, roles: Sequence[str], columns: dict[str, list[int]]) -> None:
    """Refuse a table in which a role may be that of several columns."""
    repeated = [role for role in roles if len(columns.get(role, ())) > 1]
    if not repeated:
        return

    candidates = [
        f"{role}: {quoted_list(header.names[index].strip() for index in columns[role])}"
        for role in repeated
    ]
    times = [parse_column_name(header.names[index]).words for index in columns.get("t", ())]
    joined = ""
    if any(" ".join(words) in FRACTIONS for words in times):
        joined = "join them if parts of one, "
    header.refuse(
        f"more than one column is {'; '.join(candidates)}; {joined}rename the others, or choose: "
        f"{_flags_of_candidates(header, repeated, columns)}"
    )


def _flags_of_candidates(
    header: Header, repeated: Sequence[str], columns: dict[str, list[int]]
) -> str:
    """Return the flags --columns that choose between columns: the first of each role, and so on."""
    counts = {len(columns[role]) for role in repeated}
    if counts != {2}:
        return _ready_flag(repeated)

    plain = [bare(name) for name in header.names]
    flags = []
    for place in range(2):
        indices = [columns[role][place] for role in repeated]
        names = [plain[index] for index in indices]
        if len({name.lower() for name in plain}) < len(plain):
            names = [str(index + 1) for index in indices]
        flags.append(columns_flag(repeated, names, indices))
    return " or ".join(flags)


def unit_of(header: Header, role: str, name: str, choice: Choice) -> str:
    """Return the unit of a column: as chosen, else as its name says; "" if nothing says it."""
    if role in choice.units:
        return choice.units[role]
    written = parse_column_name(name).unit
    unit = UNIT_SPELLINGS.get(written, written)
    if not unit or (role in QUATERNION and unit in NO_UNIT):
        return ""

    allowed = units_of(role)
    if unit not in allowed:
        known = f"{role} has none"
        if allowed:
            stated = " or ".join(f"--columns {role}[{unit}]" for unit in allowed)
            known = f"known for {role} are {', '.join(allowed)}: {stated}"
        header.refuse(f"{quoted(name.strip())} has the unit {unquoted(unit)}; {known}")
    return unit
