"""The parser accepts URScript, and refuses other text with its position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.parser import (
    MAX_BLOCKS,
    MAX_CHARACTERS,
    MAX_EXPRESSION,
    MAX_LOOPS,
    parse,
)
from simbridge.emulator.urscript.syntax_tree import Node, element_path, first_word, literal
from simbridge.errors import SimbridgeError
from tests.properties import few_examples


def refusal(source: str) -> ScriptSyntaxError:
    with pytest.raises(ScriptSyntaxError) as caught:
        parse(source)
    return caught.value


def only(source: str) -> Node:
    (statement,) = parse(source).children
    return statement


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("x = ", 1, 3),
        ("x = 1\ny = = 2", 2, 5),
        ("def f():\n  x = [1, 2\nend", 3, 1),
        ("while True\n  sync()\nend", 2, 3),
        ("if a:\n  b = 1\nelse\nend", 4, 1),
        ("x = 1 & 2", 1, 7),
        ("def f():\n  x = 1\n", 2, 7),
        ('textmsg("no end)', 1, 9),
        ("x = p[1, 2, 3]", 1, 5),
        ("def f(a, a):\nend", 1, 10),
        ("def f(a=1, b):\nend", 1, 12),
        ("movej(q, a=1, a=2)", 1, 15),
        ("movej(a=1, q)", 1, 12),
        ("x = 1\nbreak", 2, 1),
        ("while True:\n  def f():\n    continue\n  end\nend", 3, 5),
        ("end", 1, 1),
        ("3 = x", 1, 1),
    ],
)
def test_other_text_is_refused_with_position(source: str, line: int, column: int) -> None:
    error = refusal(source)

    assert (error.line, error.column) == (line, column)
    assert f"line {line}, column {column}" in str(error)
    assert error.reason in str(error)


def test_a_syntax_error_is_a_value_error() -> None:
    error = refusal("x = ")

    assert isinstance(error, SimbridgeError)
    assert isinstance(error, ValueError)


def test_syntax_error_lists_what_was_expected() -> None:
    assert refusal("if a:\n b = 1\nelse\nend").reason == "'end' cannot stand here; expected ':'"
    assert refusal("def (a): end").reason == "'(' cannot stand here; expected a name"
    assert (
        refusal("x = (1 2)").reason == "'2' cannot stand here; expected an operator, ')', '.', '['"
    )
    assert (
        refusal("def f():\n x = 1\n y").reason
        == "the script ends here; expected '(', '.', '=', '['"
    )
    assert (
        refusal("def f():\n if a:\n end").reason
        == "the script ends here; expected a statement, 'end'"
    )


def test_an_empty_script_is_an_empty_program() -> None:
    assert parse("").children == []
    assert parse("  # nothing\n\n").children == []


def test_a_newline_is_whitespace() -> None:
    program = parse("global x = # first\n0    global y = 2\n")
    lines = [
        (
            node.data,
            scope,
            *element_path(place),
            literal(value),
            first_word(node).line,
            first_word(node).column,
        )
        for node in program.children
        for scope, place, value in [node.children]
    ]

    assert lines == [
        ("assignment", "global", "x", [], 0, 1, 1),
        ("assignment", "global", "y", [], 2, 2, 6),
    ]
    assert [first_word(node.children[2]).line for node in program.children] == [2, 2]
    assert [first_word(node.children[2]).column for node in program.children] == [1, 17]


def test_comments_program_labels_and_semicolons_are_ignored() -> None:
    assert parse('$ 1 "Robot Program"\nx = 1; y = 2 # z = 3\n') == parse("\nx = 1  y = 2")


def test_string_may_contain_comment_signs() -> None:
    call = only('textmsg("# $")')

    assert call.data == "call"

    (argument,) = call.children[1].children

    assert (literal(argument), first_word(argument).line, first_word(argument).column) == (
        "# $",
        1,
        9,
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("0x1F", 31),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("2.5E+2", 250.0),
        ("-7", -7),
        ("-2147483648", -(2**31)),
        ("99999999999", 99999999999.0),
        ("True", True),
        ("False", False),
        ('"a b"', "a b"),
        ('""', ""),
    ],
)
def test_literals_have_the_value_they_show(text: str, value: object) -> None:
    statement = only(f"x = {text}")

    assert statement.data == "assignment"

    found = literal(statement.children[2])

    assert found == value
    assert type(found) is type(value)


def test_pose_has_six_numbers() -> None:
    for text in ("p[1, 2, 3, 4, 5, 6]", "p[0]", "p[0, 1]", "q[1, 2, 3, 4, 5, 6]", "q[1, 2, 3]"):
        assert only(f"x = {text}").children[2].data == "index"

    assert "a pose has 6 numbers, this one 5" in refusal("x = p[1, 2, 3, 4, 5]").reason


def test_a_script_of_a_million_is_refused() -> None:
    """A script has at most a million characters."""
    assert "1000001 characters" in refusal("#" * (MAX_CHARACTERS + 1)).reason
    assert parse("#" * MAX_CHARACTERS).children == []


@pytest.mark.slow
def test_the_nesting_of_blocks_is_limited() -> None:
    def nested(depth: int) -> str:
        return "if True:\n" * depth + "x = 1\n" + "end\n" * depth

    parse(nested(MAX_BLOCKS))

    assert refusal(nested(MAX_BLOCKS + 1)).line == MAX_BLOCKS + 1
    assert "blocks" in refusal(nested(2_000)).reason


def test_the_nesting_of_loops_is_limited() -> None:
    def nested(depth: int) -> str:
        return "while True:\n" * depth + "sync()\n" + "end\n" * depth

    parse(nested(MAX_LOOPS))

    assert "loops" in refusal(nested(MAX_LOOPS + 1)).reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[" * 3000 + "]" * 3000, "1" + "+1" * 3000, "-" * 3000 + "x", "f(" * 3000 + ")" * 3000]
)
def test_the_nesting_of_expressions_is_limited(text: str) -> None:
    assert f"more than {MAX_EXPRESSION} deep" in refusal(f"x = {text}").reason


@pytest.mark.slow
def test_the_nesting_of_plain_parentheses_is_not_limited() -> None:
    assert only("x = " + "(" * 9999 + "1" + ")" * 9999).data == "assignment"


def test_a_chain_of_conditions_may_be_long() -> None:
    assert only("x = a == 1" + " or a == 2" * 500).data == "assignment"


def test_the_branches_of_an_if_are_limited() -> None:
    assert "branches" in refusal("if a == 0:\n" + "elif a == 1:\n" * 501 + "end").reason


@given(st.text())
@few_examples(15)
def test_any_text_is_a_program_or_a_syntax_error(text: str) -> None:
    try:
        parse(text)
    except ScriptSyntaxError as error:
        assert error.line >= 1
        assert error.column >= 1


_SIGNS = [
    ":",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "==",
    "+",
    "-",
    "*",
    "/",
    "%",
    ";",
    "x",
    "f",
    "p",
    "1",
    "2.5",
    '"s"',
    "True",
]
_KEYWORDS = [
    "def",
    "thread",
    "sec",
    "end",
    "if",
    "elif",
    "else",
    "while",
    "and",
    "or",
    "xor",
    "not",
    "run",
    "kill",
    "join",
    "return",
    "break",
    "continue",
    "halt",
    "global",
    "local",
    "enter_critical",
    "exit_critical",
    "pass",
]
_WORDS = st.sampled_from(_SIGNS + _KEYWORDS)


@few_examples(40, soak=2000)
@given(st.lists(_WORDS, max_size=40))
def test_any_words_compile_or_are_refused(words: list[str]) -> None:
    try:
        parse(" ".join(words))
    except ScriptSyntaxError as error:
        assert error.line == 1
        assert error.column >= 1


def test_text_commands_keep_the_lines() -> None:
    source = (
        '# prepare\npower on\nset robotmode run\n\nstop program\ndef prog():\n  x = "power on"\n'
        "  y = = 2\nend"
    )
    error = refusal(source)

    assert (error.line, error.column) == (8, 7)
    assert only(source.replace("= =", "=")).data == "definition"


@pytest.mark.parametrize("text", ["power", "stop everything", "def f():\nend\npower on", "set"])
def test_no_other_words_are_skipped(text: str) -> None:
    refusal(text)
