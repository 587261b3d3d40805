"""Programs that run without a controller."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import Interpreter


class Script:
    """A program and its output.

    In it `say(...)` collects arguments, and `wait(n)` blocks for n ticks.
    """

    def __init__(self, source: str, budget: int = 10_000, **builtins: Callable[..., Any]) -> None:
        self.output: list[Any] = []
        self.faults: list[RuntimeFault] = []
        functions = {"say": self._say, "wait": _wait, **builtins}
        code = compile_script(source, describe(functions))
        self.interpreter = Interpreter(code, functions, self.faults.append, budget=budget)

    def _say(self, _thread: Any, *values: Any) -> None:
        self.output.append(values[0] if len(values) == 1 else values)

    def run(self, ticks: int = 1) -> list[Any]:
        """All output so far."""
        for _ in range(ticks):
            self.interpreter.tick()
        return self.output

    @property
    def fault(self) -> RuntimeFault:
        assert not self.interpreter.running
        assert len(self.faults) == 1
        return self.faults[0]


def _wait(_thread: Any, ticks: int) -> Generator[None, None, int]:
    for _ in range(ticks):
        yield
    return ticks


@pytest.fixture
def script() -> type[Script]:
    return Script


@pytest.fixture
def evaluate() -> Callable[[str], Any]:
    """The value of an expression."""

    def value(expression: str) -> Any:
        program = Script(f"say({expression})")
        program.run()
        if program.faults:
            raise program.faults[0]
        assert len(program.output) == 1
        return program.output[0]

    return value
