"""The nodes of a URScript program's syntax tree. Lines and columns count from 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Node:
    """Any part of a program; the place is that of its first word."""

    line: int
    column: int

    def children(self) -> Iterator[Node]:
        """The direct children, in the order of the source."""
        for value in vars(self).values():
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from value


# Expressions


@dataclass(frozen=True)
class Literal(Node):
    value: int | float | str | bool


@dataclass(frozen=True)
class Name(Node):
    """A variable that is read."""

    name: str


@dataclass(frozen=True)
class ListOf(Node):
    """[a, b, ...], or with `pose` p[x, y, z, rx, ry, rz]."""

    items: tuple[Expression, ...]
    pose: bool = False


@dataclass(frozen=True)
class Operation(Node):
    """One operand for `not`, `+` and `-`; two for arithmetic and comparisons; two or more for `and`, `or`, `xor`."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Index(Node):
    """list[i], matrix[i, j]"""

    value: Expression
    subscripts: tuple[Expression, ...]


@dataclass(frozen=True)
class Member(Node):
    """struct.name"""

    value: Expression
    name: str


@dataclass(frozen=True)
class Keyword(Node):
    """name=value, in a call."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Call(Node):
    """A call of the program's function or a built-in one. As a statement, its value is dropped."""

    name: str
    arguments: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True)
class Method(Node):
    """value.name(...): of a list, or of a handle."""

    value: Expression
    name: str
    arguments: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True)
class Start(Node):
    """run name(...): starts a thread; the value is its handle."""

    call: Call


Expression: TypeAlias = Literal | Name | ListOf | Operation | Index | Member | Call | Method | Start

# Statements


@dataclass(frozen=True)
class Assignment(Node):
    """name = value, name[i] = value, name.member = value, and the same after `global` or `local` (its scope).

    `path` has the subscripts after the name; a member's name as a string.
    """

    name: str
    path: tuple[Expression, ...]
    value: Expression
    scope: str


@dataclass(frozen=True)
class Branch(Node):
    condition: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class If(Node):
    """if, any number of elif, else."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class While(Branch):
    """A loop."""


@dataclass(frozen=True)
class Keyed(Node):
    """A statement that begins with its keyword: break, continue, halt, pass, enter_critical, exit_critical; kill, join
    and return, with an expression."""

    word: str
    value: Expression | None = None


@dataclass(frozen=True)
class Parameter(Node):
    name: str
    default: Expression | None


@dataclass(frozen=True)
class Definition(Node):
    """A function ("def"), thread or secondary program ("sec")."""

    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]


Statement: TypeAlias = Definition | If | While | Assignment | Call | Method | Start | Keyed


@dataclass(frozen=True)
class Program(Node):
    body: tuple[Statement, ...]


def place_of(target: Expression) -> tuple[str, tuple[Expression, ...]]:
    """The variable of `name`, `name[i]`, `name.member[i]` and so on, and the path of what is meant in it, as an
    assignment has it; "" for other expressions."""
    path: tuple[Expression, ...] = ()
    while isinstance(target, Index | Member):
        own = (Literal(target.line, target.column, target.name),) if isinstance(target, Member) else target.subscripts
        path = own + path
        target = target.value
    return (target.name, path) if isinstance(target, Name) else ("", path)


def walk(*roots: Node) -> Iterator[Node]:
    """The nodes and everything below them in the order of the source, without the contents of definitions.

    Definitions themselves are included. Iterative, so that any depth works.
    """
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Definition):
            stack.extend(reversed(list(node.children())))
