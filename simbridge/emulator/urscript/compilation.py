"""Compiles scripts one after the other in a process of their own (`worker`), and says when each is ready.

Python's lock would otherwise be held from the controller's ticks while a long script is compiled; and a script that is
meant to do harm finds limits of time and memory there that end that process only.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Pipe

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript import worker
from simbridge.emulator.urscript.builtin import Builtin
from simbridge.emulator.urscript.compiler import Code
from simbridge.emulator.urscript.worker import Refusal

SECONDS = 10
MEMORY = 1 << 29
_PATIENCE = 0.2  # s that a script nobody waits for any more may keep the others waiting

Then = Callable[[Code | None, ScriptSyntaxError | None], None]


class Compilation:
    """A script on its way to a program.

    Args:
        source: The script.
        builtins: What it may call besides its own functions.
        then: Called once, in another thread, with the code or with what is wrong; not at all if it is cancelled before.

    Attributes:
        fault: An error of the compiler itself.
    """

    def __init__(self, source: str, builtins: Mapping[str, Builtin], then: Then) -> None:
        self.source, self.builtins, self._then = source, builtins, then
        self.cancelled = False
        self.fault: Exception | None = None
        self._over = threading.Event()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.cancelled = True
        self.source = ""

    def finish(self, ask: Callable[[Compilation], Code | Refusal]) -> None:
        """Have it compiled, and hand over what came of it."""
        try:
            answer = ("", 1, 1) if self.cancelled else ask(self)
            if self.cancelled:
                return
            if isinstance(answer, Code):
                self._then(answer, None)
            else:
                reason, line, column = answer
                self._then(None, ScriptSyntaxError(reason, line=line, column=column))
        except Exception as error:
            self.fault = error
        finally:
            self._over.set()

    def join(self) -> None:
        """Wait until it is over."""
        self._over.wait()


class Compiler:
    """The process that compiles, and a thread that waits for its answers; both begin with the first script.

    Args:
        seconds: Of the processor's time that one script may take.
        memory: Bytes that the process may need, Python and all.
    """

    def __init__(self, seconds: int = SECONDS, memory: int = MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._waiting: queue.SimpleQueue[Compilation] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._told: Mapping[str, Builtin] | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def compile(self, source: str, builtins: Mapping[str, Builtin], then: Then) -> Compilation:
        """Compile a script beside all that the caller does; it returns at once."""
        compilation = Compilation(source, builtins, then)
        self._waiting.put(compilation)
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="simbridge-compilation", daemon=True)
                self._thread.start()
        return compilation

    def _run(self) -> None:
        while True:
            self._waiting.get().finish(self._ask)

    def _ask(self, compilation: Compilation) -> Code | Refusal:
        connection = self._connected()
        try:
            connection.send((compilation.source, self._news(compilation.builtins)))
            while not connection.poll(_PATIENCE):
                if compilation.cancelled:
                    self._end()
                    return "", 1, 1
            answer: Code | Refusal = connection.recv()
            return answer
        except (EOFError, OSError):
            self._end()
            reason = f"it takes more than {self._seconds} s or {self._memory >> 20} MiB to be compiled; split it"
            return reason, 1, 1

    def _news(self, builtins: Mapping[str, Builtin]) -> Mapping[str, Builtin] | None:
        """What the process must be told of built-in functions: nothing when they are those of the last script."""
        if builtins is self._told:
            return None
        self._told = builtins
        return builtins

    def _connected(self) -> Connection:
        if self._connection is None:
            self._told = None
            self._connection, its = Pipe()
            with its:
                arguments = [str(number) for number in (its.fileno(), self._seconds, self._memory)]
                command = [sys.executable, "-m", worker.__name__, *arguments]
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
        return self._connection

    def _end(self) -> None:
        """End the process; the next script gets another one."""
        assert self._process is not None and self._connection is not None
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._connection = None
