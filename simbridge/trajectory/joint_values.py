"""Joint positions of a table, in rad and m."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.robot.pose import Array, Flags
from simbridge.text import significant
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.table import Table
from simbridge.trajectory.tables.unit_comments import commented_unit
from simbridge.trajectory.tables.units import ANGLE_UNITS, LENGTH_UNITS, UNITS

# Positions without a unit beyond it, a little more than a turn, are most likely in degrees, rad.
MAX_PLAUSIBLE_POSITION = 6.5


def joints_of(path: str | Path, table: Table, arm: ArmJoints) -> tuple[Array, str]:
    """Return the joint positions in a table, and the units that they had.

    Without a stated unit they are in rad, those of prismatic joints in m.

    Args:
        path: The file, for messages.
        table: A table with the columns of the arm's joints.
        arm: The arm.

    Returns:
        Joint positions (T, n), rad or m; and their units in words, "deg".

    Raises:
        InputFileError: A joint turns by more than a turn and no unit is stated, or the unit is not
            one of the joint.
    """
    columns = table.columns
    is_turning = ~np.array(arm.prismatic, dtype=bool)
    commented = ""
    if not any(columns.units):
        commented = _commented_unit(path, table, is_turning)

    # The unit of each joint: the stated one, that of a comment on angles, or else rad or m.
    units = []
    possible: tuple[str, ...]
    for name, stated, is_prismatic in zip(columns.names, columns.units, arm.prismatic, strict=True):
        if is_prismatic:
            unit = stated or "m"
            possible = LENGTH_UNITS
            motion = "moves along its axis"
        else:
            unit = stated or commented or "rad"
            possible = ANGLE_UNITS
            motion = "turns"

        if unit not in possible:
            reason = f"its unit is {unit}, but this joint of {arm.arm} {motion}"
            raise InputFileError(path, reason, field=name)
        units.append(unit)

    if not any(columns.units) and not commented:
        check_turns(path, table.values[:, is_turning])
    # UNITS says how many of each unit make one rad or one m: 1000 mm make 1 m.
    joints = table.values / np.array([UNITS[unit] for unit in units])
    return joints, " and ".join(dict.fromkeys(units))


def _commented_unit(path: str | Path, table: Table, is_turning: Flags) -> str:
    """Return the unit of joint angles that a comment states; "" if none does."""
    largest = float(np.abs(table.values[:, is_turning]).max(initial=0.0))
    implausible = ["deg"] if largest <= MAX_PLAUSIBLE_POSITION else ["rad"]
    stated = table.columns.commented_units.get("angle")
    return commented_unit(path, stated, "j1", implausible=implausible)


def check_turns(path: str | Path, joints: Array) -> None:
    """Refuse joint positions (T, k) without a unit that may be degrees."""
    largest = float(np.abs(joints).max(initial=0.0))
    if largest > MAX_PLAUSIBLE_POSITION:
        number = significant(largest, 4)
        reason = (
            f"radians or degrees? A joint is at {number}, which would be more than a full turn in "
            "radians. State the unit: --columns j1[deg] or --columns j1[rad], for all joints"
        )
        raise InputFileError(path, reason, field="joint positions")
