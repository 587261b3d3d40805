"""Scripts as clients send them: a stream of text cut into programs, and the queue of secondary programs.

A secondary program (`sec name(): ... end`) runs alongside the main program. It can neither move the arm nor wait.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Callable, Mapping
from inspect import isgeneratorfunction
from typing import Any, Protocol

from simbridge.emulator.errors import ProtocolViolation, RuntimeFault

MAX_SCRIPT = 1 << 20  # bytes
# Limits of secondary programs
MAX_QUEUED = 16
MAX_CHARACTERS = 1 << 16
MAX_DURATION = 1.0  # s of controller time
_ALLOWED = ("socket_", "get_inverse_kin", "is_within_safety_limits")  # beginnings of names
# Functions that do not take time, but move the arm, or end its motion
_MOVING = frozenset(
    {"end_force_mode", "end_freedrive_mode", "end_teach_mode", "force_mode", "freedrive_mode",
     "freedrive_mode_no_incorrect_payload_check", "teach_mode"}
)  # fmt: skip

# What may hide a keyword, then what opens a block and what closes one.
_TOKENS = re.compile(
    r'"[^"]*"?|#.*|\b(?P<opens>(?:def|sec|thread)(?=\s+\w)|(?:if|while)\b)|\b(?P<ends>end)\b'
)
_SECONDARY = re.compile(r"(?:\s|;|[#$].*\n)*sec\s+\w")
_NAME = re.compile(r"(?:\s|;|[#$].*\n)*(?:def|sec)\s+(\w+)")


def is_secondary(program: str) -> bool:
    """Whether a program is a secondary one: its first word is `sec`."""
    return _SECONDARY.match(program) is not None


def program_name(program: str) -> str:
    """The name of a program's first function: "move" for `def move(): ... end`; "" for loose statements."""
    first = _NAME.match(program)
    return first[1] if first else ""


class ScriptBuffer:
    """Cuts a stream of text into programs: a block from `def` or `sec` to its `end`, or a single line.

    A program is complete when its last line has ended with a newline, as on a controller.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._lines: list[str] = []
        self._size = 0
        self._depth = 0

    def receive(self, data: bytes) -> list[str]:
        """The programs that are now complete.

        Raises:
            ProtocolViolation: A program is longer than 1 MiB.
        """
        programs = []
        searched = len(self._rest)
        self._rest += data
        end = self._rest.rfind(b"\n", searched)
        if end >= 0:
            complete = self._rest[:end].decode("utf-8", errors="replace")
            del self._rest[: end + 1]
            programs = [
                program
                for line in complete.split("\n")
                if (program := self._add_line(line.rstrip("\r")))
            ]
        if self._size + len(self._rest) > MAX_SCRIPT:
            raise ProtocolViolation(
                "script", f"it sent a program of more than {MAX_SCRIPT} bytes without its end"
            )
        return programs

    @property
    def rest(self) -> bytes:
        """What has arrived of a program that is not complete yet."""
        return "".join(f"{line}\n" for line in self._lines).encode() + self._rest

    def _add_line(self, line: str) -> str:
        """The program that this line completes, or ""."""
        self._lines.append(line)
        self._size += len(line) + 1
        for token in _TOKENS.finditer(line):
            if token["opens"]:
                self._depth += 1
            elif token["ends"]:
                self._depth -= 1
        if self._depth > 0:
            return ""
        program = "\n".join(self._lines) + "\n"
        has_code = any(text.strip() and not text.strip().startswith("#") for text in self._lines)
        self._lines, self._size, self._depth = [], 0, 0
        return program if has_code else ""


class Program(Protocol):
    """A program that advances with every tick: `running` until it ends, `ready` once it has been compiled."""

    running: bool
    ready: bool

    @property
    def line(self) -> int: ...

    def tick(self) -> None: ...

    def stop(self) -> None: ...


class SecondaryPrograms:
    """Runs secondary programs one at a time, in the order of arrival.

    Args:
        start: Makes a program from a script.
        on_fault: Called with a sentence about a program that cannot be run.
    """

    def __init__(
        self, start: Callable[[str], Program], on_fault: Callable[[str], None], period: float
    ) -> None:
        self._start, self._on_fault = start, on_fault
        self._queue: deque[str] = deque()
        self._program: Program | None = None
        self._max_ticks = round(MAX_DURATION / period)
        self._ticks = 0

    def add(self, source: str) -> None:
        if len(source) > MAX_CHARACTERS:
            self._on_fault(
                f"A secondary program has {len(source)} characters, at most {MAX_CHARACTERS} are accepted."
            )
        elif len(self._queue) >= MAX_QUEUED:
            self._on_fault(
                f"A secondary program was not run: {MAX_QUEUED} others are waiting already."
            )
        else:
            self._queue.append(source)

    def tick(self) -> None:
        if self._program is None and self._queue:
            self._program, self._ticks = self._start(self._queue.popleft()), 0
        program = self._program
        if program is None:
            return
        self._ticks += program.ready
        program.tick()
        if program.running and self._ticks > self._max_ticks:
            program.stop()
            self._on_fault(
                f"A secondary program was ended: it must not take time, and ran for {MAX_DURATION:g} s."
            )
        if not program.running:
            self._program = None


def without_blocking(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The built-in functions as a secondary program may call them: those that block, or move the arm, raise a fault.

    Sockets are allowed, as on a controller: programs that control real arms use them so. Waiting for long ends them.
    So is inverse kinematics, which blocks only where it takes more than its share of a tick.
    """
    return {
        name: _refuse_blocking(name, function)
        if name in _MOVING or (isgeneratorfunction(function) and not name.startswith(_ALLOWED))
        else function
        for name, function in functions.items()
    }


def _refuse_blocking(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # A popup blocks only when asked to.
        if name == "popup":
            try:
                next(function(*arguments, **named))
            except StopIteration as end:
                return end.value
        must_not = "move the arm" if name in _MOVING else "take time"
        raise RuntimeFault(f"A secondary program must not {must_not}, and {name} does.")

    return call
