"""The description of a serial arm: joints, links, limits, and where the tool is.

A `Robot` is plain data. The compiled solvers read its chain; pinocchio's model and the URDF text
that PyBullet loads are generated from it, so there is no second source that could disagree.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter
from simbridge.robot import Task
from simbridge.robot.conversion import vector
from simbridge.robot.parts import DhTable, Joint, JointLimits, Link, Mesh, RosCalibration, Shape
from simbridge.robot.pose import Array, read_only
from simbridge.robot.urdf_writer import urdf_text
from simbridge.robot.workspace import Workspace

# Gravitational acceleration, m/s^2.
G = 9.81
# Names of a UR arm's joints in UR's own URDF, which may have a prefix.
UR_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)


@dataclass(frozen=True)
class Robot:
    """A serial arm of n joints from base_link to the TCP.

    Attributes:
        name: Name of the arm in robots/, or the stem of its file.
        title: Name of the arm for display.
        series: The controller's series ("CB3", "e-Series"), or "" when unknown.
        period: The controller's control period, s.
        joints: n of them, from the base.
        links: n of them; `links[i]` follows `joints[i]`.
        base_shapes: Shapes of the base, in base_link.
        tool0: The flange, in the last joint's frame.
        home: Joint positions (n,) in rad from which the first target of a plan is solved.
        max_velocity_jump: Largest change of a joint's velocity between two periods, rad/s (ours,
            not UR's).
        max_acceleration: Limit used by the limiter, rad/s^2 (ours: UR publishes no such limit).
        max_tool_speed: Largest speed of the TCP, m/s.
        file_home: The home of the robot's file (n,), rad, where another one is used; None: `home`.
            Links that touch there are meant to touch.
        tcp: The tool centre point, in tool0.
        payload: A point mass in kg that is part of the nominal model.
        payload_cog: Centre of gravity of the payload (3,) in tool0, m; None: at the TCP.
        gravity: Gravitational acceleration (3,) in base_link, m/s^2; not along -z where the arm
            hangs or is tilted.
        task: Which part of a target the arm attains: "pose", "axis" (position, and direction of the
            tool's z axis) or "position".
        source: The file it was read from.
        calibration: This arm's own Denavit-Hartenberg table or joint frames, from which its chain
            was made; None for the file's chain.
        base_meshes: Meshes of the base, in base_link.
        workspace: Size and place of the ready-made motions, found with the home of an arm whose
            file has none.
        base: The first link of the arm in its URDF, where one was given (see `load_robot`).
        tip: The last one, the same.
        packages: The packages with which its URDF was read, each NAME=DIR, the same.
        xacro_args: The arguments with which its xacro file was read, each NAME=VALUE.
        notes: What was decided when its file was read, as sentences.
        base_name: What the arm's URDF calls the link that is base_link here.
        ur_model: The model that its UR controller reports, such as "UR10e"; "" if its file names
            none.
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
    file_home: Array | None = None
    tcp: pin.SE3 = field(default_factory=pin.SE3.Identity)
    payload: float = 0.0
    payload_cog: Array | None = None
    gravity: Array = field(default_factory=lambda: read_only((0.0, 0.0, -G)))
    task: Task = "pose"
    source: Path | None = None
    calibration: DhTable | RosCalibration | None = None
    base_meshes: tuple[Mesh, ...] = ()
    workspace: Workspace | None = None
    base: str | None = None
    tip: str | None = None
    packages: tuple[str, ...] = ()
    xacro_args: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    base_name: str = "base_link"
    ur_model: str = ""

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the joints (n), from the base."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def position_min(self) -> Array:
        """Lower joint limits (n,), rad."""
        return read_only([joint.position_min for joint in self.joints])

    @cached_property
    def position_max(self) -> Array:
        """Upper joint limits (n,), rad."""
        return read_only([joint.position_max for joint in self.joints])

    @cached_property
    def max_velocity(self) -> Array:
        """Joint velocity limits (n,), rad/s."""
        return read_only([joint.max_velocity for joint in self.joints])

    @cached_property
    def max_effort(self) -> Array:
        """Joint torque limits (n,), N m."""
        return read_only([joint.max_effort for joint in self.joints])

    @cached_property
    def placements(self) -> Array:
        """The chain (n + 1, 4, 4).

        Each joint's frame in the one before it, then the TCP in the last joint's frame. The TCP at
        joint positions q is the product of `placements[i] Rz(q[i])` over the joints, times
        `placements[n]` (`Tz(q[i])` for a prismatic joint).
        """
        frames = [joint.placement for joint in self.joints]
        frames.append(self.tool0 * self.tcp)
        return read_only([frame.homogeneous for frame in frames])

    @cached_property
    def prismatic(self) -> NDArray[np.bool_]:
        """Mask of the joints that slide (n,)."""
        mask = np.array([joint.kind == "prismatic" for joint in self.joints])
        mask.setflags(write=False)
        return mask

    @cached_property
    def planar(self) -> bool:
        """True if every joint turns about a vertical axis: the tool stays in a horizontal plane."""
        if self.prismatic.any():
            return False
        vertical_parts = np.abs(self.placements[: self.n, 2, 2])
        return bool(np.all(vertical_parts > 1.0 - 1e-9))

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over the kinematics (chain and joint kinds): equal ones give equal poses."""
        return hashlib.sha256(self.placements.tobytes() + self.prismatic.tobytes()).hexdigest()

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 over all fields: arms with the same one are the same in everything."""
        content = [getattr(self, item.name) for item in fields(self)]
        return hashlib.sha256(pickle.dumps(content)).digest()

    @cached_property
    def arm_length(self) -> float:
        """Sum of the distances from joint to joint and to the TCP, m.

        It is an upper bound on the distance from the first joint to the TCP, longer than the reach
        in a data sheet. Infinite with an unlimited slide.
        """
        lengths = float(np.linalg.norm(self.placements[1:, :3, 3], axis=1).sum())
        slides = sum(
            max(abs(joint.position_min), abs(joint.position_max))
            for joint in self.joints
            if joint.kind == "prismatic"
        )
        return lengths + slides

    @cached_property
    def model(self) -> pin.Model:
        """The pinocchio model with frames base_link, every link, tool0 and tcp."""
        # Built joint by joint: no text, no rounding and no parser between the data and the model.
        model = pin.Model()
        model.name = self.name
        model.gravity = pin.Motion(self.gravity, np.zeros(3))

        # The indices of the last joint and of the last frame so far, to which the next is attached.
        # Joint 0 and frame 0 are pinocchio's universe.
        parent = 0
        base_frame = pin.Frame("base_link", 0, 0, pin.SE3.Identity(), pin.FrameType.BODY)
        frame = model.addFrame(base_frame)
        for joint, link, inertia in zip(self.joints, self.links, self.link_inertias, strict=True):
            kind = pin.JointModelPZ() if joint.kind == "prismatic" else pin.JointModelRZ()
            parent = model.addJoint(parent, kind, joint.placement, joint.name)

            q_index = model.idx_qs[parent]
            v_index = model.idx_vs[parent]
            model.lowerPositionLimit[q_index] = joint.position_min
            model.upperPositionLimit[q_index] = joint.position_max
            model.upperVelocityLimit[v_index] = joint.max_velocity
            model.lowerVelocityLimit[v_index] = -joint.max_velocity
            model.upperEffortLimit[v_index] = joint.max_effort
            model.lowerEffortLimit[v_index] = -joint.max_effort

            # The body behind the joint, whose inertia is given in the joint's frame.
            frame = model.addJointFrame(parent, frame)
            model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
            frame = model.addBodyFrame(link.name, parent, link.placement, frame)

        # Flange and TCP are fixed in the frame of the last joint.
        for name, placement in (("tool0", self.tool0), ("tcp", self.tool0 * self.tcp)):
            model.addFrame(pin.Frame(name, parent, frame, placement, pin.FrameType.OP_FRAME))
        return model

    @property
    def is_from_ur(self) -> bool:
        """True for an arm of Universal Robots, by its series or the names of its joints."""
        if self.series:
            return True
        if self.n != len(UR_JOINTS):
            return False
        pairs = zip(self.joint_names, UR_JOINTS, strict=True)
        return all(name.endswith(ur_name) for name, ur_name in pairs)

    @cached_property
    def urdf(self) -> str:
        """URDF text of the same arm, for PyBullet and viewers."""
        base = Link(
            name="base_link",
            placement=pin.SE3.Identity(),
            inertia=pin.Inertia.Zero(),
            shapes=self.base_shapes,
            meshes=self.base_meshes,
        )
        links = [
            replace(link, inertia=inertia)
            for link, inertia in zip(self.links, self.link_inertias, strict=True)
        ]
        tcp = self.tool0 * self.tcp
        return urdf_text(self.name, base, self.joints, links=links, tool0=self.tool0, tcp=tcp)

    @cached_property
    def link_inertias(self) -> tuple[pin.Inertia, ...]:
        """The inertia of every link in its joint's frame, the payload included in the last."""
        inertias = [link.inertia for link in self.links]
        if self.payload:
            if self.payload_cog is None:
                centre = (self.tool0 * self.tcp).translation
            else:
                centre = self.tool0.act(self.payload_cog)
            inertias[-1] = inertias[-1] + pin.Inertia(self.payload, centre, np.zeros((3, 3)))
        return tuple(inertias)

    def with_tcp(self, tcp: pin.SE3) -> Robot:
        """Return the same arm with another tool centre point, given in tool0."""
        return replace(self, tcp=tcp)

    def with_payload(self, mass: float, cog: ArrayLike | None = None) -> Robot:
        """Return the same arm with a payload in its model.

        Args:
            mass: Mass of the payload, kg.
            cog: Centre of gravity of the payload (3,) in tool0, m; at the TCP by default.

        Raises:
            InvalidParameter: The mass is negative, or the centre is not three finite numbers.
        """
        if not (np.isfinite(mass) and mass >= 0.0):
            raise InvalidParameter("payload", mass, "a non-negative mass in kg")
        centre = None if cog is None else read_only(vector("payload's centre", cog, 3))
        return replace(self, payload=float(mass), payload_cog=centre)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """Return the same arm under another gravitational acceleration (3,) in base_link, m/s^2.

        Its kinematics are the same.
        """
        return replace(self, gravity=read_only(vector("gravity", gravity, 3)))

    def with_limits(self, limits: JointLimits) -> Robot:
        """Return the same arm within its own limits and the controller's: the narrower of each.

        Args:
            limits: The limits that the controller reports.

        Raises:
            InvalidParameter: The limits are for another number of joints, leave a joint no range or
                no speed, or exclude the robot's home.
        """
        if len(limits.position_min) != self.n:
            count = f"{len(limits.position_min)} joints"
            raise InvalidParameter("limits", f"limits of {count}", f"those of {self.n} joints")

        joints = []
        for i, joint in enumerate(self.joints):
            low = max(joint.position_min, float(limits.position_min[i]))
            high = min(joint.position_max, float(limits.position_max[i]))
            velocity = min(joint.max_velocity, float(limits.max_velocity[i]))

            if not low <= self.home[i] <= high or not low < high:
                raise InvalidParameter(
                    f"controller's range of {joint.name}",
                    f"{limits.position_min[i]:.4g} to {limits.position_max[i]:.4g} rad",
                    f"a range that contains home, {self.home[i]:.4g} rad: choose another home "
                    "(--home), or widen the range at the pendant",
                )
            if not velocity > 0.0:
                name = f"controller's speed limit of {joint.name}"
                raise InvalidParameter(name, f"{velocity:g} rad/s", "above 0")
            joints.append(
                replace(joint, position_min=low, position_max=high, max_velocity=velocity)
            )

        acceleration = float(min(self.max_acceleration, *limits.max_acceleration))
        if not acceleration > 0.0:
            value = f"{acceleration:g} rad/s^2"
            raise InvalidParameter("controller's acceleration limit", value, "above 0")
        return replace(self, joints=tuple(joints), max_acceleration=acceleration)
