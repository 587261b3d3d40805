"""report.html: one page that says how well a run was tracked, and shows why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simbridge.evaluation.evaluation import Evaluation

__all__ = ["write_report"]


def write_report(evaluation: Evaluation, summary: Mapping[str, Any], *, replay: str | None = None) -> None:
    """Write report.html into the run's directory.

    Args:
        evaluation: The run, read back from its directory.
        summary: What summary.json holds (`Evaluation.summary`, with `tolerance` and `passed`).
        replay: The file name of the replay in the same directory, if there is one.

    Raises:
        OutputError: The page cannot be written.
    """
    from simbridge.report.page import report_page  # matplotlib takes 0.5 s, and a run that is refused draws nothing

    evaluation.directory.write_report(report_page(evaluation, summary, replay=replay))
