"""URDF text of a robot, as PyBullet and viewers load it."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from simbridge.robot.parts import Joint, Link, Shape
from simbridge.robot.pose import Array

# PyBullet gives a link without inertial data a mass of 1 kg.
_MASSLESS = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'


def _numbers(values: Array | tuple[float, ...]) -> str:
    # repr of a double reads back to the same double.
    return '"' + " ".join(repr(float(v)) for v in values) + '"'


def _origin(placement: pin.SE3) -> str:
    rpy = pin.rpy.matrixToRpy(placement.rotation)
    return f"<origin xyz={_numbers(placement.translation)} rpy={_numbers(rpy)}/>"


def _inertial(inertia: pin.Inertia) -> str:
    # PyBullet keeps only a diagonal tensor: give it the principal axes.
    moments, axes = np.linalg.eigh(inertia.inertia)
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] *= -1.0
    xx, yy, zz = (repr(float(m)) for m in moments)
    return (
        f"<inertial>{_origin(pin.SE3(axes, inertia.lever))}<mass value={_numbers((inertia.mass,))}/>"
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def _visuals(shapes: tuple[Shape, ...], placement: pin.SE3, link: str) -> list[str]:
    # A capsule is written as a cylinder with a sphere at each end: URDF itself knows no capsule.
    parts = []
    for number, shape in enumerate(shapes):
        frame, length = shape.axis_frame()
        material = (
            f"<material name={quoteattr(f'{link}_{number}')}><color rgba={_numbers((*shape.color, 1.0))}/></material>"
        )
        bodies = [(frame, f"<cylinder radius={_numbers((shape.radius,))} length={_numbers((length,))}/>")]
        if shape.kind == "capsule":
            ball = f"<sphere radius={_numbers((shape.radius,))}/>"
            bodies = bodies if length > 0.0 else []
            bodies += [(pin.SE3(np.eye(3), np.array(end)), ball) for end in (shape.start, shape.end)]
        for at, geometry in bodies:
            parts.append(f"<visual>{_origin(placement * at)}<geometry>{geometry}</geometry>{material}</visual>")
    return parts


def _limit(low: float, high: float) -> str:
    # A continuous joint is written with a range that no run can leave.
    low, high = (max(low, -1e6), min(high, 1e6))
    return f"lower={_numbers((low,))} upper={_numbers((high,))}"


def urdf_text(
    name: str,
    base_shapes: tuple[Shape, ...],
    joints: Sequence[Joint],
    links: Sequence[Link],
    inertias: Sequence[pin.Inertia],
    tool0: pin.SE3,
    tcp: pin.SE3,
) -> str:
    """The arm as URDF: the link frames are the joint frames, every joint's axis is z, inertias along principal axes.

    Shapes are visual only: contact is excluded by the plan check before anything moves.

    Args:
        name: Of the robot.
        base_shapes: Shapes of the base, in base_link.
        joints, links: n of each.
        inertias: Of the links in their joints' frames (n), the payload included.
        tool0, tcp: Both in the last joint's frame.
    """
    lines = [f"<robot name={quoteattr(name)}>", f'<link name="base_link">{_MASSLESS}']
    lines += [*_visuals(base_shapes, pin.SE3.Identity(), "base_link"), "</link>"]
    parent = "base_link"
    for joint, link, inertia in zip(joints, links, inertias, strict=True):
        lines += [
            f"<link name={quoteattr(link.name)}>",
            _inertial(inertia),
            *_visuals(link.shapes, link.placement, link.name),
            "</link>",
            f'<joint name={quoteattr(joint.name)} type="{joint.kind}">',
            f"<parent link={quoteattr(parent)}/><child link={quoteattr(link.name)}/>",
            _origin(joint.placement),
            '<axis xyz="0 0 1"/>',
            f"<limit {_limit(joint.position_min, joint.position_max)}"
            f" velocity={_numbers((joint.max_velocity,))} effort={_numbers((joint.max_effort,))}/>",
            "</joint>",
        ]
        parent = link.name
    for frame, placement in (("tool0", tool0), ("tcp", tcp)):
        lines += [
            f'<link name="{frame}">{_MASSLESS}</link>',
            f'<joint name={quoteattr(f"{parent}-{frame}_fixed_joint")} type="fixed">',
            f'<parent link={quoteattr(parent)}/><child link="{frame}"/>{_origin(placement)}</joint>',
        ]
    return "\n".join([*lines, "</robot>", ""])
