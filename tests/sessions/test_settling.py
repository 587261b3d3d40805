"""Where a target stays, in reach or not, the arm comes to rest with every iterative solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.sessions.inputs import Input
from simbridge.sessions.spaces import POSES
from tests.properties import few_examples, variants
from tests.sessions.trial import engage_motion, pose_of, repeat_input, run, shift_pose

pytestmark = pytest.mark.slow

ROBOT = load_robot("ur10")
HOME = pose_of(ROBOT.home, ROBOT)
ITERATIVE = [name for name in SOLVERS if name != "closed-form"]
# They step in different ways: the others are damped forms of the pseudoinverse.
DIFFERENT = ("constrained", "forward-dynamics", "jacobian-transpose", "pseudoinverse")
# Below this a setpoint rests, rad/s.
REST = 1e-3


def draw_target(rng):
    """Return a random pose (7,).

    It is in reach, barely in reach, beyond it, at a singular posture, below the floor, or has any
    orientation.
    """
    q = ROBOT.home + rng.uniform(-1.0, 1.0, 6) * np.array([1.5, 0.8, 0.8, 1.5, 1.5, 2.5])
    kind = rng.integers(6)
    if kind in (0, 1):
        q[2 if kind == 0 else 4] = rng.normal() * 10.0 ** -rng.uniform(0.0, 6.0)
    pose = tool_path(ROBOT, q[None])[0]
    if kind == 2:
        pose[:3] *= rng.uniform(1.3, 3.0) / np.linalg.norm(pose[:3])
    if kind == 3:
        pose[2] -= rng.uniform(0.2, 1.5)
    if kind == 4:
        pose[3:] = rng.normal(size=4)
        pose[3:] /= np.linalg.norm(pose[3:])
    return pose


def speeds(name, goal):
    """Yield time, s, and speed, rad/s, of each setpoint of a motion to a target.

    The target is given ten times a second.
    """
    motion = engage_motion(ROBOT, name, max_jump=(9.0, 9.0))
    before = ROBOT.home
    for k in itertools.count():
        now = k * ROBOT.period
        setpoint = motion.step(now, 1.0, Input("pose", goal, int(10.0 * now) + 1, 1)).setpoint
        yield now, float(np.abs(setpoint - before).max()) / ROBOT.period
        before = setpoint


def find_fastest(motion, begin, end):
    """Return the fastest setpoint's speed, rad/s, between two times of a motion, s."""
    until_end = itertools.takewhile(lambda step: step[0] < end, motion)
    return max(speed for now, speed in until_end if now >= begin)


def rests_or_approaches(name, goal):
    """Return whether an arm rests after 5 s, or is much slower 2 s later."""
    motion = speeds(name, goal)
    speed = find_fastest(motion, 5.0, 5.3)
    return speed < REST or find_fastest(motion, 7.0, 7.3) < 0.1 * speed


@pytest.mark.parametrize("name", variants(ITERATIVE, *DIFFERENT))
@given(st.integers(0, 2**32 - 1))
# A thousand targets in all: before, one of them in a thousand chattered.
@few_examples(1, soak=150)
def test_an_old_target_moves_nothing_unless_approached(name, seed):
    assert rests_or_approaches(name, draw_target(np.random.default_rng(seed)))


def test_a_slow_approach_may_go_on():
    # The Jacobian transpose halves what is left of this target, in reach, each 0.35 s: 0.1 mm after
    # five seconds.
    assert rests_or_approaches("jacobian-transpose", draw_target(np.random.default_rng(1062)))


# The Jacobian transpose crept or wandered about these for more than five seconds.
@pytest.mark.parametrize("q", [
    [0.3, -1.0, 1e-4, -1.4, -1.2, 0.5],
    pytest.param([0.0, -1.3, 1.9, -2.2, 1e-3, 0.0], marks=pytest.mark.soak),
])  # fmt: skip
def test_a_creeping_solver_is_stopped(q):
    assert find_fastest(speeds("jacobian-transpose", pose_of(q, ROBOT)), 5.0, 5.3) < REST


def test_an_unreachable_target_is_approached_and_named():
    reach = 1.2
    script = repeat_input("pose", shift_pose(HOME, reach, 0.0, 0.0), 0.0, 4.0, 0.1)
    trace = run(engage_motion(ROBOT, max_jump=(9.0, 9.0)), script, 4.0, robot=ROBOT)
    distance = np.linalg.norm(
        tool_path(ROBOT, trace.steps[-1].solution[None])[0, :3] - shift_pose(HOME, reach, 0, 0)[:3]
    )
    cause = next(cause for cause in trace.steps[-1].causes if cause.kind == "reach")

    assert cause.value == pytest.approx(distance, abs=1e-6)
    assert cause.text == f"reach {1e3 * distance:.0f} mm"
    assert trace.tool[-1, 0] > HOME[0] + 0.1


def test_a_target_that_moves_again_is_followed():
    far = shift_pose(HOME, 1.2, 0.0, 0.0)
    near = shift_pose(HOME, 0.05, 0.05, 0.0)
    script = repeat_input("pose", far, 0.0, 4.0, 0.1) + repeat_input("pose", near, 4.0, 5.2, 0.1)
    trace = run(engage_motion(ROBOT, max_jump=(9.0, 9.0)), script, 5.2, robot=ROBOT)

    assert POSES.difference(trace.tool[-1], near) == pytest.approx(np.zeros(6), abs=1e-3)
    assert np.abs(trace.acceleration).max() <= ROBOT.max_acceleration
    assert not trace.cause_names(-1)


def test_a_far_target_is_followed_to_its_end():
    # It is under way for longer than targets have time to settle.
    goal = shift_pose(HOME, 0.0, -0.4, 0.2)
    motion = engage_motion(ROBOT, max_jump=(9.0, 9.0), max_tool_speed=0.13)
    trace = run(motion, repeat_input("pose", goal, 0.0, 5.5, 0.1), 5.5, robot=ROBOT)

    assert trace.twist_speed[trace.index_at(3.2)] > 0.05
    assert POSES.difference(trace.tool[-1], goal) == pytest.approx(np.zeros(6), abs=1e-3)


def test_only_constrained_components_count_as_left():
    planar = load_robot("planar3r")
    goal = np.array([-0.5, 0.7, 0.0, 0.0, 0.0, 1.0, 0.0])
    script = repeat_input("pose", goal, 0.0, 4.0, 0.1)
    trace = run(
        engage_motion(planar, "damped-least-squares", max_jump=(9.0, 9.0)),
        script,
        4.0,
        robot=planar,
    )

    assert trace.tool[-1, :3] == pytest.approx(goal[:3], abs=1e-4)
    assert not any(cause.kind == "reach" for step in trace.steps for cause in step.causes)
