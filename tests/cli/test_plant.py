"""The simulated arm behind UR's servoj, feedforward, and a plant from a file, by the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simbridge.recording.log_reader import read_log

# RMS of the tool's distance from the setpoints, mm, for the ur10e at gain 2000, lookahead 0.03 s, computed by others.
TRAILS = {"circle": 3.63, "figure_eight": 5.55, "helix": 3.63, "square_tracking": 5.69}


@pytest.fixture
def run(cli, tmp_path, without_pages):
    """Runs a scenario on the simulated ur10e: the summary and the run's log."""

    def run(scenario, *flags):
        directory = tmp_path / "run"
        answer = cli("run", scenario, "--robot", "ur10e", *flags, "--out", directory, "--json")
        assert answer.status == 0, answer.message
        return json.loads(answer.out), read_log(directory / "log.mcap")

    return run


@pytest.mark.parametrize("scenario", TRAILS)
def test_the_simulated_arm_trails_as_the_law_says(run, scenario):
    summary, _ = run(scenario)
    assert summary["plant_error"]["position_m"]["rms"] == pytest.approx(1e-3 * TRAILS[scenario], rel=0.01)
    # The lookahead less a cycle, and half a millisecond of the joints.
    assert summary["servo_law_delay_s"] == pytest.approx(0.028, abs=1e-4)
    assert summary["plant_delay_s"] == pytest.approx(0.0285, abs=1e-4)
    assert "gain 2000, lookahead 0.03 s; the law was verified on a real UR5e at gain 300" in summary["plant_model"]


@pytest.mark.parametrize(
    ("scenario", "tuning", "error_mm"),
    [
        ("circle", (2000, 0.03), 0.02),
        ("figure_eight", (2000, 0.03), 0.02),
        ("helix", (2000, 0.03), 0.02),
        ("square_tracking", (2000, 0.03), 0.05),
        ("circle", (300, 0.1), 0.02),
    ],
)
def test_with_feedforward_the_arm_is_where_its_setpoints_are(run, scenario, tuning, error_mm):
    flags = ("--servo-gain", tuning[0], "--servo-lookahead", tuning[1])
    summary, log = run(scenario, "--feedforward", "on", *flags)
    assert summary["plant_error"]["position_m"]["rms"] < 1e-3 * error_mm
    assert abs(summary["plant_delay_s"]) < 1e-4
    assert summary["contour_error"]["position_m"]["max"] < 0.0005
    assert summary["command_lead_rad"]["max"] <= 0.1
    assert np.abs(log.controller_target_acceleration).max() <= 40.0
    # From rest to rest, as far as commands in single precision can.
    assert np.abs(log.controller_target_velocity[[0, -1]]).max() < 1e-5
    assert np.abs(np.diff(log.command, axis=0)).max() > 0.0 and not np.array_equal(log.command, log.setpoint)


@pytest.mark.parametrize(
    ("flags", "reasons"),
    [
        (
            ("square_tracking", "--servo-gain", 300, "--servo-lookahead", 0.1),
            ("would round the path by", "0.50 mm are allowed"),
        ),
        (("circle", "--period", 0.004), ("the controller's cycle of 0.002 s",)),
        (("circle", "--speed-scale", 2, "--servo-lookahead", 0.2), ("would lead the arm by", "0.1 rad are allowed")),
    ],
)
def test_what_feedforward_cannot_do_is_refused_with_the_reason(cli, flags, reasons):
    answer = cli("check", *flags, "--robot", "ur10e", "--feedforward", "on")
    assert answer.status == 2
    for reason in reasons:
        assert reason in answer.message


def test_a_plant_file_sets_gain_lookahead_phase_and_lag_and_a_flag_beside_it_wins(run, cli, tmp_path):
    plant = tmp_path / "plant.toml"
    plant.write_text(
        "[servoj]\ngain = 300.0\nlookahead_s = 0.1\nphase_s = 0.0005\n[joint_servo]\nlag_s = 0.001\n"
        '[payload]\nmass_kg = 1.0\n[source]\nrecording = "arm.csv"\n'
    )
    summary, _ = run("circle", "--plant", plant)
    # For calls of one cycle h that begin at a phase p, the law's two steps a cycle add 3 p - 2 p^2 / h.
    assert summary["servo_law_delay_s"] == pytest.approx(0.098 + 0.00125, abs=5e-5)
    assert summary["rest_delay_s"] == pytest.approx(0.001, abs=1e-4)
    assert f"gain 300, lookahead 0.1 s ({plant}; not simulated: payload 1.00 kg)" in summary["plant_model"]
    answer = cli("check", "circle", "--robot", "ur10e", "--plant", plant, "--servo-gain", 500)
    assert answer.status == 0 and f"--servo-gain 500 replaces the gain of {plant}, 300" in answer.message


def test_an_unstable_tuning_is_refused_with_its_bound(cli):
    answer = cli("run", "circle", "--robot", "ur10", "--servo-lookahead", 0.13)
    assert answer.status == 2 and "below 0.121 with a gain of 2000 at a cycle of 8 ms" in answer.message


@pytest.mark.parametrize("name", ["ideal", "stiff"])
def test_the_ideal_servo_trails_by_less_than_a_tenth_of_a_millisecond(run, name):
    summary, _ = run("circle", "--servo", name)
    assert abs(summary["plant_delay_s"]) < 1e-4
    assert summary["servo_law_error"] is None and "an ideal servo, not UR's" in summary["plant_model"]
