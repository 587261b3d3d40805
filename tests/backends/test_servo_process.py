"""The servo process has its priority, and Ctrl-C does not interrupt its stop."""

from __future__ import annotations

import os
import signal

import pytest

from simbridge.recording.run_directory import RunDirectory
from tests.backends.trial import ProcessTrial, write_line
from tests.controllers import REALTIME, SERVO_PRIORITY
from tests.optional_packages import needs_ur_rtde

ON_CB3 = ("--robot", "ur10", "--backend", "ursim")


def read_scheduling(thread):
    """Return the scheduling policy and the priority of a thread."""
    return os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority


@pytest.mark.soak
@needs_ur_rtde
@pytest.mark.skipif(
    not REALTIME, reason="this system refuses real-time priorities (docs/hardware.md)"
)
def test_on_one_core_the_threads_of_ur_rtde_precede_the_loop(cb3, tmp_path):
    core = max(os.sched_getaffinity(0))

    with ProcessTrial(cb3, tmp_path, write_line(tmp_path), *ON_CB3) as trial:
        os.sched_setaffinity(trial.pid, {core})
        trial.wait_until_streaming()
        threads = [int(thread) for thread in os.listdir(f"/proc/{trial.servo}/task")]
        scheduling = {thread: read_scheduling(thread) for thread in threads}
        assert os.sched_getaffinity(trial.servo) == {core}
        status, message = trial.wait_for_end()

    assert status == 0, message
    assert trial.summary()["outcome"] == "completed"
    assert scheduling.pop(trial.servo) == (os.SCHED_FIFO, SERVO_PRIORITY)
    assert scheduling
    assert set(scheduling.values()) == {(os.SCHED_FIFO, SERVO_PRIORITY + 1)}


def test_a_second_ctrl_c_during_the_stop_leaves_no_traceback(cb3, tmp_path):
    with ProcessTrial(cb3, tmp_path, write_line(tmp_path), *ON_CB3) as trial:
        trial.wait_until_streaming()

        for _ in range(4):
            trial.signal(signal.SIGINT)
            trial.controller.do("state")
        tick = trial.tick()
        status, message = trial.wait_for_end()

        assert status == 130
        assert "nterrupted" in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert RunDirectory.open(trial.out).settings().backend.name == "ursim"
