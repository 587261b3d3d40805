"""The description of a serial arm: joints, links, limits, and where the tool is.

A `Robot` is plain data. The compiled solvers read its chain, pinocchio's model and the URDF text that PyBullet loads
are made from it: there is no second source that could disagree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

if TYPE_CHECKING:
    from simbridge.robot.dh import DhTable


# m/s^2
G = 9.81


def _frozen(values: Iterable[float]) -> Array:
    array = np.array(list(values), dtype=float)
    array.setflags(write=False)
    return array


def _vector(name: str, values: ArrayLike) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise InvalidParameter(name, np.asarray(values).tolist(), "three finite numbers")
    return _frozen(vector)


@dataclass(frozen=True)
class Shape:
    """A capsule or a cylinder on a link.

    Attributes:
        kind: "capsule" (round ends beyond `start` and `end`) or "cylinder" (flat ends at them).
        start, end: Ends of the axis (3,) in m, in the link's frame.
        radius: In m.
        color: Red, green, blue in 0..1.
        solid: Whether it takes part in collision checks; a shape for the eye only is not solid.
    """

    kind: Literal["capsule", "cylinder"]
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    color: tuple[float, float, float] = (0.75, 0.77, 0.80)
    solid: bool = True


@dataclass(frozen=True)
class Joint:
    """A joint that turns about, or slides along, the z axis of its own frame.

    Attributes:
        name: As in the robot's TOML or URDF.
        kind: "revolute" or "prismatic".
        placement: Joint frame at position zero, in the frame of the joint before it (the first: in base_link).
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
        shapes: What it looks like, and what the collision check sees.
    """

    name: str
    placement: pin.SE3
    inertia: pin.Inertia
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Robot:
    """A serial arm of n joints from base_link to the TCP.

    Attributes:
        name: Its name in robots/, or the stem of its file.
        title: Its name for people.
        series: The controller's series ("CB3", "e-Series"), or "" when unknown.
        period: The controller's control period, s.
        joints, links: n of each; `links[i]` follows `joints[i]`.
        base_shapes: What stands still, in base_link.
        tool0: The flange, in the last joint's frame.
        tcp: The tool centre point, in tool0.
        payload: A point mass in kg that is part of the nominal model.
        payload_cog: Where it is (3,) in tool0, m; None at the TCP.
        gravity: Acceleration of free fall (3,) in base_link, m/s^2; not straight down where the arm hangs or leans.
        home: Joint positions (n,) in rad from which the first target of a plan is solved.
        built: Joint positions (n,) in rad at which links that touch are built that way; home by default.
        max_velocity_jump: Largest change of a joint's velocity between two periods, rad/s (ours, not UR's).
        max_acceleration: What the limiter plans with, rad/s^2 (ours: UR publishes no such limit).
        max_tool_speed: Largest speed of the TCP, m/s.
        task: How much of a target the arm is asked to attain: "pose", "axis" (the position, and where the tool's z axis
            points) or "position".
        source: The file it was read from.
        calibration: The table of this very arm that its chain is made of; None for the file's own chain.
    """

    name: str
    title: str
    series: str
    period: float
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    base_shapes: tuple[Shape, ...]
    tool0: pin.SE3
    home: Array
    max_velocity_jump: float = 1.0
    max_acceleration: float = 20.0
    max_tool_speed: float = 1.0
    built: Array | None = None
    tcp: pin.SE3 = field(default_factory=pin.SE3.Identity)
    payload: float = 0.0
    payload_cog: Array | None = None
    gravity: Array = field(default_factory=lambda: _frozen((0.0, 0.0, -G)))
    task: Literal["pose", "axis", "position"] = "pose"
    source: Path | None = None
    calibration: DhTable | None = None

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def position_min(self) -> Array:
        """Lower joint limits (n,), rad."""
        return _frozen(joint.position_min for joint in self.joints)

    @cached_property
    def position_max(self) -> Array:
        """Upper joint limits (n,), rad."""
        return _frozen(joint.position_max for joint in self.joints)

    @cached_property
    def max_velocity(self) -> Array:
        """Joint velocity limits (n,), rad/s."""
        return _frozen(joint.max_velocity for joint in self.joints)

    @cached_property
    def max_effort(self) -> Array:
        """Joint torque limits (n,), N m."""
        return _frozen(joint.max_effort for joint in self.joints)

    @cached_property
    def placements(self) -> Array:
        """The chain (n + 1, 4, 4): each joint's frame in the one before it, then the TCP in the last joint's frame.

        The TCP at joint positions q is the product of `placements[i] Rz(q[i])` over the joints, times `placements[n]`
        (`Tz(q[i])` for a prismatic joint).
        """
        chain = np.stack([joint.placement.homogeneous for joint in self.joints] + [(self.tool0 * self.tcp).homogeneous])
        chain.setflags(write=False)
        return chain

    @cached_property
    def prismatic(self) -> NDArray[np.bool_]:
        """Which joints slide (n,)."""
        mask = np.array([joint.kind == "prismatic" for joint in self.joints])
        mask.setflags(write=False)
        return mask

    @cached_property
    def planar(self) -> bool:
        """Whether every joint turns about a vertical axis, so that the tool stays in one horizontal plane."""
        return not self.prismatic.any() and bool(np.all(np.abs(self.placements[: self.n, 2, 2]) > 1.0 - 1e-9))

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over the kinematics (chain and joint kinds): equal checksums give equal poses."""
        return hashlib.sha256(self.placements.tobytes() + self.prismatic.tobytes()).hexdigest()

    @cached_property
    def reach(self) -> float:
        """An upper bound on the distance from the first joint to the TCP, m; infinite with an unlimited slide."""
        lengths = float(np.linalg.norm(self.placements[1:, :3, 3], axis=1).sum())
        slides = sum(max(abs(j.position_min), abs(j.position_max)) for j in self.joints if j.kind == "prismatic")
        return lengths + slides

    @cached_property
    def model(self) -> pin.Model:
        """The pinocchio model with frames base_link, every link, tool0 and tcp."""
        from simbridge.robot.model import pinocchio_model

        return pinocchio_model(self)

    @cached_property
    def urdf(self) -> str:
        """URDF text of the same arm, for PyBullet and viewers."""
        from simbridge.robot.urdf_writer import urdf_text

        return urdf_text(self)

    @cached_property
    def link_inertias(self) -> tuple[pin.Inertia, ...]:
        """The inertia of every link in its joint's frame, the payload included in the last."""
        inertias = [link.inertia for link in self.links]
        if self.payload:
            at = (self.tool0 * self.tcp).translation if self.payload_cog is None else self.tool0.act(self.payload_cog)
            inertias[-1] = inertias[-1] + pin.Inertia(self.payload, at, np.zeros((3, 3)))
        return tuple(inertias)

    def with_tcp(self, tcp: pin.SE3) -> Robot:
        """The same arm with another tool centre point, given in tool0."""
        return replace(self, tcp=tcp)

    def with_payload(self, mass: float, cog: ArrayLike | None = None) -> Robot:
        """The same arm carrying `mass` kg, known to its model.

        Args:
            mass: kg.
            cog: Where it is (3,) in tool0, m; at the TCP by default.

        Raises:
            InvalidParameter: A mass that is negative, or something that is not finite.
        """
        if not (np.isfinite(mass) and mass >= 0.0):
            raise InvalidParameter("payload", mass, "a mass in kg, not negative")
        return replace(self, payload=float(mass), payload_cog=None if cog is None else _vector("payload's centre", cog))

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same arm under another acceleration of free fall (3,) in base_link, m/s^2; its kinematics stay."""
        return replace(self, gravity=_vector("gravity", gravity))
