"""Parses a script into its syntax tree: lark's, whose nodes are the rules of `grammar.lark`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.values import MAX_INTEGER, POSE_LENGTH

# A Tree of lark's: `data` is the rule's name, `children` are nodes, tokens, and None for what is left out.
Node: TypeAlias = Any
MAX_CHARACTERS = 1_000_000
# Programs are compiled to Python, which refuses more than 20 nested loops, 100 blocks or 200 parentheses.
MAX_LOOPS, MAX_BLOCKS, MAX_EXPRESSION, MAX_BRANCHES = 16, 40, 50, 500
# What the script ports take besides programs, one a line. In a file they may come before the first statement.
_TEXT_COMMAND = re.compile(
    r"(?:power (?:on|off)|(?:stop|pause|resume|play) program|close (?:safety )?popup|confirm user safety parameters"
    r"|set (?:real|sim)|set (?:robotmode|unlock|speed|gravity|tcp|tool) .+)\s*"
)


def parse(source: str) -> Node:
    """The syntax tree of a script.

    Raises:
        ScriptSyntaxError: The script is longer than 1,000,000 characters, is not URScript, or is nested too deep.
    """
    if len(source) > MAX_CHARACTERS:
        reason = f"the script has {len(source)} characters, at most {MAX_CHARACTERS} are accepted; split it"
        raise ScriptSyntaxError(reason, line=1, column=1)
    try:
        program = _parser().parse(_without_text_commands(source))
    except UnexpectedCharacters as error:
        reason = f"{source[error.pos_in_stream or 0]!r} has no meaning in URScript here"
        raise ScriptSyntaxError(reason, line=error.line, column=error.column) from None
    except UnexpectedToken as error:
        raise _unexpected(error) from None
    _check_nesting(program)
    return program


def _without_text_commands(source: str) -> str:
    """The source with spaces in the place of the text commands before its first statement."""
    lines = source.split("\n")
    for i, line in enumerate(lines):
        text = line.strip()
        if _TEXT_COMMAND.fullmatch(text):
            lines[i] = " " * len(line)
        elif text and text[0] not in "#$":
            break
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="program",
        parser="lalr",
        lexer="basic",
        postlex=_SoftKeywords(),
        maybe_placeholders=True,
    )


# Keywords that are names too where they cannot be meant as keywords: after these only a value or a name follows.
_SOFT = {
    "BREAK",
    "CONTINUE",
    "ENTER_CRITICAL",
    "EXIT_CRITICAL",
    "HALT",
    "JOIN",
    "KILL",
    "PASS",
    "RUN",
    "SEC",
    "THREAD",
}
_BEFORE_VALUE = {
    "AND", "COMMA", "COMPARE", "DOT", "ELIF", "EQUAL", "GLOBAL", "IF", "LOCAL", "LPAR", "MINUS", "MOD", "NOT", "OPEN",
    "OR", "OVER", "PLUS", "TIMES", "WHILE", "XOR",
}  # fmt: skip


class _SoftKeywords:
    """Makes names of the keywords that stand where only a name can: `local sec = 2`, `x = sec + 1`, `t.sec`."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        before = ""
        token = next(stream, None)
        while token is not None:
            following = next(stream, None)
            after = "" if following is None else following.type
            starts_thread = token.type == "RUN" and after == "NAME"
            is_value = before in _BEFORE_VALUE and not starts_thread
            if token.type in _SOFT and (is_value or after == "EQUAL"):
                token = Token.new_borrow_pos("NAME", str(token), token)
            elif (
                token.type == "RETURN"
                and following
                and after == "NAME"
                and following.line != token.line
            ):
                token = Token.new_borrow_pos("RETURN_ALONE", str(token), token)
            before = token.type
            yield token
            token = following


_TERMINALS = {
    "NAME": "a name", "FLOAT": "a number", "INTEGER": "a number", "STRING": "a string", "COMPARE": "a comparison",
    "LPAR": "'('", "RPAR": "')'", "RSQB": "']'", "OPEN": "'['", "COLON": "':'", "EQUAL": "'='", "COMMA": "','",
    "DOT": "'.'", "PLUS": "'+'", "MINUS": "'-'", "TIMES": "'*'", "OVER": "'/'", "MOD": "'%'",
    "$END": "the end of the script", "TRUE": "'True'", "FALSE": "'False'",
}  # fmt: skip
# What a group of terminals is called where all of it may stand; the largest first.
_GROUPS = {
    "a statement": {"NAME", "IF", "WHILE", "DEF", "THREAD", "RETURN", "LOCAL", "GLOBAL"},
    "a value": {"NAME", "INTEGER", "FLOAT", "STRING", "TRUE", "FALSE", "LPAR", "OPEN", "RUN"},
    "an operator": {"PLUS", "MINUS", "TIMES", "OVER", "MOD", "COMPARE", "AND", "OR", "XOR"},
}
_STATEMENTS = {*_GROUPS["a statement"], *_SOFT, "RETURN_ALONE"}


def _unexpected(error: UnexpectedToken) -> ScriptSyntaxError:
    allowed = set(error.accepts or error.expected)
    names: set[str] = set()
    for name, group in _GROUPS.items():
        if group <= allowed:
            names.add(name)
            allowed -= _STATEMENTS if name == "a statement" else group
    if "a value" in names:
        allowed -= {"PLUS", "MINUS", "NOT"}
    wanted = [
        *sorted(names),
        *sorted({_TERMINALS.get(name, f"'{name.lower()}'") for name in allowed}),
    ]
    hint = f"; expected {', '.join(wanted)}" if len(wanted) <= 8 else ""
    token = error.token
    found = "the script ends here" if token.type == "$END" else f"'{token}' cannot stand here"
    return ScriptSyntaxError(f"{found}{hint}", line=token.line or 1, column=token.column or 1)


# A node with one of these names is part of the one above it.
_PARTS = ("program", "block", "parameters", "arguments", "subscript")


def _check_nesting(program: Node) -> None:
    """Refuse what is nested too deep for Python, and what the grammar cannot."""
    stack: list[tuple[Node, int, int, int]] = [(program, 0, 0, 0)]
    while stack:
        node, blocks, loops, depth = stack.pop()
        match node.data, node.children:
            case "definition", [_, name, parameters, _]:
                _check_parameters(name, parameters.children if parameters else [])
                blocks, loops, depth = blocks + 1, 0, 0
            case "while_loop", _:
                blocks, loops, depth = blocks + 1, loops + 1, 0
            case "if_statement", children:
                blocks, depth = blocks + 1, 0
                if len(children) > 2 * MAX_BRANCHES + 2:
                    raise _error(
                        children[2 * MAX_BRANCHES + 1], f"an if has at most {MAX_BRANCHES} branches"
                    )
            case "keyed", ["break" | "continue" as word] if loops == 0:
                raise _error(node, f"'{word}' is outside of a loop")
            case "arguments", arguments:
                _check_arguments(arguments)
            case "index", [Tree(data="name", children=["p"]), Tree(children=[_, *numbers])]:
                # `p` may be a variable's name too: only six numbers make a pose.
                if 2 < len(numbers) != POSE_LENGTH:
                    raise _error(node, f"a pose has {POSE_LENGTH} numbers, this one {len(numbers)}")
        if node.data not in (*_PARTS, "definition", "while_loop", "if_statement", "keyed"):
            depth += 1
        for what, found, most in (
            ("blocks are", blocks, MAX_BLOCKS),
            ("loops are", loops, MAX_LOOPS),
            ("an expression is", depth, MAX_EXPRESSION),
        ):
            if found > most:
                raise _error(node, f"{what} nested more than {most} deep")
        stack.extend(
            (child, blocks, loops, depth) for child in node.children if isinstance(child, Tree)
        )


def _check_parameters(function: Token, parameters: list[Node]) -> None:
    names: set[Token] = set()
    optional = False
    for parameter in parameters:
        name, default = parameter.children
        if name in names:
            raise _error(parameter, f"{function} has two parameters '{name}'")
        if optional and default is None:
            raise _error(parameter, f"'{name}' needs a default: a parameter before it has one")
        names.add(name)
        optional = default is not None


def _check_arguments(arguments: list[Node | None]) -> None:
    names: set[Token] = set()
    for argument in arguments:
        if argument is not None and argument.data == "keyword":
            name = argument.children[0]
            if name in names:
                raise _error(argument, f"'{name}' is given twice")
            names.add(name)
        elif argument is not None and names:
            raise _error(argument, "an argument without a name follows one with a name")


def _error(node: Node, reason: str) -> ScriptSyntaxError:
    return ScriptSyntaxError(reason, line=first_word(node).line, column=first_word(node).column)


def first_word(node: Node) -> Any:
    """The first token of a node, with its line and column."""
    while isinstance(node, Tree):
        node = next(child for child in node.children if child is not None)
    return node


def walk(*roots: Node) -> Iterator[Node]:
    """The nodes and everything below them in the order of the source, without the contents of definitions.

    Definitions themselves are included. Iterative, so that any depth works.
    """
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        yield node
        if node.data != "definition":
            stack.extend(child for child in reversed(node.children) if isinstance(child, Tree))


def literal(node: Node) -> int | float | str | bool | None:
    """The value of a number, a string, True or False; None of another expression."""
    match node.data, node.children:
        case "integer", [token]:
            # An integer has 32 bits, and Python limits the digits that it converts: a longer number is a real one.
            number = (
                int(token, 0 if token[:2] in ("0x", "0X") else 10)
                if len(token) < 20
                else float(token)
            )
            return number if abs(number) <= MAX_INTEGER + 1 else float(number)
        case "real", [token]:
            return float(token)
        case "string", [token]:
            return str(token)[1:-1]
        case "boolean", [token]:
            return token == "True"
        case "unary", ["-", operand]:
            value = literal(operand)
            return -value if type(value) in (int, float) else None  # type: ignore[operator]
    return None


def place_of(target: Node) -> tuple[str, list[Node]]:
    """The variable of `name`, `name[i]`, `name.member[i]` and so on, and the path of what is meant in it, a member as a
    string; "" for other expressions."""
    path: list[Node] = []
    while True:
        match target.data, target.children:
            case "index", [value, Tree(children=[_, *subscripts])]:
                target, path = value, subscripts + path
            case "member", [value, name]:
                target, path = value, [Tree("string", [Token("STRING", f'"{name}"')]), *path]
            case "name", [name]:
                return str(name), path
            case _:
                return "", path


def parts(definition: Node) -> tuple[str, list[Node], list[Node]]:
    """The name, the parameters and the statements of a definition."""
    _, name, parameters, body = definition.children
    return str(name), parameters.children if parameters else [], body.children


def all_definitions(program: Node) -> list[Node]:
    """Every definition, nested ones too; of several with the same name, the last counts."""
    found: list[Node] = []
    waiting = [program]
    while waiting:
        children = [child for child in waiting.pop().children if isinstance(child, Tree)]
        inside = [node for node in walk(*children) if node.data == "definition"]
        found += inside
        waiting += inside
    return found


def main_program(program: Node) -> Node:
    """The statements outside of definitions if there are any, else the last definition. One that needs arguments is not
    a program: the file is a library then, which does nothing by itself."""
    statements = [statement for statement in program.children if statement.data != "definition"]
    if not statements and program.children and not parts(program.children[-1])[1]:
        return program.children[-1]
    return Tree("definition", [Token("DEF", "def", line=1), "", None, Tree("block", statements)])
