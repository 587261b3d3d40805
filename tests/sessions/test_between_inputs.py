"""Between two inputs a target stays, or moves on for one input period at most.

It does not stop and go with each input.
"""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.robot import load_robot
from simbridge.sessions.between_inputs import HeldInput
from simbridge.sessions.spaces import JOINTS
from tests.properties import variants
from tests.sessions.trial import TimedInput, engage_motion, pose_of, run, shift_pose

pytestmark = pytest.mark.slow

ROBOT = load_robot("ur10")
HOME = pose_of(ROBOT.home, ROBOT)
SPEED = 0.2


def make_line(every, seconds, jitter=0.0, seed=0):
    """Return poses along y at 0.2 m/s, sampled regularly.

    They arrive with a jitter of this fraction of an interval.
    """
    rng = np.random.default_rng(seed)
    inputs = []
    for time in np.arange(0.0, seconds - 1e-9, every).tolist():
        arrival = time + jitter * every * rng.uniform(0.0, 1.0)
        inputs.append(TimedInput(arrival, "pose", shift_pose(HOME, 0.0, SPEED * time, 0.0)))
    return inputs


def follow_line(every, seconds, *, hold="continue", jitter=0.0, after=0.0):
    """Run a motion along the line, and for a time after it, s."""
    motion = engage_motion(ROBOT, hold=hold, timeout=5.0, max_jump=(1.0, 1.0))
    return run(motion, make_line(every, seconds, jitter), seconds + after, robot=ROBOT)


def overshoot(trace, seconds, every):
    """Return how far the setpoints go beyond the last pose, m."""
    last = SPEED * (round(seconds / every) - 1) * every
    return float((trace.tool[:, 1] - HOME[1]).max() - last)


@pytest.mark.parametrize("every", variants([0.016, 0.048, 0.096], 0.048))
def test_with_continue_the_tool_keeps_its_speed_between_inputs(every):
    assert follow_line(every, 1.2).twist_speed[100:] == pytest.approx(SPEED, rel=0.03)


def test_with_zero_order_the_tool_stands_between_inputs():
    speed = follow_line(0.096, 1.2, hold="zero-order").twist_speed[100:]

    assert speed.min() < 1e-3
    assert speed.max() > 2.0 * SPEED


@pytest.mark.parametrize("hold", ["continue", "zero-order"])
@pytest.mark.parametrize("every", variants([0.001, 0.05, 1.0], 0.05))
def test_jitter_keeps_the_acceleration_limit(hold, every):
    trace = follow_line(every, 1.0, hold=hold, jitter=0.8)

    assert np.abs(trace.acceleration).max() <= ROBOT.max_acceleration
    assert trace.tool[-1, 1] - HOME[1] == pytest.approx(
        SPEED * 1.0, abs=SPEED * (2.0 * every + 0.1)
    )


def test_with_zero_order_the_setpoints_stay_within_the_poses_given():
    trace = follow_line(0.05, 1.0, hold="zero-order", after=0.5)

    assert overshoot(trace, 1.0, 0.05) < 1e-4


@pytest.mark.parametrize("every", variants([0.016, 0.05, 0.1], 0.05))
def test_continue_overshoots_by_one_input_period_at_most(every):
    # That is the target's overshoot; the setpoints add what the limiter needs to brake.
    trace = follow_line(every, 1.2, after=0.6)

    assert 0.0 < overshoot(trace, 1.2, every) <= 1.25 * SPEED * every + 2.5e-3

    last = SPEED * (round(1.2 / every) - 1) * every

    assert trace.tool[-1, 1] - HOME[1] == pytest.approx(last, abs=1e-4)
    assert not np.abs(trace.velocity[-20:]).max() > 1e-3


def hold_joint(times, speed=1.0):
    """Return a held joint that moves at this speed, sampled when its inputs arrive."""
    target = HeldInput("continue", JOINTS)
    for at in times:
        target.take(at, np.array([speed * at]))
    return target


def test_a_target_moves_on_for_one_period():
    target = hold_joint([0.0, 0.05, 0.1])

    assert target.at(0.1499, 0.5) == pytest.approx([0.1499])
    assert target.at(0.1501, 0.5) == pytest.approx([0.1])


def test_a_target_never_moves_on_past_the_timeout():
    target = hold_joint([0.0, 0.3, 0.6])

    assert target.at(0.79, 0.2) == pytest.approx([0.79])
    assert target.at(0.81, 0.2) == pytest.approx([0.6])


def test_jitter_lengthens_the_input_period():
    target = hold_joint([0.0, 0.05, 0.12, 0.15, 0.20, 0.25])

    assert target.at(0.319, 0.5) == pytest.approx([0.319])
    assert target.at(0.321, 0.5) == pytest.approx([0.25])


def test_a_gap_at_most_doubles_the_input_period():
    # The mean of the last five intervals is 0.12 s.
    target = hold_joint([0.0, 0.05, 0.1, 0.15, 0.55, 0.60])

    assert target.at(0.60 + 0.239, 0.5) > 0.6
    assert target.at(0.60 + 0.241, 0.5) == pytest.approx([0.6])


def test_a_burst_does_not_make_the_target_faster():
    # The fourth input was delayed until just before the fifth.
    times = [0.0, 0.05, 0.10, 0.198, 0.2]
    at = 0.2
    target = HeldInput("continue", JOINTS)
    for k, arrival in enumerate(times):
        target.take(arrival, np.array([0.05 * k]))

    assert target.at(at + 0.02, 0.5)[0] == pytest.approx(0.2 + 0.02 * 1.0, abs=1e-9)


def test_bursts_do_not_speed_a_target_up():
    rng = np.random.default_rng(3)
    poses = make_line(0.05, 1.2)
    bursts = [
        pose._replace(time=pose.time + (0.048 if rng.random() < 0.3 else 0.0)) for pose in poses
    ]
    motion = engage_motion(ROBOT, timeout=5.0)
    trace = run(motion, sorted(bursts, key=lambda pose: pose.time), 1.2, robot=ROBOT)

    assert trace.tool[:, 1].max() - HOME[1] < SPEED * 1.2 + SPEED * 0.05
    # Five inputs in turn may be late by half an interval and catch up; never the 5 m/s of two in
    # one period.
    assert trace.twist_speed.max() < 4.0 * SPEED
