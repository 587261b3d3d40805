"""Each construct of the language does what the manual says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import Interpreter
from simbridge.emulator.urscript.values import Pose
from tests.properties import few_examples

Evaluate = Callable[[str], Any]


# Numbers and conditions


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("1 / 2", 0.5),
        ("4 / 2", 2.0),
        ("7 % 3", 1),
        ("-7 % 3", -1),
        ("7.5 % 2", 1.5),
        ("-2 * -3", 6),
        ("+5", 5),
        ("2147483647 + 1", -2147483648),
        ("65536 * 65536", 0),
        ("1 < 2", True),
        ("2 <= 2", True),
        ("1 > 2", False),
        ("2 >= 3", False),
        ("1 == 1.0", True),
        ("1 != 2", True),
        ('"a" == "a"', True),
        ("[1, 2] == [1, 2]", True),
        ("[1, 2] != [1, 3]", True),
        ("1 + 1 == 2 and not False", True),
        ("False or True and False", False),
        ("True xor True", False),
        ("True xor False xor True xor True", True),
        ("not 1 == 2", True),
    ],
)
def test_expressions_have_their_value(evaluate: Evaluate, expression: str, value: object) -> None:
    result = evaluate(expression)

    assert result == value
    assert type(result) is type(value)


def test_or_and_and_short_circuit(script: Any) -> None:
    program = script("x = True or missing()\ny = False and missing()\nsay(x, y)")

    assert program.run() == [(True, False)]


_NUMBERS = st.one_of(
    st.integers(-100, 100), st.floats(-100, 100, allow_nan=False).map(lambda x: round(x, 3))
)


@st.composite
def arithmetic(draw: st.DrawFn, depth: int = 4) -> str:
    if depth == 0 or draw(st.booleans()):
        return str(draw(_NUMBERS))
    left = draw(arithmetic(depth=depth - 1))
    right = draw(arithmetic(depth=depth - 1))
    return f"({left} {draw(st.sampled_from('+-*/'))} {right})"


@given(arithmetic())
@few_examples(15)
def test_arithmetic_agrees_with_pythons(expression: str) -> None:
    output: list[Any] = []
    faults: list[RuntimeFault] = []
    functions = {"say": lambda _thread, value: output.append(value)}
    Interpreter(
        compile_script(f"say({expression})", describe(functions)), functions, faults.append
    ).tick()
    try:
        expected = eval(expression)
    except ZeroDivisionError:
        assert faults[0].reason == "Division by zero."
        return
    if abs(expected) < 2**31:
        # Beyond it intermediate integers may have wrapped; these expressions stay below 1e8 * 100.
        assert output == [expected] or any(abs(eval(part)) >= 2**31 for part in _parts(expression))


def _parts(expression: str) -> list[str]:
    """Every parenthesis in an expression."""
    opened = []
    parts = []
    for i, character in enumerate(expression):
        if character == "(":
            opened.append(i)
        elif character == ")":
            parts.append(expression[opened.pop() : i + 1])
    return parts


# Lists, poses, matrices (UR's script manual, "Matrix and array expressions")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[]", ()),
        ("[1, 2.5, True]", (1, 2.5, True)),
        ("[1, 2, 3] * [10, 20, 30]", (10, 40, 90)),
        ("[10, 20, 30] / [1, 2, 3]", (10, 10, 10)),
        ("[1, 2, 3] + [10, 20, 30]", (11, 22, 33)),
        ("[10, 20, 30] - [1, 2, 3]", (9, 18, 27)),
        ("[10, 20, 30] % [3, 6, 7]", (1, 2, 2)),
        ("[1, 2, 3] * 5", (5, 10, 15)),
        ("5 * [[1, 2], [3, 4], [5, 6]]", ((5, 10), (15, 20), (25, 30))),
        ("[10, 20, 30] / 10", (1, 2, 3)),
        ("10 / [10, 20]", (1, 0.5)),
        (
            "[[1, 2], [3, 4], [5, 6]] * [[10, 20, 30], [40, 50, 60]]",
            ((90, 120, 150), (190, 260, 330), (290, 400, 510)),
        ),
        ("[[1, 2], [3, 4], [5, 6]] * [10, 20]", (50, 110, 170)),
        ("[[1, 2], [3, 4]] + [[1, 1], [1, 1]]", ((2, 3), (4, 5))),
        ("-[1, -2]", (-1, 2)),
        ("[[1, 2], [3, 4]][1, 0]", 3),
        ("[[1, 2], [3, 4]][1][0]", 3),
        ("[5, 6, 7][1 + 1]", 7),
        ("[5, 6, 7][4 / 2]", 7),
    ],
)
def test_list_arithmetic_follows_the_manual(
    evaluate: Evaluate, expression: str, value: object
) -> None:
    assert evaluate(expression) == value


def test_arithmetic_of_poses_is_by_element(evaluate: Evaluate) -> None:
    pose = evaluate("p[1, 2, 3, 0.1, 0.2, 0.3]")

    assert isinstance(pose, Pose)
    assert all(type(number) is float for number in pose)

    double = evaluate("p[1, 2, 3, 4, 5, 6] + p[1, 2, 3, 4, 5, 6]")

    assert isinstance(double, Pose)
    assert double == (2, 4, 6, 8, 10, 12)
    assert isinstance(evaluate("p[1, 2, 3, 4, 5, 6] * 2"), Pose)
    assert type(evaluate("p[1, 2, 3, 4, 5, 6] + [1, 2, 3, 4, 5, 6]")) is tuple


def test_lists_are_values(script: Any) -> None:
    program = script("""
        q = [1, 2]
        r = q
        q[0] = 9
        pose = p[0, 0, 0, 0, 0, 0]
        other = pose
        other[5] = 1
        say(q) say(r) say(pose[5], other[5])""")

    assert program.run() == [(9, 2), (1, 2), (0.0, 1.0)]
    assert not program.faults


def test_a_function_cannot_change_what_its_caller_passed(script: Any) -> None:
    program = script(
        "def f(p):\n p[0] = p[0] * 10\n return p\nend\nq = p[1,2,3,4,5,6]\nr = f(q)\n"
        "say(q[0], r[0])"
    )

    assert program.run() == [(1.0, 10.0)]
    assert isinstance(program.interpreter, Interpreter)


def test_an_element_of_a_matrix_can_be_assigned(script: Any) -> None:
    program = script("m = [[1,2],[3,4]]\nn = m\nm[1,0] = 20\nm[0][1] = 7\nsay(m)\nsay(n)")

    assert program.run() == [((1, 7), (20, 4)), ((1, 2), (3, 4))]


# Variables and functions


def test_pythons_keywords_and_built_in_names_are_ordinary_names(script: Any) -> None:
    program = script(
        "async = 1\ndir = 2\nsum = 3\ntype = 4\ntime = 5\np = 6\nlambda = 7\nNone = 8\n_t = 9\n"
        "_b = 10\n"
        "say(async + dir + sum + type + time + p + lambda + None + _t + _b)"
    )

    assert program.run() == [55]


def test_pythons_keywords_are_ordinary_names_of_parameters_and_functions(script: Any) -> None:
    program = script(
        "def lambda(async, class=2):\n return async - class\nend\nsay(lambda(5))\n"
        "say(lambda(class=1, async=3))"
    )

    assert program.run() == [3, 2]
    assert not program.faults


@pytest.mark.parametrize(
    "word",
    [
        "break",
        "continue",
        "enter_critical",
        "exit_critical",
        "halt",
        "join",
        "kill",
        "pass",
        "run",
        "sec",
        "thread",
    ],
)
def test_keywords_may_be_names_in_statements(script: Any, word: str) -> None:
    source = (
        f"local {word} = 2\n{word} = {word} + 1\nif {word} > 2:\n say({word})\nend\n"
        f"s = struct({word}=4)\nsay(s.{word})\ndef f({word}):\n say([{word}])\nend\nf({word}=5)"
    )

    assert script(source).run() == [3, 4, (5,)]


def test_a_function_assigns_a_global_undeclared(script: Any) -> None:
    program = script(
        "def prog():\n global n = 0\n def up():\n n = n + 1\n end\n up()\n up()\n say(n)\nend"
    )

    assert program.run() == [2]


def test_functions_see_variables_of_main_program(script: Any) -> None:
    program = script("def prog():\n n = 0\n def up():\n n = n + 1\n end\n up()\n say(n)\nend")

    assert program.run() == [1]


def test_global_in_a_function_makes_a_global(script: Any) -> None:
    program = script("def f():\n global g = 5\nend\nf()\nsay(g)")

    assert program.run() == [5]


def test_local_hides_a_global(script: Any) -> None:
    program = script(
        "global n = 1\ndef f():\n local n = 2\n n = n + 1\n return n\nend\nsay(f())\nsay(n)"
    )

    assert program.run() == [3, 1]


def test_parameters_hide_globals(script: Any) -> None:
    program = script("global n = 1\ndef f(n):\n n = n + 1\n return n\nend\nsay(f(5))\nsay(n)")

    assert program.run() == [6, 1]


def test_other_variables_belong_to_their_function(script: Any) -> None:
    program = script("def f():\n own = 1\nend\nf()\nsay(own)")
    program.run()

    assert "'own'" in program.fault.reason
    assert program.fault.line == 5


def test_arguments_have_positions_names_and_defaults(script: Any) -> None:
    program = script(
        "def f(a, b=3, c=[1, 2]):\n say(a, b, c)\nend\nf(1)\nf(1, 2)\nf(1, c=5)\nf(b=8, a=9)"
    )

    assert program.run() == [(1, 3, (1, 2)), (1, 2, (1, 2)), (1, 3, 5), (9, 8, (1, 2))]


def test_functions_may_be_empty_or_nested(script: Any) -> None:
    program = script(
        "def prog():\n def nothing():\n end\n say(later(1))\n nothing()\n def later(x):\n"
        " def inner(y):\n return y + 1\n end\n return inner(x)\n end\nend"
    )

    assert program.run() == [2]
    assert not program.faults


def test_function_may_have_the_programs_name(script: Any) -> None:
    program = script("def move():\n say(1)\n def move():\n say(2)\n end\n move()\nend")

    assert program.run() == [1, 2]
    assert not program.faults


def test_strings_are_joined_by_plus(script: Any) -> None:
    program = script('s = "http://127.0.0.1:" + to_str(61101) + "/RPC2"\nsay(s)\nsay("a" + 1)')

    assert program.run() == ["http://127.0.0.1:61101/RPC2"]
    assert "'+' cannot be applied to a string and" in program.fault.reason


def test_a_function_without_return_returns_nothing(script: Any) -> None:
    program = script(
        "def f():\n return\nend\ndef g():\nend\nx = f()\ny = g()\nsay(x == y)\nz = x + 1"
    )

    assert program.run() == [True]
    assert "nothing" in program.fault.reason


def test_functions_call_themselves(script: Any) -> None:
    program = script(
        "def fib(n):\n if n < 2:\n return n\n end\n return fib(n - 1) + fib(n - 2)\nend\n"
        "say(fib(10))"
    )

    assert program.run(20) == [55]


def test_built_in_functions_take_names_and_get_the_thread(script: Any) -> None:
    seen: list[Any] = []

    def movej(thread: Any, q: Any, a: float = 1.4, v: float = 1.05) -> None:
        seen.append((thread.name, q, a, v))

    script("def prog():\n movej([1, 2], v=3)\nend", movej=movej).run()

    assert seen == [("prog", (1, 2), 1.4, 3)]


def test_a_programs_functions_come_first(script: Any) -> None:
    assert script("def sin(x):\n return 99\nend\nsay(sin(0))").run() == [99]


def test_built_in_result_becomes_a_script_value(script: Any) -> None:
    import numpy as np

    program = script(
        "a = [0] + f()\nm = g()\nsay(a)\nsay(m[1, 0])\nsay(h())",
        f=lambda _t: np.array([1.5]),
        g=lambda _t: [[1, 2], [3, 4]],
        h=lambda _t: np.float64(2.5),
    )

    assert program.run() == [(1.5,), 3, 2.5]
    assert type(program.output[2]) is float


# Control flow


@pytest.mark.parametrize(("n", "word"), [(0, "zero"), (1, "one"), (2, "two"), (5, "many")])
def test_if_elif_else_takes_the_first_that_holds(script: Any, n: int, word: str) -> None:
    branches = (
        'if n == 0: say("zero") elif n == 1: say("one") elif n == 2: say("two") else: say("many") '
        "end"
    )

    assert script(f"n = {n} {branches}").run() == [word]


def test_an_if_may_do_nothing(script: Any) -> None:
    assert script("if False:\nelif True:\nelse:\nend\nif False:\n say(1)\nend\nsay(2)").run() == [2]


def test_while_break_and_continue(script: Any) -> None:
    program = script(
        "i = 0\nwhile True:\n i = i + 1\n if i == 2:\n continue\n elif i > 4:\n break\n end\n"
        " say(i)\nend\nsay(99)"
    )

    assert program.run() == [1, 3, 4, 99]


def test_break_leaves_only_the_inner_loop(script: Any) -> None:
    program = script("i = 0\nwhile i < 2:\n while True:\n break\n end\n i = i + 1\nend\nsay(i)")

    assert program.run() == [2]


def test_halt_ends_the_program_without_a_fault(script: Any) -> None:
    program = script("def f():\n halt\nend\nsay(1)\nf()\nsay(2)")

    assert program.run() == [1]
    assert not program.interpreter.running
    assert not program.faults


def test_return_ends_the_main_program(script: Any) -> None:
    program = script("def prog():\n say(1)\n return 0\n say(2)\nend")

    assert program.run() == [1]
    assert not program.interpreter.running


def test_pass_does_nothing(script: Any) -> None:
    assert script("if True:\n pass\nend\nsay(1)").run() == [1]


# Programs


def test_one_definition_is_the_program(script: Any) -> None:
    assert script("def prog():\n say(1)\nend").run() == [1]


def test_loose_statements_are_the_program(script: Any) -> None:
    assert script("def a():\n say(1)\nend\ndef b():\n say(2)\nend\na()").run() == [1]


def test_of_several_definitions_the_last_is_the_program(script: Any) -> None:
    assert script("def a():\n say(1)\nend\ndef b():\n a()\n say(2)\nend").run() == [1, 2]


def test_a_secondary_program_runs_like_one_of_a_def(script: Any) -> None:
    assert script("sec s():\n say(1)\nend").run() == [1]


def test_library_of_functions_does_nothing(script: Any) -> None:
    program = script("def f(a):\n say(a)\nend\ndef g(b):\n f(b)\nend")

    assert program.run() == []
    assert not program.interpreter.running
    assert not program.faults


# Library


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sin(0.5)", math.sin(0.5)),
        ("cos(0.5)", math.cos(0.5)),
        ("tan(0.5)", math.tan(0.5)),
        ("asin(0.5)", math.asin(0.5)),
        ("acos(0.5)", math.acos(0.5)),
        ("atan(0.5)", math.atan(0.5)),
        ("atan2(1, -1)", math.atan2(1, -1)),
        ("sqrt(9)", 3.0),
        ("pow(2, 3)", 8.0),
        ("log(2, 8)", 3.0),
        ("floor(-1.5)", -2),
        ("ceil(1.2)", 2),
        ("abs(-3)", 3),
        ("norm([3, 4])", 5.0),
        ("norm(-2)", 2.0),
        ("d2r(180)", math.pi),
        ("r2d(3.141592653589793)", 180.0),
        ("length([1, 2, 3])", 3),
        ("get_list_length([1])", 1),
        ("size([1, 2])", 2),
        ("size([[1, 2], [3, 4], [5, 6]])", (3, 2)),
        ('str_cat("a", "b")', "ab"),
        ('str_cat("x=", [1, 2.5, True])', "x=[1, 2.5, True]"),
        ("to_str(p[1, 2, 3, 0, 0, 0.5])", "p[1, 2, 3, 0, 0, 0.5]"),
        ("to_str(2.0)", "2"),
        ('to_num("42")', 42),
        ('to_num("1.5")', 1.5),
        ('str_len("abc")', 3),
        ('str_at("abc", 1)', "b"),
        ('str_sub("hello", 1, 3)', "ell"),
        ('str_sub("hello", 2)', "llo"),
        ('str_find("hello", "l")', 2),
        ('str_find("hello", "z")', -1),
        ('str_empty("")', True),
        ("binary_list_to_integer(integer_to_binary_list(-5))", -5),
        ("make_list(3, 1.5)", (1.5, 1.5, 1.5)),
        ("sign(-2.5)", -1),
        ("sign(0)", 0),
        ("to_str(struct(a=1, b=[2]))", "struct(a=1, b=[2])"),
        ("struct(a=1, b=2) == struct(a=1, b=2)", True),
        ("struct(a=1).a + 1", 2),
        ("struct(class=3).class", 3),
    ],
)
def test_library_functions_have_their_value(
    evaluate: Evaluate, expression: str, value: object
) -> None:
    assert evaluate(expression) == (pytest.approx(value) if isinstance(value, float) else value)


def test_random_lies_between_0_and_1(evaluate: Evaluate) -> None:
    assert 0.0 <= evaluate("random()") < 1.0


# Structs and methods


def test_members_of_structs_are_assigned(script: Any) -> None:
    source = (
        "s = struct(a=1, q=[1, 2])\nt = s\nt.a = 5\nt.q[0] = 7\nsay(s.a)\nsay(t.a)\nsay(s.q)\n"
        "say(t.q)"
    )

    assert script(source).run() == [1, 5, (1, 2), (7, 2)]


@pytest.mark.parametrize(
    ("method", "left", "result"),
    [
        ("append(4)", (1, 2, 3, 4), None),
        ("extend([4, 5])", (1, 2, 3, 4, 5), None),
        ("insert(1, 9)", (1, 9, 2, 3), None),
        ("pop()", (1, 2), 3),
        ("remove(0)", (2, 3), None),
        ("clear()", (), None),
        ("slice(1, 3)", (1, 2, 3), (2, 3)),
        ("length()", (1, 2, 3), 3),
    ],
)
def test_a_lists_methods_change_its_variable_only(
    script: Any, method: str, left: object, result: object
) -> None:
    source = f"q = [1, 2, 3]\nr = q\ndef f():\n x = q.{method}\n say(x)\nend\nf()\nsay(q)\nsay(r)"

    assert script(source).run() == [result, left, (1, 2, 3)]


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (
            "m = [[1], [2], [3]]\ni = [0, 1, 2]\nm[i.pop()].append(9)\nsay(m)\nsay(i)",
            [((1,), (2,), (3, 9)), (0, 1)],
        ),
        ("q = [1, 2]\ndef g():\n q[1] = 5\n return 7\nend\nq[0] = g()\nsay(q)", [(7, 5)]),
        ("q = [1]\ndef g():\n q.append(5)\n return 7\nend\nq.append(g())\nsay(q)", [(1, 5, 7)]),
        ("a = [1, 2]\nb = [3]\nb.append(a.pop())\nsay(a)\nsay(b)", [(1,), (3, 2)]),
        (
            "m = [[1], [2]]\ni = [[0], [1]]\nm[i[0].pop()].append(i[1].pop())\nsay(m)\nsay(i)",
            [((1, 1), (2,)), ((), ())],
        ),
        (
            (
                "n = 0\ndef g():\n n = n + 1\n return 0\nend\nq = [[1]]\nq[g()].append(2)\n"
                "q[g()][g()] = 8\nsay(n)\nsay(q)"
            ),
            [3, ((8, 2),)],
        ),
    ],
)
def test_subscripts_are_evaluated_once(script: Any, source: str, output: list) -> None:
    """The values are, too, and the variable is evaluated last."""
    program = script(source)
    program.run(2)

    assert not program.faults
    assert program.output == output


def test_a_return_ends_with_its_line(script: Any) -> None:
    source = (
        "def f(a):\n if a:\n  return\n  b = 1\n end\n say(2)\n return\n say(3)\nend\nf(True)\n"
        "f(False)\nsay(4)"
    )

    assert script(source).run(2) == [2, 4]
    assert script("def f():\n return [1,\n 2]\nend\nsay(f())").run(2) == [(1, 2)]


@pytest.mark.parametrize(
    "name", ["__class__", "__init__", "__dict__", "__sizeof__", "mro", "_METHODS"]
)
def test_pythons_own_methods_are_not_reachable(script: Any, name: str) -> None:
    program = script(f"q = [1]\nx = q.{name}()")
    program.run()

    assert "no method" in program.fault.reason


def test_method_changes_a_nested_list(script: Any) -> None:
    source = (
        "s = struct(q=[1])\ns.q.append(2)\nsay(s.q)\nm = [s]\nm[0].q.append(3)\nsay(m[0].q)\n"
        "say(s.q)"
    )

    assert script(source).run() == [(1, 2), (1, 2, 3), (1, 2)]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("x = 1\ny = x.a", "Only a struct has members, not an integer"),
        ("s = struct(a=1)\nx = s.b", "no member 'b'; it has a"),
        ("s = struct(a=1)\ns.b = 2", "no member 'b'"),
        ("q = [1]\nq.sort()", "no method 'sort' of a list"),
        ("q = [1]\nq.remove(3)", "'remove' cannot be called"),
        ("q = 1\nq.append(2)", "no method 'append' of an integer"),
        (
            "s = struct(a=1)\nwhile True:\n s = struct(a=s)\nend",
            "Structs are nested more than 10 deep",
        ),
        ("q = make_list(5000, 0)\nq.extend(q)\nq.extend(q)", "more than 10000 elements"),
    ],
)
def test_an_invalid_member_or_method_is_a_fault(script: Any, statement: str, words: str) -> None:
    program = script(statement)
    program.run(20)

    assert words in program.fault.reason
