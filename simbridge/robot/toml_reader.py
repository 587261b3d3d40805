"""Read an arm from its TOML (robots/README.md explains the format)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.files.toml_file import TomlFile
from simbridge.robot.inertia import inertia_fault, inertia_tensor
from simbridge.robot.parts import Joint, Link, Shape
from simbridge.robot.pose import Array, read_only, snap_right_angles
from simbridge.robot.robot import Robot
from simbridge.robot.robot_file import (
    COLORS,
    LinkTable,
    RobotFile,
    ShapeTable,
    read_robot_file,
    with_lengths,
)


def read_toml(path: Path, lengths: Sequence[float] | None = None) -> Robot:
    """Read one arm.

    Args:
        path: The file.
        lengths: Link lengths of a planar arm (n,) in m, instead of the file's.

    Raises:
        InputFileError: The file cannot be read, or a field is missing or wrong; names the field.
        InvalidParameter: The lengths do not suit the arm.
    """
    body_file, data = read_robot_file(path)
    _check_inertias(body_file, data)
    if lengths is not None:
        data = with_lengths(data, lengths)

    kinematics = data.kinematics
    limits = data.limits
    joints = []
    links = []
    # Pose of the next joint, in the frame of the one before it.
    base_rotation = snap_right_angles(pin.rpy.rpyToMatrix(np.array(kinematics.base_rpy)))
    placement = pin.SE3(base_rotation, np.zeros(3))
    dh_rows = zip(kinematics.d, kinematics.a, kinematics.alpha, strict=True)
    for i, (d, a, alpha) in enumerate(dh_rows):
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
        links.append(_link(data.links[i], d))
        # T_i = Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i): all but the first factor is fixed.
        placement = pin.SE3(snap_right_angles(pin.utils.rotate("x", alpha)), np.array([a, 0.0, d]))

    return Robot(
        name=path.stem,
        title=data.title,
        series=data.controller.series,
        ur_model=data.controller.model,
        period=data.controller.period,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=_shapes(data.base.shapes),
        tool0=placement,
        home=read_only(data.home),
        max_velocity_jump=limits.velocity_jump,
        max_acceleration=limits.acceleration,
        max_tool_speed=limits.tool_speed,
        task=data.task,
        source=path.resolve(),
    )


def _check_inertias(file: TomlFile, data: RobotFile) -> None:
    """Refuse a link's tensor of inertia that no body has, or that is not positive definite."""
    for i, link in enumerate(data.links):
        tensor = _tensor(link)
        fault = inertia_fault(tensor)
        if fault is None and np.linalg.eigvalsh(tensor)[0] <= 0.0:
            fault = "the inertia tensor is not positive definite"
        if fault is not None:
            file.refuse(f"links[{i}].inertia", fault)


def _tensor(link: LinkTable) -> Array:
    """Return a link's tensor of inertia (3, 3), kg m^2, in the axes of the file."""
    moments = link.inertia
    return inertia_tensor(
        xx=moments.ixx,
        xy=moments.ixy,
        xz=moments.ixz,
        yy=moments.iyy,
        yz=moments.iyz,
        zz=moments.izz,
    )


def _link(link: LinkTable, d: float) -> Link:
    """Return a link of the file.

    Published masses and shapes are given where Rz(theta_i) Tz(d_i) leads: the link frame of the ROS
    descriptions.

    Args:
        link: Table of the link.
        d: Offset d of its row of the Denavit-Hartenberg table, m.
    """
    frame = pin.SE3(np.eye(3), np.array([0.0, 0.0, d]))
    turn = snap_right_angles(pin.rpy.rpyToMatrix(np.array(link.inertia_rpy)))
    tensor = turn @ _tensor(link) @ turn.T
    inertia = pin.Inertia(link.mass, np.array(link.center_of_mass), tensor)
    return Link(link.name, frame, frame.act(inertia), _shapes(link.shapes))


def _shapes(shapes: Sequence[ShapeTable]) -> tuple[Shape, ...]:
    """Return the shapes of a link."""
    return tuple(
        Shape(
            kind=shape.kind,
            start=shape.start,
            end=shape.end,
            radius=shape.radius,
            color=COLORS[shape.color],
            solid=shape.solid,
        )
        for shape in shapes
    )
