"""The one way to end a session, with a servo process and a controller that a test plays."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from simbridge.backends import ending
from simbridge.backends.backend import Ending
from simbridge.backends.control_script import COUNTER_OUTPUT, NUMBER_OUTPUT
from simbridge.backends.deferred_signals import defer_signals
from simbridge.backends.ending import end_session
from simbridge.backends.program_watch import ProgramOwner
from simbridge.backends.session_state import SessionState
from simbridge.ur.errors import ConnectionLost

HOST, N = "192.0.2.1", 6
MOVING = [0.0, 0.1, 0.0, 0.0, 0.0, 0.0]
AT_REST = {
    "safety_mode": 1,
    "robot_mode": 7,
    "runtime_state": 1,
    "actual_qd": [0.0] * N,
    "target_qd": [0.0] * N,
    NUMBER_OUTPUT: 0,
    COUNTER_OUTPUT: 0,
}


class FakeProcess:
    """A servo process that can fail in each of its steps."""

    def __init__(
        self,
        asking=lambda: None,
        stopping=lambda: None,
        program=ProgramOwner.NONE,
        reached=frozenset(SessionState),
    ):
        self.failures, self.program, self.reached = [], program, reached
        self.ask_to_stop, self.stop = asking, stopping


class FakeReader:
    """An RTDE connection that gives states, and is lost after so many."""

    def __init__(self, *_args, states=60, **changes):
        self._left, self._tick, self.changes = states, 0, changes

    def close(self):
        pass

    def wait(self, _timeout):
        if self._left == 0:
            raise ConnectionLost(HOST, 30004, "no connection")
        time.sleep(0.002)
        self._left, self._tick = self._left - 1, self._tick + 1
        return [AT_REST | {"timestamp": 0.002 * self._tick} | self.changes]


@pytest.fixture
def controller(monkeypatch):
    """Say what the controller shows while the session ends."""

    def shows(**changes):
        reader = FakeReader(**changes)
        monkeypatch.setattr(ending, "RtdeReader", lambda *_args, **_named: reader)
        monkeypatch.setattr(ending, "VERIFY_TIMEOUT_S", 0.4)
        return reader

    return shows


@pytest.fixture
def dashboard(monkeypatch):
    """What the dashboard is asked, and what happens while it is connected."""
    asked = []

    class FakeDashboard:
        connecting = staticmethod(lambda: None)

        def __init__(self, *_args, **_named):
            pass

        def __enter__(self):
            self.connecting()
            return self

        def __exit__(self, *_exception):
            pass

        def stop(self):
            asked.append("stop")

    monkeypatch.setattr(ending, "DashboardClient", FakeDashboard)
    monkeypatch.setattr(ending, "WATCHDOG_TIME_S", 0.05)
    FakeDashboard.asked = asked
    return FakeDashboard


def ended(process):
    found = Ending()
    end_session(HOST, 1, process, 0.0, found)
    return found


def failing(words):
    def step():
        raise OSError(words)

    return step


def test_a_step_that_fails_is_evidence_and_the_next_ones_follow(controller):
    controller()
    found = ended(FakeProcess(failing("pipe"), failing("no child")))
    assert found.evidence[:2] == [
        "could not ask the servo process to stop: pipe",
        "could not end the servo process: no child",
    ]
    assert found.arm_at_rest and found.script_ended


def test_a_controller_that_is_lost_while_it_is_watched_shows_nothing_of_the_present(controller):
    controller(states=20, actual_qd=MOVING)
    found = ended(FakeProcess())
    assert (found.arm_at_rest, found.script_ended) == (None, None)
    assert any("Lost the controller" in line or "No connection" in line for line in found.evidence)
    assert any(line.startswith("no state for ") for line in found.evidence)


def test_an_arm_that_moves_until_the_end_is_not_at_rest(controller):
    controller(states=10**6, actual_qd=MOVING)
    assert ended(FakeProcess()).arm_at_rest is False


PAUSED_OURS = {"runtime_state": 4, NUMBER_OUTPUT: 1, "states": 10**6}


def test_a_paused_script_of_ours_is_stopped_by_the_dashboard(controller, dashboard):
    controller(**PAUSED_OURS)
    assert ended(FakeProcess(program=ProgramOwner.OURS)).script_ended is False
    assert set(dashboard.asked) == {"stop"}


def test_a_servo_process_that_was_killed_leaves_no_paused_script(controller, dashboard):
    controller(**PAUSED_OURS)
    ended(FakeProcess(program=None))
    assert set(dashboard.asked) == {"stop"}


def test_a_paused_program_that_may_be_anothers_is_left_alone(controller, dashboard):
    controller(**PAUSED_OURS)
    found = ended(FakeProcess(program=ProgramOwner.UNKNOWN))
    assert dashboard.asked == [] and found.script_ended is not True


def test_a_program_that_takes_the_place_of_ours_while_the_dashboard_answers_is_left_alone(
    controller, dashboard
):
    reader = controller(**PAUSED_OURS)
    dashboard.connecting = staticmethod(
        lambda: reader.changes.update({"runtime_state": 2, NUMBER_OUTPUT: 5})
    )
    found = ended(FakeProcess(program=ProgramOwner.OURS))
    assert dashboard.asked == [] and found.script_ended is True


def test_one_failed_attempt_to_stop_the_script_is_not_the_last(controller, dashboard, monkeypatch):
    controller(**PAUSED_OURS)
    away = iter([True])

    def connecting():
        if next(away, False):
            raise ConnectionLost(HOST, 29999, "no connection (Connection refused)")

    dashboard.connecting = staticmethod(connecting)
    monkeypatch.setattr(
        ending.socket, "create_connection", lambda *_args, **_named: failing("refused")()
    )
    found = ended(FakeProcess(program=ProgramOwner.OURS))
    assert set(dashboard.asked) == {"stop"}
    assert any("the dashboard did not stop the control script" in line for line in found.evidence)
    assert any(
        "no program could be sent in place of the control script: refused" in line
        for line in found.evidence
    )


def test_a_program_that_ran_before_ours_was_sent_has_not_replaced_it(controller):
    controller(states=10**6, runtime_state=2, **{NUMBER_OUTPUT: 5})
    assert (
        ended(FakeProcess(program=ProgramOwner.UNKNOWN, reached={SessionState.CONNECTING})).shown
        == []
    )
    assert ended(FakeProcess(program=ProgramOwner.OURS)).shown == ["program_replaced"]


@pytest.mark.parametrize("state", [1, 5])
def test_one_timestamp_from_the_future_is_no_restart(controller, monkeypatch, state):
    reader = controller(states=10**6)
    wait = reader.wait

    def with_one_from_the_future(timeout):
        states = wait(timeout)
        if reader._tick == state:
            states[0]["timestamp"] = 5000.0
        return states

    monkeypatch.setattr(reader, "wait", with_one_from_the_future)

    found = ended(FakeProcess())

    assert found.shown == []
    assert found.arm_at_rest


def test_a_clock_that_goes_back_is_a_restart(controller):
    controller(states=10**6)
    found = Ending()

    end_session(HOST, 1, FakeProcess(), 100.0, found)

    assert found.shown == ["controller_restarted"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_the_session_has_ended(controller, number):
    controller()

    def handle(received, _frame):
        raise KeyboardInterrupt(received)

    before = signal.signal(number, handle)
    done = []
    try:
        with pytest.raises(KeyboardInterrupt), defer_signals():
            signal.pthread_kill(threading.get_ident(), number)
            done.append(ended(FakeProcess()))
        assert signal.getsignal(number) is handle
    finally:
        signal.signal(number, before)
    assert done[0].arm_at_rest
