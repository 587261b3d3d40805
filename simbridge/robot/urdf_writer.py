"""An arm as the URDF that PyBullet and viewers load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from simbridge.robot.parts import Joint, Link, Mesh, Shape

# PyBullet gives a link without inertial data a mass of 1 kg.
MASSLESS = (
    '<inertial><mass value="0"/>'
    '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
)
# A continuous joint is written with a range that no run can leave, rad.
FARTHEST_POSITION = 1e6


def urdf_text(
    name: str,
    base: Link,
    joints: Sequence[Joint],
    *,
    links: Sequence[Link],
    tool0: pin.SE3,
    tcp: pin.SE3,
) -> str:
    """Return an arm as URDF.

    The link frames are the joint frames, every joint's axis is z, inertias are along principal
    axes. Shapes are visual only: contact is excluded by the plan check before anything moves.

    Args:
        name: Name of the arm.
        base: The shapes and meshes of base_link.
        joints: n of them, from the base.
        links: n of them; the inertia of the last one includes the payload.
        tool0: The flange, in the last joint's frame.
        tcp: The tool centre point, in the last joint's frame.
    """
    lines = [
        f"<robot name={quoteattr(name)}>",
        f'<link name="base_link">{MASSLESS}',
        *_visuals(base),
        "</link>",
    ]
    parent = "base_link"
    for joint, link in zip(joints, links, strict=True):
        lines += [
            f"<link name={quoteattr(link.name)}>",
            _inertial(link.inertia),
            *_visuals(link),
            "</link>",
            *_joint_lines(joint, parent, link.name),
        ]
        parent = link.name

    for frame, placement in (("tool0", tool0), ("tcp", tcp)):
        lines += [
            f'<link name="{frame}">{MASSLESS}</link>',
            f'<joint name={quoteattr(f"{parent}-{frame}_fixed_joint")} type="fixed">',
            f'<parent link={quoteattr(parent)}/><child link="{frame}"/>'
            f"{_origin(placement)}</joint>",
        ]
    return "\n".join([*lines, "</robot>", ""])


def _joint_lines(joint: Joint, parent: str, child: str) -> list[str]:
    """Return the lines of a movable joint between two links."""
    low = max(joint.position_min, -FARTHEST_POSITION)
    high = min(joint.position_max, FARTHEST_POSITION)
    return [
        f'<joint name={quoteattr(joint.name)} type="{joint.kind}">',
        f"<parent link={quoteattr(parent)}/><child link={quoteattr(child)}/>",
        _origin(joint.placement),
        '<axis xyz="0 0 1"/>',
        f"<limit lower={_numbers((low,))} upper={_numbers((high,))}"
        f" velocity={_numbers((joint.max_velocity,))} effort={_numbers((joint.max_effort,))}/>",
        "</joint>",
    ]


def _numbers(values: Iterable[float]) -> str:
    """Return a quoted attribute of numbers, which read back to the same doubles."""
    return '"' + " ".join(repr(float(v)) for v in values) + '"'


def _origin(placement: pin.SE3) -> str:
    """Return an <origin>."""
    rpy = pin.rpy.matrixToRpy(placement.rotation)
    return f"<origin xyz={_numbers(placement.translation)} rpy={_numbers(rpy)}/>"


def _inertial(inertia: pin.Inertia) -> str:
    """Return an <inertial> in the principal axes: PyBullet keeps only a diagonal tensor."""
    moments, axes = np.linalg.eigh(inertia.inertia)
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] *= -1.0
    xx, yy, zz = (repr(float(moment)) for moment in moments)
    origin = _origin(pin.SE3(axes, inertia.lever))
    return (
        f"<inertial>{origin}<mass value={_numbers((inertia.mass,))}/>"
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def _visuals(link: Link) -> list[str]:
    """Return a <visual> for every shape and mesh of a link that is drawn."""
    visuals: list[str] = []
    for number, shape in enumerate(link.shapes):
        if shape.drawn:
            visuals += _shape_visuals(shape, link.placement, f"{link.name}_{number}")
    for number, mesh in enumerate(link.meshes):
        if mesh.drawn:
            visuals.append(_mesh_visual(mesh, link.placement, f"{link.name}_mesh_{number}"))
    return visuals


def _shape_visuals(shape: Shape, link_frame: pin.SE3, name: str) -> Iterator[str]:
    """Return a shape's cylinder and the balls at its ends: URDF itself knows no capsule."""
    frame, length = shape.axis_frame()
    radius = _numbers((shape.radius,))
    if length > 0.0:
        cylinder = f"<cylinder radius={radius} length={_numbers((length,))}/>"
        yield _visual(link_frame * frame, cylinder, name, shape.color)
    if shape.kind == "capsule":
        for end in (shape.start, shape.end):
            ball_frame = pin.SE3(np.eye(3), np.array(end))
            yield _visual(link_frame * ball_frame, f"<sphere radius={radius}/>", name, shape.color)


def _mesh_visual(mesh: Mesh, link_frame: pin.SE3, name: str) -> str:
    """Return a <visual> that names a mesh's file."""
    geometry = f"<mesh filename={quoteattr(str(mesh.file))} scale={_numbers(mesh.scale)}/>"
    return _visual(link_frame * mesh.placement, geometry, name, mesh.color)


def _visual(frame: pin.SE3, geometry: str, name: str, color: tuple[float, float, float]) -> str:
    """Return a <visual> with a material of a name and an opaque colour."""
    rgba = _numbers((*color, 1.0))
    material = f"<material name={quoteattr(name)}><color rgba={rgba}/></material>"
    return f"<visual>{_origin(frame)}<geometry>{geometry}</geometry>{material}</visual>"
