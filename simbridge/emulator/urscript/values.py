"""URScript's values, as Python has them: int, float, bool, str, None, tuple for a list, Pose, and thread handles.

A list in URScript is a value: it is copied when it is assigned or passed on. Tuples give just that for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simbridge.emulator.errors import RuntimeFault

POSE_LENGTH = 6
MAX_INTEGER = 2**31 - 1
# What bounds the time and memory of one operation. Lists count the elements of the lists inside them.
MAX_ELEMENTS = 10_000
MAX_STRING = 100_000
MAX_NESTING = 3


class Pose(tuple[float, ...]):
    """x, y, z in m and a rotation vector rx, ry, rz in rad: p[x, y, z, rx, ry, rz].

    Raises:
        RuntimeFault: There are not six numbers.
    """

    __slots__ = ()

    def __new__(cls, numbers: Iterable[float]) -> Pose:
        try:
            pose = super().__new__(cls, [number + 0.0 for number in numbers])
        except TypeError:
            raise RuntimeFault("A pose is made of numbers.") from None
        if len(pose) != POSE_LENGTH:
            raise RuntimeFault(f"A pose has {POSE_LENGTH} numbers, not {len(pose)}.")
        return pose


_PLAIN = frozenset({int, float, bool, str, type(None), Pose, tuple})


def value_of(result: Any) -> Any:
    """What a built-in function returned, as a URScript value: numbers and lists of Python and numpy are converted."""
    if type(result) in _PLAIN:
        return result
    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, list):
        return tuple([value_of(item) for item in result])
    return result


def check_size(items: tuple[Any, ...]) -> int:
    """How many elements a list has, those of the lists in it included.

    Raises:
        RuntimeFault: It is too long, or lists nest too deep.
    """
    count, level, nesting = 0, [items], 0
    while level:
        nesting += 1
        if nesting > MAX_NESTING:
            raise RuntimeFault(f"Lists nest more than {MAX_NESTING} deep.")
        count += sum(map(len, level))
        if count > MAX_ELEMENTS:
            raise RuntimeFault(f"A list has more than {MAX_ELEMENTS} elements.")
        level = [item for part in level for item in part if type(item) is tuple]
    return count


def kind_of(value: Any) -> str:
    """What a value is, as people say it: "a list"."""
    kinds = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", tuple: "a list", Pose: "a pose"}
    return kinds.get(type(value), "nothing" if value is None else "a thread")


def to_text(value: Any) -> str:
    """A value as `to_str` and `textmsg` write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        if isinstance(value, tuple):
            check_size(value)
        inside = ", ".join([to_text(item) for item in value])
        return f"p[{inside}]" if isinstance(value, Pose) else f"[{inside}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
