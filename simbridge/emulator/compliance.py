"""Freedrive and force mode: the tool gives way to forces.

Both are simple admittances: of the real controller's only the meaning of the arguments is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import EmulatedArm
from simbridge.emulator.contact import Contact
from simbridge.emulator.motions import ArmMotion
from simbridge.robot.pose import Array

# Virtual mass and inertia of the tool in freedrive (6,), kg and kg m^2.
FREEDRIVE_MASS = np.array([10.0] * 3 + [0.3] * 3)
# Virtual damping of the tool in freedrive (6,), N s/m and N m s/rad.
FREEDRIVE_DAMPING = np.array([40.0] * 3 + [1.0] * 3)
# Speed below which the tool is at rest, m/s or rad/s.
SLOWEST_FREEDRIVE = 1e-6
# Damping of the least squares that turns the tool's twist into joint speeds.
FREEDRIVE_TWIST_DAMPING = 1e-4

# Speed for each N or N m that is missing (6,), m/s and rad/s, at a gain scaling of 1.
FORCE_MODE_GAIN = np.array([4e-3] * 3 + [0.2] * 3)
# Time constant with which the tool gets that speed, s.
FORCE_MODE_LAG = 0.02


class Freedrive(ArmMotion):
    """freedrive_mode and teach_mode: the tool moves as it is pushed, along and about the free axes.

    Args:
        arm: The arm, whose present TCP is moved.
        contact: Forces on the tool.
        axes: True for each of x y z rx ry rz that is free (6,).
        feature: Orientation of the axes in the pendant's base (3, 3).
    """

    has_path = False

    def __init__(self, arm: EmulatedArm, contact: Contact, *, axes: Array, feature: Array) -> None:
        self._arm = arm.snapshot()
        self._contact = contact
        self._free = np.array(axes, dtype=bool)
        # Turns a twist or a wrench (6,) from the feature's axes to the base's.
        self._turn = np.kron(np.eye(2), feature)
        # Twist of the tool along the feature's axes (6,), m/s and rad/s.
        self._velocity = np.zeros(6)

    def resume_from(self, q: Array, qd: Array) -> None:
        """See `ArmMotion`."""
        self._velocity = np.zeros(6)

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`."""
        force = self._turn.T @ self._contact.wrench
        decay = np.exp(-dt * FREEDRIVE_DAMPING / FREEDRIVE_MASS)
        velocity = decay * self._velocity + (1.0 - decay) * force / FREEDRIVE_DAMPING
        self._velocity = np.where(self._free, velocity, 0.0)
        self._velocity[np.abs(self._velocity) < SLOWEST_FREEDRIVE] = 0.0

        twist = self._turn @ self._velocity
        return q + dt * self._arm.joint_speeds(q, twist, damping=FREEDRIVE_TWIST_DAMPING)


@dataclass(frozen=True)
class ForceTask:
    """The arguments of force_mode.

    Attributes:
        frame: The task frame in the pendant's base.
        axes: True for each of x y z rx ry rz that is compliant (6,).
        wrench: Force and torque that the tool presses with (6,), N and N m, in the task frame.
        limits: The largest speeds along and about compliant axes (6,), m/s and rad/s.
        gain: Scaling of the gain (`force_mode_set_gain_scaling`).
    """

    frame: pin.SE3
    axes: Array
    wrench: Array
    limits: Array
    gain: float


class ForceMode:
    """force_mode: along the compliant axes the tool moves until it exerts the requested force.

    Along the others it goes where the program's motion takes it.

    Args:
        arm: The arm, whose present TCP is moved.
        q: Joint targets (n,), rad.
        qd: Velocities of the joints (n,), rad/s.

    Attributes:
        q: Joint positions (n,), rad, to which the program's motion alone would lead.
        qd: Joint velocities (n,), rad/s, of that motion.
        held: True while the compliant axes stay where they are.
    """

    def __init__(self, arm: EmulatedArm, q: Array, qd: Array) -> None:
        self._arm = arm.snapshot()
        self.q = q
        self.qd = qd
        self.held = False

        self._task: ForceTask | None = None
        self._compliant = np.zeros(6, dtype=bool)
        # The TCP in the pendant's base when these axes became compliant.
        self._start = pin.SE3.Identity()
        # Position and rotation of the TCP since then along the task's axes (6,), m and rad; and
        # their rates.
        self._coordinates = np.zeros(6)
        self._velocity = np.zeros(6)

    def aim(self, q: Array, task: ForceTask) -> None:
        """Set or change the task.

        A task with another frame or other compliant axes starts at rest from where the tool is. One
        that only changes wrench, limits or gain goes on with the motion under way.

        Args:
            q: Present joint targets (n,), rad.
            task: The arguments of force_mode.
        """
        compliant = np.array(task.axes, dtype=bool)
        self.held = False

        starts_anew = (
            self._task is None
            or not self._task.frame.isApprox(task.frame)
            or (compliant != self._compliant).any()
        )
        if starts_anew:
            self._compliant = compliant
            self._start = self._arm.tool(q)
            self._coordinates = self._task_coordinates(task.frame, self._start)
            self._velocity = np.zeros(6)
        elif self._task is not None:
            # Keep the frame of before, from which this one differs by rounding only.
            task = replace(task, frame=self._task.frame)
        self._task = task

    def _task_coordinates(self, frame: pin.SE3, tool: pin.SE3) -> Array:
        """Return position and rotation since the start (6,) of a TCP, along the axes of a frame."""
        rotation = pin.log3(tool.rotation @ self._start.rotation.T)
        return np.concatenate([frame.actInv(tool.translation), frame.rotation.T @ rotation])

    def step(self, q: Array, force: Array, dt: float) -> Array:
        """Return the joints' next target (n,), rad.

        Args:
            q: The present target (n,), rad; the program's motion has reached `self.q`.
            force: Force and torque that the sensor measures (6,), N and N m.
            dt: Control period, s; 0 while the arm is halted.

        Raises:
            Unreachable: The tool has left the reach of the arm.
        """
        assert self._task is not None
        frame = self._task.frame
        rotation = frame.rotation

        # The velocity along the compliant axes, in proportion to the missing force.
        measured = np.concatenate([rotation.T @ force[:3], rotation.T @ force[3:]])
        limits = np.abs(self._task.limits)
        missing = self._task.wrench + measured
        desired_velocity = np.clip(self._task.gain * FORCE_MODE_GAIN * missing, -limits, limits)
        if self.held:
            desired_velocity = np.zeros(6)
        self._velocity += min(dt / FORCE_MODE_LAG, 1.0) * (desired_velocity - self._velocity)
        self._coordinates = self._coordinates + dt * self._velocity

        # Along the other axes, the tool is where the program's motion would put it.
        of_motion = self._task_coordinates(frame, self._arm.tool(self.q))
        coordinates = np.where(self._compliant, self._coordinates, of_motion)
        orientation = pin.exp3(rotation @ coordinates[3:]) @ self._start.rotation
        return self._arm.joints(pin.SE3(orientation, frame.act(coordinates[:3])), q)
