"""What the servo process guarantees: its priority, its watchdog, and a stop that Ctrl-C does not interrupt."""

from __future__ import annotations

import os
import signal

import pytest

from simbridge.recording.run_directory import RunDirectory
from tests.backends.trial import ProcessTrial, write_line
from tests.controllers import REALTIME, SERVO_PRIORITY

HOST = "192.0.2.7"


@pytest.mark.soak
@pytest.mark.skipif(
    not REALTIME, reason="this system refuses real-time priorities (docs/hardware.md)"
)
def test_on_one_core_at_real_time_priority_ur_rtdes_threads_have_precedence_over_the_loop(
    cb3, tmp_path
):
    core = max(os.sched_getaffinity(0))
    run = ("--robot", "ur10", "--backend", "ursim")
    with ProcessTrial(cb3, tmp_path, write_line(tmp_path), *run) as trial:
        os.sched_setaffinity(trial.pid, {core})
        trial.wait_until_streaming()
        policies = {
            int(thread): (
                os.sched_getscheduler(int(thread)),
                os.sched_getparam(int(thread)).sched_priority,
            )
            for thread in os.listdir(f"/proc/{trial.servo}/task")
        }
        assert os.sched_getaffinity(trial.servo) == {core}
        status, message = trial.wait_for_end()
    assert status == 0, message
    assert trial.summary()["outcome"] == "completed"
    assert policies.pop(trial.servo) == (os.SCHED_FIFO, SERVO_PRIORITY)
    assert policies and set(policies.values()) == {(os.SCHED_FIFO, SERVO_PRIORITY + 1)}


def test_a_second_ctrl_c_while_the_arm_is_being_stopped_leaves_no_traceback(cb3, tmp_path):
    with ProcessTrial(
        cb3, tmp_path, write_line(tmp_path), "--robot", "ur10", "--backend", "ursim"
    ) as trial:
        trial.wait_until_streaming()
        for _ in range(4):
            trial.signal(signal.SIGINT)
            trial.controller.do("state")
        tick = trial.tick()
        status, message = trial.wait_for_end()
        assert status == 130 and "nterrupted" in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert RunDirectory.open(trial.out).settings().backend.name == "ursim"
