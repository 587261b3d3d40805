"""URScript's operators, and the reading and writing of elements.

Division gives real numbers. The rules for lists are those of UR's script manual, "Matrix and array
expressions": two lists of the same length element by element, a list and a number likewise, a
matrix (a list of lists) times a matrix or a list as in linear algebra. The manual does not mention
poses: here they work element by element, and the result of a pose with a number or another pose is
a pose. What is not possible raises RuntimeFault.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.values import (
    COPY_COST_SHIFT,
    MAX_ELEMENTS,
    MAX_INTEGER,
    Pose,
    Struct,
    check_size,
    check_string,
    kind_of,
    wrap,
)

Operator = Callable[[Any, Any], Any]

# One matrix product does at most this many multiplications.
MAX_PRODUCTS = 10_000
# Costs in units of the budget: an operation on one element, and a list by itself.
COST_PER_ELEMENT = 2
COST_PER_LIST = 6

_LIST_TYPES = (tuple, Pose)
_NUMBER_TYPES = (int, float)
# Types whose values have a size of their own as elements.
_SIZED_TYPES = (tuple, Struct)


class Operators:
    """The operators of one program.

    Operations on lists and strings are charged to the program's budget, because they take longer
    than an operation on two numbers. A compiled program calls these methods by their names after an
    underscore: `a + b` becomes `_add(a, b)`.

    Args:
        budget: A list of one number: what is left for the running thread in this tick.
    """

    def __init__(self, budget: list[int]) -> None:
        self._budget = budget

        self.add = self._arithmetic(operator.add, "+")
        self.subtract = self._arithmetic(operator.sub, "-")
        self.multiply = self._arithmetic(operator.mul, "*")
        self.divide = self._arithmetic(operator.truediv, "/")
        self.modulo = self._arithmetic(_modulo, "%")

        self.less = self._comparison(operator.lt, "<")
        self.less_equal = self._comparison(operator.le, "<=")
        self.greater = self._comparison(operator.gt, ">")
        self.greater_equal = self._comparison(operator.ge, ">=")

    def helpers(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that a compiled program calls, by their names there."""
        return {
            "_add": self.add,
            "_subtract": self.subtract,
            "_multiply": self.multiply,
            "_divide": self.divide,
            "_modulo": self.modulo,
            "_negate": self.negate,
            "_plus": self.plus,
            "_equal": self.equal,
            "_unequal": self.unequal,
            "_less": self.less,
            "_less_equal": self.less_equal,
            "_greater": self.greater,
            "_greater_equal": self.greater_equal,
            "_truth": self.truth,
            "_exclusive": self.exclusive,
            "_item": self.item,
            "_item_at_path": self.item_at_path,
            "_with_item": self.with_item,
            "_list_of": self.list_of,
            "_pose_of": self.pose_of,
        }

    # Arithmetic

    def _arithmetic(self, function: Operator, sign: str) -> Operator:
        """Return the operator on any two values.

        Args:
            function: The operator on two numbers.
            sign: The operator in a script: "+".
        """

        # Numbers, the usual case, come first and call nothing else.
        def apply(a: Any, b: Any) -> Any:
            type_a = type(a)
            type_b = type(b)

            if type_a is int and type_b is int:
                result = function(a, b)
                if -MAX_INTEGER <= result <= MAX_INTEGER or type(result) is float:
                    return result
                return wrap(result)

            if (type_a is float or type_a is int) and (type_b is float or type_b is int):
                return function(a, b)

            return self._apply_to_others(apply, sign, a, b)

        return apply

    def _apply_to_others(self, apply: Operator, sign: str, a: Any, b: Any) -> Any:
        """Return the result of an operator on two values that are not both numbers."""
        type_a = type(a)
        type_b = type(b)

        if type_a in _LIST_TYPES or type_b in _LIST_TYPES:
            if sign == "*" and _is_matrix(a) and type_b is tuple and b:
                return self._product(a, b)
            return self._apply_by_element(apply, sign, a, b)

        if type_a is str and type_b is str and sign == "+":
            self._budget[0] -= (len(a) + len(b)) >> COPY_COST_SHIFT
            return check_string(a + b)

        raise RuntimeFault(f"'{sign}' cannot be applied to {kind_of(a)} and {kind_of(b)}.")

    def _apply_by_element(self, apply: Operator, sign: str, a: Any, b: Any) -> Any:
        """Return the result of an operator on two lists, or a list and another value."""
        if type(a) not in _LIST_TYPES:
            self._charge_elements(len(b))
            return type(b)([apply(a, y) for y in b])

        if type(b) not in _LIST_TYPES:
            self._charge_elements(len(a))
            return type(a)([apply(x, b) for x in a])

        if len(a) != len(b):
            raise RuntimeFault(
                f"'{sign}' needs two lists of the same length, not {len(a)} and {len(b)} elements."
            )
        if sign == "*" and _is_matrix(b):
            raise RuntimeFault("A list cannot be multiplied by a matrix; a matrix can by a list.")

        self._charge_elements(len(a))
        result = [apply(x, y) for x, y in zip(a, b, strict=True)]
        is_pose = type(a) is Pose and type(b) is Pose
        return Pose(result) if is_pose else tuple(result)

    def _charge_elements(self, count: int) -> None:
        """Charge an operation on each element of a list."""
        self._budget[0] -= COST_PER_LIST + COST_PER_ELEMENT * count

    def _product(self, a: Any, b: Any) -> Any:
        """Return a matrix times a matrix or a list."""
        columns = list(zip(*b, strict=True)) if _is_matrix(b) else [b]
        if len(a[0]) != len(b):
            raise RuntimeFault(
                f"A matrix of {len(a[0])} columns cannot be multiplied by {len(b)} rows."
            )

        multiplications = len(a) * len(b) * len(columns)
        if multiplications > MAX_PRODUCTS:
            raise RuntimeFault(
                f"The matrices are too large: {multiplications} multiplications, "
                f"at most {MAX_PRODUCTS} are made."
            )
        self._budget[0] -= COST_PER_LIST * (len(a) + len(b))
        self._budget[0] -= 2 * COST_PER_ELEMENT * multiplications

        rows = tuple(tuple(self._dot(row, column) for column in columns) for row in a)
        return rows if _is_matrix(b) else tuple(row[0] for row in rows)

    def _dot(self, row: Any, column: Any) -> Any:
        """Return the dot product of two lists of the same length."""
        total: Any = 0
        for x, y in zip(row, column, strict=True):
            total = self.add(total, self.multiply(x, y))
        return total

    def negate(self, a: Any) -> Any:
        """Return -a."""
        # A real number is multiplied: -0.0 is not 0 - 0.0.
        if type(a) is int or type(a) in _LIST_TYPES:
            return self.subtract(0, a)
        return self.multiply(-1, a)

    def plus(self, a: Any) -> Any:
        """Return +a; a fault where that has no meaning."""
        return self.multiply(1, a)

    # Conditions

    def equal(self, a: Any, b: Any) -> bool:
        """Return a == b, for any values."""
        if type(a) is tuple and type(b) is tuple:
            self._budget[0] -= check_size(a)
        elif type(a) is str and type(b) is str:
            self._budget[0] -= len(a) >> COPY_COST_SHIFT
        elif type(a) is Struct and type(b) is Struct:
            self._budget[0] -= a.size
        return bool(a == b)

    def unequal(self, a: Any, b: Any) -> bool:
        """Return a != b, for any values."""
        return not self.equal(a, b)

    def _comparison(self, function: Operator, sign: str) -> Operator:
        """Return the operator that compares two numbers.

        Args:
            function: The operator on two numbers.
            sign: The operator in a script: "<".
        """

        def apply(a: Any, b: Any) -> bool:
            if type(a) in _NUMBER_TYPES and type(b) in _NUMBER_TYPES:
                return bool(function(a, b))
            raise RuntimeFault(f"'{sign}' cannot be applied to {kind_of(a)} and {kind_of(b)}.")

        return apply

    def truth(self, value: Any) -> bool:
        """Return a condition's value; a number other than 0 is true."""
        if type(value) is bool:
            return value
        if type(value) in _NUMBER_TYPES:
            return bool(value)
        raise RuntimeFault(f"A condition is True or False, not {kind_of(value)}.")

    def exclusive(self, *conditions: bool) -> bool:
        """Return a xor b xor c ...: whether an odd number of conditions is true."""
        return sum(conditions) % 2 == 1

    # Elements. A list is a value: writing an element makes another list.

    def item(self, values: Any, index: Any) -> Any:
        """Return values[index]."""
        # The usual case, without a further call.
        if type(values) in _LIST_TYPES and type(index) is int and 0 <= index < len(values):
            return values[index]
        return values[_check_index(values, index)]

    def item_at_path(self, path: tuple[Any, ...], values: Any) -> Any:
        """Return values[path[0]][path[1]] ...; a text in the path is a struct's member."""
        for step in path:
            is_member = type(values) is Struct and type(step) is str
            values = values.member(step) if is_member else self.item(values, step)
        return values

    def with_item(self, path: tuple[Any, ...], item: Any, values: Any) -> Any:
        """Return a copy of a list or struct with another value at a path.

        Args:
            path: Indices and names of members; without any the item itself is returned.
            item: The new value there.
            values: The list, pose or struct.
        """
        # Each level of the path is copied with the changed copy of the level below, and charged.
        if not path:
            return item
        step = path[0]
        inner_path = path[1:]

        if type(values) is Struct and type(step) is str:
            item = self.with_item(inner_path, item, values.member(step))
            struct = Struct({**values.members, step: item})
            self._budget[0] -= struct.size
            return struct

        index = _check_index(values, step)
        if inner_path:
            item = self.with_item(inner_path, item, values[index])
        self._budget[0] -= len(values) >> COPY_COST_SHIFT

        changed = (*values[:index], item, *values[index + 1 :])
        if type(values) is Pose:
            return Pose(changed)
        if type(item) in _SIZED_TYPES:
            self._budget[0] -= check_size(changed)
        return changed

    def list_of(self, *items: Any) -> tuple[Any, ...]:
        """Return [a, b, c ...]."""
        if any(type(item) in _SIZED_TYPES for item in items):
            self._budget[0] -= check_size(items)
        elif len(items) > MAX_ELEMENTS:
            # A fault, with the text for a list that is too long.
            check_size(items)
        return items

    def pose_of(self, *numbers: Any) -> Pose:
        """Return p[a, b, c ...]."""
        return Pose(numbers)


def _modulo(a: Any, b: Any) -> Any:
    """Return a % b as in C, with the sign of the dividend; integers stay integers."""
    # A division by 0 raises the ZeroDivisionError that names the fault.
    result = math.fmod(a, b) if b else a / b
    return int(result) if type(a) is int and type(b) is int else result


def _is_matrix(value: Any) -> bool:
    """Return whether a value is a list of lists of the same length, and not empty."""
    if type(value) is not tuple or not value or type(value[0]) is not tuple:
        return False
    return all(type(row) is tuple and len(row) == len(value[0]) for row in value)


def _check_index(values: Any, index: Any) -> int:
    """Return an index of a list as an integer; a whole real number is one, too.

    Raises:
        RuntimeFault: There is no such element, or the value has no elements.
    """
    if type(values) not in _LIST_TYPES:
        raise RuntimeFault(f"Only a list or a pose has elements, not {kind_of(values)}.")
    if type(index) is float and index.is_integer():
        index = int(index)
    if type(index) is not int:
        raise RuntimeFault(f"An index is an integer, not {kind_of(index)}.")
    if not 0 <= index < len(values):
        raise RuntimeFault(f"The index {index} is out of range: there are {len(values)} elements.")
    return index
