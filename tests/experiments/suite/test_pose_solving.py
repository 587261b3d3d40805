"""Single poses: every solver attempts all of them, and begins again where it is stuck."""

from __future__ import annotations

import time

import numpy as np
import pytest

from simbridge.experiments.suite.entrants import Entrant
from simbridge.experiments.suite.pose_solving import UNMOVED_CALLS, solve_in_turn
from simbridge.experiments.suite.results import Budget
from simbridge.experiments.suite.suite_motion import PoseSet
from simbridge.ik.callable_solver import CallableSolver
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path

ROBOT = load_robot("ur10")
SOLUTION = ROBOT.home + 0.1
POSES = 3
BUDGET = Budget(
    motion_time_s=1e-3,
    passes=1,
    pose_time_s=60.0,
    pose_calls=100,
    pose_motion_s=0.8,
    tolerance_m=1e-3,
    tolerance_rad=1e-3,
)


def solve(step, *, reachable=True):
    """The result of a step function on three poses of which all have the same solution."""
    solver = CallableSolver(ROBOT, step)
    entrant = Entrant("step", "custom", solver, "none", {})
    pose_set = PoseSet(
        name="poses",
        description="The same pose, three times.",
        targets=tool_path(ROBOT, np.tile(SOLUTION, (POSES, 1))),
        starts=np.tile(ROBOT.home, (POSES, 1)),
        reachable=reachable,
    )
    [result] = solve_in_turn(ROBOT, pose_set, [entrant], BUDGET, lambda: None)
    return result


def test_a_slow_solver_attempts_every_pose():
    attempted = 0

    def step(q, target):
        nonlocal attempted
        attempted += 1
        time.sleep(2.0 * BUDGET.motion_time_s)
        return SOLUTION

    result = solve(step)

    assert attempted == result.poses == POSES
    assert result.solved == 1.0


def test_a_solver_that_stays_begins_again():
    def step(q, target):
        return q if np.array_equal(q, ROBOT.home) else SOLUTION

    result = solve(step)

    assert result.solved == 1.0
    assert result.solved_at_once == 0.0
    assert result.median_calls == UNMOVED_CALLS + 1


def test_a_solver_may_begin_late():
    calls = 0

    def step(q, target):
        nonlocal calls
        calls += 1
        return SOLUTION if calls % 2 == 0 else q

    result = solve(step)

    assert result.solved_at_once == 1.0
    assert result.median_calls == 2


def test_a_solver_that_wanders_has_its_calls():
    calls = 0

    def step(q, target):
        nonlocal calls
        calls += 1
        return q - 0.01

    result = solve(step)

    assert calls == POSES * BUDGET.pose_calls
    assert result.solved == 0.0


@pytest.mark.parametrize("reachable", [True, False])
def test_a_pose_out_of_reach_is_attempted_once(reachable):
    starts = set()

    def step(q, target):
        starts.add(tuple(q))
        return q

    solve(step, reachable=reachable)

    assert (len(starts) == 1) != reachable
