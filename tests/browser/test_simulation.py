"""The arm that follows the goal: through a live session, on the studio's clock, repeatable to the bit."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.browser.setup import StudioSetup
from simbridge.browser.simulated_arm import SimulatedArm
from simbridge.browser.snapshot import out_of_reach
from simbridge.recording.log_reader import read_log
from simbridge.robot.kinematics import tool_frame


def moved(arm, shift):
    home = tool_frame(arm.robot, arm.q)
    return pin.SE3(home.rotation, home.translation + np.array(shift))


def test_it_goes_to_the_goal_and_then_its_clock_stands(tmp_path):
    with SimulatedArm(StudioSetup(), tmp_path / "run") as arm:
        goal = moved(arm, [0.0, 0.1, -0.1])
        arm.goal = goal
        while not arm.resting and arm.time < 10.0:
            arm.advance(0.1)
        assert arm.resting
        stands = arm.time
        arm.advance(1.0)
        assert arm.time == stands
        assert np.allclose(tool_frame(arm.robot, arm.q).translation, goal.translation, atol=1e-4)
        sample = arm.snapshot()
    assert sample.distance < 1e-4 and sum(sample.errors) < 5e-4


def test_it_begins_where_another_one_was(tmp_path):
    q = StudioSetup().arm.home + 0.1
    with SimulatedArm(StudioSetup(), tmp_path / "run", start=q) as arm:
        assert np.allclose(arm.q, q, atol=1e-9)
        arm.goal = tool_frame(arm.robot, q)
        arm.advance(0.5)
        assert np.allclose(arm.q, q, atol=1e-5)


def test_the_errors_of_the_sources_lead_from_the_goal_to_the_arm(tmp_path):
    with SimulatedArm(StudioSetup(), tmp_path / "run") as arm:
        arm.goal = moved(arm, [0.0, 0.3, 0.0])
        arm.advance(0.2)
        sample = arm.snapshot()
    assert sample.distance <= sum(sample.errors) + 1e-12
    assert sample.errors[2] > 0.1, "the limiter is what holds back an arm that was given a leap"


def test_what_is_kept_repeats_to_the_bit(tmp_path, cli, short_pages):
    setup = StudioSetup(solver="damped-least-squares").with_value("servo_gain", 500.0)
    with SimulatedArm(setup, tmp_path / "run", start=setup.arm.home + 0.05) as arm:
        arm.goal = moved(arm, [0.05, 0.0, 0.0])
        arm.advance(0.4)
        arm.goal = moved(arm, [0.0, 0.05, 0.0])
        arm.advance(0.6)
    arm.report()
    assert (
        cli("run", tmp_path / "run", "--plan", tmp_path / "run", "--out", tmp_path / "again").status
        == 0
    )
    before, after = (
        read_log(tmp_path / "run" / "log.mcap"),
        read_log(tmp_path / "again" / "log.mcap"),
    )
    count = len(before.setpoint)
    assert np.array_equal(before.setpoint, after.setpoint[:count])


def test_noise_moves_the_targets_and_not_the_goal(tmp_path):
    with SimulatedArm(
        StudioSetup().with_value("sample_noise", (0.002, 0.0)), tmp_path / "run"
    ) as arm:
        goal = moved(arm, [0.0, 0.0, 0.0])
        arm.goal = goal
        arm.advance(1.0)
        sample = arm.snapshot()
    assert 0.0 < sample.errors[0] < 0.02 and not arm.resting


def test_at_a_lower_speed_the_arm_takes_longer(tmp_path):
    def left(share, out):
        with SimulatedArm(StudioSetup(), tmp_path / out) as arm:
            arm.slow_down(share)
            arm.goal = moved(arm, [0.0, 0.3, 0.0])
            arm.advance(0.5)
            return arm.snapshot().distance

    assert left(0.2, "slow") > left(1.0, "fast") + 0.05


@pytest.mark.parametrize(("point", "left"), [([0.0, 1.7, 0.0], 0.2), ([0.5, 0.5, 0.0], 0.0)])
def test_a_point_beyond_the_arms_length_is_out_of_reach_by_the_difference(point, left):
    assert out_of_reach(StudioSetup("planar3r").arm, np.array(point)) == pytest.approx(left)
