"""Runs, live sessions and exported runs as logs."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from simbridge.cli.command_line import main
from simbridge.errors import NotARun
from simbridge.evaluation.evaluation import Evaluation
from simbridge.judging.log import LogSource
from simbridge.judging.read_log import read_log
from simbridge.resources import robot_files

pytestmark = pytest.mark.shares_setup


@pytest.fixture(scope="module")
def exported(line_run, tmp_path_factory):
    """A copy of a run with its bag and its MCAP file."""
    run = shutil.copytree(line_run, tmp_path_factory.mktemp("judged") / "run")
    for kind in ("bag", "mcap", "csv", "parquet"):
        assert main(["export", str(run), "--to", kind]) == 0
    return run


def test_a_run_knows_its_arm_commands_and_setpoints(line_run):
    recorded = Evaluation.of(line_run)

    log = read_log(line_run)

    assert log.source is LogSource.RUN
    assert log.robot == recorded.settings.robot.name
    assert np.array_equal(log.setpoints.values, recorded.log.setpoint)
    assert np.array_equal(log.position_commands.values, recorded.log.command)
    assert log.position_commands.times == pytest.approx(log.times - log.cycle)
    assert np.array_equal(log.attained_poses.values, recorded.attained)


def test_the_log_of_a_run_is_read_with_its_run(line_run):
    log = read_log(line_run / "log.mcap")

    assert log.source is LogSource.RUN
    assert log.name == str(line_run)


def test_a_session_is_a_log(live_run):
    log = read_log(live_run)

    assert log.source is LogSource.SESSION
    assert np.all(np.diff(log.times) > 0.0)


def test_a_session_is_judged(cli, live_run):
    answer = cli("judge", live_run)

    assert answer.status == 0, answer.err
    assert "off the reference" in answer.out


def test_a_session_that_was_never_engaged_is_refused(never_engaged):
    with pytest.raises(NotARun, match="fewer than two samples"):
        read_log(never_engaged)


@pytest.mark.parametrize("name", ["rosbag2", "samples.mcap", "samples.csv", "samples.parquet"])
def test_an_exported_run_has_the_same_joints_and_poses(exported, name):
    run = read_log(exported)

    log = read_log(exported / name)

    assert log.source is LogSource.EXPORT
    assert log.times == pytest.approx(run.times, abs=1e-9)
    assert np.array_equal(log.actual_q, run.actual_q)
    assert np.array_equal(log.target_q, run.target_q)
    assert np.array_equal(log.setpoints.values, run.setpoints.values)
    assert np.array_equal(log.position_commands.values, run.position_commands.values)
    assert log.position_commands.times == pytest.approx(run.position_commands.times, abs=1e-6)
    assert np.array_equal(log.reference_poses.values, run.reference_poses.values)
    assert np.array_equal(log.attained_poses.values, run.attained_poses.values)


def test_a_judged_export_has_the_figures_of_its_run(cli, exported):
    names = [exported, *(exported / name for name in ("rosbag2", "samples.csv"))]

    logs = json.loads(cli("judge", *names, "--json").out)["logs"]

    summary = json.loads((exported / "summary.json").read_text())
    error = summary["tracking_error"]["position_m"]
    for log in logs:
        judgement = log["judgement"]
        assert judgement["tool"]["rms_m"] == pytest.approx(error["rms"], rel=1e-9)
        assert judgement["tool"]["max_m"] == pytest.approx(error["max"], rel=1e-9)
        whole = judgement["whole"]["whole"]
        expected = logs[0]["judgement"]["whole"]["whole"]
        assert whole["lag"]["lag_s"] == pytest.approx(expected["lag"]["lag_s"], abs=1e-7)
        assert whole["size"]["rms_rad"] == pytest.approx(expected["size"]["rms_rad"], rel=1e-4)


def test_a_run_of_an_arm_of_ones_own_knows_it(cli, line_run, tmp_path):
    run = shutil.copytree(line_run, tmp_path / "run")
    settings = run / "settings.toml"
    text = settings.read_text()
    name = Evaluation.of(line_run).settings.robot.name
    own = tmp_path / "desk_arm.toml"
    own.write_text((robot_files()[name]).read_text().replace('title = "', 'title = "Desk '))
    text = text.replace(f'name = "{name}"', 'name = "desk_arm"')
    record = Evaluation.of(line_run).settings.robot
    settings.write_text(text.replace(f'source = "{record.source}"', f'source = "{own}"'))

    assert cli("judge", run).out.startswith(f"{run}: A Desk ")
