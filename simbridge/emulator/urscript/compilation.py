"""Compiles scripts one at a time in a separate process, so that no script takes time or memory from the controller.

Otherwise Python's lock would be held from the controller's ticks while a long script is compiled. The process has
limits of time and memory, so that a hostile script can only end this process.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Pipe

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.compiler import Code, compile_script
from simbridge.emulator.urscript.functions import Builtin
from simbridge.lifeline import end_with_parent, lifeline_environment

MAX_SECONDS = 10  # of processor time, for one script
MAX_MEMORY = 1 << 29  # bytes
MAX_KNOWN = 8  # scripts whose compilation is kept
# s until a cancelled compilation is ended. Most have finished by then, and another process takes seconds to start.
_CANCEL_INTERVAL = 2.0

# Why there is no program; line and column of the script; the function that does not exist, if that is why
Refusal = tuple[str, int, int, str]
OnCompiled = Callable[[Code | None, ScriptSyntaxError | None], None]


class Compilation:
    """A script that is being compiled, for a program that may call these built-in functions.

    Args:
        on_compiled: Called once, in another thread, with the code or the error; not called if cancelled before.

    Attributes:
        fault: A bug in the compiler itself.
    """

    def __init__(
        self, source: str, builtins: Mapping[str, Builtin], on_compiled: OnCompiled
    ) -> None:
        self.source, self.builtins, self.on_compiled = source, builtins, on_compiled
        self.cancelled = False
        self.fault: Exception | None = None
        self.finished = threading.Event()

    def cancel(self) -> None:
        """Drop the result: it is no longer needed."""
        self.cancelled = True
        self.source = ""

    def join(self) -> None:
        """Wait until it is finished."""
        self.finished.wait()


class Compiler:
    """The compiling process, and a thread that waits for its answers; both start with the first script.

    Args:
        seconds: Limit of processor time for one script, s.
        memory: Limit of the process's memory, Python included, bytes.
    """

    def __init__(self, seconds: int = MAX_SECONDS, memory: int = MAX_MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._queue: queue.SimpleQueue[Compilation] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._sent_builtins: Mapping[str, Builtin] | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def compile(
        self, source: str, builtins: Mapping[str, Builtin], on_compiled: OnCompiled
    ) -> Compilation:
        """Start to compile a script; return at once."""
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
        while True:
            compilation = self._queue.get()
            try:
                answer = None if compilation.cancelled else self._request(compilation)
                if compilation.cancelled or answer is None:
                    continue
                if isinstance(answer, Code):
                    compilation.on_compiled(answer, None)
                else:
                    reason, line, column, unknown = answer
                    refused = ScriptSyntaxError(reason, line=line, column=column, unknown=unknown)
                    compilation.on_compiled(None, refused)
            except Exception as error:
                compilation.fault = error
            finally:
                compilation.finished.set()

    def _request(self, compilation: Compilation) -> Code | Refusal | None:
        """What the process answers; None if the compilation is cancelled before."""
        connection = self._connect()
        # The built-in functions are sent only when they have changed since the last script.
        builtins = None if compilation.builtins is self._sent_builtins else compilation.builtins
        self._sent_builtins = compilation.builtins
        try:
            connection.send((compilation.source, builtins))
            while not connection.poll(_CANCEL_INTERVAL):
                if compilation.cancelled:
                    self._end_process()
                    return None
            answer: Code | Refusal = connection.recv()
            return answer
        except (EOFError, OSError):
            self._end_process()
            reason = f"it takes more than {self._seconds} s or {self._memory >> 20} MiB to be compiled; split it"
            return reason, 1, 1, ""

    def _connect(self) -> Connection:
        if self._connection is None:
            self._sent_builtins = None
            self._connection, remote = Pipe()
            with remote:
                arguments = [
                    str(number) for number in (remote.fileno(), self._seconds, self._memory)
                ]
                command = [sys.executable, "-m", __name__, *arguments]
                self._process = subprocess.Popen(
                    command,
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


# In the compiling process


def _answer(source: str, builtins: Mapping[str, Builtin]) -> Code | Refusal:
    """The compiled script, or why there is none: as on a controller, also where it calls a function that is missing."""
    try:
        code = compile_script(source, builtins)
    except ScriptSyntaxError as error:
        return error.reason, error.line, error.column, ""
    except MemoryError:
        return "it needs too much memory to be compiled; split it", 1, 1, ""
    for name, (line, column) in code.unknown.items():
        return f"there is no function '{name}'", line, column, name
    return code


def main(connection: Connection, seconds: int, memory: int) -> None:
    """Answer until the connection ends. A script that takes too long ends the process."""
    end_with_parent()
    # Ctrl-C in a terminal is for the controller, which then closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    builtins: Mapping[str, Builtin] = {}
    # Clients send the same script again and again; the latest are kept.
    known: dict[str, Code | Refusal] = {}
    while True:
        try:
            source, changed = connection.recv()
            if os.sched_getparam(os.getppid()).sched_priority:
                # Busy clients that wait for their script must not keep it from being compiled. It is compiled, if more
                # slowly, where the system refuses the priority.
                with contextlib.suppress(OSError):
                    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            if changed is not None:
                builtins, known = changed, {}
            spent = resource.getrusage(resource.RUSAGE_SELF)
            end = int(spent.ru_utime + spent.ru_stime) + seconds
            resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
            if source not in known:
                if len(known) >= MAX_KNOWN:
                    known.pop(next(iter(known)))
                known[source] = _answer(source, builtins)
            connection.send(known[source])
        except (EOFError, OSError):
            return


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))
