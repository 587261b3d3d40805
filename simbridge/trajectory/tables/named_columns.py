"""The columns of poses in a table by their names, or as `--columns` chooses them."""

from __future__ import annotations

from simbridge.quoting import quoted, unquoted
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.column_names import parse_column_name, strip_quotes
from simbridge.trajectory.tables.column_roles import ColumnRoles, find_roles
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.pose_refusals import Needs, refuse_poses
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, ROTATION_VECTOR
from simbridge.trajectory.tables.table import CHILD_FRAME_IS, Columns, check_column_count
from simbridge.trajectory.tables.units import UNIT_SPELLINGS, allowed_units

# What stands for the unit of a number without one, in brackets.
NO_UNIT = ("1", "-")
# A controller's poses of the TCP, which are in the pendant's base.
TCP_POSE_FIELDS = ("actual_tcp_pose", "target_tcp_pose")


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
    named_roles = find_roles(header.names, has_rate=rate is not None)
    chosen = {role: header.find_column(name) for role, name in choice.columns.items()}
    columns = {**named_roles.columns, **{role: [index] for role, index in chosen.items()}}
    has_order = not named_roles.numbered_quaternion or _has_rotation(columns)

    # The time is in two columns, or in one, or follows from the rate.
    time_indices = time_pair(header, choice, named_roles)
    is_date_and_time = bool(time_indices) and time_indices != named_roles.stamp_pair
    has_time_column = not time_indices and (rate is None or "t" in columns)

    # Each role has one column.
    roles = (*POSITION, *_rotation_roles(columns, choice))
    timed_roles = ("t", *roles) if has_time_column else roles
    if not has_order or any(len(columns.get(role, ())) != 1 for role in timed_roles):
        needs = Needs(timed_roles, columns, chosen, has_order, needs_time=has_time_column)
        refuse_poses(header, needs, choice.arm)

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
        understood=f"{header.kind} names {strip_quotes(names[0])}..",
        frame_index=named_roles.frame,
        constant_indices=() if named_roles.child_frame is None else (named_roles.child_frame,),
        constant_subject=CHILD_FRAME_IS,
        rate=None if time_indices else rate,
        is_in_pendant_base=all(map(_is_tcp_pose, names[:3])),
    )


def _is_tcp_pose(name: str) -> bool:
    """Return whether a column is a component of a controller's TCP pose."""
    return strip_quotes(name).lower().startswith(TCP_POSE_FIELDS)


def _has_rotation(columns: dict[str, list[int]]) -> bool:
    """Return whether the columns have a rotation whose order is known."""
    return "qw" in columns or set(ROTATION_VECTOR) <= set(columns)


def _rotation_roles(columns: dict[str, list[int]], choice: Choice) -> tuple[str, ...]:
    """Return the roles of the rotation that is read."""
    if "rx" in choice.columns:
        return ROTATION_VECTOR
    has_quaternion = set(QUATERNION) <= set(columns)
    return ROTATION_VECTOR if "rx" in columns and not has_quaternion else QUATERNION


def time_pair(header: Header, choice: Choice, named_roles: ColumnRoles) -> tuple[int, ...]:
    """Return the two columns that are the time together; empty if one column is."""
    if "t" in choice.columns:
        return ()
    if named_roles.stamp_pair:
        return named_roles.stamp_pair
    words = {
        " ".join(parse_column_name(header.names[index]).words): index
        for index in named_roles.columns.get("t", ())
    }
    if words.keys() == {"date", "time"}:
        return words["date"], words["time"]
    return ()


def unit_of(header: Header, role: str, name: str, choice: Choice) -> str:
    """Return the unit of a column: as chosen, else as its name says; "" if nothing says it."""
    if role in choice.units:
        return choice.units[role]
    written = parse_column_name(name).unit
    unit = UNIT_SPELLINGS.get(written, written)
    if not unit or (role in QUATERNION and unit in NO_UNIT):
        return ""

    allowed = allowed_units(role)
    if unit not in allowed:
        known = f"{role} has no unit"
        if allowed:
            stated = " or ".join(f"--columns {role}[{unit}]" for unit in allowed)
            known = f"state one of {', '.join(allowed)}: {stated}"
        header.refuse(f"{quoted(name.strip())} has the unit {unquoted(unit)}; {known}")
    return unit
