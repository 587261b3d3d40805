"""Numbers that say how well a motion was tracked: pure functions over arrays of stamps and poses."""

from simbridge.evaluation.metrics.alignment import Alignment, align, rigid_transform
from simbridge.evaluation.metrics.delays import delay, delay_compensated, sampled
from simbridge.evaluation.metrics.dexterity import near_limits, near_singularity
from simbridge.evaluation.metrics.effort import joint_effort
from simbridge.evaluation.metrics.path import ContourError, contour_error
from simbridge.evaluation.metrics.pose_errors import (
    ErrorBudget,
    PoseError,
    TrajectoryError,
    absolute_pose_error,
    associate,
    error_budget,
    relative_pose_error,
    relative_pose_error_over,
    statistics,
)
from simbridge.evaluation.metrics.smoothness import ldlj, sparc
from simbridge.evaluation.metrics.summary import path_summary, pose_error_summary, smoothness_summary, tracking_summary

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
