"""Compiles scripts one at a time in a separate process, so that none takes the controller's time.

Otherwise compiling a long script would keep Python's lock from the controller's ticks. The process
(`compiling_process.py`) has limits of time and memory, so that a hostile script can only end this
process.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Pipe
from typing import NamedTuple

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.compiler import Code
from simbridge.emulator.urscript.functions import Builtin
from simbridge.lifeline import lifeline_environment

# Processor time for one script, s.
MAX_SECONDS = 10
# Memory of the compiling process, bytes.
MAX_MEMORY = 1 << 29
# Time until a cancelled compilation is ended, s. Most have finished by then, and another process
# takes seconds to start.
CANCEL_INTERVAL_S = 2.0

PROCESS_MODULE = "simbridge.emulator.urscript.compiling_process"


class CompilationRefusal(NamedTuple):
    """The reason why the compiling process has no code for a script.

    Attributes:
        reason: A clause, for ScriptSyntaxError.
        line: Line of the script, from 1.
        column: Column of the script, from 1.
        unknown: The function that does not exist, if that is why, or "".
    """

    reason: str
    line: int = 1
    column: int = 1
    unknown: str = ""


OnCompiled = Callable[[Code | None, ScriptSyntaxError | None], None]


class Compilation:
    """A script that is being compiled, for a program that may call these built-in functions.

    Args:
        source: URScript.
        builtins: The built-in functions that it may call.
        on_compiled: Called once, in another thread, with the code or the error; not called if the
            compilation is cancelled before.

    Attributes:
        source: URScript; "" when it was cancelled.
        builtins: The built-in functions that it may call.
        on_compiled: Called as described above.
        cancelled: Whether the result is no longer needed.
        fault: A bug in the compiler itself.
        finished: Set when the result was handed over, or dropped.
    """

    def __init__(
        self, source: str, builtins: Mapping[str, Builtin], on_compiled: OnCompiled
    ) -> None:
        self.source = source
        self.builtins = builtins
        self.on_compiled = on_compiled
        self.cancelled = False
        self.fault: Exception | None = None
        self.finished = threading.Event()

    def cancel(self) -> None:
        """Drop the result, which is no longer needed."""
        self.cancelled = True
        self.source = ""

    def join(self) -> None:
        """Wait until it is finished."""
        self.finished.wait()


class Compiler:
    """The compiling process, and a thread that waits for its answers.

    Both start with the first script.

    Args:
        seconds: Limit of processor time for one script, s.
        memory: Limit of the process's memory, Python included, bytes.
    """

    def __init__(self, seconds: int = MAX_SECONDS, memory: int = MAX_MEMORY) -> None:
        self._seconds = seconds
        self._memory = memory
        self._queue: queue.SimpleQueue[Compilation] = queue.SimpleQueue()

        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        # The built-in functions that the process was sent last.
        self._sent_builtins: Mapping[str, Builtin] | None = None

        self._thread: threading.Thread | None = None
        # Held while the thread is started, so that two callers do not start two.
        self._starting = threading.Lock()

    def compile(
        self, source: str, builtins: Mapping[str, Builtin], on_compiled: OnCompiled
    ) -> Compilation:
        """Start to compile a script; return at once. See `Compilation`."""
        compilation = Compilation(source, builtins, on_compiled)
        self._queue.put(compilation)

        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="simbridge-compilation", daemon=True
                )
                self._thread.start()
        return compilation

    def _run(self) -> None:
        """Compile one script after the other, in the thread."""
        while True:
            compilation = self._queue.get()
            try:
                self._finish(compilation)
            except Exception as error:
                compilation.fault = error
            finally:
                compilation.finished.set()

    def _finish(self, compilation: Compilation) -> None:
        """Compile a script and hand over the result, unless it is cancelled."""
        answer = None if compilation.cancelled else self._request(compilation)
        if compilation.cancelled or answer is None:
            return

        if isinstance(answer, Code):
            compilation.on_compiled(answer, None)
            return
        error = ScriptSyntaxError(
            answer.reason, line=answer.line, column=answer.column, unknown=answer.unknown
        )
        compilation.on_compiled(None, error)

    def _request(self, compilation: Compilation) -> Code | CompilationRefusal | None:
        """Return the answer of the process; None if the compilation is cancelled before."""
        connection = self._connect()
        # The built-in functions are sent only when they have changed since the last script.
        is_known = compilation.builtins is self._sent_builtins
        self._sent_builtins = compilation.builtins

        try:
            connection.send((compilation.source, None if is_known else compilation.builtins))
            while not connection.poll(CANCEL_INTERVAL_S):
                if compilation.cancelled:
                    self._end_process()
                    return None
            answer: Code | CompilationRefusal = connection.recv()
            return answer
        except (EOFError, OSError):
            # The process has ended at one of its limits.
            self._end_process()
            mebibytes = self._memory >> 20
            return CompilationRefusal(
                f"it takes more than {self._seconds} s or {mebibytes} MiB to be compiled; split it"
            )

    def _connect(self) -> Connection:
        """Return the connection to the process, which is started if there is none."""
        if self._connection is None:
            self._sent_builtins = None
            self._connection, remote = Pipe()
            # The process has a copy of its end of the pipe: ours is closed.
            with remote:
                arguments = [remote.fileno(), self._seconds, self._memory]
                self._process = subprocess.Popen(
                    [sys.executable, "-m", PROCESS_MODULE, *map(str, arguments)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[remote.fileno()],
                    env={**os.environ, **lifeline_environment()},
                )
        return self._connection

    def _end_process(self) -> None:
        """End the process; the next script starts another one."""
        assert self._process is not None and self._connection is not None
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._connection = None
