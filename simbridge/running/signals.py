"""Signals that end a run as Ctrl-C does: the arm is stopped, and what was recorded is evaluated."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TypeGuard

from simbridge.errors import SimbridgeError

_CAUSES = {signal.SIGTERM: "terminated", signal.SIGHUP: "hangup"}
_WORDS = {
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "ended by SIGHUP (usually a closed terminal)",
}


class SignalReceived(KeyboardInterrupt):
    """A signal that ends the program was received.

    Attributes:
        number: The signal's.
        cause: As in `ended_by` of summary.json.
    """

    def __init__(self, number: int) -> None:
        self.number, self.cause = number, _CAUSES.get(signal.Signals(number), "interrupted")
        super().__init__(signal.Signals(number).name)


def number_of(error: KeyboardInterrupt) -> int:
    """The number of the signal that was received."""
    return error.number if isinstance(error, SignalReceived) else signal.SIGINT


def ended_words(error: KeyboardInterrupt) -> str:
    """What ended a run, as in "The run was ..."."""
    return _WORDS.get(signal.Signals(number_of(error)), "interrupted")


def is_interrupt(error: BaseException | None) -> TypeGuard[KeyboardInterrupt]:
    """Whether an error is Ctrl-C or another signal, not yet turned into an error of simbridge's."""
    return isinstance(error, KeyboardInterrupt) and not isinstance(error, SimbridgeError)


class uninterrupted:
    """Signals that `ended_by_signals` takes, and that come within the block, take effect at its end."""

    held, pending = False, 0

    def __enter__(self) -> None:
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            uninterrupted.held = True

    def __exit__(self, *_exception: object) -> None:
        if not self._ours:
            return
        uninterrupted.held = False
        number, uninterrupted.pending = uninterrupted.pending, 0
        if number:
            raise SignalReceived(number)


@contextlib.contextmanager
def ended_by_signals(*more: signal.Signals) -> Iterator[None]:
    """SIGINT, SIGTERM, SIGHUP and others end the block by a `SignalReceived`, where the program does not handle them.

    Only in the main thread; elsewhere Python delivers no signal.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *more)
    if threading.current_thread() is not threading.main_thread():
        numbers = ()

    def end(number: int, _frame: FrameType | None) -> None:
        if uninterrupted.held:
            uninterrupted.pending = number
        else:
            raise SignalReceived(number)

    before = {number: signal.getsignal(number) for number in numbers}
    ours = [
        number
        for number, handler in before.items()
        if handler in (signal.SIG_DFL, signal.default_int_handler)
    ]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
