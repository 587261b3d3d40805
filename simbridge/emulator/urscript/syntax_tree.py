"""Queries of a script's syntax tree, which the parser makes and the compiler reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from lark import Token, Tree

from simbridge.emulator.urscript.values import MAX_INTEGER

# A Tree of lark's: `data` is the name of a rule or alias in grammar.lark; `children` are nodes,
# tokens, and None for what is left out. lark has no types for them.
Node: TypeAlias = Any

# A longer integer than this, in characters, is read as a real number: Python limits how many digits
# it converts to an integer.
MAX_INTEGER_CHARACTERS = 19


class Definition(NamedTuple):
    """The parts of a `def`, `thread` or `sec`.

    Attributes:
        name: "" of the statements outside of all definitions.
        parameters: Nodes "parameter": a name, and its default or None.
        body: The statements.
    """

    name: str
    parameters: list[Node]
    body: list[Node]


def definition_of(node: Node) -> Definition:
    """Return the parts of a node "definition"."""
    _, name, parameters, body = node.children
    return Definition(str(name), parameters.children if parameters else [], body.children)


def all_definitions(program: Node) -> list[Node]:
    """Return every definition, nested ones too; of several with the same name, the last counts."""
    definitions: list[Node] = []
    # The program and the definitions whose bodies have not been looked at.
    waiting = [program]
    while waiting:
        children = [child for child in waiting.pop().children if isinstance(child, Tree)]
        inner_definitions = [node for node in walk(*children) if node.data == "definition"]
        definitions += inner_definitions
        waiting += inner_definitions
    return definitions


def main_program(program: Node) -> Node:
    """Return the definition that is run.

    It is made of the statements outside of definitions if there are any, else it is the last
    definition. One that needs arguments is not a program: the file is a library then, which does
    nothing by itself.
    """
    statements = [statement for statement in program.children if statement.data != "definition"]
    if not statements and program.children:
        last = program.children[-1]
        if not definition_of(last).parameters:
            return last

    keyword = Token("DEF", "def", line=1)
    return Tree("definition", [keyword, "", None, Tree("block", statements)])


def first_word(node: Node) -> Any:
    """Return the first token of a node, with its line and column."""
    while isinstance(node, Tree):
        node = next(child for child in node.children if child is not None)
    return node


def walk(*roots: Node) -> Iterator[Node]:
    """Yield nodes and everything below them in the order of the source.

    Definitions are yielded, but not what is in them. Iterative, so that any depth works.
    """
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        yield node
        if node.data != "definition":
            stack.extend(child for child in reversed(node.children) if isinstance(child, Tree))


def literal(node: Node) -> int | float | str | bool | None:
    """Return the value of a number, a string, True or False; None of another expression."""
    match node.data, node.children:
        case "integer", [token]:
            return _integer_literal(token)
        case "real", [token]:
            return float(token)
        case "string", [token]:
            return str(token)[1:-1]
        case "boolean", [token]:
            return token == "True"
        case "unary", ["-", operand]:
            value = literal(operand)
            # Not by isinstance: True is an int, and -True no literal.
            return -value if type(value) in (int, float) else None  # type: ignore[operator]
    return None


def _integer_literal(token: str) -> int | float:
    """Return the value of digits: an integer if it has 32 bits, else a real number."""
    if len(token) > MAX_INTEGER_CHARACTERS:
        return float(token)
    is_hexadecimal = token[:2] in ("0x", "0X")
    number = int(token, 0 if is_hexadecimal else 10)
    # One more than the largest integer is the operand of -2147483648.
    return number if abs(number) <= MAX_INTEGER + 1 else float(number)


def element_path(target: Node) -> tuple[str, list[Node]]:
    """Return the variable of `name`, `name[i]`, `name.member[i]` and so on, and the path in it.

    The path has an expression for each index, and a string for each member; it is empty for the
    variable itself. The variable is "" for other expressions.
    """
    # From the outermost index or member inwards; the first child of subscripts is their bracket.
    path: list[Node] = []
    while True:
        match target.data, target.children:
            case "index", [value, Tree(children=[_, *subscripts])]:
                target = value
                path = subscripts + path
            case "member", [value, name]:
                target = value
                path = [Tree("string", [Token("STRING", f'"{name}"')]), *path]
            case "name", [name]:
                return str(name), path
            case _:
                return "", path
