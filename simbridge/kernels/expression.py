"""Scalars that record how they were computed, from which straight-line Python is generated.

If a function of floats is called with expressions instead, its operations are recorded in a trace,
from which they can be written as lines of Python. Sums and products with 0 and +-1 are simplified,
and equal operations are recorded once. docs/internals.md follows one expression from the formula to
the machine code.
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
        kind: "name" for a value that is read by its Python text; "call" for a call of a function,
            and "item" for one of its results; an arithmetic operator otherwise.
        operands: Indices of the operations whose results are the operands.
        text: The Python text of a name, the name of a called function, or the index of an item.
    """

    kind: Literal["name", "call", "item", "neg", "+", "-", "*", "/"]
    operands: tuple[int, ...] = ()
    text: str = ""


@dataclass
class Trace:
    """All operations of one function, in an order in which they can be computed.

    Attributes:
        operations: The operations; equal ones appear once.
        called: The functions that the operations call, by name.
    """

    operations: list[Operation] = field(default_factory=list)
    called: dict[str, Callable[..., Any]] = field(default_factory=dict)
    # The index of each operation.
    _indices: dict[Operation, int] = field(default_factory=dict)

    def add(self, operation: Operation) -> Expression:
        """Add an operation unless the trace has an equal one, and return its expression."""
        if operation not in self._indices:
            self._indices[operation] = len(self.operations)
            self.operations.append(operation)
        return Expression(self, self._indices[operation])

    def name(self, text: str) -> Expression:
        """Return the expression of a value that generated code reads, by its Python text."""
        return self.add(Operation("name", text=text))

    def index(self, value: Scalar) -> int:
        """Return the index of an operand's operation; for a number, one is added to the trace."""
        if isinstance(value, Expression):
            return value.index
        return self.name(repr(float(value))).index


@dataclass(frozen=True)
class Expression:
    """The result of one operation of a trace.

    Attributes:
        trace: The trace.
        index: Index of the operation.
    """

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
    """Decorate a function that branches on values: called with expressions, its call is recorded.

    Its operations cannot be recorded, since expressions have no values to branch on. Of another
    function the generated code contains the operations; of this one it contains the call itself.
    Such a call has positional arguments only. Called with numbers, the function works as usual.

    Args:
        outputs: Number of scalars that the function returns.
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
    """A generated function.

    Attributes:
        text: The function as Python.
        calls: The functions that it calls.
    """

    text: str
    calls: tuple[Callable[..., Any], ...]


def write_function(signature: str, lines: Iterable[str], trace: Trace) -> Generated:
    """Return the function with a signature, such as "move(q, out)", and lines of Python as body."""
    body = "\n".join(f"    {line}" for line in lines)
    return Generated(f"def {signature}:\n{body}\n", tuple(trace.called.values()))


def statements(trace: Trace, results: Iterable[tuple[str, Scalar]]) -> list[str]:
    """Return the lines of Python that compute results and then assign them.

    All results are computed before the first one is assigned, since an array may hold both inputs
    and results.

    Args:
        trace: Trace of the function.
        results: The target of each assignment as Python text, and the expression of its value.
    """
    # The target of each assignment, and the index of the operation whose result it gets.
    targets = [(target, trace.index(value)) for target, value in results]

    # Find the operations that the results need. Operands come before the operations that use them.
    needed = {index for _, index in targets}
    for index in reversed(range(len(trace.operations))):
        if index in needed:
            needed.update(trace.operations[index].operands)

    # Write a line for each of these operations, unless later lines can repeat its text: they refer
    # to its result by this text, or by the variable to which the line assigns it.
    references: dict[int, str] = {}
    lines = []
    for index in sorted(needed):
        operation = trace.operations[index]
        value = _python_text(operation, [references[operand] for operand in operation.operands])

        # Constants and numbers among the arguments are repeated wherever they are used. Elements of
        # arrays, "q[0]", are read once, before any is written.
        is_array_element = value.endswith("]")
        is_repeated = operation.kind == "name" and not is_array_element
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
