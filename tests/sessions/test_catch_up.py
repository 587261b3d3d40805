"""After a stall a source is followed slowly until the arm has caught up, or not at all."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simbridge.robot import load_robot
from simbridge.servo.law import ServojLaw
from simbridge.sessions.catch_up import CAUGHT_UP_DISTANCE, VELOCITY_CATCH_UP_S
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import LivePhase, Order
from tests.properties import few_examples, variants
from tests.sessions import trial
from tests.sessions.trial import TimedInput, TimedOrder, pose_of, repeat_input, shift_pose

pytestmark = pytest.mark.slow

# Of a CB3 controller, whose period is the longest.
ROBOT = load_robot("ur10")
# Of an e-Series controller, whose period is the shortest.
E_SERIES_ROBOT = load_robot("ur10e")
HOME = pose_of(ROBOT.home, ROBOT)
NEAR_JOINTS = ROBOT.home + np.array([0.2, 0.0, 0.0, 0.2, -0.2, 0.2])
FRACTION = LiveOptions().catch_up
# When a source stalls, and when it comes back, s: later than after any timeout.
STALLS_AT = 0.2
BACK_AT = 1.0


def engage_motion(robot=ROBOT, **facts):
    """Return a motion of an arm that is at rest and has been engaged."""
    return trial.engage_motion(robot, **facts)


def run(motion, script, seconds, robot=ROBOT):
    """Step a motion of an arm through a script for some time, s."""
    return trial.run(motion, script, seconds, robot=robot)


def turn_pose(pose, angle, axis=2):
    """Return a pose (7,) turned by an angle, rad, about an axis of base_link."""
    turn = pin.exp3(angle * np.eye(3)[axis])
    rotation = turn @ pin.Quaternion(pose[3:]).matrix()
    return np.concatenate([pose[:3], pin.Quaternion(rotation).coeffs()])


def stalled(kind, before, after, seconds=1.0, *, robot=ROBOT, **facts):
    """Return the trace of a source that is silent for 0.8 s, and comes back.

    Args:
        kind: The kind of its inputs.
        before: Its value until the stall.
        after: Its value after the stall.
        seconds: How long it is back, s.
        robot: The arm.
        facts: Arguments of `engage_motion`.
    """
    script = [
        *repeat_input(kind, before, 0.0, STALLS_AT, 0.02),
        *repeat_input(kind, after, BACK_AT, BACK_AT + seconds, 0.02),
    ]
    return run(engage_motion(robot, **facts), script, BACK_AT + seconds, robot)


def is_slow(trace):
    """Return which steps (T,) name that the arm catches up."""
    return np.array([any(c.kind == "catching_up" for c in step.causes) for step in trace.steps])


def joint_fractions(trace):
    """Return the largest velocity of a joint in each step (T,), as a fraction of its limit."""
    return np.abs(trace.velocity / trace.robot.max_velocity).max(axis=1)


BOTH_ROBOTS = pytest.mark.parametrize(
    "robot",
    [ROBOT, pytest.param(E_SERIES_ROBOT, marks=pytest.mark.soak)],
    ids=lambda robot: robot.name,
)


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("pose", HOME, shift_pose(HOME, 0.0, 0.09, 0.0)),
        ("pose", HOME, turn_pose(HOME, 0.4)),
        ("joints", ROBOT.home, NEAR_JOINTS),
        ("twist", [0.0] * 6, [0.0, 0.0, 0.0, 0.0, 0.0, 3.0]),
        ("jog", [0.0] * 6, [0.0, 0.0, 0.0, 0.0, 0.0, 3.0]),
        ("follow", [[0.0, *HOME]], [[0.01, *shift_pose(HOME, 0.0, 0.09, 0.0)]]),
        ("follow_joints", [[0.0, *ROBOT.home]], [[0.01, *NEAR_JOINTS]]),
    ],
)
def test_after_a_stall_the_arm_is_slow_until_caught_up(kind, before, after):
    trace = stalled(kind, before, after)
    slow = is_slow(trace)
    back = trace.index_at(BACK_AT)

    assert not slow[:back].any()
    assert slow[back]
    assert 0.05 < joint_fractions(trace)[slow].max() <= FRACTION
    assert trace.twist_speed[slow[1:]].max() <= FRACTION * ROBOT.max_tool_speed
    assert not slow[-1]


def test_the_pose_is_reached_after_the_stall():
    goal = shift_pose(HOME, 0.0, 0.09, 0.0)
    trace = stalled("pose", HOME, goal)

    assert trace.tool[-1, :3] == pytest.approx(goal[:3], abs=1e-4)
    assert trace.steps[-1].causes == ()


@BOTH_ROBOTS
def test_the_fraction_is_an_option(robot):
    turned = robot.home + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.4])

    trace = stalled("joints", robot.home, turned, 2.0, robot=robot, catch_up=0.1)

    slow = is_slow(trace)
    assert 0.08 < joint_fractions(trace)[slow].max() <= 0.1
    assert trace.steps[trace.index_at(BACK_AT + 0.5)].causes[0].value == 0.1


def test_after_catching_up_the_arm_is_fast_again():
    jump = shift_pose(HOME, 0.0, 0.09, 0.0)
    script = [
        *repeat_input("pose", HOME, 0.0, STALLS_AT, 0.02),
        *repeat_input("pose", jump, BACK_AT, BACK_AT + 1.0, 0.02),
        *repeat_input("pose", HOME, BACK_AT + 1.0, BACK_AT + 1.3, 0.02),
    ]
    trace = run(engage_motion(), script, BACK_AT + 1.3)
    after = trace.index_at(BACK_AT + 1.0)

    assert not is_slow(trace)[after:].any()
    assert joint_fractions(trace)[after:].max() > 1.5 * joint_fractions(trace)[:after].max()


@pytest.mark.parametrize(
    ("kind", "before", "after", "cause", "value"),
    [
        ("pose", HOME, shift_pose(HOME, 0.0, 0.312, 0.0), "engage_again", 0.312),
        ("pose", HOME, turn_pose(HOME, 1.2), "engage_again_turn", 1.2),
        ("pose", HOME, turn_pose(HOME, np.pi), "engage_again_turn", np.pi),
        ("joints", ROBOT.home, ROBOT.home + 0.6, "engage_again_turn", 0.6),
        ("follow", [[0.0, *HOME]], [[0.1, *shift_pose(HOME, 0.2, 0, 0)]], "engage_again", 0.2),
    ],
)
def test_a_source_that_comes_back_far_moves_nothing(kind, before, after, cause, value):
    trace = stalled(kind, before, after, 0.3)
    back = trace.index_at(BACK_AT)

    assert not trace.velocity[back:].any()
    assert trace.phases[-2:] == [LivePhase.HOLDING, LivePhase.IDLE]
    assert trace.steps[back].causes[0].kind == cause
    assert trace.steps[back].causes[0].value == pytest.approx(value, abs=1e-6)
    # Named until the next engagement, and the inputs until then are refused.
    assert [step.kind for step in trace.steps[-1].causes] == ["not_engaged", cause]


def test_a_joint_a_whole_turn_away_is_far():
    turned = ROBOT.home + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * np.pi])
    trace = stalled("joints", ROBOT.home, turned, 0.3)

    assert not trace.velocity[trace.index_at(BACK_AT) :].any()
    assert trace.phases[-1] is LivePhase.IDLE


def test_the_other_quaternion_of_a_pose_is_near():
    other = np.concatenate([HOME[:3], -HOME[3:]])
    trace = stalled("pose", HOME, other, 0.3)

    assert trace.phases[-1] is LivePhase.TRACKING
    assert np.abs(trace.velocity[trace.index_at(BACK_AT) :]).max() < 1e-6


def test_a_source_that_comes_back_while_the_arm_brakes_is_slow():
    along = [shift_pose(HOME, 0.0, 0.005 * k, 0.0) for k in range(26)]
    script = [TimedInput(0.02 * k, "pose", along[k]) for k in range(26)]
    # A period after the timeout the arm has not come to rest.
    back_at = script[-1].time + 0.5 + 2.0 * ROBOT.period
    script += repeat_input("pose", shift_pose(along[-1], 0.0, 0.08, 0.0), back_at, 2.0, 0.02)
    trace = run(engage_motion(), script, 2.0)

    assert is_slow(trace)[trace.index_at(back_at)]
    assert joint_fractions(trace)[trace.index_at(back_at + 0.1) :].max() <= FRACTION


def test_a_stall_while_catching_up_begins_it_again():
    near = shift_pose(HOME, 0.0, 0.09, 0.0)
    script = [
        *repeat_input("pose", HOME, 0.0, STALLS_AT, 0.02),
        TimedInput(BACK_AT, "pose", near),
        *repeat_input("pose", near, 2.0, 2.5, 0.02),
    ]
    # So slowly that the pose is not reached before the second stall.
    trace = run(engage_motion(catch_up=0.02), script, 2.5)

    assert LivePhase.HOLDING in [trace.steps[trace.index_at(1.9)].phase]
    assert is_slow(trace)[trace.index_at(2.0) :].all()
    assert joint_fractions(trace)[trace.index_at(BACK_AT) :].max() <= 0.02


def test_a_new_engagement_does_not_end_the_slowness():
    near = shift_pose(HOME, 0.0, 0.09, 0.0)
    script = [
        *repeat_input("pose", HOME, 0.0, 0.5, 0.02),
        TimedOrder(1.5, Order.ENGAGE, 2),
        *repeat_input("pose", near, 2.0, 2.2, 0.02, engagement=2),
    ]
    trace = run(engage_motion(), script, 2.2)

    assert is_slow(trace)[trace.index_at(2.0) :].all()


def test_after_a_new_engagement_a_far_source_is_a_jump():
    far = shift_pose(HOME, 0.0, 0.3, 0.0)
    script = [
        *repeat_input("pose", HOME, 0.0, 0.5, 0.02),
        TimedInput(1.5, "pose", far),
        TimedOrder(1.6, Order.ENGAGE, 2),
        TimedInput(1.7, "pose", far, engagement=2),
    ]
    trace = run(engage_motion(), script, 1.8)

    assert trace.phases[-1] is LivePhase.ENGAGED
    assert trace.cause_names(-1) == [("max_jump", "")]


def test_another_source_takes_over_slowly():
    # The jog moves the arm away from where the poses still are.
    script = [
        *repeat_input("pose", HOME, 0.0, 0.5, 0.02),
        *repeat_input("jog", [0.0, 0.0, 0.0, 0.0, 0.0, 0.4], 0.5, 1.6, 0.02),
        *repeat_input("pose", HOME, 1.6, 2.0, 0.02),
    ]
    trace = run(engage_motion(), script, 2.0)
    back = trace.index_at(1.6)

    assert is_slow(trace)[back]
    assert joint_fractions(trace)[trace.index_at(1.7) :].max() <= FRACTION


@BOTH_ROBOTS
def test_a_moment_of_velocity_is_slow(robot):
    script = [
        *repeat_input("jog", [0.0] * 6, 0.0, 0.5, 0.02),
        *repeat_input("jog", [0.0, 0.0, 0.0, 0.0, 0.0, 3.0], 1.2, 1.8, 0.02),
    ]

    trace = run(engage_motion(robot), script, 1.8, robot)

    slow = is_slow(trace)
    begin = trace.index_at(1.2)
    end = trace.index_at(1.2 + VELOCITY_CATCH_UP_S - robot.period)
    assert slow[begin:end].all()
    assert joint_fractions(trace)[begin:end].max() <= FRACTION
    assert joint_fractions(trace)[-1] > 0.8


@pytest.mark.parametrize("filter", variants(["one-euro", "butterworth"], "one-euro"))
def test_a_filter_does_not_end_the_slowness(filter):
    trace = stalled(
        "pose", HOME, shift_pose(HOME, 0.0, 0.09, 0.0), 2.5, filter=filter, filter_cutoff=1.0
    )
    slow = is_slow(trace)
    arrived = np.linalg.norm(trace.tool[:, :3] - trace.tool[-1, :3], axis=1) < CAUGHT_UP_DISTANCE

    assert slow[trace.index_at(BACK_AT) : -1][~arrived[trace.index_at(BACK_AT) : -1]].all()
    assert not slow[-1]


offsets = st.tuples(*[st.floats(-0.05, 0.05)] * 3)
turns = st.tuples(*[st.floats(-0.25, 0.25)] * 3)
speeds = st.tuples(*[st.floats(-0.4, 0.4)] * 3)
silences = st.floats(0.52, 1.5)


@few_examples(2, soak=160)
@example(
    offset=(0.04, -0.05, 0.03),
    turn=(0.2, 0.0, -0.1),
    speed=(0.3, 0.0, -0.2),
    silence=0.9,
    rate=50,
)
@given(offset=offsets, turn=turns, speed=speeds, silence=silences, rate=st.sampled_from((10, 50)))
def test_after_any_stall_the_speed_stays_below_the_fraction(offset, turn, speed, silence, rate):
    # A source that comes back at random, and goes on with any velocity.
    back_at = 0.2 + silence
    rotation = pin.exp3(np.array(turn)) @ pin.Quaternion(HOME[3:]).matrix()
    first = np.concatenate([HOME[:3] + np.array(offset), pin.Quaternion(rotation).coeffs()])
    script = repeat_input("pose", HOME, 0.0, 0.2, 0.02)
    for k in range(rate):
        time = back_at + k / rate
        script.append(TimedInput(time, "pose", shift_pose(first, *(np.array(speed) * k / rate))))
    trace = run(engage_motion(law=ServojLaw(ROBOT.period)), script, back_at + 1.0)

    slow = is_slow(trace)
    attained = trace.follow(ServojLaw(ROBOT.period))

    # For the setpoints, and for the arm that follows them.
    assert joint_fractions(trace)[slow].max(initial=0.0) <= FRACTION
    assert (np.abs(attained.qd[slow]) <= FRACTION * ROBOT.max_velocity + 1e-9).all()
    assert trace.twist_speed[slow[1:]].max(initial=0.0) <= FRACTION * ROBOT.max_tool_speed
    # It is slow from its return until it is near, unless it was near then.
    gap = np.linalg.norm(
        trace.tool[:, :3] - np.array([s.target for s in trace.steps])[:, :3], axis=1
    )
    if trace.phases[-1] is LivePhase.TRACKING and gap[trace.index_at(back_at)] > CAUGHT_UP_DISTANCE:
        assert slow[trace.index_at(back_at)]
        assert gap[np.flatnonzero(slow)[-1]] <= CAUGHT_UP_DISTANCE or slow[-1]
