"""Twists and jogs: each frame's own +x, the speed that was asked for, and the case that once stopped an arm."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot
from simbridge.servo.law import ServojLaw
from tests.sessions.trial import ROBOT, Given, engaged, pose_of, repeated, run

UR10 = load_robot("ur10")
# Base turned by pi about z; the tool of this posture points down and is turned.
FRAMES = {
    "base_link": np.eye(3),
    "base": np.diag([-1.0, -1.0, 1.0]),
    "tool": pin.Quaternion(pose_of(ROBOT.home)[3:]).matrix(),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_twist_moves_along_its_frames_own_x(frame):
    trace = run(engaged(), repeated("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 1.0, frame=frame), 1.0)
    way = trace.tool[-1, :3] - trace.tool[0, :3]
    assert way / np.linalg.norm(way) == pytest.approx(FRAMES[frame] @ [1.0, 0.0, 0.0], abs=1e-3)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_twist_turns_about_its_frames_own_x(frame):
    trace = run(engaged(), repeated("twist", [0, 0, 0, 0.3, 0, 0], 0.0, 0.6, frame=frame), 0.6)
    first, last = (pin.Quaternion(trace.tool[k, 3:]).matrix() for k in (0, -1))
    turn = pin.log3(last @ first.T)
    assert turn / np.linalg.norm(turn) == pytest.approx(FRAMES[frame] @ [1.0, 0.0, 0.0], abs=2e-3)
    assert trace.tool[-1, :3] == pytest.approx(trace.tool[0, :3], abs=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_twists_steady_speed_is_what_was_asked_with_every_solver(name):
    trace = run(
        engaged(UR10, name), repeated("twist", [0, 0.2, 0, 0, 0, 0.2], 0.0, 0.8), 0.8, robot=UR10
    )
    steady = slice(trace.at(0.4), None)
    assert trace.twist_speed[steady] == pytest.approx(0.2, rel=0.02)
    turn = pin.log3(
        pin.Quaternion(trace.tool[-1, 3:]).matrix()
        @ pin.Quaternion(trace.tool[trace.at(0.4), 3:]).matrix().T
    )
    assert turn[2] / (trace.times[-1] - trace.times[trace.at(0.4)]) == pytest.approx(0.2, rel=0.02)


def test_a_jogs_steady_speed_is_what_was_asked():
    wanted = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.6])
    trace = run(engaged(), repeated("jog", wanted, 0.0, 0.5), 0.5)
    assert trace.velocity[-100:] == pytest.approx(np.tile(wanted, (100, 1)), abs=1e-6)
    # As fast as the acceleration allows, and not faster than asked on the way.
    assert (np.abs(trace.velocity) <= np.abs(wanted) + 1e-9).all()


def test_a_twist_that_swings_the_wrist_keeps_the_arm_within_its_limits():
    # This twist once asked wrist_3 for 3.17 rad/s, until the controller stopped the arm.
    law = ServojLaw(0.002)
    trace = run(
        engaged(law=law), repeated("twist", [0, 0, 0, 3.0, 0, 3.0], 0.0, 1.6, frame="tool"), 1.6
    )
    arm = trace.arm(law)
    assert (np.abs(arm.qd) <= ROBOT.max_velocity).all()
    assert np.abs(arm.qdd).max() <= ROBOT.max_acceleration
    named = {name for k in range(len(trace.steps)) for name, _ in trace.names(k)}
    assert "joint_velocity" in named


def test_the_slider_scales_a_twist():
    trace = run(
        engaged(), repeated("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 1.0), 1.0, slider=lambda now: 0.3
    )
    assert trace.twist_speed[-100:] == pytest.approx(0.03, rel=0.01)
    assert trace.names(-1) == [("speed_slider", "")]
    assert trace.steps[-1].causes[0].text == "speed_slider 0.30"


def test_at_a_slider_of_zero_the_arm_holds_and_goes_on_when_it_rises():
    def slider(now):
        return 0.0 if 0.5 <= now < 1.2 else 1.0

    trace = run(engaged(), repeated("twist", [0.1, 0, 0, 0, 0, 0], 0.0, 2.0), 2.0, slider=slider)
    held = slice(trace.at(0.8), trace.at(1.2))
    assert not trace.velocity[held].any()
    assert trace.names(trace.at(1.0)) == [("speed_slider", "")]
    assert trace.twist_speed[-50:] == pytest.approx(0.1, rel=0.01)
    # The way of 0.2 s down and up at a constant rate, and none while it was held.
    assert trace.tool[-1, 0] - trace.tool[0, 0] == pytest.approx(
        0.1 * (0.5 + 0.125 + 0.125 + 0.55), rel=0.05
    )


def test_a_pose_is_followed_no_faster_than_the_slider_allows():
    goal = pose_of(ROBOT.home) + np.array([0, 0.4, 0, 0, 0, 0, 0])
    trace = run(
        engaged(max_jump=(1.0, 1.0)), [Given(at, "pose", goal) for at in np.arange(0, 1.5, 0.1)], 1.5,
        slider=lambda now: 0.1,
    )  # fmt: skip
    after = slice(trace.at(0.4), None)
    assert (np.abs(trace.velocity[after]) <= 0.1 * ROBOT.max_velocity).all()
    assert trace.twist_speed[after].max() <= 0.1 * ROBOT.max_tool_speed
