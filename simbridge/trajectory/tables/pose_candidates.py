"""Columns that may be the pose of a body, whatever it is called.

A table whose names are in `aliases.py` is read by them. Of any other table, `hand_x`, `elbow_qw`,
this module finds what its columns may be, for the flags that the refusal offers. Nothing that it
finds is read without a flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simbridge.trajectory.tables.aliases import (
    MAX_ALIAS_WORDS,
    OTHER_VECTORS,
    QUATERNION_KINDS,
    VECTORS,
    VectorKind,
)
from simbridge.trajectory.tables.column_names import ColumnName, parse_column_name
from simbridge.trajectory.tables.components import (
    AXES,
    IMAGINARY_AXES,
    NUMBERS_OF_FOUR,
    NUMBERS_OF_THREE,
    QUATERNION_ORDERS,
    AxisForm,
    WordAxis,
    find_axes,
    without_order,
)
from simbridge.trajectory.tables.joint_aliases import OTHER_QUANTITIES
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, ROTATION_VECTOR

Words = tuple[str, ...]
# Words of a name that may be that of a pose, at most.
MAX_POSE_NAME_WORDS = 100


class CandidateColumns(NamedTuple):
    """The columns of a position, or of a rotation, of a body.

    Attributes:
        body: The words that name the body; empty where nothing does.
        columns: The index of each role's column.
        order: "w last" or "w first", where the names leave the order of a quaternion open; else "".
    """

    body: Words
    columns: dict[str, int]
    order: str = ""


class PoseCandidates(NamedTuple):
    """The positions and the rotations that a table may have.

    Attributes:
        positions: The candidates for the position, in the order of the file.
        rotations: The candidates for the rotation, in the order of the file.
    """

    positions: list[CandidateColumns]
    rotations: list[CandidateColumns]


class LooseComponent(NamedTuple):
    """A column's name as a component of a vector, whatever the vector is called.

    Attributes:
        axis: "x", "y", "z", "w", "i", "j", "k", or a number.
        before: The words of the name before the axis.
        behind: The words of the name behind the axis.
    """

    axis: str
    before: Words
    behind: Words


@dataclass
class LooseVector:
    """Columns that are the components of a vector, whatever the vector is called.

    Attributes:
        kind: What the vector is, by the alias in its name; None if there is none.
        body: The words beside the alias.
        order: The order of numbered components, "xyzw" or "wxyz"; "" if the name does not say it.
        columns: The indices of each component's columns; several where names are repeated.
    """

    kind: VectorKind | None
    body: Words
    order: str
    columns: dict[str, list[int]] = field(default_factory=dict)

    @property
    def copies(self) -> int:
        """Number of vectors with the same names."""
        return max(len(indices) for indices in self.columns.values())

    def pick(self, copy: int) -> dict[str, int]:
        """Return the index of each component's column in a copy of the vector."""
        return {
            axis: indices[min(copy, len(indices) - 1)] for axis, indices in self.columns.items()
        }


def find_pose_candidates(names: Sequence[str]) -> PoseCandidates:
    """Find the columns that may be a position or a rotation, of whichever body.

    Args:
        names: The names of the columns, as the table has them.
    """
    positions = []
    rotations = []
    for vector in _collect_vectors(names):
        for copy in range(vector.copies):
            columns = vector.pick(copy)
            positions += _as_positions(vector, columns)
            rotations += _as_rotations(vector, columns)
    return PoseCandidates(positions, rotations)


def _collect_vectors(names: Sequence[str]) -> list[LooseVector]:
    """Collect the columns that are components of vectors."""
    vectors: dict[tuple[object, ...], LooseVector] = {}
    for index, text in enumerate(names):
        component = _find_component(parse_column_name(text))
        if component is None:
            continue
        is_numbered = component.axis.isdecimal()
        key = (component.before, component.behind, is_numbered)
        if key not in vectors:
            vectors[key] = _name_vector(component)
        vectors[key].columns.setdefault(component.axis, []).append(index)
    return list(vectors.values())


def _find_component(name: ColumnName) -> LooseComponent | None:
    """Return a name as that of a component; None if it has no axis."""
    words = name.words
    if len(words) > MAX_POSE_NAME_WORDS or set(words) & {*OTHER_QUANTITIES, *OTHER_VECTORS}:
        return None
    if name.element is not None:
        return LooseComponent(str(name.element), words, ())

    components = [
        component for place in range(len(words)) for component in _components_at(words, place)
    ]
    # In "x_w" and "qw_w" the last word is a frame, in "hand_q_w" it is the axis.
    beside_w = [component for component in components if component.axis != "w"]
    if beside_w:
        return beside_w[-1]
    return components[0] if components else None


def _components_at(words: Words, place: int) -> Iterator[LooseComponent]:
    """Iterate over the ways in which a word of a name may have the axis.

    "x1" is x of a vector 1, "qx" is x of q, "posx" and "xpos" are x of pos, "q1" is 1 of q.

    Args:
        words: The words of the name.
        place: Index of the word.
    """
    behind = words[place + 1 :]
    for word_axis in find_axes(words[place]):
        stem = (word_axis.stem,) if word_axis.stem else ()
        before = (*words[:place], *stem)
        if _is_plausible(word_axis, before):
            number = (word_axis.number,) if word_axis.number else ()
            yield LooseComponent(word_axis.axis, before, (*number, *behind))


def _is_plausible(word_axis: WordAxis, before: Words) -> bool:
    """Return whether a word has an axis, rather than letters that look like one.

    Args:
        word_axis: The axis of the word.
        before: The words before the axis, with the stem of the word.
    """
    if word_axis.form is AxisForm.WORD:
        if word_axis.text in AXES:
            return True
        is_imaginary_alone = word_axis.text in IMAGINARY_AXES and not before
        return is_imaginary_alone or _is_quaternion_name(before)
    if word_axis.form is AxisForm.NUMBER:
        return _is_quaternion_name(before)
    if word_axis.form is AxisForm.END and word_axis.axis == "w":
        return _is_quaternion_name((word_axis.stem,))
    return word_axis.stem in VECTORS


def _is_quaternion_name(name: Words) -> bool:
    """Return whether the last word of a vector's name is that of a quaternion."""
    name, _ = without_order(name)
    alias = VECTORS.get(name[-1]) if name else None
    return alias is not None and alias.kind in QUATERNION_KINDS


def _name_vector(component: LooseComponent) -> LooseVector:
    """Return the vector of a component, without columns: its kind by the alias in its name.

    A word before the axis may be an alias of one letter: `q_x`. Elsewhere it names the body:
    `r_hand_x`.
    """
    before, order = without_order(component.before)
    words = (*before, *component.behind)
    for length in reversed(range(1, MAX_ALIAS_WORDS + 1)):
        for first in reversed(range(len(words) - length + 1)):
            name = "".join(words[first : first + length])
            is_at_axis = first + length == len(before)
            alias = VECTORS.get(name)
            if alias is None or alias.alone or (len(name) == 1 and not is_at_axis):
                continue
            return LooseVector(alias.kind, words[:first] + words[first + length :], order)
    return LooseVector(None, words, order)


def _as_positions(vector: LooseVector, columns: dict[str, int]) -> list[CandidateColumns]:
    """Return a vector's columns as a position; nothing if they are not one."""
    if vector.kind not in (None, VectorKind.POSITION):
        return []
    axes = set(columns)
    if set(POSITION) <= axes and (not vector.body or "w" not in axes):
        return [CandidateColumns(vector.body, {axis: columns[axis] for axis in POSITION})]
    if axes in NUMBERS_OF_THREE:
        return [CandidateColumns(vector.body, _numbered(POSITION, columns))]
    return []


def _as_rotations(vector: LooseVector, columns: dict[str, int]) -> list[CandidateColumns]:
    """Return a vector's columns as a rotation, in both orders if they may have two."""
    if vector.kind is VectorKind.ROTATION_VECTOR and "w" not in columns:
        return _as_rotation_vector(vector, columns)
    if vector.kind is VectorKind.POSITION and vector.body:
        return []
    return _as_quaternions(vector, columns)


def _as_rotation_vector(vector: LooseVector, columns: dict[str, int]) -> list[CandidateColumns]:
    """Return a vector's columns as a rotation vector; nothing if they are not one."""
    axes = set(columns)
    if set(POSITION) <= axes:
        pairs = zip(ROTATION_VECTOR, POSITION, strict=True)
        return [CandidateColumns(vector.body, {role: columns[axis] for role, axis in pairs})]
    if axes in NUMBERS_OF_THREE:
        return [CandidateColumns(vector.body, _numbered(ROTATION_VECTOR, columns))]
    return []


def _as_quaternions(vector: LooseVector, columns: dict[str, int]) -> list[CandidateColumns]:
    """Return a vector's columns as a quaternion; nothing if they are not one.

    Args:
        vector: The vector.
        columns: Indices of its columns, by axis or number.

    Returns:
        One candidate; or one for each order, if the components are numbered and their order is not
        known.
    """
    # Components that are named by letters.
    for letters in ("xyzw", "ijkw"):
        if set(letters) <= set(columns):
            pairs = zip(QUATERNION, letters, strict=True)
            return [CandidateColumns(vector.body, {role: columns[axis] for role, axis in pairs})]

    # Components that are numbered.
    if set(columns) not in NUMBERS_OF_FOUR or vector.kind not in QUATERNION_KINDS:
        return []

    orders = [vector.order] if vector.order else QUATERNION_ORDERS
    candidates = []
    for order in orders:
        roles = [f"q{axis}" for axis in order]
        label = "" if vector.order else _describe_order(order)
        candidates.append(CandidateColumns(vector.body, _numbered(roles, columns), label))
    return candidates


def _numbered(roles: Sequence[str], columns: dict[str, int]) -> dict[str, int]:
    """Return numbered columns by the role of each, in the order of their numbers."""
    numbers = sorted(columns, key=int)
    return {role: columns[number] for role, number in zip(roles, numbers, strict=True)}


def _describe_order(order: str) -> str:
    """Return an order of a quaternion in words."""
    return "w last" if order.endswith("w") else "w first"
