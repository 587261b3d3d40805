"""Live sessions in simulation, on a clock of their own and paced by the wall clock."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest

import simbridge
from simbridge.backends.backend import Capabilities
from simbridge.errors import (
    ForeignSolverError,
    Interrupted,
    InvalidParameter,
    UnforeseenError,
    UnknownName,
)
from simbridge.recording.log_reader import read_log
from simbridge.recording.log_writer import LogWriter
from simbridge.robot.kinematics import tool_frame
from simbridge.running import run_ending
from simbridge.running.run_setup import prepare
from simbridge.sessions.causes import STANDSTILL
from simbridge.sessions.record import read_events, read_inputs
from simbridge.sessions.session import LiveSession, LiveStatus, NotEngaged
from simbridge.ur.errors import StaleState
from tests.backends.trial import process_ends
from tests.patience import PATIENCE

# None of them looks at a page, which takes a second to draw.
pytestmark = [pytest.mark.usefixtures("short_pages"), pytest.mark.slow]
# It has a quarter of the control periods of an e-Series arm.
ROBOT = simbridge.load_robot("ur10")
# A wait that lasts longer than a test waits for its end, s: only an event ends it sooner.
LONG_WAIT_S = 2.0 * PATIENCE


def stepped(out, **options):
    """Return a session whose clock moves only by `wait`."""
    return simbridge.live("pybullet", robot="ur10", out=out, realtime=False, **options)


def shift_tool(session, offset):
    """Return the tool's pose, moved by an offset (3,), m."""
    return pin.SE3(session.tool.rotation, session.tool.translation + np.array(offset))


def summary(out):
    """Return the contents of summary.json."""
    return json.loads((out / "summary.json").read_text())


def test_a_pose_is_reached_and_recorded(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.engage()
        session.wait(0.01)
        goal = shift_tool(session, [0.0, 0.03, 0.0])
        for _ in range(12):
            session.pose(goal)
            session.wait(0.05)
        attained = tool_frame(ROBOT, session.state.q)
        assert session.status.state == "tracking"

    assert np.abs(attained.translation - goal.translation).max() < 1e-4

    log = read_log(out / "log.mcap")

    assert len(log.stamp) == 86
    assert log.complete

    inputs = read_inputs(out)

    assert [record.fate for record in inputs] == ["accepted"] * 12
    assert np.allclose(inputs[0].values, pin.SE3ToXYZQUAT(goal))
    assert summary(out)["outcome"] == "completed"
    assert (out / "report.html").is_file()


def test_equal_inputs_give_equal_setpoints(tmp_path):
    def setpoints(name):
        with stepped(tmp_path / name) as session:
            session.engage()
            for k in range(5):
                session.wait(0.02)
                session.twist([0.1, 0.0, -0.05, 0.0, 0.5, 0.0], frame="tool")
                if k == 3:
                    session.pose(shift_tool(session, [0.0, 0.02, 0.0]))
            session.wait(0.1)
        return read_log(tmp_path / name / "log.mcap").setpoint

    assert np.array_equal(setpoints("one"), setpoints("other"))


def test_inputs_before_engagement_are_rejected(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.jog([0.5] * 6)
        session.wait(0.1)
        assert session.status.state == "idle"
        assert session.state is None
        session.engage()
        session.wait(0.1)
        assert np.abs(session.state.q - ROBOT.home).max() < 1e-6
    (record,) = read_inputs(out)

    assert record.fate == "rejected"
    assert record.why == "not_engaged"


# Inputs with values that they cannot have, and the errors that they raise.
MALFORMED = (
    (lambda s: s.pose([1.0, 2.0]), InvalidParameter),
    (lambda s: s.pose([np.nan] * 7), InvalidParameter),
    (lambda s: s.twist([0.0] * 5), InvalidParameter),
    (lambda s: s.twist([0.0] * 6, frame="world"), UnknownName),
    (lambda s: s.jog("fast"), InvalidParameter),
    (lambda s: s.joints([np.inf] * 6), InvalidParameter),
    (lambda s: s.follow([0.2, 0.1], [ROBOT.home] * 2), InvalidParameter),
    (lambda s: s.follow([0.1], []), InvalidParameter),
)


def test_a_malformed_input_leaves_the_arm_going(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.engage()
        session.wait(0.01)
        for give, error in MALFORMED:
            session.twist([0.05, 0.0, 0.0, 0.0, 0.0, 0.0])
            session.wait(0.02)
            with pytest.raises(error):
                give(session)
            session.wait(0.02)
            assert session.status.state == "tracking"

    assert [record.fate for record in read_inputs(out)] == ["accepted", "rejected"] * len(MALFORMED)


def test_a_jump_is_rejected_with_its_size(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.engage()
        session.wait(0.01)
        begin = session.tool
        session.pose(shift_tool(session, [0.3, 0.0, 0.0]))
        session.wait(0.05)
        assert np.abs(session.tool.translation - begin.translation).max() < 1e-9
    (record,) = read_inputs(out)

    assert record.fate == "rejected"
    assert record.why == "max_jump 300 mm"
    assert record.cause["value"] == pytest.approx(0.3, abs=1e-3)


def test_the_newest_input_of_a_period_counts(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.engage()
        session.wait(0.01)
        for _ in range(3):
            session.jog([0.0] * 6)
        session.jog([0.1] * 6)
        session.wait(0.1)

    assert [record.fate for record in read_inputs(out)] == ["superseded"] * 3 + ["accepted"]


def test_a_relative_pose_starts_at_the_engagement(tmp_path):
    with stepped(tmp_path / "run") as session:
        session.engage()
        session.wait(0.01)
        begin = session.tool
        step = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.03]))
        for _ in range(12):
            session.pose(step, relative=True)
            session.wait(0.05)
        assert np.abs((begin.inverse() * session.tool).translation - step.translation).max() < 1e-4


def test_disengaging_brakes_until_the_next_engagement(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.engage()
        session.wait(0.01)
        session.jog([0.5] * 6)
        session.wait(0.1)
        session.disengage()
        session.wait(0.1)
        held = session.tool
        session.jog([0.5] * 6)
        session.wait(0.1)
        assert session.status.state == "idle"
        assert np.array_equal(session.tool.translation, held.translation)
        session.engage()
        session.jog([0.5] * 6)
        session.wait(0.1)
        assert not np.array_equal(session.tool.translation, held.translation)
    states = [event["after"] for event in read_events(out) if event["event"] == "state"]

    assert states == ["engaged", "tracking", "braking", "idle", "tracking"]


def test_a_chunk_is_replaced_by_the_next(tmp_path):
    with stepped(tmp_path / "run") as session:
        session.engage()
        session.wait(0.01)
        goal = ROBOT.home + 0.1
        session.follow([0.15, 0.3], [ROBOT.home + 0.05, goal])
        session.wait(0.15)
        assert np.abs(session.state.command - (ROBOT.home + 0.05)).max() < 0.01
        session.follow([0.15], [ROBOT.home])
        session.wait(0.3)
        assert np.abs(session.state.command - ROBOT.home).max() < 1e-3


def test_a_wait_moves_whole_periods(tmp_path):
    with stepped(tmp_path / "run") as session:
        session.engage()
        for seconds in (session.period, 0.1, 0.001, 0.012):
            session.wait(seconds)

    stamps = read_log(tmp_path / "run" / "log.mcap").stamp

    assert len(stamps) == 1 + 13 + 1 + 2
    assert np.diff(stamps) == pytest.approx(np.full(len(stamps) - 1, session.period))


@pytest.mark.parametrize("seconds", [-0.1, np.nan, np.inf])
def test_a_wait_for_no_time_is_refused(tmp_path, seconds):
    with stepped(tmp_path / "run") as session, pytest.raises(InvalidParameter, match="time"):
        session.wait(seconds)


class Paced(NamedTuple):
    """A session that the wall clock paced, with two kinds of input, and that Ctrl-C ended.

    Attributes:
        out: Its directory.
        duration: How long a wait of 0.25 s took, s.
        after_pauses: Its status, read three times by a caller that stood still meanwhile.
        interrupted: What Ctrl-C made of a wait of `LONG_WAIT_S`.
        until_interrupted: How long that wait took, s.
        ended_wait: What a wait of `LONG_WAIT_S` in another thread raised.
        refusal: What engaging raised while the session was ending.
        process: The process of its loop.
    """

    out: Path
    duration: float
    after_pauses: list[LiveStatus]
    interrupted: Interrupted
    until_interrupted: float
    ended_wait: BaseException | None
    refusal: BaseException | None
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def paced(tmp_path_factory, write_short_page):
    """A session in real time, whose process takes a second to start."""
    out = tmp_path_factory.mktemp("paced") / "run"
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor() as threads,
        pytest.raises(Interrupted) as caught,
    ):
        patch.setattr(run_ending, "write_report", write_short_page)
        with simbridge.live("pybullet", robot="ur10", out=out) as session:
            session.engage()
            for k in range(10):
                session.pose(shift_tool(session, [0.0, 0.003 * k, 0.0]))
                time.sleep(0.02)
            for _ in range(5):
                session.twist([0.0, 0.0, 0.1, 0.0, 0.0, 0.5], frame="tool")
                time.sleep(0.02)
            process = session._driver._process._process
            begin = time.monotonic()
            session.wait(0.25)
            duration = time.monotonic() - begin
            after_pauses = read_with_pauses(session)

            waiting = threads.submit(session.wait, LONG_WAIT_S)
            begin = time.monotonic()
            try:
                threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
                session.wait(LONG_WAIT_S)
            finally:
                until_interrupted = time.monotonic() - begin
                # As when the session has begun to end.
                session._ended = True
                refusal = threads.submit(session.engage).exception(PATIENCE)

    return Paced(
        out,
        duration,
        after_pauses,
        caught.value,
        until_interrupted,
        waiting.exception(PATIENCE),
        refusal,
        process,
    )


@pytest.mark.shares_setup
def test_a_real_time_session_awaits_the_clock(paced):
    assert paced.duration >= 0.25


def read_with_pauses(session):
    """Return statuses of a session whose caller stands still while it reads each of them.

    More than one: on a busy computer the loop, too, may stand still.
    """
    newest = LiveSession.newest.fget

    def newest_and_pause(session):
        period = newest(session)
        time.sleep(1.5 * STANDSTILL)
        return period

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LiveSession, "newest", property(newest_and_pause))
        return [session.status for _ in range(3)]


@pytest.mark.shares_setup
def test_a_pause_of_the_caller_is_none_of_the_loop(paced):
    kinds = [{cause.kind for cause in status.causes} for status in paced.after_pauses]

    assert any("loop" not in causes for causes in kinds)


@pytest.mark.shares_setup
def test_a_real_time_session_is_solved_again(paced):
    plan = prepare(paced.out).plan
    log = read_log(paced.out / "log.mcap")

    assert len(log.stamp) > 30
    assert np.array_equal(plan.setpoints, log.setpoint)
    assert np.array_equal(plan.targets, log.target)


@pytest.mark.shares_setup
def test_a_wait_ends_when_another_thread_ends_the_session(paced):
    assert isinstance(paced.ended_wait, NotEngaged)
    assert "the session has ended" in str(paced.ended_wait)


@pytest.mark.shares_setup
def test_ctrl_c_ends_a_wait(paced):
    assert paced.until_interrupted < PATIENCE
    assert paced.interrupted.number == signal.SIGINT
    assert summary(paced.out)["ended_by"]["cause"] == "interrupted"


@pytest.mark.shares_setup
def test_an_ending_session_cannot_be_engaged(paced):
    assert isinstance(paced.refusal, NotEngaged)
    assert paced.process.poll() is not None


def test_after_its_end_a_session_waits_no_more(tmp_path):
    with stepped(tmp_path / "run") as session:
        pass

    with pytest.raises(NotEngaged, match="has ended"):
        session.wait(0.1)


def test_after_its_end_a_session_cannot_be_engaged(tmp_path):
    with stepped(tmp_path / "run") as session:
        pass

    with pytest.raises(NotEngaged, match="has ended"):
        session.engage()


def stay(q, target):
    return q


def test_a_solver_of_the_main_program_is_refused(monkeypatch):
    # Pickle finds it there, but not in another process.
    monkeypatch.setattr(sys.modules["__main__"], "stay", stay, raising=False)
    monkeypatch.setattr(stay, "__module__", "__main__")

    with pytest.raises(InvalidParameter, match="in a module of its own"):
        simbridge.live("pybullet", solver=simbridge.CallableSolver(ROBOT, stay))


def test_a_stepped_session_takes_a_solver_that_cannot_be_pickled(tmp_path):
    lag = simbridge.ForwardDynamics(ROBOT)
    solver = simbridge.CallableSolver(ROBOT, lambda q, target: lag.step(target))

    with pytest.raises(InvalidParameter, match="a module of its own"):
        simbridge.live("pybullet", solver=solver)

    with simbridge.live("pybullet", solver=solver, out=tmp_path / "run", realtime=False) as session:
        lag.reset(ROBOT.home)
        session.engage()
        session.pose(shift_tool(session, [0.0, 0.02, 0.0]))
        session.wait(0.1)
        assert session.status.state == "tracking"


def test_an_arm_trails_by_the_servos_lag(tmp_path):
    speed = np.array([0.0, 0.05, 0.02])
    with stepped(tmp_path / "run") as session:
        session.engage()
        for _ in range(10):
            session.twist([*speed, 0.0, 0.0, 0.0])
            session.wait(0.05)
        setpoint = session.tool
        attained = tool_frame(ROBOT, session.state.q)

    # The lookahead less a cycle of 8 ms, and half a millisecond of the joints.
    lag = setpoint.translation - attained.translation

    assert np.abs(lag - 0.0225 * speed).max() < 1e-4
    assert np.abs(pin.log3(attained.rotation.T @ setpoint.rotation)).max() < 1e-3


def test_an_unstable_tuning_is_refused(monkeypatch):
    class Controller:
        capabilities = Capabilities(simulated_time=False, effort_unit="A")

        @staticmethod
        def resolve(arm, options):
            return None, arm, options

    monkeypatch.setattr("simbridge.running.arm_and_solver.backend_class", lambda _name: Controller)

    with pytest.raises(InvalidParameter, match=r"below 0\.121"):
        simbridge.live("ursim", robot="ur10", servo_lookahead=0.13)


def test_an_unknown_backend_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="Did you mean 'pybullet'"):
        simbridge.live("pybulet")


SLOW = """
import time

calls = 0

def mine(q, target):
    global calls
    calls += 1
    if calls > 200:
        time.sleep(0.004)
    return q
"""


def test_a_slow_solver_stops_the_arm(tmp_path, monkeypatch):
    (tmp_path / "slow_ik.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    with simbridge.live("pybullet", robot="ur10e", solver="slow_ik:mine", out="run") as session:
        session.engage()
        end = time.monotonic() + PATIENCE
        while session.status.state != "idle" and time.monotonic() < end:
            session.pose(session.tool)
            time.sleep(0.01)
        assert session.status.state == "idle"
    log = read_log(tmp_path / "run" / "log.mcap")

    durations = log.live["solver"]
    slow = durations[durations > 0.002]
    assert len(slow) >= 10
    # The last ten are those that stopped it.
    assert 4e-3 <= np.median(slow[-10:]) < 6e-3

    causes = [
        event["cause"] for event in read_events(tmp_path / "run") if event["event"] == "state"
    ]
    reported = [cause["value"] for cause in causes if cause and cause["kind"] == "solver"]
    assert reported[0] in slow


# test_a_solver_that_stays_stuck_ends_with_a_stale_state shows it in tests/user.
@pytest.mark.soak
def test_a_solver_that_never_returns_ends_the_loop(tmp_path, monkeypatch):
    (tmp_path / "stuck_ik.py").write_text(SLOW.replace("0.004", "1000"))
    monkeypatch.chdir(tmp_path)
    with simbridge.live("pybullet", robot="ur10e", solver="stuck_ik:mine", out="run") as session:
        session.engage()
        end = time.monotonic() + PATIENCE
        while session.status.error is None and time.monotonic() < end:
            session.pose(session.tool)
            time.sleep(0.01)
        assert isinstance(session.status.error, StaleState)
        assert session.status.state == "idle"


MOVING = """
import sys, time
import simbridge
with simbridge.live("pybullet", robot="ur10e", out=sys.argv[1], timeout=10.0) as session:
    session.engage()
    session.jog([0.1] * 6)
    print(session._driver._process.pid, flush=True)
    time.sleep(60.0)
"""


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGKILL, marks=pytest.mark.soak), signal.SIGSTOP]
)
def test_the_loop_of_a_killed_program_ends(tmp_path, number):
    words = [sys.executable, "-c", MOVING, str(tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        loop = int(program.stdout.readline())
        program.send_signal(number)
        try:
            assert process_ends(loop)
        finally:
            program.kill()


@pytest.mark.soak
def test_halt_and_end_do_not_await_the_disk(tmp_path, monkeypatch):
    hangs = threading.Event()
    write = LogWriter.write

    def slow(log, sample):
        if hangs.is_set():
            time.sleep(3.0)
            hangs.clear()
        write(log, sample)

    monkeypatch.setattr(LogWriter, "write", slow)
    with simbridge.live("pybullet", robot="ur10e", out=tmp_path / "run", timeout=10.0) as session:
        session.engage()
        session.jog([0.1] * 6)
        time.sleep(0.2)
        hangs.set()
        time.sleep(0.1)
        session.halt()
        end = time.monotonic() + 2.0
        while session.status.state != "holding" and time.monotonic() < end:
            time.sleep(0.01)
        assert session.status.state == "holding"
        assert hangs.is_set()


def test_a_failed_solver_leaves_the_session_idle(tmp_path, monkeypatch):
    (tmp_path / "failing_ik.py").write_text(
        "def mine(q, target):\n    raise ArithmeticError('no')\n"
    )
    monkeypatch.chdir(tmp_path)
    with simbridge.live(
        "pybullet", robot="ur10e", solver="failing_ik:mine", out="run", realtime=False
    ) as session:
        with pytest.raises(ForeignSolverError, match="ArithmeticError"):
            session.engage()
        assert session.status.state == "idle"


def test_the_cause_of_a_state_change_is_recorded(tmp_path):
    out = tmp_path / "run"
    with stepped(out) as session:
        session.engage()
        session.wait(0.01)
        session.twist([0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
        session.wait(0.05)
        session.pose(shift_tool(session, [0.5, 0.0, 0.0]))
        session.wait(0.3)
        session.halt()
        session.wait(0.01)
    changes = [(e["after"], e["cause"]) for e in read_events(out) if e["event"] == "state"]

    assert [(state, cause["text"]) for state, cause in changes[:2]] == [
        ("engaged", "engage"),
        ("tracking", "input 1"),
    ]
    assert changes[2][0] == "braking"
    assert changes[2][1]["kind"] == "stale"


def test_a_refusal_is_named_until_an_input_is_accepted(tmp_path):
    with stepped(tmp_path / "run") as session:
        session.engage()
        session.wait(0.01)
        session.pose(shift_tool(session, [0.5, 0.0, 0.0]))
        session.wait(0.1)
        assert [str(cause) for cause in session.status.causes] == ["max_jump 500 mm"]
        session.pose(shift_tool(session, [0.05, 0.0, 0.0]))
        session.wait(0.01)
        assert not any("max_jump" in cause for cause in session.status.causes)


def test_a_session_that_was_not_entered_says_how(tmp_path):
    session = stepped(tmp_path / "run")
    for use in (
        session.engage,
        lambda: session.twist([0.0] * 6),
        lambda: session.wait(0.1),
        lambda: session.status,
    ):
        with pytest.raises(NotEngaged, match="use it as in `with "):
            use()
    with session:
        pass
    with pytest.raises(NotEngaged, match="entered once"), session:
        pass


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        (
            {"tiemout": 1.0},
            UnknownName,
            "no option 'tiemout' of a live session. Did you mean 'timeout'?",
        ),
        ({"robott": "ur5"}, UnknownName, "Did you mean 'robot'?"),
        ({"max_jump": 0.1}, InvalidParameter, "a distance in m and an angle in rad"),
        ({"speed_scale": 0.5}, InvalidParameter, "it applies only to scenarios"),
        (
            {"solver": simbridge.ForwardDynamics(ROBOT), "robot": "ur5"},
            InvalidParameter,
            "made for the same robot",
        ),
    ],
)
def test_a_wrong_choice_is_refused_with_what_it_must_be(choices, error, message):
    with pytest.raises(error, match=message):
        simbridge.live(**choices)


def test_a_session_is_a_line_at_a_prompt(tmp_path):
    session = simbridge.live("pybullet", robot="ur5e", realtime=False, out=tmp_path / "hand")

    before = repr(session)
    with session:
        within = repr(session)

    assert before == "<LiveSession of ur5e: not begun>"
    assert within == f"<LiveSession of ur5e: idle, in {tmp_path / 'hand'}>"


def test_a_callers_error_causes_the_reported_one(tmp_path):
    out = tmp_path / "session"

    with (
        pytest.raises(UnforeseenError) as caught,
        simbridge.live(out=out, realtime=False) as session,
    ):
        session.engage()
        session.wait(0.01)
        raise ZeroDivisionError("of a user")

    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.aftermath == "The arm is at rest."
    assert caught.value.run_directory == out


def test_the_outcome_names_a_callers_error(tmp_path):
    out = tmp_path / "run"

    with pytest.raises(UnforeseenError), stepped(out) as session:
        session.engage()
        raise ValueError("no such goal")

    assert summary(out)["outcome"] == "ValueError: no such goal"
    assert summary(out)["ended_by"]["cause"] == "internal_error"


def test_a_program_may_exit_within_a_session(tmp_path):
    out = tmp_path / "run"

    with pytest.raises(SystemExit), stepped(out) as session:
        session.engage()
        sys.exit(3)

    assert summary(out)["outcome"] == "SystemExit: 3"
