"""The report page."""

from __future__ import annotations

from typing import Any

from simbridge.evaluation import Evaluation


def write_report(evaluation: Evaluation, summary: dict[str, Any]) -> None:
    """Write report.html."""
