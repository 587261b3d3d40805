"""The prediction error of simulated and measured runs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.prediction import prediction_error
from simbridge.recording.run_directory import RunDirectory
from tests.report.made_up_run import MadeUp

pytestmark = pytest.mark.usefixtures("without_pages")


@pytest.mark.slow
def test_simulated_and_measured_runs_have_it(
    cli, line_run, measured, slower, tmp_path, short_comparisons
):
    answer = cli("compare", line_run, measured, slower, "--out", tmp_path / "out", "--json")

    errors = [run["prediction_error"] for run in json.loads(answer.out)["runs"]]
    assert errors[0] is None
    assert errors[1]["position_m"] == {"rms": 0.0, "max": 0.0}
    assert errors[1]["joints_rad"]["max"] == 0.0
    assert errors[2] is None


@pytest.mark.slow
def test_the_table_and_the_page_show_it(cli, line_run, measured, tmp_path):
    answer = cli("compare", measured, line_run, "--out", tmp_path / "out")

    assert "Prediction error, simulated to measured" in answer.out
    page = (tmp_path / "out" / "compare.html").read_text(encoding="utf-8")
    assert "Prediction error" in page


def test_a_late_arm_has_a_delay_and_little_else(line_run):
    simulated = Evaluation.of(RunDirectory.open(line_run))
    late_samples = 3
    q = simulated.log.position
    late_q = np.concatenate([np.repeat(q[:1], late_samples, axis=0), q[:-late_samples]])
    measured = replace(simulated, log=replace(simulated.log, position=late_q))

    error = prediction_error(simulated, measured)

    assert error["delay_s"] == pytest.approx(late_samples * 0.008, abs=2e-4)
    joint_rms = np.sqrt(np.mean((late_q - q) ** 2))
    assert error["joints_rad"]["rms"] == pytest.approx(joint_rms, rel=1e-9)
    assert error["delay_removed"]["position_m"]["rms"] < 0.05 * error["position_m"]["rms"]


@pytest.mark.slow
def test_arms_with_other_joints_have_none(line_run, tmp_path):
    simulated = MadeUp(joints=3).evaluation(tmp_path)
    measured = Evaluation.of(RunDirectory.open(line_run))

    assert prediction_error(simulated, measured) is None
