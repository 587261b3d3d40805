"""Signals that end a run as Ctrl-C does: the arm is stopped, and what was recorded is evaluated."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TypeGuard

from simbridge.errors import SimbridgeError

# Signal -> the cause of an end, as in `ended_by` of summary.json; "interrupted" for any other.
SIGNAL_CAUSES = {signal.SIGTERM: "terminated", signal.SIGHUP: "hangup"}
# Signal -> what it did to a run, as in "The run was ..."; "interrupted" for any other.
SIGNAL_DESCRIPTIONS = {
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "ended by SIGHUP (usually a closed terminal)",
}


class SignalReceived(KeyboardInterrupt):
    """A signal that ends the program was received.

    Attributes:
        number: Number of the signal.
        cause: Cause of the end, as in `ended_by` of summary.json.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.cause = SIGNAL_CAUSES.get(signal.Signals(number), "interrupted")
        super().__init__(signal.Signals(number).name)


def signal_number(error: KeyboardInterrupt) -> int:
    """Return the number of the signal that was received."""
    return error.number if isinstance(error, SignalReceived) else signal.SIGINT


def describe_signal(error: KeyboardInterrupt) -> str:
    """Describe the signal that ended a run, as in "The run was ..."."""
    return SIGNAL_DESCRIPTIONS.get(signal.Signals(signal_number(error)), "interrupted")


def is_interrupt(error: BaseException | None) -> TypeGuard[KeyboardInterrupt]:
    """Return whether an error is a signal that was not turned into an error of simbridge's yet."""
    return isinstance(error, KeyboardInterrupt) and not isinstance(error, SimbridgeError)


@dataclass
class SignalDeferral:
    """Keeps whether signals have to wait, and which one came meanwhile.

    There is one for the process: signals arrive in the main thread alone.

    Attributes:
        is_active: Whether a block of `defer_signals` is under way.
        number: The last signal that came within it; 0 for none.
    """

    is_active: bool = False
    number: int = 0


_deferral = SignalDeferral()


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Defer the signals that `end_on_signals` takes until the block ends (main thread only).

    If blocks are nested, the deferral ends with the first of them that ends.

    Raises:
        SignalReceived: At the end of the block: a signal came within it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    _deferral.is_active = True
    try:
        yield
    finally:
        _deferral.is_active = False
        number = _deferral.number
        _deferral.number = 0
        if number:
            raise SignalReceived(number)


def heed_interrupts() -> None:
    """Let SIGINT end the program even where it was started with SIGINT ignored.

    A shell starts its background jobs (`simbridge teleop network &` in a script) like that. A
    program that moves an arm must be stoppable: Python then gets its own handler back.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def end_on_signals(*more: signal.Signals) -> Iterator[None]:
    """End the block by a `SignalReceived` on SIGINT, SIGTERM, SIGHUP and others.

    A signal that the program handles itself is left to it. Only the main thread receives signals:
    in another thread the block is left as it is.

    Args:
        more: The other signals that end the block.

    Raises:
        SignalReceived: A signal came.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *more)
    if threading.current_thread() is not threading.main_thread():
        numbers = ()

    def end_block(number: int, _frame: FrameType | None) -> None:
        if _deferral.is_active:
            _deferral.number = number
        else:
            raise SignalReceived(number)

    # Replace Python's own handlers, and no others.
    default_handlers = (signal.SIG_DFL, signal.default_int_handler)
    replaced_handlers = {}
    for number in numbers:
        handler = signal.getsignal(number)
        if handler in default_handlers:
            replaced_handlers[number] = handler
            signal.signal(number, end_block)

    try:
        yield
    finally:
        for number, handler in replaced_handlers.items():
            signal.signal(number, handler)
