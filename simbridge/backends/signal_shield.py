"""Shield what must be done whole from the signals that end the program."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

DEFERRED_SIGNALS: tuple[int, ...] = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGTSTP,
)


@contextlib.contextmanager
def shield_from_signals() -> Iterator[None]:
    """Defer signals that end the program until the block ends (main thread only).

    The first signal that came within the block is raised again at its end. In other threads this
    does nothing: the system gives signals to the main thread. Ctrl+Z is deferred if the program
    handles it; otherwise it stops the process as usual.
    """
    pending: list[int] = []
    handlers: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in DEFERRED_SIGNALS:
                handler = signal.getsignal(number)
                ends_program = handler is signal.SIG_DFL and number != signal.SIGTSTP
                if callable(handler) or ends_program:
                    handlers[number] = handler
                    signal.signal(number, lambda received, _frame: pending.append(received))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])
