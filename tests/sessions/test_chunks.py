"""Chunks with stamps ahead: followed in time, replaced without a jump, of poses or of joints; the preview."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.errors import InvalidParameter
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.servo.law import ServojLaw
from simbridge.sessions.inputs import Input, chunk_kind, chunk_values
from simbridge.sessions.spaces import POSES
from tests.sessions.trial import Given, engaged, moved, pose_of, run

ROBOT = load_robot("ur10")
HOME = pose_of(ROBOT.home, ROBOT)
AHEAD = np.linspace(0.0, 1.0, 11)


def place(at):
    """Where the tool is to be at a time, s: a smooth way along y."""
    s = np.clip(at / 2.0, 0.0, 1.0)
    return moved(HOME, 0.0, 0.2 * s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 0.0)


def chunk(now, stamps=AHEAD):
    return np.column_stack([stamps, [place(now + stamp) for stamp in stamps]])


def test_a_chunk_is_followed_at_its_stamps():
    trace = run(
        engaged(ROBOT),
        [Given(0.0, "follow", chunk(0.0, np.linspace(0.0, 2.0, 41)))],
        2.2,
        robot=ROBOT,
    )
    wanted = np.array([place(at) for at in trace.times])
    assert trace.tool[:, 1] == pytest.approx(wanted[:, 1], abs=1e-3)


def test_a_newer_chunk_replaces_what_is_left_without_a_jump():
    script = [Given(at, "follow", chunk(at)) for at in np.arange(0.0, 2.0, 0.2).tolist()]
    trace = run(engaged(ROBOT), script, 2.2, robot=ROBOT)
    wanted = np.array([place(at) for at in trace.times])
    assert trace.tool[:, 1] == pytest.approx(wanted[:, 1], abs=2e-3)
    # The corners of its straight parts, and no more than that.
    assert np.diff(trace.twist_speed).max() < 0.03


def test_a_chunk_that_begins_later_leads_there_in_a_straight_line():
    goal = moved(HOME, 0.0, 0.05, 0.0)
    trace = run(engaged(ROBOT), [Given(0.0, "follow", [[1.0, *goal]])], 1.2, robot=ROBOT)
    assert trace.tool[trace.at(0.5), 1] - HOME[1] == pytest.approx(0.025, abs=1e-3)
    assert trace.tool[-1] == pytest.approx(goal, abs=1e-6)


def test_a_chunk_of_joints_is_followed():
    goal = ROBOT.home + 0.2
    trace = run(
        engaged(ROBOT),
        [Given(0.0, "follow_joints", [[0.0, *ROBOT.home], [1.0, *goal]])],
        1.2,
        robot=ROBOT,
    )
    assert trace.setpoints[trace.at(0.5)] == pytest.approx(ROBOT.home + 0.1, abs=3e-3)
    assert np.array_equal(trace.setpoints[-1], goal)


def test_a_chunk_of_joints_after_one_of_poses_goes_on_from_the_setpoint():
    goal = ROBOT.home + 0.1
    script = [Given(0.0, "follow", chunk(0.0)), Given(0.5, "follow_joints", [[0.5, *goal]])]
    trace = run(engaged(ROBOT), script, 1.3, robot=ROBOT)
    assert np.array_equal(trace.setpoints[-1], goal)


@pytest.mark.parametrize("preview", [False, True])
def test_with_preview_the_predicted_arm_arrives_on_time(preview):
    law = ServojLaw(ROBOT.period)
    motion = engaged(ROBOT, law=law, preview=preview)
    trace = run(
        motion, [Given(0.0, "follow", chunk(0.0, np.linspace(0.0, 2.0, 41)))], 2.2, robot=ROBOT
    )
    # The state after the cycle of a command belongs to the next instant.
    arm = tool_path(ROBOT, trace.arm(law).q)[:-1, 1]
    late = arm - np.array([place(at)[1] for at in trace.times[1:]])
    lag = 0.0 if preview else law.lag
    assert np.abs(late).max() == pytest.approx(0.19 * lag, abs=2e-3)


def test_only_chunks_are_previewed():
    script = [Given(0.05 * k, "pose", place(0.05 * k)) for k in range(30)]
    with_it, without = (
        run(engaged(ROBOT, preview=preview), script, 1.6, robot=ROBOT) for preview in (True, False)
    )
    assert np.array_equal(with_it.setpoints, without.setpoints)


@pytest.mark.parametrize("times", [[-0.1, 0.5], [0.5, 0.1], [0.0], [0.0, np.inf], "soon"])
def test_stamps_that_are_past_or_do_not_increase_are_refused(times):
    with pytest.raises(InvalidParameter, match="increasing times in s from now"):
        chunk_values(times, [HOME, HOME], 6)


@pytest.mark.parametrize("targets", [None, 3.0, [], [[1.0, 2.0]]])
def test_what_is_no_chunk_is_refused(targets):
    assert chunk_kind(targets, 6) == "follow"
    with pytest.raises(InvalidParameter):
        chunk_values([0.0], targets, 6)


def test_with_seven_joints_numbers_are_joint_positions_and_se3_is_a_pose():
    joints = [np.linspace(0.0, 0.6, 7)]
    assert chunk_kind(joints, 7) == "follow_joints"
    assert chunk_values([0.5], joints, 7)[0, 1:] == pytest.approx(joints[0])
    poses = [pin.XYZQUATToSE3(HOME)]
    assert chunk_kind(poses, 7) == "follow"
    assert POSES.difference(chunk_values([0.5], poses, 7)[0, 1:], HOME) == pytest.approx(
        np.zeros(6), abs=1e-9
    )


@pytest.mark.parametrize("kind", ["follow", "follow_joints"])
def test_a_chunk_survives_the_mailbox(kind):
    given = Input(kind, np.arange(16.0).reshape(2, 8), 3, 2, sent=1.5)
    back = Input.of(given.row())
    assert np.array_equal(back.values, given.values)
    assert (back.kind, back.number, back.engagement, back.sent) == (kind, 3, 2, 1.5)


def test_a_chunk_that_ends_later_than_five_seconds_from_now_is_refused():
    with pytest.raises(InvalidParameter, match="at most 5 s"):
        chunk_values([0.5, 3600.0], [HOME, HOME], 6)


@pytest.mark.parametrize(
    "far", [np.array([0.0, 0.2, 0.0, 0, 0, 0, 0]), np.array([0.0, 0.0, -0.3, 0, 0, 0, 0])]
)
def test_a_chunk_with_a_jump_between_its_rows_is_refused_with_the_row(far):
    with pytest.raises(InvalidParameter, match="from row 1 to row 2"):
        chunk_values([0.1, 0.2, 0.3], [HOME, HOME, HOME + far], 6, (0.1, 0.5))
    assert len(chunk_values([0.1, 0.2], [HOME, HOME + 0.3 * far], 6, (0.1, 0.5))) == 2
