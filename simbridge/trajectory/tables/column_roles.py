"""The roles that the names of a table's columns give to them, by the aliases in `aliases.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simbridge.trajectory.tables.aliases import (
    CHILD_FRAME_ID,
    FRACTION_UNITS,
    FRAME_ID,
    NANOSECONDS,
    QUATERNION_KINDS,
    SECONDS,
    STAMP,
    TIMES,
    UNCLEAR_TIMES,
    VECTORS,
    Numbering,
    VectorAlias,
    VectorKind,
    ends_with,
    find_vector_alias,
)
from simbridge.trajectory.tables.column_names import ColumnName, parse_column_name
from simbridge.trajectory.tables.components import (
    AXES,
    IMAGINARY_AXES,
    NUMBERS_OF_FOUR,
    NUMBERS_OF_THREE,
    AxisForm,
    find_axes,
    without_order,
)
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, ROTATION_VECTOR


class Component(NamedTuple):
    """A column as a component of a vector.

    Attributes:
        vector: The words of the vector's name.
        axis: x, y, z, w, or a number; of a quaternion with imaginary parts i, j, k or w.
        in_brackets: Whether the number is in brackets.
        is_axis_first: Whether the axis is before the vector's name: "x_pos".
    """

    vector: tuple[str, ...]
    axis: str
    in_brackets: bool = False
    is_axis_first: bool = False


@dataclass
class NamedVector:
    """Columns that are the components of a vector whose name is an alias.

    Attributes:
        alias: What the name of the vector means.
        is_axis_first: Whether the axes are before its name.
        order: The order of numbered components of a quaternion, "xyzw" or "wxyz"; "" if the name
            does not say it.
        is_numbered: Whether the components are numbered.
        columns: Indices of the columns by axis or number; several where names are repeated.
        has_unit: Whether a column has a unit.
    """

    alias: VectorAlias
    is_axis_first: bool
    order: str
    is_numbered: bool
    columns: dict[str, list[int]] = field(default_factory=dict)
    has_unit: bool = False

    @property
    def is_clear(self) -> bool:
        """True if the names leave no doubt about what the vector is."""
        if self.is_numbered and self.alias.numbering is Numbering.IN_BRACKETS:
            return False
        return self.alias.is_clear and not self.is_axis_first


@dataclass(frozen=True)
class ColumnRoles:
    """The columns that names tell to be of a role.

    Attributes:
        columns: Indices by role; several where the names leave it open.
        stamp_pair: The columns of a stamp's seconds and of their fraction; empty if there are none.
        numbered_quaternion: The numbered components of a quaternion whose order is not known; empty
            if there is none.
        frame: The column that names the poses' frame; None if there is none.
        child_frame: The column that names the frame that moves; None if there is none.
    """

    columns: dict[str, list[int]]
    stamp_pair: tuple[int, ...] = ()
    numbered_quaternion: tuple[int, ...] = ()
    frame: int | None = None
    child_frame: int | None = None

    @property
    def named(self) -> set[str]:
        """The roles of which there is a column."""
        roles = set(self.columns)
        if self.stamp_pair:
            roles.add("t")
        if self.numbered_quaternion:
            roles.update(QUATERNION)
        return roles


def find_roles(names: Sequence[str], *, has_rate: bool = False) -> ColumnRoles:
    """Find the roles of columns by their names.

    Args:
        names: Names of the columns, as the table has them.
        has_rate: Whether the rate of the samples is known: then only a clear name is a time.
    """
    parsed = [parse_column_name(name) for name in names]
    imaginary = _find_imaginary_vectors(parsed)
    vectors = [*_find_vectors(parsed, imaginary), *imaginary]
    positions = [vector for vector in vectors if vector.alias.kind is VectorKind.POSITION]
    rotations = [vector for vector in vectors if vector.alias.kind is not VectorKind.POSITION]

    columns: dict[str, list[int]] = {}
    _add_roles(columns, _clearest(positions))
    _add_roles(columns, _clearest(rotations))
    times = _find_times(parsed, has_rate=has_rate)
    if times:
        columns["t"] = times

    frames = [i for i, name in enumerate(parsed) if _is_frame(name)]
    children = [i for i, name in enumerate(parsed) if ends_with(name.words, CHILD_FRAME_ID)]
    return ColumnRoles(
        columns,
        stamp_pair=_find_stamp_pair(names, times),
        numbered_quaternion=_numbered_quaternion(columns, rotations),
        frame=frames[0] if len(frames) == 1 else None,
        child_frame=children[0] if len(children) == 1 else None,
    )


def _find_vectors(parsed: Sequence[ColumnName], others: Sequence[NamedVector]) -> list[NamedVector]:
    """Collect the columns of vectors whose names have a known meaning.

    Args:
        parsed: The names of the columns.
        others: Vectors that were found before, whose columns are left out.

    Returns:
        The vectors of which all components are there.
    """
    other_columns = {
        index for vector in others for indices in vector.columns.values() for index in indices
    }

    # Columns belong to one vector if they have its name and write their axes in the same way:
    # pos_x and x_pos, or q_x and q_0, are components of different vectors.
    vectors: dict[tuple[tuple[str, ...], bool, bool], NamedVector] = {}
    for index, name in enumerate(parsed):
        if index in other_columns:
            continue

        # The likeliest way to read the name that makes it a component of a known vector.
        for component in _possible_components(name):
            alias, order = _meaning(component)
            if alias is None or not _is_component(component, alias):
                continue
            is_numbered = component.axis not in AXES
            key = (component.vector, component.is_axis_first, is_numbered)
            new_vector = NamedVector(alias, component.is_axis_first, order, is_numbered)
            vector = vectors.setdefault(key, new_vector)
            vector.columns.setdefault(component.axis, []).append(index)
            vector.has_unit = vector.has_unit or bool(name.unit)
            break
    return [vector for vector in vectors.values() if _is_whole(vector)]


def _find_imaginary_vectors(parsed: Sequence[ColumnName]) -> list[NamedVector]:
    """Collect the quaternions whose components are i, j, k and the real part, all four of them."""
    quaternions: dict[tuple[str, ...], NamedVector] = {}
    for index, name in enumerate(parsed):
        component = _imaginary_component(name.words)
        if component is None:
            continue
        alias = VECTORS["q"]
        vector = quaternions.setdefault(component.vector, NamedVector(alias, False, "", False))
        vector.columns.setdefault(component.axis, []).append(index)
    return [
        vector for vector in quaternions.values() if {*IMAGINARY_AXES, "w"} == set(vector.columns)
    ]


def _imaginary_component(words: tuple[str, ...]) -> Component | None:
    """Return a name as that of i, j, k or the real part of a quaternion; None if it is not one.

    The axis may be a word, as in `quat_i` and `k`, or the end of one, as in `qi` and `quatReal`.
    """
    if not words:
        return None
    for word_axis in find_axes(words[-1]):
        is_part = word_axis.axis in (*IMAGINARY_AXES, "w") and not word_axis.number
        if not is_part or word_axis.form is AxisForm.BEGINNING:
            continue
        vector = (*words[:-1], word_axis.stem) if word_axis.stem else words[:-1]
        alias = find_vector_alias(vector)
        is_quaternion = alias is not None and alias.kind in QUATERNION_KINDS
        # "r" alone may be anything.
        if is_quaternion or (not vector and word_axis.text != "r"):
            return Component(vector, word_axis.axis)
    return None


def _possible_components(name: ColumnName) -> Iterator[Component]:
    """Iterate over the ways in which a name may be that of a component, the likeliest first."""
    words = name.words
    if name.element is not None:
        # position[0]
        yield Component(words, str(name.element), in_brackets=True)
        return
    if not words:
        return

    before = words[:-1]
    last = words[-1]
    if last in AXES:
        # pos_x
        yield Component(before, last)
        return

    for word_axis in find_axes(last):
        stem = (word_axis.stem,) if word_axis.stem else ()
        if word_axis.form is AxisForm.NUMBER:
            # pos_0 and pos0
            yield Component((*before, *stem), word_axis.text)
        elif word_axis.form is AxisForm.END and word_axis.text in AXES and not word_axis.number:
            # posx
            yield Component((*before, *stem), word_axis.text)
        elif word_axis.form is AxisForm.BEGINNING:
            # xpos and xtool0
            vector = f"{word_axis.stem}{word_axis.number}"
            yield Component((*before, vector), word_axis.text, is_axis_first=True)
    # x_pos
    if before and before[-1] in AXES:
        yield Component((*before[:-1], last), before[-1], is_axis_first=True)


def _meaning(component: Component) -> tuple[VectorAlias | None, str]:
    """Return what a vector's name means, and the order of numbered components if it says it."""
    if component.axis in AXES:
        return find_vector_alias(component.vector), ""

    vector, order = without_order(component.vector)
    alias = find_vector_alias(vector) if vector else None
    if alias is None and vector and len(vector[-1]) > 1:
        # A vector of numbered components may be in the plural.
        alias = find_vector_alias((*vector[:-1], vector[-1].removesuffix("s")))
    return alias, order


def _is_component(component: Component, alias: VectorAlias) -> bool:
    """Return whether a vector of this kind has such a component."""
    if component.axis in AXES:
        return alias.kind is not VectorKind.POSITION or component.axis != "w"
    if alias.numbering is Numbering.IN_BRACKETS:
        return component.in_brackets
    return alias.numbering is Numbering.ALWAYS


def _is_whole(vector: NamedVector) -> bool:
    """Return whether a vector has the components that make it what its name says.

    Missing letters are named by the refusal of the table. Other numbers, and an orientation without
    w, show that it is something else.
    """
    kind = vector.alias.kind
    axes = set(vector.columns)
    if vector.is_numbered:
        if kind in (VectorKind.POSITION, VectorKind.ROTATION_VECTOR):
            return axes in NUMBERS_OF_THREE
        return axes in NUMBERS_OF_FOUR
    if kind is VectorKind.ORIENTATION or (kind is VectorKind.QUATERNION and vector.is_axis_first):
        return "w" in axes
    return True


def _clearest(vectors: Sequence[NamedVector]) -> list[NamedVector]:
    """Return the vectors with clear names.

    If no name is clear, or if the clear ones may be torques, return all vectors.
    """
    clear = [vector for vector in vectors if vector.is_clear]
    if all(vector.alias.may_be_torque for vector in clear):
        return list(vectors)
    return clear


def _add_roles(columns: dict[str, list[int]], vectors: Sequence[NamedVector]) -> None:
    """Add the columns of vectors under the roles that they have."""
    for vector in vectors:
        for axis, indices in vector.columns.items():
            role = _role_of(vector, axis)
            if role is not None:
                columns.setdefault(role, []).extend(indices)
    for indices in columns.values():
        indices.sort()


def _role_of(vector: NamedVector, axis: str) -> str | None:
    """Return the role of a component; None if its number does not say it."""
    kind = vector.alias.kind
    is_quaternion = kind in QUATERNION_KINDS
    if kind is VectorKind.ROTATION_VECTOR:
        # As in Vicon's RX RY RZ RW.
        is_quaternion = "w" in vector.columns and not vector.has_unit

    axis = IMAGINARY_AXES.get(axis, axis)
    if axis in AXES:
        prefix = "q" if is_quaternion else "r"
        return axis if kind is VectorKind.POSITION else f"{prefix}{axis}"
    place = int(axis) - min(map(int, vector.columns))
    if is_quaternion:
        return f"q{vector.order[place]}" if vector.order else None
    return POSITION[place] if kind is VectorKind.POSITION else ROTATION_VECTOR[place]


def _numbered_quaternion(
    columns: dict[str, list[int]], rotations: Sequence[NamedVector]
) -> tuple[int, ...]:
    """Return the columns of a quaternion with numbered components whose order is unknown.

    There are none if there are several such quaternions, or if other columns give the rotation.
    """
    if "qw" in columns or set(ROTATION_VECTOR) <= set(columns):
        # The rotation is known from other columns.
        return ()
    numbered = [
        vector
        for vector in rotations
        if vector.is_numbered and vector.alias.kind is not VectorKind.ROTATION_VECTOR
    ]
    if len(numbered) != 1:
        return ()
    components = numbered[0].columns
    # If a name is repeated, its first column counts.
    return tuple(components[number][0] for number in sorted(components))


def _find_times(parsed: Sequence[ColumnName], *, has_rate: bool) -> list[int]:
    """Return the columns that may be the time: those of the clearest name."""
    stamps = [i for i, name in enumerate(parsed) if ends_with(name.words, STAMP)]
    if stamps:
        return stamps
    times = [i for i, name in enumerate(parsed) if " ".join(name.words) in TIMES]
    if times or has_rate:
        return times
    unclear = [i for i, name in enumerate(parsed) if " ".join(name.words) in UNCLEAR_TIMES]
    if not unclear:
        return []
    # Beside seconds, microseconds may be their fraction: then both are candidates.
    return unclear + [i for i, name in enumerate(parsed) if " ".join(name.words) in FRACTION_UNITS]


def _find_stamp_pair(names: Sequence[str], times: Sequence[int]) -> tuple[int, ...]:
    """Return the columns of a stamp's seconds and their fraction; empty if there are none.

    Names as ROS has them, seconds and nanoseconds, are a stamp beside any other time; further ones,
    such as `t_s` and `t_ns`, are one where no other column may be the time.

    Args:
        names: The names of the columns.
        times: The columns that may be the time, each by itself.
    """
    pairs = []
    split_names = [_all_words(name) for name in names]
    seconds = {
        words[:-1]: index
        for index, words in reversed(list(enumerate(split_names)))
        if words and words[-1] in SECONDS
    }
    for index, words in enumerate(split_names):
        if words and words[-1] in FRACTION_UNITS and words[:-1] in seconds:
            pairs.append((seconds[words[:-1]], index))

    plain = [pair for pair in pairs if split_names[pair[1]][-1] in NANOSECONDS]
    if plain:
        return plain[0]
    return pairs[0] if len(pairs) == 1 and set(times) <= set(pairs[0]) else ()


def fraction_unit(name: str) -> str:
    """Return the unit of a stamp's second column, by its name: "nanosec" is in ns."""
    return FRACTION_UNITS[_all_words(name)[-1]]


def _all_words(name: str) -> tuple[str, ...]:
    """Return the words of a name, its unit among them: in "stamp_sec" the unit is the part."""
    parsed = parse_column_name(name)
    return (*parsed.words, parsed.unit) if parsed.unit else parsed.words


def _is_frame(name: ColumnName) -> bool:
    """Return whether a column names the frame of the poses."""
    return ends_with(name.words, FRAME_ID) and not ends_with(name.words, CHILD_FRAME_ID)
