"""Sessions on a controller, kept moving on a slow computer, too.

On such a computer ten steps in a row may take longer than a period. The session is then idle, by
design, and is engaged again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from simbridge.sessions.session import LiveSession, LiveStatus
from tests.patience import PATIENCE

# Between two inputs, s: shorter than the time after which an input is stale.
INPUT_INTERVAL_S = 0.05


def was_too_slow(status: LiveStatus) -> bool:
    """Whether the session is idle because ten steps in a row took longer than a period."""
    return status.state == "idle" and any(cause.kind == "solver" for cause in status.causes)


def keep_until(
    session: LiveSession, reached: Callable[[], bool], give: Callable[[], object]
) -> float:
    """Give inputs until something is reached; return for how long, s."""
    begin = time.monotonic()
    while not reached():
        status = session.status
        assert time.monotonic() < begin + PATIENCE, status
        if status.state == "idle":
            assert was_too_slow(status), status
            session.engage()
        give()
        time.sleep(INPUT_INTERVAL_S)
    return time.monotonic() - begin
