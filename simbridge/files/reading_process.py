"""Both ends of a child process that reads a user's file within limits of time, memory and output.

Some files are read by libraries that a hostile file can crash, fill with memory or occupy for ever.
They run in a process of their own, which answers requests one after another; whatever ends it
becomes a reason for a refusal. Of the package it imports only `lifeline`, so that the child starts
quickly.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from simbridge.lifeline import end_with_parent, lifeline_environment

# `python -m` searches the working directory first: this one holds the package, and nothing that
# shadows a library.
PACKAGE_ROOT = Path(__file__).resolve().parents[2]

MIB = 1 << 20
# A child that waits instead of computing, on a network drive for example, is ended after this
# multiple of its CPU time.
WALL_FACTOR = 6
# Frames on both pipes begin with their length in bytes.
LENGTH = struct.Struct("<Q")
# First byte of an answer.
ANSWERED = b"+"
OUT_OF_MEMORY = b"m"
FAILED = b"!"


@dataclass(frozen=True)
class Limits:
    """Limits of a child for one answer.

    Attributes:
        cpu: Computing time, s.
        memory: Address space, bytes.
        output: Length of the answer, bytes.
    """

    cpu: int
    memory: int
    output: int


class ReadingFailed(Exception):
    """A child gave no answer; the message is a clause that says why."""


class ReadingProcess:
    """The parent's end: starts the child at the first request, and again after it has ended.

    Args:
        module: The child's main module, which calls `serve`.
        limits: Limits on what each answer may use.
    """

    def __init__(self, module: str, limits: Limits) -> None:
        self._module = module
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ReadingProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, request: bytes) -> bytes:
        """Return the child's answer to a request.

        Raises:
            ReadingFailed: There is no answer, because of a limit, or because the child ended.
        """
        process = self._process or self._start()
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None

        # The child is ended if it takes too long, to answer or to end.
        expired = threading.Event()

        def end_waiting() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(WALL_FACTOR * self._limits.cpu, end_waiting)
        timer.daemon = True
        timer.start()
        try:
            # If the child has ended, its pipe is broken: then there is no answer, either.
            with contextlib.suppress(BrokenPipeError):
                write_frame(process.stdin, request)
            # The first byte of an answer says whether reading succeeded.
            answer = read_frame(process.stdout, self._limits.output + 1)
            # Without an answer the child has ended, or is ended by the timer.
            status = process.wait() if answer is None else 0
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()

        if answer is None:
            self.close()
            raise ReadingFailed(self._describe_end(status, expired.is_set()))

        kind = answer[:1]
        content = answer[1:]
        if kind == OUT_OF_MEMORY:
            raise ReadingFailed(self._describe_memory())
        if kind == FAILED:
            raise ReadingFailed(f"it cannot be read ({content.decode()})")
        return content

    def close(self) -> None:
        """End the child, if it runs."""
        process = self._process
        self._process = None
        if process is None:
            return

        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the child."""
        return subprocess.Popen(
            [sys.executable, "-m", self._module, json.dumps(asdict(self._limits))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What a library prints about a file may quote it.
            stderr=subprocess.DEVNULL,
            cwd=PACKAGE_ROOT,
            # Ctrl-C reaches only the parent, which then ends the child.
            start_new_session=True,
            # Threads of linear algebra reserve memory that would count against the limit.
            env={
                **os.environ,
                **lifeline_environment(),
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            },
            bufsize=0,
        )

    def _describe_end(self, status: int, expired: bool) -> str:
        """Return why the child ended, as a clause.

        Args:
            status: Exit status of the process; if negative, the signal that ended it.
            expired: Whether it took too long.
        """
        limits = self._limits
        if expired:
            return f"reading it took more than {WALL_FACTOR * limits.cpu} s"
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"reading it takes more than {limits.cpu} s of CPU time"
        if status < 0:
            return f"it crashed the library that reads it ({signal.Signals(-status).name})"
        return "the process that reads it ended without a result"

    def _describe_memory(self) -> str:
        return f"reading it takes more than {self._limits.memory // MIB} MiB of memory"


def write_frame(pipe: IO[bytes], content: bytes) -> None:
    """Write one frame to an unbuffered pipe."""
    rest = memoryview(LENGTH.pack(len(content)) + content)
    while rest:
        rest = rest[pipe.write(rest) :]


def read_frame(pipe: IO[bytes], largest: int) -> bytes | None:
    """Read one frame of an unbuffered pipe.

    Returns:
        None if the pipe ends before the frame does, or the frame is longer than `largest` bytes.
    """
    head = _read_exactly(pipe, LENGTH.size)
    if head is None:
        return None
    (length,) = LENGTH.unpack(head)
    return _read_exactly(pipe, length) if length <= largest else None


def _read_exactly(pipe: IO[bytes], count: int) -> bytes | None:
    """Read bytes of an unbuffered pipe; None if it ends before."""
    content = bytearray()
    while len(content) < count:
        piece = pipe.read(min(count - len(content), MIB))
        if not piece:
            return None
        content += piece
    return bytes(content)


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer requests, in the child, until the parent closes its pipe or ends.

    Args:
        answer: Returns the answer to a request. What it raises becomes a `ReadingFailed` that names
            only the kind of error, since its text may quote the file.
    """
    end_with_parent()
    limits = Limits(**json.loads(sys.argv[1]))
    with open(0, "rb", buffering=0) as requests, open(os.dup(1), "wb", buffering=0) as answers:
        # What a library prints must not become a part of an answer.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        # No core dump, and no file that grows.
        _set_limit(resource.RLIMIT_CORE, 0)
        _set_limit(resource.RLIMIT_FSIZE, 0)
        _set_limit(resource.RLIMIT_AS, limits.memory)

        while True:
            request = read_frame(requests, sys.maxsize)
            if request is None:
                return
            _limit_computing_time(limits.cpu)
            reply = _answer_within_limits(answer, request, limits)
            write_frame(answers, reply)


def _answer_within_limits(
    answer: Callable[[bytes], bytes], request: bytes, limits: Limits
) -> bytes:
    """Return the frame that answers a request: its first byte tells how it went."""
    try:
        content = answer(request)
    except MemoryError:
        return OUT_OF_MEMORY
    except Exception as error:
        return FAILED + type(error).__name__.encode()
    if len(content) > limits.output:
        return FAILED + f"its content exceeds {limits.output // MIB} MiB".encode()
    return ANSWERED + content


def _limit_computing_time(seconds: int) -> None:
    """Let the system end this process when it has computed for so long from now on."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _set_limit(resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime) + seconds)


def _set_limit(kind: int, value: int) -> None:
    """Set a limit of this process, or a narrower one that the user has set."""
    _, hard = resource.getrlimit(kind)
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (soft, hard))
