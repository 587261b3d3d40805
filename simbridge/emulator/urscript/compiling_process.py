"""The process that compiles scripts: `compilation.py` starts it, and talks to it by a pipe.

It gets a script, with the built-in functions if they have changed, and answers with the code or a
refusal.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.compilation import CompilationRefusal
from simbridge.emulator.urscript.compiler import Code, compile_script
from simbridge.emulator.urscript.functions import Builtin
from simbridge.lifeline import end_with_parent

# Scripts whose answer is kept: clients send the same script again and again.
MAX_KEPT_SCRIPTS = 8


def main(connection: Connection, seconds: int, memory: int) -> None:
    """Answer until the connection ends. A script that takes too long ends the process.

    Args:
        connection: Connection to the emulator.
        seconds: Limit of processor time for one script, s.
        memory: Limit of the process's memory, bytes.
    """
    end_with_parent()
    # Ctrl-C in a terminal is for the controller, which then closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    builtins: Mapping[str, Builtin] = {}
    # The answers to the latest scripts, the oldest first.
    answers: dict[str, Code | CompilationRefusal] = {}
    while True:
        try:
            source, changed_builtins = connection.recv()
            _raise_priority()
            if changed_builtins is not None:
                builtins = changed_builtins
                answers = {}

            _limit_time(seconds)
            if source not in answers:
                if len(answers) >= MAX_KEPT_SCRIPTS:
                    oldest = next(iter(answers))
                    answers.pop(oldest)
                answers[source] = _answer(source, builtins)
            connection.send(answers[source])
        except (EOFError, OSError):
            return


def _raise_priority() -> None:
    """Compile with real-time priority if the emulator runs with one.

    Busy clients that wait for their script must not keep it from being compiled. It is compiled, if
    more slowly, where the system refuses the priority.
    """
    if os.sched_getparam(os.getppid()).sched_priority:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def _limit_time(seconds: int) -> None:
    """Have the system end this process when it has used this much more processor time, s."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


def _answer(source: str, builtins: Mapping[str, Builtin]) -> Code | CompilationRefusal:
    """Return the compiled script, or why there is none.

    As on a controller, a script that calls a function that is missing is refused.
    """
    try:
        code = compile_script(source, builtins)
    except ScriptSyntaxError as error:
        return CompilationRefusal(error.reason, error.line, error.column)
    except MemoryError:
        return CompilationRefusal("it needs too much memory to be compiled; split it")

    if code.unknown:
        name = next(iter(code.unknown))
        line, column = code.unknown[name]
        return CompilationRefusal(f"there is no function '{name}'", line, column, unknown=name)
    return code


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))
