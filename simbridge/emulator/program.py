"""A script becomes a program of the controller, compiled beside the ticks so that none of them waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from simbridge.emulator.builtins import builtin_functions
from simbridge.emulator.errors import RuntimeFault, ScriptSyntaxError
from simbridge.emulator.script_buffer import is_secondary
from simbridge.emulator.secondary import without_waiting
from simbridge.emulator.sockets import Sockets
from simbridge.emulator.urscript.builtin import Builtin, describe
from simbridge.emulator.urscript.compilation import Compiler
from simbridge.emulator.urscript.compiler import Code
from simbridge.emulator.urscript.runtime import Interpreter

if TYPE_CHECKING:
    from simbridge.emulator.controller import Controller

COMPILER = Compiler()
# The functions of secondary programs and of others as the compiler knows them: the same for every controller.
_DESCRIBED: dict[bool, Mapping[str, Builtin]] = {}


class ScriptProgram:
    """A URScript program: it is compiled in another process, then runs on with every tick.

    Attributes:
        running: Until it ends, faults or is stopped; also while it is compiled.
        compilation: Over when it can run, or is refused.
    """

    def __init__(self, controller: Controller, source: str, on_fault: Callable[[str, int], None]) -> None:
        self.running = True
        self._sockets = Sockets(controller.period)
        functions = {**builtin_functions(controller), **self._sockets.table()}
        secondary = is_secondary(source)
        self._functions = without_waiting(functions) if secondary else functions
        if secondary not in _DESCRIBED:
            _DESCRIBED[secondary] = describe(self._functions)
        self._on_fault = on_fault
        self._interpreter: Interpreter | None = None
        self._refused: ScriptSyntaxError | None = None
        self.compilation = COMPILER.compile(source, _DESCRIBED[secondary], self._compiled)

    def _compiled(self, code: Code | None, error: ScriptSyntaxError | None) -> None:
        if code is not None:
            self._interpreter = Interpreter(code, self._functions, self._fault)
        self._refused = error

    def _fault(self, fault: RuntimeFault) -> None:
        self._on_fault(fault.reason, fault.line)

    @property
    def ready(self) -> bool:
        """Whether it has been compiled."""
        return self._interpreter is not None

    @property
    def line(self) -> int:
        """Where the main program is; 0 while it is compiled."""
        return 0 if self._interpreter is None else self._interpreter.line

    def tick(self) -> None:
        """A period further."""
        if self.compilation.fault is not None:
            raise self.compilation.fault
        if self._refused is not None:
            self._on_fault(str(self._refused), self._refused.line)
            self._refused, self.running = None, False
        elif self._interpreter is not None and self.running:
            self._interpreter.tick()
            if not self._interpreter.running:
                self.stop()

    def stop(self) -> None:
        """End it at once."""
        self.running = False
        self.compilation.cancel()
        if self._interpreter is not None:
            self._interpreter.stop()
        self._sockets.close()


def compile_program(controller: Controller, source: str, on_fault: Callable[[str, int], None]) -> ScriptProgram:
    """What a `Controller` makes of a script."""
    return ScriptProgram(controller, source, on_fault)


def warm_up() -> None:
    """Begin to start what compiles, so that the first program need not wait for it."""
    COMPILER.compile("", {}, lambda code, error: None)
