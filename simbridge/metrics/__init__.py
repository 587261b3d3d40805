"""Numbers that say how well a motion was tracked: pure functions over arrays of stamps and poses."""

from simbridge.metrics.budget import ErrorBudget, PoseError, error_budget, statistics
from simbridge.metrics.delays import delay, delay_compensated, sampled
from simbridge.metrics.summary import tracking_summary

__all__ = [
    "ErrorBudget",
    "PoseError",
    "delay",
    "delay_compensated",
    "error_budget",
    "sampled",
    "statistics",
    "tracking_summary",
]
