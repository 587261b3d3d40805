"""A run and its repeats made with an older version are evaluated, reported, exported and replayed as before.

tests/data/old_run was written at commit b142040 by `simbridge run short.tum --tolerance 50 5` and by `--repeat 2`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.trajectory.files import read_trajectory

DATA = Path(__file__).parents[1] / "data" / "old_run"
# Keys of summary.json that it has not.
NEW = {
    "ended_by",
    "plant_model",
    "feedforward",
    "kinematics",
    "servo_law",
    "command_lead_rad",
    "pauses",
    "inputs",
    "latency",
    "label",
    "robot_title",
    "emulated",
    "servo",
    "error_shares",
    "uncertainty",
}
NEW |= {f"{part}_error" for part in ("servo_law", "rest")}
NEW |= {f"{part}_delay_s" for part in ("sampling", "limiter", "servo_law", "rest")}
NEW |= {f"{part}_rotation_delay_s" for part in ("sampling", "limiter", "servo_law", "rest")}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A copy of the old run and its repeats."""
    return shutil.copytree(DATA, tmp_path_factory.mktemp("old") / "old_run")


def assert_same_numbers(found, expected, path=""):
    """The same keys, except for new ones, and values; numbers may differ by rounding."""
    if isinstance(expected, dict):
        assert [key for key in found if key not in NEW] == list(expected), path
        for key in expected:
            assert_same_numbers(found[key], expected[key], f"{path}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same_numbers(one, other, f"{path}[{index}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), path
    else:
        assert found == expected, path


def summary_of(path):
    return json.loads((path / "summary.json").read_text(encoding="utf-8"))


def test_its_log_is_complete():
    log = read_log(DATA / "run" / "log.mcap")
    assert log.complete
    assert log.metadata["scenario"] == "short"
    assert log.index.tolist() == list(range(26))


def test_its_summary_is_evaluated_again():
    old = summary_of(DATA / "run")
    # An acceleration has a limit only where the limiter keeps it, which it did not in this run.
    old["joint_effort"]["acceleration"] |= {"limit": None, "used": None}
    run = Evaluation.of(RunDirectory.open(DATA / "run"))
    assert_same_numbers(summarize(run, "completed", tolerance=run.settings["tolerance"]), old)


@pytest.mark.parametrize("name", ["run", "repeats"])
def test_it_is_reported(cli, old, name):
    assert cli("report", old / name).status == 0
    assert_same_numbers(summary_of(old / name), summary_of(DATA / name))
    assert (old / name / "report.html").is_file()


@pytest.mark.parametrize("kind", ["csv", "tum", "mcap", "bag"])
def test_it_is_exported(cli, old, kind):
    answer = cli("export", old / "run", "--to", kind)
    assert answer.status == 0
    assert all(Path(path).exists() for path in answer.out.split())
    if kind == "tum":
        attained = read_trajectory(old / "run" / "attained.tum")
        assert np.array_equal(attained.poses, Evaluation.of(RunDirectory.open(DATA / "run")).attained)


def test_it_is_replayed_with_the_same_setpoints(cli, old):
    again = old / "again"
    flags = ("--servo", "stiff", "--tolerance", 50, 5, "--out", again)
    answer = cli("run", DATA / "short.tum", "--plan", old / "run", *flags)
    assert answer.status == 0
    with np.load(again / "plan.npz") as new, np.load(DATA / "run" / "plan.npz") as before:
        assert np.array_equal(new["setpoints"], before["setpoints"])
    assert_same_numbers(summary_of(again)["tracking_error"], summary_of(DATA / "run")["tracking_error"])
