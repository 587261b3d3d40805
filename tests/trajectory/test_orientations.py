"""Tool orientations along a path."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.trajectory import ConstantSpeed, LookAt, PathTangent, paths, trace

CIRCLE = paths.circle(0.1, (0.7, 0.0, 0.3))


def axes_of(quaternions: np.ndarray, axis: list[float]) -> np.ndarray:
    """Return the directions (K, 3) of a tool's axis."""
    return pose.rotate(quaternions, np.tile(axis, (len(quaternions), 1)))


def test_a_tangent_tool_looks_ahead_and_down() -> None:
    trajectory = trace(CIRCLE, ConstantSpeed(0.1), orientation=PathTangent())

    quaternions = trajectory.poses[:, 3:]
    tangents = CIRCLE.tangent(np.clip(0.1 * trajectory.times, 0.0, CIRCLE.length))
    down = [[0.0, 0.0, -1.0]] * len(quaternions)

    np.testing.assert_allclose(axes_of(quaternions, [1.0, 0.0, 0.0]), tangents, atol=1e-9)
    np.testing.assert_allclose(axes_of(quaternions, [0.0, 0.0, 1.0]), down, atol=1e-9)


def test_signs_of_quaternions_are_continuous() -> None:
    trajectory = trace(CIRCLE, ConstantSpeed(0.1), orientation=PathTangent())

    quaternions = trajectory.poses[:, 3:]

    assert np.sum(quaternions[1:] * quaternions[:-1], axis=1).min() > 0.99


def test_a_tool_points_at_its_target() -> None:
    point = np.array([0.7, 0.0, 0.1])

    trajectory = trace(CIRCLE, ConstantSpeed(0.1), orientation=LookAt(point))

    to_point = point - trajectory.poses[:, :3]

    in_tool = pose.rotate(pose.conjugate(trajectory.poses[:, 3:]), to_point)

    np.testing.assert_allclose(in_tool[:, :2], 0.0, atol=1e-12)
    assert in_tool[:, 2].min() > 0.0


def test_a_path_along_the_approach_is_refused() -> None:
    downwards = paths.line((0.7, 0, 0.3), (0.7, 0, 0.2))

    with pytest.raises(InvalidParameter, match="approach"):
        trace(downwards, ConstantSpeed(0.1), orientation=PathTangent())
