"""Threads with deadlines: what is asked of the system, as the system itself shows it."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
import threading

import pytest

from simbridge.scheduling import TIMER_SLACK_NS, ask_for_exact_timers

# Option of prctl that returns the timer slack of the calling thread, ns.
PR_GET_TIMERSLACK = 30

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="Linux has a timer slack")


def timer_slack():
    """Return the timer slack of the calling thread, ns."""
    return ctypes.CDLL(None).prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)


def test_exact_timers_are_of_the_calling_thread_alone():
    before = timer_slack()
    slacks = []

    def ask():
        assert ask_for_exact_timers()
        slacks.append(timer_slack())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()

    assert slacks == [TIMER_SLACK_NS]
    assert timer_slack() == before


def test_a_process_with_a_loop_has_exact_timers():
    program = (
        "import ctypes; from simbridge.backends.low_latency import minimize_latency; "
        f"minimize_latency(0); print(ctypes.CDLL(None).prctl({PR_GET_TIMERSLACK}, 0, 0, 0, 0))"
    )

    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert int(shown.stdout) == TIMER_SLACK_NS
