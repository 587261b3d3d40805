"""Faults while an arm is servoed end a run; the controller is emulated, in its own process.

In every case there is one clear paragraph, a log that is readable up to its last half second, no
process and no shared file left, and the arm at rest within half a second of the controller's time.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import simbridge
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from tests.backends.trial import ProcessTrial, Trial, process_ends, write_line
from tests.controllers import HOME, move, realtime_options, run_secondary_program
from tests.optional_packages import LINK
from tests.patience import PATIENCE

pytestmark = pytest.mark.quick

# Faster tests cover these, too: test_streaming_stops shows how a stop or a lost connection ends
# the stream, test_controller_recovery and test_ursim_and_real on a controller;
# test_servo_process shows a stop that is interrupted.
SOAK = pytest.mark.soak
ON_E_SERIES = ("--robot", "ur10e", "--backend", "ursim")
ON_CB3 = ("--robot", "ur10", "--backend", "ursim")


def do(command, **arguments):
    """Return a fault of the controller."""
    return lambda trial: trial.controller.do(command, **arguments)


def stop_and_end(trial):
    """Stop the arm and end its script, as in a recording of URSim; by default a stop pauses it."""
    trial.controller.set(on_protective_stop="stop")
    trial.controller.do("protective_stop")


def kill_servo_process(number):
    """Return a fault: the servo process is killed by a signal."""
    return lambda trial: os.kill(trial.servo, number)


@pytest.mark.parametrize(
    ("fault", "outcome", "message_part"),
    [
        pytest.param(
            do("drop", port=30004, client=0),
            "ConnectionLost",
            "30004",
            id="connection for states dropped",
            marks=SOAK,
        ),
        pytest.param(
            do("drop", port=30004, client=1),
            "ConnectionLost",
            "30004",
            id="connection for commands dropped",
            marks=SOAK,
        ),
        pytest.param(
            do("freeze", seconds=0.3),
            "StaleState",
            "network",
            id="frozen for 0.3 s",
            marks=SOAK,
        ),
        pytest.param(
            do("emergency_stop"),
            "EmergencyStop",
            "release the button",
            id="emergency stop",
            marks=SOAK,
        ),
        pytest.param(
            do("safeguard_stop"),
            "SafeguardStop",
            "Close the safeguard",
            id="safeguard stop",
            marks=SOAK,
        ),
        pytest.param(
            do("protective_stop"),
            "ProtectiveStop",
            "confirm at the pendant",
            id="protective stop",
            marks=SOAK,
        ),
        pytest.param(
            stop_and_end,
            "ProtectiveStop",
            "confirm at the pendant",
            id="protective stop that ends it",
            marks=SOAK,
        ),
        pytest.param(
            do("stop_program"),
            "ProgramStopped",
            "stop was pressed",
            id="program stopped",
            marks=SOAK,
        ),
        pytest.param(
            kill_servo_process(signal.SIGKILL),
            "ServoProcessLost",
            "was killed by SIGKILL. The arm is at rest",
            id="servo process killed",
        ),
        # ur_rtde sometimes does so when its connection is dropped.
        pytest.param(
            kill_servo_process(signal.SIGSEGV),
            "ServoProcessLost",
            "was killed by SIGSEGV",
            id="ur_rtde crashed",
            marks=SOAK,
        ),
    ],
)
def test_a_faults_error_ends_the_run_at_rest(fault, outcome, message_part, e_series, tmp_path):
    with Trial(e_series, tmp_path, write_line(tmp_path), *ON_E_SERIES) as trial:
        trial.wait_until_streaming()

        fault(trial)
        tick = trial.tick()
        status, message = trial.wait_for_end()

        assert status == 2
        if outcome == "ConnectionLost" and "was killed by SIGSEGV" in message:
            # ur_rtde sometimes crashes when its connection is dropped: then that is what ended the
            # run.
            outcome = "ServoProcessLost"
            message_part = "RTDE"
        assert e_series.host in message
        assert message_part in message
        assert str(trial.out) in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert trial.summary()["outcome"].startswith(f"{outcome}: ")


# test_another_tcp_ends_a_replay_by_name and the tests below it show it in the servo loop;
# test_a_changed_tcp_ends_the_session of test_session_on_controller with a controller.
@SOAK
@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("set_tcp(p[0, 0, 0.05, 0, 0, 0])", "TCP"),
        ("set_payload(2.5, [0, 0, 0.1])", "payload"),
    ],
)
def test_a_secondary_programs_tool_ends_the_run(call, what, e_series, tmp_path):
    flags = (*ON_E_SERIES, "--payload", "1.0")

    with Trial(e_series, tmp_path, write_line(tmp_path), *flags) as trial:
        trial.wait_until_streaming()
        run_secondary_program(trial.controller, call)
        tick = trial.tick()
        status, message = trial.wait_for_end()
        trial.check_rest(tick)

    assert status == 2
    assert f"The {what} of the controller at {e_series.host} was changed from" in message
    assert trial.summary()["ended_by"]["cause"] == "tool_changed"


def test_a_long_frozen_controller_ends_the_run(e_series, tmp_path):
    with Trial(e_series, tmp_path, write_line(tmp_path), *ON_E_SERIES) as trial:
        trial.wait_until_streaming()

        trial.controller.do("freeze", seconds=2.0)
        # The answer comes once it goes on.
        tick = trial.tick()
        status, message = trial.wait_for_end()

        assert status == 2
        assert trial.summary()["outcome"].startswith("StaleState: ")
        waited_ms = int(message.partition(" ms,")[0].rpartition(" ")[2])
        assert 100 <= waited_ms < 1000
        trial.check_nothing_is_left()
        # It does not resume the run.
        trial.check_rest(tick)


@pytest.mark.kills_controller
def test_a_killed_controllers_states_are_logged(e_series, tmp_path):
    with Trial(e_series, tmp_path, write_line(tmp_path), *ON_E_SERIES) as trial:
        trial.wait_until_streaming()
        trial.wait_until_logged()

        killed_at = time.monotonic()
        trial.controller.kill()
        status, message = trial.wait_for_end()

        assert status == 2
        assert "Lost the controller" in message
        trial.check_nothing_is_left()
        assert trial.log().host_monotonic[-1] >= killed_at - 0.5
        assert trial.summary()["outcome"].startswith("ConnectionLost: ")


def test_a_killed_parents_arm_stops(e_series, tmp_path):
    with ProcessTrial(e_series, tmp_path, write_line(tmp_path), *ON_E_SERIES) as trial:
        trial.wait_until_streaming()
        trial.wait_until_logged()
        samples = len(trial.log().index)

        trial.signal(signal.SIGKILL)
        # On a busy computer a killed program takes a while to end.
        trial.wait_for_end()
        tick = trial.tick()

        trial.check_nothing_is_left()
        # A busy computer may not have let the program write for a while: what it wrote is kept.
        trial.check_rest(tick, logged=False)
        assert len(trial.log().index) >= samples
        assert not trial.log().complete


# Four times in a row in test_servo_process, and while connecting in
# test_controller_endings.
@SOAK
@pytest.mark.parametrize("moment", ["connecting", "approaching", "streaming", "stopping"])
def test_ctrl_c_stops_the_arm_and_keeps_the_run(moment, cb3, tmp_path):
    if moment == "approaching":
        move(cb3, HOME + np.array([0.6, 0.0, 0.0, 0.0, 0.0, 0.0]))

    with ProcessTrial(cb3, tmp_path, write_line(tmp_path), *ON_CB3) as trial:
        if moment == "connecting":
            trial.wait_until_connecting()
        elif moment == "approaching":
            trial.wait_until_moving()
        else:
            trial.wait_until_streaming()

        trial.signal(signal.SIGINT)
        if moment == "stopping":
            time.sleep(0.02)
            trial.signal(signal.SIGINT)
        tick = trial.tick()
        status, message = trial.wait_for_end()

        assert status == 130
        assert "nterrupted" in message
        trial.check_nothing_is_left()
        if moment == "connecting":
            assert np.array_equal(cb3.state()["actual_q"], HOME)
        else:
            trial.check_rest(tick, logged=moment != "approaching")
        assert RunDirectory.open(trial.out).settings().backend.name == "ursim"


@SOAK
def test_ctrl_z_stops_the_arm_like_ctrl_c(cb3, tmp_path):
    # A suspended run would watch nothing.
    with ProcessTrial(cb3, tmp_path, write_line(tmp_path), *ON_CB3) as trial:
        trial.wait_until_streaming()

        trial.signal(signal.SIGTSTP)
        tick = trial.tick()
        status, message = trial.wait_for_end()

        assert status == 128 + signal.SIGTSTP
        assert "nterrupted" in message
        ended_by = trial.summary()["ended_by"]
        assert ended_by["cause"] == "interrupted"
        assert ended_by["arm_at_rest"] is True
        trial.check_nothing_is_left()
        trial.check_rest(tick)


# ---- the speed slider


def median_delay(error, log, scaling):
    """Return the delay that explains the error of a plan at 0.1 m/s, s.

    Args:
        error: The errors of the log's samples (T,), m.
        log: The log.
        scaling: The speed scaling of the samples that count.
    """
    steady = (log.plan_time > 0.3) & (log.plan_time < 1.9)
    counted = steady & (np.abs(log.speed_scaling - scaling) < 1e-6)
    return np.median(error[counted]) / (0.1 * scaling)


@SOAK
def test_the_plan_follows_the_speed_slider(e_series, tmp_path):
    with Trial(e_series, tmp_path, write_line(tmp_path), *ON_E_SERIES) as trial:
        trial.wait_until_streaming()
        for fraction in (0.3, 0.0, 1.0):
            trial.controller.do("slider", fraction=fraction)
            trial.controller.wait_for("speed_scaling", fraction)
            time.sleep(0.4)
        assert trial.wait_for_end() == (0, "")
        trial.check_nothing_is_left()

    summary = trial.summary()
    log = trial.log()
    assert summary["outcome"] == "completed"
    assert summary["speed_scaling"]["min"] == 0.0
    assert log.plan_time[-1] == pytest.approx(2.0)
    assert (np.diff(log.plan_time) >= 0.0).all()

    # At any speed, the error at the plan's time is speed times delay. The delay is the servo's; in
    # either part of the run, transport may add one period.
    run = Evaluation.of(RunDirectory.open(trial.out))
    error = np.linalg.norm(run.attained[:, :3] - run.reference[:, :3], axis=1)
    delay = median_delay(error, log, 1.0)
    assert median_delay(error, log, 0.3) == pytest.approx(delay, abs=1.2 * 0.002)
    # A sample now and then waits for the tests that run at the same time.
    steady = (log.plan_time > 0.3) & (log.plan_time < 1.9)
    assert np.quantile(error[steady], 0.98) < 0.1 * (delay + 0.005)


def test_the_slider_stops_a_full_speed_run(cb3, tmp_path):
    with Trial(cb3, tmp_path, write_line(tmp_path), *ON_CB3, "--on-scaling", "stop") as trial:
        trial.wait_until_streaming()

        trial.controller.do("slider", fraction=0.3)
        tick = trial.tick()
        status, message = trial.wait_for_end()

        assert status == 2
        assert "--on-scaling follow" in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert trial.summary()["outcome"].startswith("SpeedScaled: ")


# ---- a live session


def move_down(host):
    """Move the tool down in a live session, and print the error that ends it; if none does, why the
    arm was slow at last.
    """
    # The trial's directory.
    out = Path(tempfile.gettempdir(), "run")
    options = {"robot": "ur10e", "link": LINK, "report": False, **realtime_options()}
    try:
        with simbridge.live("ursim", host=host, out=out, **options) as session:
            session.engage()
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                session.twist([0.0, 0.0, -0.1, 0.0, 0.0, 0.0])
                session.wait(0.05)
            print(session.status, file=sys.stderr)
    except simbridge.SimbridgeError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def test_a_halted_sessions_arm_comes_to_rest(e_series, tmp_path):
    with ProcessTrial(e_series, tmp_path, program=move_down) as trial:
        trial.wait_until_streaming()
        trial.signal(signal.SIGSTOP)
        tick = trial.tick()

        # While the parent is suspended and cannot do anything.
        assert process_ends(trial.servo)
        trial.check_rest(tick, logged=False)

        trial.signal(signal.SIGCONT)
        status, message = trial.wait_for_end()
        assert status == 1
        assert message.startswith("ParentLost: ")
        assert process_ends(trial.servo)
