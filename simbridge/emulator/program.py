"""Makes a program of a script: it is compiled in another process, so that no tick waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simbridge.emulator.accepted_functions import accepted_functions
from simbridge.emulator.builtin_motion import MotionFunctions
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import RuntimeFault, ScriptSyntaxError
from simbridge.emulator.handles import HandleFunctions
from simbridge.emulator.scripts import is_secondary
from simbridge.emulator.secondary import without_blocking
from simbridge.emulator.sockets import SocketFunctions
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.compilation import Compilation, Compiler
from simbridge.emulator.urscript.compiler import Code
from simbridge.emulator.urscript.functions import Builtin
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import Interpreter
from simbridge.robot.load import load_robot

COMPILER = Compiler()
# The built-in functions as the compiler knows them, by whether the program is a secondary one; the
# same for every controller, so that the compiling process need not be sent them again.
_DESCRIPTIONS: dict[bool, Mapping[str, Builtin]] = {}
# Characters that are shown of a line that cannot be compiled.
MAX_SHOWN_LINE = 200


def builtin_functions(controller: EmulatedController) -> dict[str, Callable[..., Any]]:
    """Return every built-in function by its name in URScript.

    Those of the library and of sockets are not among them.
    """
    return {
        **accepted_functions(controller),
        **HandleFunctions().table(),
        **MotionFunctions(controller).table(),
    }


def known_functions() -> Mapping[str, Builtin]:
    """Return every built-in function as the compiler knows it."""
    software = profile("5.25")
    controller = EmulatedController(load_robot("ur10e"), software, ScriptProgram)
    return describe({**builtin_functions(controller), **SocketFunctions(software.period).table()})


def warm_up() -> Compilation:
    """Start the compiler's process, so that the first program need not wait for it.

    The process is ready when the compilation is finished.
    """
    return COMPILER.compile("", {}, lambda code, error: None)


class ScriptProgram:
    """A URScript program: it is compiled in another process, then advances with every tick.

    Args:
        controller: The controller on which it runs.
        source: The script.
        on_fault: Called once with a text, a line and a column if the script cannot be compiled, or
            attempts something invalid.

    Attributes:
        running: True until it ends, faults or is stopped; also while it is being compiled.
        ready: Whether it has been compiled.
        compilation: Finished when the program can run, or was refused.
    """

    def __init__(
        self, controller: EmulatedController, source: str, on_fault: Callable[[str, int, int], None]
    ) -> None:
        self.running = True
        self.ready = False

        self._source = source
        self._secondary = is_secondary(source)
        self._on_fault = on_fault

        self._sockets = SocketFunctions(controller.period, controller.own_ports)
        functions = {**builtin_functions(controller), **self._sockets.table()}
        self._functions = without_blocking(functions) if self._secondary else functions
        if self._secondary not in _DESCRIPTIONS:
            _DESCRIPTIONS[self._secondary] = describe(self._functions)

        # Once it is compiled, one of the two: set by the compiler's thread.
        self._interpreter: Interpreter | None = None
        self._syntax_error: ScriptSyntaxError | None = None
        self.compilation = COMPILER.compile(
            source, _DESCRIPTIONS[self._secondary], self._take_result
        )

    def _take_result(self, code: Code | None, error: ScriptSyntaxError | None) -> None:
        """Take the code or the error, in the compiler's thread."""
        if code is not None:
            self._interpreter = Interpreter(code, self._functions, self._report_fault)
            self.ready = True
        self._syntax_error = error

    @property
    def line(self) -> int:
        """The line that the main program is at; 0 while it is being compiled."""
        return 0 if self._interpreter is None else self._interpreter.line

    def tick(self) -> None:
        """Run until it has nothing to do before the next tick; report why it does not compile.

        Raises:
            Exception: A bug in the compiler.
        """
        if self.compilation.fault is not None:
            raise self.compilation.fault

        if self._syntax_error is not None:
            self._report_refusal(self._syntax_error)
            self._syntax_error = None
            self.running = False
        elif self._interpreter is not None and self.running:
            self._interpreter.tick()
            if not self._interpreter.running:
                self.stop()

    def stop(self) -> None:
        """End it at once, and close its connections."""
        self.running = False
        self.compilation.cancel()
        if self._interpreter is not None:
            self._interpreter.stop()
        self._sockets.close()

    def _report_fault(self, fault: RuntimeFault) -> None:
        """Report that the program attempted something invalid."""
        prefix = "SECONDARY_PROGRAM_EXCEPTION_XXX" if self._secondary else ""
        self._on_fault(prefix + fault.reason, fault.line, 0)

    def _report_refusal(self, error: ScriptSyntaxError) -> None:
        """Report why it does not compile, as controllers do (docs/emulator.md).

        A syntax error has its reason, too.
        """
        if error.unknown:
            text = f"compile_error_name_not_found:{error.unknown}:"
        else:
            # A line after the last one is empty.
            lines = self._source.split("\n")[error.line - 1 : error.line]
            line = "".join(lines)[:MAX_SHOWN_LINE]
            text = f"syntax_error_on_line:{error.line}:{line}: {error}"
        self._on_fault(text, error.line, error.column)
