"""The results of a motion: what the passes of every solver amount to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.experiments.suite import measures
from simbridge.experiments.suite.following import Following
from simbridge.experiments.suite.motion import Motion
from simbridge.experiments.suite.results import CallTimes, MotionResult
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot import Robot


def evaluate_motion(
    robot: Robot, motion: Motion, followings: Sequence[Following], baseline: str
) -> list[MotionResult]:
    """Return the results of a motion, one for each solver.

    Args:
        robot: The arm.
        motion: The motion.
        followings: What the solvers made of it.
        baseline: Name of the solver to which durations are compared.
    """
    reference = next(
        (following for following in followings if following.entrant.name == baseline), None
    )
    return [evaluate(robot, motion, following, reference) for following in followings]


def evaluate(
    robot: Robot, motion: Motion, following: Following, baseline: Following | None
) -> MotionResult:
    """Return the result of one solver along a motion.

    Args:
        robot: The arm.
        motion: The motion.
        following: What the solver made of it.
        baseline: The same of the solver to which durations are compared; None if it takes no part.
    """
    first = following.passes[0]
    done = len(first.durations)
    targets = motion.targets[:done]
    ideal = targets if motion.reference is None else motion.reference[:done]

    joints = first.joints[1:]
    tool = tool_path(robot, joints)

    reference_error = None
    if motion.reference is not None:
        reference_error = measures.measure_errors(robot, ideal, joints)
    drift = None
    if motion.loops > 1:
        samples_per_lap = (len(motion.targets) - 1) // motion.loops
        drift = measures.measure_drift(joints, samples_per_lap)

    return MotionResult(
        motion=motion.name,
        solver=following.entrant.name,
        steps=len(motion.targets),
        steps_done=done,
        too_slow=following.is_too_slow,
        faults=first.faults.faults,
        error=measures.measure_errors(robot, targets, joints),
        reference_error=reference_error,
        lag_s=measures.measure_lag(robot.period, ideal, tool),
        shares=measures.limit_shares(robot, first.joints),
        beyond_limits_rad=measures.excess_over_position_limits(robot, joints),
        flips=measures.count_flips(robot, targets, first.joints),
        chatter=measures.measure_chatter(robot, first.joints, motion.in_reach[:done]),
        drift_rad=drift,
        times=summarize_times(following, baseline),
        worst=measures.cut_worst_moment(robot.period, targets, tool),
    )


def summarize_times(following: Following, baseline: Following | None) -> CallTimes:
    """Return the durations of a solver's calls, and their ratio to those of the baseline solver."""
    durations = np.concatenate([finished.durations for finished in following.passes])

    ratios = []
    if baseline is not None:
        for finished, reference in zip(following.passes, baseline.passes, strict=False):
            ratios.append(np.median(finished.durations) / np.median(reference.durations))

    return CallTimes(
        median_s=float(np.median(durations)),
        p99_s=float(np.quantile(durations, 0.99)),
        ratio=float(np.median(ratios)) if ratios else None,
        calls=len(durations),
        passes=sum(finished.is_complete for finished in following.passes),
    )
