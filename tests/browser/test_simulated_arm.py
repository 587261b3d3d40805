"""The simulated arm that follows the goal on the studio's clock, repeatable to the bit."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.browser.setup import StudioSetup
from simbridge.browser.simulated_arm import SimulatedStudioArm
from simbridge.browser.view import PageView
from simbridge.recording.log_reader import read_log
from simbridge.robot.kinematics import tool_frame

pytestmark = pytest.mark.shares_setup


def shifted_tool(arm, shift):
    """The pose of the TCP, moved by a shift, m."""
    tool = tool_frame(arm.robot, arm.q)
    return pin.SE3(tool.rotation, tool.translation + np.array(shift))


@pytest.fixture(scope="module")
def arrived(tmp_path_factory):
    """An arm that rests at its goal, and the goal."""
    run = tmp_path_factory.mktemp("arrived") / "run"
    with SimulatedStudioArm(StudioSetup(), run) as arm:
        goal = shifted_tool(arm, [0.0, 0.1, -0.1])
        arm.goal = goal
        while not arm.resting and arm.time < 10.0:
            arm.advance(0.1)
        yield arm, goal


def test_it_goes_to_the_goal(arrived):
    arm, goal = arrived

    tool = tool_frame(arm.robot, arm.q)
    snapshot = arm.snapshot()

    assert np.allclose(tool.translation, goal.translation, atol=1e-4)
    assert snapshot.distance < 1e-4
    assert sum(snapshot.errors) < 5e-4


def test_its_clock_stands_at_the_goal(arrived):
    arm, _ = arrived
    rests = arm.resting
    before = arm.time

    arm.advance(1.0)

    assert rests
    assert arm.time == before


def test_it_begins_at_given_joints(tmp_path):
    q = StudioSetup().arm.home + 0.1

    with SimulatedStudioArm(StudioSetup(), tmp_path / "run", start=q) as arm:
        begin = arm.q
        arm.goal = tool_frame(arm.robot, q)
        arm.advance(0.5)
        end = arm.q

    assert np.allclose(begin, q, atol=1e-9)
    assert np.allclose(end, q, atol=1e-5)


def test_errors_lead_from_goal_to_arm(tmp_path):
    view = PageView()
    with SimulatedStudioArm(StudioSetup(), tmp_path / "run") as arm:
        arm.goal = shifted_tool(arm, [0.0, 0.3, 0.0])
        arm.advance(0.2)
        snapshot = arm.snapshot()
        arm.describe(snapshot, arm.goal, view)

    assert view.extrapolation.startswith("The servo law at gain 2000 is extrapolated")
    assert snapshot.distance <= sum(snapshot.errors) + 1e-12
    # The limiter holds back an arm that was given a leap.
    assert snapshot.errors[2] > 0.1


@pytest.mark.slow
def test_what_is_kept_repeats_to_the_bit(tmp_path, cli, short_pages):
    setup = StudioSetup(solver="damped-least-squares").with_value("servo_gain", 500.0)
    run = tmp_path / "run"
    again = tmp_path / "again"
    with SimulatedStudioArm(setup, run, start=setup.arm.home + 0.05) as arm:
        arm.goal = shifted_tool(arm, [0.05, 0.0, 0.0])
        arm.advance(0.2)
        arm.goal = shifted_tool(arm, [0.0, 0.05, 0.0])
        arm.advance(0.2)
    arm.report()

    answer = cli("run", run, "--plan", run, "--out", again)

    assert answer.status == 0
    before = read_log(run / "log.mcap")
    after = read_log(again / "log.mcap")
    count = len(before.setpoint)
    assert np.array_equal(before.setpoint, after.setpoint[:count])


def test_noise_moves_targets_and_not_the_goal(tmp_path):
    setup = StudioSetup().with_value("sample_noise", (0.002, 0.0))

    with SimulatedStudioArm(setup, tmp_path / "run") as arm:
        arm.goal = shifted_tool(arm, [0.0, 0.0, 0.0])
        arm.advance(0.5)
        snapshot = arm.snapshot()
        rests = arm.resting

    assert 0.0 < snapshot.errors[0] < 0.02
    assert not rests


@pytest.mark.slow
def test_at_a_lower_speed_it_takes_longer(tmp_path):
    def remaining(speed, out):
        with SimulatedStudioArm(StudioSetup(), tmp_path / out) as arm:
            arm.slow_down(speed)
            arm.goal = shifted_tool(arm, [0.0, 0.3, 0.0])
            arm.advance(0.3)
            return arm.snapshot().distance

    assert remaining(0.2, "slow") > remaining(1.0, "fast") + 0.05
