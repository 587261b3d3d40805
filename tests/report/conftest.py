"""Made-up runs, and their reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import summarize
from simbridge.report import write_report
from tests.report.made_up_run import MadeUp
from tests.report.pages import Page, leave_out_drawings, read_page

BUSY = {
    "target_offset": 1e-3,
    "solution_offset": 2e-3,
    "setpoint_offset": -5e-4,
    "plant_offset": 4e-3,
    "plant_delay": 0.02,
}

Measured = Callable[..., tuple[Evaluation, dict[str, Any]]]
Report = Callable[..., tuple[Page, dict[str, Any]]]


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Makes up a run, and returns it with its summary.

    That is much faster than a page, which takes ten drawings.
    """
    directory = tmp_path_factory.mktemp("run")

    def make(**fields: Any) -> tuple[Evaluation, dict[str, Any]]:
        run = MadeUp(**fields)
        evaluation = run.evaluation(directory)
        summary = {**summarize(evaluation, run.outcome), **run.summary}
        summary["tolerance"] = run.tolerance
        summary["passed"] = None
        if run.tolerance is not None:
            error = summary["tracking_error"]
            summary["passed"] = all(
                error[part]["rms"] <= limit for part, limit in run.tolerance.items()
            )
        return evaluation, summary

    return make


@pytest.fixture(scope="session")
def report(measured: Measured) -> Report:
    """Writes the report of a made-up run; returns the page and its summary."""

    def write(**fields: Any) -> tuple[Page, dict[str, Any]]:
        evaluation, summary = measured(**fields)
        write_report(evaluation, summary)
        return read_page(evaluation.directory.path), summary

    return write


@pytest.fixture(scope="session")
def words(report: Report) -> Report:
    """As `report`, without the drawings."""

    def write(**fields: Any) -> tuple[Page, dict[str, Any]]:
        with pytest.MonkeyPatch.context() as patch:
            leave_out_drawings(patch)
            return report(**fields)

    return write


@pytest.fixture(scope="session")
def busy(report: Report) -> tuple[Page, dict[str, Any]]:
    """The page and the summary of a run with every part of the error budget, and a delay."""
    return report(**BUSY)
