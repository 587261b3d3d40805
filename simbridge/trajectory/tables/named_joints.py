"""The columns of joint positions in a table, by their names or as `--columns` chooses them."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.quoting import quoted_list
from simbridge.trajectory.tables.choice import Choice
from simbridge.trajectory.tables.column_names import strip_quotes
from simbridge.trajectory.tables.column_roles import find_roles
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_advice import advise_joints, readings_of_sets
from simbridge.trajectory.tables.joint_columns import (
    ArmJoints,
    find_foreign_joints,
    find_joint_vectors,
)
from simbridge.trajectory.tables.named_columns import pose_columns_of, time_pair, unit_of
from simbridge.trajectory.tables.pose_advice import (
    FlaggedReading,
    KnownColumns,
    join_readings,
    time_parts,
)
from simbridge.trajectory.tables.roles import (
    POSITION,
    QUATERNION,
    ROTATION_VECTOR,
    is_joint_role,
    joint_roles,
)
from simbridge.trajectory.tables.table import Columns, check_column_count
from simbridge.trajectory.tables.time_candidates import NO_TIME_FLAG


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
    """Return whether columns are read as joint positions.

    They are if the user chooses so, or if they name joints and no pose.
    """
    if choice.arm is None:
        return False
    # The user asks for joints outright, or chooses columns or units of joints.
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
    """Return the columns of an arm's joints in a table with these names.

    Raises:
        InputFileError: The columns of the joints or of the time are missing or not clear, or have
            an unknown unit.
    """
    roles = joint_roles(len(arm.names))
    indices = _joint_indices(header, choice, arm, rate)
    time_indices = _time_indices(header, choice, rate, indices)
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
        understood=f"{header.kind} names {strip_quotes(names[0])}..",
        rate=None if time_indices else rate,
    )


def _joint_indices(
    header: Header, choice: Choice, arm: ArmJoints, rate: float | None
) -> tuple[int, ...]:
    """Return the columns of an arm's joints: as chosen, else by their names.

    Raises:
        InputFileError: The table has no joints of the arm, several sets of them, or joints whose
            order is not known; or a column is chosen that it does not have.
    """
    if any(map(is_joint_role, choice.columns)):
        return _chosen_indices(header, choice, arm)

    vectors = find_joint_vectors(header.names, arm)
    known = _known_columns(header, choice, rate)
    if not vectors:
        header.refuse(advise_joints(header, arm, known))
    if len(vectors) == 1 and vectors[0].has_known_order:
        return vectors[0].columns

    # It is not clear which columns are meant. The table is refused, with the flags that choose
    # them.
    readings = readings_of_sets(header, known, [vector.columns for vector in vectors])
    if len(vectors) > 1:
        header.refuse(
            f"it has {len(vectors)} sets of joint positions. Choose one: {join_readings(readings)}"
        )
    header.refuse(
        "the numbers in its column names are indices into a JointState, whose joints may be in "
        f"any order. If they are in the order of {arm}, add {join_readings(readings)}"
    )


def _chosen_indices(header: Header, choice: Choice, arm: ArmJoints) -> tuple[int, ...]:
    """Return the columns of an arm's joints that `--columns` chooses.

    Raises:
        InputFileError: The table does not have a column, or not all joints have one.
    """
    chosen = {
        role: header.find_column(name)
        for role, name in choice.columns.items()
        if is_joint_role(role)
    }
    roles = joint_roles(len(arm.names))
    if set(chosen) != set(roles):
        needed = f"{roles[0]} to {roles[-1]}" if len(roles) > 1 else roles[0]
        header.refuse(f"--columns chooses {', '.join(chosen)}; {arm} needs {needed}")
    return tuple(chosen[role] for role in roles)


def _known_columns(header: Header, choice: Choice, rate: float | None) -> KnownColumns:
    """Return what is known of a table's time; its joints are not known."""
    named_roles = find_roles(header.names, has_rate=rate is not None)
    times = list(named_roles.columns.get("t", ()))
    chosen = {}
    if "t" in choice.columns:
        times = [header.find_column(choice.columns["t"])]
        chosen = {"t": times[0]}
    is_pair = bool(time_pair(header, choice, named_roles))
    return KnownColumns.of_time(times, rate, chosen=chosen, is_pair=is_pair)


def _time_indices(
    header: Header, choice: Choice, rate: float | None, joints: Sequence[int]
) -> tuple[int, ...]:
    """Return the columns of time: one, or two that are the time together; none with a rate instead.

    Args:
        header: The names of the table.
        choice: What is asked of the table.
        rate: Samples per s, for a table without time.
        joints: The columns of the joints, which are not the time.

    Raises:
        InputFileError: It is not clear which column is the time, or there is none and no rate.
    """
    named_roles = find_roles(header.names, has_rate=rate is not None)
    indices = time_pair(header, choice, named_roles)
    if indices:
        return indices

    # The time is the one column that is known, or there is a rate and no column.
    known = _known_columns(header, choice, rate)
    if known.has_time:
        return tuple(known.columns.values())

    # The time is not known, so the table is refused. A part without columns means that no column
    # may be the time.
    times = [part for part in time_parts(header, known, joints) if part.columns]
    names = quoted_list(name.strip() for name in header.names)
    if not times:
        header.refuse(
            f"it has joint positions, but no time column among {names}: add {NO_TIME_FLAG}"
        )

    # Propose a flag --columns for each column that may be the time. It replaces the user's own
    # flag, so it repeats the joints if that one chooses them.
    chosen_joints = {}
    if choice.names_joints:
        chosen_joints = dict(zip(joint_roles(len(joints)), joints, strict=True))
    flags = [
        FlaggedReading(time.label, header.flag({**time.columns, **chosen_joints})) for time in times
    ]
    lead = "choose one" if len(flags) > 1 else "if it is this column, add"
    header.refuse(
        f"it has joint positions, but it is not clear which column is the time, among {names}: "
        f"{lead}: {join_readings(flags)}"
    )


def _is_stamp(header: Header, indices: tuple[int, ...]) -> bool:
    """Return whether two columns are the seconds and nanoseconds of a stamp."""
    return indices == find_roles(header.names).stamp_pair
