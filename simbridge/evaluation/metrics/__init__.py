"""Metrics of a run: pure functions of arrays of stamps, poses and joint values."""

from simbridge.evaluation.metrics.alignment import Alignment, align, rigid_transform
from simbridge.evaluation.metrics.delays import delay, delay_compensated, sampled
from simbridge.evaluation.metrics.joints import joint_effort, near_limits, near_singularity
from simbridge.evaluation.metrics.path import ContourError, contour_error, path_summary
from simbridge.evaluation.metrics.pose_errors import (
    PoseError,
    TrajectoryError,
    absolute_pose_error,
    associate,
    pose_error_summary,
    relative_pose_error,
    relative_pose_error_over,
    statistics,
)
from simbridge.evaluation.metrics.smoothness import ldlj, smoothness_summary, sparc
from simbridge.evaluation.metrics.tracking import ErrorBudget, error_budget, tracking_summary

__all__ = [
    "Alignment",
    "ContourError",
    "ErrorBudget",
    "PoseError",
    "TrajectoryError",
    "absolute_pose_error",
    "align",
    "associate",
    "contour_error",
    "delay",
    "delay_compensated",
    "error_budget",
    "joint_effort",
    "ldlj",
    "near_limits",
    "near_singularity",
    "path_summary",
    "pose_error_summary",
    "relative_pose_error",
    "relative_pose_error_over",
    "rigid_transform",
    "sampled",
    "smoothness_summary",
    "sparc",
    "statistics",
    "tracking_summary",
]
