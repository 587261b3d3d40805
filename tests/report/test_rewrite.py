"""`simbridge report RUN`: both pages from what the run recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import Page


@pytest.fixture
def run(line_run: Path, tmp_path: Path) -> Path:
    """A copy of a run, without its page."""
    copy = shutil.copytree(line_run, tmp_path / "run")
    (copy / "report.html").unlink()
    return copy


def test_both_pages_are_written_and_named_and_nothing_else_is_said(cli: Any, run: Path) -> None:
    answer = cli("report", run)
    assert answer.status == 0
    assert answer.out.split() == [str(run / "report.html"), str(run / "replay.html")]
    assert answer.err == ""


def test_the_numbers_are_those_of_the_run(cli: Any, run: Path, line_run: Path) -> None:
    cli("report", run)
    written, first = (Page((path / "report.html").read_text(encoding="utf-8")) for path in (run, line_run))
    for section in ("headline", "budget", "time", "along", "culprits", "joints", "motion"):
        assert written.text(section) == first.text(section)
    assert written.has("replay") and not first.has("replay")


def test_the_log_alone_is_enough(cli: Any, run: Path) -> None:
    (run / "summary.json").unlink()
    assert cli("report", run).status == 0
    page = Page((run / "report.html").read_text(encoding="utf-8"))
    assert "mm RMS" in page.text("headline") and not page.has("failure")


def test_a_killed_run_has_pages_that_say_so(cli: Any, run: Path) -> None:
    (run / "summary.json").unlink()
    log = (run / "log.mcap").read_bytes()
    (run / "log.mcap").write_bytes(log[: len(log) * 2 // 3])
    assert cli("report", run).status == 0
    page = Page((run / "report.html").read_text(encoding="utf-8"))
    assert "the log was not closed" in page.text("failure")


def test_the_tolerance_stays_judged(cli: Any, run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    summary |= {"tolerance": {"position_m": 0.005, "rotation_rad": 0.01}, "passed": True}
    (run / "summary.json").write_text(json.dumps(summary))
    cli("report", run)
    assert Page((run / "report.html").read_text(encoding="utf-8")).text("judgement").startswith("Passed")


def test_what_is_no_run_is_refused(cli: Any, tmp_path: Path) -> None:
    answer = cli("report", tmp_path)
    assert answer.status == 2
    assert "settings.toml" in answer.message
