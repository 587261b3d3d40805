"""An arm with the kinematics of one very specimen, its links on the nominal frames.

A table of Denavit-Hartenberg parameters has to put each joint's frame where the common normal of two axes begins. The
shoulder's, elbow's and first wrist axis of a real arm are parallel but for a few milliradians: their common normals are
hundreds of metres away. Along and about a joint's own axis its frame is free, though: T_i = (A_i R(q_i) A_i^-1) T_i
for every A_i that slides along and turns about that axis. So each frame is brought back to where the nominal arm has
it, and neither the axes nor the tool move by more than rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot.dh import DhTable, nominal_dh, with_dh
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# URSim tells the nominal table with nine digits.
_SAME = 1e-9
# Specimens of a model differ by a few mm and mrad; another model's table is farther off.
_FARTHEST = 0.03  # m
_MAX_TURNED = 0.1  # rad


@dataclass(frozen=True)
class Deviation:
    """How a frame stands in the one before it, compared with the nominal arm.

    Attributes:
        name: The joint's, or "tool0".
        distance: Of the origins, m.
        angle: Between the orientations, rad.
    """

    name: str
    distance: float
    angle: float


def calibrated(robot: Robot, table: DhTable) -> Robot:
    """The arm with its axes and flange where the table says, and its links where the nominal arm has them.

    Shapes, masses and joint limits stay as they are, in frames within a few mm of the nominal ones; so do `home` and
    `built`, which are joint positions. Joint positions mean the same as to the controller that told the table.

    Args:
        robot: The nominal arm.
        table: Its controller's; d2 to d4 may be far away. One that is nominal to the ninth digit gives `robot` itself.

    Raises:
        InvalidParameter: The table is not for this model, or not for as many revolute joints, or the arm has another.
    """
    if robot.calibration == table:
        return robot
    if robot.calibration is not None:
        raise InvalidParameter("robot", "calibrated already", "given with its nominal kinematics")
    rows = len(table.d)
    if rows != robot.n or robot.prismatic.any():
        raise InvalidParameter("kinematic table", f"for {rows} joints", f"for the {robot.n} joints of {robot.name}")
    if _nearly_equal(table, nominal_dh(robot)):
        return robot
    nominal = _chain(robot)
    # The table begins in the base; a URDF's first joint may stand above it.
    first = replace(robot.joints[0], placement=nominal[0] * _along_z(nominal[0].inverse().translation[2]))
    told = _chain(with_dh(replace(robot, joints=(first, *robot.joints[1:])), table))
    placements, back = [], pin.SE3.Identity()
    for i in range(robot.n):
        here = back * told[i]
        slide = _along_z(float(here.rotation[:, 2] @ (nominal[i].translation - here.translation)))
        anchor = slide * _about_z(_turn(slide.inverse() * told[i + 1], nominal[i + 1]))
        placements.append(here * anchor)
        back = anchor.inverse()
    joints = tuple(replace(joint, placement=p) for joint, p in zip(robot.joints, placements, strict=True))
    arm = replace(robot, joints=joints, tool0=back * told[-1], calibration=table)
    worst = max(deviations(robot, arm), key=lambda found: max(found.distance / _FARTHEST, found.angle / _MAX_TURNED))
    if worst.distance > _FARTHEST or worst.angle > _MAX_TURNED:
        raise InvalidParameter(
            "kinematic table",
            f"{worst.distance * 1e3:.0f} mm and {np.degrees(worst.angle):.1f} degrees off at {worst.name}",
            f"that of a {robot.title or robot.name}, within {_FARTHEST * 1e3:.0f} mm of the nominal one",
        )
    return arm


def deviations(nominal: Robot, other: Robot) -> tuple[Deviation, ...]:
    """How an arm differs from another of its model: a line a joint, then tool0, each seen from the joint before it."""
    names = (*nominal.joint_names, "tool0")
    apart = [one.inverse() * two for one, two in zip(_chain(nominal), _chain(other), strict=True)]
    return tuple(
        Deviation(name, float(np.linalg.norm(frame.translation)), float(np.linalg.norm(pin.log3(frame.rotation))))
        for name, frame in zip(names, apart, strict=True)
    )


def _nearly_equal(table: DhTable, other: DhTable) -> bool:
    return all(
        np.allclose(getattr(table, row), getattr(other, row), rtol=0.0, atol=_SAME)
        for row in ("theta", "a", "d", "alpha")
    )


def _chain(robot: Robot) -> list[pin.SE3]:
    return [*(joint.placement for joint in robot.joints), robot.tool0]


def _along_z(distance: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([0.0, 0.0, distance]))


def _about_z(angle: float) -> pin.SE3:
    return pin.SE3(pin.utils.rotate("z", angle), np.zeros(3))


def _turn(onward: pin.SE3, nominal: pin.SE3) -> float:
    """By how much a link is turned about its joint's axis, seen by where the next axis leaves it, rad.

    Args:
        onward, nominal: The next frame, as it is (anywhere on its axis) and as the nominal arm has it.
    """
    axis, nominal_axis = onward.rotation[:, 2], nominal.rotation[:, 2]
    if np.hypot(*nominal_axis[:2]) > 0.5:
        return _angle(nominal_axis, axis)
    if np.hypot(*nominal.translation[:2]) > 1e-3:
        # Nearly parallel axes: where the next one passes at the nominal height.
        rise = (nominal.translation[2] - onward.translation[2]) / axis[2]
        return _angle(nominal.translation, onward.translation + rise * axis)
    turned = onward.rotation @ nominal.rotation.T
    return float(np.arctan2(turned[1, 0] - turned[0, 1], turned[0, 0] + turned[1, 1]))


def _angle(start: Array, end: Array) -> float:
    """From one vector to another, both seen along z, rad."""
    return float(np.arctan2(start[0] * end[1] - start[1] * end[0], start[:2] @ end[:2]))
