"""Live sessions on a controller, which is emulated in a process of its own.

The arm is judged by the controller's own record. Most tests use a CB3 controller, which takes a
setpoint every 8 ms, an e-Series controller every 2: a slow computer keeps up with the former.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import simbridge
from simbridge.backends.servo_client import ServoProcess
from simbridge.emulator.handle import Emulator
from simbridge.emulator.record_file import Recorded
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.kinematics import tool_path
from simbridge.running import run_ending
from simbridge.running.run_setup import prepare
from simbridge.sessions.causes import LiveCause
from simbridge.sessions.record import read_events, read_inputs
from simbridge.sessions.session import LiveStatus, NotEngaged
from simbridge.ur.errors import (
    ArmChanged,
    ModelMismatch,
    NotConfirmed,
    ProtectiveStop,
    ToolChanged,
)
from tests.backends.trial import process_ends
from tests.controllers import (
    HOME,
    SPEED_LIMITS,
    loopback,
    never_moved,
    realtime_options,
    run_secondary_program,
    tick,
)
from tests.patience import PATIENCE
from tests.slow_computers import keep_until, was_too_slow

ROBOTS = {name: simbridge.load_robot(name) for name in ("ur10", "ur10e")}
KINDS = ["CB3", pytest.param("e-Series", marks=pytest.mark.soak)]
"""A CB3 controller; in `make soak` an e-Series controller, too."""
FORWARDS = [0.05, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.fixture(params=KINDS)
def controller(request, controllers):
    return controllers.ready(request.param)


@contextlib.contextmanager
def live(controller, out, **options):
    """A session that is not evaluated, which takes half a second, unless that is asked for.

    After it the script has ended with the arm at rest, and no process is left.
    """
    options = {"robot": controller.robot, "report": False, **realtime_options(), **options}
    with simbridge.live("ursim", host=controller.host, out=out, **options) as session:
        yield session
        pid = session._driver._process.pid
    assert process_ends(pid)
    assert controller.state()["runtime_state"] == "STOPPED"
    assert not controller.state()["moving"]


def wait_for(reached, what):
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def in_state(session, *names):
    def is_reached():
        status = session.status
        # It would not come any more.
        assert status.state in names or not was_too_slow(status), status
        return status.state in names

    wait_for(is_reached, f"{session.status} is not one of {names}")


def keep(session, seconds, give):
    """Give an input every 50 ms; return for how long, s, which is longer on a busy computer."""
    begin = time.monotonic()
    for _ in range(round(seconds / 0.05)):
        give()
        time.sleep(0.05)
    return time.monotonic() - begin


def keep_forwards(session, seconds):
    keep(session, seconds, lambda: session.twist(FORWARDS))


def go_on(session, controller):
    """Give inputs until the tool has moved on by 10 mm."""
    start = tool_position(controller)[0]
    keep_until(
        session,
        lambda: tool_position(controller)[0] - start > 0.01,
        lambda: session.twist(FORWARDS),
    )


def velocities(controller, since):
    """Joint velocities of the controller's targets, rad/s, one row a tick."""
    period = ROBOTS[controller.robot].period
    return np.diff(controller.record(after=since).target_q, axis=0) / period


def tool_positions(controller, since):
    return tool_path(ROBOTS[controller.robot], controller.record(after=since).target_q)[:, :3]


def tool_position(controller):
    """The tool's present position by the controller's targets (3,), m."""
    return tool_path(ROBOTS[controller.robot], [controller.state()["target_q"]])[0, :3]


class Driven(NamedTuple):
    """What was seen of a session whose twist became stale, and then of a jog.

    Attributes:
        out: Its directory.
        record: The controller's record of it.
        causes: The causes of its status while the arm held.
        moved: How far the tool had moved until then in x, y and z, m.
        duration: How long twists were given and were fresh, and the arm braked, s.
        locked: When its process began to hold the interpreter's lock for 0.1 s, s.
    """

    out: Path
    record: Recorded
    causes: tuple[LiveCause, ...]
    moved: np.ndarray
    duration: float
    locked: float


@pytest.fixture(scope="module")
def driven(controllers, tmp_path_factory):
    """A session on an e-Series controller with a twist, and a jog during which it ends."""
    controller = controllers.ready("e-Series")
    out = tmp_path_factory.mktemp("driven") / "run"
    begin = tick(controller)
    with live(controller, out) as session:
        causes, duration = let_go(session, controller)
        moved = np.ptp(tool_positions(controller, begin), axis=0)
        jog = [0.0, 0.0, 0.0, 0.0, 0.0, 0.2]
        keep(session, 0.3, lambda: session.jog(jog))
        locked = time.monotonic()
        hold_the_lock(0.1)
        session.jog(jog)
        time.sleep(0.1)
        # The arm still moves when the session is left: see `live`.
    # Here, too: when a test is run again, only a fixture that has itself failed is made anew.
    assert causes[0].kind == "stale"
    assert periods_within(out, locked, 0.1) >= 40
    return Driven(out, controller.record(after=begin), causes, moved, duration, locked)


def let_go(session, controller):
    """Give twists of 0.1 m/s until the tool has moved, and then none; return the causes of the
    status then, and for how long, s, the twists could move the arm.

    A slow computer may end the engagement before the arm holds: then once more.
    """
    duration = 0.0
    for _ in range(20):
        session.engage()
        start = tool_position(controller)[0]
        duration += keep_until(
            session,
            lambda start=start: tool_position(controller)[0] - start > 0.02,
            lambda: session.twist([0.1, 0.0, 0.0, 0.0, 0.0, 0.0]),
        )
        # 0.2 s until the last input is stale, and the braking.
        duration += 0.4
        in_state(session, "holding", "idle")
        if session.status.state == "holding":
            break
    return session.status.causes, duration


def hold_the_lock(seconds):
    """Let no other thread of this process run."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    try:
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            pass
    finally:
        sys.setswitchinterval(before)


def periods_within(out, begin, seconds):
    """Return how many periods the loop began in a time, s."""
    now = read_log(out / "log.mcap").live["now"]
    return int(((now > begin) & (now < begin + seconds)).sum())


@pytest.mark.usefixtures("e_series")
def test_a_stale_twist_lets_the_arm_hold(driven):
    assert driven.causes[0].kind == "stale"
    # At 0.1 m/s.
    assert driven.moved[0] < 0.1 * driven.duration
    assert driven.moved[1:].max() < 2e-3

    states = [event["after"] for event in read_events(driven.out) if event["event"] == "state"]

    assert states[:2] == ["engaged", "tracking"]
    assert ("braking", "holding") in itertools.pairwise(states)


@pytest.mark.usefixtures("e_series")
def test_the_callers_interpreter_lock_does_not_stop_the_loop(driven):
    # 50 periods; a few may be late for other reasons on a busy computer.
    assert periods_within(driven.out, driven.locked, 0.1) >= 40


def arrived_setpoints(record):
    """Return the joint positions (M, 6), rad, that arrived at the controller.

    A row is one package.
    """
    setpoints = []
    for names, values in record.inputs:
        package = dict(zip(names, values, strict=True))
        if "input_double_register_0" in package:
            setpoints.append([package[f"input_double_register_{joint}"] for joint in range(6)])
    return np.array(setpoints)


@pytest.mark.usefixtures("e_series")
def test_the_commands_of_the_log_arrived(driven):
    log = read_log(driven.out / "log.mcap")

    # Of two that arrive in one cycle, the controller takes the later one.
    arrived = arrived_setpoints(driven.record)
    has_arrived = [(arrived == command).all(axis=1).any() for command in log.command]

    assert all(has_arrived)
    assert (np.diff(log.stamp) > 0.0).all()


def test_a_wrist_swing_causes_no_protective_stop(cb3, tmp_path):
    known = set()

    def is_fast_and_limited():
        known.update((cause.kind, cause.subject) for cause in session.status.causes)
        recent = velocities(cb3, tick(cb3) - 50)
        is_fast = np.abs(recent[:, 5]).max(initial=0.0) > 0.8 * SPEED_LIMITS[5]
        return is_fast and ("joint_velocity", "wrist_3_joint") in known

    # To and fro, a second to either side: the joint does not stay at the end of its range.
    start = time.monotonic()

    def swing():
        sign = 1.0 if np.cos(0.5 * np.pi * (time.monotonic() - start)) > 0.0 else -1.0
        return session.twist(sign * np.array([0.0, 0.0, 0.0, 1.5, 0.0, 6.0]), frame="tool")

    begin = tick(cb3)
    with live(cb3, tmp_path / "run") as session:
        session.engage()
        keep_until(session, is_fast_and_limited, swing)
        assert session.status.error is None

    assert (np.abs(velocities(cb3, begin)) <= SPEED_LIMITS).all()


def recorded_payloads(out):
    """Return the masses of the payloads, kg, that the record of a session names up to now."""
    return [event["mass"] for event in read_events(out) if event["event"] == "payload"]


class Gripped(NamedTuple):
    """What was seen of a session at a slider of zero, and after a gripper had set the payload.

    Attributes:
        out: Its directory.
        held: How far the tool moved at a slider of zero, m.
        causes: The causes of its status half a second after the payload was set.
        error: Its error; None without one.
        moved: How far the tool moved on in x after that, m.
    """

    out: Path
    held: float
    causes: list[str]
    error: Exception | None
    moved: float


@pytest.fixture(scope="module", params=KINDS)
def gripped(request, controllers, tmp_path_factory):
    """A session whose events are not read before it ends, as on a busy machine."""
    controller = controllers.ready(request.param)
    out = tmp_path_factory.mktemp("gripped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simbridge.sessions.session.RECORD_INTERVAL_S", 60.0)
        with live(controller, out) as session:
            session.engage()
            keep_forwards(session, 0.3)
            held = hold_at_slider_zero(session, controller)
            run_secondary_program(controller, "set_payload(1.5, [0, 0, 0.1])")
            since = tick(controller)
            keep_forwards(session, 0.5)
            go_on(session, controller)
            status = session.status
    moved = np.ptp(tool_positions(controller, since), axis=0)[0]
    causes = list(map(str, status.causes))
    # Here, too: when a test is run again, only a fixture that has itself failed is made anew.
    assert held < 1e-4
    assert moved > 0.01
    # On a busy machine late commands may be a cause beside it.
    assert "payload 1.50 kg" in causes
    assert status.error is None
    return Gripped(out, held, causes, status.error, moved)


def hold_at_slider_zero(session, controller):
    """Set the slider to zero and to one again, both with an effect; return how far the tool moved
    at zero, m.
    """
    controller.do("slider", fraction=0.0)
    keep_forwards(session, 0.6)
    since = tick(controller)
    keep_forwards(session, 0.3)
    held = np.ptp(tool_positions(controller, since), axis=0).max()
    # On a busy machine an input may be late, and then stale for a moment.
    keep_until(
        session,
        lambda: [str(cause) for cause in session.status.causes] == ["speed_slider 0.00"],
        lambda: session.twist(FORWARDS),
    )
    controller.do("slider", fraction=1.0)
    go_on(session, controller)
    return held


def test_the_arm_holds_while_the_slider_is_zero(gripped):
    assert gripped.held < 1e-4
    assert gripped.error is None


def test_a_grippers_payload_is_a_cause(gripped):
    assert gripped.error is None
    # On a busy machine late commands may be a cause beside it.
    assert "payload 1.50 kg" in gripped.causes
    assert gripped.moved > 0.01


def test_what_the_loop_reported_last_is_recorded(gripped):
    changes = [event for event in read_events(gripped.out) if event["event"] == "payload"]

    assert [(change["mass"], change["cog"]) for change in changes] == [(1.5, [0.0, 0.0, 0.1])]


class Stopped(NamedTuple):
    """What was seen of a session that a protective stop ended while it waited.

    Attributes:
        out: Its directory.
        payloads: The masses that its record named before the stop, kg.
        raised: What the wait raised.
        waited: How long the wait took, s.
        known: Its status after that.
        stayed: Whether inputs then moved nothing.
        engaged: The error of its status when it was engaged again.
        changed: The error of its status when the TCP was set after that.
    """

    out: Path
    payloads: list[float]
    raised: Exception
    waited: float
    known: LiveStatus
    stayed: bool
    engaged: Exception | None
    changed: Exception | None


@pytest.fixture(scope="module", params=KINDS)
def stopped(request, controllers, tmp_path_factory, write_short_page):
    """A session with a gripper that is stopped and engaged again, and whose TCP then changes."""
    controller = controllers.ready(request.param)
    out = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_ending, "write_report", write_short_page)
        with live(controller, out, report=True) as session:
            session.engage()
            run_secondary_program(controller, "set_payload(1.5, [0, 0, 0.1])")
            wait_for(lambda: recorded_payloads(out), "the payload is not recorded")
            payloads = recorded_payloads(out)
            keep_forwards(session, 0.3)
            controller.do("protective_stop")
            begin = time.monotonic()
            with pytest.raises(ProtectiveStop) as caught:
                session.wait(2.0 * PATIENCE)
            waited = time.monotonic() - begin
            known = session.status
            # It is raised once.
            session.wait(0.02)
            since = tick(controller)
            keep_forwards(session, 0.3)
            stayed = never_moved(controller, since)
            controller.set(unlock_delay=0.0)
            session.engage()
            engaged = session.status.error
            go_on(session, controller)
            run_secondary_program(controller, "set_tcp(p[0, 0, 0.05, 0, 0, 0])")
            wait_for(lambda: session.status.error is not None, "no error")
            changed = session.status.error
    # Here, too: when a test is run again, only a fixture that has itself failed is made anew.
    assert engaged is None
    assert isinstance(changed, ToolChanged)
    return Stopped(out, payloads, caught.value, waited, known, stayed, engaged, changed)


def test_a_grippers_payload_is_recorded_as_it_happens(stopped):
    assert stopped.payloads == [1.5]


def test_a_stop_of_the_arm_ends_a_wait(stopped):
    assert stopped.waited < PATIENCE
    assert stopped.known.error is stopped.raised


def test_a_protective_stop_needs_a_new_engagement(stopped):
    assert stopped.known.state == "idle"
    assert stopped.stayed
    assert stopped.engaged is None

    causes = [event["cause"] for event in read_events(stopped.out) if event["event"] == "stopped"]

    assert causes[0] == "protective_stop"

    fates = [record.fate for record in read_inputs(stopped.out)]
    last_rejected = max(number for number, fate in enumerate(fates) if fate == "rejected")

    # On a busy computer single inputs are late.
    assert "accepted" in fates[last_rejected:]


def test_the_grippers_payload_holds_after_a_stop(stopped):
    assert stopped.engaged is None


def test_a_changed_tcp_ends_the_session(stopped):
    assert isinstance(stopped.changed, ToolChanged)
    assert stopped.changed.what == "TCP"

    causes = [event["cause"] for event in read_events(stopped.out) if event["event"] == "stopped"]

    assert causes == ["protective_stop", "tool_changed"]
    assert RunDirectory.open(stopped.out).summary()["ended_by"]["cause"] == "tool_changed"


def set_up(controller, function, field, value):
    """Set the tool with a program on the controller, as an operator does."""
    controller.do("run_script", source=f"def f():\n{function}\nend\n")
    controller.wait_for(field, value)
    controller.wait_for("runtime_state", "STOPPED")


def test_a_later_tcp_moves_nothing(e_series, tmp_path):
    begin = tick(e_series)
    options = {"host": e_series.host, "out": tmp_path / "run", **realtime_options()}
    with simbridge.live("ursim", robot="ur10e", report=False, **options) as session:
        set_up(e_series, "set_tcp(p[0, 0, 0.1, 0, 0, 0])", "tcp_offset", [0, 0, 0.1, 0, 0, 0])

        with pytest.raises(ModelMismatch, match="has changed since it was first read"):
            session.engage()

    assert never_moved(e_series, begin)

    set_up(e_series, "set_tcp(p[0, 0, 0, 0, 0, 0])", "tcp_offset", [0.0] * 6)


@pytest.mark.soak
def test_other_software_moves_nothing(controllers, tmp_path):
    # So that one runs at a time.
    controllers.close()
    host = loopback(71)
    options = {"robot": "ur10e", "host": host, "out": tmp_path / "run", "report": False}
    options |= realtime_options()
    with contextlib.ExitStack() as stack:
        with Emulator("ur10e", host=host, polyscope="5.12", boot_time=0.1) as controller:
            session = stack.enter_context(simbridge.live("ursim", **options))
            session.engage()
            keep_forwards(session, 0.3)
            controller.kill()
            with pytest.raises(simbridge.SimbridgeError):
                session.wait(PATIENCE)

        with Emulator("ur10e", host=host, polyscope="5.25", boot_time=0.1) as controller:
            with pytest.raises(ArmChanged, match="software"):
                session.engage()

            assert never_moved(controller, 0)


def test_a_pause_at_the_pendant_disengages(controller, tmp_path):
    with live(controller, tmp_path / "run") as session:
        session.engage()
        keep_forwards(session, 0.3)
        controller.do("pause_program")
        in_state(session, "paused")
        with pytest.raises(NotEngaged, match="resume it there first"):
            session.engage()
        controller.do("play_program")
        in_state(session, "idle")
        # The program that goes on first takes the arm to where it had sent it before the pause.
        wait_for(
            lambda: not velocities(controller, tick(controller) - 50).any(), "the arm is at rest"
        )
        resumed = tick(controller)
        keep_forwards(session, 0.3)
        assert np.ptp(tool_positions(controller, resumed), axis=0).max() < 1e-4
        session.engage()
        go_on(session, controller)
        assert session.status.error is None


@pytest.mark.soak
def test_a_busy_computer_may_take_long_to_begin(e_series, tmp_path, monkeypatch):
    begin = ServoProcess.begin_session

    def late(process, channel):
        time.sleep(1.0)
        return begin(process, channel)

    monkeypatch.setattr(ServoProcess, "begin_session", late)
    with live(e_series, tmp_path / "run") as session:
        session.engage()
        assert session.status.state == "engaged"


_SESSION = """
import sys, time
import simbridge
host, out = sys.argv[1:]
with simbridge.live("ursim", robot="ur10e", host=host, out=out, timeout=10.0) as session:
    session.engage()
    session.jog([0.0, 0.0, 0.0, 0.0, 0.0, 0.1])
    print("moving", flush=True)
    time.sleep(60.0)
"""


# Killed, the kernel closes the program's pipes; halted, only its heartbeat ends. A halted one is
# also in test_session, and that of a replay on a controller in test_controller_endings.
@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "halted"])
def test_a_killed_program_stops_the_arm(e_series, tmp_path, number):
    words = [sys.executable, "-c", _SESSION, e_series.host, str(tmp_path / "run")]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    assert program.stdout.readline().strip() == "moving"

    os.kill(program.pid, number)
    try:
        e_series.wait_for("runtime_state", "STOPPED")
        e_series.wait_for("moving", False)
    finally:
        if number == signal.SIGSTOP:
            os.kill(program.pid, signal.SIGCONT)
        program.kill()
        program.wait()


def test_a_real_arm_asks_before_it_moves(calibrated, tmp_path):
    asked = []

    def ask(facts, question):
        asked.append(question)
        return len(asked) != 2

    options = {
        "robot": "ur10e",
        "host": calibrated.host,
        "out": tmp_path / "run",
        "report": False,
        **realtime_options(),
    }
    with simbridge.live("real", ask=ask, **options) as session:
        assert len(asked) == 1
        session.engage()
        session.jog([0.0] * 5 + [0.05])
        time.sleep(0.1)
        calibrated.do("protective_stop")
        wait_for(lambda: session.status.error is not None, "no error")
        calibrated.set(unlock_delay=0.0)
        calibrated.do("unlock_protective_stop")
        stopped = tick(calibrated)
        with pytest.raises(NotConfirmed):
            session.engage()
        assert len(asked) == 2
        assert never_moved(calibrated, stopped)
        session.engage()
        assert len(asked) == 3


@pytest.mark.soak  # in simulation test_live_session shows it
def test_a_session_begins_where_the_arm_is(e_series, tmp_path):
    begin = tick(e_series)
    with live(e_series, tmp_path / "run") as session:
        session.engage()
        time.sleep(0.3)

    assert np.abs(e_series.record(after=begin).actual_q - HOME).max() < 1e-3


@pytest.mark.soak  # paced by the wall clock in simulation test_recorded_session shows it
def test_a_moved_slider_is_solved_again(e_series, tmp_path):
    with live(e_series, tmp_path / "run") as session:
        session.engage()
        keep(session, 0.4, lambda: session.twist([0.05, 0.0, 0.05, 0.0, 0.0, 0.3], frame="tool"))
        e_series.do("slider", fraction=0.3)
        keep(session, 0.6, lambda: session.twist([0.05, 0.0, -0.05, 0.0, 0.0, 0.3], frame="tool"))
        session.disengage()
    log = read_log(tmp_path / "run" / "log.mcap")

    assert len(log.setpoint) > 400
    assert log.live["rate"].min() < 0.5
    assert np.array_equal(prepare(tmp_path / "run").plan.setpoints, log.setpoint)
