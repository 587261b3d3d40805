"""Lines that pass close by a singularity of a six-joint arm built like UR's, found from its kinematics.

Exactly through a singularity the joints of such an arm may move on evenly; it is just beside it that they have to turn
far within a short way. So each line is laid through the pose of joint positions *next to* the singular ones, with the
tool's orientation kept all along, and is closest to the singularity in its middle (wrist, shoulder) or at its end
(elbow). Joint i has the axis z of its own frame; the joints are: 1 base, 2 shoulder, 3 elbow, 4 to 6 wrist.
"""

from __future__ import annotations

import math

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.checks import check_positive


def wrist_line(robot: Robot, length: float, near: float = 0.05) -> tuple[Array, Array]:
    """A line past the wrist singularity, where joints 4 and 6 turn about parallel axes (wrist 2 at zero).

    Args:
        robot: The arm.
        length: Of the line, m.
        near: Joint 5 in the middle of the line, rad.

    Returns:
        The first and the last pose (7,).

    Raises:
        InvalidParameter: The arm is of another build, or a parameter is not positive.
    """
    _check_build(robot)
    check_positive(length=length, near=near)
    q = robot.home.copy()
    q[4] = math.copysign(near, q[4])
    middle = tool_path(robot, q[None])[0]
    # The way the tool goes when the base turns: it turns joint 5's axis past the singular direction.
    return _centred(middle, _across(middle[:3] - _frames(robot, q)[0][:3, 3]), length)


def shoulder_line(robot: Robot, length: float, near: float = 0.05) -> tuple[Array, Array]:
    """A line past the shoulder singularity, where the wrist stands over (or under) the axis of joint 1; tool upwards.

    Args:
        robot: The arm.
        length: Of the line, m.
        near: How far in front of the singular posture the wrist is in the middle of the line, m.

    Returns:
        The first and the last pose (7,).

    Raises:
        InvalidParameter: The arm is of another build, a parameter is not positive, or the arm is too short for it.
    """
    _check_build(robot)
    check_positive(length=length, near=near)
    # Turned over by joint 4, so that the tool keeps clear of the upper arm.
    turned = robot.home[1:4].sum() + math.pi

    def posture(lift: float) -> Array:
        q = robot.home.copy()
        q[1], q[3] = lift, math.remainder(turned - lift - q[2], 2.0 * math.pi)
        return q

    def ahead(lift: float) -> float:
        frames = _frames(robot, posture(lift))
        forward = np.cross(frames[1][:3, 2], frames[0][:3, 2])
        forward *= math.copysign(1.0, forward @ (_frames(robot, robot.home)[5] - frames[0])[:3, 3])
        return float(forward @ (frames[5] - frames[0])[:3, 3]) - near

    # From home joint 2 leans back until the wrist is there.
    lifts = robot.home[1] - np.linspace(0.0, math.pi, 64)
    signs = np.array([ahead(lift) for lift in lifts]) < 0.0
    if signs[0] or not signs.any():
        raise InvalidParameter("near", near, "less than the wrist's distance at home from the axis of joint 1, in m")
    at = int(np.argmax(signs))
    front, back = float(lifts[at - 1]), float(lifts[at])
    for _ in range(60):
        middle = 0.5 * (front + back)
        front, back = (front, middle) if ahead(middle) < 0.0 else (middle, back)
    q = posture(front)
    frames = _frames(robot, q)
    return _centred(tool_path(robot, q[None])[0], _across((frames[5] - frames[0])[:3, 3]), length)


def elbow_line(robot: Robot, length: float, near: float = 0.1, raised: float = 0.6) -> tuple[Array, Array]:
    """A line outwards to the elbow singularity, where upper arm and forearm are stretched out.

    Args:
        robot: The arm.
        length: Of the line, m.
        near: Joint 3 at the end of the line, rad.
        raised: How far the stretched arm points above the horizontal, rad.

    Returns:
        The first and the last pose (7,).

    Raises:
        InvalidParameter: The arm is of another build, or a parameter is not positive.
    """
    _check_build(robot)
    check_positive(length=length, near=near)
    q = robot.home.copy()
    q[1], q[2] = -raised, math.copysign(near, q[2])
    q[3] = math.remainder(robot.home[1:4].sum() - q[1] - q[2], 2.0 * math.pi)
    end = tool_path(robot, q[None])[0]
    frames = _frames(robot, q)
    outwards = (frames[3] - frames[1])[:3, 3]
    return _moved(end, -length * outwards / np.linalg.norm(outwards)), end


def _check_build(robot: Robot) -> None:
    if robot.n != 6 or robot.prismatic.any():
        raise InvalidParameter("robot", robot.name, "an arm of six revolute joints, built like those of UR")


def _frames(robot: Robot, q: Array) -> list[Array]:
    """The frames (4, 4) of the joints in base_link."""
    frame = np.eye(4)
    frames = []
    for placement, angle in zip(robot.placements[:-1], q, strict=True):
        turn = np.eye(4)
        turn[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        frame = frame @ placement @ turn
        frames.append(frame)
    return frames


def _across(radius: Array) -> Array:
    """The horizontal unit vector at right angles to a radius (3,) from the base's axis."""
    return np.array([-radius[1], radius[0], 0.0]) / math.hypot(radius[0], radius[1])


def _moved(pose: Array, by: Array) -> Array:
    return np.concatenate([pose[:3] + by, pose[3:]])


def _centred(middle: Array, along: Array, length: float) -> tuple[Array, Array]:
    return _moved(middle, -0.5 * length * along), _moved(middle, 0.5 * length * along)
