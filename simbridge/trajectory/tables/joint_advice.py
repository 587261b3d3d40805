"""Advice for a refused table that looks like joint positions, but not by the arm's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simbridge.quoting import quoted_list
from simbridge.trajectory.tables.aliases import OTHER_VECTORS, VECTORS
from simbridge.trajectory.tables.column_names import (
    is_numbering,
    parse_column_name,
    split_number,
    strip_quotes,
)
from simbridge.trajectory.tables.column_roles import find_roles
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_aliases import JOINT_VECTORS, OTHER_QUANTITIES
from simbridge.trajectory.tables.joint_columns import (
    MAX_DIGITS,
    MAX_JOINT_NAME_WORDS,
    ArmJoints,
    find_foreign_joints,
)
from simbridge.trajectory.tables.pose_advice import (
    FlaggedReading,
    KnownColumns,
    PartialReading,
    complete_readings,
    join_readings,
)
from simbridge.trajectory.tables.roles import joint_roles
from simbridge.trajectory.tables.time_candidates import find_named_times

# Numbered columns at least that look like the joints of an arm that is not known.
MIN_UNKNOWN_JOINTS = 5


def find_joint_sets(names: Sequence[str], count: int) -> list[tuple[int, ...]]:
    """Find the sets of columns that may be the joints of an arm, in the order of the file.

    A set has names that differ in a number only, `A1` to `A6`. Without such a set, all columns
    beside the time are one, if they are as many as the joints.

    Args:
        names: The names of the columns, as the table has them.
        count: The number of joints.
    """
    sets = [columns for columns in _find_numbered_sets(names) if len(columns) == count]
    if sets:
        return sets
    times = find_roles(names).columns.get("t") or find_named_times(names)
    # A joint may be called T: then only the first of such columns is the time. Without any, the
    # first column may be a time of an unknown name.
    possible_times = [times, times[:1]] if times else [[], [0]]
    for time_columns in possible_times:
        others = [
            index
            for index, name in enumerate(names)
            if index not in time_columns and strip_quotes(name) and not _is_other_quantity(name)
        ]
        if len(others) == count:
            return [tuple(others)]
    return []


def look_like_joints(names: Sequence[str], arm: ArmJoints | None) -> bool:
    """Return whether columns that name no position look like joint positions.

    Args:
        names: The names of the columns, as the table has them.
        arm: The arm; None if it is not known.
    """
    if len(find_foreign_joints(names)) > 1:
        return True
    numbered = _find_numbered_sets(names)
    if any(len(columns) >= MIN_UNKNOWN_JOINTS for columns in numbered):
        return True
    return arm is not None and bool(find_joint_sets(names, len(arm.names)))


def advise_joints(header: Header, arm: ArmJoints | None, known: KnownColumns) -> str:
    """Return what to do with a table that looks like joint positions, for its refusal.

    Args:
        header: The names of the table.
        arm: The arm; None if only poses are read.
        known: What is known of the table's columns.
    """
    columns = _likely_joints(header.names, arm)
    names = quoted_list(header.names[index].strip() for index in columns)
    if arm is None:
        return (
            f"its columns {names} look like joint positions, but tool poses are needed here. "
            "`simbridge run`, `check` and `inspect` read joint positions, with --robot for the arm"
        )

    readings = joint_readings(header, arm, known)
    if not readings and not columns:
        listed = quoted_list(name.strip() for name in header.names)
        return (
            f"none of its columns, {listed}, has the name of a joint of {arm}; omit --from joints"
        )
    if not readings:
        return (
            f"its {len(columns)} joints are {names}, which are not those of {arm}. Choose another "
            "--robot"
        )
    lead = "choose one" if len(readings) > 1 else "add"
    colon = ": " if len(readings) > 1 else " "
    return (
        f"its columns {names} look like joint positions, but their names are not those of {arm}. "
        f"If they are these joints, in this order, {lead}{colon}{join_readings(readings)}"
    )


def joint_readings(header: Header, arm: ArmJoints, known: KnownColumns) -> list[FlaggedReading]:
    """Return the flags that read columns as the joints of an arm, in the order of the file."""
    sets = find_joint_sets(header.names, len(arm.names))
    foreign = find_foreign_joints(header.names)
    if not sets and len(foreign) == len(arm.names):
        sets = [tuple(sorted(foreign))]

    return readings_of_sets(header, known, sets)


def readings_of_sets(
    header: Header, known: KnownColumns, sets: Sequence[Sequence[int]]
) -> list[FlaggedReading]:
    """Return the flags that read sets of columns as joints, each from the base.

    Args:
        header: The names of the table.
        known: What is known of the table's columns.
        sets: The columns of each set, in the order of the joints.
    """
    chosen = {role: index for role, index in known.chosen.items() if role == "t"}
    parts = [
        PartialReading(
            strip_quotes(header.names[columns[0]]),
            {**chosen, **dict(zip(joint_roles(len(columns)), columns, strict=True))},
        )
        for columns in sets
    ]
    return complete_readings(header, known, parts)


def _likely_joints(names: Sequence[str], arm: ArmJoints | None) -> Sequence[int]:
    """Return the columns that look most like joint positions."""
    if arm is not None:
        sets = find_joint_sets(names, len(arm.names))
        if sets:
            return sets[0]
    numbered = _find_numbered_sets(names)
    return find_foreign_joints(names) or max(numbered, key=len, default=())


def _find_numbered_sets(names: Sequence[str]) -> list[tuple[int, ...]]:
    """Find the sets of columns whose names differ in a number only, which counts from 0 or 1."""
    # The columns by number, of each family: of names that differ in a number only.
    families: dict[tuple[str, ...], dict[int, int]] = {}
    for index, name in enumerate(names):
        for family, number in _numbers_in(name):
            families.setdefault(family, {}).setdefault(number, index)

    sets = []
    for family, columns in families.items():
        # Numbered components of a position or rotation are not joints.
        is_of_pose = bool(set(family) & set(VECTORS) - set(JOINT_VECTORS))
        if is_numbering(columns) and not is_of_pose:
            sets.append(tuple(columns[number] for number in sorted(columns)))
    return sets


def _numbers_in(name: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Iterate over the numbers in a name, each with the family of names that differ in it.

    A family is the words of the name, with # in place of the number: "q_arm_1" is in (q, arm, #).
    """
    parsed = parse_column_name(name)
    parts = parsed.words
    if len(parts) > MAX_JOINT_NAME_WORDS or _is_other_quantity(name):
        return
    if parsed.element is not None:
        yield parts, parsed.element
        return
    for i, part in enumerate(parts):
        stem, digits = split_number(part)
        if digits and len(digits) <= MAX_DIGITS:
            yield (*parts[:i], stem, "#", *parts[i + 1 :]), int(digits)


def _is_other_quantity(name: str) -> bool:
    """Return whether a name is that of another quantity than a joint position."""
    terms = set(parse_column_name(name).words)
    return bool(terms & {*OTHER_QUANTITIES, *OTHER_VECTORS})
