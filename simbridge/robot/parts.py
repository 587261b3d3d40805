"""The parts of an arm as plain data: joints, links, shapes and meshes, limits, and calibration."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array

ShapeKind = Literal["capsule", "cylinder"]

# Red, green, blue of shapes to which no colour is given.
COLOR = (0.75, 0.77, 0.80)


@dataclass(frozen=True)
class Shape:
    """A capsule (round ends beyond `start` and `end`) or a cylinder (flat ends at them) on a link.

    Attributes:
        kind: Which of both.
        start: One end of the axis (3,) in the link's frame, m.
        end: Other end of the shape's axis.
        radius: Radius, m.
        color: Red, green, blue in 0..1.
        solid: Whether it takes part in collision checks.
        drawn: Whether it is drawn.
    """

    kind: ShapeKind
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    color: tuple[float, float, float] = COLOR
    solid: bool = True
    drawn: bool = True

    def axis_frame(self) -> tuple[pin.SE3, float]:
        """Return the frame at the middle of the axis, and the axis' length.

        Returns:
            The frame, with z along the axis, in the link's frame; and the length, m.
        """
        start = np.array(self.start)
        end = np.array(self.end)
        z = np.array([0.0, 0.0, 1.0])

        length = float(np.linalg.norm(end - start))
        direction = (end - start) / length if length > 0.0 else z
        rotation = pin.Quaternion.FromTwoVectors(z, direction)
        return pin.SE3(rotation.toRotationMatrix(), 0.5 * (start + end)), length


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh on a link: its file is drawn, its convex hull takes part in collision checks.

    Attributes:
        file: STL, OBJ, DAE, or another format that trimesh reads.
        scale: Factors (3,) of its coordinates, which are in m.
        placement: Placement of the scaled mesh, in the link's frame.
        hull: Corners of its convex hull (K, 3) in the link's frame, m; None if it is only drawn.
        color: Red, green, blue in 0..1.
        drawn: Whether it is drawn.
    """

    file: Path
    scale: tuple[float, float, float]
    placement: pin.SE3
    hull: Array | None = None
    color: tuple[float, float, float] = COLOR
    drawn: bool = True


@dataclass(frozen=True)
class Joint:
    """A joint that turns about, or slides along, the z axis of its own frame.

    Attributes:
        name: Name of the joint.
        kind: Whether it turns or slides.
        placement: Joint frame at position zero, in the previous joint's frame (the first: in
            base_link).
        position_min: Lower limit, rad or m; infinite for a continuous joint.
        position_max: Upper limit, rad or m; infinite for a continuous joint.
        max_velocity: Largest velocity, rad/s or m/s.
        max_effort: Largest torque (N m) or force (N) of the joint.
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
        name: Name of the link.
        placement: The link's frame in the joint's frame; `shapes` are given in the link's frame.
        inertia: Mass (kg), centre of mass (m) and tensor (kg m^2), in the joint's frame.
        shapes: Shapes of the link, for drawing and for collision checks.
        meshes: Meshes for drawing and for collision checks.
    """

    name: str
    placement: pin.SE3
    inertia: pin.Inertia
    shapes: tuple[Shape, ...] = ()
    meshes: tuple[Mesh, ...] = ()


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Joint limits as a controller reports them.

    Attributes:
        position_min: Lower limits (n,), rad.
        position_max: Upper limits (n,), rad.
        max_velocity: Velocity limits (n,), rad/s.
        max_acceleration: Acceleration limits (n,), rad/s^2.
    """

    position_min: Array
    position_max: Array
    max_velocity: Array
    max_acceleration: Array


@dataclass(frozen=True)
class DhTable:
    """Standard (distal) Denavit-Hartenberg parameters, one row per joint.

    T_i = Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i).

    On a calibrated arm d2 and d3 can be hundreds of metres: the joint axes and the flange are
    right, the frames between them are far away.

    Attributes:
        theta: Offsets of the joint angles (n), rad.
        a: Lengths along x (n), m.
        d: Lengths along z (n), m.
        alpha: Angles about x (n), rad.
    """

    theta: tuple[float, ...]
    a: tuple[float, ...]
    d: tuple[float, ...]
    alpha: tuple[float, ...]

    def plus(self, differences: DhTable) -> DhTable:
        """Return the table with differences added to its rows."""
        columns = []
        for column, changes in zip(astuple(self), astuple(differences), strict=True):
            columns.append(tuple(x + change for x, change in zip(column, changes, strict=True)))
        return DhTable(*columns)


@dataclass(frozen=True)
class RosCalibration:
    """The joint frames of one individual arm, of the file my_robot_calibration.yaml.

    ROS's ur_calibration writes it.

    Attributes:
        frames: x, y, z (m), roll, pitch, yaw (rad) of each joint's frame at position zero in the
            previous joint's, a row a joint; the first in the pendant's base, ROS's
            base_link_inertia. The last joint's frame is tool0.
        hash: Hash of the file, "calib_" and a number: a C++ library's hash over the printed
            numbers, which only ROS's driver can compute again. "" if the file has none.
    """

    frames: tuple[tuple[float, float, float, float, float, float], ...]
    hash: str = ""
