"""The limiter keeps every limit whatever is asked for, and leaves alone what keeps them already."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simbridge.planning.limiter import Limiter, limit_setpoints
from simbridge.planning.time_stretch import find_due_times
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path, tool_speeds
from simbridge.servo.law import GAIN_RANGE, ServojLaw
from tests.properties import few_examples

ROBOT = load_robot("ur10")
HOME = ROBOT.home
PERIOD = ROBOT.period
ROUNDING = 1.0 + 1e-9


def followed(desired, start=HOME, **options):
    """The limiter's setpoints (T + 1, n), the start included, and which it says it changed (T,)."""
    limiter = Limiter(ROBOT, PERIOD, **options)
    limiter.reset(start)
    steps = [limiter.next(q) for q in desired]
    return np.array([start, *(q for q, _ in steps)]), np.array([changed for _, changed in steps])


def assert_limits_kept(setpoints):
    """Position, velocity and acceleration, for an arm that stands before the first of them."""
    assert (setpoints >= ROBOT.position_min).all()
    assert (setpoints <= ROBOT.position_max).all()
    velocity = np.diff(setpoints, axis=0, prepend=setpoints[:1]) / PERIOD
    assert (np.abs(velocity) <= ROBOT.max_velocity * ROUNDING).all()
    acceleration = np.diff(velocity, axis=0) / PERIOD
    assert np.abs(acceleration).max(initial=0.0) <= ROBOT.max_acceleration * ROUNDING


def feasible_motion(seed, count=190):
    """A motion (T, 6) from standstill at home: sines that fade in, the fastest instant at 0.95 of a
    limit.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(count) * PERIOD
    fade = np.minimum(t / 0.5, 1.0)
    swing = (
        fade[:, None] ** 3
        * rng.uniform(-1.0, 1.0, 6)
        * np.sin(rng.uniform(0.5, 9.0, 6) * t[:, None])
    )
    velocity = np.diff(swing, axis=0, prepend=0.0) / PERIOD
    acceleration = np.diff(velocity, axis=0, prepend=0.0) / PERIOD
    peak = max(
        (np.abs(velocity) / ROBOT.max_velocity).max(),
        np.abs(acceleration).max() / ROBOT.max_acceleration,
    )
    return HOME + 0.95 / peak * swing


@given(st.integers(0, 2**32 - 1))
@few_examples(10)
def test_a_good_motion_passes_bit_for_bit(seed):
    desired = feasible_motion(seed)
    setpoints, changed = followed(desired)

    assert setpoints[1:].tobytes() == desired.tobytes()
    assert not changed.any()


def test_a_motion_to_a_limit_passes_bit_for_bit():
    k = np.arange(101)  # 0.8 s, at the limit in the middle; the peak acceleration is 15 rad/s^2
    desired = np.tile(HOME, (101, 1))
    desired[:, 2] = ROBOT.position_max[2] - 0.25 * (1.0 + np.cos(2.0 * np.pi * k / 100))
    setpoints, changed = followed(desired, start=desired[0])

    assert desired[50, 2] == ROBOT.position_max[2]
    assert setpoints[1:].tobytes() == desired.tobytes()
    assert not changed.any()


def test_a_jump_takes_the_least_time():
    goal = HOME.copy()
    goal[0] += 1.0
    setpoints, changed = followed(np.tile(goal, (200, 1)))
    assert_limits_kept(setpoints)

    assert changed[0]
    assert not changed[-1]
    assert setpoints[:, 0].max() == goal[0]

    # Bang, coast, bang: t = d / v + v / a, and at most three periods for the sampling.
    least = 1.0 / ROBOT.max_velocity[0] + ROBOT.max_velocity[0] / ROBOT.max_acceleration
    arrival = np.argmax(setpoints[:, 0] == goal[0]) * PERIOD

    assert least - PERIOD <= arrival <= least + 3.0 * PERIOD
    assert np.array_equal(setpoints[-1], goal)


def test_a_moving_target_is_caught():
    t = np.arange(400) * PERIOD
    desired = HOME + 0.4 + 0.3 * np.sin(2.0 * t)[:, None]
    setpoints, changed = followed(desired)
    assert_limits_kept(setpoints)

    assert changed[0]
    assert np.array_equal(setpoints[-200:], desired[-200:])
    assert not changed[-200:].any()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_motion_beyond_a_limit_stops(side):
    limit = (ROBOT.position_min if side < 0.0 else ROBOT.position_max)[2]
    start = HOME.copy()
    start[2] = limit - side
    desired = np.tile(start, (300, 1))
    desired[:, 2] += side * 3.0 * np.arange(300) * PERIOD
    setpoints, changed = followed(desired, start)
    assert_limits_kept(setpoints)

    assert setpoints[-1, 2] == limit
    assert changed[-1]


poses = hnp.arrays(float, (12, 6), elements=st.floats(-8.0, 8.0))
holds = st.integers(1, 15)


@given(poses, holds)
@few_examples(12)
def test_jumps_pass_no_joint_limit(goals, hold):
    assert_limits_kept(followed(np.repeat(goals, hold, axis=0))[0])


@given(poses, holds, st.floats(0.05, 1.5))
@few_examples(8)
def test_jumps_pass_no_tool_speed(goals, hold, speed):
    setpoints, _ = followed(np.repeat(goals, hold, axis=0), max_tool_speed=speed)
    assert_limits_kept(setpoints)

    assert tool_speeds(ROBOT, setpoints, PERIOD).max() <= speed * ROUNDING


@given(
    poses,
    st.integers(1, 60),
    st.floats(*GAIN_RANGE),
    st.floats(0.03, 0.1),
    st.sampled_from([0.002, 0.008]),
)
@few_examples(5, soak=300)
def test_jumps_overshoot_no_velocity_limit(goals, hold, gain, lookahead, period):
    law = ServojLaw(period, gain, lookahead)
    limiter = Limiter(
        ROBOT, period, max_velocity=ROBOT.max_velocity / law.velocity_gain().of_any_motion
    )

    setpoints = np.array([limiter.next(q)[0] for q in np.repeat(goals, hold, axis=0)])

    assert (np.abs(law.follow(setpoints, previous=HOME).qd) <= ROBOT.max_velocity).all()


def test_setpoints_repeat_bit_for_bit():
    desired = np.repeat(HOME + np.random.default_rng(5).normal(size=(10, 6)), 10, axis=0)

    assert followed(desired)[0].tobytes() == followed(desired)[0].tobytes()


def test_infinite_targets_pass_to_the_guard():
    limiter = Limiter(ROBOT, PERIOD)
    limiter.reset(HOME)
    broken = HOME.copy()
    broken[1] = np.nan

    passed, changed = limiter.next(broken)

    assert np.isnan(passed[1])
    assert changed
    assert np.array_equal(limiter.next(HOME)[0], HOME)


def test_a_solution_gets_time_to_arrive():
    solution = np.concatenate([np.tile(HOME, (5, 1)), np.tile(HOME + 0.5, (5, 1))])
    setpoints, changed = limit_setpoints(ROBOT, solution, PERIOD)

    assert len(setpoints) == len(changed) > len(solution)
    assert np.array_equal(setpoints[-1], solution[-1])

    last = (setpoints[-1] - setpoints[-2]) / PERIOD

    assert (np.abs(last) <= ROBOT.max_velocity_jump).all()

    assert_limits_kept(setpoints)


def test_a_good_solution_stays():
    solution = feasible_motion(3)
    setpoints, changed = limit_setpoints(ROBOT, solution, PERIOD)

    assert setpoints.tobytes() == solution.tobytes()
    assert not changed.any()


def test_tool_speed_is_distance_over_time():
    q = np.tile(HOME, (20, 1))
    q[:, 0] = 0.7 * np.arange(20) * PERIOD
    # base_link and the first joint share their axis: the tool runs on a circle, and a chord is 2 r
    # sin(angle / 2).
    x, y = tool_path(ROBOT, HOME[None])[0, :2]
    chord = 2.0 * np.hypot(x, y) * np.sin(0.5 * 0.7 * PERIOD)

    assert tool_speeds(ROBOT, q, PERIOD) == pytest.approx(np.full(19, chord / PERIOD), rel=1e-9)


def test_time_slows_where_the_tool_is_fast():
    t = np.arange(200) * PERIOD
    q = np.tile(HOME, (200, 1))
    q[:, 0] += 0.5 * t + 0.5 * np.where(t > 0.8, t - 0.8, 0.0)
    speeds = tool_speeds(ROBOT, q, PERIOD)
    limit = 0.75 * speeds.max()

    due = find_due_times(ROBOT, q, PERIOD, limit)

    assert due[0] == 0.0
    assert (np.diff(due) >= PERIOD * (1.0 - 1e-12)).all()
    assert (speeds * PERIOD / np.diff(due) <= limit).all()
    assert np.diff(due)[0] == pytest.approx(PERIOD, rel=1e-12)


def test_a_leaping_goal_needs_no_run_up():
    desired = np.tile(HOME, (60, 1))
    desired[10:, 0] += 0.02
    desired[30:, 0] += 0.02

    setpoints, _ = followed(desired)

    assert (np.diff(setpoints[:, 0]) >= 0.0).all()
    assert setpoints[:, 0].max() == desired[-1, 0]


def test_braking_stays_within_the_range():
    limiter = Limiter(ROBOT, PERIOD)
    start = HOME.copy()
    start[2] = ROBOT.position_max[2] - 0.2
    limiter.reset(start)
    # The pan is fastest, and takes longer to brake than the elbow has left.
    q = start
    velocity = np.array([2.0, 0.0, 1.2, 0.0, 0.0, 0.0])
    while q[2] < ROBOT.position_max[2] - 0.03:
        q, _ = limiter.next(q + PERIOD * velocity)
    setpoints = [q, *(limiter.brake() for _ in range(40))]

    assert max(q[2] for q in setpoints) <= ROBOT.position_max[2]
    assert not limiter.velocity.any()
