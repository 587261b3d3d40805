"""Secondary programs (`sec name(): ... end`): they run beside the arm's program, and neither move the arm nor wait."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from inspect import isgeneratorfunction
from typing import Any, Protocol

from simbridge.emulator.errors import RuntimeFault

MAX_WAITING = 16
MAX_CHARACTERS = 1 << 16
LONGEST = 1.0  # s of controller time


class Beside(Protocol):
    """A secondary program that runs."""

    running: bool

    @property
    def ready(self) -> bool: ...

    def tick(self) -> None: ...

    def stop(self) -> None: ...


class SecondaryPrograms:
    """Runs secondary programs one after the other, in the order in which they came.

    Args:
        start: Makes a program of a script.
        on_fault: Called with a sentence about a program that cannot be run.
        period: Of the control, s.
    """

    def __init__(self, start: Callable[[str], Beside], on_fault: Callable[[str], None], period: float) -> None:
        self._start, self._on_fault = start, on_fault
        self._waiting: deque[str] = deque()
        self._program: Beside | None = None
        self._longest = round(LONGEST / period)
        self._ticks = 0

    def add(self, source: str) -> None:
        """Run a program as soon as those before it have ended."""
        if len(source) > MAX_CHARACTERS:
            self._on_fault(f"A secondary program has {len(source)} characters, at most {MAX_CHARACTERS} are accepted.")
        elif len(self._waiting) >= MAX_WAITING:
            self._on_fault(f"A secondary program was not run: {MAX_WAITING} others are waiting already.")
        else:
            self._waiting.append(source)

    def tick(self) -> None:
        """A period further."""
        if self._program is None and self._waiting:
            self._program, self._ticks = self._start(self._waiting.popleft()), 0
        program = self._program
        if program is None:
            return
        self._ticks += program.ready
        program.tick()
        if program.running and self._ticks > self._longest:
            program.stop()
            self._on_fault(f"A secondary program was ended: it must not take time, and was at work for {LONGEST:g} s.")
        if not program.running:
            self._program = None


def without_waiting(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Built-in functions as a secondary program may call them: those that take time are faults."""
    return {
        name: _refused(name, function) if isgeneratorfunction(function) else function
        for name, function in functions.items()
    }


def _refused(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # A popup waits only for the person whom it is told to wait for.
        if name == "popup":
            try:
                next(function(*arguments, **named))
            except StopIteration as end:
                return end.value
        raise RuntimeFault(f"A secondary program must not take time, and {name} does.")

    return call
