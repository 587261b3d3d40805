"""Secondary programs: their queue, and what they must not call.

A secondary program (`sec name(): ... end`) runs alongside the main program. It can neither move the
arm nor wait.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from inspect import isgeneratorfunction
from typing import Any, Protocol

from simbridge.emulator.errors import RuntimeFault

# Programs that may wait for another one to end.
MAX_QUEUED = 16
# Characters of a program.
MAX_CHARACTERS = 1 << 16
# Longest duration of a program, s of controller time.
MAX_DURATION = 1.0

# Functions that may block, by the beginnings of their names.
_ALLOWED_BLOCKING = ("socket_", "get_inverse_kin", "is_within_safety_limits")
# Functions that do not take time, but move the arm, or end its motion.
_MOVING = frozenset(
    {
        "end_force_mode",
        "end_freedrive_mode",
        "end_teach_mode",
        "force_mode",
        "freedrive_mode",
        "freedrive_mode_no_incorrect_payload_check",
        "teach_mode",
    }
)


class EmulatedProgram(Protocol):
    """A program of the emulated controller, which advances with every tick.

    Attributes:
        running: True until it ends.
        ready: True once it has been compiled.
    """

    running: bool
    ready: bool

    @property
    def line(self) -> int:
        """The line that the main program is at."""
        ...

    def tick(self) -> None:
        """Run until it has nothing to do before the next tick."""
        ...

    def stop(self) -> None:
        """End it at once."""
        ...


class SecondaryPrograms:
    """Runs secondary programs one at a time, in the order of arrival.

    Args:
        start: Makes a program from a script.
        on_fault: Called with a sentence about a program that cannot be run.
        period: Duration of a tick, s.
    """

    def __init__(
        self,
        start: Callable[[str], EmulatedProgram],
        on_fault: Callable[[str], None],
        period: float,
    ) -> None:
        self._start = start
        self._on_fault = on_fault
        # Scripts that wait.
        self._queue: deque[str] = deque()
        # The program that runs, and for how many ticks.
        self._program: EmulatedProgram | None = None
        self._ticks = 0
        self._max_ticks = round(MAX_DURATION / period)

    def add(self, source: str) -> None:
        """Run a script after those before it."""
        if len(source) > MAX_CHARACTERS:
            self._on_fault(
                f"A secondary program has {len(source)} characters; at most {MAX_CHARACTERS} are "
                "accepted."
            )
        elif len(self._queue) >= MAX_QUEUED:
            self._on_fault(
                f"A secondary program was not run: {MAX_QUEUED} others are waiting already."
            )
        else:
            self._queue.append(source)

    def tick(self) -> None:
        """Run the program, or start the next one."""
        if self._program is None and self._queue:
            self._program = self._start(self._queue.popleft())
            self._ticks = 0
        program = self._program
        if program is None:
            return

        # The time that it takes to be compiled does not count.
        self._ticks += program.ready
        program.tick()
        if program.running and self._ticks > self._max_ticks:
            program.stop()
            self._on_fault(
                "A secondary program was ended: it must not take time, but it ran for "
                f"{MAX_DURATION:g} s."
            )
        if not program.running:
            self._program = None


def without_blocking(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the built-in functions as a secondary program may call them.

    Those that block, or move the arm, raise a fault. Sockets are allowed, as on a controller:
    programs that control real arms use them so. Waiting for long ends them. So is inverse
    kinematics, which blocks only where it takes more than its part of a tick.
    """
    return {
        name: function if _may_call(name, function) else _refuse_blocking(name, function)
        for name, function in functions.items()
    }


def _may_call(name: str, function: Callable[..., Any]) -> bool:
    """Return whether a secondary program may call a function."""
    if name in _MOVING:
        return False
    return name.startswith(_ALLOWED_BLOCKING) or not isgeneratorfunction(function)


def _refuse_blocking(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises a fault in the place of one that must not be called."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # A popup blocks only when asked to.
        if name == "popup":
            try:
                next(function(*arguments, **named))
            except StopIteration as end:
                return end.value
        must_not = "move the arm" if name in _MOVING else "take time"
        raise RuntimeFault(f"A secondary program must not {must_not}, but {name} does.")

    return call
