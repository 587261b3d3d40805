"""Evaluates a motion: one result for each solver from its passes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.experiments.suite import measures
from simbridge.experiments.suite.following import Following
from simbridge.experiments.suite.results import CallTimes, MotionResult
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot import Robot


def evaluate_motion(
    robot: Robot, motion: SuiteMotion, followings: Sequence[Following], baseline: str
) -> list[MotionResult]:
    """Return the results of a motion, one for each solver.

    Args:
        robot: The arm.
        motion: The motion.
        followings: Passes of each solver through the motion.
        baseline: Name of the solver with which durations are compared.
    """
    by_name = {following.entrant.name: following for following in followings}
    baseline_following = by_name.get(baseline)
    return [evaluate(robot, motion, following, baseline_following) for following in followings]


def evaluate(
    robot: Robot, motion: SuiteMotion, following: Following, baseline: Following | None
) -> MotionResult:
    """Return the result of one solver along a motion.

    Args:
        robot: The arm.
        motion: The motion.
        following: Passes of the solver through the motion.
        baseline: Passes of the solver with which durations are compared; None if it takes no part.
    """
    # Errors are measured along the first pass, as far as it came.
    first_pass = following.passes[0]
    steps_done = len(first_pass.durations)
    targets = motion.targets[:steps_done]
    ideal = targets if motion.reference is None else motion.reference[:steps_done]

    # `joints` has a row for each target, without the start.
    joints = first_pass.joints[1:]
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
        steps_done=steps_done,
        too_slow=following.is_too_slow,
        faults=first_pass.faults.faults,
        error=measures.measure_errors(robot, targets, joints),
        reference_error=reference_error,
        lag_s=measures.measure_lag(robot.period, ideal, tool),
        shares=measures.limit_shares(robot, first_pass.joints),
        beyond_limits_rad=measures.excess_over_position_limits(robot, joints),
        flips=measures.count_flips(robot, targets, first_pass.joints),
        chatter=measures.measure_chatter(robot, first_pass.joints, motion.in_reach[:steps_done]),
        drift_rad=drift,
        times=summarize_times(following, baseline),
        worst=measures.cut_worst_moment(robot.period, targets, tool),
    )


def summarize_times(following: Following, baseline: Following | None) -> CallTimes:
    """Return the durations of a solver's calls, and their ratio to those of the baseline solver.

    Args:
        following: Passes of the solver through a motion.
        baseline: Passes of the baseline solver; None if it takes no part.
    """
    durations = np.concatenate([item.durations for item in following.passes])

    # Compare pass by pass: other work of the computer slows both solvers alike in a pass.
    ratios = []
    if baseline is not None:
        for own_pass, baseline_pass in zip(following.passes, baseline.passes, strict=False):
            ratios.append(np.median(own_pass.durations) / np.median(baseline_pass.durations))

    return CallTimes(
        median_s=float(np.median(durations)),
        p99_s=float(np.quantile(durations, 0.99)),
        ratio=float(np.median(ratios)) if ratios else None,
        calls=len(durations),
        passes=sum(item.is_complete for item in following.passes),
    )
