"""The servo process's own promises: its priority, its watchdog."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest

from simbridge.backends.servo_process import RtdeLink
from simbridge.ur.errors import ConnectionLost
from tests.backends.fault_trial import Bench, Trial, line

HOST = "127.0.0.46"
PRIORITY = 20


def real_time_is_refused():
    """Whether this system grants no real-time priority here."""
    if (child := os.fork()) == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY + 1))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


@pytest.mark.skipif(real_time_is_refused(), reason="this system grants no real-time priority (docs/hardware.md)")
def test_on_one_core_at_real_time_priority_ur_rtdes_threads_come_before_the_loop_that_waits_for_them(tmp_path):
    core = max(os.sched_getaffinity(0))
    with Bench("ur10", "3.15", HOST) as bench:
        controller = bench.ready()
        run = ("--robot", "ur10", "--backend", "ursim", "--realtime-priority", str(PRIORITY))
        with Trial(controller, tmp_path, line(tmp_path), *run) as trial:
            os.sched_setaffinity(trial.process.pid, {core})
            trial.streaming()
            policies = {
                int(thread): (os.sched_getscheduler(int(thread)), os.sched_getparam(int(thread)).sched_priority)
                for thread in os.listdir(f"/proc/{trial.servo}/task")
            }
            assert os.sched_getaffinity(trial.servo) == {core}
            status, message = trial.end()
    assert status == 0, message
    assert trial.summary()["outcome"] == "completed"
    assert policies.pop(trial.servo) == (os.SCHED_FIFO, PRIORITY)
    assert policies and set(policies.values()) == {(os.SCHED_FIFO, PRIORITY + 1)}


def test_without_its_watchdog_nothing_is_streamed():
    link = RtdeLink.__new__(RtdeLink)
    link._config = SimpleNamespace(host=HOST)
    link._control = SimpleNamespace(setWatchdog=lambda frequency: False)
    with pytest.raises(ConnectionLost, match="watchdog") as raised:
        link.start_watchdog()
    assert raised.value.host == HOST


def test_a_second_ctrl_c_while_the_arm_is_being_stopped_leaves_no_traceback(tmp_path):
    with (
        Bench("ur10", "3.15", HOST) as bench,
        Trial(bench.ready(), tmp_path, line(tmp_path), "--robot", "ur10", "--backend", "ursim") as trial,
    ):
        trial.streaming()
        for _ in range(4):
            trial.signal(signal.SIGINT)
            trial.controller.do("state")
        tick = trial.tick()
        status, _ = trial.end()
        assert status == 130
        trial.check_nothing_is_left()
        trial.check_rest(tick)
