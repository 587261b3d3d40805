"""A process with a loop, as its parent sees it."""

from __future__ import annotations

import pytest

from simbridge.backends.loop_process import LoopProcess
from simbridge.ur.errors import ServoProcessLost
from tests.backends.fake_loop import PAYLOAD

# Until the process has started, on a busy computer, s.
TIMEOUT = 60.0


@pytest.mark.slow
def test_what_came_with_an_error_is_kept():
    process = LoopProcess("tests.backends.fake_loop", "a controller")
    try:
        with pytest.raises(ServoProcessLost):
            process.events(TIMEOUT)
    finally:
        process.stop()

    assert process.last_events == [PAYLOAD]
