"""Lines that pass close to the singularities of an arm with the structure of UR's.

Exactly through a singularity the joints of a six-joint arm may move on smoothly; close to it they
have to turn far over a short distance. So each line passes through the pose of joint positions
*next to* the singular ones with a constant tool orientation, and is closest to the singularity in
its middle (wrist, shoulder) or at its end (elbow). The joints are: 1 base, 2 shoulder, 3 elbow, 4
to 6 wrist; joint i turns about the z axis of its own frame. The functions return the first and the
last pose (7,). They raise InvalidParameter for an arm that has another structure or is too short,
and for a parameter that is not positive.
"""

from __future__ import annotations

import math

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot import chain
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.parameters import check_positive

# Postures of joint 2 among which the shoulder's singularity is searched for, and bisections between
# two of them.
SEARCHED_POSTURES = 64
BISECTIONS = 60


def wrist_line(robot: Robot, length: float, near: float = 0.05) -> tuple[Array, Array]:
    """Return a line past the wrist singularity: joints 4 and 6 turn about parallel axes.

    That is where wrist 2 (joint 5) is zero.

    Args:
        robot: The arm.
        length: Length of the line, m.
        near: Joint 5 in the middle of the line, rad.
    """
    _check(robot, length, near)
    q = robot.home.copy()
    q[4] = math.copysign(near, q[4])
    middle = tool_path(robot, q[None])[0]

    # The direction of the tool when the base turns: it turns joint 5's axis past the singular
    # direction.
    origins, _ = _joint_frames(robot, q)
    return _line_about(middle, _horizontal_across(middle[:3] - origins[0]), length)


def shoulder_line(robot: Robot, length: float, near: float = 0.05) -> tuple[Array, Array]:
    """Return a line past the shoulder singularity: the wrist is above or below joint 1's axis.

    The tool points upwards.

    Args:
        robot: The arm.
        length: Length of the line, m.
        near: Distance of the wrist from its singular position in the middle of the line, m.
    """
    _check(robot, length, near)
    # Joint 4 turns the tool upwards, away from the upper arm.
    tool_elevation = robot.home[1:4].sum() + math.pi
    home_origins, _ = _joint_frames(robot, robot.home)

    def posture(shoulder: float) -> Array:
        """Return home with joint 2 at an angle, rad, and the tool upwards."""
        q = robot.home.copy()
        q[1] = shoulder
        q[3] = math.remainder(tool_elevation - shoulder - q[2], 2.0 * math.pi)
        return q

    def distance_ahead(shoulder: float) -> float:
        """Return how far the wrist is ahead of where it should be, m."""
        origins, axes = _joint_frames(robot, posture(shoulder))
        forward = np.cross(axes[1], axes[0])
        forward *= math.copysign(1.0, forward @ (home_origins[5] - origins[0]))
        return float(forward @ (origins[5] - origins[0])) - near

    # From home, joint 2 leans back until the wrist is there.
    shoulders = robot.home[1] - np.linspace(0.0, math.pi, SEARCHED_POSTURES)
    is_behind = np.array([distance_ahead(shoulder) for shoulder in shoulders]) < 0.0
    if is_behind[0] or not is_behind.any():
        needed = "less than the distance of the wrist at home from the axis of joint 1, in m"
        raise InvalidParameter("near", near, needed)
    first_behind = int(np.argmax(is_behind))
    ahead = float(shoulders[first_behind - 1])
    behind = float(shoulders[first_behind])
    for _ in range(BISECTIONS):
        middle = 0.5 * (ahead + behind)
        if distance_ahead(middle) < 0.0:
            behind = middle
        else:
            ahead = middle

    q = posture(ahead)
    origins, _ = _joint_frames(robot, q)
    across = _horizontal_across(origins[5] - origins[0])
    return _line_about(tool_path(robot, q[None])[0], across, length)


def elbow_line(
    robot: Robot, length: float, near: float = 0.1, raised: float = 0.6
) -> tuple[Array, Array]:
    """Return a line outwards to the elbow singularity, where the arm is stretched out.

    Args:
        robot: The arm.
        length: Length of the line, m.
        near: Joint 3 at its end, rad.
        raised: Elevation of the stretched arm above the horizontal, rad.
    """
    _check(robot, length, near)
    q = robot.home.copy()
    q[1] = -raised
    q[2] = math.copysign(near, q[2])
    q[3] = math.remainder(robot.home[1:4].sum() - q[1] - q[2], 2.0 * math.pi)

    end = tool_path(robot, q[None])[0]
    origins, _ = _joint_frames(robot, q)
    outwards = origins[3] - origins[1]
    start = _shift(end, -length * outwards / np.linalg.norm(outwards))
    return start, end


def _check(robot: Robot, length: float, near: float) -> None:
    if robot.n != 6 or robot.prismatic.any():
        needed = "an arm of six revolute joints with the kinematic structure of UR's arms"
        raise InvalidParameter("robot", robot.name, needed)
    check_positive(length=length, near=near)


def _joint_frames(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Return origins, m, and axes (n, 3) of the joints in base_link."""
    frames = chain.frames(
        robot.placements.tolist(), robot.prismatic, q.tolist(), chain.cosine_and_sine
    )
    return np.array(frames.origins), np.array(frames.axes)


def _horizontal_across(radius: Array) -> Array:
    """Return the horizontal unit vector (3,) at right angles to a radius from the base's axis."""
    return np.array([-radius[1], radius[0], 0.0]) / math.hypot(radius[0], radius[1])


def _shift(pose: Array, offset: Array) -> Array:
    """Return the pose (7,) shifted by (3,), m."""
    return np.concatenate([pose[:3] + offset, pose[3:]])


def _line_about(middle: Array, direction: Array, length: float) -> tuple[Array, Array]:
    """Return the ends of a line about its middle (7,), along a unit vector (3,)."""
    start = _shift(middle, -0.5 * length * direction)
    end = _shift(middle, 0.5 * length * direction)
    return start, end
