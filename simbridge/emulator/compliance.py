"""Motions by forces: freedrive, which follows a hand, force mode, which presses with a wanted force, direct_torque.

The first two are admittances, and simple ones: of the real controller's, only the meaning of the arguments is known.

Under direct_torque the joints move as the rigid-body model of the arm does under the torques commanded. Gravity is
compensated, as on a controller. The rotors' inertia was found in recordings of a UR5e and a UR10e; others have that of
the one closer in size. Viscous friction is plausible, not UR's; its compensation removes a part of it. Coulomb
friction, elasticity and the payload are not modelled.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Arm
from simbridge.emulator.contact import Contact
from simbridge.emulator.motion import Motion, joint_speeds, ramped
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Freedrive: mass and damping of the tool, kg and kg m^2, N s/m and N m s/rad
_MASS = np.array([10.0] * 3 + [0.3] * 3)
_DAMPING = np.array([40.0] * 3 + [1.0] * 3)
# Force mode: speed for each N or N m that is missing, m/s and rad/s, at a gain scaling of 1; and how fast it gets it, s
_GAIN = np.array([4e-3] * 3 + [0.2] * 3)
_LAG = 0.02


class Freedrive(Motion):
    """freedrive_mode and teach_mode: the tool moves as it is pushed, along and about the free axes.

    Args:
        arm: Its kinematics.
        contact: What pushes.
        axes: Which of x y z rx ry rz are free (6,).
        feature: Orientation of the axes in the pendant's base (3, 3).
    """

    has_path = False

    def __init__(self, arm: Arm, contact: Contact, axes: Array, feature: Array) -> None:
        self._arm, self._contact = arm.snapshot(), contact
        self._free = np.array(axes, dtype=bool)
        self._turn = np.kron(np.eye(2), feature)
        self._velocity = np.zeros(6)  # along the feature's axes

    def moved(self, q: Array, qd: Array) -> None:
        self._velocity = np.zeros(6)

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        force = self._turn.T @ self._contact.wrench
        decay = np.exp(-dt * _DAMPING / _MASS)
        velocity = decay * self._velocity + (1.0 - decay) * force / _DAMPING
        self._velocity = np.where(self._free, velocity, 0.0)
        self._velocity[np.abs(self._velocity) < 1e-6] = 0.0
        return q + dt * joint_speeds(self._arm, q, self._turn @ self._velocity, damping=1e-4)


class ForceMode:
    """force_mode: along the compliant axes the tool moves until it presses with the wanted force; along the others it
    goes where the program's motion takes it.

    Args:
        arm: Its kinematics.
        q, qd: Joint targets at the start (n,), rad and rad/s.

    Attributes:
        q, qd: Where the program's motion would have the joints.
        held: Whether the compliant axes stay where they are.
    """

    held = False

    def __init__(self, arm: Arm, q: Array, qd: Array) -> None:
        self._arm, self.q, self.qd = arm.snapshot(), q, qd
        self._frame: pin.SE3 | None = None
        self._compliant = np.zeros(6, dtype=bool)

    def aim(self, q: Array, frame: pin.SE3, axes: Array, wrench: Array, limits: Array, gain: float) -> None:
        """Set or change its arguments.

        Args:
            q: Present joint targets (n,), rad.
            frame: The task frame in the pendant's base.
            axes: Which of x y z rx ry rz are compliant (6,).
            wrench: What the tool presses with (6,), N and N m, in the task frame.
            limits: The largest speeds along and about compliant axes (6,), m/s and rad/s.
            gain: Its scaling (`force_mode_set_gain_scaling`).
        """
        compliant, self.held = np.array(axes, dtype=bool), False
        if self._frame is None or not self._frame.isApprox(frame) or (compliant != self._compliant).any():
            self._frame, self._compliant, self._start = frame, compliant, self._arm.tool(q)
            self._place, self._velocity = self._coordinates(self._start), np.zeros(6)
        self._wrench, self._limits, self._gain = wrench, np.abs(limits), gain

    def _coordinates(self, tool: pin.SE3) -> Array:
        """Position and rotation since the start (6,) of a TCP, along the axes of the task frame."""
        assert self._frame is not None
        turned = pin.log3(tool.rotation @ self._start.rotation.T)
        return np.concatenate([self._frame.actInv(tool.translation), self._frame.rotation.T @ turned])

    def step(self, q: Array, force: Array, dt: float) -> Array:
        """The joints' next target (n,), rad.

        Args:
            q: The present one (n,), rad; the program's motion has been to `self.q`.
            force: What the sensor measures (6,), N and N m.
            dt: Control period, s; 0 while the arm is halted.

        Raises:
            Unreachable: The tool has left the reach of the arm.
        """
        assert self._frame is not None
        turn = self._frame.rotation
        felt = np.concatenate([turn.T @ force[:3], turn.T @ force[3:]])
        wanted = (
            np.zeros(6)
            if self.held
            else np.clip(self._gain * _GAIN * (self._wrench + felt), -self._limits, self._limits)
        )
        self._velocity += min(dt / _LAG, 1.0) * (wanted - self._velocity)
        self._place = self._place + dt * self._velocity
        place = np.where(self._compliant, self._place, self._coordinates(self._arm.tool(self.q)))
        rotation = pin.exp3(turn @ place[3:]) @ self._start.rotation
        return self._arm.joints(pin.SE3(rotation, self._frame.act(place[:3])), q)


BRAKING = 20.0  # rad/s^2, when no torque is commanded any more
# In how long viscous friction slows a rotor to a third, without its compensation and with all of it, s
FRICTION_TIME, COMPENSATED_TIME = 0.25, 0.5

# Of the rotors, as it acts at the joints, kg m^2
_SMALL = np.array([1.915] * 3 + [0.212] * 3)
_LARGE = np.array([6.03, 6.05, 1.94, 0.61, 0.61, 0.61])


def rotor_inertia(robot: Robot) -> Array:
    """Of each joint (6,), kg m^2."""
    return _SMALL if robot.name.startswith(("ur3", "ur5", "ur7")) else _LARGE


class JointTorque(Motion):
    """Torques on the joints, each for one control period; without a new one the arm brakes, under position control.

    Args:
        robot: The arm.
    """

    has_path = False

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model.copy()
        self._model.armature = rotor_inertia(robot)
        self._data = self._model.createData()
        self._torque: Array | None = None
        self._friction = np.zeros(robot.n)

    def aim(self, torque: Array, compensation: Array) -> None:
        """The torques (n,), N m, for the next period, and the fractions (n,) of friction compensated."""
        self._torque = torque
        rate = 1.0 / FRICTION_TIME - compensation * (1.0 / FRICTION_TIME - 1.0 / COMPENSATED_TIME)
        self._friction = rate * self._model.armature

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        torque, self._torque = self._torque, None
        if torque is None:
            return q + dt * ramped(qd, np.zeros_like(qd), BRAKING * dt)
        gravity = pin.computeGeneralizedGravity(self._model, self._data, q)
        torque = torque + gravity - self._friction * qd
        return q + dt * (qd + dt * pin.aba(self._model, self._data, q, qd, torque))
