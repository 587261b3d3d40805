"""The columns of a table that are the positions of an arm's joints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from simbridge.robot.pose import Array
from simbridge.trajectory.tables.column_names import (
    ColumnName,
    is_numbering,
    parse_column_name,
    split_number,
)
from simbridge.trajectory.tables.joint_aliases import (
    JOINT_STATES,
    JOINT_VECTORS,
    MAX_JOINT_ALIAS_WORDS,
    OTHER_QUANTITIES,
    POSITION_WORDS,
)

# Digits of a joint's number, at most.
MAX_DIGITS = 3
# Words of a name that may be that of a joint, at most.
MAX_JOINT_NAME_WORDS = 20

Words = tuple[str, ...]
# The columns of each component of a vector, several where names are repeated. A vector is known by
# the words before the component and behind it.
_Vectors = dict[tuple[Words, Words], dict[int, list[int]]]


class ArmJoints(NamedTuple):
    """The joints of an arm.

    Attributes:
        arm: The arm's name.
        names: Names of the joints (n), from the base.
        prismatic: Which of them are prismatic (n).
        tool_path: Returns the poses of the TCP (T, 7) at joint positions (T, n), rad or m.
    """

    arm: str
    names: tuple[str, ...]
    prismatic: tuple[bool, ...]
    tool_path: Callable[[Array], Array]

    def __str__(self) -> str:
        """Return the joints for messages: "ur10, whose 6 joints are shoulder_pan_joint, ..."."""
        return f"{self.arm}, whose {len(self.names)} joints are {', '.join(self.names)}"


class JointVector(NamedTuple):
    """Columns that are the positions of an arm's joints, as one vector.

    Attributes:
        columns: Indices of the columns, in the order of the joints.
        names_joints: Whether they have the names of the arm's joints, rather than numbers.
        has_known_order: Whether the joint of each is known: numbers in a JointState are places in
            its field `name`.
    """

    columns: tuple[int, ...]
    names_joints: bool
    has_known_order: bool = True


def find_joint_vectors(names: Sequence[str], arm: ArmJoints) -> list[JointVector]:
    """Find the vectors of joint positions of an arm among columns; none where a joint is missing.

    Args:
        names: Names of the columns, as the table has them.
        arm: The arm.
    """
    parsed = [parse_column_name(name) for name in names]
    numbered = _numbered_vectors(parsed)
    by_name = [
        JointVector(columns, names_joints=True)
        for columns in _columns_by_joint_names(parsed, arm)
        if not _is_part_of_one(columns, numbered)
    ]
    if by_name:
        return by_name
    return [vector for vector in numbered if len(vector.columns) == len(arm.names)]


def find_foreign_joints(names: Sequence[str]) -> list[int]:
    """Return the columns that are named like the positions of joints, of whichever arm."""
    parsed = [parse_column_name(name) for name in names]
    numbered = _numbered_vectors(parsed)
    if numbered:
        return list(max(numbered, key=lambda vector: len(vector.columns)).columns)
    return [
        index
        for index, name in enumerate(parsed)
        if "joint" in name.words and not set(OTHER_QUANTITIES) & set(name.words)
    ]


def _columns_by_joint_names(
    parsed: Sequence[ColumnName], arm: ArmJoints
) -> Iterator[tuple[int, ...]]:
    """Iterate over the sets of columns that have the names of all joints of an arm.

    Names of one set have the same words before and behind that of the joint.
    """
    joint_words = [parse_column_name(name).words for name in arm.names]
    vectors: _Vectors = {}
    for index, name in enumerate(parsed):
        if name.element is not None:
            continue
        for joint, before, behind in _possible_joints(name.words, joint_words):
            columns = vectors.setdefault((before, behind), {})
            columns.setdefault(joint, []).append(index)

    for columns in vectors.values():
        if len(columns) == len(arm.names):
            yield from _sets_of(columns)


def _sets_of(columns: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Iterate over the sets of columns of a vector: two where a component is repeated.

    Args:
        columns: Indices of the columns of each component.
    """
    for choose in (min, max):
        yield tuple(choose(columns[component]) for component in sorted(columns))
        if all(len(indices) == 1 for indices in columns.values()):
            return


def _possible_joints(
    words: Words, joint_words: Sequence[Words]
) -> Iterator[tuple[int, Words, Words]]:
    """Iterate over the joints that a column may be the position of.

    Args:
        words: Words of the column's name.
        joint_words: Words of each joint's name.

    Yields:
        The joint's index, and the words before and behind its name.
    """
    if len(words) > MAX_JOINT_NAME_WORDS or set(words) & set(OTHER_QUANTITIES):
        return
    for joint, joint_name in enumerate(joint_words):
        for first in range(len(words) - len(joint_name) + 1):
            end = first + len(joint_name)
            behind = words[end:]
            if words[first:end] == joint_name and set(behind) <= set(POSITION_WORDS):
                yield joint, words[:first], behind


def _is_part_of_one(columns: tuple[int, ...], numbered: Sequence[JointVector]) -> bool:
    """Return whether columns are some of a longer vector, so that they are of another arm."""
    return any(set(columns) < set(vector.columns) for vector in numbered)


def _numbered_vectors(parsed: Sequence[ColumnName]) -> list[JointVector]:
    """Collect the vectors with numbered components, from 0 or 1, that are joint positions."""
    vectors: _Vectors = {}
    for index, name in enumerate(parsed):
        component = numbered_component(name)
        if component is not None:
            name_of_vector = (component.vector, component.behind)
            columns = vectors.setdefault(name_of_vector, {})
            columns.setdefault(component.number, []).append(index)

    joint_vectors = []
    for (words, _), columns in vectors.items():
        is_of_joint_state = _is_of_joint_state(words)
        are_joints = is_of_joint_state or _ends_with_an_alias(words, JOINT_VECTORS)
        if are_joints and is_numbering(columns):
            joint_vectors += [
                JointVector(indices, names_joints=False, has_known_order=not is_of_joint_state)
                for indices in _sets_of(columns)
            ]
    return joint_vectors


class NumberedName(NamedTuple):
    """The name of a numbered component.

    Attributes:
        vector: The words before the number.
        number: The number.
        behind: The words behind it.
    """

    vector: Words
    number: int
    behind: Words = ()


def numbered_component(name: ColumnName) -> NumberedName | None:
    """Return the name of a numbered component, taken apart; None if it is not one."""
    words = name.words
    if len(words) > MAX_JOINT_NAME_WORDS or set(words) & set(OTHER_QUANTITIES):
        return None
    if name.element is not None:
        return NumberedName(words, name.element)

    count = len(words)
    while count and words[count - 1] in POSITION_WORDS:
        count -= 1
    if not count:
        return None
    last = words[count - 1]
    stem, digits = split_number(last)
    if not digits or len(digits) > MAX_DIGITS:
        return None
    before = words[: count - 1]
    return NumberedName((*before, stem) if stem else before, int(digits), words[count:])


def _ends_with_an_alias(words: Words, aliases: Sequence[str]) -> bool:
    """Return whether the last words of a name, joined, are an alias."""
    counts = range(1, min(len(words), MAX_JOINT_ALIAS_WORDS) + 1)
    return any("".join(words[-count:]) in aliases for count in counts)


def _is_of_joint_state(words: Words) -> bool:
    """Return whether a vector's name is that of the positions in a JointState."""
    return (
        bool(words)
        and words[-1] in POSITION_WORDS
        and _ends_with_an_alias(words[:-1], JOINT_STATES)
    )
