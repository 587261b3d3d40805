"""`simbridge report RUN`: both pages from what the run recorded."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from simbridge.cli.command_line import main
from simbridge.planning.plan import Plan
from simbridge.recording.log_writer import LogWriter
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import Sample
from tests.report.conftest import Page

pytestmark = pytest.mark.shares_setup


@pytest.fixture
def run(line_run: Path, tmp_path: Path) -> Path:
    """A copy of a run, without its page."""
    copy = shutil.copytree(line_run, tmp_path / "run")
    (copy / "report.html").unlink()
    return copy


def test_both_pages_are_written_with_the_numbers_of_the_run_and_nothing_else_is_printed(
    cli: Any, run: Path, line_run: Path
) -> None:
    answer = cli("report", run)
    assert answer.status == 0
    assert answer.out.split() == [str(run / "report.html"), str(run / "replay.html")]
    assert answer.err == ""
    written, first = (
        Page((path / "report.html").read_text(encoding="utf-8")) for path in (run, line_run)
    )
    for section in (
        "headline",
        "budget",
        "time",
        "contour",
        "joint-contributions",
        "joints",
        "motion",
    ):
        assert written.text(section) == first.text(section)
    assert written.has("replay") and not first.has("replay")


def killed(run: Path) -> None:
    """As kill -9 leaves it."""
    (run / "summary.json").unlink()
    log = (run / "log.mcap").read_bytes()
    (run / "log.mcap").write_bytes(log[: len(log) * 2 // 3])


def test_a_run_that_ended_early_and_has_no_summary_is_no_success(
    cli: Any, line_run: Path, tmp_path: Path
) -> None:
    directory = RunDirectory(shutil.copytree(line_run, tmp_path / "run"))
    directory.summary_file.unlink()
    log = directory.log()
    period = directory.plan(Plan.from_arrays).period
    with LogWriter(directory.log_file, joint_names=log.joint_names, period=period) as cut:
        for k in range(len(log.stamp) // 2):
            cut.write(
                Sample(**{field.name: getattr(log, field.name)[k] for field in fields(Sample)})
            )
    answer = cli("report", directory.path)
    assert answer.status == 2 and "the log ends before the plan does" in answer.message


@pytest.fixture(scope="module")
def judged(line: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a tolerance that it missed."""
    out = tmp_path_factory.mktemp("run") / "judged"
    assert main(["run", str(line), "--tolerance", "1e-4", "5", "--out", str(out), "--json"]) == 1
    return out


def test_the_tolerance_is_judged_from_what_was_written_before_the_run_began(
    cli: Any, judged: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(judged, tmp_path / "run")
    written = json.loads((run / "summary.json").read_text())
    (run / "summary.json").unlink()
    answer = cli("report", run, "--json")
    printed = json.loads(answer.out)
    assert (
        answer.status == 1
        and "The run is beyond the tolerance" in answer.message
        and "exceeds 0.0001 mm" in answer.message
    )
    assert printed["passed"] is False
    assert printed["tolerance"] == pytest.approx(
        {"position_m": 1e-7, "rotation_rad": math.radians(5.0)}
    )
    assert printed == {
        "run": str(run),
        "report": str(run / "report.html"),
        "replay": str(run / "replay.html"),
        **written,
        # Only summary.json had it.
        "ended_by": None,
    }
    assert (
        Page((run / "report.html").read_text(encoding="utf-8"))
        .text("judgement")
        .startswith("Failed")
    )


def test_a_killed_run_has_pages_that_say_so_is_no_success_and_has_failed_its_tolerance(
    cli: Any, judged: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(judged, tmp_path / "run")
    killed(run)
    answer = cli("report", run, "--json")
    printed = json.loads(answer.out)
    assert answer.status == 2 and printed["passed"] is False and printed["outcome"] != "completed"
    assert (
        answer.message
        == "The run did not complete: the log was not closed: the run was killed, or still goes on."
    )
    page = Page((run / "report.html").read_text(encoding="utf-8"))
    assert "the log was not closed" in page.text("failure")


def test_the_log_alone_is_enough_and_a_kept_tolerance_shows_on_the_page_and_in_the_status(
    cli: Any, run: Path
) -> None:
    (run / "summary.json").unlink()
    with (run / "settings.toml").open("a") as settings:
        settings.write("\n[tolerance]\nposition_m = 0.005\nrotation_rad = 0.1\n")
    answer = cli("report", run, "--json")
    assert answer.status == 0 and answer.err == "" and json.loads(answer.out)["passed"] is True
    page = Page((run / "report.html").read_text(encoding="utf-8"))
    assert page.text("judgement").startswith("Passed")
    assert "mm RMS" in page.text("headline") and not page.has("failure")


def test_a_directory_without_a_run_is_refused(cli: Any, tmp_path: Path) -> None:
    answer = cli("report", tmp_path)
    assert answer.status == 2
    assert "settings.toml" in answer.message
