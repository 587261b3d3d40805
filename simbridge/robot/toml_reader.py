"""Read a robot's TOML: strict, and every complaint names the field and its line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.robot.checks import checked_home, snapped
from simbridge.robot.link_lengths import with_lengths
from simbridge.robot.load import read_text
from simbridge.robot.robot import Joint, Link, Robot, Shape
from simbridge.robot.toml_checks import Checker, check_robot, inertia_matrix
from simbridge.robot.toml_decoding import decoded
from simbridge.robot.toml_format import COLORS, RobotFile, ShapeTable


def read_toml(path: Path, lengths: Sequence[float] | None = None) -> Robot:
    """Read one arm (see robots/README.md for the format).

    Args:
        path: The file.
        lengths: Of the links of a planar arm, m, in place of the file's.

    Raises:
        InputFileError: Names the field and the line at fault.
        InvalidParameter: The arm is not planar, or the lengths are not one positive number a link.
    """
    check = Checker(path, read_text(path))
    data = decoded(check, RobotFile)
    check_robot(check, data)
    return _robot(path, data if lengths is None else with_lengths(data, lengths))


def _shapes(shapes: Sequence[ShapeTable]) -> tuple[Shape, ...]:
    return tuple(Shape(s.kind, s.start, s.end, s.radius, COLORS[s.color], s.solid) for s in shapes)


def _robot(path: Path, data: RobotFile) -> Robot:
    kinematics, limits = data.kinematics, data.limits
    placement = pin.SE3(snapped(pin.rpy.rpyToMatrix(np.array(kinematics.base_rpy))), np.zeros(3))
    joints, links = [], []
    for i, (d, a, alpha) in enumerate(zip(kinematics.d, kinematics.a, kinematics.alpha, strict=True)):
        joints.append(
            Joint(
                name=kinematics.joint_names[i],
                kind="revolute",
                placement=placement,
                position_min=limits.position_min[i],
                position_max=limits.position_max[i],
                max_velocity=limits.velocity[i],
                max_effort=limits.effort[i],
            )
        )
        # Published masses and shapes are given where Rz(theta_i) Tz(d_i) leads: the link frame of the ROS descriptions.
        link = data.links[i]
        in_joint = pin.SE3(np.eye(3), np.array([0.0, 0.0, d]))
        turn = snapped(pin.rpy.rpyToMatrix(np.array(link.inertia_rpy)))
        body = pin.Inertia(link.mass, np.array(link.center_of_mass), turn @ inertia_matrix(link.inertia) @ turn.T)
        links.append(Link(link.name, in_joint, in_joint.act(body), _shapes(link.shapes)))
        # T_i = Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i): all but the first factor is fixed.
        twist = snapped(pin.utils.rotate("x", alpha))
        placement = pin.SE3(twist, np.array([a, 0.0, d]))
    return Robot(
        name=path.stem,
        title=data.title,
        series=data.controller.series,
        period=data.controller.period,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=_shapes(data.base.shapes),
        tool0=placement,
        home=checked_home(path, data.home, limits.position_min, limits.position_max, kinematics.joint_names),
        max_velocity_jump=limits.velocity_jump,
        max_acceleration=limits.acceleration,
        max_tool_speed=limits.tool_speed,
        task=data.task,
        source=path.resolve(),
    )
