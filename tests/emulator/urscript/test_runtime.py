"""Threads, ticks, the budget and critical sections, counted in ticks; and what ends a program.

Each fault has a sentence and the script's line, and is never an exception of Python.
"""

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
from tests.properties import few_examples


def test_sync_ends_a_threads_turn_in_the_tick(script: Any) -> None:
    program = script("i = 0\nwhile True:\n i = i + 1\n say(i)\n sync()\nend")

    assert program.run(3) == [1, 2, 3]


def test_a_blocking_function_blocks_its_thread(script: Any) -> None:
    program = script("say(1)\nsay(wait(3))")

    assert program.run(3) == [1]
    assert program.run() == [1, 3]


def test_a_function_that_calls_a_blocking_one_blocks_too(script: Any) -> None:
    program = script(
        "def f():\n wait(1)\n return 5\nend\ndef g():\n return f() + f()\nend\nsay(g())"
    )

    assert program.run(2) == []
    assert program.run() == [10]


def test_threads_take_turns_in_every_tick(script: Any) -> None:
    program = script(
        'thread t():\n while True:\n say("t")\n sync()\n end\nend\nrun t()\nwhile True:\n'
        ' say("m")\n sync()\nend'
    )

    assert program.run(2) == ["m", "t", "m", "t"]


def test_a_thread_takes_arguments(script: Any) -> None:
    assert script("thread t(a, b=2):\n say(a, b)\nend\nh = run t(1)\njoin h").run() == [(1, 2)]


def test_thread_may_call_nothing_that_blocks(script: Any) -> None:
    assert script(
        "def f():\n say(1)\nend\nthread t():\nend\njoin run f()\njoin run t()\nsay(2)"
    ).run() == [1, 2]


def test_join_waits_for_the_end_of_a_thread(script: Any) -> None:
    program = script(
        'thread t():\n wait(2)\n say("t")\n return False\nend\nh = run t()\njoin h\nsay("joined")'
    )

    assert program.run(2) == []
    assert program.run() == ["t", "joined"]
    assert not program.interpreter.running


def test_kill_ends_a_thread_wherever_it_is(script: Any) -> None:
    program = script(
        "thread t():\n while True:\n say(1)\n sync()\n end\nend\nh = run t()\nwait(2)\nkill h\n"
        "say(2)\nwait(9)"
    )

    assert program.run(5) == [1, 1, 2]
    assert program.interpreter.threads == 1


def test_a_needless_kill_is_harmless(script: Any) -> None:
    """Neither 0 nor a thread that has ended causes a fault."""
    program = script(
        "thread t():\nend\nglobal h = 0\nkill h\njoin h\nh = run t()\njoin h\nkill h\nkill h\n"
        "join h\nsay(h != 0)"
    )

    assert program.run(3) == [True]
    assert not program.faults


def test_thread_handle_is_not_zero(script: Any) -> None:
    program = script(
        "thread t():\n sync()\nend\nh = run t()\nsay(h == 0)\nkill h\nh = 0\nsay(h == 0)"
    )

    assert program.run() == [False, True]


def test_a_killed_blocking_function_can_clean_up(script: Any) -> None:
    ended: list[str] = []

    def move(_thread: Any) -> Generator[None, None, None]:
        try:
            while True:
                yield
        finally:
            ended.append("motion")

    program = script("thread t():\n move()\nend\nh = run t()\nsync()\nkill h\nsync()", move=move)
    program.run()

    assert ended == []

    program.run()

    assert ended == ["motion"]


def test_a_thread_can_kill_itself(script: Any) -> None:
    program = script(
        "thread t():\n say(1)\n kill h\n say(2)\nend\nglobal h = run t()\nwait(2)\nsay(3)"
    )

    assert program.run(3) == [1, 3]
    assert not program.faults


def test_the_end_of_the_main_program_ends_its_threads(script: Any) -> None:
    program = script("thread t():\n while True:\n say(1)\n sync()\n end\nend\nrun t()\nsync()")

    assert program.run(5) == [1]
    assert program.interpreter.threads == 0


def test_stop_ends_everything_at_once(script: Any) -> None:
    ended: list[int] = []

    def move(_thread: Any, n: int) -> Generator[None, None, None]:
        try:
            yield
        finally:
            ended.append(n)

    program = script("thread t():\n move(1)\nend\nrun t()\nmove(2)", move=move)
    program.run()
    program.interpreter.stop()
    program.interpreter.stop()

    assert sorted(ended) == [1, 2]
    assert not program.interpreter.running
    assert program.interpreter.line == 0
    assert not program.faults


def test_a_built_in_function_may_stop_the_program(script: Any) -> None:
    program = script(
        "say(1)\nstop_all()\nsync()\nsay(2)", stop_all=lambda _thread: program.interpreter.stop()
    )

    assert program.run(3) == [1]
    assert not program.interpreter.running
    assert not program.faults


def test_the_line_is_where_the_main_program_blocks(script: Any) -> None:
    program = script("def f():\n  sync()\n\n  sync()\nend\nsync()\nf()\nwait(9)")
    lines = []
    for _ in range(4):
        program.run()
        lines.append(program.interpreter.line)

    assert lines == [6, 2, 4, 8]


# Budget


def test_an_endless_loop_cannot_block_the_tick(script: Any) -> None:
    program = script("global n = 0\nwhile True:\n n = n + 1\nend", budget=1000)
    program.run()

    assert program.interpreter.running
    assert program.interpreter.line in (2, 3)


def test_an_endless_loop_continues_in_the_next_tick(script: Any) -> None:
    program = script("n = 0\nwhile n < 1000:\n n = n + 1\nend\nsay(n)", budget=1000)

    assert program.run() == []
    assert program.run(10) == [1000]


def test_work_of_a_tick_is_counted(script: Any) -> None:
    counts = []
    for budget in (1000, 2000):
        program = script(
            "global n = 0\nthread t():\n while True:\n n = n + 1\n end\nend\nrun t()\nsync()\n"
            "sync()\nsay(n)"
        )
        program.interpreter.budget = budget
        counts.append(program.run(3)[0])

    assert 100 < counts[0] < 1000
    assert 1.5 < counts[1] / counts[0] < 2.5


def test_an_endless_loop_does_not_starve_the_other_threads(script: Any) -> None:
    program = script(
        "thread t():\n while True:\n end\nend\nrun t()\nrun t()\ni = 0\nwhile i < 5:\n say(i)\n"
        " i = i + 1\n sync()\nend"
    )

    assert program.run(5) == [0, 1, 2, 3, 4]


def test_branching_recursion_cannot_block_the_tick(script: Any) -> None:
    program = script(
        "def f(n):\n if n == 0:\n return 1\n end\n return f(n - 1) + f(n - 1)\nend\nx = f(100)",
        budget=500,
    )
    program.run(20)

    assert program.interpreter.running


def test_doubling_recursion_cannot_block_the_tick(script: Any) -> None:
    functions = "".join(f"def f{i}():\n f{i + 1}()\n f{i + 1}()\nend\n" for i in range(60))
    program = script(f"{functions}def f60():\nend\nf0()", budget=500)
    program.run(20)

    assert program.interpreter.running


def test_threads_that_start_threads_cannot_block_the_tick(script: Any) -> None:
    program = script("thread t():\n run t()\nend\nrun t()\nwhile True:\n sync()\nend")
    program.run(20)

    assert program.interpreter.running
    assert program.interpreter.threads <= MAX_THREADS


@pytest.mark.slow
def test_a_long_program_without_loops_is_spread_over_ticks(script: Any) -> None:
    program = script("x = 0\n" + "x = x + 1\n" * 2000 + "say(x)", budget=1000)

    assert program.run() == []
    assert program.run(10) == [2000]


def test_the_cost_of_built_in_functions_counts(script: Any) -> None:
    program = script(
        "while True:\n say(1)\n dear()\nend", dear=lambda thread: thread.charge(1000), budget=2500
    )

    assert len(program.run()) == 3


# Critical sections


def test_blocked_critical_section_admits_others(
    script: Any,
) -> None:
    program = script("""
        thread t():
          enter_critical
          say("t in")
          exit_critical
        end
        enter_critical
        say("main in")
        run t()
        wait(2)
        say("main out")
        exit_critical
        wait(2)""")

    assert program.run(1) == ["main in", "t in"]
    assert program.run(2) == ["main in", "t in", "main out"]


def test_threads_outside_critical_sections_continue(
    script: Any,
) -> None:
    program = script(
        'thread t():\n say("t")\nend\nenter_critical\nrun t()\nwait(1)\nexit_critical\nsay("m")'
    )

    assert program.run(2) == ["t", "m"]


def test_critical_section_excludes_threads(script: Any) -> None:
    program = script(
        """
        global n = 0
        thread t():
          while True:
            say(n)
            sync()
          end
        end
        run t()
        sync()
        enter_critical
        while n < 3000:
          n = n + 1
        end
        exit_critical
        sync()""",
        budget=1000,
    )
    program.run(40)

    assert program.output[0] == 0
    assert set(program.output) == {0, 3000}


def test_reentering_thread_admits_others(script: Any) -> None:
    program = script("""
        thread t():
          while True:
            enter_critical
            sync()
            exit_critical
          end
        end
        run t()
        sync()
        enter_critical
        say("in")
        exit_critical
        sync()""")

    assert program.run(3) == ["in"]


def test_critical_sections_nest(script: Any) -> None:
    program = script(
        """
        global n = 0
        thread t():
          say(n)
        end
        enter_critical
        enter_critical
        exit_critical
        run t()
        while n < 3000:
          n = n + 1
        end
        exit_critical
        wait(1)""",
        budget=1000,
    )

    assert program.run(40) == [3000]


def test_a_needless_exit_critical_is_harmless(script: Any) -> None:
    assert script("exit_critical\nsay(1)").run() == [1]


def test_a_killed_thread_leaves_its_critical_section(script: Any) -> None:
    program = script("""
        thread t():
          enter_critical
          wait(100)
        end
        h = run t()
        sync()
        kill h
        enter_critical
        say(1)
        exit_critical""")

    assert program.run(2) == [1]


# Faults


@pytest.mark.slow
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


def test_fault_names_the_functions_line(script: Any) -> None:
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
        "def f(n):\n if n == 0:\n return 0\n end\n return f(n - 1) + 1\nend\n"
        f"say(f({MAX_DEPTH - 1}))"
    )

    assert program.run(50) == [MAX_DEPTH - 1]


@pytest.mark.slow
def test_long_call_chain_is_at_worst_a_fault(script: Any) -> None:
    functions = "".join(f"def f{i}():\n return f{i + 1}() + 1\nend\n" for i in range(500))
    program = script(f"{functions}def f500():\n return 0\nend\nsay(f0())")
    program.run(500)

    assert "deep" in program.fault.reason


@pytest.mark.parametrize("twice", ["str_cat(s, s)", "s + s"])
def test_a_string_does_not_grow_without_bound(script: Any, twice: str) -> None:
    program = script(f's = "ab"\nwhile True:\n s = {twice}\nend')
    program.run(1000)

    assert "characters" in program.fault.reason


@pytest.mark.slow
def test_a_list_does_not_grow_without_bound(script: Any) -> None:
    row = ", ".join(["0"] * 1000)
    for statement in (
        f"b = [{', '.join(['a'] * 11)}]",
        f"b = [{', '.join([row] * 11)}]",
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
            "a must be a positive number; got -1.",
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
    [
        "x",
        "q",
        "1",
        "0",
        "2.5",
        '"s"',
        "True",
        "[1, 2]",
        "p[1,2,3,4,5,6]",
        "[[1, 2], [3, 4]]",
        "f",
        "x[0]",
        "q[1]",
        "sin(x)",
        "length(q)",
        "to_str(q)",
        "g(x)",
        "g(q, 1)",
        "-x",
        "(not x)",
        "run t()",
    ]
)
_OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "and", "or", "xor"])


@given(st.lists(st.tuples(_PIECES, _OPERATORS, _PIECES), max_size=6))
@few_examples(15)
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


@pytest.mark.slow
def test_whatever_nesting_the_parser_accepts_can_be_run(script: Any) -> None:
    blocks = "if f(0):\n" * 24 + "while f(0):\n" * 15
    expression = "f(" * 24 + "-x" + ")" * 24
    branches = "if x == 1:\n" + "elif f(x):\n" * 499 + "say(2)\nend\n"
    body = f"{blocks}say({expression})\nreturn True\n{'end ' * 39}"

    program = script(
        f"def f(x):\n return True\nend\ndef g(n):\n {body}\n return g(n)\nend\nx = 0\ng(0)\n"
        f"{branches}say(3)"
    )

    assert program.run(50) == [True, 3]
    assert not program.faults
