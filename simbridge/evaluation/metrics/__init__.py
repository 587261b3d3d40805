"""Metrics of a run: pure functions of arrays of stamps, poses and joint values."""

from simbridge.evaluation.metrics.pose_errors import (
    absolute_pose_error,
    associate,
    relative_pose_error,
    relative_pose_error_over,
)

# The metrics of any two recordings, as docs/metrics.md names them.
__all__ = ["absolute_pose_error", "associate", "relative_pose_error", "relative_pose_error_over"]
