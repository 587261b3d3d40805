"""report.html: one page that says how well a run was tracked, and shows why."""

from __future__ import annotations

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.summary import Summary


def write_report(evaluation: Evaluation, summary: Summary, *, replay: str | None = None) -> None:
    """Write report.html into the run's directory.

    Args:
        evaluation: The run.
        summary: The run's numbers.
        replay: The file name of the replay in the same directory, if there is one.

    Raises:
        OutputError: The page cannot be written.
    """
    # Matplotlib takes 0.5 s, and a run that is refused draws nothing.
    from simbridge.report.run_page import report_page  # noqa: PLC0415

    evaluation.directory.write_report(report_page(evaluation, summary, replay=replay))
