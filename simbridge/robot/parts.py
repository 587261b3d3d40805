"""The parts of an arm as plain data, and as the URDF that PyBullet and viewers load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import quoteattr

import coal
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

ShapeKind = Literal["capsule", "cylinder"]

# Of an arm: movable joints, and shapes of all links together, at most.
MAX_JOINTS = 64
MAX_SHAPES = 1000
# Of shapes to which no colour is given.
COLOR = (0.75, 0.77, 0.80)
# Of a hull, at least, m.
_THICKNESS = 1e-3
# Published tensors are rounded: a moment may exceed the sum of the other two by this fraction.
_ROUNDING = 0.01
# PyBullet gives a link without inertial data a mass of 1 kg.
_MASSLESS = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'


@dataclass(frozen=True)
class Shape:
    """A capsule (round ends beyond `start` and `end`) or a cylinder (flat ends at them) on a link.

    Attributes:
        start, end: Ends of the axis (3,) in the link's frame, m.
        radius: m.
        color: Red, green, blue in 0..1.
        solid, drawn: Whether it takes part in collision checks, and whether it is drawn.
    """

    kind: ShapeKind
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    color: tuple[float, float, float] = COLOR
    solid: bool = True
    drawn: bool = True

    def axis_frame(self) -> tuple[pin.SE3, float]:
        """The frame at the middle of the axis with z along it, in the link's frame, and the axis' length in m."""
        start, end = np.array(self.start), np.array(self.end)
        length = float(np.linalg.norm(end - start))
        along = (end - start) / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
        rotation = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), along)
        return pin.SE3(rotation.toRotationMatrix(), 0.5 * (start + end)), length


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh on a link: its file is drawn, its convex hull takes part in collision checks.

    Attributes:
        file: STL, OBJ, DAE, or another format that trimesh reads.
        scale: Factors (3,) of its coordinates, which are in m.
        placement: Of the scaled mesh, in the link's frame.
        hull: Corners of its convex hull (K, 3) in the link's frame, m; None where it is only drawn.
        color: Red, green, blue in 0..1.
    """

    file: Path
    scale: tuple[float, float, float]
    placement: pin.SE3
    hull: NDArray[np.float64] | None = None
    color: tuple[float, float, float] = COLOR
    drawn: bool = True


@dataclass(frozen=True)
class Joint:
    """A joint that turns about, or slides along, the z axis of its own frame.

    Attributes:
        placement: Joint frame at position zero, in the previous joint's frame (the first: in base_link).
        position_min, position_max: rad or m; infinite for a continuous joint.
        max_velocity: rad/s or m/s.
        max_effort: N m or N.
    """

    name: str
    kind: Literal["revolute", "prismatic"]
    placement: pin.SE3
    position_min: float
    position_max: float
    max_velocity: float
    max_effort: float


@dataclass(frozen=True)
class Link:
    """The body that follows a joint.

    Attributes:
        placement: The link's frame in the joint's frame; `shapes` are given in the link's frame.
        inertia: Mass (kg), centre of mass (m) and tensor (kg m^2), in the joint's frame.
        shapes, meshes: For drawing and for collision checks.
    """

    name: str
    placement: pin.SE3
    inertia: pin.Inertia
    shapes: tuple[Shape, ...] = ()
    meshes: tuple[Mesh, ...] = ()


@dataclass(frozen=True)
class DhTable:
    """Standard (distal) Denavit-Hartenberg parameters, one row per joint.

    T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i).

    Attributes:
        theta: Offsets of the joint angles (n), rad.
        a, d: m. On a calibrated arm d2 and d3 can be hundreds of metres: the joint axes and the flange are right, the
            frames between them are far away.
        alpha: rad.
    """

    theta: tuple[float, ...]
    a: tuple[float, ...]
    d: tuple[float, ...]
    alpha: tuple[float, ...]


@dataclass(frozen=True)
class RosCalibration:
    """The joint frames of one individual arm as ROS's ur_calibration writes them, my_robot_calibration.yaml.

    Attributes:
        frames: x, y, z (m), roll, pitch, yaw (rad) of each joint's frame at position zero in the previous joint's, a
            row a joint; the first in the pendant's base, ROS's base_link_inertia. The last joint's frame is tool0.
        hash: The file's, "calib_" and a number: a C++ library's hash over the printed numbers, which only ROS's driver
            can compute again. "" where the file has none.
    """

    frames: tuple[tuple[float, float, float, float, float, float], ...]
    hash: str = ""


def convex_hull(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The corners (K, 3) of the convex hull of points (V, 3), m; a flat one is made so thick that it has an inside."""
    centred = vertices - vertices.mean(axis=0)
    normal = np.linalg.svd(centred, full_matrices=False)[2][-1]
    if np.ptp(centred @ normal) < _THICKNESS:
        half = 0.5 * _THICKNESS * normal
        vertices = np.concatenate([vertices - half, vertices + half])
    return np.array(coal_hull(vertices).points())


def coal_hull(vertices: NDArray[np.float64]) -> coal.ConvexBase:
    """The convex hull of points (V, 3), not all in one plane, as coal takes it."""
    points = coal.StdVec_Vec3s()
    for vertex in vertices:
        points.append(vertex)
    return coal.Convex.convexHull(points, True, "Qt")


def inertia_tensor(
    xx: float, xy: float, xz: float, yy: float, yz: float, zz: float
) -> NDArray[np.float64]:
    """The symmetric matrix (3, 3) of six moments of inertia."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_fault(inertia: ArrayLike) -> str | None:
    """Why no body can have this tensor (3, 3) in kg m^2 about its centre of mass; None if one can."""
    moments = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    listed = ", ".join(f"{moment:.4g}" for moment in moments)
    reason = f"no body has this inertia tensor: of its principal moments, {listed} kg m^2, one"
    if moments[0] < -1e-9 * abs(moments[2]):
        return f"{reason} is negative"
    if moments[2] > (1.0 + _ROUNDING) * (moments[0] + moments[1]):
        return f"{reason} exceeds the others' sum"
    return None


def _numbers(values: Iterable[float]) -> str:
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


def _visuals(
    shapes: tuple[Shape, ...], meshes: tuple[Mesh, ...], placement: pin.SE3, link: str
) -> list[str]:
    parts: list[str] = []

    def add(at: pin.SE3, geometry: str, name: str, color: tuple[float, float, float]) -> None:
        material = (
            f"<material name={quoteattr(name)}><color rgba={_numbers((*color, 1.0))}/></material>"
        )
        parts.append(
            f"<visual>{_origin(placement * at)}<geometry>{geometry}</geometry>{material}</visual>"
        )

    for number, shape in enumerate(shapes):
        if shape.drawn:
            name, (frame, length) = f"{link}_{number}", shape.axis_frame()
            # A capsule is written as a cylinder with a sphere at each end: URDF itself knows no capsule.
            if length > 0.0:
                cylinder = (
                    f"<cylinder radius={_numbers((shape.radius,))} length={_numbers((length,))}/>"
                )
                add(frame, cylinder, name, shape.color)
            for end in (shape.start, shape.end) if shape.kind == "capsule" else ():
                ball = f"<sphere radius={_numbers((shape.radius,))}/>"
                add(pin.SE3(np.eye(3), np.array(end)), ball, name, shape.color)
    for number, mesh in enumerate(meshes):
        if mesh.drawn:
            file = f"<mesh filename={quoteattr(str(mesh.file))} scale={_numbers(mesh.scale)}/>"
            add(mesh.placement, file, f"{link}_mesh_{number}", mesh.color)
    return parts


def urdf_text(
    name: str,
    base_shapes: tuple[Shape, ...],
    base_meshes: tuple[Mesh, ...],
    joints: Sequence[Joint],
    links: Sequence[Link],
    inertias: Sequence[pin.Inertia],
    tool0: pin.SE3,
    tcp: pin.SE3,
) -> str:
    """The arm as URDF: the link frames are the joint frames, every joint's axis is z, inertias along principal axes.

    Inertias are in the joints' frames, the payload included; tool0 and tcp in that of the last joint. Shapes are visual
    only: contact is excluded by the plan check before anything moves.
    """
    lines = [f"<robot name={quoteattr(name)}>", f'<link name="base_link">{_MASSLESS}']
    lines += [*_visuals(base_shapes, base_meshes, pin.SE3.Identity(), "base_link"), "</link>"]
    parent = "base_link"
    for joint, link, inertia in zip(joints, links, inertias, strict=True):
        # A continuous joint is written with a range that no run can leave.
        low, high = max(joint.position_min, -1e6), min(joint.position_max, 1e6)
        lines += [
            f"<link name={quoteattr(link.name)}>",
            _inertial(inertia),
            *_visuals(link.shapes, link.meshes, link.placement, link.name),
            "</link>",
            f'<joint name={quoteattr(joint.name)} type="{joint.kind}">',
            f"<parent link={quoteattr(parent)}/><child link={quoteattr(link.name)}/>",
            _origin(joint.placement),
            '<axis xyz="0 0 1"/>',
            f"<limit lower={_numbers((low,))} upper={_numbers((high,))}"
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
