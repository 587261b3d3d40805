"""report.html: one page that says how well a run was tracked, and shows why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simbridge.evaluation import Evaluation

__all__ = ["write_report"]


def write_report(evaluation: Evaluation, summary: dict[str, Any]) -> None:
    """Write report.html into the run's directory.

    Args:
        evaluation: The run, read back from its directory.
        summary: What summary.json holds (`Evaluation.summary`, with `tolerance` and `passed`).

    Raises:
        OutputDirectoryError: The page cannot be written.
    """
    # Drawing takes half a second to import, and a run that only plans never draws.
    from simbridge.report.page import report_page

    evaluation.directory.write_report(report_page(evaluation, summary))
