"""A recording: the motion in a file, in m, s and unit quaternions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError, InvalidTrajectory
from simbridge.quoting import quoted_list
from simbridge.robot.pose import Array
from simbridge.text import counted
from simbridge.trajectory.dropped_rows import dropped_rows, warn_of
from simbridge.trajectory.joint_values import joints_of
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.table import Table
from simbridge.trajectory.tables.table_rotations import quaternions_of
from simbridge.trajectory.tables.table_times import times_of
from simbridge.trajectory.tables.unit_rules import length_unit
from simbridge.trajectory.tables.units import UNITS
from simbridge.trajectory.trajectory import Trajectory, describe_reading

LENGTH_NAMES = {"m": "metres", "cm": "centimetres", "mm": "millimetres"}
# A file of this name is in seconds and metres: that is what the format is.
TUM_SUFFIX = ".tum"


class Recording(NamedTuple):
    """A file as read.

    Attributes:
        trajectory: Motion in the file.
        frame: The name of the poses' frame; "" if it has none.
        is_in_pendant_base: Whether the format defines that the poses are in the pendant's base.
        is_placed_by_file: Whether the file itself says where its poses are relative to the arm: by
            the tf of a bag, or as poses in UR's base frame.
        tf_fault: Why the tf of their bag does not relate their frame to the arm's base, as a
            clause; "" if it was not asked.
        related_frames: The frames to which the tf of their bag relates the poses, where none of
            them is the arm's base.
    """

    trajectory: Trajectory
    frame: str
    is_in_pendant_base: bool = False
    is_placed_by_file: bool = False
    tf_fault: str = ""
    related_frames: tuple[str, ...] = ()


def recording_of(
    path: str | Path, table: Table, rate: float | None = None, arm: ArmJoints | None = None
) -> Recording:
    """Return the motion in a table; a warning says what was left out.

    Args:
        path: The file, for messages.
        table: The table as it was read.
        rate: Samples per s, as given for a table without time.
        arm: The arm whose joint positions the table has, if it has any.

    Raises:
        InputFileError: The table is not a motion, or its unit is ambiguous; with the line if there
            is one.
    """
    columns = table.columns
    _check_units(path, table)
    if rate not in (None, columns.rate):
        raise InputFileError(path, f"it has timestamps ({', '.join(columns.times)}); omit --rate")

    # A format that defines units.
    is_tum = Path(path).suffix.lower() == TUM_SUFFIX
    metres_by = TUM_SUFFIX if is_tum else columns.metres_by
    seconds_by = TUM_SUFFIX if is_tum else ""

    joints = None
    if arm is not None and columns.are_joints:
        joints, units = joints_of(path, table, arm)
        poses = arm.tool_path(joints)
    else:
        poses, units = _poses(path, table, metres_by)
    times, epoch_ns, clock = times_of(path, table, poses, seconds_by)

    # Rows that repeat the one before.
    is_repeated = np.zeros(len(times), dtype=bool)
    samples = poses if joints is None else joints
    is_repeated[1:] = (np.diff(times) == 0.0) & (samples[1:] == samples[:-1]).all(axis=1)
    repeated = np.flatnonzero(is_repeated)
    unit = "line" if len(table.lines) else "row"
    places = [table.line(row) or table.row_number(row) for row in repeated.tolist()]
    warn_of(path, [*table.dropped, *dropped_rows("repeated row", places, unit=unit)])

    rows = np.flatnonzero(~is_repeated)
    try:
        trajectory = Trajectory(
            times[rows],
            poses[rows],
            source=str(path),
            epoch_ns=epoch_ns,
            joints=None if joints is None else joints[rows],
        )
    except InvalidTrajectory as fault:
        _refuse_sample(path, table, fault, rows=rows, times=times[rows])
    understood = ", ".join((columns.understood, units, clock))
    if columns.is_in_pendant_base:
        understood += ", placed from base"
    motion = describe_reading(trajectory, understood, table.frame)
    return Recording(motion, table.frame, columns.is_in_pendant_base)


def _check_units(path: str | Path, table: Table) -> None:
    """Refuse a vector of which some components have a unit, others none."""
    columns = table.columns
    vectors = (slice(None),) if columns.are_joints else (slice(3), slice(3, None))
    for part in vectors:
        units = columns.units[part]
        has_units = columns.are_joints or len(units) == 3
        if has_units and any(units) and not all(units):
            names = quoted_list(columns.names[part])
            flags = _flags_of_units(columns.roles[part], units)
            reason = (
                f"some of these columns have a unit and others do not: {names}. State the units "
                f"of all of them: {flags}"
            )
            raise InputFileError(path, reason)


def _flags_of_units(roles: Sequence[str], units: Sequence[str]) -> str:
    """Return the flags that give the components without a unit one of the units of the others."""
    flags = []
    for unit in dict.fromkeys(filter(None, units)):
        completed = [stated or unit for stated in units]
        parts = [f"{role}[{stated}]" for role, stated in zip(roles, completed, strict=True)]
        if len(set(completed)) == 1:
            # The unit of one is that of all.
            parts = parts[:1]
        flags.append(f"--columns {','.join(parts)}")
    return " or ".join(flags)


def _poses(path: str | Path, table: Table, metres_by: str) -> tuple[Array, str]:
    """Return poses (T, 7), m and quaternions, and the units that they had."""
    positions, length = _positions(path, table, metres_by)
    quaternions, rotation = quaternions_of(path, table)
    return np.column_stack([positions, quaternions]), f"{length}, {rotation}"


def _positions(path: str | Path, table: Table, metres_by: str) -> tuple[Array, str]:
    """Return positions (T, 3), m, and the name of the unit that they had."""
    values = table.values[:, :3]
    units = table.columns.units[:3]
    if not any(units):
        stated = table.columns.commented_units.get("length")
        units = (length_unit(path, values, metres_by, stated),) * 3
    positions = values / np.array([UNITS[unit] for unit in units])
    names = dict.fromkeys(LENGTH_NAMES[unit] for unit in units)
    return positions, ", ".join(names)


def _refuse_sample(
    path: str | Path,
    table: Table,
    fault: InvalidTrajectory,
    *,
    rows: NDArray[np.intp],
    times: Array,
) -> NoReturn:
    """Refuse the file for a sample that is not valid, with its line.

    Args:
        path: The file.
        table: The table as it was read.
        fault: What is wrong.
        rows: The row of each sample (T,).
        times: Instants of the samples (T,), s.
    """
    line = None
    reason = fault.reason
    if fault.sample is not None:
        row = int(rows[fault.sample])
        line = table.line(row)
        if line is None:
            reason += f" (row {table.row_number(row)})"
    backward_count = int((np.diff(times) <= 0.0).sum())
    if fault.field == "time" and backward_count:
        rows_in_all = counted(backward_count, "row")
        reason += f" ({rows_in_all} in all; sort the file by time, or remove them)"
    raise InputFileError(path, reason, line=line, field=fault.field) from fault
