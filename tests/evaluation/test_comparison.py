"""Comparison of runs of one scenario."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simbridge.evaluation.comparison import compare_runs, iso_figures_of
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.prediction import prediction_error
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.compare_page import comparison_headline
from simbridge.ur.tables import EMULATOR_SERIAL_NUMBER

pytestmark = pytest.mark.usefixtures("without_pages")


@pytest.fixture(scope="module")
def slower(tmp_path_factory, line, run_without_page):
    """`line` again, at another period and with a payload that is not in the model."""
    out = tmp_path_factory.mktemp("run") / "slower"
    assert run_without_page(line, "--period", 0.02, "--unmodelled-payload", 5, "--out", out) == 0
    return out


@pytest.fixture
def same(line_run, tmp_path):
    """A copy of the run."""
    return shutil.copytree(line_run, tmp_path / "same")


def test_a_run_and_its_copy_have_no_separation(line_run, same):
    found = compare_runs([line_run, same])
    times, separation = found.separation[1]
    assert len(times) == len(found.runs[0].evaluation.log.stamp)
    assert separation.distance.max() == 0.0
    assert separation.angle.max() < 1e-12
    assert found.warnings == ()


def test_runs_of_different_periods_are_compared_at_the_samples_of_the_slower(line_run, slower):
    found = compare_runs([line_run, slower])
    times, separation = found.separation[1]
    one, two = (Evaluation.of(RunDirectory.open(path)) for path in (line_run, slower))
    assert np.array_equal(times, two.log.plan_time)
    # Every 20 ms is a sample of the run every 8 ms at multiples of 40 ms.
    shared = np.isclose(times[:, None], one.log.plan_time[None], atol=1e-9)
    rows, columns = np.nonzero(shared)
    assert len(rows) >= 5
    expected = np.linalg.norm(one.attained[columns, :3] - two.attained[rows, :3], axis=1)
    assert np.allclose(separation.distance[rows], expected, atol=1e-12)


def test_the_table_fits_80_columns_and_names_every_run(
    cli, line_run, slower, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    answer = cli("compare", line_run, slower, "--out", tmp_path / "out")
    assert answer.status == 0
    tables = [line for line in answer.out.splitlines() if not line.startswith("Page:")]
    assert max(map(len, tables)) <= 80
    assert "line" in answer.out and "slower" in answer.out
    page = (tmp_path / "out" / "compare.html").read_text()
    assert "backend.unmodelled_payload" in page and "backend.period" in page


def test_json_has_the_numbers_of_both_summaries(cli, line_run, slower, tmp_path):
    answer = json.loads(cli("compare", line_run, slower, "--out", tmp_path / "out", "--json").out)
    assert Path(answer["page"]).is_file()
    for path, run in zip((line_run, slower), answer["runs"], strict=True):
        summary = json.loads((path / "summary.json").read_text())
        assert run["tracking_error"] == summary["tracking_error"]
        assert run["delay_s"] == summary["delay_s"]
    assert answer["runs"][0]["from_the_first"] is None
    assert answer["runs"][1]["from_the_first"]["position_m"]["max"] > 0.0


def test_runs_of_different_scenarios_are_refused_with_the_reason(
    cli, line_run, square_run, tmp_path
):
    answer = cli("compare", line_run, square_run, "--out", tmp_path / "out")
    assert answer.status == 2
    expected = "The scenario of square is square_tracking; it must be line, as in line: one takes 0.4 s and the other"
    assert answer.message.startswith(f"{expected} 16 s")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("width", [60, 80])
def test_runs_are_named_once_with_arm_solver_and_servo_and_numbered_in_tables(
    cli, line_run, slower, tmp_path, monkeypatch, width
):
    monkeypatch.setenv("COLUMNS", f"{width}")
    lines = cli("compare", line_run, slower, "--out", tmp_path / "out").out.splitlines()
    assert re.match(r"line, 2 runs: [\d.]+ to [\d.]+ mm RMS tracking error\.$", lines[0])
    known = " ".join(" ".join(lines).split())
    assert (
        f"2 {slower.name}: ur10, forward-dynamics, servoj at gain 2000, lookahead 0.03 s (pybullet)."
        in known
    )
    assert sum(line.startswith("2  ") for line in lines) == 3  # its name, and its row in each table
    assert max(len(line) for line in lines if not line.startswith("Page:")) <= width


def test_one_scenario_at_another_speed_is_compared_with_a_warning(cli, line, line_run, tmp_path):
    assert (
        cli("run", line, "--speed-scale", "0.5", "--out", tmp_path / "half", "--json").status == 0
    )
    found = compare_runs([line_run, tmp_path / "half"])
    assert found.warnings == (
        "line and half have the same scenario name, but one takes 0.4 s and the other 0.8 s.",
    )
    assert cli("compare", line_run, tmp_path / "half", "--out", tmp_path / "out").status == 0


@pytest.mark.parametrize(("runs", "reason"), [(1, "at least 2"), (2, "this one is given twice")])
def test_a_comparison_needs_two_different_runs(cli, line_run, tmp_path, runs, reason):
    answer = cli("compare", *[line_run] * runs, "--out", tmp_path / "out")
    assert answer.status == 2
    assert reason in answer.message


def test_repeats_of_one_motion_have_iso_figures_that_are_self_reported(
    cli, line_run, same, slower, tmp_path
):
    assert {
        figure["symbol"] for figure in iso_figures_of(compare_runs([line_run, same]))["figures"]
    } >= {"AT", "RT"}
    assert iso_figures_of(compare_runs([line_run, slower])) is None
    for setting, other in (
        ("servo_gain = 2000.0", "servo_gain = 500.0"),
        ('feedforward = "off"', 'feedforward = "on"'),
    ):
        changed = shutil.copytree(same, tmp_path / other[:5])
        replaced(changed / "settings.toml", setting, other)
        assert iso_figures_of(compare_runs([line_run, changed])) is None
    cli("compare", line_run, same, "--out", tmp_path / "out")
    assert (
        "Self-reported: these positions are computed from"
        in (tmp_path / "out" / "compare.html").read_text()
    )


def test_a_directory_of_repeats_is_compared_run_by_run(line_run, tmp_path):
    for name in ("01", "02"):
        shutil.copytree(line_run, tmp_path / "many" / name)
    assert [run.name for run in compare_runs([tmp_path / "many"]).runs] == ["01", "02"]


def replaced(file, text, other):
    before = file.read_text(encoding="utf-8")
    assert text in before
    file.write_text(before.replace(text, other), encoding="utf-8")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_run_that_ended_early_is_named_once(line_run, same, tmp_path, place):
    ended = shutil.copytree(same, tmp_path / "ended")
    replaced(ended / "summary.json", '"completed"', '"interrupted"')
    runs = [line_run, same]
    assert compare_runs([*runs[:place], ended, *runs[place:]]).warnings == (
        "ended did not complete: interrupted.",
    )


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (2.87e-3, "below 0.01 to 2.87\u00a0mm RMS tracking error"),
        (3e-6, "tracking error below 0.01\u00a0mm"),
    ],
)
def test_an_error_that_no_arm_keeps_is_not_given_as_a_number(line_run, same, first, words):
    found = compare_runs([line_run, same])
    errors = [{"position_m": {"rms": rms, "max": 2.0 * rms}} for rms in (first, 1e-6)]
    runs = [
        replace(run, summary={**run.summary, "tracking_error": error})
        for run, error in zip(found.runs, errors, strict=True)
    ]
    assert comparison_headline(replace(found, runs=tuple(runs))) == f"line, 2 runs: {words}."


def test_the_words_of_a_drawing_name_the_units_that_it_has(cli, line_run, same, tmp_path):
    cli("compare", line_run, same, "--out", tmp_path)
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert 'aria-label="Tracking error of every run over time, in mm. ' in page
    assert 'aria-label="Separation from the first run over time, in mm. ' in page


def test_what_ran_on_the_emulator_is_named_so(cli, measured, tmp_path):
    replaced(measured / "settings.toml", 'name = "pybullet"', 'name = "ursim"')
    other = shutil.copytree(measured, tmp_path / "other")
    replaced(
        other / "settings.toml",
        "[versions]",
        f'[controller]\nserial_number = "{EMULATOR_SERIAL_NUMBER}"\n\n[versions]',
    )
    shown = " ".join(cli("compare", measured, other, "--out", tmp_path / "out").out.split())
    assert shown.count("(ursim).") == 1 and shown.count("(emulator).") == 1
    answer = json.loads(cli("compare", measured, other, "--out", tmp_path / "out", "--json").out)
    assert [run["emulated"] for run in answer["runs"]] == [False, True]


@pytest.fixture
def measured(same):
    """The run, as if it had been made on a controller."""
    replaced(same / "settings.toml", "simulated_time = true", "simulated_time = false")
    return same


def test_of_simulated_and_measured_runs_the_prediction_error_is_given(
    cli, line_run, measured, slower, tmp_path
):
    answer = cli("compare", line_run, measured, slower, "--out", tmp_path / "out", "--json")
    first, other, simulated = (run["prediction_error"] for run in json.loads(answer.out)["runs"])
    assert first is None and simulated is None
    assert other["position_m"] == {"rms": 0.0, "max": 0.0} and other["joints_rad"]["max"] == 0.0
    answer = cli("compare", measured, line_run, "--out", tmp_path / "other")
    assert "Prediction error, simulated to measured" in answer.out
    assert "Prediction error" in (tmp_path / "other" / "compare.html").read_text(encoding="utf-8")


def test_a_measured_arm_that_is_late_shows_as_delay_with_nothing_left(line_run):
    simulated = Evaluation.of(RunDirectory.open(line_run))
    late = 3
    q = simulated.log.position
    position = np.concatenate([np.repeat(q[:1], late, axis=0), q[:-late]])
    found = prediction_error(
        simulated, replace(simulated, log=replace(simulated.log, position=position))
    )
    assert found["delay_s"] == pytest.approx(late * 0.008, abs=2e-4)
    assert found["joints_rad"]["rms"] == pytest.approx(
        np.sqrt(np.mean((position - q) ** 2)), rel=1e-9
    )
    assert found["delay_removed"]["position_m"]["rms"] < 0.05 * found["position_m"]["rms"]
