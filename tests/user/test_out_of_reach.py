"""A goal out of a planar arm's reach, the jitter of tutorials: every solver rests, and reports the
remaining error.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.ik.constrained import Constrained
from simbridge.ik.damped_least_squares import DampedLeastSquares
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from tests.properties import few_examples

ARMS = {name: load_robot(name) for name in ("planar2r", "planar3r")}
CASES = [
    (arm, name) for arm in ARMS for name in SOLVERS if (arm, name) != ("planar3r", "closed-form")
]
# Forward dynamics with other clamps and gains; the released scheme is left out, for it has no step
# clamp to rest by.
CASES += [("planar2r", preset) for preset in ("smooth", "near-singular", "one-shot")]


# A pull towards a posture, which a stretched arm would have to bend for.
PULLED = {
    "stiffness": lambda robot: DampedLeastSquares(robot, stiffness=(0.1,)),
    "stiffness as printed": lambda robot: DampedLeastSquares(
        robot, stiffness=(0.1,), bias_term="printed"
    ),
    "constrained, strong pull": lambda robot: Constrained(robot, pull=0.5),
}


@functools.cache
def made(arm, name):
    robot = ARMS[arm]
    if name in PULLED:
        return PULLED[name](robot)
    return SOLVERS[name]().build(robot) if name in SOLVERS else ForwardDynamics.preset(robot, name)


def goal(distance, bearing, height=0.0):
    return np.array(
        [distance * math.cos(bearing), distance * math.sin(bearing), height, 0.0, 0.0, 0.0, 1.0]
    )


def assert_it_rests(solver, target, start, missed):
    """Nothing moves after so many steps towards a held target, missed by what it must be."""
    joints = solver.track(np.tile(target, (1000, 1)), start)
    off = np.linalg.norm(tool_path(solver.robot, joints)[:, :3] - target[:3], axis=1)
    # What never rises cannot cycle.
    assert np.diff(off).max() < 1e-12
    assert np.abs(np.diff(joints[-20:], axis=0)).max() < 1e-5
    assert off[-1] == pytest.approx(missed, abs=1e-6)
    solver.reset(joints[-1])
    solver.step(target)
    assert solver.last.residual[0] == pytest.approx(missed, abs=1e-6)


@pytest.mark.parametrize(("arm", "name"), CASES)
@few_examples(2, soak=60)
@given(far=st.floats(1.05, 10.0), bearing=st.floats(-3.1, 3.1), seed=st.integers(0, 2**32 - 1))
def test_an_arm_stretches_towards_a_far_goal(arm, name, far, bearing, seed):
    solver = made(arm, name)
    reach = ARMS[arm].arm_length

    start = np.random.default_rng(seed).uniform(-3.0, 3.0, ARMS[arm].n)

    assert_it_rests(solver, goal(far * reach, bearing), start, (far - 1.0) * reach)


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        *CASES,
        ("planar3r", "stiffness"),
        # Variants of stiffness and of constrained.
        pytest.param("planar3r", "stiffness as printed", marks=pytest.mark.soak),
        pytest.param("planar3r", "constrained, strong pull", marks=pytest.mark.soak),
    ],
)
@few_examples(2)
@given(
    beyond=st.floats(-6.0, -4.0),
    side=st.sampled_from([1, 1, -1]),
    bearing=st.floats(-3.1, 3.1),
    seed=st.integers(0, 99),
)
def test_at_the_workspace_boundary_the_arm_rests_too(arm, name, beyond, side, bearing, seed):
    """There micrometres decide whether it attains the goal, and tiny changes how far it bends."""
    solver = made(arm, name)
    robot = ARMS[arm]
    off = side * 10.0**beyond
    target = goal(robot.arm_length + off, bearing)
    start = np.random.default_rng(seed).uniform(-3.0, 3.0, robot.n)
    joints = solver.track(np.tile(target, (3000, 1)), start)

    assert np.abs(np.diff(joints[-200:], axis=0)).max() < 3e-5

    remaining = np.linalg.norm(tool_path(robot, joints[-1:])[0, :3] - target[:3])
    # The transpose creeps: the nearer to stretched, the less a joint's turn does for the distance.
    assert remaining == pytest.approx(
        max(off, 0.0), abs=5e-3 if name == "jacobian-transpose" else 1e-5
    )


@pytest.mark.parametrize("name", ["constrained", *PULLED])
@settings(max_examples=6)
@given(clamp=st.floats(0.01, 0.3), seed=st.integers(0, 2**32 - 1))
def test_no_joint_moves_further_than_the_clamp(name, clamp, seed):
    """The largest angle change of 002 is one for step and null space together."""
    robot = ARMS["planar3r"]
    solver = made("planar3r", name)
    given_clamp = {**solver.parameters, "iterations": 1, "step_clamp": clamp}
    solver = type(solver)(robot, **given_clamp)
    rng = np.random.default_rng(seed)
    targets = tool_path(robot, np.cumsum(rng.uniform(-0.3, 0.3, (40, 3)), axis=0))
    joints = solver.track(targets, robot.home)
    moved = np.abs(np.diff(np.vstack([robot.home, joints]), axis=0))

    assert clamp * 0.5 < moved.max() <= clamp * (1.0 + 1e-12)


@pytest.mark.parametrize(
    "name", [name for arm, name in CASES if arm == "planar2r" and name != "jacobian-transpose"]
)
@few_examples(2, soak=60)
@given(distance=st.floats(0.01, 0.19), bearing=st.floats(-3.1, 3.1), seed=st.integers(0, 2**32 - 1))
def test_an_arm_folds_towards_a_near_goal(name, distance, bearing, seed):
    """Links of 0.7 and 0.5 m leave a hole of 0.2 m."""
    start = np.random.default_rng(seed).uniform(-3.0, 3.0, 2)

    assert_it_rests(made("planar2r", name), goal(distance, bearing), start, 0.2 - distance)


@pytest.mark.parametrize(("arm", "name"), CASES)
def test_a_goal_above_the_plane_is_missed(arm, name):
    start = np.array([0.4, 1.0, -0.3])[: ARMS[arm].n]

    assert_it_rests(made(arm, name), goal(0.6 * ARMS[arm].arm_length, 0.8, height=0.3), start, 0.3)


def out_and_back(robot, sideways):
    """Goals that leave the reach straight ahead, and come back a little aside (rad); the last is
    held.
    """
    far = np.concatenate(
        [np.linspace(0.9, 1.4, 300), np.linspace(1.4, 0.9, 300), np.full(300, 0.9)]
    )
    bearing = 0.5 + np.concatenate(
        [np.zeros(300), np.linspace(0.0, sideways, 300), np.full(300, sideways)]
    )
    return np.array([goal(f * robot.arm_length, b) for f, b in zip(far, bearing, strict=True)])


@pytest.mark.parametrize(("arm", "name"), CASES)
def test_a_goal_that_returns_is_followed_again(arm, name):
    solver = made(arm, name)
    robot = ARMS[arm]
    poses = out_and_back(robot, 0.05)
    joints = solver.track(poses, solver.solve(poses[0]).q)
    off = np.linalg.norm(tool_path(robot, joints)[:, :3] - poses[:, :3], axis=1)

    assert off[299] == pytest.approx(0.4 * robot.arm_length, abs=1e-4)
    assert off[-1] < 1e-6
    assert np.abs(np.diff(joints, axis=0)).max() < 0.25


@pytest.mark.parametrize(("arm", "name"), CASES)
def test_a_stretched_arm_follows_a_returning_goal(arm, name):
    """There a pull along the arm turns no joint: steps may stay for good, restarts do not."""
    solver = made(arm, name)
    robot = ARMS[arm]
    poses = out_and_back(robot, 0.0)
    stretched = solver.track(poses, solver.solve(poses[0]).q)[-1]
    solver.reset(stretched)
    tool = tool_path(robot, solver.step(poses[-1])[None])[0]

    assert solver.last.residual[0] == pytest.approx(
        np.linalg.norm(poses[-1, :3] - tool[:3]), abs=1e-12
    )

    solution = solver.solve(poses[-1], stretched)
    assert solution.distance < 1e-6


@pytest.mark.parametrize(("arm", "name"), CASES)
def test_solve_reports_the_remaining_error(arm, name):
    robot = ARMS[arm]
    solution = made(arm, name).solve(goal(1.5 * robot.arm_length, -2.0))

    assert not solution.converged
    # Never nearer than the arm can be.
    assert 0.5 * robot.arm_length - 1e-12 < solution.distance < 0.5 * robot.arm_length + 1e-3
