"""What goes wrong while an arm is servoed: `simbridge run` in one process, the controller in another.

Whatever happens: one clear paragraph, the log readable up to its last half second, no process and no ring file left,
and the arm at rest within half a second of the controller's own time.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from tests.backends.fault_trial import HOME, Bench, Trial, gone, line, move

E_SERIES, CB3 = "127.0.0.41", "127.0.0.42"
ON_E_SERIES = ("--robot", "ur10e", "--backend", "ursim")
ON_CB3 = ("--robot", "ur10", "--backend", "ursim")


@pytest.fixture(scope="module")
def e_series():
    with Bench("ur10e", "5.12", E_SERIES) as bench:
        yield bench


@pytest.fixture(scope="module")
def cb3():
    with Bench("ur10", "3.15", CB3) as bench:
        yield bench


def do(command, **arguments):
    """A fault of the controller's."""
    return lambda trial: trial.controller.do(command, **arguments)


@pytest.mark.parametrize(
    ("fault", "ends_in", "told"),
    [
        pytest.param(do("drop", port=30004, client=0), "ConnectionLost", "30004", id="connection for states dropped"),
        pytest.param(do("drop", port=30004, client=1), "ConnectionLost", "30004", id="connection for commands dropped"),
        pytest.param(do("freeze", seconds=0.3), "StaleState", "network", id="frozen for 0.3 s"),
        pytest.param(do("emergency_stop"), "EmergencyStop", "release the button", id="emergency stop"),
        pytest.param(do("safeguard_stop"), "SafeguardStop", "Close the safeguard", id="safeguard stop"),
        pytest.param(do("protective_stop"), "ProtectiveStop", "confirm at the pendant", id="protective stop"),
        pytest.param(do("stop_program"), "ProgramStopped", "pressed stop", id="program stopped"),
        pytest.param(lambda trial: os.kill(trial.servo, signal.SIGKILL), "ConnectionLost", "watchdog stops the arm",
                     id="servo process killed"),
    ],
)  # fmt: skip
def test_a_fault_ends_the_run_in_its_own_error_with_the_arm_at_rest(fault, ends_in, told, e_series, tmp_path):
    controller = e_series.ready()
    with Trial(controller, tmp_path, line(tmp_path), *ON_E_SERIES) as trial:
        trial.streaming()
        fault(trial)
        tick = trial.tick()
        status, message = trial.end()
        assert status == 2
        assert controller.host in message and told in message and str(trial.out) in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert trial.summary()["outcome"].startswith(f"{ends_in}: ")


def test_a_controller_frozen_for_long_is_given_up_at_once_and_resumes_nothing(e_series, tmp_path):
    with Trial(e_series.ready(), tmp_path, line(tmp_path), *ON_E_SERIES) as trial:
        trial.streaming()
        tick = trial.tick()
        trial.controller.do("freeze", seconds=5.0)
        status, message = trial.end()
        assert status == 2
        assert trial.summary()["outcome"].startswith("StaleState: ")
        waited = int(message.partition(" ms,")[0].rpartition(" ")[2])
        assert 100 <= waited < 1000
        trial.check_nothing_is_left()
        trial.check_rest(tick)


def test_a_killed_controller_is_told_and_what_it_sent_until_then_is_kept(e_series, tmp_path):
    with Trial(e_series.ready(), tmp_path, line(tmp_path), *ON_E_SERIES) as trial:
        trial.streaming()
        killed = time.monotonic()
        trial.controller.kill()
        status, message = trial.end()
        assert status == 2 and "Lost the controller" in message
        trial.check_nothing_is_left()
        assert trial.log().host_monotonic[-1] >= killed - 0.5
        assert trial.summary()["outcome"].startswith("ConnectionLost: ")


def test_when_the_parent_is_killed_the_servo_process_stops_the_arm_and_ends(e_series, tmp_path):
    with Trial(e_series.ready(), tmp_path, line(tmp_path), *ON_E_SERIES) as trial:
        trial.streaming()
        trial.signal(signal.SIGKILL)
        tick = trial.tick()
        trial.end()
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert not trial.log().complete


@pytest.mark.parametrize("moment", ["connecting", "approaching", "streaming", "stopping"])
def test_ctrl_c_stops_the_arm_and_keeps_the_run(moment, cb3, tmp_path):
    controller = cb3.ready()
    if moment == "approaching":
        move(controller, HOME + np.array([0.6, 0.0, 0.0, 0.0, 0.0, 0.0]))
    with Trial(controller, tmp_path, line(tmp_path), *ON_CB3) as trial:
        {"connecting": trial.connecting, "approaching": trial.moving}.get(moment, trial.streaming)()
        trial.signal(signal.SIGINT)
        if moment == "stopping":
            time.sleep(0.02)
            trial.signal(signal.SIGINT)
        tick = trial.tick()
        status, message = trial.end()
        assert status == 130 and "nterrupted" in message
        trial.check_nothing_is_left()
        if moment == "connecting":
            assert np.array_equal(controller.state()["actual_q"], HOME)
        else:
            trial.check_rest(tick, logged=moment != "approaching")
        assert RunDirectory.open(trial.out).settings()["backend"]["name"] == "ursim"


def test_ctrl_z_stops_the_arm_as_ctrl_c_does_for_a_halted_run_would_watch_nothing(cb3, tmp_path):
    with Trial(cb3.ready(), tmp_path, line(tmp_path), *ON_CB3) as trial:
        trial.streaming()
        trial.signal(signal.SIGTSTP)
        tick = trial.tick()
        status, message = trial.end()
        assert status == 130 and "nterrupted" in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)


# The speed slider


def test_the_plan_follows_the_speed_slider_down_and_up_again_and_the_arm_trails_it_as_before(e_series, tmp_path):
    with Trial(e_series.ready(), tmp_path, line(tmp_path), *ON_E_SERIES) as trial:
        trial.streaming()
        for fraction in (0.3, 0.0, 1.0):
            trial.controller.do("slider", fraction=fraction)
            trial.controller.wait_for("speed_scaling", fraction)
            time.sleep(0.4)
        assert trial.end() == (0, "")
        trial.check_nothing_is_left()
        summary, log = trial.summary(), trial.log()
    assert summary["outcome"] == "completed" and summary["speed_scaling"]["min"] == 0.0
    assert log.plan_time[-1] == pytest.approx(2.0) and (np.diff(log.plan_time) >= 0.0).all()
    run = Evaluation.of(RunDirectory.open(trial.out))
    error = np.linalg.norm(run.attained[:, :3] - run.reference[:, :3], axis=1)
    # Against the plan's time the error is speed times delay, at any speed. The delay is the servo's, and in either half
    # there may be one period more on the way.
    steady = (log.plan_time > 0.3) & (log.plan_time < 1.9)
    full, slow = (np.median(error[steady & (np.abs(log.speed_scaling - s) < 1e-6)]) / (0.1 * s) for s in (1.0, 0.3))
    assert slow == pytest.approx(full, abs=1.2 * 0.002)
    assert error[steady].max() < 0.1 * (full + 0.005)


def test_a_run_that_must_not_be_slowed_down_is_stopped_by_the_speed_slider(cb3, tmp_path):
    with Trial(cb3.ready(), tmp_path, line(tmp_path), *ON_CB3, "--on-scaling", "stop") as trial:
        trial.streaming()
        trial.controller.do("slider", fraction=0.3)
        tick = trial.tick()
        status, message = trial.end()
        assert status == 2 and "--on-scaling follow" in message
        trial.check_nothing_is_left()
        trial.check_rest(tick)
        assert trial.summary()["outcome"].startswith("SpeedScaled: ")


# A live arm

LIVE = """
import sys
import simbridge
from simbridge.robot.kinematics import tool_path

cell = simbridge.load_cell(sys.argv[1])
try:
    with simbridge.connect("ursim", cell=cell) as arm:
        target = tool_path(simbridge.load_robot("ur10e"), arm.read().q[None])[0]
        while True:
            target[2] -= 0.1 * arm.period
            arm.servo(target)
except simbridge.SimbridgeError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def test_a_live_arm_whose_source_stands_still_comes_to_rest_and_the_servo_process_ends(e_series, tmp_path):
    cell = tmp_path / "cell.toml"
    cell.write_text(f'host = "{E_SERIES}"\nrobot = "ur10e"\n')
    (tmp_path / "live.py").write_text(LIVE)
    with Trial(e_series.ready(), tmp_path, command=[sys.executable, str(tmp_path / "live.py"), str(cell)]) as trial:
        trial.streaming()
        trial.signal(signal.SIGSTOP)
        tick = trial.tick()
        # While the parent stands there and can do nothing.
        assert gone(trial.servo)
        trial.check_rest(tick, logged=False)
        trial.signal(signal.SIGCONT)
        status, message = trial.end()
        assert status == 1 and message.startswith("TargetsStopped: ") and "once every period" in message
        trial.check_nothing_is_left()
