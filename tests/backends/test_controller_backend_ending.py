"""However a session with a controller ends, it ends in one way: judged by the controller's own record and state."""

from __future__ import annotations

import functools
import os
import signal
import socket
import time

import numpy as np
import pytest

import simbridge
from simbridge.backends import controller_backend as controller
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
    PATIENCE,
    ProcessTrial,
    find_servo_process,
    process_ends,
    write_line,
)
from tests.controllers import CALIBRATION, loopback, never_moved, realtime_options, tick

ON_E_SERIES = ("--robot", "ur10e", "--backend", "ursim")
SOAK = pytest.mark.soak
STOPS = [
    pytest.param("protective_stop", "protective_stop"),
    pytest.param("protective_stop that stops", "protective_stop", marks=SOAK),
    pytest.param("emergency_stop", "emergency_stop", marks=SOAK),
    pytest.param("safeguard_stop", "safeguard_stop", marks=SOAK),
]


def trial(controller, directory, *flags, duration=2.0):
    return ProcessTrial(
        controller, directory, write_line(directory, duration), *ON_E_SERIES, *flags
    )


def plays(controller):
    """Wait until a program plays."""
    deadline = time.monotonic() + 30.0
    while controller.state()["runtime_state"] != "PLAYING":
        assert time.monotonic() < deadline, "no program was started"


def check_end(trial, cause, status=2):
    """What every end has in common; the run's `ended_by`."""
    found, message = trial.wait_for_end()
    assert found == status, message
    ended_by = trial.summary()["ended_by"]
    assert ended_by["cause"] == cause, ended_by
    assert ended_by["arm_at_rest"] is True and ended_by["evidence"]
    state = trial.controller.state()
    assert state["runtime_state"] == "STOPPED" and not state["moving"]
    trial.check_nothing_is_left()
    return ended_by


def stop_by(controller, stop):
    """Cause a stop; "protective_stop that stops" ends the program, as URSim has been seen to do."""
    stop, _, ends = stop.partition(" ")
    if ends:
        controller.set(on_protective_stop="stop")
    controller.do(stop)


def nothing_moves(controller, seconds=0.3):
    q, end = np.array(controller.state()["actual_q"]), time.monotonic() + seconds
    while time.monotonic() < end:
        assert np.array_equal(np.array(controller.state()["actual_q"]), q)
        time.sleep(0.02)


@pytest.mark.parametrize(
    "delay", [pytest.param(0.0, marks=SOAK), 0.05, pytest.param(0.15, marks=SOAK)]
)
@pytest.mark.parametrize(("stop", "cause"), STOPS)
def test_a_stop_while_the_script_starts_is_named_and_no_script_is_left(
    e_series, tmp_path, stop, cause, delay
):
    with trial(e_series, tmp_path) as run:
        run.wait_until_connecting()
        plays(e_series)
        time.sleep(delay)
        stop_by(e_series, stop)
        check_end(run, cause)
        e_series.do("release_safety") if cause != "protective_stop" else None
        nothing_moves(e_series)


@SOAK
def test_a_stop_while_the_dashboard_is_mute_leaves_no_script(e_series, tmp_path):
    with trial(e_series, tmp_path) as run:
        run.wait_until_streaming()
        e_series.do("mute", port=DASHBOARD)
        e_series.do("protective_stop")
        try:
            ended_by = check_end(run, "protective_stop")
            assert any(
                "the dashboard did not stop the control script" in line
                for line in ended_by["evidence"]
            )
        finally:
            e_series.do("mute", port=DASHBOARD, muted=False)


@pytest.mark.parametrize("delay", [0.0, pytest.param(0.1, marks=SOAK)])
def test_a_servo_process_killed_while_the_script_starts_leaves_no_script(e_series, tmp_path, delay):
    with trial(e_series, tmp_path) as run:
        run.wait_until_connecting()
        plays(e_series)
        time.sleep(delay)
        os.kill(run.servo, signal.SIGKILL)
        check_end(run, "servo_process_lost")


def test_remote_control_that_is_switched_off_before_the_script_runs_is_named(e_series, tmp_path):
    begin = e_series.state()["tick"]
    with trial(e_series, tmp_path) as run:
        run.wait_until_connecting()
        e_series.do("remote_control", on=False)
        ended_by = check_end(run, "remote_control_lost")
        assert ended_by["at_s"] is None
    assert never_moved(e_series, begin)


# The arm changes after the plan was made


def planned(controller, directory, backend):
    """A plan for this controller."""
    options = Options(cell=Cell(host=controller.host, robot="ur10e"), **realtime_options())
    return prepare(write_line(directory), robot="ur10e", backend=backend, options=options)


def check_refused_for(what, prepared, controller, directory):
    """The run is refused because this has changed; nothing was sent to the controller."""
    begin = controller.state()["tick"]
    with pytest.raises(ModelMismatch) as raised:
        execute(prepared, out=directory / "run", ask=lambda shown, question: True)
    assert raised.value.what == what and "has changed since it was first read" in str(raised.value)
    ended_by = RunDirectory.open(directory / "run").summary()["ended_by"]
    assert (ended_by["cause"], ended_by["at_s"]) == ("arm_changed", None)
    assert ended_by["evidence"][0].startswith(f"ArmChanged: The {what} of the controller")
    record, state = controller.record(after=begin - 1), controller.state()
    assert np.isnan(record.setpoint).all() and never_moved(controller, begin)
    assert state["runtime_state"] == "STOPPED"


def other_calibration(directory):
    """The file of an arm whose forearm is 1 mm shorter."""
    text = CALIBRATION.read_text().replace("-0.569251663611088", "-0.568251663611088")
    path = directory / "other.toml"
    path.write_text(text.replace("[1, 2, 3, 4, 5, 6]", "[6, 5, 4, 3, 2, 1]"))
    return path


@pytest.mark.parametrize("what", ["calibration", pytest.param("software", marks=SOAK)])
def test_a_controller_restarted_with_another_arm_after_the_plan_was_made_moves_nothing(
    what, controllers, tmp_path
):
    controllers.close()  # so that one runs at a time
    before, after, backend = {
        "calibration": (
            {"calibration": CALIBRATION},
            {"calibration": other_calibration(tmp_path)},
            "real",
        ),
        "software": ({"polyscope": "5.12"}, {"polyscope": "5.25"}, "ursim"),
    }[what]
    host = loopback(70)
    with Emulator("ur10e", host=host, boot_time=0.1, **before) as controller:
        prepared = planned(controller, tmp_path, backend)
    with Emulator("ur10e", host=host, boot_time=0.1, **after) as controller:
        check_refused_for(what, prepared, controller, tmp_path)


def set_up(controller, function, field, value):
    """Set the tool with a program on the controller, as an operator does."""
    controller.do("run_script", source=f"def f():\n{function}\nend\n")
    controller.wait_for(field, value)
    controller.wait_for("runtime_state", "STOPPED")


@pytest.mark.parametrize(
    ("what", "function", "field", "value"),
    [
        ("TCP", "set_tcp(p[0, 0, {}, 0, 0, 0])", "tcp_offset", [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]),
        ("payload", "set_payload({})", "payload", 1.5),
    ],
)
def test_a_tool_set_after_the_plan_was_made_moves_nothing(
    what, function, field, value, e_series, tmp_path
):
    prepared, before = planned(e_series, tmp_path, "ursim"), e_series.state()[field]
    set_up(e_series, function.format(np.max(value)), field, value)
    check_refused_for(what, prepared, e_series, tmp_path)
    set_up(e_series, function.format(0.0), field, before)


AFTER_THE_STOP = {
    "Ctrl-C": lambda run: run.signal(signal.SIGINT),
    "a second Ctrl-C": lambda run: (
        run.signal(signal.SIGINT),
        time.sleep(0.1),
        run.signal(signal.SIGINT),
    ),
    "the states' connection dropped": lambda run: run.controller.do("drop", port=30004, client=0),
    "both connections dropped": lambda run: run.controller.do("drop", port=30004),
    "frozen": lambda run: run.controller.do("freeze", seconds=0.25),
}


@pytest.mark.parametrize(
    "stop", ["protective_stop", pytest.param("protective_stop that stops", marks=SOAK)]
)
@pytest.mark.parametrize(
    "then", [pytest.param(name, marks=() if name == "Ctrl-C" else SOAK) for name in AFTER_THE_STOP]
)
def test_after_a_protective_stop_whatever_follows_our_script_is_stopped(
    e_series, tmp_path, then, stop
):
    with trial(e_series, tmp_path) as run:
        run.wait_until_streaming()
        stop_by(e_series, stop)
        AFTER_THE_STOP[then](run)
        status, _ = run.wait_for_end()
        assert status in (2, 130)
        assert run.summary()["ended_by"]["cause"] == "protective_stop"
        assert e_series.state()["runtime_state"] == "STOPPED"


OTHER = b"def other():\n  while True:\n    sleep(0.1)\n  end\nend\n"


def start_another_program(controller):
    """Send another program, as a colleague does, and wait until it runs in the place of ours."""
    with socket.create_connection((controller.host, SECONDARY), 5.0) as client:
        client.sendall(OTHER)
        deadline = time.monotonic() + PATIENCE
        while np.isfinite(controller.record(after=tick(controller) - 2).setpoint).any():
            assert time.monotonic() < deadline, (
                "setpoints still arrive: our program was not replaced"
            )
            time.sleep(0.005)
        controller.wait_for("runtime_state", "PLAYING")


@pytest.mark.parametrize("delay", [pytest.param(delay, marks=SOAK) for delay in (0.01, 0.03, 0.1)])
def test_on_a_stop_right_after_another_program_replaced_ours_that_is_left_alone(
    e_series, tmp_path, delay
):
    with trial(e_series, tmp_path) as run:
        run.wait_until_streaming()
        start_another_program(e_series)
        time.sleep(delay)
        e_series.do("protective_stop")
        status, message = run.wait_for_end()
    assert status == 2 and run.summary()["ended_by"]["arm_at_rest"], message
    try:
        assert e_series.state()["runtime_state"] == "PAUSED"
    finally:
        e_series.do("stop_program")


@pytest.mark.soak
def test_another_program_that_was_paused_while_our_connection_was_made_is_left_alone(
    e_series, tmp_path
):
    with trial(e_series, tmp_path) as run:
        run.wait_until_connecting()
        os.kill(run.servo, signal.SIGSTOP)
        start_another_program(e_series)
        e_series.wait_for("runtime_state", "PLAYING")
        e_series.do("pause_program")
        os.kill(run.servo, signal.SIGCONT)
        status, message = run.wait_for_end()
    assert status == 2 and "program is paused" in message and "not touched" in message, message
    try:
        assert e_series.state()["runtime_state"] == "PAUSED"
    finally:
        e_series.do("stop_program")


def test_another_program_that_replaces_ours_is_named_and_left_alone(e_series, tmp_path):
    with trial(e_series, tmp_path, duration=3.0) as run:
        run.wait_until_streaming()
        with socket.create_connection((e_series.host, 30002)) as client:
            client.sendall(OTHER)
            status, message = run.wait_for_end()
            assert status == 2 and "not touched" in message
            ended_by = run.summary()["ended_by"]
            assert (ended_by["cause"], ended_by["arm_at_rest"]) == ("program_replaced", True)
            assert e_series.state()["runtime_state"] == "PLAYING"
            e_series.do("stop_program")


def test_a_paused_program_is_waited_for_and_the_plan_goes_on_from_rest(e_series, tmp_path):
    begin = tick(e_series)
    with trial(e_series, tmp_path) as run:
        run.wait_until_streaming()
        e_series.do("pause_program")
        time.sleep(1.0)
        e_series.do("play_program")
        check_end(run, "completed", status=0)
    record = e_series.record(after=begin)
    ours = np.isfinite(record.setpoint).all(axis=1)
    assert np.abs(np.diff(record.target_q[ours], axis=0)).max() / 0.002 < 0.6


@SOAK
def test_with_on_pause_stop_a_pause_ends_the_run(e_series, tmp_path):
    with trial(e_series, tmp_path, "--on-pause", "stop") as run:
        run.wait_until_streaming()
        e_series.do("pause_program")
        check_end(run, "program_paused")


@SOAK  # below from Python, and Ctrl-C and Ctrl-Z in test_controller_backend_faults
@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGHUP, "hangup"), (signal.SIGTERM, "terminated")]
)
def test_signals_end_a_run_as_ctrl_c_does(e_series, tmp_path, number, cause):
    with trial(e_series, tmp_path) as run:
        run.wait_until_streaming()
        run.signal(number)
        check_end(run, cause, status=128 + number)


@SOAK
def test_what_a_halted_program_missed_is_logged_when_ctrl_c_ends_it(e_series, tmp_path):
    with trial(e_series, tmp_path) as run:
        run.wait_until_streaming()
        run.signal(signal.SIGSTOP)
        time.sleep(0.6)
        tick = run.tick()
        run.signal(signal.SIGINT)
        run.signal(signal.SIGCONT)
        check_end(run, "interrupted", 130)
        run.check_rest(tick)


def run_from_python(host, directory):
    """What a program sees of the signal that ends its run; afterwards it has the signals as before."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    options = Options(cell=Cell(host=host, robot="ur10e"), **realtime_options())
    try:
        simbridge.run(
            write_line(directory),
            robot="ur10e",
            backend="ursim",
            out=directory / "run",
            options=options,
        )
    except Interrupted as error:
        assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before
        return 128 + error.number


@pytest.mark.parametrize(
    ("number", "cause"),
    [(signal.SIGTERM, "terminated"), pytest.param(signal.SIGHUP, "hangup", marks=SOAK)],
)
def test_signals_end_a_run_of_a_python_program_as_ctrl_c_does(e_series, tmp_path, number, cause):
    program = functools.partial(run_from_python, directory=tmp_path)
    with ProcessTrial(e_series, tmp_path, program=program) as run:
        run.wait_until_streaming()
        run.signal(number)
        tick = run.tick()
        ended_by = check_end(run, cause, status=128 + number)
        assert 0.0 < ended_by["at_s"] < 2.0
        run.check_rest(tick)


def test_ctrl_c_while_the_servo_process_starts_ends_the_run(e_series, tmp_path, monkeypatch):
    started, begin = [], tick(e_series)

    def interrupted(host):
        started.append(find_servo_process(os.getpid()))
        signal.raise_signal(signal.SIGINT)
        return ControllerMessages(host)

    monkeypatch.setattr(controller, "ControllerMessages", interrupted)
    assert run_from_python(e_series.host, tmp_path) == 130
    assert process_ends(started[0]) and never_moved(e_series, begin)
    assert RunDirectory.open(tmp_path / "run").summary()["ended_by"]["cause"] == "interrupted"


@pytest.mark.soak
def test_what_came_while_the_program_was_held_up_is_read_before_it_counts_as_silence(
    e_series, tmp_path, monkeypatch
):
    read, held_up = StateRing.new_states, iter([1.0])

    def new_states(ring, period):
        yield from read(ring, period)
        time.sleep(next(held_up, 0.0))

    monkeypatch.setattr(StateRing, "new_states", new_states)
    run_from_python(e_series.host, tmp_path)
    assert RunDirectory.open(tmp_path / "run").summary()["ended_by"]["cause"] == "completed"


def test_a_halted_program_does_not_keep_the_arm_moving(e_series, tmp_path):
    with trial(e_series, tmp_path, duration=3.0) as run:
        run.wait_until_streaming()
        run.signal(signal.SIGSTOP)
        assert process_ends(run.servo)
        nothing_moves(e_series)
        run.signal(signal.SIGCONT)
        check_end(run, "parent_lost")
