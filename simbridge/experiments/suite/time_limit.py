"""Interrupts calls of solvers that do not return."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# Time that a block may take beyond the time of its calls before it is interrupted, s: work between
# the calls takes time, too, especially on a busy computer.
GRACE_S = 10.0


class CallTimeout(Exception):
    """A call of a solver was interrupted because it did not return.

    The tables show the name of this class as the kind of the failure.
    """


@contextlib.contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Interrupt the block some time after it has used up its time.

    A slow solver is not interrupted: its time is checked between its calls. This is for a solver
    that never returns. A library's machine code is interrupted only when it returns to Python.
    Signals arrive only in the main thread: in any other thread the block has no limit.

    Args:
        seconds: Time for the calls in the block, s; infinite for no limit.

    Raises:
        CallTimeout: The time is over; it is raised within the block, by the code that runs then.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or seconds == float("inf"):
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        """Handle the alarm signal."""
        raise CallTimeout(f"no answer within {seconds:.3g} s")

    earlier_handler = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier_handler)
