"""URScript's values.

They are Python's: int, float, bool, str, None, tuple for a list, Pose, Struct, and handles of
threads. URScript copies a list when it is assigned or passed on, so an immutable tuple behaves the
same. Integers have 32 bits. `operators.py` computes with these values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from simbridge.emulator.errors import RuntimeFault

POSE_LENGTH = 6
MAX_INTEGER = 2**31 - 1

# Limits of the time and memory of one operation. A list counts the elements of the lists inside it.
MAX_ELEMENTS = 10_000
MAX_STRING = 100_000
# Floats that are whole numbers below this are written without a decimal point.
MAX_WHOLE_FLOAT = 1e15
MAX_NESTING = 3
MAX_STRUCTS = 10
# Longest text of a value in a message, characters.
MAX_SHOWN = 200

# A character or an element that is only copied or compared costs one unit in 2 to this power.
COPY_COST_SHIFT = 4


class Pose(tuple[float, ...]):
    """x, y, z in m and a rotation vector rx, ry, rz in rad: p[x, y, z, rx, ry, rz]."""

    __slots__ = ()

    def __new__(cls, numbers: Iterable[float]) -> Pose:
        try:
            pose = super().__new__(cls, [number + 0.0 for number in numbers])
        except TypeError:
            raise RuntimeFault("A pose is made of numbers.") from None
        if len(pose) != POSE_LENGTH:
            raise RuntimeFault(f"A pose has {POSE_LENGTH} numbers, not {len(pose)}.")
        return pose


class Struct:
    """struct(name=value, ...); like a list it is a value: assigning a member makes another struct.

    Attributes:
        members: The values by name, in the order of the call.
        size: The number of values in it, those of inner lists and structs included.
        nesting: Depth of the structs nested in it, itself included.
    """

    __slots__ = ("members", "nesting", "size")

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members
        self.size: int = check_size(tuple(members.values()))

        inner_nesting = [struct.nesting for struct in _structs_in(members.values())]
        self.nesting: int = 1 + max(inner_nesting, default=0)
        if self.nesting > MAX_STRUCTS:
            raise RuntimeFault(f"Structs are nested more than {MAX_STRUCTS} deep.")

    def member(self, name: str) -> Any:
        """Return a member's value.

        Raises:
            RuntimeFault: There is no such member.
        """
        if name not in self.members:
            names = ", ".join(self.members) or "none"
            raise RuntimeFault(f"The struct has no member '{name}'; it has {names}.")
        return self.members[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.members == other.members

    def __hash__(self) -> int:
        return hash(tuple(self.members))


def _structs_in(values: Iterable[Any]) -> Iterator[Struct]:
    """Yield the structs among values, those in lists too."""
    for value in values:
        if type(value) is Struct:
            yield value
        elif type(value) is tuple:
            yield from _structs_in(value)


KIND_NAMES = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    tuple: "a list",
    Pose: "a pose",
    Struct: "a struct",
}
_VALUE_TYPES = frozenset({int, float, bool, str, type(None), Pose, tuple, Struct})


def value_of(result: Any) -> Any:
    """Return the result of a built-in function as a URScript value.

    Lists and numpy's numbers are converted.
    """
    if type(result) in _VALUE_TYPES:
        return result

    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, list):
        return tuple([value_of(item) for item in result])
    return result


def wrap(number: int) -> int:
    """Return an integer wrapped around to 32 bits."""
    return (number + MAX_INTEGER + 1) % (2 * MAX_INTEGER + 2) - MAX_INTEGER - 1


def check_size(items: tuple[Any, ...]) -> int:
    """Return the number of elements of a list, including those of the lists in it.

    Raises:
        RuntimeFault: It is too long, or nested too deep.
    """
    count = 0
    nesting = 0
    # The lists of one level of nesting, from the outermost one inwards.
    level = [items]

    while level:
        nesting += 1
        if nesting > MAX_NESTING:
            raise RuntimeFault(f"Lists are nested more than {MAX_NESTING} deep.")

        # First the number alone: there may be millions of elements to look at.
        count += sum(map(len, level))
        _check_count(count)

        elements = [item for inner_list in level for item in inner_list]
        count += sum([item.size for item in elements if type(item) is Struct])
        _check_count(count)

        level = [item for item in elements if type(item) is tuple]
    return count


def _check_count(count: int) -> None:
    """Refuse a list of too many elements."""
    if count > MAX_ELEMENTS:
        raise RuntimeFault(f"A list has more than {MAX_ELEMENTS} elements.")


def check_string(text: str) -> str:
    """Return a string as it is.

    Raises:
        RuntimeFault: It is too long.
    """
    if len(text) > MAX_STRING:
        raise RuntimeFault(f"A string has more than {MAX_STRING} characters.")
    return text


def kind_of(value: Any) -> str:
    """Return the kind of a value, for messages: "a list"."""
    if type(value) in KIND_NAMES:
        return KIND_NAMES[type(value)]
    if value is None:
        return "nothing"
    # A handle says what it is; a thread's does not.
    kind: str = getattr(value, "kind", "a thread")
    return kind


def to_text(value: Any) -> str:
    """Return a value as `to_str` and `textmsg` write it."""
    if isinstance(value, str):
        return value

    if isinstance(value, tuple | list):
        if isinstance(value, tuple):
            check_size(value)
        inside = _join(map(to_text, value))
        return f"p[{inside}]" if isinstance(value, Pose) else f"[{inside}]"

    if isinstance(value, Struct):
        inside = _join(f"{name}={to_text(item)}" for name, item in value.members.items())
        return f"struct({inside})"

    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_WHOLE_FLOAT:
        return str(int(value))
    return str(value)


def _join(texts: Iterable[str]) -> str:
    """Join texts by commas; give up as soon as there are too many characters."""
    pieces = []
    size = 0
    for text in texts:
        pieces.append(text)
        size += len(text)
        if size > MAX_STRING:
            raise RuntimeFault(f"A string has more than {MAX_STRING} characters.")
    return ", ".join(pieces)


def short(value: Any) -> str:
    """Return a value for a message: shortened, or its kind if it is too large to be written."""
    try:
        text = to_text(value)
    except RuntimeFault:
        return kind_of(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " ..."
