"""The columns of joint positions in a table, by their names or as `--columns` chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from simbridge.quoting import quoted_list
from simbridge.trajectory.tables.choice import Choice, columns_flag
from simbridge.trajectory.tables.column_names import bare
from simbridge.trajectory.tables.column_roles import find_roles
from simbridge.trajectory.tables.joint_columns import (
    ArmJoints,
    find_foreign_joints,
    find_joint_vectors,
)
from simbridge.trajectory.tables.named_columns import (
    Header,
    chosen_column,
    pose_columns_of,
    refuse_repeated,
    time_columns,
    unit_of,
)
from simbridge.trajectory.tables.roles import (
    POSITION,
    QUATERNION,
    ROTATION_VECTOR,
    is_joint_role,
    joint_roles,
)
from simbridge.trajectory.tables.table import Columns, check_column_count

# The sets of joint positions for which a refusal has a flag, at most.
MAX_FLAGS = 3


def columns_of(header: Header, choice: Choice, rate: float | None = None) -> Columns:
    """Return the columns of a table with these names: those of poses, or else of an arm's joints.

    Args:
        header: The names.
        choice: What is asked of the table.
        rate: Samples per s, for a table without time.

    Raises:
        InputFileError: A column is missing, may be one of several, or has an unknown unit; or the
            joints are those of another arm.
    """
    check_column_count(header.path, len(header.names), header.line)
    if choice.arm is not None and are_joints(header.names, choice):
        return _joint_columns_of(header, choice, choice.arm, rate)
    return pose_columns_of(header, choice, rate)


def are_joints(names: Sequence[str], choice: Choice) -> bool:
    """Return whether columns are read as joint positions: by choice, or as they name no pose."""
    if choice.arm is None:
        return False
    if choice.asks_for_joints or choice.names_joints:
        return True

    named = find_roles(names).named | choice.columns.keys()
    has_rotation = named >= set(QUATERNION) or named >= set(ROTATION_VECTOR)
    if has_rotation and named >= set(POSITION):
        return False
    if set(choice.columns) - {"t"}:
        # The user chooses a pose.
        return False
    return name_joints(names, choice.arm)


def name_joints(names: Sequence[str], arm: ArmJoints) -> bool:
    """Return whether columns are the joints of an arm, or are of another arm and nothing else."""
    if find_joint_vectors(names, arm):
        return True
    names_pose = bool(find_roles(names).named - {"t"})
    return not names_pose and len(find_foreign_joints(names)) > 1


def _joint_columns_of(
    header: Header, choice: Choice, arm: ArmJoints, rate: float | None
) -> Columns:
    """Return the columns of an arm's joints in a table with these names."""
    roles = joint_roles(len(arm.names))
    indices = _joint_indices(header, choice, arm)
    time_indices = _time_indices(header, choice, rate)
    time_unit = ""
    if len(time_indices) == 1:
        time_unit = unit_of(header, "t", header.names[time_indices[0]], choice)

    names = [header.names[index].strip() for index in indices]
    return Columns(
        roles=roles,
        names=tuple(names),
        indices=indices,
        units=tuple(
            unit_of(header, role, name, choice) for role, name in zip(roles, names, strict=True)
        ),
        times=tuple(header.names[index].strip() for index in time_indices),
        time_indices=time_indices,
        time_unit=time_unit,
        is_date_and_time=len(time_indices) == 2 and not _is_stamp(header, time_indices),
        width=len(header.names),
        origin=header.origin,
        understood=f"{header.kind} names {bare(names[0])}..",
        rate=None if time_indices else rate,
    )


def _joint_indices(header: Header, choice: Choice, arm: ArmJoints) -> tuple[int, ...]:
    """Return the columns of an arm's joints: as chosen, else by their names."""
    if any(map(is_joint_role, choice.columns)):
        return _chosen_indices(header, choice, arm)

    vectors = find_joint_vectors(header.names, arm)
    if not vectors:
        _refuse_other_joints(header, arm)
    flags = [_flag(header, vector.columns) for vector in vectors[:MAX_FLAGS]]
    if len(vectors) > 1:
        first_names = quoted_list(bare(header.names[vector.columns[0]]) for vector in vectors)
        header.refuse(
            f"it has {len(vectors)} sets of joint positions, which begin with {first_names}. "
            f"Choose one: {' or '.join(flags)}"
        )
    if not vectors[0].has_known_order:
        header.refuse(
            "the numbers of its joint positions are places in a JointState, whose joints may be in "
            f"any order: that of its field name. If it is that of {arm}, add {flags[0]}"
        )
    return vectors[0].columns


def _chosen_indices(header: Header, choice: Choice, arm: ArmJoints) -> tuple[int, ...]:
    """Return the columns of an arm's joints that `--columns` chooses."""
    chosen = {
        role: chosen_column(header, name)
        for role, name in choice.columns.items()
        if is_joint_role(role)
    }
    roles = joint_roles(len(arm.names))
    if set(chosen) != set(roles):
        needed = f"{roles[0]} to {roles[-1]}" if len(roles) > 1 else roles[0]
        header.refuse(f"--columns chooses {', '.join(chosen)}; {arm} need {needed}")
    return tuple(chosen[role] for role in roles)


def _flag(header: Header, indices: Sequence[int]) -> str:
    """Return the flag that chooses columns as the joints from the base."""
    names = [bare(header.names[index]) for index in indices]
    return columns_flag(joint_roles(len(indices)), names, indices)


def _refuse_other_joints(header: Header, arm: ArmJoints) -> NoReturn:
    """Refuse a table that lacks joints of the arm, with the joints that it has."""
    foreign = [header.names[index].strip() for index in find_foreign_joints(header.names)]
    flag = "--columns " + ",".join(f"{role}=NAME" for role in joint_roles(len(arm.names)))
    if foreign:
        header.refuse(
            f"its {len(foreign)} joints are {quoted_list(foreign)}; they are not those of {arm}. "
            f"Choose another --robot, or the columns: {flag}"
        )
    header.refuse(
        f"its columns, {quoted_list(header.names)}, name no joints of {arm}. Choose them by their "
        f"names, or by their numbers from 1: {flag}"
    )


def _time_indices(header: Header, choice: Choice, rate: float | None) -> tuple[int, ...]:
    """Return the columns of time; none where the rate is known."""
    roles_found = find_roles(header.names, has_rate=rate is not None)
    indices = time_columns(header, choice, roles_found)
    if indices:
        return indices

    columns = {"t": roles_found.columns.get("t", [])}
    if "t" in choice.columns:
        columns["t"] = [chosen_column(header, choice.columns["t"])]
    refuse_repeated(header, ["t"], columns)
    if not columns["t"] and rate is None:
        header.refuse(
            f"it has joint positions, but no time, among {quoted_list(header.names)}: add --rate "
            "HZ, or choose a column by its name or number, as --columns t=1"
        )
    return tuple(columns["t"])


def _is_stamp(header: Header, indices: tuple[int, ...]) -> bool:
    """Return whether two columns are the seconds and nanoseconds of a stamp."""
    return indices == find_roles(header.names).stamp_pair
