"""Whenever the arm does something else than what was asked for, there is a cause."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.robot import load_robot
from simbridge.robot.obstacles import Box, CollisionScene
from simbridge.servo.law import ServojLaw
from simbridge.sessions.limits import ServoModel, setpoint_limits
from simbridge.sessions.phases import LivePhase, Order
from tests.properties import few_examples, variants
from tests.sessions.trial import (
    ROBOT,
    TimedInput,
    TimedOrder,
    engage_motion,
    pose_of,
    repeat_input,
    run,
    shift_pose,
)

# Its period is four times as long, so that a second takes fewer steps.
UR10 = load_robot("ur10")
UR10_HOME = pose_of(UR10.home, UR10)
SECONDS = 1.0
# Differences that rounding and solvers make, rad and m.
NOISE = 1e-6
MAX_LAG_DISTANCE = 5e-3
MAX_LAG_ANGLE = 0.05


@functools.cache
def motion_limits():
    return setpoint_limits(ROBOT, ServoModel(ServojLaw(ROBOT.period)), 1.0, lead=False)


def longest_turn():
    """How long a turn from full speed to full speed takes at most, s."""
    return 2.0 * motion_limits().velocity.max() / motion_limits().acceleration


def is_followed(trace, k, kind, values):
    """Return whether the arm did in a step what was asked for."""
    step = trace.steps[k]
    if np.abs(step.solution - step.setpoint).max() > NOISE:
        return False
    if kind == "jog":
        return np.abs(trace.velocity[k] - values).max() <= NOISE / trace.period
    if kind == "joints":
        return np.abs(step.setpoint - values).max() <= NOISE

    tool = pose_of(step.setpoint)
    turn = pin.Quaternion(step.target[3:]).matrix() @ pin.Quaternion(tool[3:]).matrix().T
    distance = np.linalg.norm(step.target[:3] - tool[:3])
    angle = np.linalg.norm(pin.log3(turn))
    return distance <= MAX_LAG_DISTANCE and angle <= MAX_LAG_ANGLE


def assert_followed(trace, kind, values):
    """Assert that an arm without a cause does what was asked for, but for starts and turns."""
    unexplained = 0
    for k, step in enumerate(trace.steps):
        # An arm that brakes or stands has a cause in any case.
        if step.phase not in (LivePhase.TRACKING, LivePhase.ENGAGED):
            assert step.causes

        is_explained = step.phase is not LivePhase.TRACKING or bool(step.causes)
        if is_explained or is_followed(trace, k, kind, values):
            unexplained = 0
        else:
            unexplained += 1
        assert unexplained * trace.period <= longest_turn() + 2.0 * trace.period


def numbers(largest, count=6):
    """Strategy for that many numbers up to a size."""
    return st.tuples(*[st.floats(-largest, largest)] * count).map(np.array)


WALL = CollisionScene(boxes=(Box("wall", (1.3, 0.0, 0.5), (0.02, 2.0, 1.0)),))
facts_of_a_motion = st.fixed_dictionaries(
    {
        "slider": st.sampled_from((1.0, 0.99, 0.4, 0.0)),
        "max_tool_speed": st.sampled_from((0.05, 1.0)),
        "scene": st.sampled_from((None, WALL)),
        "start": numbers(0.8).map(lambda offset: ROBOT.home + offset),
        "name": st.sampled_from(("forward-dynamics", "damped-least-squares")),
    }
)


def trace_of(kind, values, facts):
    """Return the trace of an input that is repeated; the arm is halted at the end."""
    facts = dict(facts)
    slider = facts.pop("slider")
    script = [
        *repeat_input(kind, values, 0.0, SECONDS - 0.3, 0.05),
        TimedOrder(SECONDS - 0.3, Order.HALT),
    ]
    return run(engage_motion(**facts), script, SECONDS, slider=lambda now: slider)


@few_examples(2, soak=100)
@given(values=numbers(4.0), facts=facts_of_a_motion)
def test_every_hindrance_of_a_jog_has_a_cause(values, facts):
    assert_followed(trace_of("jog", values, facts), "jog", values)


@few_examples(2, soak=100)
@given(offset=numbers(3.0), facts=facts_of_a_motion)
def test_every_hindrance_of_joints_has_a_cause(offset, facts):
    values = facts["start"] + offset
    facts = {**facts, "max_jump": (10.0, 10.0), "hold": "zero-order"}

    assert_followed(trace_of("joints", values, facts), "joints", values)


@few_examples(2, soak=100)
@given(values=numbers(1.5), facts=facts_of_a_motion)
def test_every_hindrance_of_a_twist_has_a_cause(values, facts):
    assert_followed(trace_of("twist", values, facts), "twist", values)


@few_examples(2, soak=100)
@given(offset=numbers(0.6, 3), facts=facts_of_a_motion)
def test_every_hindrance_of_a_pose_has_a_cause(offset, facts):
    values = shift_pose(pose_of(facts["start"]), *offset)
    facts = {**facts, "max_jump": (10.0, 10.0)}

    assert_followed(trace_of("pose", values, facts), "pose", values)


# Joints and speeds, rad/s.
JOGS = list(itertools.product(range(6), [0.05, 1.0, -2.5]))
TRIED_JOGS = [(1, 0.05), (0, 1.0), (2, -2.5), (5, -2.5)]


@pytest.mark.parametrize("jog", variants(JOGS, *TRIED_JOGS), ids=str)
def test_a_jog_into_the_end_of_a_range_is_named(jog):
    joint, speed = jog
    start = ROBOT.home.copy()
    limits = ROBOT.position_max if speed > 0.0 else ROBOT.position_min
    # The slowest jog takes 0.6 s for them.
    start[joint] = limits[joint] - np.sign(speed) * 0.03
    velocity = np.zeros(6)
    velocity[joint] = speed
    free = CollisionScene(floor=None)
    trace = run(
        engage_motion(start=start, scene=free), repeat_input("jog", velocity, 0.0, 1.2), 1.2
    )
    held = np.abs(trace.velocity[:, joint]) < 0.9 * abs(speed)
    # The start is no hindrance.
    held[: math.ceil(abs(speed) / motion_limits().acceleration / trace.period) + 1] = False

    # Without a floor the only obstacle is the arm itself. Whatever holds the joint is named.
    for k in np.flatnonzero(held).tolist():
        assert trace.steps[k].causes
    kinds = {cause.kind for cause in trace.steps[-1].causes}
    assert kinds == {"joint_limit"} or kinds == {"obstacle"}


def test_a_refused_input_is_named_while_it_is_not_followed():
    # Long after the moment for which a refusal is shown otherwise.
    far = shift_pose(UR10_HOME, 0.0, 0.3, 0.0)
    script = [TimedInput(0.0, "pose", UR10_HOME), TimedInput(0.1, "pose", far)]
    trace = run(engage_motion(UR10, timeout=3.0), script, 1.2, robot=UR10)

    assert trace.steps[-1].phase is LivePhase.TRACKING
    assert trace.cause_names(-1) == [("max_jump", "")]


def test_a_slightly_lowered_speed_is_named():
    script = repeat_input("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 0.5)
    trace = run(engage_motion(UR10), script, 0.5, robot=UR10, slider=lambda now: 0.99)

    assert trace.cause_names(-1) == [("speed_slider", "")]


def test_a_rotation_out_of_reach_is_named_in_rad():
    # The position is reached, but a wrist at its end cannot turn on.
    start = UR10.home.copy()
    start[5] = UR10.position_max[5] - 0.1
    pose = pose_of(start, UR10)
    axis = pin.Quaternion(pose[3:]).matrix()[:, 2]
    turned = pin.exp3(0.3 * axis) @ pin.Quaternion(pose[3:]).matrix()
    goal = np.concatenate([pose[:3], pin.Quaternion(turned).coeffs()])
    trace = run(
        engage_motion(UR10, start=start), repeat_input("pose", goal, 0.0, 1.5, 0.2), 1.5, robot=UR10
    )

    assert trace.steps[-1].causes


def test_a_quaternion_keeps_its_sign():
    # A whole turn of the tool about its z axis: the quaternion would change its sign on the way.
    start = UR10.home.copy()
    start[5] = -3.0
    script = repeat_input("twist", [0, 0, 0, 0, 0, 2.5], 0.0, 2.6, 0.05, frame="tool")
    trace = run(engage_motion(UR10, start=start), script, 2.6, robot=UR10)
    targets = np.array([step.target for step in trace.steps])

    assert np.abs(np.diff(targets[:, 3:], axis=0)).max() < 0.1
    assert trace.setpoints[-1, 5] - start[5] > 2.0 * np.pi - 1.0


def test_both_quaternions_of_a_pose_move_alike():
    def trace_with(sign):
        goals = [shift_pose(UR10_HOME, 0.0, 0.01 * k, 0.0) for k in range(5)]
        script = [
            TimedInput(0.1 * k, "pose", np.concatenate([goal[:3], sign[k] * goal[3:]]))
            for k, goal in enumerate(goals)
        ]
        return run(engage_motion(UR10, filter="butterworth"), script, 0.8, robot=UR10)

    same = trace_with([1, 1, 1, 1, 1])
    mixed = trace_with([1, -1, -1, 1, -1])

    assert mixed.setpoints == pytest.approx(same.setpoints, abs=1e-12)
    assert [step.target for step in mixed.steps] == [
        pytest.approx(step.target, abs=1e-12) for step in same.steps
    ]
