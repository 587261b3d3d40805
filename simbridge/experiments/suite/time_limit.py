"""A limit for calls that do not come back."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# How long a block may take beyond the time of its calls before it is interrupted, s: what is done
# between the calls takes time, too, on a busy computer above all.
GRACE_S = 10.0


class CallTimeout(Exception):  # its name is the kind of the failure in the tables
    """A call of a solver was interrupted because it did not come back."""


@contextlib.contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Interrupt the block some time after it has used up its time.

    A solver that is slow is not interrupted: its time is checked between its calls. This is for one
    that never returns. What is within a library's own machine code is interrupted when it returns
    to Python. Signals arrive in the main thread alone: in any other, the block has no limit.

    Args:
        seconds: The time of the block's calls, s; infinite for no limit.

    Raises:
        CallTimeout: Within the block, from whatever is running then.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or seconds == float("inf"):
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise CallTimeout(f"no answer within {seconds:.3g} s")

    earlier_handler = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier_handler)
