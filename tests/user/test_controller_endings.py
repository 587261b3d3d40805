"""However a session with a controller ends, it ends in one way.

It is judged by the controller's own record and state.
"""

from __future__ import annotations

import functools
import os
import signal
import socket
import time

import numpy as np
import pytest

import simbridge
from simbridge.backends import controller_backend
from simbridge.backends.state_ring import StateRing
from simbridge.emulator.handle import Emulator
from simbridge.errors import Interrupted
from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.cell import Cell
from simbridge.running.run_setup import prepare
from simbridge.running.runner import execute
from simbridge.ur.controller_messages import ControllerMessages
from simbridge.ur.errors import ModelMismatch
from simbridge.ur.tables import DASHBOARD, SECONDARY
from tests.backends.trial import (
    ProcessTrial,
    find_servo_process,
    process_ends,
    write_line,
)
from tests.controllers import (
    CALIBRATION,
    loopback,
    never_moved,
    realtime,
    realtime_options,
    tick,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.quick

ON_E_SERIES = ("--robot", "ur10e", "--backend", "ursim")
PERIOD = 0.002
SOAK = pytest.mark.soak
STOPS = [
    pytest.param("protective_stop", "protective_stop"),
    pytest.param("protective_stop that stops", "protective_stop", marks=SOAK),
    pytest.param("emergency_stop", "emergency_stop", marks=SOAK),
    pytest.param("safeguard_stop", "safeguard_stop", marks=SOAK),
]
OTHER_PROGRAM = b"def other():\n  while True:\n    sleep(0.1)\n  end\nend\n"


def start_trial(controller, directory, *flags, duration=2.0):
    """Return a run of a line in a process of its own."""
    scenario = write_line(directory, duration)
    return ProcessTrial(controller, directory, scenario, *ON_E_SERIES, *flags)


def wait_until_playing(controller):
    """Wait until a program plays."""
    deadline = time.monotonic() + PATIENCE
    while controller.state()["runtime_state"] != "PLAYING":
        assert time.monotonic() < deadline, "no program was started"


def check_end(trial, cause, status=2):
    """Check what every end has in common; return the run's `ended_by`."""
    actual_status, message = trial.wait_for_end()
    assert actual_status == status, message
    ended_by = trial.summary()["ended_by"]
    assert ended_by["cause"] == cause, ended_by
    assert ended_by["arm_at_rest"] is True
    assert ended_by["evidence"]
    state = trial.controller.state()
    assert state["runtime_state"] == "STOPPED"
    assert not state["moving"]
    trial.check_nothing_is_left()
    return ended_by


def stop_by(controller, stop):
    """Cause a stop; "protective_stop that stops" ends the program, as URSim has been seen to do."""
    command, _, ends_program = stop.partition(" ")
    if ends_program:
        controller.set(on_protective_stop="stop")
    controller.do(command)


def check_nothing_moves(controller, seconds=0.3):
    """Check that the arm rests for a while."""
    q = controller.state()["actual_q"]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert controller.state()["actual_q"] == q
        time.sleep(0.02)


# ---- while the script starts


@pytest.mark.parametrize(
    "delay", [pytest.param(0.0, marks=SOAK), 0.05, pytest.param(0.15, marks=SOAK)]
)
@pytest.mark.parametrize(("stop", "cause"), STOPS)
def test_a_stop_at_the_start_leaves_no_script(e_series, tmp_path, stop, cause, delay):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_connecting()
        wait_until_playing(e_series)
        time.sleep(delay)

        stop_by(e_series, stop)

        check_end(trial, cause)
        if cause != "protective_stop":
            e_series.do("release_safety")
        check_nothing_moves(e_series)


@SOAK
def test_a_mute_dashboard_leaves_no_script(e_series, tmp_path):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_streaming()

        e_series.do("mute", port=DASHBOARD)
        e_series.do("protective_stop")

        try:
            ended_by = check_end(trial, "protective_stop")
        finally:
            e_series.do("mute", port=DASHBOARD, muted=False)
        evidence = "\n".join(ended_by["evidence"])
        assert "the dashboard did not stop the control script" in evidence


@pytest.mark.parametrize("delay", [0.0, pytest.param(0.1, marks=SOAK)])
def test_a_process_killed_early_leaves_no_script(e_series, tmp_path, delay):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_connecting()
        wait_until_playing(e_series)
        time.sleep(delay)

        os.kill(trial.servo, signal.SIGKILL)

        check_end(trial, "servo_process_lost")


def test_losing_remote_control_early_is_named(e_series, tmp_path):
    begin = tick(e_series)

    with start_trial(e_series, tmp_path) as trial:
        # Before the script is sent.
        with realtime():
            trial.wait_until_connecting()
            e_series.do("remote_control", on=False)
        ended_by = check_end(trial, "remote_control_lost")

    assert ended_by["at_s"] is None
    assert never_moved(e_series, begin)


# ---- the arm changes after the plan was made


def make_plan(controller, directory, backend):
    """Return a run that was planned for this controller."""
    options = Options(cell=Cell(host=controller.host, robot="ur10e"), **realtime_options())
    return prepare(write_line(directory), robot="ur10e", backend=backend, options=options)


def check_refused_for(what, prepared, controller, directory):
    """Check that a run is refused because this has changed, and that nothing was sent."""
    begin = tick(controller)

    with pytest.raises(ModelMismatch) as raised:
        execute(prepared, out=directory / "run", ask=lambda shown, question: True)

    assert raised.value.what == what
    assert "has changed since it was first read" in str(raised.value)
    ended_by = RunDirectory.open(directory / "run").summary()["ended_by"]
    assert ended_by["cause"] == "arm_changed"
    assert ended_by["at_s"] is None
    assert ended_by["evidence"][0].startswith(f"ArmChanged: The {what} of the controller")
    assert np.isnan(controller.record(after=begin - 1).setpoint).all()
    assert never_moved(controller, begin)
    assert controller.state()["runtime_state"] == "STOPPED"


def write_other_calibration(directory):
    """Write the file of an arm whose forearm is 1 mm shorter, and return it."""
    text = CALIBRATION.read_text().replace("-0.569251663611088", "-0.568251663611088")
    path = directory / "other.toml"
    path.write_text(text.replace("[1, 2, 3, 4, 5, 6]", "[6, 5, 4, 3, 2, 1]"))
    return path


# test_a_controller_that_changed_after_planning_is_refused finds what differs, and
# test_a_tool_set_after_planning_moves_nothing shows that nothing moves then.
@SOAK
@pytest.mark.parametrize("what", ["calibration", "software"])
def test_a_controller_restarted_with_another_arm_moves_nothing(what, controllers, tmp_path):
    # So that one runs at a time.
    controllers.close()
    if what == "calibration":
        before = {"calibration": CALIBRATION}
        after = {"calibration": write_other_calibration(tmp_path)}
        backend = "real"
    else:
        before = {"polyscope": "5.12"}
        after = {"polyscope": "5.25"}
        backend = "ursim"
    host = loopback(70)

    with Emulator("ur10e", host=host, boot_time=0.1, **before) as controller:
        prepared = make_plan(controller, tmp_path, backend)

    with Emulator("ur10e", host=host, boot_time=0.1, **after) as controller:
        check_refused_for(what, prepared, controller, tmp_path)


def run_statement(controller, statement, field, value):
    """Set the tool with a program on the controller, as an operator does.

    Args:
        controller: The controller.
        statement: The program's statement.
        field: The field of the controller's state that shows the result.
        value: Its value.
    """
    controller.do("run_script", source=f"def f():\n{statement}\nend\n")
    controller.wait_for(field, value)
    controller.wait_for("runtime_state", "STOPPED")


@pytest.mark.parametrize(
    ("what", "function", "field", "value"),
    [
        # Of a live session in test_session_on_controller, too.
        pytest.param(
            "TCP",
            "set_tcp(p[0, 0, {}, 0, 0, 0])",
            "tcp_offset",
            [0.0, 0.0, 0.1, 0.0, 0.0, 0.0],
            marks=SOAK,
        ),
        ("payload", "set_payload({})", "payload", 1.5),
    ],
)
def test_a_tool_set_after_planning_moves_nothing(what, function, field, value, e_series, tmp_path):
    prepared = make_plan(e_series, tmp_path, "ursim")
    before = e_series.state()[field]

    run_statement(e_series, function.format(np.max(value)), field, value)

    check_refused_for(what, prepared, e_series, tmp_path)
    run_statement(e_series, function.format(0.0), field, before)


# ---- after a stop


def interrupt_twice(trial):
    """Press Ctrl-C twice."""
    trial.signal(signal.SIGINT)
    time.sleep(0.1)
    trial.signal(signal.SIGINT)


AFTER_THE_STOP = {
    "Ctrl-C": lambda trial: trial.signal(signal.SIGINT),
    "a second Ctrl-C": interrupt_twice,
    "the states' connection dropped": lambda trial: trial.controller.do(
        "drop", port=30004, client=0
    ),
    "both connections dropped": lambda trial: trial.controller.do("drop", port=30004),
    "frozen": lambda trial: trial.controller.do("freeze", seconds=0.25),
}


@pytest.mark.parametrize(
    "stop", ["protective_stop", pytest.param("protective_stop that stops", marks=SOAK)]
)
@pytest.mark.parametrize(
    "then", [pytest.param(name, marks=() if name == "Ctrl-C" else SOAK) for name in AFTER_THE_STOP]
)
def test_after_a_protective_stop_every_script_is_stopped(e_series, tmp_path, then, stop):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_streaming()

        stop_by(e_series, stop)
        AFTER_THE_STOP[then](trial)
        status, _ = trial.wait_for_end()

        assert status in (2, 130)
        assert trial.summary()["ended_by"]["cause"] == "protective_stop"
        assert e_series.state()["runtime_state"] == "STOPPED"


# ---- another program


def start_another_program(controller):
    """Send another program, as a colleague does, and wait until it runs in the place of ours."""
    with socket.create_connection((controller.host, SECONDARY), PATIENCE) as client:
        client.sendall(OTHER_PROGRAM)
        deadline = time.monotonic() + PATIENCE
        while np.isfinite(controller.record(after=tick(controller) - 2).setpoint).any():
            assert time.monotonic() < deadline, (
                "setpoints still arrive: our program was not replaced"
            )
            time.sleep(0.005)
        controller.wait_for("runtime_state", "PLAYING")


@pytest.mark.parametrize("delay", [pytest.param(delay, marks=SOAK) for delay in (0.01, 0.03, 0.1)])
def test_a_stop_leaves_a_replacing_program_alone(e_series, tmp_path, delay):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_streaming()
        start_another_program(e_series)
        time.sleep(delay)
        e_series.do("protective_stop")
        status, message = trial.wait_for_end()

    assert status == 2
    assert trial.summary()["ended_by"]["arm_at_rest"], message
    try:
        assert e_series.state()["runtime_state"] == "PAUSED"
    finally:
        e_series.do("stop_program")


@SOAK
def test_another_program_paused_while_we_connect_is_left_alone(e_series, tmp_path):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_connecting()
        os.kill(trial.servo, signal.SIGSTOP)
        start_another_program(e_series)
        e_series.wait_for("runtime_state", "PLAYING")
        e_series.do("pause_program")
        os.kill(trial.servo, signal.SIGCONT)
        status, message = trial.wait_for_end()

    assert status == 2, message
    assert "program is paused" in message
    assert "was not touched" in message
    try:
        assert e_series.state()["runtime_state"] == "PAUSED"
    finally:
        e_series.do("stop_program")


def test_a_replacing_program_is_named_and_left(e_series, tmp_path):
    with start_trial(e_series, tmp_path, duration=3.0) as trial:
        trial.wait_until_streaming()
        with socket.create_connection((e_series.host, SECONDARY)) as client:
            client.sendall(OTHER_PROGRAM)
            status, message = trial.wait_for_end()

            assert status == 2
            assert "left running" in message
            ended_by = trial.summary()["ended_by"]
            assert ended_by["cause"] == "program_replaced"
            assert ended_by["arm_at_rest"] is True
            assert e_series.state()["runtime_state"] == "PLAYING"
            e_series.do("stop_program")


# ---- a pause


def test_after_a_pause_the_plan_continues_from_rest(e_series, tmp_path):
    begin = tick(e_series)

    with start_trial(e_series, tmp_path, duration=1.2) as trial:
        trial.wait_until_streaming()
        e_series.do("pause_program")
        time.sleep(0.3)
        e_series.do("play_program")
        check_end(trial, "completed", status=0)

    record = e_series.record(after=begin)
    servoed = np.isfinite(record.setpoint).all(axis=1)
    speed = np.abs(np.diff(record.target_q[servoed], axis=0)) / PERIOD
    assert speed.max() < 0.6


@SOAK
def test_with_on_pause_stop_a_pause_ends_the_run(e_series, tmp_path):
    with start_trial(e_series, tmp_path, "--on-pause", "stop") as trial:
        trial.wait_until_streaming()

        e_series.do("pause_program")

        check_end(trial, "program_paused")


# ---- signals


# Below from Python, and Ctrl-C and Ctrl-Z in test_controller_faults.
@SOAK
@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGHUP, "hangup"), (signal.SIGTERM, "terminated")]
)
def test_signals_end_a_run_as_ctrl_c_does(e_series, tmp_path, number, cause):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_streaming()

        trial.signal(number)

        check_end(trial, cause, status=128 + number)


@SOAK
def test_ctrl_c_logs_what_a_halted_program_missed(e_series, tmp_path):
    with start_trial(e_series, tmp_path) as trial:
        trial.wait_until_streaming()
        trial.signal(signal.SIGSTOP)
        time.sleep(0.6)
        begin = trial.tick()

        trial.signal(signal.SIGINT)
        trial.signal(signal.SIGCONT)

        check_end(trial, "interrupted", 130)
        trial.check_rest(begin)


def read_handlers():
    """Return this process's handlers of the signals that end a run."""
    return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]


def run_from_python(host, directory):
    """Run a line from Python, and return an exit status if a signal ends it.

    Afterwards the program has its handlers of signals as before.
    """
    before = read_handlers()
    options = Options(cell=Cell(host=host, robot="ur10e"), **realtime_options())
    scenario = write_line(directory)
    try:
        simbridge.run(
            scenario, robot="ur10e", backend="ursim", out=directory / "run", options=options
        )
    except Interrupted as error:
        assert read_handlers() == before
        return 128 + error.number


@pytest.mark.parametrize(
    ("number", "cause"),
    [(signal.SIGTERM, "terminated"), pytest.param(signal.SIGHUP, "hangup", marks=SOAK)],
)
def test_signals_end_a_python_programs_run(e_series, tmp_path, number, cause):
    program = functools.partial(run_from_python, directory=tmp_path)

    with ProcessTrial(e_series, tmp_path, program=program) as trial:
        trial.wait_until_streaming()
        trial.signal(number)
        begin = trial.tick()

        ended_by = check_end(trial, cause, status=128 + number)

        assert 0.0 < ended_by["at_s"] < 2.0
        trial.check_rest(begin)


def test_an_early_ctrl_c_ends_the_run(e_series, tmp_path, monkeypatch):
    begin = tick(e_series)
    servo_processes = []

    def interrupt_and_connect(host):
        servo_processes.append(find_servo_process(os.getpid()))
        signal.raise_signal(signal.SIGINT)
        return ControllerMessages(host)

    monkeypatch.setattr(controller_backend, "ControllerMessages", interrupt_and_connect)

    assert run_from_python(e_series.host, tmp_path) == 130

    assert process_ends(servo_processes[0])
    assert never_moved(e_series, begin)
    assert RunDirectory.open(tmp_path / "run").summary()["ended_by"]["cause"] == "interrupted"


@SOAK
def test_states_of_a_held_up_program_count(e_series, tmp_path, monkeypatch):
    read = StateRing.new_states
    delays = iter([1.0])

    def read_and_hold_up(ring, period):
        yield from read(ring, period)
        time.sleep(next(delays, 0.0))

    monkeypatch.setattr(StateRing, "new_states", read_and_hold_up)

    run_from_python(e_series.host, tmp_path)

    assert RunDirectory.open(tmp_path / "run").summary()["ended_by"]["cause"] == "completed"


# Of a live session in test_controller_faults, whose servo process watches its parent as this one.
@SOAK
def test_a_halted_program_does_not_keep_the_arm_moving(e_series, tmp_path):
    with start_trial(e_series, tmp_path, duration=3.0) as trial:
        trial.wait_until_streaming()
        trial.signal(signal.SIGSTOP)

        assert process_ends(trial.servo)
        check_nothing_moves(e_series)

        trial.signal(signal.SIGCONT)
        check_end(trial, "parent_lost")
