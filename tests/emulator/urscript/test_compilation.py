"""Scripts are compiled in a process of their own, within limits.

What is wrong with them comes back with its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.compilation import Compilation, Compiler
from simbridge.emulator.urscript.compiler import Code
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import Interpreter

HEAVY = "def f():\n" + "f()" * 250_000 + "\nend\n"


class Bench:
    """A compiler with tight limits, and what came of the scripts in their order."""

    def __init__(self) -> None:
        self.compiler = Compiler(seconds=1, memory=1 << 28)
        self.output: list[Any] = []
        self.functions = {"say": lambda _thread, value: self.output.append(value)}
        self.builtins = describe(self.functions)
        self.codes: list[Code] = []
        self.errors: list[ScriptSyntaxError] = []

    def begin(self, source: str) -> Compilation:
        return self.compiler.compile(source, self.builtins, self._then)

    def _then(self, code: Code | None, error: ScriptSyntaxError | None) -> None:
        if code is not None:
            self.codes.append(code)
        if error is not None:
            self.errors.append(error)

    def run(self, source: str) -> list[Any]:
        """Run a script for one tick, and return its output."""
        self.begin(source).join()
        Interpreter(self.codes[-1], self.functions, lambda fault: None).tick()
        return self.output


@pytest.fixture(scope="module")
def shared() -> Bench:
    return Bench()


@pytest.fixture
def bench(shared: Bench) -> Iterator[Bench]:
    for results in (shared.output, shared.codes, shared.errors):
        results.clear()
    yield shared


def test_a_script_runs_as_it_would_without_another_process(bench: Bench) -> None:
    assert bench.run("def f(a):\n return a + 1\nend\nsay(f(2))") == [3]
    assert bench.codes[0].line_of(len(bench.codes[0].lines) - 1) == 4


def test_a_syntax_error_keeps_its_line_column_and_reason(bench: Bench) -> None:
    bench.begin("x = 1\ny = = 2").join()
    [error] = bench.errors

    assert (error.line, error.column) == (2, 5)
    assert error.reason == "'=' cannot stand here; expected a value"


def test_new_built_in_functions_are_known(bench: Bench) -> None:
    bench.run("say(1)")
    second_bench = Bench()
    second_bench.compiler = bench.compiler
    second_bench.functions = {"report": lambda _thread, value: second_bench.output.append(value)}

    second_bench.builtins = describe(second_bench.functions)

    assert second_bench.run("report(2)") == [2]
    assert bench.run("say(3)") == [1, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(HEAVY, id="calls"),
        pytest.param("def f():\n" + "x = 1 " * 150_000 + "end\n", id="x", marks=pytest.mark.soak),
        pytest.param("x = " + "(" * 990_000, id="brackets", marks=pytest.mark.soak),
    ],
)
def test_expensive_script_is_refused(bench: Bench, source: str) -> None:
    bench.begin(source).join()
    [error] = bench.errors

    assert "split it" in error.reason
    assert bench.run("say(1)") == [1]


def test_a_cancelled_script_does_not_delay_the_next(bench: Bench) -> None:
    heavy = [bench.begin(HEAVY) for _ in range(20)]
    for compilation in heavy:
        compilation.cancel()

    assert bench.run("say(1)") == [1]
    assert not bench.errors
    assert len(bench.codes) == 1


def test_bug_is_kept_for_its_script(bench: Bench) -> None:
    def breaks(code: Code | None, error: ScriptSyntaxError | None) -> None:
        raise KeyError("a mistake")

    compilation = bench.compiler.compile("say(1)", bench.builtins, breaks)
    compilation.join()

    assert isinstance(compilation.fault, KeyError)
    assert bench.run("say(1)") == [1]
