"""The user's choice of a table's content: columns and units by `--columns`, poses or joints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simbridge.errors import InvalidParameter
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.roles import (
    POSITION,
    ROLES,
    ROTATION_VECTOR,
    is_joint_role,
    joint_roles,
)
from simbridge.trajectory.tables.units import UNITS, allowed_units

# ROLE=NAME, ROLE[UNIT] or ROLE[UNIT]=NAME.
_ITEM = re.compile(r"\s*(\w+)\s*(?:\[(\w+)\])?\s*(?:=(.*))?")
# The roles of joints. The unit of one joint is that of all.
JOINT_ROLES = joint_roles(99)
# A name that can be pasted into a shell and into --columns as it is, and is no column's number.
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.\-/:]*", re.ASCII)


@dataclass(frozen=True)
class Choice:
    """The user's choice of columns, units and content of a table.

    Attributes:
        columns: The name of each role's column, or its number counted from 1; only of chosen roles.
        units: The unit of each role; only of roles whose unit is stated.
        arm: The joints whose positions may be read instead of poses; None for poses only.
        asks_for_joints: Whether they are read where the table has poses, too.
    """

    columns: Mapping[str, str]
    units: Mapping[str, str]
    arm: ArmJoints | None = None
    asks_for_joints: bool = False

    @property
    def names_joints(self) -> bool:
        """True if columns or units of joints are chosen."""
        return any(map(is_joint_role, (*self.columns, *self.units)))

    @classmethod
    def parse(cls, text: str | None) -> Choice:
        """Return the choice of a text ROLE[UNIT]=NAME,...; None chooses nothing.

        Raises:
            InvalidParameter: The text has another form, or an unknown role or unit.
        """
        columns: dict[str, str] = {}
        units: dict[str, str] = {}
        items = text.split(",") if text else []
        for item in items:
            # Its role; its unit, or None; and the name of its column, or None.
            match = _ITEM.fullmatch(item)
            role, unit, name = match.groups() if match else ("", None, None)
            if not _is_choice(role, unit, name):
                roles = f"{', '.join(ROLES)} and j1, j2, ... for joints"
                known = f"the roles are {roles}; the units are {', '.join(UNITS)}"
                needed = f"of the form t[ns]=stamp,x=px or x[mm]: {known}"
                raise InvalidParameter("choice of columns", text, needed)

            if name:
                columns[role] = name.strip()
            if unit:
                # The unit of one component holds for the other components, too, unless they have
                # their own.
                for component in _components_like(role):
                    units.setdefault(component, unit)
                units[role] = unit
        return cls(columns, units)


def _is_choice(role: str, unit: str | None, name: str | None) -> bool:
    """Return whether a role is known, and is given a column, or a unit that it may have."""
    is_known = role in ROLES or is_joint_role(role)
    if not is_known or (unit is None and not name):
        return False
    return not unit or unit in allowed_units(role)


def _components_like(role: str) -> tuple[str, ...]:
    """Return the roles that share a role's unit."""
    for vector in (POSITION, ROTATION_VECTOR, JOINT_ROLES):
        if role in vector:
            return vector
    return (role,)


def columns_flag(roles: Sequence[str], names: Sequence[str], indices: Sequence[int]) -> str:
    """Return the flag --columns that chooses these columns, to be copied.

    Args:
        roles: The roles.
        names: The name of each role's column.
        indices: The index of each role's column. The columns' numbers are used if a name would have
            to be quoted.
    """
    chosen = names
    if not all(_PLAIN_NAME.fullmatch(name) for name in names):
        chosen = [str(index + 1) for index in indices]
    return "--columns " + ",".join(
        f"{role}={column}" for role, column in zip(roles, chosen, strict=True)
    )
