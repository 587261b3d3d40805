"""Processes that end with the process that started them, however that one ends.

A parent keeps a pipe open, its lifeline, for as long as it lives. A child opens the pipe's reading
end and asks the kernel for a signal when it breaks: when the last writer, the parent, has gone. The
kernel sends the signal itself, so it also ends a process that is busy in compiled code and holds
Python's global interpreter lock, in which no thread of its own could run. PR_SET_PDEATHSIG would
follow the thread that started the process, not its process.

The parent starts a child with the variables of `lifeline_environment`; the child calls
`end_with_parent` first of all. docs/internals.md lists the processes. Linux only: elsewhere a
child outlives a parent that is killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading

# The environment variable by which a child finds its parent's pipe: process id and descriptor,
# "4711:5".
VARIABLE = "SIMBRIDGE_LIFELINE"


class _Lifeline:
    """The pipe of this process, made when the first child needs it."""

    def __init__(self) -> None:
        # Descriptors of the reading and the writing end.
        self._ends: tuple[int, int] | None = None
        self._opening = threading.Lock()

    def reading_end(self) -> int:
        """Return the descriptor that a child opens anew as /proc/PID/fd/NUMBER."""
        with self._opening:
            if self._ends is None:
                self._ends = os.pipe()
            return self._ends[0]

    def forget(self) -> None:
        """Let go of the pipe of the process that this one was forked from.

        It must break when that one ends.
        """
        self._opening = threading.Lock()
        if self._ends is not None:
            os.close(self._ends[0])
            os.close(self._ends[1])
            self._ends = None


_own_pipe = _Lifeline()
os.register_at_fork(after_in_child=_own_pipe.forget)


def lifeline_environment() -> dict[str, str]:
    """Return the variables that a child needs in its environment for `end_with_parent`."""
    return {VARIABLE: f"{os.getpid()}:{_own_pipe.reading_end()}"}


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when the process that started it has gone.

    If it has gone already, the signal is sent at once. Without effect in a process that was started
    without `lifeline_environment`, such as by a user's shell.

    Args:
        number: The signal: SIGKILL, or for a process that must finish something first, a signal
            that it handles.
    """
    # Remove the variable, so that children of this process do not inherit it: they have a lifeline
    # of their own, or none.
    pipe_name = os.environ.pop(VARIABLE, "")
    if not pipe_name or sys.platform != "linux":
        return
    parent, descriptor = (int(part) for part in pipe_name.split(":"))

    try:
        # The pipe is opened anew, not inherited: the signal belongs to an open file, and each child
        # needs an open file of its own.
        pipe = os.open(f"/proc/{parent}/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        pipe = -1

    # Check the parent only after the pipe was opened: if it still lives, the pipe is its own. If it
    # has gone, its process id may have been that of another process, whose pipe was opened.
    if pipe < 0 or os.getppid() != parent:
        os.kill(os.getpid(), number)
        return

    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, number)
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if _is_broken(pipe):
        os.kill(os.getpid(), number)


def _is_broken(pipe: int) -> bool:
    """Return whether the parent went before the signal was asked for."""
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False
