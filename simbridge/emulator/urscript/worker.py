"""The process that compiles scripts, so that none of them takes time or memory from the controller that runs beside.

Started by `compilation` with the number of the file descriptor on which it is asked, the processor's time for one
script in s, and the bytes of memory for all that the process needs.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.builtin import Builtin
from simbridge.emulator.urscript.compiler import Code, compile_script

Refusal = tuple[str, int, int]  # why there is no program, the script's line and column


def answer(source: str, builtins: Mapping[str, Builtin]) -> Code | Refusal:
    """The compiled script, or why there is none."""
    try:
        return compile_script(source, builtins)
    except ScriptSyntaxError as error:
        return error.reason, error.line, error.column
    except MemoryError:
        return "it needs too much memory to be compiled; split it", 1, 1


def main(connection: Connection, seconds: int, memory: int) -> None:
    """Answer until nobody asks any more. A script that takes too long ends the process."""
    # Ctrl-C in a terminal is for the controller, which then asks no more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    builtins: Mapping[str, Builtin] = {}
    while True:
        try:
            source, news = connection.recv()
            builtins = builtins if news is None else news
            spent = resource.getrusage(resource.RUSAGE_SELF)
            end = int(spent.ru_utime + spent.ru_stime) + seconds
            resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
            connection.send(answer(source, builtins))
        except (EOFError, OSError):
            return


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))
