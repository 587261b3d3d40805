"""Scalars that remember how they were computed.

A function of plain floats, called with expressions instead, leaves a trace: a list of operations that prints as
straight-line Python. Sums and products with 0 and +-1 fold away, and what was computed once is not computed again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, TypeAlias

Scalar: TypeAlias = Any
"""A float, or an `Expression`."""

_Args = ParamSpec("_Args")


@dataclass
class Trace:
    """All operations of one function, in an order in which they can be computed; equal ones appear once. And the
    functions that it calls."""

    nodes: list[tuple[Any, ...]] = field(default_factory=list)
    called: dict[str, Callable[..., Any]] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, *node: Any) -> Expression:
        """The expression of an operation: its kind, then the indices of its operands (or its text)."""
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return Expression(self, self._known[node])

    def name(self, text: str) -> Expression:
        """A value that the generated function reads, by its Python text."""
        return self.add("name", text)

    def index(self, value: Scalar) -> int:
        """The index of an operand; numbers become part of the trace here."""
        return (
            value.index
            if isinstance(value, Expression)
            else self.add("name", repr(float(value))).index
        )


@dataclass(frozen=True)
class Expression:
    """One scalar of a trace."""

    trace: Trace
    index: int

    def _binary(self, kind: str, a: Scalar, b: Scalar) -> Expression:
        return self.trace.add(kind, self.trace.index(a), self.trace.index(b))

    def __neg__(self) -> Expression:
        return self.trace.add("neg", self.index)

    def __add__(self, other: Scalar) -> Scalar:
        if _is(other, 0.0):
            return self
        return self._binary("+", self, other)

    def __sub__(self, other: Scalar) -> Scalar:
        if _is(other, 0.0):
            return self
        return self._binary("-", self, other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return -self if _is(other, 0.0) else self._binary("-", other, self)

    def __mul__(self, other: Scalar) -> Scalar:
        if _is(other, 0.0):
            return 0.0
        if _is(other, 1.0):
            return self
        if _is(other, -1.0):
            return -self
        return self._binary("*", self, other)

    def __truediv__(self, other: Scalar) -> Scalar:
        return self if _is(other, 1.0) else self._binary("/", self, other)

    def __rtruediv__(self, other: Scalar) -> Scalar:
        return 0.0 if _is(other, 0.0) else self._binary("/", other, self)

    __radd__ = __add__
    __rmul__ = __mul__


def _is(value: Scalar, number: float) -> bool:
    return not isinstance(value, Expression) and value == number


def opaque(outputs: int) -> Callable[[Callable[_Args, Any]], Callable[_Args, Any]]:
    """Marks a function with branches, which the generated code calls instead of containing it.

    Args:
        outputs: How many scalars it returns.
    """

    def mark(function: Callable[_Args, Any]) -> Callable[_Args, Any]:
        @functools.wraps(function)
        def call(*arguments: _Args.args, **named: _Args.kwargs) -> Any:
            traced = next((a for a in arguments if isinstance(a, Expression)), None)
            if traced is None:
                return function(*arguments, **named)
            trace = traced.trace
            trace.called[function.__name__] = function
            called = trace.add("call", function.__name__, *(trace.index(a) for a in arguments))
            return tuple(trace.add("item", called.index, i) for i in range(outputs))

        return call

    return mark


class Generated(NamedTuple):
    """A generated function: its text, and the functions that it calls."""

    text: str
    calls: tuple[Callable[..., Any], ...]


def generated(signature: str, lines: Iterable[str], trace: Trace) -> Generated:
    """The function of these lines of Python."""
    body = "\n".join(f"    {line}" for line in lines)
    return Generated(f"def {signature}:\n{body}\n", tuple(trace.called.values()))


def statements(trace: Trace, results: Iterable[tuple[str, Scalar]]) -> list[str]:
    """The operations that results need as lines of Python, which then assign each result to its place: the same array
    may hold inputs and results."""
    wanted = [(place, trace.index(value)) for place, value in results]
    needed = {index for _, index in wanted}
    for index, (kind, *rest) in reversed(list(enumerate(trace.nodes))):
        if index in needed:
            needed |= set({"name": rest[:0], "call": rest[1:], "item": rest[:1]}.get(kind, rest))
    text: dict[int, str] = {}
    lines = []
    for index in sorted(needed):
        kind, *rest = trace.nodes[index]
        if kind == "name":
            value = rest[0]
        elif kind == "call":
            value = f"{rest[0]}({', '.join(text[operand] for operand in rest[1:])})"
        elif kind == "item":
            value = f"{text[rest[0]]}[{rest[1]}]"
        elif kind == "neg":
            value = f"-{text[rest[0]]}"
        else:
            value = f"{text[rest[0]]} {kind} {text[rest[1]]}"
        # Numbers are repeated where they are used; elements of arrays are read once, before any is written.
        text[index] = value if kind == "name" and not value.endswith("]") else f"v{index}"
        if text[index] != value:
            lines.append(f"v{index} = {value}")
    return lines + [f"{place} = {text[index]}" for place, index in wanted]
