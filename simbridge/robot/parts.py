"""The parts of an arm as plain data: shapes, joints, links, joint limits and a Denavit-Hartenberg table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array


@dataclass(frozen=True)
class Shape:
    """A capsule or a cylinder on a link.

    Attributes:
        kind: "capsule" (round ends beyond `start` and `end`) or "cylinder" (flat ends at them).
        start, end: Ends of the axis (3,) in m, in the link's frame.
        radius: In m.
        color: Red, green, blue in 0..1.
        solid: Whether it takes part in collision checks; otherwise it is only drawn.
    """

    kind: Literal["capsule", "cylinder"]
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    color: tuple[float, float, float] = (0.75, 0.77, 0.80)
    solid: bool = True

    def axis_frame(self) -> tuple[pin.SE3, float]:
        """The frame at the middle of the axis with z along it, in the link's frame, and the axis' length in m."""
        start, end = np.array(self.start), np.array(self.end)
        length = float(np.linalg.norm(end - start))
        along = (end - start) / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
        rotation = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), along)
        return pin.SE3(rotation.toRotationMatrix(), 0.5 * (start + end)), length


@dataclass(frozen=True)
class Joint:
    """A joint that turns about, or slides along, the z axis of its own frame.

    Attributes:
        name: As in the robot's TOML or URDF.
        kind: "revolute" or "prismatic".
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
        name: As in the robot's TOML or URDF.
        placement: The link's frame in the joint's frame; `shapes` are given in the link's frame.
        inertia: Mass (kg), centre of mass (m) and tensor (kg m^2), in the joint's frame.
        shapes: For drawing and for collision checks.
    """

    name: str
    placement: pin.SE3
    inertia: pin.Inertia
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Joint limits as a controller reports them.

    Attributes:
        position_min, position_max: (n,), rad.
        max_velocity: (n,), rad/s.
        max_acceleration: (n,), rad/s^2.
    """

    position_min: Array
    position_max: Array
    max_velocity: Array
    max_acceleration: Array


@dataclass(frozen=True)
class DhTable:
    """Standard (distal) Denavit-Hartenberg parameters, a row a joint.

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
