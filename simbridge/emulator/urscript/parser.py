"""Parses a script into its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript import syntax
from simbridge.emulator.urscript.values import MAX_INTEGER, POSE_LENGTH

MAX_CHARACTERS = 1_000_000
# Programs are compiled to Python, which refuses more than 20 nested loops, 100 blocks or 200 parentheses.
MAX_LOOPS, MAX_BLOCKS, MAX_EXPRESSION, MAX_BRANCHES = 16, 40, 50, 500
# What the script ports take besides programs, one a line. In a file they may come before the first statement.
_TEXT_COMMAND = re.compile(
    r"(?:power (?:on|off)|(?:stop|pause|resume|play) program|close (?:safety )?popup|confirm user safety parameters"
    r"|set (?:real|sim)|set (?:robotmode|unlock|speed|gravity|tcp|tool) .+)\s*"
)


def parse(source: str) -> syntax.Program:
    """The syntax tree of a script.

    Raises:
        ScriptSyntaxError: The script is longer than 1,000,000 characters, is not URScript, or is nested too deep.
    """
    if len(source) > MAX_CHARACTERS:
        reason = f"the script has {len(source)} characters, at most {MAX_CHARACTERS} are accepted; split it"
        raise ScriptSyntaxError(reason, line=1, column=1)
    try:
        program: Any = _parser().parse(_without_text_commands(source))
    except UnexpectedCharacters as error:
        reason = f"{source[error.pos_in_stream or 0]!r} has no meaning in URScript here"
        raise ScriptSyntaxError(reason, line=error.line, column=error.column) from None
    except UnexpectedToken as error:
        raise _unexpected(error) from None
    except VisitError as error:
        raise error.orig_exc from None
    assert isinstance(program, syntax.Program)
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
        grammar, start="program", parser="lalr", lexer="basic", postlex=_SoftKeywords(), transformer=_Build(),
        maybe_placeholders=True,
    )  # fmt: skip


# Keywords that are names too where they cannot be meant as keywords: after these only a value or a name follows.
_SOFT = {"BREAK", "CONTINUE", "ENTER_CRITICAL", "EXIT_CRITICAL", "HALT", "JOIN", "KILL", "PASS", "RUN", "SEC", "THREAD"}
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
            elif token.type == "RETURN" and following and after == "NAME" and following.line != token.line:
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
    wanted = [*sorted(names), *sorted({_TERMINALS.get(name, f"'{name.lower()}'") for name in allowed})]
    hint = f"; expected {', '.join(wanted)}" if len(wanted) <= 8 else ""
    token = error.token
    found = "the script ends here" if token.type == "$END" else f"'{token}' cannot stand here"
    return ScriptSyntaxError(f"{found}{hint}", line=token.line or 1, column=token.column or 1)


@v_args(inline=True)
class _Build(Transformer):  # type: ignore[type-arg]
    """Makes the nodes bottom-up as the parser recognises rules: no recursion, however deep the script is nested."""

    def program(self, *statements: Any) -> syntax.Program:
        return syntax.Program(1, 1, statements)

    def block(self, *statements: Any) -> tuple[Any, ...]:
        return statements

    parameters = block

    def definition(self, kind: Any, name: Any, parameters: Any, body: Any) -> syntax.Definition:
        names: set[str] = set()
        optional = False
        for parameter in parameters or ():
            if parameter.name in names:
                raise _error(parameter, f"{name} has two parameters '{parameter.name}'")
            if optional and parameter.default is None:
                raise _error(parameter, f"'{parameter.name}' needs a default: a parameter before it has one")
            names.add(parameter.name)
            optional = parameter.default is not None
        return syntax.Definition(kind.line, kind.column, str(kind), str(name), parameters or (), body)

    def parameter(self, name: Any, default: Any) -> syntax.Parameter:
        return syntax.Parameter(name.line, name.column, str(name), default)

    def if_statement(self, word: Any, condition: Any, body: Any, *rest: Any) -> syntax.If:
        branches = [syntax.Branch(word.line, word.column, condition, body)]
        branches += [item for item in rest if isinstance(item, syntax.Branch)]
        if len(branches) > MAX_BRANCHES:
            raise _error(branches[MAX_BRANCHES], f"an if has at most {MAX_BRANCHES} branches")
        otherwise = rest[-1] if rest and isinstance(rest[-1], tuple) else ()
        return syntax.If(word.line, word.column, tuple(branches), otherwise)

    def elif_branch(self, condition: Any, body: Any) -> syntax.Branch:
        return syntax.Branch(condition.line, condition.column, condition, body)

    def while_loop(self, word: Any, condition: Any, body: Any) -> syntax.While:
        return syntax.While(word.line, word.column, condition, body)

    def assignment(self, scope: Any, place: Any, value: Any) -> syntax.Assignment:
        first = scope or place
        return syntax.Assignment(first.line, first.column, *syntax.place_of(place), value, str(scope or ""))

    def subscript(self, bracket: Any, *indices: Any) -> tuple[Any, ...]:
        return indices

    def keyed(self, word: Any, value: Any = None) -> syntax.Keyed:
        return syntax.Keyed(word.line, word.column, str(word), value)

    def operation(self, *children: Any) -> syntax.Operation:
        first = children[0]
        return syntax.Operation(first.line, first.column, str(children[1]), children[::2])

    def unary(self, operator: Any, operand: Any) -> syntax.Expression:
        if operator == "-" and isinstance(operand, syntax.Literal) and type(operand.value) in (int, float):
            return syntax.Literal(operator.line, operator.column, -operand.value)  # type: ignore[operator]
        return syntax.Operation(operator.line, operator.column, str(operator), (operand,))

    def index(self, value: Any, subscripts: Any) -> syntax.Expression:
        # `p` may be a variable's name too: only six numbers make a pose.
        if isinstance(value, syntax.Name) and value.name == "p" and len(subscripts) > 2:
            if len(subscripts) != POSE_LENGTH:
                raise _error(value, f"a pose has {POSE_LENGTH} numbers, this one {len(subscripts)}")
            return syntax.ListOf(value.line, value.column, subscripts, pose=True)
        return syntax.Index(value.line, value.column, value, subscripts)

    def name(self, token: Any) -> syntax.Name:
        return syntax.Name(token.line, token.column, str(token))

    def integer(self, token: Any) -> syntax.Literal:
        # An integer has 32 bits, and Python limits the digits that it converts: a longer number is a real one.
        number = int(token, 0 if token[:2] in ("0x", "0X") else 10) if len(token) < 20 else float(token)
        return syntax.Literal(token.line, token.column, number if abs(number) <= MAX_INTEGER + 1 else float(number))

    def real(self, token: Any) -> syntax.Literal:
        return syntax.Literal(token.line, token.column, float(token))

    def string(self, token: Any) -> syntax.Literal:
        return syntax.Literal(token.line, token.column, str(token)[1:-1])

    def boolean(self, token: Any) -> syntax.Literal:
        return syntax.Literal(token.line, token.column, token == "True")

    def list_of(self, bracket: Any, *items: Any) -> syntax.ListOf:
        return syntax.ListOf(bracket.line, bracket.column, tuple(item for item in items if item is not None))

    def member(self, value: Any, name: Any) -> syntax.Member:
        return syntax.Member(value.line, value.column, value, str(name))

    def call(self, name: Any, arguments: Any) -> syntax.Call:
        return syntax.Call(name.line, name.column, str(name), *arguments)

    def method(self, value: Any, name: Any, arguments: Any) -> syntax.Method:
        return syntax.Method(value.line, value.column, value, str(name), *arguments)

    def arguments(self, *arguments: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        positional: list[Any] = []
        keywords: list[Any] = []
        for argument in arguments:
            if isinstance(argument, syntax.Keyword):
                if any(argument.name == other.name for other in keywords):
                    raise _error(argument, f"'{argument.name}' is given twice")
                keywords.append(argument)
            elif argument is not None:
                if keywords:
                    raise _error(argument, "an argument without a name follows one with a name")
                positional.append(argument)
        return tuple(positional), tuple(keywords)

    def start(self, word: Any, call: Any) -> syntax.Start:
        return syntax.Start(word.line, word.column, call)

    def keyword(self, name: Any, value: Any) -> syntax.Keyword:
        return syntax.Keyword(name.line, name.column, str(name), value)


def _error(node: syntax.Node, reason: str) -> ScriptSyntaxError:
    return ScriptSyntaxError(reason, line=node.line, column=node.column)


def _check_nesting(program: syntax.Program) -> None:
    """Refuse what is nested too deep for Python, and break or continue outside of a loop."""
    stack: list[tuple[syntax.Node, int, int, int]] = [(program, 0, 0, 0)]
    while stack:
        node, blocks, loops, depth = stack.pop()
        match node:
            case syntax.Definition():
                blocks, loops, depth = blocks + 1, 0, 0
            case syntax.While():
                blocks, loops, depth = blocks + 1, loops + 1, 0
            case syntax.If():
                blocks, depth = blocks + 1, 0
            case syntax.Keyed(word="break" | "continue" as word) if loops == 0:
                raise _error(node, f"'{word}' is outside of a loop")
            case syntax.Keyed() | syntax.Branch():
                pass
            case _:
                depth += 1
        for what, found, most in (
            ("blocks are", blocks, MAX_BLOCKS),
            ("loops are", loops, MAX_LOOPS),
            ("an expression is", depth, MAX_EXPRESSION),
        ):
            if found > most:
                raise _error(node, f"{what} nested more than {most} deep")
        stack.extend((child, blocks, loops, depth) for child in node.children())
