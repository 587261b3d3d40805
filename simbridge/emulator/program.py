"""A script becomes a program of the controller, compiled beside the ticks so that none of them waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from simbridge.emulator.builtins import Builtins
from simbridge.emulator.sockets import Sockets
from simbridge.emulator.urscript.runtime import Interpreter
from simbridge.errors import RuntimeFault, SimbridgeError

if TYPE_CHECKING:
    from simbridge.emulator.controller import Controller


class ScriptProgram:
    """A URScript program: it compiles in a thread of its own, then runs on with every tick.

    Attributes:
        running: Until it ends, faults or is stopped; also while it compiles.
    """

    def __init__(self, controller: Controller, source: str, on_fault: Callable[[str, int], None]) -> None:
        self.running = True
        self._sockets = Sockets(controller.period)
        self._table = {**Builtins(controller).table(), **self._sockets.table()}
        self._on_fault = on_fault
        self._interpreter: Interpreter | None = None
        self._refused: SimbridgeError | None = None
        self._compiling = threading.Thread(target=self._compile, args=(source,), daemon=True)
        self._compiling.start()

    def _compile(self, source: str) -> None:
        try:
            self._interpreter = Interpreter(source, self._table, self._fault)
        except SimbridgeError as error:
            self._refused = error

    def _fault(self, fault: RuntimeFault) -> None:
        self._on_fault(fault.reason, fault.line)

    @property
    def line(self) -> int:
        """Where the main program is; 0 while it compiles."""
        return 0 if self._interpreter is None else self._interpreter.line

    def tick(self) -> None:
        """A period further."""
        if self._refused is not None:
            self._on_fault(str(self._refused), getattr(self._refused, "line", 0))
            self._refused, self.running = None, False
        elif self._interpreter is not None and self.running:
            self._interpreter.tick()
            if not self._interpreter.running:
                self.stop()

    def stop(self) -> None:
        """End it at once."""
        self.running = False
        if self._interpreter is not None:
            self._interpreter.stop()
        self._sockets.close()


def compile_program(controller: Controller, source: str, on_fault: Callable[[str, int], None]) -> ScriptProgram:
    """What a `Controller` makes of a script."""
    return ScriptProgram(controller, source, on_fault)
