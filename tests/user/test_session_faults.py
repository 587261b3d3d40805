"""A session reports faults in its loop: a hostile solver, a halted process, a huge input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import NamedTuple

import pytest

import simbridge
from simbridge.backends.backend import Ending
from simbridge.errors import ForeignSolverError, Interrupted, InvalidParameter, SimbridgeError
from simbridge.running.run_ending import StoppedAtTheEnd
from simbridge.running.signals import SignalReceived
from simbridge.sessions.driver import LiveDriver
from simbridge.sessions.record import read_inputs
from simbridge.sessions.session import LiveStatus
from simbridge.ur.errors import ServoProcessLost, StaleState
from tests.patience import PATIENCE
from tests.properties import variants

pytestmark = [pytest.mark.usefixtures("short_pages"), pytest.mark.shares_setup]

# How often a status is looked for that passes within a second.
TRIES = 20

FORWARD = [0.02, 0.0, 0.0, 0.0, 0.0, 0.0]
# A session on a clock of its own that nobody evaluates.
STEPPED = {"realtime": False, "report": False}


def session_with(name, out, **options):
    """Return a session with a solver of `tests.sessions.hostile_ik`.

    The robot is a UR10: its period of 8 ms is long enough for a busy computer.
    """
    return simbridge.live(
        "pybullet", robot="ur10", solver=f"tests.sessions.hostile_ik:{name}", out=out, **options
    )


def drive_until(session, reached):
    """Give inputs until the status is as wanted, and return the status."""
    deadline = time.monotonic() + PATIENCE
    while not reached(status := session.status):
        assert time.monotonic() < deadline, status
        session.twist(FORWARD)
        time.sleep(0.01)
    return status


def drive_to_error(session, kind):
    """Give inputs until a wait raises the error that has stopped the arm; return the status."""
    with pytest.raises(kind) as caught:
        for _ in range(100):
            session.twist(FORWARD)
            session.wait(0.02)
    # Once is enough.
    session.wait(0.02)
    assert session.status.error is caught.value
    return session.status


@pytest.fixture
def fresh(monkeypatch):
    """Count the solver's steps anew."""
    monkeypatch.setattr("tests.sessions.hostile_ik._steps", 0)


# One of each: a number, the shape, a size, a kind of numbers, and no numbers at all.
@pytest.mark.parametrize(
    "name",
    variants(
        ["nan", "infinite", "short", "huge", "imaginary", "text", "nothing", "many"],
        "nan",
        "short",
        "huge",
        "imaginary",
        "text",
    ),
)
def test_a_wrong_answer_names_the_solver(tmp_path, fresh, name):
    with session_with(name, tmp_path / "run", **STEPPED) as session:
        session.engage()
        status = drive_to_error(session, InvalidParameter)

    assert status.state == "idle"
    assert f"answer of the solver tests.sessions.hostile_ik:{name}" in status.error.name


# In the loop's process `failed_session` raises, too.
@pytest.mark.parametrize("name", variants(["raises", "leaves", "cancels"], "leaves", "cancels"))
def test_an_exception_is_named_as_the_solvers(tmp_path, fresh, name):
    with session_with(name, tmp_path / "run", **STEPPED) as session:
        session.engage()
        status = drive_to_error(session, ForeignSolverError)

    assert status.state == "idle"
    assert status.error.name == f"tests.sessions.hostile_ik:{name}"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("interrupts", ForeignSolverError),
        # In test_a_killed_loop_ends_the_motion its process is killed.
        pytest.param("dies", ServoProcessLost, marks=pytest.mark.soak),
        # SystemExit, which is caught where any other exception is.
        pytest.param("leaves", ForeignSolverError, marks=pytest.mark.soak),
        # An array of 8 MB, sent as text, and an exception that is no Exception.
        pytest.param("many", InvalidParameter, marks=pytest.mark.soak),
        pytest.param("cancels", ForeignSolverError, marks=pytest.mark.soak),
    ],
)
def test_a_loops_fault_arrives_unchanged(tmp_path, name, error):
    with session_with(name, tmp_path / "run") as session:
        session.engage()

        status = drive_until(session, has_error)

        assert status.state == "idle"
        assert type(status.error) is error


def test_a_session_engages_after_a_wrong_answer(tmp_path, fresh, monkeypatch):
    with session_with("nan", tmp_path / "run", **STEPPED) as session:
        session.engage()
        stopped = drive_to_error(session, InvalidParameter)
        # In the loop's process the solver is loaded again, too.
        monkeypatch.setattr("tests.sessions.hostile_ik._steps", 0)
        session.engage()
        session.twist(FORWARD)
        session.wait(0.1)
        again = session.status

    assert stopped.state == "idle"
    assert type(stopped.error) is InvalidParameter
    assert again.state == "tracking"
    assert again.error is None


def has_error(status):
    """Return whether a status names an error that has stopped the arm."""
    return status.error is not None


class Failed(NamedTuple):
    """What was seen of a session whose solver raised in the loop's process.

    Attributes:
        raised: What the wait raised.
        waited: How long the wait took, s.
        stopped: The status after that.
        again: The status once it was engaged again, and tracked.
        lost: The status once the loop's process was killed then.
    """

    raised: ForeignSolverError
    waited: float
    stopped: LiveStatus
    again: LiveStatus
    lost: LiveStatus


@pytest.fixture(scope="module")
def failed_session(tmp_path_factory):
    """A session whose solver raises, and that is engaged again, until its process is killed.

    On a busy computer the solver may raise earlier: then once more.
    """
    out = tmp_path_factory.mktemp("failed") / "run"
    with session_with("raises", out, report=False, timeout=10.0) as session:
        session.engage()
        session.twist(FORWARD)
        begin = time.monotonic()
        with pytest.raises(ForeignSolverError) as caught:
            session.wait(2.0 * PATIENCE)
        waited = time.monotonic() - begin
        stopped = session.status
        for _ in range(TRIES):
            session.engage()
            process = session._driver._process.pid
            again = drive_until(session, lambda status: is_tracking(status) or has_error(status))
            if is_tracking(again):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            lost = drive_until(session, has_error)
            if type(lost.error) is ServoProcessLost:
                break
    return Failed(caught.value, waited, stopped, again, lost)


def test_a_fault_in_the_loops_process_ends_a_wait(failed_session):
    assert failed_session.waited < PATIENCE
    assert failed_session.stopped.error is failed_session.raised
    assert failed_session.raised.name == "tests.sessions.hostile_ik:raises"
    assert failed_session.stopped.state == "idle"


def test_a_session_engages_after_a_solvers_fault(failed_session):
    assert failed_session.again.error is None


def test_a_killed_loop_ends_the_motion(failed_session):
    assert failed_session.lost.state == "idle"
    assert type(failed_session.lost.error) is ServoProcessLost


@pytest.fixture(scope="module")
def stuck_session(tmp_path_factory):
    """Two statuses of a session whose solver hangs: as it waits for it, and at its end.

    The solver is ended after 0.8 s. On a busy computer this process, too, may stand still for so
    long: then it tries again.
    """
    out = tmp_path_factory.mktemp("stuck") / "run"
    with session_with("hangs", out, report=False) as session:
        for _ in range(TRIES):
            session.engage()
            waiting = drive_until(
                session, lambda status: waits_for_solver(status) or has_error(status)
            )
            ended = drive_until(session, has_error)
            if waits_for_solver(waiting):
                break
    return waiting, ended


def waits_for_solver(status):
    """Return whether the arm holds because of its solver: not of a loop that is given no core."""
    return status.state == "holding" and status.causes[0].kind == "solver"


def test_a_stuck_solver_is_first_a_cause(stuck_session):
    waiting, _ = stuck_session

    assert waits_for_solver(waiting)
    assert waiting.error is None


def test_a_solver_that_stays_stuck_ends_with_a_stale_state(stuck_session):
    _, ended = stuck_session

    assert ended.state == "idle"
    assert type(ended.error) is StaleState


def has_halted_loop(status):
    """Return whether the status names a halted loop."""
    return any(cause.kind == "loop" for cause in status.causes)


@pytest.fixture(scope="module")
def halted_session(tmp_path_factory):
    """Three statuses of a session: its loop halted, going on, and halted until the end."""
    out = tmp_path_factory.mktemp("halted") / "run"
    with session_with("keeps", out, report=False) as session:
        halted, after = halt_for_a_moment(session)
        os.kill(session._driver._process.pid, signal.SIGSTOP)
        ended = drive_until(session, has_error)
    return halted, after, ended


def halt_for_a_moment(session):
    """Return two statuses of a session: its loop halted, and going on.

    A loop that stays halted for 0.8 s is ended. On a busy computer this process, too, may stand
    still for so long: then it tries again.
    """
    for _ in range(TRIES):
        session.engage()
        process = session._driver._process.pid
        before = drive_until(session, lambda status: is_tracking(status) or has_error(status))
        if is_tracking(before):
            os.kill(process, signal.SIGSTOP)
        halted = drive_until(session, lambda status: has_halted_loop(status) or has_error(status))
        # A loop that has been ended is no process any more.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
        after = drive_until(session, lambda status: is_tracking(status) or has_error(status))

        if has_halted_loop(halted) and is_tracking(after):
            break
    return halted, after


def is_tracking(status):
    """Return whether the arm follows its inputs, and no halted loop is named."""
    return status.state == "tracking" and not has_halted_loop(status)


def test_a_halted_loop_is_a_cause(halted_session):
    halted, after, _ = halted_session

    assert halted.state == "holding"
    assert after.error is None


def test_a_loop_that_stays_halted_ends_with_a_stale_state(halted_session):
    _, _, ended = halted_session

    assert ended.state == "idle"
    assert isinstance(ended.error, StaleState)


HUGE = [
    lambda session: session.twist([1e300, 0.0, 0.0, 0.0, 0.0, 0.0]),
    lambda session: session.twist([0.0, 0.0, 0.0, 10**400, 0.0, 0.0]),
    lambda session: session.jog([-1e155] * 6),
    lambda session: session.joints([1e9] * 6),
    lambda session: session.pose([1e99, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], relative=True),
    lambda session: session.follow([0.1, 10**400], [[1e99] * 6] * 2),
    # Half a character.
    lambda session: session.twist(FORWARD, frame="\ud800"),
]


def test_a_huge_input_is_refused(tmp_path):
    with simbridge.live("pybullet", robot="ur10", out=tmp_path / "run", **STEPPED) as session:
        session.engage()
        session.wait(0.02)
        session.twist(FORWARD)
        session.wait(0.1)

        for give in HUGE:
            with pytest.raises(SimbridgeError):
                give(session)

        session.wait(0.05)
        assert session.status.state == "tracking"
        session.wait(0.2)
        # It is no fresh input: the one before has become stale.
        assert session.status.state in ("braking", "holding")

    fates = [record.fate for record in read_inputs(tmp_path / "run")]
    assert fates == ["accepted", *["rejected"] * len(HUGE)]


def test_a_stop_after_ctrl_c_is_reported(tmp_path, monkeypatch):
    seen = Ending(
        shown=["emergency_stop"], evidence=["safety mode emergency stop"], arm_at_rest=True
    )
    monkeypatch.setattr(LiveDriver, "ending", seen)

    with (
        pytest.raises(StoppedAtTheEnd) as caught,
        simbridge.live("pybullet", robot="ur10e", out=tmp_path / "run", realtime=False) as session,
    ):
        session.engage()
        session.wait(0.1)
        raise SignalReceived(signal.SIGINT)

    summary = json.loads((tmp_path / "run" / "summary.json").read_text())

    assert summary["ended_by"]["cause"] == "emergency_stop"
    assert caught.value.cause == "emergency_stop"
    assert session.status.error is caught.value
    assert "The session was interrupted." in str(caught.value)
    assert "emergency stop" in str(caught.value)
    assert caught.value.run_directory == tmp_path / "run"


def test_a_signal_that_ends_a_session_names_its_directory(tmp_path):
    with (
        pytest.raises(Interrupted) as caught,
        simbridge.live("pybullet", robot="ur10e", out=tmp_path / "run", realtime=False) as session,
    ):
        session.engage()
        session.wait(0.1)
        raise SignalReceived(signal.SIGTERM)

    assert caught.value.number == signal.SIGTERM
    assert caught.value.cause == "terminated"
    assert caught.value.run_directory == tmp_path / "run"


def test_a_stuck_device_leaves_a_complete_session(tmp_path):
    def fail():
        raise BrokenPipeError

    session = simbridge.live("pybullet", robot="ur10e", out=tmp_path / "run", realtime=False)
    session.before_report = fail

    with pytest.raises(BrokenPipeError), session:
        session.engage()
        session.wait(0.02)

    assert json.loads((tmp_path / "run" / "summary.json").read_text())["outcome"] == "completed"
    assert (tmp_path / "run" / "report.html").is_file()
