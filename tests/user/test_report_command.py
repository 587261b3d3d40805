"""`simbridge report RUN`: both pages from what the run recorded."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import fields

import pytest

from simbridge.planning.plan import Plan
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import Sample
from tests.report.pages import read_page

pytestmark = pytest.mark.shares_setup

# What a page says of the run itself, not of when and how it was written.
SECTIONS = ("headline", "budget", "time", "contour", "joint-contributions", "joints", "motion")


@pytest.fixture
def run(line_run, tmp_path):
    """A copy of a run, without its page."""
    copy = shutil.copytree(line_run, tmp_path / "run")
    (copy / "report.html").unlink()
    return copy


@pytest.fixture(scope="module")
def judged(line, run_without_page, tmp_path_factory):
    """A run with a tolerance that it missed."""
    out = tmp_path_factory.mktemp("run") / "judged"
    assert run_without_page(line, "--tolerance", "1e-4", "5", "--out", out) == 1
    return out


def kill(run):
    """Leave a run as kill -9 leaves it."""
    (run / "summary.json").unlink()
    log = (run / "log.mcap").read_bytes()
    (run / "log.mcap").write_bytes(log[: len(log) * 2 // 3])


def test_pages_have_the_numbers_of_the_run(cli, run, line_run):
    answer = cli("report", run)

    assert answer.status == 0
    assert answer.out.split() == [str(run / "report.html"), str(run / "replay.html")]
    assert answer.err == ""

    new_page = read_page(run)
    first_page = read_page(line_run)
    for section in SECTIONS:
        new_text = new_page.text(section).removesuffix("Replay in 3D").rstrip()
        assert new_text == first_page.text(section)
    assert new_page.has("replay")
    assert not first_page.has("replay")


def test_log_that_ends_early_is_no_success(cli, short_pages, line_run, tmp_path):
    # The first half of the log, closed.
    directory = RunDirectory(shutil.copytree(line_run, tmp_path / "run"))
    directory.summary_file.unlink()
    log = directory.log()
    period = directory.plan(Plan.from_arrays).period
    with LogWriter(directory.log_file, joint_names=log.joint_names, period=period) as writer:
        for k in range(len(log.stamp) // 2):
            values = {field.name: getattr(log, field.name)[k] for field in fields(Sample)}
            writer.write(Sample(**values))

    answer = cli("report", directory.path)

    assert answer.status == 2
    assert "the log ends before the plan does" in answer.message


def test_tolerance_is_the_recorded_one(cli, without_drawings, judged, tmp_path):
    run = shutil.copytree(judged, tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").unlink()

    answer = cli("report", run, "--json")

    assert answer.status == 1
    assert "The run exceeds the tolerance" in answer.message
    assert "exceeds 0.0001 mm" in answer.message

    printed = json.loads(answer.out)
    tolerance = {"position_m": 1e-7, "rotation_rad": math.radians(5.0)}
    assert printed["passed"] is False
    assert printed["tolerance"] == pytest.approx(tolerance)
    assert printed == {
        "run": str(run),
        "report": str(run / "report.html"),
        "replay": str(run / "replay.html"),
        **summary,
        # Only summary.json had it.
        "ended_by": None,
    }
    assert read_page(run).text("judgement").startswith("Failed")


def test_killed_run_is_no_success(cli, without_drawings, judged, tmp_path):
    run = shutil.copytree(judged, tmp_path / "run")
    kill(run)

    answer = cli("report", run, "--json")

    reason = "the log was not closed: the run was killed, or is still in progress."
    printed = json.loads(answer.out)
    assert answer.status == 2
    assert printed["passed"] is False
    assert printed["outcome"] != "completed"
    assert answer.message == f"The run did not complete: {reason}"
    assert "the log was not closed" in read_page(run).text("failure")


def test_log_alone_is_enough(cli, without_drawings, run):
    (run / "summary.json").unlink()
    with (run / "settings.toml").open("a") as settings:
        settings.write("\n[tolerance]\nposition_m = 0.005\nrotation_rad = 0.1\n")

    answer = cli("report", run, "--json")

    page = read_page(run)
    assert answer.status == 0
    assert answer.err == ""
    assert json.loads(answer.out)["passed"] is True
    assert page.text("judgement").startswith("Passed")
    assert "mm RMS" in page.text("headline")
    assert not page.has("failure")


def test_directory_without_a_run_is_refused(cli, tmp_path):
    answer = cli("report", tmp_path)

    assert answer.status == 2
    assert "settings.toml" in answer.message
