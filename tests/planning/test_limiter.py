"""The limiter keeps every limit whatever is asked for, and leaves alone what keeps them already."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simbridge.planning.limiter import Limiter, limit_setpoints
from simbridge.planning.time_stretch import find_due_times
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path, tool_speeds
from simbridge.servo.law import GAIN_RANGE, ServojLaw

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
    assert (setpoints >= ROBOT.position_min).all() and (setpoints <= ROBOT.position_max).all()
    velocity = np.diff(setpoints, axis=0, prepend=setpoints[:1]) / PERIOD
    assert (np.abs(velocity) <= ROBOT.max_velocity * ROUNDING).all()
    acceleration = np.diff(velocity, axis=0) / PERIOD
    assert np.abs(acceleration).max(initial=0.0) <= ROBOT.max_acceleration * ROUNDING


def feasible_motion(seed, count=190):
    """A motion (T, 6) from standstill at home: sines that fade in, the fastest instant at 0.95 of a limit."""
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
@settings(max_examples=30)
def test_a_motion_that_keeps_the_limits_passes_bit_for_bit(seed):
    desired = feasible_motion(seed)
    setpoints, changed = followed(desired)
    assert setpoints[1:].tobytes() == desired.tobytes()
    assert not changed.any()


def test_a_motion_to_a_joints_very_end_and_back_passes_bit_for_bit():
    k = np.arange(101)  # 0.8 s, at the limit in the middle; the peak acceleration is 15 rad/s^2
    desired = np.tile(HOME, (101, 1))
    desired[:, 2] = ROBOT.position_max[2] - 0.25 * (1.0 + np.cos(2.0 * np.pi * k / 100))
    setpoints, changed = followed(desired, start=desired[0])
    assert desired[50, 2] == ROBOT.position_max[2]
    assert setpoints[1:].tobytes() == desired.tobytes()
    assert not changed.any()


def test_a_jump_is_reached_in_the_least_time_and_not_overshot():
    goal = HOME.copy()
    goal[0] += 1.0
    setpoints, changed = followed(np.tile(goal, (200, 1)))
    assert_limits_kept(setpoints)
    assert changed[0] and not changed[-1]
    assert setpoints[:, 0].max() == goal[0]
    # Bang, coast, bang: t = d / v + v / a, and at most three periods for the sampling.
    least = 1.0 / ROBOT.max_velocity[0] + ROBOT.max_velocity[0] / ROBOT.max_acceleration
    arrival = np.argmax(setpoints[:, 0] == goal[0]) * PERIOD
    assert least - PERIOD <= arrival <= least + 3.0 * PERIOD
    assert np.array_equal(setpoints[-1], goal)


def test_a_moving_target_is_caught_up_with_and_then_followed_exactly():
    t = np.arange(400) * PERIOD
    desired = HOME + 0.4 + 0.3 * np.sin(2.0 * t)[:, None]
    setpoints, changed = followed(desired)
    assert_limits_kept(setpoints)
    assert changed[0]
    assert np.array_equal(setpoints[-200:], desired[-200:])
    assert not changed[-200:].any()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_motion_beyond_a_joints_end_stops_at_it(side):
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
@settings(max_examples=40)
def test_no_sequence_of_jumps_leads_past_position_velocity_or_acceleration(goals, hold):
    assert_limits_kept(followed(np.repeat(goals, hold, axis=0))[0])


@given(poses, holds, st.floats(0.05, 1.5))
@settings(max_examples=20)
def test_with_a_tool_speed_no_sequence_of_jumps_leads_past_any_limit(goals, hold, speed):
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
@settings(max_examples=30)
def test_with_room_for_servojs_overshoot_no_sequence_of_jumps_makes_joints_too_fast(
    goals, hold, gain, lookahead, period
):
    law = ServojLaw(period, gain, lookahead)
    limiter = Limiter(ROBOT, period, max_velocity=ROBOT.max_velocity / law.velocity_gain().any)
    setpoints = np.array([limiter.next(q)[0] for q in np.repeat(goals, hold, axis=0)])
    assert (np.abs(law.follow(setpoints, previous=HOME).qd) <= ROBOT.max_velocity).all()


def test_the_same_targets_give_the_same_setpoints_bit_for_bit():
    desired = np.repeat(HOME + np.random.default_rng(5).normal(size=(10, 6)), 10, axis=0)
    assert followed(desired)[0].tobytes() == followed(desired)[0].tobytes()


def test_what_is_not_finite_goes_on_to_the_guard_and_leaves_the_limiter_where_it_was():
    limiter = Limiter(ROBOT, PERIOD)
    limiter.reset(HOME)
    broken = HOME.copy()
    broken[1] = np.nan
    passed, changed = limiter.next(broken)
    assert np.isnan(passed[1]) and changed
    assert np.array_equal(limiter.next(HOME)[0], HOME)


def test_a_whole_solution_that_ends_out_of_breath_gets_the_time_to_arrive():
    solution = np.concatenate([np.tile(HOME, (5, 1)), np.tile(HOME + 0.5, (5, 1))])
    setpoints, changed = limit_setpoints(ROBOT, solution, PERIOD)
    assert len(setpoints) == len(changed) > len(solution)
    assert np.array_equal(setpoints[-1], solution[-1])
    last = (setpoints[-1] - setpoints[-2]) / PERIOD
    assert (np.abs(last) <= ROBOT.max_velocity_jump).all()
    assert_limits_kept(setpoints)


def test_a_whole_solution_that_keeps_the_limits_stays_as_it_is():
    solution = feasible_motion(3)
    setpoints, changed = limit_setpoints(ROBOT, solution, PERIOD)
    assert setpoints.tobytes() == solution.tobytes()
    assert not changed.any()


def test_tool_speed_is_distance_over_time_on_a_circle_about_the_base():
    q = np.tile(HOME, (20, 1))
    q[:, 0] = 0.7 * np.arange(20) * PERIOD
    # base_link and the first joint share their axis: the tool runs on a circle, and a chord is 2 r sin(angle / 2).
    x, y = tool_path(ROBOT, HOME[None])[0, :2]
    chord = 2.0 * np.hypot(x, y) * np.sin(0.5 * 0.7 * PERIOD)
    assert tool_speeds(ROBOT, q, PERIOD) == pytest.approx(np.full(19, chord / PERIOD), rel=1e-9)


def test_stretched_time_never_runs_faster_than_the_clock_and_slows_where_the_tool_is_fast():
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


def test_a_goal_that_leaps_is_reached_without_a_run_up():
    desired = np.tile(HOME, (60, 1))
    desired[10:, 0] += 0.02
    desired[30:, 0] += 0.02
    setpoints, _ = followed(desired)
    assert (np.diff(setpoints[:, 0]) >= 0.0).all()
    assert setpoints[:, 0].max() == desired[-1, 0]


def test_braking_ends_within_the_range_of_a_joint_that_was_near_its_end():
    limiter, start = Limiter(ROBOT, PERIOD), HOME.copy()
    start[2] = ROBOT.position_max[2] - 0.2
    limiter.reset(start)
    # The pan is fastest, and takes longer to brake than the elbow has left.
    q, velocity = start, np.array([2.0, 0.0, 1.2, 0.0, 0.0, 0.0])
    while q[2] < ROBOT.position_max[2] - 0.03:
        q, _ = limiter.next(q + PERIOD * velocity)
    setpoints = [q, *(limiter.brake() for _ in range(40))]
    assert max(q[2] for q in setpoints) <= ROBOT.position_max[2]
    assert not limiter.velocity.any()
