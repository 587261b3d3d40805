"""Orientation along a path, concatenated motions, the test cube and the lines past singularities."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot
from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.trajectory import (
    ConstantSpeed,
    IsoCube,
    LookAt,
    MinimumJerk,
    PathTangent,
    concatenate,
    dwell,
    move,
    paths,
    square,
    trace,
    wrist_line,
)

CIRCLE = paths.circle(0.1, (0.7, 0.0, 0.3))


def test_a_tangent_tool_looks_along_the_path_and_down() -> None:
    made = trace(CIRCLE, ConstantSpeed(0.1), orientation=PathTangent())
    q = made.poses[:, 3:]
    ahead = CIRCLE.tangent(np.clip(0.1 * made.times, 0.0, CIRCLE.length))
    np.testing.assert_allclose(pose.rotate(q, np.tile([1.0, 0, 0], (len(q), 1))), ahead, atol=1e-9)
    np.testing.assert_allclose(
        pose.rotate(q, np.tile([0, 0, 1.0], (len(q), 1))), [[0, 0, -1.0]] * len(q), atol=1e-9
    )
    assert np.sum(q[1:] * q[:-1], axis=1).min() > 0.99


def test_a_tool_towards_a_point_has_it_on_its_axis() -> None:
    point = np.array([0.7, 0.0, 0.1])
    made = trace(CIRCLE, ConstantSpeed(0.1), orientation=LookAt(point))
    seen = pose.rotate(pose.conjugate(made.poses[:, 3:]), point - made.poses[:, :3])
    np.testing.assert_allclose(seen[:, :2], 0.0, atol=1e-12)
    assert seen[:, 2].min() > 0.0


def test_a_path_along_the_approach_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="approach"):
        trace(
            paths.line((0.7, 0, 0.3), (0.7, 0, 0.2)), ConstantSpeed(0.1), orientation=PathTangent()
        )


def test_motions_are_concatenated_only_where_they_meet() -> None:
    one = square()
    both = concatenate(one, dwell(one.start, 1.0))
    assert both.duration == pytest.approx(one.duration + 1.0)
    with pytest.raises(InvalidParameter, match="50 mm"):
        concatenate(one, dwell(one.start + 0.05 * np.eye(7)[0], 1.0))


def test_the_test_poses_lie_in_the_inclined_plane_a_tenth_of_a_diagonal_from_its_corners() -> None:
    cube = IsoCube((0.7, 0.1, 0.4), 0.3)
    np.testing.assert_allclose((cube.points - cube.points[0]) @ cube.normal, 0.0, atol=1e-15)
    diagonal = 0.3 * np.sqrt(3.0)
    gaps = np.linalg.norm(cube.points[1:] - cube.corners[[0, 1, 6, 7]], axis=1)
    np.testing.assert_allclose(gaps, 0.1 * diagonal, rtol=1e-12)
    assert cube.line().length == pytest.approx(0.8 * diagonal)


@pytest.mark.parametrize("name", ["ur10", "ur10e"])
def test_the_middle_of_the_wrist_line_is_next_to_the_singularity(name: str) -> None:
    robot = load_robot(name)
    start, end = wrist_line(robot, 0.4, near=0.05)
    assert np.linalg.norm(end[:3] - start[:3]) == pytest.approx(0.4)
    model, data = robot.model, robot.model.createData()
    q = robot.home.copy()
    q[4] = -0.05
    pin.framesForwardKinematics(model, data, q)
    np.testing.assert_allclose(
        data.oMf[model.getFrameId("tcp")].translation, 0.5 * (start + end)[:3], atol=1e-9
    )


def test_a_move_rotates_in_proportion_to_the_distance() -> None:
    start = square().start
    end = start + 0.2 * np.eye(7)[0]
    end = np.concatenate([end[:3], pose.multiply(pose.quaternions([0, 0, 1.0]), start[3:])])
    made = move(start, end, MinimumJerk(0.1))
    turned = np.linalg.norm(pose.error(made.poses, start)[1], axis=1)
    np.testing.assert_allclose(
        turned, np.linalg.norm(made.poses[:, :3] - start[:3], axis=1) / 0.2, atol=1e-9
    )
