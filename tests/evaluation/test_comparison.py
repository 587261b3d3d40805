"""Comparison of runs of one scenario."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.evaluation.comparison import compare_runs, iso_figures_of
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.tracking import SOLVER_ERROR, TRACKING_ERROR
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.compare_columns import motion_columns
from simbridge.report.compare_headline import comparison_headline
from simbridge.text import millimetres
from simbridge.ur.tables import EMULATOR_SERIAL_NUMBER
from tests.program import answer_to
from tests.properties import variants
from tests.report.pages import plain_spaces

pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.shares_setup]


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory, run_without_page: Any, line: Path) -> Path:
    """`line` again, at half of its speed."""
    out = tmp_path_factory.mktemp("run") / "half"
    assert run_without_page(line, "--speed-scale", 0.5, "--out", out) == 0
    return out


@pytest.fixture(scope="module")
def exceeding(
    tmp_path_factory: pytest.TempPathFactory, line_run: Path, slower: Path, replace_text: Any
) -> tuple[Path, str, str]:
    """A run as `slower`, of an arm with a limit that it exceeds; what comparing it with `line_run`
    prints at 80 columns, and the page.
    """
    directory = tmp_path_factory.mktemp("exceeding")
    run = shutil.copytree(slower, directory / "slower")
    replace_text(run / "settings.toml", "max_acceleration = 20.0", "max_acceleration = 0.01")
    out = directory / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        answer = answer_to("compare", line_run, run, "--out", out)
    assert answer.status == 0
    return run, answer.out, (out / "compare.html").read_text(encoding="utf-8")


def test_a_copy_has_no_separation(line_run, same):
    comparison = compare_runs([line_run, same])

    times, separation = comparison.separation[1]
    assert len(times) == len(comparison.runs[0].evaluation.log.stamp)
    assert separation.distance.max() == 0.0
    assert separation.angle.max() < 1e-12
    assert comparison.warnings == ()


@pytest.mark.slow
def test_the_slower_run_sets_the_instants(line_run, slower):
    fast_run = Evaluation.of(RunDirectory.open(line_run))
    slow_run = Evaluation.of(RunDirectory.open(slower))

    times, separation = compare_runs([line_run, slower]).separation[1]

    assert np.array_equal(times, slow_run.log.plan_time)
    # Every 20 ms is a sample of the run every 8 ms at multiples of 40 ms.
    is_common = np.isclose(times[:, None], fast_run.log.plan_time[None], atol=1e-9)
    rows, columns = np.nonzero(is_common)
    assert len(rows) >= 5
    difference = fast_run.attained[columns, :3] - slow_run.attained[rows, :3]
    expected = np.linalg.norm(difference, axis=1)
    assert np.allclose(separation.distance[rows], expected, atol=1e-12)


def test_the_table_fits_80_columns(exceeding):
    _, printed, page = exceeding

    table_lines = [line for line in printed.splitlines() if not line.startswith("Page:")]
    assert max(map(len, table_lines)) <= 80
    extrapolation = "The servo law at gain 2000 is extrapolated from gains 300 and 100."
    assert extrapolation in printed
    assert extrapolation in page
    assert "backend.unmodelled_payload" in page
    assert "backend.period" in page


@pytest.mark.slow
def test_json_has_both_summaries_numbers(cli, line_run, slower, tmp_path, short_comparisons):
    answer = cli("compare", line_run, slower, "--out", tmp_path / "out", "--json")

    result = json.loads(answer.out)
    assert Path(result["page"]).is_file()
    for path, run in zip((line_run, slower), result["runs"], strict=True):
        summary = json.loads((path / "summary.json").read_text())
        assert run["tracking_error"] == summary["tracking_error"]
        assert run["delay_s"] == summary["delay_s"]
    first, second = result["runs"]
    assert first["from_the_first"] is None
    assert second["from_the_first"]["position_m"]["max"] > 0.0


def test_different_scenarios_are_refused(cli, line_run, half, tmp_path, replace_text):
    other = shutil.copytree(half, tmp_path / "other")
    replace_text(other / "settings.toml", 'name = "line"', 'name = "square"')

    answer = cli("compare", line_run, other, "--out", tmp_path / "out")

    assert answer.status == 2
    assert answer.message.startswith(
        "The scenario of other must be line, as in line (got square): one takes 0.4 s and the "
        "other 0.8 s"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("width", variants([60, 80], 60))
def test_what_differs_comes_first(
    cli, line_run, slower, tmp_path, monkeypatch, short_comparisons, width
):
    monkeypatch.setenv("COLUMNS", f"{width}")

    answer = cli("compare", line_run, slower, "--out", tmp_path / "out", "--verbose")
    lines = answer.out.splitlines()

    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "line, 2 runs that differ in period and unmodelled-payload: RMS tracking error "
    )
    servo = "servoj at gain 2000, lookahead 0.03 s (pybullet)."
    assert f"in {slower.name}: ur10, forward-dynamics, {servo}" in text
    assert max(len(line) for line in lines if not line.startswith("Page:")) <= width


@pytest.mark.slow
def test_another_speed_is_a_warning(cli, line_run, half, tmp_path, short_comparisons):
    comparison = compare_runs([line_run, half])

    assert comparison.warnings == (
        "line and half have the same scenario name, but one takes 0.4 s and the other 0.8 s.",
    )
    assert cli("compare", line_run, half, "--out", tmp_path / "out").status == 0


@pytest.mark.parametrize(("runs", "reason"), [(1, "at least 2"), (2, "given only once")])
def test_a_comparison_needs_two_runs(cli, line_run, tmp_path, runs, reason):
    answer = cli("compare", *[line_run] * runs, "--out", tmp_path / "out")

    assert answer.status == 2
    assert reason in answer.message


@pytest.mark.slow
def test_repeats_of_one_motion_have_iso_figures(
    cli, line_run, same, slower, tmp_path, replace_text
):
    figures = iso_figures_of(compare_runs([line_run, same]))["figures"]
    assert {"AT", "RT"} <= {figure["symbol"] for figure in figures}

    # Another period, servo or feedforward is another arm.
    assert iso_figures_of(compare_runs([line_run, slower])) is None
    for name, setting, change in (
        ("servo", "servo_gain = 2000.0", "servo_gain = 500.0"),
        ("feedforward", 'feedforward = "off"', 'feedforward = "on"'),
    ):
        changed = shutil.copytree(same, tmp_path / name)
        replace_text(changed / "settings.toml", setting, change)
        assert iso_figures_of(compare_runs([line_run, changed])) is None

    cli("compare", line_run, same, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "compare.html").read_text()
    assert "Self-reported: these positions are computed from" in page


def test_a_directory_of_repeats_stands_for_its_runs(line_run, tmp_path):
    for name in ("01", "02"):
        shutil.copytree(line_run, tmp_path / "many" / name)

    comparison = compare_runs([tmp_path / "many"])

    assert [run.name for run in comparison.runs] == ["01", "02"]


@pytest.mark.parametrize("position", variants([0, 1, 2], 0, 2))
def test_a_run_that_ended_early_is_named_once(line_run, same, tmp_path, replace_text, position):
    ended = shutil.copytree(same, tmp_path / "ended")
    replace_text(ended / "summary.json", '"completed"', '"interrupted"')
    runs = [line_run, same]
    runs.insert(position, ended)

    comparison = compare_runs(runs)

    assert comparison.warnings == ("ended did not complete: interrupted.",)


@pytest.mark.parametrize(
    ("first_rms", "text"),
    [
        (
            2.87e-3,
            "RMS tracking error 2.87\u00a0mm (line) and below 0.01\u00a0mm (same)",
        ),
        (3e-6, "tracking error below 0.01\u00a0mm in all of them"),
    ],
)
def test_an_error_that_no_arm_keeps_is_no_number(line_run, same, first_rms, text):
    comparison = compare_runs([line_run, same])
    runs = []
    for run, rms in zip(comparison.runs, (first_rms, 1e-6), strict=True):
        error = {"position_m": {"rms": rms, "max": 2.0 * rms}}
        runs.append(replace(run, summary={**run.summary, "tracking_error": error}))

    headline = comparison_headline(replace(comparison, runs=tuple(runs)))

    assert headline == f"line, 2 runs that have the same settings: {text}."


@pytest.fixture(scope="module")
def other_solver(tmp_path_factory, run_without_page, line):
    """`line` again, with another solver."""
    out = tmp_path_factory.mktemp("run") / "damped"
    assert run_without_page(line, "--solver", "damped-least-squares", "--out", out) == 0
    return out


def test_solvers_are_compared_by_their_own_error(line_run, other_solver):
    comparison = compare_runs([line_run, other_solver])

    headline = plain_spaces(comparison_headline(comparison))

    assert comparison.main_part is SOLVER_ERROR
    sizes = [
        millimetres(run.summary["solver_error"]["position_m"]["rms"]) for run in comparison.runs
    ]
    assert headline.startswith(
        f"line, 2 runs that differ in solver: RMS error of the solver {sizes[0]} mm "
        f"(forward-dynamics) and {sizes[1]} mm (damped-least-squares). "
    )
    assert "With the plant's error of " in headline


def test_solver_error_that_shows_leaves_the_tracking_error_first(line_run, other_solver):
    comparison = compare_runs([line_run, other_solver])
    runs = []
    for run in comparison.runs:
        error = {"position_m": run.summary["plant_error"]["position_m"]}
        runs.append(replace(run, summary={**run.summary, "solver_error": error}))

    assert replace(comparison, runs=tuple(runs)).main_part is TRACKING_ERROR


def test_shares_of_limits_are_columns(line_run, other_solver):
    runs = compare_runs([line_run, other_solver]).runs
    robot = runs[0].evaluation.settings.robot

    step, speed, acceleration, jerk = motion_columns(runs)

    peaks = np.array(runs[0].summary["joint_effort"]["velocity"]["peak"])
    fastest = (peaks / np.array(robot.max_velocity)).argmax()
    assert float(speed.cells[0].value) == pytest.approx(np.degrees(peaks[fastest]), rel=5e-3)
    share = 100.0 * peaks[fastest] / robot.max_velocity[fastest]
    assert float(speed.cells[0].limit_share.split()[0]) == pytest.approx(share, rel=0.05)
    assert float(step.cells[0].value) > 0.0
    assert acceleration.cells[0].limit_share.endswith("%")
    assert jerk.cells[0].limit_share == ""
    assert not speed.cells[0].exceeds


def test_share_above_one_stands_out(line_run, exceeding):
    run, _, page = exceeding

    cells = motion_columns(compare_runs([line_run, run]).runs)[2].cells

    assert [cell.exceeds for cell in cells] == [False, True]
    assert re.search(f'<td class="near"[^>]*>{cells[1].limit_share}</td>', page)


@pytest.mark.parametrize("width", variants([60, 80], 80))
def test_the_result_is_a_dozen_lines(
    cli, line_run, other_solver, tmp_path, monkeypatch, short_comparisons, width
):
    monkeypatch.setenv("COLUMNS", f"{width}")

    lines = cli("compare", line_run, other_solver, "--out", tmp_path).out.splitlines()

    # In a narrow terminal names and headings are broken into lines.
    assert len(lines) <= 12 or width < 80
    assert max(len(line) for line in lines if not line.startswith("Page:")) <= width


def test_motion_of_three_runs_is_for_verbose(
    cli, line_run, same, other_solver, tmp_path, short_comparisons
):
    runs = (line_run, same, other_solver)

    short = cli("compare", *runs, "--out", tmp_path)
    long = cli("compare", *runs, "--out", tmp_path, "--verbose")

    assert "jerk" not in short.out
    assert "jerk" in long.out


def test_figures_of_runs_are_written(cli, line_run, other_solver, tmp_path, short_comparisons):
    folder = tmp_path / "figures"

    answer = cli(
        "compare", line_run, other_solver, "--out", tmp_path, "--figures", folder, "--json"
    )

    names = {Path(file).name for file in json.loads(answer.out)["figures"]}
    assert {"errors.svg", "contour.svg", "separation.svg"} <= names
    for name in names:
        assert re.search(r'width="249\.\d+pt"', (folder / name).read_text())


def test_an_unknown_format_of_figures_is_refused(cli, line_run, same, tmp_path):
    flags = ("--out", tmp_path / "out", "--figures", tmp_path / "figures", "--format", "eps")

    answer = cli("compare", line_run, same, *flags)

    assert answer.status == 2
    assert not (tmp_path / "out").exists()


def test_drawings_name_their_units(exceeding):
    _, _, page = exceeding

    assert 'aria-label="Tracking error of every run over time, in mm and degrees. ' in page
    assert 'aria-label="Separation from the first run over time, in mm and degrees. ' in page


# Drawings with rotation in test_drawings_name_their_units.
@pytest.mark.soak
def test_drawings_without_visible_rotation_name_only_mm(cli, line_run, same, tmp_path):
    cli("compare", line_run, same, "--out", tmp_path)

    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert 'aria-label="Tracking error of every run over time, in mm. ' in page
    assert 'aria-label="Separation from the first run over time, in mm. ' in page


@pytest.mark.slow
def test_the_emulator_is_named(cli, measured, tmp_path, replace_text, short_comparisons):
    replace_text(measured / "settings.toml", 'name = "pybullet"', 'name = "ursim"')
    emulated = shutil.copytree(measured, tmp_path / "emulated")
    replace_text(
        emulated / "settings.toml",
        "[versions]",
        f'[controller]\nserial_number = "{EMULATOR_SERIAL_NUMBER}"\n\n[versions]',
    )

    answer = cli("compare", measured, emulated, "--out", tmp_path / "out", "--verbose")
    text = " ".join(answer.out.split())
    answer = cli("compare", measured, emulated, "--out", tmp_path / "out", "--json")

    assert text.count("(ursim).") == 1
    assert text.count("(emulator).") == 1
    assert [run["emulated"] for run in json.loads(answer.out)["runs"]] == [False, True]
