"""What ends a program: each with a sentence and the script's line, and never with a Python exception."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import MAX_DEPTH, MAX_THREADS, Interpreter
from simbridge.errors import InvalidParameter


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("no_such_function(1)", "no function 'no_such_function'"),
        ("x = 1 + no_such_function()", "no function 'no_such_function'"),
        ("x = unknown", "variable 'unknown' has no value"),
        ("q = [1, 2]\nx = q[2]", "index 2 is out of range"),
        ("q = [1, 2]\nx = q[-1]", "index -1 is out of range"),
        ("q = [1, 2]\nq[2] = 1", "index 2 is out of range"),
        ("q = 1\nq[0] = 1", "an integer"),
        ("x = [1][True]", "a boolean"),
        ("x = 1 / 0", "Division by zero"),
        ("x = 1 % 0", "Division by zero"),
        ('x = 1 + "a"', "an integer and a string"),
        ('x = "a" * 1000000000', "a string and an integer"),
        ("x = True + 1", "a boolean and an integer"),
        ("x = [1, 2] + [1, 2, 3]", "2 and 3"),
        ("x = [1, 2] * [[1, 2], [3, 4]]", "a list cannot be multiplied by a matrix".capitalize()),
        ("x = [[1, 2]] * [1, 2, 3]", "2 columns"),
        ('x = "a" < "b"', "a string and a string"),
        ("x = [1] < 2", "a list"),
        ('if "yes":\nend', "condition"),
        ('x = p[1, 2, 3, 4, 5, "6"]', "made of numbers"),
        ("pose = p[1, 2, 3, 4, 5, 6]\npose[0] = [1]", "made of numbers"),
        ("x = sqrt(-1)", "sqrt(-1) has no value"),
        ("x = pow(10, 400)", "has no value"),
        ('x = sin("a")', "a string"),
        ("x = log(0, 5)", "no value"),
        ('x = to_num("abc")', "not a number"),
        ('x = to_num("nan")', "not a number"),
        ('x = to_num("-inf")', "not a number"),
        ('x = to_num("1_000")', "not a number"),
        ("x = to_num([1])", "not a number"),
        ('x = str_at("abc", 3)', "no character 3"),
        ("x = length(5)", "has a length"),
        ("x = integer_to_binary_list(0.5)", "An integer"),
        ("x = binary_list_to_integer(5)", "booleans"),
        ("x = sin()", "missing a required argument: 'f'"),
        ("x = sin(1, 2)", "too many positional arguments"),
        ("x = sin(g=1)", "sin"),
        ("x = run sin(1)", "no thread 'sin'"),
        ("kill 5", "killed"),
        ("join [1]", "joined"),
        ("x = [[[[1]]]]", "nest"),
    ],
)
def test_a_fault_has_a_reason_and_a_line(script: Any, statement: str, words: str) -> None:
    program = script(f"say(1)\n\n{statement}\nsay(2)")
    program.run(3)
    assert program.output == [1]
    assert words in program.fault.reason
    assert program.fault.line == 3 + statement.count(
        "\n", 0, statement.rstrip("\nend").rfind("\n") + 1
    )
    assert f"line {program.fault.line}" in str(program.fault)


def test_a_fault_in_a_function_names_the_line_in_the_function(script: Any) -> None:
    program = script("def f(x):\n  y = 1\n  return y / x\nend\nz = 1\nz = f(0)")
    program.run()
    assert program.fault.line == 3


def test_a_wrongly_called_function_of_the_program_is_named(script: Any) -> None:
    for call in ("f()", "f(1, 2, 3)", "f(1, z=2)", "run f()"):
        program = script(f"def f(a, b=1):\nend\n\n{call}")
        program.run()
        assert program.fault.reason.startswith("f: ")
        assert "v_" not in program.fault.reason
        assert program.fault.line == 4


def test_a_missing_function_that_is_never_called_is_harmless(script: Any) -> None:
    program = script("def f():\n no_such_function()\nend\nsay(1)")
    assert program.run() == [1]
    assert not program.faults


def test_a_fault_in_a_thread_ends_the_program(script: Any) -> None:
    program = script("thread t():\n x = 1 / 0\nend\nrun t()\nwhile True:\n sync()\nend")
    program.run(2)
    assert program.fault.line == 2
    assert program.interpreter.threads == 0


def test_endless_recursion_is_a_fault(script: Any) -> None:
    program = script("def f(n):\n return f(n + 1)\nend\nf(0)")
    program.run(50)
    assert f"more than {MAX_DEPTH} deep" in program.fault.reason


def test_recursion_over_several_functions_is_a_fault(script: Any) -> None:
    program = script("def a(n):\n return b(n)\nend\ndef b(n):\n return a(n)\nend\na(0)")
    program.run(50)
    assert "deep" in program.fault.reason


def test_recursion_may_be_as_deep_as_the_limit(script: Any) -> None:
    program = script(
        f"def f(n):\n if n == 0:\n return 0\n end\n return f(n - 1) + 1\nend\nsay(f({MAX_DEPTH - 1}))"
    )
    assert program.run(50) == [MAX_DEPTH - 1]


def test_a_long_chain_of_functions_succeeds_or_ends_in_a_fault(script: Any) -> None:
    functions = "".join(f"def f{i}():\n return f{i + 1}() + 1\nend\n" for i in range(5000))
    program = script(f"{functions}def f5000():\n return 0\nend\nsay(f0())")
    program.run(500)
    assert "deep" in program.fault.reason


@pytest.mark.parametrize("twice", ["str_cat(s, s)", "s + s"])
def test_a_string_does_not_grow_without_bound(script: Any, twice: str) -> None:
    program = script(f's = "ab"\nwhile True:\n s = {twice}\nend')
    program.run(1000)
    assert "characters" in program.fault.reason


def test_a_list_does_not_grow_without_bound(script: Any) -> None:
    row = ", ".join(["0"] * 1000)
    for statement in (
        f"b = [{', '.join(['a'] * 20)}]",
        f"b = [{', '.join([row] * 20)}]",
        "a[0] = a b = a[0]\nb[0] = a b[1] = b",
    ):
        program = script(f"a = [{row}]\n{statement}")
        program.run()
        assert "nested" in program.fault.reason or "elements" in program.fault.reason
        assert program.fault.line >= 2


def test_threads_do_not_multiply_without_bound(script: Any) -> None:
    program = script("thread t():\n while True:\n sync()\n end\nend\nwhile True:\n run t()\nend")
    program.run(200)
    assert f"More than {MAX_THREADS}" in program.fault.reason


def test_an_integer_never_grows_beyond_32_bits(script: Any) -> None:
    program = script("x = 3\ni = 0\nwhile i < 100:\n x = x * x\n i = i + 1\nend\nsay(x)")
    (value,) = program.run(10)
    assert value == (pow(3, 2**100, 2**32) + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            InvalidParameter("a", -1, "a positive number"),
            "The a is -1; it must be a positive number.",
        ),
        (RuntimeFault("Singular."), "Singular."),
        (ValueError("odd"), "ValueError: odd"),
        (RecursionError(), "too deep"),
    ],
)
def test_a_built_in_function_that_raises_ends_the_program(
    script: Any, error: Exception, words: str
) -> None:
    def breaks(_thread: Any) -> None:
        raise error

    program = script("\nbreaks()", breaks=breaks)
    program.run()
    assert words in program.fault.reason
    assert program.fault.line == 2


def test_a_blocking_function_that_raises_later_ends_the_program(script: Any) -> None:
    def breaks(_thread: Any) -> Generator[None, None, None]:
        yield
        raise RuntimeFault("Unreachable.")

    program = script("def f():\n  breaks()\nend\nf()", breaks=breaks)
    program.run()
    assert program.interpreter.running
    program.run()
    assert program.fault.line == 2


def test_after_a_fault_ticks_do_nothing(script: Any) -> None:
    program = script("say(1)\nx = 1 / 0")
    program.run(5)
    assert program.output == [1]
    assert program.interpreter.fault is program.fault


_PIECES = st.sampled_from(
    ["x", "q", "1", "0", "2.5", '"s"', "True", "[1, 2]", "p[1,2,3,4,5,6]", "[[1, 2], [3, 4]]", "f", "x[0]", "q[1]",
     "sin(x)", "length(q)", "to_str(q)", "g(x)", "g(q, 1)", "-x", "(not x)", "run t()"]
)  # fmt: skip
_OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "and", "or", "xor"])


@given(st.lists(st.tuples(_PIECES, _OPERATORS, _PIECES), max_size=6))
def test_no_program_raises_anything_into_its_host(parts: list[tuple[str, str, str]]) -> None:
    body = "".join(f"x = {left} {operator} {right}\nq = x\n" for left, operator, right in parts)
    functions = "thread t():\n x = 1\nend\ndef g(a, b=2):\n return a * b\nend\n"
    source = f"{functions}x = 1\nq = [1, 2]\n{body}while True:\n sync()\nend"
    faults: list[RuntimeFault] = []
    interpreter = Interpreter(compile_script(source, describe({})), {}, faults.append)
    for _ in range(3):
        interpreter.tick()
    assert interpreter.running == (not faults)
    interpreter.stop()


def test_whatever_nesting_the_parser_accepts_can_be_run(script: Any) -> None:
    blocks = "if f(0):\n" * 24 + "while f(0):\n" * 15
    expression = "f(" * 24 + "-x" + ")" * 24
    branches = "if x == 1:\n" + "elif f(x):\n" * 499 + "say(2)\nend\n"
    body = f"{blocks}say({expression})\nreturn True\n{'end ' * 39}"
    program = script(
        f"def f(x):\n return True\nend\ndef g(n):\n {body}\n return g(n)\nend\nx = 0\ng(0)\n{branches}say(3)"
    )
    assert program.run(50) == [True, 3]
    assert not program.faults
