"""Sizes and lines fitted to an arm: the paper's motions, and lines past singularities.

Exactly through a singularity the joints of a six-joint arm may move on smoothly; close to it they have to turn far over
a short distance. So each line passes through the pose of joint positions *next to* the singular ones with a constant
tool orientation, and is closest to the singularity in its middle (wrist, shoulder) or at its end (elbow). The joints
are: 1 base, 2 shoulder, 3 elbow, 4 to 6 wrist; joint i turns about the z axis of its own frame. The functions for lines
return the first and the last pose (7,). They raise InvalidParameter for an arm that has another structure or is too
short, and for a parameter that is not positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot import chain
from simbridge.robot.kinematics import span, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.robot.workspace import CENTRE, TOOL_DOWN, whole_scale
from simbridge.trajectory.paths import check_positive

# UR's arms hold the flange at 0.56 to 0.59 of their span. An arm that stands upright or stretched at home counts as
# holding it at a share within these bounds.
_MIN_SHARE, _MAX_SHARE = 0.5, 0.75


@dataclass(frozen=True)
class PaperSize:
    """How large the paper's motions are on an arm, and where.

    Attributes:
        scale: Of all lengths and speeds; 1 on a UR10 and on larger arms, in steps of 0.05 below; at most 0.5 on a
            planar arm.
        centre: Of the square (3,), in base_link, m.
        up: 1, or 0 on an arm that cannot leave its plane.
        orientation: Of the tool (4,), downwards.
    """

    scale: float
    centre: tuple[float, float, float]
    up: float = 1.0
    orientation: tuple[float, ...] = tuple(TOOL_DOWN.tolist())

    @property
    def side(self) -> float:
        """Of the square, m."""
        return 0.4 * self.scale

    @property
    def speed(self) -> float:
        """Along the square, m/s."""
        return 0.2 * self.scale


def paper_size(robot: Robot) -> PaperSize:
    """The size that suits an arm: in proportion to the distance of the flange from the base at its file's home.

    That distance is bounded in proportion to the arm's span. A planar arm works around the flange at home, at half the
    size at most; any other in front of the base at CENTRE, multiplied by the scale. An arm whose file has no home works
    where that was found (`Robot.workspace`).
    """
    if robot.workspace is not None:
        own = robot.workspace
        return PaperSize(own.scale, own.centre, 0.0 if robot.planar else 1.0, own.orientation)
    # Of the arm's file, whatever home and tool are used.
    at = robot.home if robot.file_home is None else robot.file_home
    home = tool_path(robot.with_tcp(pin.SE3.Identity()), at[None])[0, :3]
    reach = span(robot)
    held = min(max(float(np.hypot(home[0], home[1])), _MIN_SHARE * reach), _MAX_SHARE * reach)
    # The short last link of a planar arm, free to turn, has to swing fast at the corners of a full-sized square.
    scale = whole_scale(held, 10 if robot.planar else 20)
    if robot.planar:
        return PaperSize(scale, tuple(home.tolist()), up=0.0)
    return PaperSize(scale, (CENTRE[0] * scale, CENTRE[1] * scale, CENTRE[2] * scale))


def wrist_line(robot: Robot, length: float, near: float = 0.05) -> tuple[Array, Array]:
    """A line past the wrist singularity, where joints 4 and 6 turn about parallel axes (wrist 2 at zero).

    `length` is that of the line, m, `near` joint 5 in its middle, rad.
    """
    _check(robot, length, near)
    q = robot.home.copy()
    q[4] = math.copysign(near, q[4])
    middle = tool_path(robot, q[None])[0]
    # The direction of the tool when the base turns: it turns joint 5's axis past the singular direction.
    return _centred(middle, _across(middle[:3] - _frames(robot, q)[0][0]), length)


def shoulder_line(robot: Robot, length: float, near: float = 0.05) -> tuple[Array, Array]:
    """A line past the shoulder singularity, where the wrist is above (or below) the axis of joint 1; tool upwards.

    `length` is that of the line, m, `near` the distance of the wrist from its singular position in its middle, m.
    """
    _check(robot, length, near)
    # Joint 4 turns the tool upwards, away from the upper arm.
    turned = robot.home[1:4].sum() + math.pi
    at_home, _ = _frames(robot, robot.home)

    def posture(lift: float) -> Array:
        q = robot.home.copy()
        q[1], q[3] = lift, math.remainder(turned - lift - q[2], 2.0 * math.pi)
        return q

    def ahead(lift: float) -> float:
        origins, axes = _frames(robot, posture(lift))
        forward = np.cross(axes[1], axes[0])
        forward *= math.copysign(1.0, forward @ (at_home[5] - origins[0]))
        return float(forward @ (origins[5] - origins[0])) - near

    # From home, joint 2 leans back until the wrist is there.
    lifts = robot.home[1] - np.linspace(0.0, math.pi, 64)
    signs = np.array([ahead(lift) for lift in lifts]) < 0.0
    if signs[0] or not signs.any():
        needed = "less than the distance of the wrist at home from the axis of joint 1, in m"
        raise InvalidParameter("near", near, needed)
    at = int(np.argmax(signs))
    front, back = float(lifts[at - 1]), float(lifts[at])
    for _ in range(60):
        middle = 0.5 * (front + back)
        front, back = (front, middle) if ahead(middle) < 0.0 else (middle, back)
    q = posture(front)
    origins, _ = _frames(robot, q)
    return _centred(tool_path(robot, q[None])[0], _across(origins[5] - origins[0]), length)


def elbow_line(
    robot: Robot, length: float, near: float = 0.1, raised: float = 0.6
) -> tuple[Array, Array]:
    """A line outwards to the elbow singularity, where upper arm and forearm are stretched out.

    `length` is that of the line, m, `near` joint 3 at its end, rad, and `raised` the elevation of the stretched arm
    above the horizontal, rad.
    """
    _check(robot, length, near)
    q = robot.home.copy()
    q[1], q[2] = -raised, math.copysign(near, q[2])
    q[3] = math.remainder(robot.home[1:4].sum() - q[1] - q[2], 2.0 * math.pi)
    end = tool_path(robot, q[None])[0]
    origins, _ = _frames(robot, q)
    outwards = origins[3] - origins[1]
    return _moved(end, -length * outwards / np.linalg.norm(outwards)), end


def _check(robot: Robot, length: float, near: float) -> None:
    if robot.n != 6 or robot.prismatic.any():
        needed = "an arm of six revolute joints with the kinematic structure of UR's arms"
        raise InvalidParameter("robot", robot.name, needed)
    check_positive(length=length, near=near)


def _frames(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Origins and axes (n, 3) of the joints in base_link."""
    at = chain.frames(robot.placements.tolist(), robot.prismatic, q.tolist(), chain.cosine_and_sine)
    return np.array(at.origins), np.array(at.axes)


def _across(radius: Array) -> Array:
    """The horizontal unit vector perpendicular to a radius (3,) from the base's axis."""
    return np.array([-radius[1], radius[0], 0.0]) / math.hypot(radius[0], radius[1])


def _moved(pose: Array, by: Array) -> Array:
    return np.concatenate([pose[:3] + by, pose[3:]])


def _centred(middle: Array, along: Array, length: float) -> tuple[Array, Array]:
    return _moved(middle, -0.5 * length * along), _moved(middle, 0.5 * length * along)
