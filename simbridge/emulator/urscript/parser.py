"""Parses a script into its syntax tree: lark's, whose nodes are the rules of `grammar.lark`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.syntax_tree import Node, first_word
from simbridge.emulator.urscript.values import POSE_LENGTH

MAX_CHARACTERS = 1_000_000
# Programs are compiled to Python, which refuses more than 20 nested loops, 100 blocks or 200
# parentheses.
MAX_LOOPS = 16
MAX_BLOCKS = 40
MAX_EXPRESSION = 50
MAX_BRANCHES = 500
# The largest number of expected words that a message lists.
MAX_EXPECTED = 8

# Lines that the script ports take besides programs. In a file they may come before the first
# statement.
_TEXT_COMMAND = re.compile(
    r"(?:power (?:on|off)|(?:stop|pause|resume|play) program|close (?:safety )?popup"
    r"|confirm user safety parameters|set (?:real|sim)"
    r"|set (?:robotmode|unlock|speed|gravity|tcp|tool) .+)\s*"
)


def parse(source: str) -> Node:
    """Return the syntax tree of a script.

    Raises:
        ScriptSyntaxError: The script is longer than 1,000,000 characters, is not URScript, or is
            nested too deep.
    """
    if len(source) > MAX_CHARACTERS:
        reason = (
            f"the script has {len(source)} characters; at most {MAX_CHARACTERS} are accepted; "
            "split it"
        )
        raise ScriptSyntaxError(reason, line=1, column=1)

    try:
        program = _parser().parse(_blank_text_commands(source))
    except UnexpectedCharacters as error:
        reason = f"{source[error.pos_in_stream or 0]!r} is not valid URScript here"
        raise ScriptSyntaxError(reason, line=error.line, column=error.column) from None
    except UnexpectedToken as error:
        raise _explain(error) from None

    _check_nesting(program)
    return program


def _blank_text_commands(source: str) -> str:
    """Return the source with the text commands before its first statement blanked out.

    Spaces take their place, so that lines and columns stay the same.
    """
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
    """Return lark's parser of the grammar; it is made once per process."""
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="program",
        parser="lalr",
        lexer="basic",
        postlex=_SoftKeywords(),
        maybe_placeholders=True,
    )


# Keywords that are names too where they cannot be meant as keywords.
_SOFT_KEYWORDS = {
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
# Terminals after which only a value or a name follows.
_BEFORE_VALUE = {
    "AND",
    "COMMA",
    "COMPARE",
    "DOT",
    "ELIF",
    "EQUAL",
    "GLOBAL",
    "IF",
    "LOCAL",
    "LPAR",
    "MINUS",
    "MOD",
    "NOT",
    "OPEN",
    "OR",
    "OVER",
    "PLUS",
    "TIMES",
    "WHILE",
    "XOR",
}


class _SoftKeywords:
    """A step between lexer and parser that decides what a keyword is, by its neighbours.

    It makes names of the keywords that stand where only a name can: `local sec = 2`, `x = sec + 1`,
    `t.sec`. A `return` whose next line begins with a name returns nothing: nothing else tells where
    its statement ends.
    """

    # lark asks each such step for the terminals that it needs besides the grammar's.
    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens of a script, some with another type."""
        type_before = ""
        token = next(stream, None)
        while token is not None:
            following = next(stream, None)
            retyped = self._retype(token, type_before, following)
            type_before = retyped.type
            yield retyped
            token = following

    def _retype(self, token: Token, type_before: str, following: Token | None) -> Token:
        """Return the token with the type that its neighbours give it."""
        type_after = "" if following is None else following.type
        line_after = None if following is None else following.line

        starts_thread = token.type == "RUN" and type_after == "NAME"
        is_value = type_before in _BEFORE_VALUE and not starts_thread
        if token.type in _SOFT_KEYWORDS and (is_value or type_after == "EQUAL"):
            return Token.new_borrow_pos("NAME", str(token), token)

        if token.type == "RETURN" and type_after == "NAME" and line_after != token.line:
            return Token.new_borrow_pos("RETURN_ALONE", str(token), token)
        return token


# Refusals

# Names of terminals in messages; others are named by their words.
_TERMINALS = {
    "NAME": "a name",
    "FLOAT": "a number",
    "INTEGER": "a number",
    "STRING": "a string",
    "COMPARE": "a comparison",
    "LPAR": "'('",
    "RPAR": "')'",
    "RSQB": "']'",
    "OPEN": "'['",
    "COLON": "':'",
    "EQUAL": "'='",
    "COMMA": "','",
    "DOT": "'.'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "TIMES": "'*'",
    "OVER": "'/'",
    "MOD": "'%'",
    "$END": "the end of the script",
    "TRUE": "'True'",
    "FALSE": "'False'",
}
# Names of groups of terminals, where any of a group may stand; the largest group first.
_GROUPS = {
    "a statement": {"NAME", "IF", "WHILE", "DEF", "THREAD", "RETURN", "LOCAL", "GLOBAL"},
    "a value": {"NAME", "INTEGER", "FLOAT", "STRING", "TRUE", "FALSE", "LPAR", "OPEN", "RUN"},
    "an operator": {"PLUS", "MINUS", "TIMES", "OVER", "MOD", "COMPARE", "AND", "OR", "XOR"},
}
_STATEMENTS = {*_GROUPS["a statement"], *_SOFT_KEYWORDS, "RETURN_ALONE"}


def _explain(error: UnexpectedToken) -> ScriptSyntaxError:
    """Return the refusal of a token that cannot stand where it does, with what could."""
    expected = set(error.accepts or error.expected)

    # One name for all terminals of a group, instead of the name of each.
    group_names: set[str] = set()
    for name, group in _GROUPS.items():
        if group <= expected:
            group_names.add(name)
            # Words that are names elsewhere begin statements, too, but need not be expected.
            expected -= _STATEMENTS if name == "a statement" else group
    if "a value" in group_names:
        # A sign, or `not`, begins a value as well.
        expected -= {"PLUS", "MINUS", "NOT"}

    terminal_names = {_TERMINALS.get(name, f"'{name.lower()}'") for name in expected}
    names = [*sorted(group_names), *sorted(terminal_names)]
    hint = f"; expected {', '.join(names)}" if len(names) <= MAX_EXPECTED else ""

    token = error.token
    fault = "the script ends here" if token.type == "$END" else f"'{token}' cannot stand here"
    return ScriptSyntaxError(f"{fault}{hint}", line=token.line or 1, column=token.column or 1)


# Checks after parsing

# Nodes that only hold others together, and nest nothing.
_CONTAINERS = ("program", "block", "parameters", "arguments", "subscript", "keyed")


class Depth(NamedTuple):
    """Nesting depth of a node.

    Attributes:
        blocks: Definitions, loops and ifs around it.
        loops: Loops around it in its definition.
        expressions: Expressions around it in its statement, itself included.
    """

    blocks: int
    loops: int
    expressions: int


def _check_nesting(program: Node) -> None:
    """Refuse what is nested too deep for Python, and what the grammar cannot."""
    stack = [(program, Depth(0, 0, 0))]
    while stack:
        node, outer_depth = stack.pop()
        _check_node(node, outer_depth.loops)
        depth = _depth_in(node, outer_depth)
        _check_depth(node, depth)
        stack.extend((child, depth) for child in node.children if isinstance(child, Tree))


def _check_node(node: Node, loops: int) -> None:
    """Refuse what the grammar allows, but URScript does not.

    Args:
        node: A node of any kind.
        loops: Number of loops around it.
    """
    match node.data, node.children:
        case "definition", [_, name, parameters, _]:
            _check_parameters(name, parameters.children if parameters else [])

        case "if_statement", children:
            # The children are the word `if`, a condition and a block for each branch, and `else`.
            if len(children) > 2 * MAX_BRANCHES + 2:
                excess = children[2 * MAX_BRANCHES + 1]
                raise _refusal(excess, f"an if has at most {MAX_BRANCHES} branches")

        case "keyed", ["break" | "continue" as word] if loops == 0:
            raise _refusal(node, f"'{word}' is outside of a loop")

        case "arguments", arguments:
            _check_arguments(arguments)

        case "index", [Tree(data="name", children=["p"]), Tree(children=[_, *numbers])]:
            # `p` may be a variable's name too: only six numbers make a pose.
            if 2 < len(numbers) != POSE_LENGTH:
                reason = f"a pose has {POSE_LENGTH} numbers, this one {len(numbers)}"
                raise _refusal(node, reason)


def _depth_in(node: Node, outer: Depth) -> Depth:
    """Return the depth that a node adds to the one around it."""
    match node.data:
        case "definition":
            return Depth(outer.blocks + 1, loops=0, expressions=0)
        case "while_loop":
            return Depth(outer.blocks + 1, outer.loops + 1, expressions=0)
        case "if_statement":
            return Depth(outer.blocks + 1, outer.loops, expressions=0)
    if node.data in _CONTAINERS:
        return outer
    return Depth(outer.blocks, outer.loops, outer.expressions + 1)


def _check_depth(node: Node, depth: Depth) -> None:
    """Refuse a node that is nested too deep."""
    if depth.blocks > MAX_BLOCKS:
        raise _refusal(node, f"blocks are nested more than {MAX_BLOCKS} deep")
    if depth.loops > MAX_LOOPS:
        raise _refusal(node, f"loops are nested more than {MAX_LOOPS} deep")
    if depth.expressions > MAX_EXPRESSION:
        raise _refusal(node, f"an expression is nested more than {MAX_EXPRESSION} deep")


def _check_parameters(function: Token, parameters: list[Node]) -> None:
    """Refuse two parameters of the same name, and one without a default after one with it."""
    names: set[Token] = set()
    has_default = False
    for parameter in parameters:
        name, default = parameter.children
        if name in names:
            raise _refusal(parameter, f"{function} has two parameters '{name}'")
        if has_default and default is None:
            raise _refusal(parameter, f"'{name}' needs a default: a parameter before it has one")
        names.add(name)
        has_default = default is not None


def _check_arguments(arguments: list[Node | None]) -> None:
    """Refuse two arguments of the same name, and one without a name after one with it."""
    names: set[Token] = set()
    for argument in arguments:
        if argument is not None and argument.data == "keyword":
            name = argument.children[0]
            if name in names:
                raise _refusal(argument, f"'{name}' is given twice")
            names.add(name)
        elif argument is not None and names:
            raise _refusal(argument, "an argument without a name follows one with a name")


def _refusal(node: Node, reason: str) -> ScriptSyntaxError:
    """Return the error of a node."""
    word = first_word(node)
    return ScriptSyntaxError(reason, line=word.line, column=word.column)
