"""The simulated arm behind UR's servoj, feedforward, and a plant from a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from simbridge.recording.log_reader import read_log
from simbridge.servo.plant import load_plant
from tests.properties import variants

# RMS of the tool's distance from the setpoints, mm, for the ur10e at gain 2000, lookahead 0.03 s,
# computed by others.
TRAILS = {"circle": 3.63, "figure_eight": 5.55, "helix": 3.63, "square_tracking": 5.69}
SOAK = pytest.mark.soak


@pytest.fixture
def run(cli, tmp_path, without_pages):
    """Runs a scenario on the simulated ur10e: the summary and the run's log."""

    def run(scenario, *flags):
        directory = tmp_path / "run"
        answer = cli("run", scenario, "--robot", "ur10e", *flags, "--out", directory, "--json")
        assert answer.status == 0, answer.message
        return json.loads(answer.out), read_log(directory / "log.mcap")

    return run


@pytest.fixture
def paths(short, small):
    """The scripts of scenarios with one lap, by name: a small circle and a small square."""
    return {**short, **small}


# All take the same way through the program.
@pytest.mark.parametrize("scenario", variants(TRAILS, "circle"))
def test_the_simulated_arm_trails_as_the_law_says(run, short, small, scenario):
    # Every lap has the same speeds: one has the RMS of all, and so has a small circle.
    like = {"circle": small["circle"], "square_tracking": short["square_tracking"]}

    summary, _ = run(like.get(scenario, scenario))

    assert summary["plant_error"]["position_m"]["rms"] == pytest.approx(
        1e-3 * TRAILS[scenario], rel=0.01
    )
    # The lookahead less a cycle, and half a millisecond of the joints.
    assert summary["servo_law_delay_s"] == pytest.approx(0.028, abs=1e-4)
    assert summary["plant_delay_s"] == pytest.approx(0.0285, abs=1e-4)
    assert (
        "gain 2000, lookahead 0.03 s; the law was verified on a real UR5e at gain 300"
        in summary["plant_model"]
    )


# On a circle with the other tuning test_feedforward_removes_the_phases_delay shows it.
@pytest.mark.parametrize(
    ("scenario", "tuning", "error_mm"),
    [
        pytest.param("circle", (2000, 0.03), 0.02, marks=SOAK),
        pytest.param("figure_eight", (2000, 0.03), 0.02, marks=SOAK),
        pytest.param("helix", (2000, 0.03), 0.02, marks=SOAK),
        ("square_tracking", (2000, 0.03), 0.05),
        pytest.param("circle", (300, 0.1), 0.02, marks=SOAK),
    ],
)
def test_feedforward_takes_the_arm_to_its_setpoints(run, paths, scenario, tuning, error_mm):
    flags = ("--servo-gain", tuning[0], "--servo-lookahead", tuning[1])
    summary, log = run(paths[scenario], "--feedforward", "on", *flags)

    assert summary["plant_error"]["position_m"]["rms"] < 1e-3 * error_mm
    assert abs(summary["plant_delay_s"]) < 1e-4
    assert summary["contour_error"]["position_m"]["max"] < 0.0005
    assert summary["command_lead_rad"]["max"] <= 0.1
    assert np.abs(log.controller_target_acceleration).max() <= 40.0
    # From rest to rest, as far as commands in single precision can.
    assert np.abs(log.controller_target_velocity[[0, -1]]).max() < 1e-5
    assert np.abs(np.diff(log.command, axis=0)).max() > 0.0
    assert not np.array_equal(log.command, log.setpoint)


@pytest.mark.parametrize(
    ("tuning", "phase", "scenario", "error_mm"),
    [
        ((300, 0.1), 0.001375, "circle", 0.02),
        pytest.param((300, 0.1), 0.001375, "figure_eight", 0.02, marks=SOAK),
        pytest.param((2000, 0.03), 0.0012, "square_tracking", 0.05, marks=SOAK),
    ],
)
def test_feedforward_removes_the_phases_delay(
    run, cli, paths, tmp_path, tuning, phase, scenario, error_mm
):
    plant = tmp_path / "plant.toml"
    plant.write_text(
        f"[servoj]\ngain = {tuning[0]}.0\nlookahead_s = {tuning[1]}\nphase_s = {phase}\n"
    )
    flags = ("--feedforward", "on", "--plant", plant)

    summary, log = run(paths[scenario], *flags)

    assert summary["plant_error"]["position_m"]["rms"] < 1e-3 * error_mm
    assert abs(summary["plant_delay_s"]) < 1e-4
    assert np.abs(log.controller_target_acceleration).max() <= 40.0

    # The check predicts the joint targets that the run then finds in its log.
    checked = json.loads(cli("check", paths[scenario], "--robot", "ur10e", *flags, "--json").out)
    assert checked["command_lead_rad"]["max"] == pytest.approx(
        summary["command_lead_rad"]["max"], abs=1e-4
    )
    assert (checked["feedforward"], checked["plant_model"]) == (True, summary["plant_model"])


# A UR10 takes a quarter of the samples of a UR10e.
SOFT = ("--robot", "ur10", "--feedforward", "on", "--servo-gain", 300, "--servo-lookahead", 0.1)


def test_corners_beyond_feedforward_name_a_speed(cli, short):
    flags = (short["square_tracking"], *SOFT)
    refused = cli("check", *flags)

    assert refused.status == 2
    assert "would round the path by" in refused.message
    assert "at most 0.50 mm is allowed" in refused.message
    assert "--on-limits" not in refused.message

    speed = re.search(r"down to ([\d.]+) times its speed", refused.message)[1]
    assert cli("check", *flags, "--speed-scale", speed).status == 0


def test_corners_beyond_feedforward_may_slow_down(cli, small):
    flags = (small["square_tracking"], *SOFT, "--on-limits", "limit", "--verbose")
    slowed = cli("check", *flags)

    assert slowed.status == 0
    assert "Slowed down to respect the limits of tool speed and feedforward: 2.67 s" in slowed.out
    assert "Simulated arm: UR's servoj, gain 300" in slowed.out
    assert "Feedforward: commands lead the arm by" in slowed.out


@pytest.mark.parametrize(
    ("flags", "reasons"),
    [
        (("circle", "--servo", "ideal"), ("must be servoj with --feedforward on",)),
        (("circle", "--corner-tolerance", "nan"), ("got nan",)),
        (("circle", "--corner-tolerance", -1), ("got -0.001",)),
        (("circle", "--period", 0.004), ("the controller's cycle of 0.002 s",)),
        (
            ("circle", "--speed-scale", 2, "--servo-lookahead", 0.2),
            ("would lead the arm by", "may move at 0.5 rad/s"),
        ),
    ],
)
def test_impossible_feedforward_has_a_reason(cli, short, flags, reasons):
    scenario, *more = flags
    answer = cli("check", short[scenario], *more, "--robot", "ur10e", "--feedforward", "on")

    assert answer.status == 2
    for reason in reasons:
        assert reason in answer.message


def test_a_flag_wins_over_a_plant_file(run, cli, short, small, tmp_path):
    plant = tmp_path / "plant.toml"
    plant.write_text(
        "[servoj]\ngain = 300.0\nlookahead_s = 0.1\nphase_s = 0.0005\n[joint_servo]\n"
        "lag_s = 0.001\n"
        '[payload]\nmass_kg = 1.0\n[source]\nrecording = "arm.csv"\n'
    )

    summary, _ = run(short["circle"], "--plant", plant, "--speed-scale", 2)

    # For calls of one cycle h that begin at a phase p, the law's two steps a cycle add
    # 3 p - 2 p^2 / h.
    assert summary["servo_law_delay_s"] == pytest.approx(0.098 + 0.00125, abs=5e-5)
    assert summary["rest_delay_s"] == pytest.approx(0.001, abs=1e-4)
    assert (
        f"gain 300, lookahead 0.1 s ({plant}; not simulated: payload 1.00 kg)"
        in summary["plant_model"]
    )

    answer = cli(
        "check",
        small["circle"],
        "--verbose",
        "--robot",
        "ur10e",
        "--plant",
        plant,
        "--servo-gain",
        500,
    )
    assert answer.status == 0
    assert f"--servo-gain 500 replaces the gain of {plant}, 300" in answer.message
    assert (
        f"gain 500, lookahead 0.1 s ({plant}, except the gain; not simulated: payload 1.00 kg)"
        in answer.out
    )


PLANT_OF_UR5E = '[servoj]\ngain = 300.0\nlookahead_s = 0.1\n[source]\nrobot = "ur5e"\n'


def test_a_plant_of_another_arm_is_said(cli, line, tmp_path, without_drawings):
    plant = tmp_path / "plant.toml"
    plant.write_text(PLANT_OF_UR5E)
    note = f"{plant} was identified on a ur5e, but this run is for a ur10e: "

    checked = cli("check", line, "--robot", "ur10e", "--plant", plant)
    ran = cli("run", line, "--robot", "ur10e", "--plant", plant, "--out", tmp_path / "run")

    assert note in " ".join(checked.out.split())
    assert note in " ".join(ran.out.split())
    assert note in (tmp_path / "run" / "report.html").read_text()


def test_a_plant_of_the_same_arm_has_no_note(cli, line, tmp_path):
    plant = tmp_path / "plant.toml"
    plant.write_text(PLANT_OF_UR5E.replace("ur5e", "ur10e"))

    answer = cli("check", line, "--robot", "ur10e", "--plant", plant, "--json")

    assert json.loads(answer.out)["plant_notes"] == []


def test_the_documented_plant_file_is_read(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "identify.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    file = tmp_path / "plant.toml"
    file.write_text(example)

    plant = load_plant(file)

    assert (plant.gain, plant.lookahead, plant.phase) == (1998.2, 0.03001, 0.0012)
    assert plant.robot == "ur5e"
    assert plant.not_simulated == "payload 1.66 kg, friction"


def test_a_plants_uncertainty_reaches_the_error(cli, line, tmp_path, without_pages):
    plant = tmp_path / "plant.toml"
    plant.write_text(
        "[servoj]\ngain = 300.0\nlookahead_s = 0.1\n[uncertainty]\ngain = 0.0\n"
        "lookahead_s = 0.004\n"
    )

    def summary(name, *flags):
        answer = cli(
            "run", line, "--robot", "ur10", "--plant", plant, *flags, "--out", tmp_path / name
        )
        assert answer.status == 0, answer.err
        return json.loads((tmp_path / name / "summary.json").read_text()), answer.out.splitlines()[
            0
        ]

    known, first = summary("known")
    faster, second = summary("faster", "--servo-lookahead", 0.096)
    rms, least = (figures["tracking_error"]["position_m"]["rms"] for figures in (known, faster))

    assert known["uncertainty"]["position_m"] == pytest.approx(rms - least, rel=0.02)
    assert " ± " in first
    # What is given at the command line is known.
    assert faster["uncertainty"] is None
    assert " ± " not in second


def test_too_large_an_uncertainty_is_refused(cli, line, tmp_path):
    plant = tmp_path / "plant.toml"
    plant.write_text("[servoj]\ngain = 300.0\nlookahead_s = 0.1\n[uncertainty]\ngain = 300.0\n")

    refused = cli("check", line, "--plant", plant)

    assert refused.status == 2
    assert "uncertainty.gain" in refused.message


def test_a_misspelt_table_of_a_plant_is_refused(cli, tmp_path):
    plant = tmp_path / "plant.toml"
    plant.write_text("[servoj]\ngain = 300.0\nlookahead_s = 0.1\n[jointservo]\nlag_s = 0.01\n")

    answer = cli("run", "circle", "--robot", "ur5e", "--plant", plant, "--out", tmp_path / "run")

    assert answer.status == 2
    assert "jointservo" in answer.message


def test_a_phase_beyond_the_cycle_is_refused(cli, tmp_path):
    plant = tmp_path / "plant.toml"
    plant.write_text("[servoj]\ngain = 300.0\nlookahead_s = 0.1\nphase_s = 0.005\n")

    refused = cli("check", "circle", "--robot", "ur10e", "--plant", plant)

    assert refused.status == 2
    assert "shorter than the cycle of 0.002 s" in refused.message
    assert cli("check", "circle", "--robot", "ur10", "--plant", plant).status == 0


def test_a_run_records_its_corner_tolerance(run, line, tmp_path):
    run(line, "--feedforward", "on", "--corner-tolerance", 0.2)
    settings = msgspec.toml.decode((tmp_path / "run" / "settings.toml").read_text())

    assert settings["scenario"]["corner_tolerance"] == pytest.approx(0.0002)


def test_an_unstable_tuning_is_refused_with_its_bound(cli):
    answer = cli("run", "circle", "--robot", "ur10", "--servo-lookahead", 0.13)

    assert answer.status == 2
    assert "below 0.121 s with a gain of 2000 and a cycle of 8 ms" in answer.message


def test_an_unstable_period_names_a_stable_one(cli):
    answer = cli("check", "circle", "--robot", "ur10", "--period", 0.05)

    assert answer.status == 2
    assert "The control period must be below 23.9 ms" in answer.message
    assert "a multiple of the controller's own cycle" in answer.message


def test_an_ideal_servo_needs_no_stable_tuning(cli, line, tmp_path, without_pages):
    flags = ("--robot", "ur10", "--servo", "ideal", "--period", 0.05)

    assert cli("run", line, *flags, "--out", tmp_path / "run").status == 0


@pytest.mark.parametrize(
    "flag", [("--servo-gain", 300), ("--servo-lookahead", 0.1), ("--plant", "plant.toml")]
)
def test_the_ideal_servo_takes_no_tuning(cli, tmp_path, monkeypatch, flag):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.toml").write_text("[servoj]\ngain = 300.0\nlookahead_s = 0.1\n")

    answer = cli("check", "circle", "--servo", "ideal", *flag)

    assert answer.status == 2
    assert f"must be servoj with {flag[0]}" in answer.message


@pytest.mark.parametrize("backend", ["ursim", "real"])
def test_a_controller_refuses_the_ideal_servo(cli, backend):
    # An address of documentation: nothing answers there.
    answer = cli("run", "circle", "--servo", "ideal", "--backend", backend, "--host", "192.0.2.1")

    assert answer.status == 2
    assert f"which the controller runs with --backend {backend}" in answer.message


def test_the_ideal_servo_hardly_trails(run, small):
    summary, _ = run(small["circle"], "--servo", "ideal", "--period", 0.008)

    assert abs(summary["plant_delay_s"]) < 1e-4
    assert summary["servo_law_error"] is None
    assert summary["plant_model"] == "simulated arm: an ideal servo"
