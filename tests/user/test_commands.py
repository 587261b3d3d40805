"""The user's view: what each command writes, prints and returns."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from evo.core import metrics
from evo.tools import file_interface

import simbridge
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.cli.command_line import SUBCOMMANDS
from simbridge.cli.flags import COMMANDS
from simbridge.errors import InvalidParameter
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import Sample
from simbridge.resources import SCENARIOS, robot_files, scenario_files
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare
from simbridge.trajectory import read_trajectory
from tests.patience import PATIENCE
from tests.properties import variants

CHECKOUT = Path(__file__).parents[2]
HOSTS = {"host_monotonic"}
PARTS = ("tracking", "sampling", "solver", "limiter", "plant")
SCRIPT = """\
from simbridge import Scenario, run_as_script
from simbridge.trajectory import square


def scenario(robot):
    targets = square(side=0.05, centre=(0.7, 0.164, 0.3))
    return Scenario(targets, description="A small square [of 5 cm]")


if __name__ == "__main__":
    run_as_script(__file__)
"""


def summary_of(run):
    return RunDirectory(Path(run)).summary()


def assert_same_samples(run, other):
    """Assert that the columns of two logs are equal bit for bit.

    Those that depend on the host's clock are left out.
    """
    first, second = (read_log(Path(directory) / "log.mcap") for directory in (run, other))
    assert len(first.stamp) == len(second.stamp) > 0
    for name in {field.name for field in fields(Sample)} - HOSTS:
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name


def started(*command, **options):
    """A program in a process of its own that Ctrl-C reaches."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [sys.executable, *map(str, command)], env=environment, **pipes, **options
    )


@pytest.fixture
def run(cli, without_pages, tmp_path):
    """Runs with the given arguments into a new directory, and returns it."""

    def call(*arguments, status=0):
        out = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        answer = cli("run", *arguments, "--out", out)
        assert answer.status == status, answer.err
        return out

    return call


# ---- simbridge run


def test_a_run_leaves_its_files(line_run):
    names = {path.name for path in line_run.iterdir()}

    assert names == {"settings.toml", "plan.npz", "log.mcap", "summary.json", "report.html"}
    assert all(path.stat().st_size > 0 for path in line_run.iterdir())
    assert "<html" in (line_run / "report.html").read_text()


def test_the_summary_has_all_it_promises(line_run):
    summary = json.loads((line_run / "summary.json").read_text())
    expected = {
        "scenario": "line",
        "robot": "ur10",
        "solver": "forward-dynamics",
        "backend": "pybullet",
    }

    assert summary.items() >= expected.items()
    assert summary["outcome"] == "completed"
    assert summary["period_s"] == 0.008
    assert summary["samples"] == 51
    assert summary["duration_s"] == pytest.approx(0.4, rel=1e-12)

    for part in PARTS:
        for kind in ("position_m", "rotation_rad"):
            numbers = summary[f"{part}_error"][kind]
            assert set(numbers) == {"rms", "mean", "p95", "max"}
            assert all(isinstance(value, float) for value in numbers.values())
            assert 0.0 <= numbers["mean"] <= numbers["rms"] <= numbers["max"]
            assert numbers["p95"] <= numbers["max"]
    assert all(
        isinstance(summary[name], float) for name in ("delay_s", "solver_delay_s", "plant_delay_s")
    )
    assert isinstance(summary["predicted_lag_s"], float)
    assert set(summary["delay_compensated"]) == {"position_m", "rotation_rad"}
    assert len(summary["peak_joint_velocity"]) == 6
    assert summary["speed_scaling"] == {"min": 1.0, "mean": 1.0}
    assert summary["loop"] is None
    assert summary["tolerance"] is None
    assert summary["passed"] is None


def test_an_ideal_servo_tracks_to_a_millimetre(run, line):
    tracked = summary_of(run(line, "--servo", "ideal"))["tracking_error"]

    assert tracked["position_m"]["rms"] < 1e-3
    assert tracked["rotation_rad"]["rms"] < 1e-3


def test_the_answer_names_error_and_directory(cli, without_pages, line, tmp_path):
    answer = cli("run", line, "--out", tmp_path / "out")

    assert (answer.status, answer.err) == (0, "")

    first, *rest = answer.out.splitlines()
    assert first.startswith(
        "Predicted for a UR10 with servoj at gain 2000, lookahead 0.03 s (extrapolated): "
    )
    assert "mm RMS tracking error" in first
    assert " on line; rotation below 0.01°." in first
    assert "of the position error comes from the servo law" in rest[0]
    assert "--feedforward on compensates for it" in rest[0]

    rows = {words[0]: words for words in map(str.split, rest) if words}
    rms = summary_of(tmp_path / "out")["tracking_error"]["position_m"]["rms"]

    assert float(rows["tracking"][1]) == pytest.approx(1e3 * rms, rel=5e-3)
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in rest


def test_names_with_brackets_are_shown_as_they_are(cli, without_pages, line, tmp_path):
    file = tmp_path / "[red]line[end].tum"
    file.write_bytes(line.read_bytes())
    out = tmp_path / "out[bold]"

    answer = cli("run", file, "--out", out)

    assert answer.status == 0
    assert " on [red]line[end]" in " ".join(answer.out.split())
    assert f"Report: {out / 'report.html'}" in answer.out
    assert "[red]line[end]" in cli("check", file).out


def test_json_is_all_that_json_prints(cli, short_pages, line, tmp_path):
    answer = cli("run", line, "--out", tmp_path / "out", "--json")

    assert (answer.status, answer.err) == (0, "")

    printed = json.loads(answer.out)
    assert printed.pop("run") == str(tmp_path / "out")
    assert printed == summary_of(tmp_path / "out")


def test_without_a_directory_a_run_goes_under_runs(cli, without_pages, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run = Path(json.loads(cli("run", line, "--json").out)["run"])

    # That each run gets one of its own is shown in test_output_files.
    assert run.parent == Path("runs")
    assert "line" in run.name
    assert (run / "log.mcap").is_file()


def test_the_tolerance_sets_the_status(cli, without_pages, line, line_run, tmp_path):
    error = summary_of(line_run)["tracking_error"]
    reached = 1e3 * error["position_m"]["rms"], np.degrees(error["rotation_rad"]["rms"])
    for fractions, expected in (
        ((1.01, 1.01), 0),
        ((0.99, 1.01), 1),
        ((1.01, 0.99), 1),
    ):
        out = tmp_path / f"{fractions}"
        limits = [repr(float(s * r)) for s, r in zip(fractions, reached, strict=True)]
        answer = cli("run", line, "--plan", line_run, "--out", out, "--tolerance", *limits)
        assert answer.status == expected
        assert ("Within the tolerance." if expected == 0 else "Tolerance exceeded: ") in answer.out
        assert summary_of(out)["passed"] is (expected == 0)
        assert summary_of(out)["tolerance"]["position_m"] == pytest.approx(
            1e-3 * float(limits[0]), rel=1e-12
        )


# test_python_and_command_line_run_alike compares two runs, too.
@pytest.mark.soak
def test_two_runs_log_the_same_samples(run, line, line_run):
    assert_same_samples(run(line), line_run)


@pytest.mark.soak
def test_name_script_and_file_run_alike(run, tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    flags = ["--speed-scale", "0.5", "--solver.kp", "20"]
    by_path = run(script, *flags)
    alone = tmp_path / "alone"
    ended = started(script, *flags, "--out", alone, "--json", cwd=tmp_path)

    out, err = ended.communicate(timeout=PATIENCE)

    assert (ended.returncode, err) == (0, "")
    assert json.loads(out)["scenario"] == "mine"
    assert_same_samples(by_path, alone)

    # As a file of samples: TUM has every digit of a double.
    trajectory = simbridge.load_scenario(script, load_robot("ur10")).trajectory
    recording = tmp_path / "recording.tum"
    simbridge.trajectory.write_tum(recording, trajectory.times, trajectory.poses)

    by_file = run(recording, *flags)

    assert_same_samples(by_path, by_file)
    assert (summary_of(by_path)["scenario"], summary_of(by_file)["scenario"]) == (
        "mine",
        "recording",
    )


@pytest.mark.soak
def test_a_built_in_script_runs_as_its_name(run, tmp_path):
    script = SCENARIOS / "step.py"
    ended = started(script, "--out", tmp_path / "out", "--json", cwd=tmp_path)
    ended.communicate(timeout=PATIENCE)

    assert ended.returncode == 0
    assert_same_samples(run("step"), tmp_path / "out")


def test_python_and_command_line_run_alike(without_pages, line, line_run, tmp_path):
    finished = simbridge.run(line, out=tmp_path / "out")

    assert finished.directory == tmp_path / "out"
    assert finished.summary == summary_of(line_run)
    assert_same_samples(finished.directory, line_run)


# ---- flags


def test_a_plan_is_replayed_bit_for_bit(run, line):
    earlier = run(line, "--solver.kp", "10", "--solver.iterations", "20", "--speed-scale", "0.8")

    replayed = run(line, "--plan", earlier)

    assert_same_samples(earlier, replayed)

    first, second = (RunDirectory(path).settings() for path in (earlier, replayed))
    # A replayed plan is not solved again.
    assert first.solver.host_step_time_s > 0.0
    assert second.solver.host_step_time_s is None
    first.solver.host_step_time_s = None
    assert first.solver == second.solver

    second.scenario.plan = None
    assert first.scenario == second.scenario
    assert summary_of(earlier) == summary_of(replayed)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("--tcp 0 0 0.1 0 0 0", "robot and TCP"),
        ("--robot ur10e", "robot and TCP"),
        ("--period 0.004", "--period"),
        ("--speed-scale 0.5", "without --speed-scale"),
        ("--hold zero-order", "without --hold"),
        ("--on-limits limit", "without --on-limits"),
        ("--solver.kp 10", "without settings of the solver"),
    ],
)
def test_a_plan_is_not_replayed_as_something_else(cli, line, line_run, tmp_path, flags, reason):
    answer = cli("run", line, "--plan", line_run, "--out", tmp_path / "out", *flags.split())

    assert answer.status == 2
    assert reason in answer.message
    assert not (tmp_path / "out").exists()


def test_a_plan_keeps_its_scenario(cli, line_run, tmp_path):
    answer = cli("run", "step", "--plan", line_run, "--out", tmp_path / "out")

    assert answer.status == 2
    assert "made for this scenario, step" in answer.message


def test_half_the_speed_takes_twice_as_long(cli, line, line_run):
    checked = json.loads(cli("check", line, "--speed-scale", "0.5", "--json").out)

    assert checked["duration_s"] == pytest.approx(
        2.0 * summary_of(line_run)["duration_s"], rel=1e-12
    )

    slow = prepare(line, options=Options(speed_scale=0.5)).plan
    fast = read_log(line_run / "log.mcap")

    assert slow.targets[::2] == pytest.approx(fast.target, abs=1e-12)


def test_poses_of_the_pendant_are_the_same_motion(line, line_run, tmp_path, tum):
    # Half a turn about z is its own inverse.
    pendant = tum(tmp_path / "line.tum", read_trajectory(line).from_pendant_base())

    assert read_trajectory(pendant).poses[0, 0] == pytest.approx(-0.7, abs=1e-12)

    turned = prepare(pendant, options=Options(frame="base")).plan
    plain = read_log(line_run / "log.mcap")

    assert turned.targets[:, :3] == pytest.approx(plain.target[:, :3], abs=1e-12)
    assert turned.setpoints == pytest.approx(plain.setpoint, abs=1e-9)


def test_the_tcp_follows_the_trajectory(run, line):
    out = run(line, "--servo", "ideal", "--tcp", "0.03", "-0.02", "0.12", "0", "0.3", "0")

    assert summary_of(out)["tracking_error"]["position_m"]["rms"] < 1e-3

    log = read_log(out / "log.mcap")
    robot = load_robot("ur10")
    tcp = pin.SE3(pin.exp3(np.array([0.0, 0.3, 0.0])), np.array([0.03, -0.02, 0.12]))
    data = robot.model.createData()
    for q, target in zip(log.position, log.target, strict=True):
        pin.framesForwardKinematics(robot.model, data, q)
        flange = data.oMf[robot.model.getFrameId("tool0")]
        assert np.linalg.norm((flange * tcp).translation - target[:3]) < 1e-3
        assert np.linalg.norm(flange.translation - target[:3]) > 0.1


def test_a_held_source_costs_its_motion(run, tmp_path, tum, through):
    speed = 0.2
    interval = 0.1
    count = 6
    times = interval * np.arange(count)
    points = np.column_stack([0.65 + speed * times, np.full(count, 0.164), np.full(count, 0.3)])
    coarse = tum(tmp_path / "coarse.tum", through(points, times))
    out = run(coarse, "--hold", "zero-order", "--on-limits", "limit")
    log = read_log(out / "log.mcap")
    # At every instant the reference is ahead of the last sample by the speed times the age of that
    # sample.
    k = np.arange(len(log.stamp))
    instants = np.minimum(0.008 * k, interval * (count - 1))
    age = instants - interval * np.floor(instants / interval + 1e-9)
    sampling = summary_of(out)["sampling_error"]["position_m"]

    assert sampling["rms"] == pytest.approx(speed * np.sqrt(np.mean(age**2)), rel=1e-6)
    assert sampling["max"] == pytest.approx(speed * age.max(), rel=1e-6)
    assert 0.015 < sampling["max"] < speed * interval
    assert summary_of(out)["limited_samples"] > 0


def test_interpolated_targets_cost_nothing(line_run):
    sampling = summary_of(line_run)["sampling_error"]

    assert sampling["position_m"]["max"] == sampling["rotation_rad"]["max"] == 0.0


def test_the_control_period_can_be_chosen(run, line):
    out = run(line, "--period", "0.02")

    assert summary_of(out)["period_s"] == 0.02
    assert summary_of(out)["samples"] == 21


def test_a_configured_payload_costs_less(run, line):
    runs = (run(line, "--payload", "3"), run(line, "--unmodelled-payload", "3"))
    # The servo law makes up nearly all of the plant's error, and knows no payload.
    known, unknown = (summary_of(path)["rest_error"]["position_m"]["rms"] for path in runs)

    # Most of the rest is how the joints of a CB3 trail the acceleration of their targets.
    assert unknown > 1.1 * known

    known, unknown = (summary_of(path)["servo_law_error"]["position_m"]["rms"] for path in runs)
    assert unknown == known


def test_another_home_gives_another_posture(run, line, line_run):
    # The wrist turned over: the last three joints differ, the tool does not.
    out = run(line, "--servo", "ideal", "--home", "0", "-1.3", "1.9", "0.97", "1.57", "3.14")
    mine, theirs = (read_log(path / "log.mcap") for path in (out, line_run))

    assert np.abs(mine.setpoint[0] - theirs.setpoint[0]).max() > 1.0
    assert summary_of(out)["tracking_error"]["position_m"]["rms"] < 1e-3


# ---- simbridge check


def test_check_prints_the_peaks_and_writes_nothing(cli, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = cli("check", line)

    assert (answer.status, answer.err) == (0, "")

    text = " ".join(answer.out.split())
    assert text.startswith(
        "Check passed: line on UR10 (51 samples, 8 ms apart, 0.40 s). Nothing has moved."
    )
    assert all(name in text for name in load_robot("ur10").joint_names)
    assert "Tool speed: at most 0.100 m/s." in text
    assert "Smallest clearance:" in text
    assert not list(tmp_path.iterdir())


def test_check_says_that_its_servo_is_extrapolated(cli, line):
    default = " ".join(cli("check", line).out.split())
    verified = cli("check", line, "--servo-gain", "300", "--servo-lookahead", "0.1").out

    assert "The servo law at gain 2000 is extrapolated from gains 300 and 100." in default
    assert "extrapolated" not in verified


def test_check_gives_the_plan_as_json(cli, line, line_run):
    answer = cli("check", line, "--json")

    assert (answer.status, answer.err) == (0, "")

    facts = json.loads(answer.out)
    assert facts["samples"] == 51
    assert facts["duration_s"] == pytest.approx(0.4, rel=1e-12)
    assert facts["peak_tool_speed"] == pytest.approx(0.1, rel=1e-4)

    setpoints = read_log(line_run / "log.mcap").setpoint
    velocity = np.abs(np.diff(setpoints, axis=0)).max(axis=0) / 0.008

    assert facts["peak_joint_velocity"] == pytest.approx(velocity, abs=1e-9)
    assert facts["clearance"]["distance_m"] > 0.005


# ---- simbridge robots, scenarios, --version, no command


def test_robots_lists_every_arm(cli):
    answer = cli("robots")

    assert answer.status == 0
    assert all(name in answer.out for name in robot_files())
    assert "UR10" in answer.out
    assert "8 ms" in answer.out
    assert "2 ms" in answer.out


def test_scenarios_lists_every_scenario_with_what_it_does(cli):
    answer = cli("scenarios")

    assert answer.status == 0

    text = " ".join(answer.out.split())
    assert all(name in text for name in scenario_files())
    assert "Experiment D of the paper" in text


def test_the_version_is_the_packages(cli):
    answer = cli("--version")

    assert (answer.status, answer.out.split()) == (0, ["simbridge", simbridge.__version__])


def test_the_help_names_the_flag_of_the_version(cli):
    assert "simbridge --version" in cli("--help").out


def test_without_a_command_the_commands_are_shown(cli):
    answer = cli()

    assert answer.status == 0
    assert all(name in answer.out for name in ("run", "check", "robots", "scenarios", "export"))
    assert "simbridge run square_tracking" in answer.out


@pytest.mark.parametrize("json", [[], pytest.param(["--json"], marks=pytest.mark.soak)])
def test_a_reader_that_leaves_breaks_the_pipe(json):
    lists = started("-m", "simbridge", "robots", *json)
    lists.stdout.close()

    assert lists.stderr.read() == ""

    lists.stderr.close()
    assert lists.wait(PATIENCE) == 128 + signal.SIGPIPE


# ---- simbridge export


@pytest.fixture(scope="module")
def exported(line_run, tmp_path_factory):
    """A copy of a run with its samples.csv."""
    from simbridge.cli.command_line import main

    run = shutil.copytree(line_run, tmp_path_factory.mktemp("exported") / "run")
    assert main(["export", str(run), "--to", "csv"]) == 0
    return run


@pytest.fixture(scope="module")
def samples(exported):
    """samples.csv of a run with everything in it, as a dictionary of columns."""
    with (exported / "samples.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    return dict(zip(rows[0], np.array(rows[1:], dtype=float).T, strict=True))


def stacked(samples, *names):
    return np.column_stack([samples[name] for name in names])


def test_the_table_has_the_logs_numbers(samples, line_run):
    log = read_log(line_run / "log.mcap")

    assert samples["stamp_s"].tobytes() == log.stamp.tobytes()

    for kind in ("solution", "setpoint", "position", "velocity", "effort"):
        unit = {"velocity": "rad_per_s", "effort": "n_m"}.get(kind, "rad")
        columns = stacked(samples, *(f"{joint}_{kind}_{unit}" for joint in log.joint_names))
        assert np.array_equal(columns, getattr(log, kind)), kind
    pose = stacked(
        samples, *(f"target_{axis}" for axis in ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw"))
    )

    assert np.array_equal(pose, log.target)


def test_the_errors_parts_add_up(samples):
    names = {part: [f"{part}_error_{axis}_m" for axis in "xyz"] for part in PARTS}
    parts = sum(stacked(samples, *names[part]) for part in PARTS[1:])

    assert np.abs(parts - stacked(samples, *names["tracking"])).max() < 1e-12

    difference = stacked(samples, *(f"reference_{axis}_m" for axis in "xyz"))
    difference -= stacked(samples, *(f"attained_{axis}_m" for axis in "xyz"))

    assert np.abs(difference - stacked(samples, *names["tracking"])).max() < 1e-12

    vectors = {
        part: stacked(samples, *(f"{part}_error_r{axis}_rad" for axis in "xyz")) for part in PARTS
    }
    for k in range(len(samples["stamp_s"])):
        product = np.eye(3)
        for part in ("sampling", "solver", "limiter", "plant"):
            product = product @ pin.exp3(vectors[part][k])
        assert np.abs(pin.log3(product) - vectors["tracking"][k]).max() < 1e-12


def test_the_table_gives_the_numbers_of_the_summary(samples, line_run):
    summary = summary_of(line_run)
    for part in PARTS:
        distance = np.linalg.norm(
            stacked(samples, *(f"{part}_error_{axis}_m" for axis in "xyz")), axis=1
        )
        assert summary[f"{part}_error"]["position_m"]["rms"] == pytest.approx(
            np.sqrt(np.mean(distance**2)), abs=1e-12
        )
        assert summary[f"{part}_error"]["position_m"]["max"] == pytest.approx(
            distance.max(), abs=1e-12
        )


def test_evo_confirms_the_summarys_error(cli, exported):
    answer = cli("export", exported, "--to", "tum")

    assert answer.status == 0

    names = ("reference", "target", "setpoint", "attained")
    assert answer.out.split() == [str(exported / f"{name}.tum") for name in names]

    reference, attained = (
        file_interface.read_tum_trajectory_file(exported / f"{name}.tum")
        for name in ("reference", "attained")
    )
    summary = summary_of(exported)["tracking_error"]
    relations = {
        "position_m": metrics.PoseRelation.translation_part,
        "rotation_rad": metrics.PoseRelation.rotation_angle_rad,
    }
    for kind, relation in relations.items():
        ape = metrics.APE(relation)
        ape.process_data((reference, attained))
        for name, statistic in (("rms", "rmse"), ("mean", "mean"), ("max", "max")):
            evos = ape.get_statistic(metrics.StatisticsType[statistic])
            assert evos == pytest.approx(summary[kind][name], abs=1e-9), (kind, name)


def test_what_is_exported_can_be_planned_again(cli, line_run, tmp_path):
    first = shutil.copytree(line_run, tmp_path / "first")

    assert cli("export", first, "--to", "tum").status == 0

    again = prepare(first / "attained.tum")
    tool = tool_path(again.robot, again.plan.setpoints)
    assert np.linalg.norm(tool[:, :3] - again.plan.targets[:, :3], axis=1).max() < 1e-3


# ---- stopping a run


def wait_for_samples(directory, count, deadline=PATIENCE):
    """Waits until so many samples of a run are in its log, and returns what is."""
    until = time.monotonic() + deadline
    while time.monotonic() < until:
        if (directory / "log.mcap").is_file() and (directory / "log.mcap").stat().st_size > 4000:
            log = read_log(directory / "log.mcap")
            if len(log.stamp) >= count:
                return log
        time.sleep(0.02)
    raise AssertionError(f"{directory} did not come to {count} samples")


CAUSES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


@pytest.mark.parametrize("number", CAUSES)
def test_signals_in_the_motion_keep_the_run(cli, line, tmp_path, monkeypatch, short_pages, number):
    stream = PyBulletBackend.stream

    def interrupted(self, commands):
        for k, state in enumerate(stream(self, commands)):
            if k == 31:
                signal.raise_signal(number)
            yield state

    monkeypatch.setattr(PyBulletBackend, "stream", interrupted)
    monkeypatch.chdir(tmp_path)

    answer = cli("run", line, "--out", "out")

    assert (answer.status, answer.out) == (128 + number, "")
    assert answer.message == (
        f"The run was {CAUSES[number]}. The arm is at rest. What was recorded up to then is in out"
    )

    log = read_log(tmp_path / "out" / "log.mcap")
    summary = summary_of(tmp_path / "out")
    assert log.complete
    assert summary["outcome"] == summary["ended_by"]["cause"] == CAUSES[number]
    assert 31 <= summary["samples"] == len(log.stamp) < 51
    assert (tmp_path / "out" / "report.html").is_file()
    assert cli("export", "out", "--to", "tum").status == 0


# The test above in a process of its own, paced by the clock.
@pytest.mark.soak
@pytest.mark.parametrize("number", CAUSES)
def test_signals_end_a_run_and_keep_it(cli, line, tmp_path, number):
    out = tmp_path / "out"
    # Slow enough to last for eight seconds.
    flags = ("--speed-scale", "0.05", "--realtime", "--out", "out")
    going = started("-m", "simbridge", "run", line, *flags, cwd=tmp_path)
    wait_for_samples(out, 31)
    going.send_signal(number)

    printed, errors = going.communicate(timeout=PATIENCE)

    assert going.returncode == 128 + number
    assert printed == ""

    cause = CAUSES[number]
    # The first run of all also says that it compiles.
    *notes, sentence = errors.splitlines()

    assert (
        sentence
        == f"The run was {cause}. The arm is at rest. What was recorded up to then is in out"
    )
    assert all(note.startswith("Note: Compiling") for note in notes)

    log = read_log(out / "log.mcap")
    summary = summary_of(out)
    assert log.complete
    assert summary["outcome"] == summary["ended_by"]["cause"] == cause
    assert 31 <= summary["samples"] == len(log.stamp) < 1001
    assert (out / "report.html").is_file()
    assert cli("export", out, "--to", "tum").status == 0


@pytest.mark.soak
def test_a_killed_run_can_be_exported(cli, tmp_path):
    out = tmp_path / "out"
    going = started("-m", "simbridge", "run", "square_tracking", "--realtime", "--out", out)

    # Half a second of samples comes while the run goes on, not at its end.
    before = wait_for_samples(out, 62)

    assert going.poll() is None

    going.kill()
    going.communicate(timeout=PATIENCE)

    log = read_log(out / "log.mcap")

    assert not log.complete
    assert len(log.stamp) >= len(before.stamp)
    assert log.position[: len(before.stamp)].tobytes() == before.position.tobytes()
    assert np.array_equal(log.index, np.arange(len(log.stamp)))
    assert cli("export", out, "--to", "csv").status == 0
    assert len((out / "samples.csv").read_text().splitlines()) == len(log.stamp) + 1
    assert cli("export", out, "--to", "tum").status == 0
    assert len((out / "attained.tum").read_text().splitlines()) == len(log.stamp)


def test_only_an_interrupted_run_speaks_of_motion(cli, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("simbridge.bench.bench.bench", interrupted)
    answer = cli("bench")

    assert (answer.status, answer.err) == (130, "Interrupted.\n")


def test_ctrl_c_before_any_motion_says_so(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def scenario(robot):\n    raise KeyboardInterrupt\n")

    answer = cli("run", "./mine.py", "--out", "out")

    assert (answer.status, answer.err) == (130, "Interrupted before anything was moved.\n")
    assert not (tmp_path / "out").exists()


def test_an_interrupted_approach_has_no_samples(cli, line, tmp_path, monkeypatch):
    def interrupted(self, q):
        raise KeyboardInterrupt

    monkeypatch.setattr(PyBulletBackend, "move_to", interrupted)
    out = tmp_path / "out"

    answer = cli("run", line, "--out", out)

    assert answer.status == 130
    assert summary_of(out)["samples"] == 0

    monkeypatch.undo()
    answer = cli("export", out, "--to", "csv")

    assert answer.status == 2
    assert "contains no samples" in answer.message


def test_a_fault_hides_no_earlier_ending(cli, line, tmp_path, monkeypatch):
    from simbridge.running import run_ending

    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(run_ending, "write_report", broken)
    answer = cli("run", line, "--unmodelled-payload", "200", "--out", tmp_path / "out")

    assert answer.status == 2
    assert "distance from the measured arm" in answer.message


# ---- simbridge.run


def test_another_arms_solver_is_refused(line, tmp_path):
    ours = load_robot("ur10")
    another_arm = load_robot("ur10e")

    with pytest.raises(InvalidParameter, match="same robot and TCP"):
        simbridge.run(
            line, robot=another_arm, solver=simbridge.ForwardDynamics(ours), out=tmp_path / "out"
        )
    for options in (
        simbridge.Options(tcp=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0)),
        simbridge.Options(payload=2.0),
    ):
        with pytest.raises(InvalidParameter, match="TCP and payload"):
            simbridge.run(
                line, solver=simbridge.ForwardDynamics(ours), options=options, out=tmp_path / "out"
            )
    assert not (tmp_path / "out").exists()


def test_a_custom_solver_runs_its_own_arm(line, line_run, without_pages, tmp_path):
    solver = simbridge.ForwardDynamics(load_robot("ur10"))

    assert_same_samples(
        simbridge.run(line, solver=solver, out=tmp_path / "out").directory, line_run
    )


@pytest.mark.parametrize(
    "words",
    [
        (),
        *((name,) for name in COMMANDS),
        *((name, word) for name, words in SUBCOMMANDS.items() for word in words),
        *variants(
            [("run", "--solver", name) for name in SOLVERS],
            ("run", "--solver", "forward-dynamics"),
            ("run", "--solver", "constrained"),
        ),
    ],
    ids=" ".join,
)
def test_help_fits_80_columns(cli, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    answer = cli(*words, "--help")

    assert answer.status == 0
    # tyro does not break the line of usage.
    assert max(len(line) for line in answer.out.splitlines() if not line.startswith("usage:")) <= 80
    assert not re.search(r" STR\b|\bNone\b|default: \)", answer.out)
