"""URScript's values and their arithmetic.

The values are Python's: int, float, bool, str, None, tuple for a list, Pose, Struct, and handles of threads. URScript
copies a list when it is assigned or passed on, so an immutable tuple behaves the same.

Integers have 32 bits, division gives real numbers. The rules for lists are those of UR's script manual, "Matrix and
array expressions": two lists of the same length element by element, a list and a number likewise, a matrix (a list of
lists) times a matrix or a list as in linear algebra. The manual does not mention poses: here they work element by
element, and the result of a pose with a number or another pose is a pose. What is not possible raises RuntimeFault.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from simbridge.emulator.errors import RuntimeFault

POSE_LENGTH = 6
MAX_INTEGER = 2**31 - 1
# Limits of the time and memory of one operation. A list counts the elements of the lists inside it.
MAX_ELEMENTS = 10_000
MAX_STRING = 100_000
MAX_NESTING = 3
MAX_STRUCTS = 10


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
        members: By name, in the order given.
        size: The number of values in it, those of inner lists and structs included.
    """

    __slots__ = ("members", "nesting", "size")

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members
        self.size: int = check_size(tuple(members.values()))
        self.nesting: int = 1 + max(
            [struct.nesting for struct in _structs(members.values())], default=0
        )
        if self.nesting > MAX_STRUCTS:
            raise RuntimeFault(f"Structs are nested more than {MAX_STRUCTS} deep.")

    def member(self, name: str) -> Any:
        if name not in self.members:
            raise RuntimeFault(
                f"The struct has no member '{name}'; it has {', '.join(self.members) or 'none'}."
            )
        return self.members[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.members == other.members

    def __hash__(self) -> int:
        return hash(tuple(self.members))


def _structs(values: Iterable[Any]) -> Iterator[Struct]:
    """The structs among values, those in lists too."""
    for value in values:
        if type(value) is Struct:
            yield value
        elif type(value) is tuple:
            yield from _structs(value)


_PLAIN = frozenset({int, float, bool, str, type(None), Pose, tuple, Struct})


def value_of(result: Any) -> Any:
    """The result of a built-in function as a URScript value: lists and numpy's numbers are converted."""
    if type(result) in _PLAIN:
        return result
    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, list):
        return tuple([value_of(item) for item in result])
    return result


def check_size(items: tuple[Any, ...]) -> int:
    """The number of elements of a list, including those of the lists in it; a fault if it is too long or too deep."""
    count, level, nesting = 0, [items], 0
    while level:
        nesting += 1
        if nesting > MAX_NESTING:
            raise RuntimeFault(f"Lists are nested more than {MAX_NESTING} deep.")
        count += sum(map(len, level))
        count += sum([item.size for part in level for item in part if type(item) is Struct])
        if count > MAX_ELEMENTS:
            raise RuntimeFault(f"A list has more than {MAX_ELEMENTS} elements.")
        level = [item for part in level for item in part if type(item) is tuple]
    return count


def kind_of(value: Any) -> str:
    """The kind of a value, for messages: "a list"."""
    kinds = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", tuple: "a list", Pose: "a pose",
             Struct: "a struct"}  # fmt: skip
    return kinds.get(
        type(value), "nothing" if value is None else getattr(value, "kind", "a thread")
    )


def to_text(value: Any) -> str:
    """A value as `to_str` and `textmsg` write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        if isinstance(value, tuple):
            check_size(value)
        inside = _joined(map(to_text, value))
        return f"p[{inside}]" if isinstance(value, Pose) else f"[{inside}]"
    if isinstance(value, Struct):
        return (
            f"struct({_joined(f'{name}={to_text(item)}' for name, item in value.members.items())})"
        )
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _joined(texts: Iterable[str]) -> str:
    pieces, size = [], 0
    for text in texts:
        pieces.append(text)
        size += len(text)
        if size > MAX_STRING:
            raise RuntimeFault(f"A string has more than {MAX_STRING} characters.")
    return ", ".join(pieces)


def short(value: Any) -> str:
    """A value in a message."""
    try:
        text = to_text(value)
    except RuntimeFault:
        return kind_of(value)
    return text if len(text) <= 200 else text[:200] + " ..."


Operator = Callable[[Any, Any], Any]
# One matrix product does at most this many multiplications.
MAX_PRODUCTS = 10_000
# Costs in units of the budget: an operation on one element, and a list by itself.
_PER_ELEMENT = 2
_PER_LIST = 6
# A character or an element that is only copied or compared costs one unit in 2 to this power.
COPIED = 4
_LISTS, _NESTED, _NUMBERS = (tuple, Pose), (tuple, Struct), (int, float)


def wrap(number: int) -> int:
    """An integer wrapped around to 32 bits."""
    return (number + MAX_INTEGER + 1) % (2 * MAX_INTEGER + 2) - MAX_INTEGER - 1


def _modulo(a: Any, b: Any) -> Any:
    # As in C: the sign of the dividend.
    result = math.fmod(a, b) if b else a / b
    return int(result) if type(a) is int and type(b) is int else result


def bounded(text: str) -> str:
    """A string as it is; a fault if it is too long."""
    if len(text) > MAX_STRING:
        raise RuntimeFault(f"A string has more than {MAX_STRING} characters.")
    return text


class Operators:
    """The operators of one program. Operations on lists are charged to its budget: a list of one number, what is left
    for the running thread in this tick."""

    def __init__(self, budget: list[int]) -> None:
        self._budget = budget
        self.add, self.subtract = self._scalar(operator.add, "+"), self._scalar(operator.sub, "-")
        self.multiply, self.divide = (
            self._scalar(operator.mul, "*"),
            self._scalar(operator.truediv, "/"),
        )
        self.modulo = self._scalar(_modulo, "%")
        self.less, self.less_equal = self._order(operator.lt, "<"), self._order(operator.le, "<=")
        self.greater, self.greater_equal = (
            self._order(operator.gt, ">"),
            self._order(operator.ge, ">="),
        )

    def _scalar(self, function: Operator, sign: str) -> Operator:
        """The operator on any two values; numbers, the usual case, come first."""

        def apply(a: Any, b: Any) -> Any:
            kind_a, kind_b = type(a), type(b)
            if kind_a is int and kind_b is int:
                result = function(a, b)
                return (
                    result
                    if -MAX_INTEGER <= result <= MAX_INTEGER or type(result) is float
                    else wrap(result)
                )
            if (kind_a is float or kind_a is int) and (kind_b is float or kind_b is int):
                return function(a, b)
            if kind_a in _LISTS or kind_b in _LISTS:
                if sign == "*" and _is_matrix(a) and kind_b is tuple and b:
                    return self._product(a, b)
                return self._vector(apply, a, b, sign)
            if kind_a is str and kind_b is str and sign == "+":
                self._budget[0] -= (len(a) + len(b)) >> COPIED
                return bounded(a + b)
            raise RuntimeFault(f"'{sign}' cannot be applied to {kind_of(a)} and {kind_of(b)}.")

        return apply

    def _vector(self, apply: Operator, a: Any, b: Any, sign: str) -> Any:
        kind_a, kind_b = type(a), type(b)
        if kind_a in _LISTS and kind_b in _LISTS:
            if len(a) != len(b):
                raise RuntimeFault(
                    f"'{sign}' needs two lists of the same length, not {len(a)} and {len(b)} elements."
                )
            if sign == "*" and _is_matrix(b):
                raise RuntimeFault(
                    "A list cannot be multiplied by a matrix; a matrix can by a list."
                )
            self._budget[0] -= _PER_LIST + _PER_ELEMENT * len(a)
            result: Any = [apply(x, y) for x, y in zip(a, b, strict=True)]
            return Pose(result) if kind_a is Pose and kind_b is Pose else tuple(result)
        self._budget[0] -= _PER_LIST + _PER_ELEMENT * len(a if kind_a in _LISTS else b)
        return (
            kind_a([apply(x, b) for x in a])
            if kind_a in _LISTS
            else kind_b([apply(a, y) for y in b])
        )

    def _product(self, a: Any, b: Any) -> Any:
        """A matrix times a matrix or a list."""
        columns = list(zip(*b, strict=True)) if _is_matrix(b) else [b]
        if len(a[0]) != len(b):
            raise RuntimeFault(
                f"A matrix of {len(a[0])} columns cannot be multiplied by {len(b)} rows."
            )
        work = len(a) * len(b) * len(columns)
        if work > MAX_PRODUCTS:
            raise RuntimeFault(
                f"The matrices are too large: {work} multiplications, at most {MAX_PRODUCTS} are made."
            )
        self._budget[0] -= _PER_LIST * (len(a) + len(b)) + 2 * _PER_ELEMENT * work
        rows = tuple(tuple(self._dot(row, column) for column in columns) for row in a)
        return rows if _is_matrix(b) else tuple(row[0] for row in rows)

    def _dot(self, row: Any, column: Any) -> Any:
        total: Any = 0
        for x, y in zip(row, column, strict=True):
            total = self.add(total, self.multiply(x, y))
        return total

    def negate(self, a: Any) -> Any:
        return self.subtract(0, a) if type(a) is int or type(a) in _LISTS else self.multiply(-1, a)

    def plus(self, a: Any) -> Any:
        return self.multiply(1, a)

    def equal(self, a: Any, b: Any) -> bool:
        """a == b, for any values."""
        if type(a) is tuple and type(b) is tuple:
            self._budget[0] -= check_size(a)
        elif type(a) is str and type(b) is str:
            self._budget[0] -= len(a) >> COPIED
        elif type(a) is Struct and type(b) is Struct:
            self._budget[0] -= a.size
        return bool(a == b)

    def unequal(self, a: Any, b: Any) -> bool:
        return not self.equal(a, b)

    def _order(self, function: Operator, sign: str) -> Operator:
        def apply(a: Any, b: Any) -> bool:
            if type(a) in _NUMBERS and type(b) in _NUMBERS:
                return bool(function(a, b))
            raise RuntimeFault(f"'{sign}' cannot be applied to {kind_of(a)} and {kind_of(b)}.")

        return apply

    def truth(self, value: Any) -> bool:
        if type(value) is bool:
            return value
        if type(value) in _NUMBERS:
            return bool(value)
        raise RuntimeFault(f"A condition is True or False, not {kind_of(value)}.")

    def item(self, values: Any, index: Any) -> Any:
        if type(values) in _LISTS and type(index) is int and 0 <= index < len(values):
            return values[index]  # at once, because it is the usual case
        return values[_checked_index(values, index)]

    def at(self, path: tuple[Any, ...], values: Any) -> Any:
        """values[path[0], path[1], ...]; a text is a struct's member."""
        for step in path:
            is_member = type(values) is Struct and type(step) is str
            values = values.member(step) if is_member else self.item(values, step)
        return values

    def with_item(self, path: tuple[Any, ...], item: Any, values: Any) -> Any:
        """A copy of the list with another value at values[path[0], path[1], ...]."""
        if not path:
            return item
        if type(values) is Struct and type(path[0]) is str:
            item = self.with_item(path[1:], item, values.member(path[0]))
            struct = Struct({**values.members, path[0]: item})
            self._budget[0] -= struct.size
            return struct
        index = _checked_index(values, path[0])
        if len(path) > 1:
            item = self.with_item(path[1:], item, values[index])
        self._budget[0] -= len(values) >> COPIED
        changed = (*values[:index], item, *values[index + 1 :])
        if type(values) is Pose:
            return Pose(changed)
        if type(item) in _NESTED:
            self._budget[0] -= check_size(changed)
        return changed

    def list_of(self, *items: Any) -> tuple[Any, ...]:
        if any(type(item) in _NESTED for item in items):
            self._budget[0] -= check_size(items)
        elif len(items) > MAX_ELEMENTS:
            check_size(items)
        return items

    def exclusive(self, *conditions: bool) -> bool:
        return sum(conditions) % 2 == 1

    def pose_of(self, *numbers: Any) -> Pose:
        return Pose(numbers)


def _is_matrix(value: Any) -> bool:
    if type(value) is not tuple or not value or type(value[0]) is not tuple:
        return False
    return all(type(row) is tuple and len(row) == len(value[0]) for row in value)


def _checked_index(values: Any, index: Any) -> int:
    if type(values) not in _LISTS:
        raise RuntimeFault(f"Only a list or a pose has elements, not {kind_of(values)}.")
    if type(index) is float and index.is_integer():
        index = int(index)
    if type(index) is not int:
        raise RuntimeFault(f"An index is an integer, not {kind_of(index)}.")
    if not 0 <= index < len(values):
        raise RuntimeFault(f"The index {index} is out of range: there are {len(values)} elements.")
    return index
