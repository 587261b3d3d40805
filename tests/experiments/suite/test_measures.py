"""What is measured along a motion: joint positions whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.experiments.suite import measures
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path

ROBOT = load_robot("ur10")
PERIOD = ROBOT.period
SAMPLES = 200


def joints_of(path):
    """Joint positions (T, n): the first joint follows a path (T,), the others rest at home."""
    joints = np.tile(ROBOT.home, (len(path), 1))
    joints[:, 0] += path
    return joints


def test_a_steady_speed_is_a_share_of_the_limit():
    speed = 0.5 * ROBOT.max_velocity[0]
    joints = joints_of(speed * PERIOD * np.arange(SAMPLES))

    shares = measures.limit_shares(ROBOT, joints)

    assert shares.speed == pytest.approx(0.5)
    assert shares.acceleration == pytest.approx(0.0, abs=1e-6)


def test_a_steady_acceleration_is_a_share_of_the_limit():
    times = PERIOD * np.arange(SAMPLES)
    joints = joints_of(0.5 * 0.25 * ROBOT.max_acceleration * times**2)

    shares = measures.limit_shares(ROBOT, joints)

    assert shares.acceleration == pytest.approx(0.25)
    # Of six joints, one accelerates.
    assert shares.acceleration_rms == pytest.approx(0.25 / np.sqrt(ROBOT.n))
    assert shares.jerk == pytest.approx(0.0, abs=1e-5)


def test_a_steady_jerk_is_a_share_of_the_limit():
    times = PERIOD * np.arange(SAMPLES)
    joints = joints_of(measures.jerk_limit(ROBOT) * 0.125 * times**3 / 6.0)

    assert measures.limit_shares(ROBOT, joints).jerk == pytest.approx(0.125)


def test_too_few_steps_have_no_shares():
    assert measures.limit_shares(ROBOT, joints_of(np.zeros(3))) is None


def test_a_jump_at_rest_is_a_flip():
    path = np.zeros(SAMPLES + 1)
    path[50:] = 2.0
    targets = np.tile(tool_path(ROBOT, ROBOT.home[None]), (SAMPLES, 1))

    assert measures.count_flips(ROBOT, targets, joints_of(path)) == 1


def test_a_jump_with_the_target_is_no_flip():
    path = np.zeros(SAMPLES + 1)
    path[51:] = 2.0
    joints = joints_of(path)

    assert measures.count_flips(ROBOT, tool_path(ROBOT, joints[1:]), joints) == 0


def test_drift_is_measured_between_ends_of_laps():
    joints = joints_of(np.linspace(0.0, 0.4, 41))

    # The first lap ends at sample 10 with 0.1, the last at sample 40 with 0.4.
    assert measures.measure_drift(joints, 10) == pytest.approx(0.3)


def test_an_unfinished_second_lap_has_no_drift():
    assert measures.measure_drift(joints_of(np.zeros(15)), 10) is None


def test_the_lag_is_the_shift():
    times = PERIOD * np.arange(SAMPLES)
    ideal = tool_path(ROBOT, joints_of(0.1 * np.sin(8.0 * times)))
    late = tool_path(ROBOT, joints_of(0.1 * np.sin(8.0 * (times - 0.02))))

    assert measures.measure_lag(PERIOD, ideal, late) == pytest.approx(0.02, abs=1e-3)


def test_chatter_counts_out_of_reach_alone():
    path = np.zeros(SAMPLES + 1)
    path[101::2] = 1e-3
    in_reach = np.ones(SAMPLES, dtype=bool)
    in_reach[120:] = False

    chatter = measures.measure_chatter(ROBOT, joints_of(path), in_reach)

    # Each period the joint goes 1 mrad forth or back: an acceleration of 2 mrad / period^2.
    acceleration = 2e-3 / PERIOD**2
    expected = acceleration / ROBOT.max_acceleration / np.sqrt(ROBOT.n)
    assert chatter == pytest.approx(expected)


def test_a_reachable_motion_has_no_chatter():
    in_reach = np.ones(SAMPLES, dtype=bool)

    assert measures.measure_chatter(ROBOT, joints_of(np.zeros(SAMPLES + 1)), in_reach) is None


def test_the_worst_moment_shows_the_largest_error():
    targets = np.tile(tool_path(ROBOT, ROBOT.home[None]), (SAMPLES, 1))
    tool = targets.copy()
    tool[130, 2] += 0.05

    worst = measures.cut_worst_moment(PERIOD, targets, tool)

    assert worst.time_s == pytest.approx(130 * PERIOD)
    assert len(worst.times_s) <= measures.MAX_WORST_SAMPLES
    heights = np.array(worst.tool_m)[:, 2] - np.array(worst.target_m)[:, 2]
    assert heights.max() == pytest.approx(0.05, abs=1e-6)


def test_errors_are_distances_and_angles():
    errors = np.zeros((4, 6))
    errors[0, :3] = (0.003, 0.004, 0.0)
    errors[1, 3:] = (0.0, 0.0, 0.2)

    summary = measures.summarize_errors(errors)

    assert summary.max_m == pytest.approx(0.005)
    assert summary.rms_m == pytest.approx(0.0025)
    assert summary.max_rad == pytest.approx(0.2)
    assert summary.rms_rad == pytest.approx(0.1)


def test_position_limits_are_exceeded_by_the_rest():
    joints = joints_of(np.zeros(3))
    joints[1, 2] = ROBOT.position_max[2] + 0.25

    assert measures.excess_over_position_limits(ROBOT, joints) == pytest.approx(0.25)
