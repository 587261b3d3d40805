"""`simbridge judge` at the command line: several logs, columns, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simbridge.text import milliradians
from tests.program import answer_to
from tests.properties import variants

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[1] / "data" / "ur3e_moves" / "moves.csv.gz"


@pytest.fixture
def headless(tmp_path):
    """A recording without a header: time, six positions, six velocities."""
    path = tmp_path / "excitation.csv"
    times = 0.01 * np.arange(50)
    q = np.sin(times)[:, None] * np.ones(6)
    np.savetxt(path, np.column_stack([times, q, np.gradient(q, 0.01, axis=0)]), delimiter=",")
    return path


@pytest.fixture(scope="module")
def brief():
    """The answer for the recording."""
    return answer_to("judge", RECORDING)


@pytest.fixture(scope="module")
def in_json(tmp_path_factory):
    """A missing file, and the exit status and the JSON for the recording and this file."""
    missing = tmp_path_factory.mktemp("logs") / "missing.csv"
    answer = answer_to("judge", RECORDING, missing, "--json")
    return missing, answer.status, json.loads(answer.out)


@pytest.mark.shares_setup
def test_the_first_line_names_the_log(brief):
    assert brief.status == 0
    assert brief.out.startswith(f"{RECORDING}: A UR3e ")


def test_a_log_that_fails_does_not_keep_the_others_back(cli, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.touch()

    answer = cli("judge", tmp_path / "missing.csv", empty, RECORDING)

    assert answer.status == 2
    assert "missing.csv: file not found" in answer.message
    assert "empty.csv: it is empty" in answer.message
    assert str(RECORDING) in answer.out


def test_an_exceeded_tolerance_is_reported_and_fails(cli):
    answer = cli("judge", RECORDING, "--path-tolerance", "0.0001")

    assert answer.status == 1
    assert "would have given up" in answer.out


def test_a_tolerance_that_is_kept_passes(cli):
    answer = cli("judge", RECORDING, "--path-tolerance", "0.2", "--goal-tolerance", "0.1")

    assert answer.status == 0
    assert "would not have given up" in answer.out


@pytest.mark.shares_setup
def test_json_has_every_log_and_every_failure(in_json):
    missing, status, result = in_json

    assert status == 2
    assert [log["log"] for log in result["logs"]] == [str(RECORDING)]
    assert result["logs"][0]["judgement"]["arm"]["robot"] == "ur3e"
    assert [failure["log"] for failure in result["failures"]] == [str(missing)]


def test_columns_name_those_of_a_file_without_a_header(cli, headless):
    answer = cli("judge", headless, "--columns", "t,q,qd")

    assert answer.status == 0
    assert "made 1 motion" in answer.out


def test_a_file_without_a_header_asks_for_columns(cli, headless):
    answer = cli("judge", headless)

    assert answer.status == 2
    assert "name its 13 columns with --columns" in answer.message


def test_rows_that_are_left_out_are_counted(cli, headless):
    rows = headless.read_text().splitlines(keepends=True)
    headless.write_text("".join([*rows[:20], *rows[19:]]))

    answer = cli("judge", headless, "--columns", "t,q,qd")

    assert "1 row with the timestamp of the previous row left out (line 21)." in answer.out


def test_goals_are_not_taken_for_a_log(cli, tmp_path):
    path = tmp_path / "goals.csv"
    path.write_text("received,time_from_start," + ",".join(f"q_{i}" for i in range(6)) + "\n")

    answer = cli("judge", path)

    assert answer.status == 2
    assert "--goals" in answer.message


def test_an_arm_that_the_poses_contradict_is_refused(cli):
    answer = cli("judge", RECORDING, "--robot", "ur10e")

    assert answer.status == 2
    assert "actual_TCP_pose: it is off by" in answer.message
    assert "with those of a UR3e: name the right arm (--robot)" in answer.message


def test_a_wrong_number_of_columns_is_refused(cli, headless):
    answer = cli("judge", headless, "--columns", "t,q")

    assert answer.status == 2
    assert "--columns names 7 columns, but it has 13" in answer.message


def test_a_directory_without_a_run_is_refused(cli, tmp_path):
    answer = cli("judge", tmp_path)

    assert answer.status == 2
    assert "not a run directory" in answer.message


@pytest.mark.shares_setup
def test_verbose_shows_every_motion_with_its_evidence(cli, brief):
    brief_lines = brief.out.splitlines()

    verbose = cli("judge", RECORDING, "--verbose").out

    assert len(brief_lines) <= 12
    shown = {line for line in brief_lines if line.startswith("Shown:")}
    assert set(brief_lines) - shown <= set(verbose.splitlines())
    assert "a straight line in joint space with a trapezoid of speed" in verbose


def test_motions_without_errors_are_not_called_the_largest(cli, tmp_path):
    path = tmp_path / "joints.csv"
    times = 0.01 * np.arange(1200)
    # Six motions of 1 s, each with a rest of 1 s after it.
    q = 0.3 * (np.floor(times / 2.0) + np.clip(times % 2.0, 0.0, 1.0))
    table = np.column_stack([times, q[:, None] * np.ones(6)])
    header = ",".join(["timestamp", *(f"actual_q_{i}" for i in range(6))])
    np.savetxt(path, table, delimiter=",", header=header, comments="")

    answer = cli("judge", path)

    assert "Shown: the first 5 motions." in answer.out


def test_a_page_is_written(cli, tmp_path):
    answer = cli("judge", RECORDING, "--page", tmp_path / "judged.html")

    headline = answer.out.splitlines()[0].split(": ", maxsplit=1)[1]
    page = (tmp_path / "judged.html").read_text(encoding="utf-8")
    assert answer.status == 0
    assert f'<p class="headline">{headline}</p>' in page.replace("\u00a0", " ")


def test_a_page_has_only_one_log(cli, tmp_path):
    answer = cli("judge", RECORDING, RECORDING, "--page", tmp_path / "judged.html")

    assert answer.status == 2
    assert "--page" in answer.message
    assert not (tmp_path / "judged.html").exists()


@pytest.mark.shares_setup
@pytest.mark.parametrize("columns", variants(["60", "40"], "40"))
def test_a_narrow_terminal_cuts_nothing(cli, monkeypatch, in_json, columns):
    monkeypatch.setenv("COLUMNS", columns)

    answer = cli("judge", RECORDING, "--verbose")

    (log,) = in_json[2]["logs"]
    errors = [motion["errors"]["whole"]["size"] for motion in log["judgement"]["motions"]]
    words = answer.out.split()
    assert {milliradians(error["rms_rad"]) for error in errors} <= set(words)
    assert "Not shown because the terminal is too narrow" in " ".join(words)
