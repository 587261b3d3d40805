"""Scalars that remember how they were computed.

A function of plain floats, called with expressions instead, leaves a trace: a list of operations
that prints as straight-line Python. Sums and products with 0 and +-1 fold away, and what was
computed once is not computed again. docs/internals.md follows one expression from the
mathematics to the machine code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, ParamSpec, TypeAlias

Scalar: TypeAlias = Any
"""A float, or an `Expression`."""

_Args = ParamSpec("_Args")


class Operation(NamedTuple):
    """One operation of a trace.

    Attributes:
        kind: "name" reads a value by its Python text; "call" calls a function, and "item" is one of
            its results; the others are arithmetic.
        operands: Indices of the operations whose results it takes.
        text: The Python text of a name, the name of a function, or the index of an item.
    """

    kind: Literal["name", "call", "item", "neg", "+", "-", "*", "/"]
    operands: tuple[int, ...] = ()
    text: str = ""


@dataclass
class Trace:
    """All operations of one function, in an order in which they can be computed.

    Attributes:
        operations: They; equal ones appear once.
        called: The functions that it calls, by name.
    """

    operations: list[Operation] = field(default_factory=list)
    called: dict[str, Callable[..., Any]] = field(default_factory=dict)
    # The index of each operation.
    _indices: dict[Operation, int] = field(default_factory=dict)

    def add(self, operation: Operation) -> Expression:
        """Return the expression of an operation, which is added unless it is there."""
        if operation not in self._indices:
            self._indices[operation] = len(self.operations)
            self.operations.append(operation)
        return Expression(self, self._indices[operation])

    def name(self, text: str) -> Expression:
        """Return the expression of a value that the generated function reads, by Python text."""
        return self.add(Operation("name", text=text))

    def index(self, value: Scalar) -> int:
        """Return the index of an operand; a number becomes part of the trace here."""
        if isinstance(value, Expression):
            return value.index
        return self.name(repr(float(value))).index


@dataclass(frozen=True)
class Expression:
    """One scalar of a trace."""

    trace: Trace
    index: int

    def __neg__(self) -> Expression:
        return self.trace.add(Operation("neg", (self.index,)))

    def __add__(self, other: Scalar) -> Scalar:
        if _is_number(other, 0.0):
            return self
        return self._binary("+", self, other)

    def __sub__(self, other: Scalar) -> Scalar:
        if _is_number(other, 0.0):
            return self
        return self._binary("-", self, other)

    def __rsub__(self, other: Scalar) -> Scalar:
        if _is_number(other, 0.0):
            return -self
        return self._binary("-", other, self)

    def __mul__(self, other: Scalar) -> Scalar:
        if _is_number(other, 0.0):
            return 0.0
        if _is_number(other, 1.0):
            return self
        if _is_number(other, -1.0):
            return -self
        return self._binary("*", self, other)

    def __truediv__(self, other: Scalar) -> Scalar:
        if _is_number(other, 1.0):
            return self
        return self._binary("/", self, other)

    def __rtruediv__(self, other: Scalar) -> Scalar:
        if _is_number(other, 0.0):
            return 0.0
        return self._binary("/", other, self)

    __radd__ = __add__
    __rmul__ = __mul__

    def _binary(self, kind: Literal["+", "-", "*", "/"], a: Scalar, b: Scalar) -> Expression:
        return self.trace.add(Operation(kind, (self.trace.index(a), self.trace.index(b))))


def _is_number(value: Scalar, number: float) -> bool:
    return not isinstance(value, Expression) and value == number


def opaque(outputs: int) -> Callable[[Callable[_Args, Any]], Callable[_Args, Any]]:
    """Mark a function with branches, which the generated code calls instead of containing it.

    Args:
        outputs: How many scalars it returns.
    """

    def mark(function: Callable[_Args, Any]) -> Callable[_Args, Any]:
        @functools.wraps(function)
        def call(*arguments: _Args.args, **named: _Args.kwargs) -> Any:
            expressions = [value for value in arguments if isinstance(value, Expression)]
            if not expressions:
                return function(*arguments, **named)

            trace = expressions[0].trace
            trace.called[function.__name__] = function
            operands = tuple(trace.index(value) for value in arguments)
            results = trace.add(Operation("call", operands, function.__name__))
            return tuple(
                trace.add(Operation("item", (results.index,), str(i))) for i in range(outputs)
            )

        return call

    return mark


class Generated(NamedTuple):
    """A generated function: its text, and the functions that it calls."""

    text: str
    calls: tuple[Callable[..., Any], ...]


def write_function(signature: str, lines: Iterable[str], trace: Trace) -> Generated:
    """Return the function with this signature and these lines of Python."""
    body = "\n".join(f"    {line}" for line in lines)
    return Generated(f"def {signature}:\n{body}\n", tuple(trace.called.values()))


def statements(trace: Trace, results: Iterable[tuple[str, Scalar]]) -> list[str]:
    """Return lines of Python that compute results, and then assign them.

    All are computed before the first is assigned: the same array may hold inputs and results.

    Args:
        trace: Trace of the function.
        results: Where each result goes, as Python text, and its expression.
    """
    targets = [(target, trace.index(value)) for target, value in results]

    # What the results need; operands stand before what is made of them.
    needed = {index for _, index in targets}
    for index in reversed(range(len(trace.operations))):
        if index in needed:
            needed.update(trace.operations[index].operands)

    # The text by which later lines refer to an operation.
    references: dict[int, str] = {}
    lines = []
    for index in sorted(needed):
        operation = trace.operations[index]
        value = _python_text(operation, [references[operand] for operand in operation.operands])
        # Numbers are repeated where they are used; elements of arrays are read once, before any is
        # written.
        is_repeated = operation.kind == "name" and not value.endswith("]")
        if is_repeated:
            references[index] = value
        else:
            references[index] = f"v{index}"
            lines.append(f"v{index} = {value}")

    assignments = [f"{target} = {references[index]}" for target, index in targets]
    return lines + assignments


def _python_text(operation: Operation, operands: list[str]) -> str:
    """Return an operation as Python, with its operands as Python."""
    if operation.kind == "name":
        return operation.text
    if operation.kind == "call":
        return f"{operation.text}({', '.join(operands)})"
    if operation.kind == "item":
        return f"{operands[0]}[{operation.text}]"
    if operation.kind == "neg":
        return f"-{operands[0]}"
    return f"{operands[0]} {operation.kind} {operands[1]}"
