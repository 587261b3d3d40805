"""Measures by which a process with a loop keeps its deadlines and opens no new connection."""

from __future__ import annotations

import contextlib
import gc
import resource
from collections.abc import Iterator

from simbridge.scheduling import (
    ask_for_exact_timers,
    ask_for_priority,
    ask_for_short_slices,
    threads,
)

# The limit on open files under which none can be opened: the standard streams. Not zero, because
# poll() watches no more descriptors than the limit.
NO_NEW_FILES = 3


def minimize_latency(priority: int) -> list[str]:
    """Disable garbage collection, let timers be exact, and request scheduling priority.

    The calling thread is the one that keeps the deadlines.

    Args:
        priority: Real-time priority; 0 for the default scheduler.

    Returns:
        Notes on what the system refused.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    ask_for_exact_timers()

    # Threads are listed by reading a directory.
    with allow_new_files():
        for thread in threads():
            ask_for_short_slices(thread)
        if not priority:
            return []
        return ask_for_priority(priority)


def forbid_new_files() -> None:
    """Let this process open no file and no socket from now on; open ones stay open."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (NO_NEW_FILES, hard_limit))


@contextlib.contextmanager
def allow_new_files() -> Iterator[None]:
    """Let this process open files within the block, although that was forbidden."""
    limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))
