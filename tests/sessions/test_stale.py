"""When an input counts: timeouts, orders, engagements, pauses, relative poses and jumps."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.robot import load_robot
from simbridge.sessions.inputs import Fate
from simbridge.sessions.options import TIMEOUTS
from simbridge.sessions.phases import LivePhase, Order
from tests.sessions.trial import Given, Ordered, engaged, moved, pose_of, repeated, run

ROBOT = load_robot("ur10")
HOME = pose_of(ROBOT.home, ROBOT)
VALUES = {
    "twist": [0.1, 0, 0, 0, 0, 0],
    "jog": [0.2, 0, 0, 0, 0, 0],
    "pose": moved(HOME, 0.0, 0.05, 0.0),
    "joints": ROBOT.home + 0.1,
    "follow": [[0.3, *moved(HOME, 0.0, 0.05, 0.0)]],
    "follow_joints": [[0.3, *(ROBOT.home + 0.1)]],
}


def started(script, seconds, **facts):
    return run(engaged(ROBOT, **facts), script, seconds, robot=ROBOT)


def fates(trace):
    return [step.fate for step in trace.steps if step.fate is not Fate.NONE]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("timeout", [None, 0.1])
def test_without_an_input_for_the_timeout_of_its_kind_the_arm_brakes_and_holds(kind, timeout):
    end = 0.3 if kind.startswith("follow") else 0.0
    due = end + (timeout or TIMEOUTS[kind])
    trace = started([Given(0.0, kind, VALUES[kind])], due + 0.5, timeout=timeout)
    first = next(
        k
        for k, step in enumerate(trace.steps)
        if step.phase is LivePhase.BRAKING or step.phase is LivePhase.HOLDING
    )
    assert trace.times[first] == pytest.approx(due + ROBOT.period, abs=1.01 * ROBOT.period)
    cause = trace.steps[-1].causes[0]
    assert trace.phases[-1] is LivePhase.HOLDING
    assert cause.name == "stale" and cause.value == pytest.approx(trace.times[-1] - end, abs=1e-6)
    assert not trace.velocity[-1].any()
    assert np.abs(trace.acceleration).max() <= ROBOT.max_acceleration


def test_after_being_stale_the_next_input_goes_on_from_the_held_setpoint_and_counts_as_late():
    script = [
        *repeated("twist", VALUES["twist"], 0.0, 0.5),
        *repeated("twist", VALUES["twist"], 1.2, 1.5),
    ]
    trace = started(script, 1.6)
    assert trace.phases == [
        LivePhase.TRACKING,
        LivePhase.BRAKING,
        LivePhase.HOLDING,
        LivePhase.TRACKING,
    ]
    assert fates(trace).count(Fate.LATE) == 1
    held = trace.setpoints[trace.at(1.1)]
    # No leap to where the twist would have led meanwhile.
    assert trace.setpoints[trace.at(1.21)] == pytest.approx(held, abs=4e-3)


def test_an_input_in_time_is_not_late():
    assert set(fates(started(repeated("pose", VALUES["pose"], 0.0, 1.0, 0.4), 1.2))) == {
        Fate.ACCEPTED
    }


def test_a_chunk_that_replaces_one_that_is_under_way_is_not_late():
    rows = np.column_stack([[0.5, 1.5], [HOME, moved(HOME, 0.0, 0.05, 0.0)]])
    trace = started([Given(0.0, "follow", rows), Given(1.2, "follow", rows)], 1.4)
    assert fates(trace) == [Fate.ACCEPTED, Fate.ACCEPTED]


def test_inputs_of_an_older_engagement_never_move_the_arm():
    script = [
        Ordered(0.0, Order.DISENGAGE),
        Ordered(0.1, Order.ENGAGE, 2),
        Given(0.2, "jog", VALUES["jog"]),
    ]
    trace = started(script, 0.4)
    assert not trace.velocity.any()
    assert fates(trace) == [Fate.NOT_ENGAGED]


@pytest.mark.parametrize("order", [Order.ENGAGE, Order.HALT])
def test_inputs_from_before_an_order_never_move_the_arm(order):
    # The input is in the mailbox when the order is taken, in the same period.
    script = [Given(0.1, "jog", VALUES["jog"]), Ordered(0.1, order, 1, upto=1)]
    trace = started(script, 0.4)
    assert not trace.velocity.any()


def test_engaging_a_moving_arm_brakes_it_and_only_inputs_of_the_new_engagement_move_it():
    script = [
        *repeated("jog", VALUES["jog"], 0.0, 1.0),
        Ordered(0.3, Order.ENGAGE, 2),
        *repeated("jog", [-0.2, 0, 0, 0, 0, 0], 1.0, 1.2, engagement=2),
    ]
    trace = started(sorted(script, key=lambda event: event.at), 1.2)
    assert trace.phases == [
        LivePhase.TRACKING,
        LivePhase.BRAKING,
        LivePhase.HOLDING,
        LivePhase.TRACKING,
    ]
    assert not trace.velocity[trace.at(0.5) : trace.at(0.95)].any()
    assert trace.velocity[-1, 0] == pytest.approx(-0.2)
    assert np.abs(trace.acceleration).max() <= ROBOT.max_acceleration


def test_a_second_engagement_begins_at_the_present_setpoint():
    script = [
        *repeated("jog", VALUES["jog"], 0.0, 0.5),
        Ordered(0.5, Order.DISENGAGE),
        Ordered(0.8, Order.ENGAGE, 2),
        Given(0.9, "pose", np.eye(7)[6], relative=True, engagement=2),
    ]
    trace = started(script, 1.2)
    assert trace.phases[-2:] == [LivePhase.ENGAGED, LivePhase.TRACKING]
    # The pose at the engagement, relative to itself: nothing moves.
    assert np.abs(trace.velocity[trace.at(0.85) :]).max() < 1e-6


def test_a_pause_disengages_and_the_arm_goes_on_only_after_engaging_again():
    motion = engaged(ROBOT)
    before = run(motion, repeated("jog", VALUES["jog"], 0.0, 0.4), 0.4, robot=ROBOT)
    stopped = before.setpoints[-1] + 0.01
    motion.rest_at(stopped)
    motion.order(Order.PAUSE)
    assert motion.phase is LivePhase.PAUSED
    step = motion.step(0.5, 0.0)
    assert np.array_equal(step.setpoint, stopped) and step.causes[0].name == "paused"
    motion.rest_at(stopped)
    motion.order(Order.RESUME)
    after = run(motion, [Given(0.0, "jog", VALUES["jog"])], 0.2, robot=ROBOT)
    assert motion.phase is LivePhase.IDLE
    assert np.array_equal(after.setpoints[-1], stopped)
    motion.order(Order.ENGAGE, engagement=2)
    assert motion.phase is LivePhase.ENGAGED


def test_an_order_that_comes_before_the_pause_is_taken_finds_an_arm_at_rest():
    motion = engaged(ROBOT)
    run(motion, repeated("jog", VALUES["jog"], 0.0, 0.4), 0.4, robot=ROBOT)
    motion.rest_at(ROBOT.home)
    motion.order(Order.HALT)
    assert np.array_equal(motion.step(0.5).setpoint, ROBOT.home)


@pytest.mark.parametrize("stop", [None, Order.HALT])
def test_a_relative_pose_is_followed_once(stop):
    sixty = [*(0.0, 0.06, 0.0), *(0.0, 0.0, 0.0, 1.0)]
    script = repeated("pose", sixty, 0.0, 1.2, relative=True)
    if stop is not None:
        script = sorted([*script, Ordered(0.6, stop)], key=lambda event: event.at)
    trace = started(script, 1.3)
    assert np.linalg.norm(trace.tool[-1, :3] - HOME[:3]) == pytest.approx(0.06, abs=1e-4)


@pytest.mark.parametrize(("kind", "far", "name"), [
    ("pose", moved(HOME, 0.0, 0.16, 0.0), "max_jump"),
    ("joints", ROBOT.home + 0.7, "max_turn"),
    ("follow", [[0.0, *moved(HOME, 0.0, 0.16, 0.0)]], "max_jump"),
])  # fmt: skip
def test_a_jump_is_rejected_and_the_arm_goes_on_with_the_input_before(kind, far, name):
    script = [
        Given(0.0, kind, VALUES[kind]),
        Given(0.2, kind, far),
        *repeated(kind, VALUES[kind], 0.4, 1.2),
    ]
    trace = started(script, 1.2)
    assert fates(trace)[1] is Fate.TOO_FAR
    assert trace.phases == [LivePhase.TRACKING]
    assert trace.names(trace.at(0.2))[0] == (name, "")
    without = started([event for event in script if event.at != 0.2], 1.2)
    assert np.array_equal(trace.setpoints, without.setpoints)


def test_the_same_calls_give_the_same_setpoints_to_the_bit():
    def once():
        script = [
            *repeated("twist", [0.1, 0.05, -0.2, 0.3, 0, 0.5], 0.0, 0.6, frame="tool"),
            *repeated("pose", VALUES["pose"], 0.6, 1.2),
            *repeated("jog", VALUES["jog"], 1.2, 1.5),
        ]
        return started(script, 2.0, max_jump=(1.0, 1.0), filter="butterworth").setpoints

    assert once().tobytes() == once().tobytes()
