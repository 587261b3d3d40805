"""The one way to end a session, with a servo process and a controller that a test plays."""

from __future__ import annotations

import signal
import struct
import threading
import time
from typing import ClassVar

import pytest

from simbridge.backends import ending
from simbridge.backends.backend import Ending
from simbridge.backends.ending import end_session
from simbridge.backends.program_watch import ProgramOwner
from simbridge.backends.registers import REGISTERS
from simbridge.backends.session_state import SessionState
from simbridge.backends.signal_shield import shield_from_signals
from simbridge.ur.errors import ConnectionLost
from tests.controllers import loopback
from tests.ur.fake_ports import listening

pytestmark = pytest.mark.slow

HOST = "192.0.2.1"
FAKE = loopback(91)
N = 6
LOWER = REGISTERS["lower"]
# A program that has another number than the session's, 1.
OTHER_NUMBER = 5
# More states than a test waits for.
MANY = 10**6
MOVING = [0.0, 0.1, 0.0, 0.0, 0.0, 0.0]
AT_REST = {
    "safety_mode": 1,
    "robot_mode": 7,
    "runtime_state": 1,
    "actual_qd": [0.0] * N,
    "target_qd": [0.0] * N,
    LOWER.number_output: 0,
    LOWER.counter_output: 0,
}
# A message of the primary interface (20): its time and source, type error code (6), code 210.
C210 = struct.pack(">iBQbB3i", 27, 20, 0, 0, 6, 210, 0, 2)
PAUSED_OURS = {"runtime_state": 4, LOWER.number_output: 1, "states": MANY}


class FakeProcess:
    """A servo process that can fail in each of its steps."""

    def __init__(
        self,
        ask_to_stop=lambda: None,
        stop=lambda: None,
        program=ProgramOwner.NONE,
        reached=frozenset(SessionState),
    ):
        self.ask_to_stop = ask_to_stop
        self.stop = stop
        self.program = program
        self.reached = reached
        self.failures = []


class FakeReader:
    """An RTDE connection that gives states, and is lost after so many."""

    version = (5, 25, 1, 0)

    def __init__(self, states=60, **changes):
        self.changes = changes
        self.tick = 0
        self._states = states

    def close(self):
        pass

    def wait(self, _timeout):
        if self.tick == self._states:
            raise ConnectionLost(HOST, 30004, "no connection")
        time.sleep(0.002)
        self.tick += 1
        return [AT_REST | {"timestamp": 0.002 * self.tick} | self.changes]


@pytest.fixture
def controller(monkeypatch):
    """Determine the fields that the controller shows while the session ends."""

    def show(**changes):
        reader = FakeReader(**changes)
        monkeypatch.setattr(ending, "RtdeReader", lambda *_args, **_named: reader)
        monkeypatch.setattr(ending, "VERIFY_TIMEOUT_S", 0.4)
        return reader

    return show


@pytest.fixture
def dashboard(monkeypatch):
    """The dashboard: its requests, and a function that is called when it is connected."""

    class FakeDashboard:
        requests: ClassVar[list[str]] = []
        connect = staticmethod(lambda: None)

        def __init__(self, *_args, **_named):
            pass

        def __enter__(self):
            self.connect()
            return self

        def __exit__(self, *_exception):
            pass

        def stop(self):
            self.requests.append("stop")

    monkeypatch.setattr(ending, "DashboardClient", FakeDashboard)
    monkeypatch.setattr(ending, "WATCHDOG_TIME_S", 0.05)
    return FakeDashboard


def end(process, begin=0.0, host=HOST):
    """End a session that began at a time of the controller's clock, s; return how it ended."""
    result = Ending()
    end_session(host, process, result, number=1, registers=LOWER, newest_timestamp=begin)
    return result


def receiving(programs):
    """Return what a port does that keeps the program of each connection."""

    def talk(connection):
        program = b""
        while data := connection.recv(4096):
            program += data
        programs.append(program)

    return talk


def refuse_program(connection):
    """Answer a program as the primary interface of PolyScope X does in Local, and read on."""
    while connection.recv(4096):
        connection.sendall(C210)


def make_failing_step(message):
    """Return a step that fails with this message."""

    def step():
        raise OSError(message)

    return step


def test_a_step_that_fails_is_evidence_and_the_next_ones_follow(controller):
    controller()

    result = end(FakeProcess(make_failing_step("pipe"), make_failing_step("no child")))

    assert result.evidence[:2] == [
        "could not ask the servo process to stop: pipe",
        "could not end the servo process: no child",
    ]
    assert result.arm_at_rest
    assert result.script_ended


def test_a_controller_that_is_lost_shows_nothing_of_the_present(controller):
    controller(states=20, actual_qd=MOVING)

    result = end(FakeProcess())

    assert result.arm_at_rest is None
    assert result.script_ended is None
    assert any("Lost the controller" in fact or "No connection" in fact for fact in result.evidence)
    assert any(fact.startswith("no state for ") for fact in result.evidence)


def test_an_arm_that_moves_until_the_end_is_not_at_rest(controller):
    controller(states=MANY, actual_qd=MOVING)

    result = end(FakeProcess())

    assert result.arm_at_rest is False


def test_a_paused_script_of_ours_is_stopped_by_the_dashboard(controller, dashboard):
    controller(**PAUSED_OURS)

    result = end(FakeProcess(program=ProgramOwner.OURS))

    assert result.script_ended is False
    assert set(dashboard.requests) == {"stop"}


def test_without_a_dashboard_an_empty_program_takes_the_scripts_place(
    controller, dashboard, monkeypatch
):
    reader = controller(**PAUSED_OURS)
    reader.version = (10, 12, 0, 0)
    programs = []

    with listening(FAKE, 30001, receiving(programs)):
        result = end(FakeProcess(program=ProgramOwner.OURS), host=FAKE)

    assert dashboard.requests == []
    assert set(programs) == {ending.EMPTY_PROGRAM}
    assert any("an empty program was sent" in fact for fact in result.evidence)


def test_a_controller_that_refuses_the_empty_program_is_in_local(controller, dashboard):
    reader = controller(**PAUSED_OURS)
    reader.version = (10, 12, 0, 0)

    with listening(FAKE, 30001, refuse_program):
        result = end(FakeProcess(program=ProgramOwner.OURS), host=FAKE)

    assert any("is in Local and refused" in fact for fact in result.evidence)
    assert not any("was sent" in fact for fact in result.evidence)


def test_a_program_that_could_not_be_sent_is_not_said_to_be(controller, dashboard):
    reader = controller(**PAUSED_OURS)
    reader.version = (10, 12, 0, 0)

    result = end(FakeProcess(program=ProgramOwner.OURS), host=FAKE)

    assert any("no program could be sent" in fact for fact in result.evidence)
    assert not any("was sent" in fact for fact in result.evidence)


def test_a_servo_process_that_was_killed_leaves_no_paused_script(controller, dashboard):
    controller(**PAUSED_OURS)

    end(FakeProcess(program=None))

    assert set(dashboard.requests) == {"stop"}


def test_a_paused_program_that_may_be_anothers_is_left_alone(controller, dashboard):
    controller(**PAUSED_OURS)

    result = end(FakeProcess(program=ProgramOwner.UNKNOWN))

    assert dashboard.requests == []
    assert result.script_ended is not True


def test_a_program_that_has_just_replaced_ours_is_left_alone(controller, dashboard):
    reader = controller(**PAUSED_OURS)

    def replace_program():
        reader.changes.update({"runtime_state": 2, LOWER.number_output: OTHER_NUMBER})

    dashboard.connect = staticmethod(replace_program)

    result = end(FakeProcess(program=ProgramOwner.OURS))

    assert dashboard.requests == []
    assert result.script_ended is True


def test_one_failed_attempt_to_stop_the_script_is_not_the_last(controller, dashboard, monkeypatch):
    controller(**PAUSED_OURS)
    failures = iter([ConnectionLost(HOST, 29999, "Connection refused", was_connected=False)])

    def fail_once():
        failure = next(failures, None)
        if failure is not None:
            raise failure

    def refuse_connection(*_args, **_named):
        raise OSError("refused")

    dashboard.connect = staticmethod(fail_once)
    monkeypatch.setattr(ending.socket, "create_connection", refuse_connection)

    result = end(FakeProcess(program=ProgramOwner.OURS))

    assert set(dashboard.requests) == {"stop"}
    evidence = "\n".join(result.evidence)
    assert "the dashboard did not stop the control script" in evidence
    assert "no program could be sent in place of the control script: refused" in evidence


def test_an_earlier_program_has_not_replaced_ours(controller):
    controller(states=MANY, runtime_state=2, **{LOWER.number_output: OTHER_NUMBER})
    before_upload = FakeProcess(program=ProgramOwner.UNKNOWN, reached={SessionState.CONNECTING})
    after_upload = FakeProcess(program=ProgramOwner.OURS)

    assert end(before_upload).shown == []
    assert end(after_upload).shown == ["program_replaced"]


@pytest.mark.parametrize("tick", [1, 5])
def test_one_timestamp_from_the_future_is_no_restart(controller, monkeypatch, tick):
    reader = controller(states=MANY)
    # Long enough for that state to be none of the newest any more, on a busy computer too.
    monkeypatch.setattr(ending, "VERIFY_TIMEOUT_S", 5.0)
    wait = reader.wait

    def wait_for_corrupted(timeout):
        states = wait(timeout)
        if reader.tick == tick:
            states[0]["timestamp"] = 5000.0
        return states

    monkeypatch.setattr(reader, "wait", wait_for_corrupted)

    result = end(FakeProcess())

    assert result.shown == []
    assert result.arm_at_rest


def test_a_clock_that_goes_back_is_a_restart(controller):
    controller(states=MANY)

    result = end(FakeProcess(), begin=100.0)

    assert result.shown == ["controller_restarted"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_the_session_has_ended(controller, number):
    controller()

    def handle(received, _frame):
        raise KeyboardInterrupt(received)

    before = signal.signal(number, handle)
    results = []
    try:
        with pytest.raises(KeyboardInterrupt), shield_from_signals():
            signal.pthread_kill(threading.get_ident(), number)
            results.append(end(FakeProcess()))

        assert signal.getsignal(number) is handle
    finally:
        signal.signal(number, before)
    assert results[0].arm_at_rest
