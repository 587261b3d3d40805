"""A smooth motion on an emulated controller is as in simulation, and stopped gently."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

from simbridge.servo.feedforward import MAX_ACCELERATION
from tests.backends.trial import ProcessTrial, Trial
from tests.controllers import tick

pytestmark = pytest.mark.quick

# From home, where the arm is, around a circle and back; a sample each cycle, so that no
# acceleration is missing.
CIRCLE = """
import numpy as np
from simbridge import Robot, Scenario
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import Trajectory

def scenario(robot: Robot) -> Scenario:
    times = np.arange(0.0, 1.4, 0.002)
    u = times / times[-1]
    angle = 2.0 * np.pi * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    poses = np.tile(tool_path(robot, robot.home[None])[0], (len(times), 1))
    poses[:, 1] += 0.04 * np.sin(angle)
    poses[:, 2] -= 0.04 * (1.0 - np.cos(angle))
    return Scenario(Trajectory(times, poses))
"""
ON_E_SERIES = ("--robot", "ur10e", "--backend", "ursim")


@pytest.fixture(scope="module")
def circle(tmp_path_factory):
    """The scenario's file."""
    path = tmp_path_factory.mktemp("scenario") / "small_circle.py"
    path.write_text(CIRCLE)
    return path


def run(circle, controller, directory, *flags):
    """Return the summary of a run on the controller."""
    with Trial(controller, directory, circle, *ON_E_SERIES, *flags) as trial:
        assert trial.wait_for_end() == (0, "")
    return trial.summary()


def joint_accelerations(controller, begin):
    """Return the accelerations of the joint targets from a tick on (T, n), rad/s^2."""
    record = controller.record(after=begin - 1)
    assert (np.diff(record.tick) == 1).all()
    return np.diff(record.target_q, n=2, axis=0) / 0.002**2


@pytest.mark.soak
def test_the_controllers_arm_trails_as_the_simulated_one(
    circle, e_series, cli, tmp_path, without_pages
):
    out = tmp_path / "simulated"
    simulated = json.loads(cli("run", circle, "--robot", "ur10e", "--out", out, "--json").out)

    measured = run(circle, e_series, tmp_path)

    simulated_error = simulated["plant_error"]["position_m"]["rms"]
    measured_error = measured["plant_error"]["position_m"]["rms"]
    assert measured_error == pytest.approx(simulated_error, rel=0.03)
    assert measured["plant_delay_s"] == pytest.approx(simulated["plant_delay_s"], abs=0.001)
    law = measured["servo_law"]
    assert law["holds"] is True
    assert law["gain"] == pytest.approx(2000.0, rel=0.02)
    assert law["lookahead_s"] == pytest.approx(0.03, rel=0.02)
    assert law["residual_rad"]["p99"] < 1e-4


def test_with_feedforward_only_the_links_delay_remains(circle, e_series, tmp_path):
    begin = tick(e_series)

    summary = run(circle, e_series, tmp_path, "--feedforward", "on")

    assert summary["servo_law"]["holds"] is True
    # The delay is the link's: a few cycles where this computer is busy.
    assert summary["plant_delay_s"] == pytest.approx(summary["servo_law"]["delay_s"], abs=0.001)
    assert summary["plant_delay_s"] < 0.006
    # At 0.34 m/s a command that is a cycle late is 0.7 mm off, and a busy computer delays some;
    # without feedforward the arm would be 10 mm behind.
    assert summary["delay_compensated"]["position_m"]["p95"] < 1e-3
    assert np.abs(joint_accelerations(e_series, begin)).max() <= MAX_ACCELERATION


# Without feedforward test_streaming_braking shows it, too, whatever the link's delay.
@pytest.mark.parametrize("feedforward", [pytest.param("off", marks=pytest.mark.soak), "on"])
def test_ctrl_c_brakes_within_the_acceleration_limit(feedforward, circle, e_series, tmp_path):
    flags = (*ON_E_SERIES, "--feedforward", feedforward)

    with ProcessTrial(e_series, tmp_path, circle, *flags) as trial:
        trial.wait_until_streaming()
        begin = trial.tick()
        trial.signal(signal.SIGINT)
        signalled = trial.tick()

        status, _ = trial.wait_for_end()
        assert status == 130
        trial.check_rest(signalled)
        assert np.abs(joint_accelerations(e_series, begin)).max() <= MAX_ACCELERATION
