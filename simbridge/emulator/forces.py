"""Forces on the tool, and motions by forces: freedrive, which follows a hand, force mode, direct_torque.

What acts on the tool are pushes and a table: a plane at a height, a spring of 20 N/mm, without friction. The arm itself
is rigid: under position control a force does not move it. Not modelled: the weight of a payload, contact of anything
but the TCP, noise. Freedrive and force mode are admittances, and simple ones: of the real controller's, only the
meaning of the arguments is known.

Under direct_torque the joints move as the rigid-body model of the arm does under the torques commanded. Gravity is
compensated, as on a controller. The rotors' inertia was found in recordings of a UR5e and a UR10e; others have that of
the one closer in size. Viscous friction is plausible, not UR's; its compensation removes a part of it. Coulomb
friction, elasticity and the payload are not modelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Arm
from simbridge.emulator.motion import Motion, joint_speeds, ramped
from simbridge.emulator.state import LARGEST, ControllerState
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

STIFFNESS = 20e3  # N/m
CONTACT = 5.0  # N, from which tool_contact reports a contact
_TOUCH = 0.1  # N, at which it counts as begun
_HISTORY = 2000  # ticks
# Freedrive: mass and damping of the tool, kg and kg m^2, N s/m and N m s/rad
_MASS = np.array([10.0] * 3 + [0.3] * 3)
_DAMPING = np.array([40.0] * 3 + [1.0] * 3)
# Force mode: speed for each N or N m that is missing, m/s and rad/s, at a gain scaling of 1; and how fast it gets it, s
_GAIN = np.array([4e-3] * 3 + [0.2] * 3)
_LAG = 0.02
# direct_torque
BRAKING = 20.0  # rad/s^2, when no torque is commanded any more
# In how long viscous friction slows a rotor to a third, without its compensation and with all of it, s
FRICTION_TIME, COMPENSATED_TIME = 0.25, 0.5
# Inertia of the rotors, as it acts at the joints, kg m^2
_SMALL = np.array([1.915] * 3 + [0.212] * 3)
_LARGE = np.array([6.03, 6.05, 1.94, 0.61, 0.61, 0.61])


class Contact:
    """The force and torque (6,) at the TCP on the tool, N and N m, with the axes of the pendant's base. The state's
    `tcp_force` is set to what the sensor measures, since it was zeroed.

    Attributes:
        wrench: What acts on the tool (6,).
        from_client: Whether the sensor reads RTDE's `external_force_torque` instead (`ft_rtde_input_enable`).
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.wrench = np.zeros(6)
        self.from_client = False
        self._push, self._left = np.zeros(6), 0.0
        self._zero = np.zeros(6)
        self._history: deque[Array] = deque(maxlen=_HISTORY)

    def push(self, wrench: Sequence[float], seconds: float) -> None:
        """Push the tool for some seconds; replaces the push before. Six numbers within 1e6; else InvalidParameter."""
        found = np.array(wrench, dtype=float)
        if found.shape != (6,) or not (np.abs(found) <= LARGEST).all():
            raise InvalidParameter("wrench", list(wrench), f"six numbers from {-LARGEST:g} to {LARGEST:g}, N and N m")
        if not 0.0 <= seconds < np.inf:
            raise InvalidParameter("seconds", seconds, "a number, not negative")
        self._push, self._left = found, float(seconds)

    def zero(self) -> None:
        """zero_ftsensor: what is measured now counts as none."""
        self._zero = self._measured().copy()
        self._state.tcp_force = np.zeros(6)

    def _measured(self) -> Array:
        return self._state.external_wrench if self.from_client else self.wrench

    def update(self, table: float | None, period: float) -> None:
        """One tick: a table at this height in the pendant's base, m, or none; the control period, s."""
        s, wrench = self._state, np.zeros(6)
        if self._left > 0.0:
            wrench, self._left = self._push.copy(), self._left - period
        if table is not None and s.actual_tcp_pose[2] < table:
            wrench[2] += STIFFNESS * (table - s.actual_tcp_pose[2])
        self.wrench = wrench
        s.tcp_force = self._measured() - self._zero
        self._history.append(s.tcp_force[:3])

    def ticks_since(self, direction: Array) -> int:
        """tool_contact: ticks since a contact began that stops a motion in this direction (3,), any if it is zero; 0
        without a contact."""
        size = float(np.linalg.norm(direction))
        against = -direction / size if size > 0.0 else None

        def felt(force: Array) -> float:
            return float(np.linalg.norm(force) if against is None else force @ against)

        if not self._history or felt(self._history[-1]) < CONTACT:
            return 0
        ticks = 0
        while ticks < len(self._history) and felt(self._history[-1 - ticks]) > _TOUCH:
            ticks += 1
        return ticks


class Freedrive(Motion):
    """freedrive_mode and teach_mode: the tool moves as it is pushed, along and about the free axes.

    Args:
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

    Attributes:
        q, qd: Where the program's motion would have the joints (n,), rad and rad/s.
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
        wanted = np.clip(self._gain * _GAIN * (self._wrench + felt), -self._limits, self._limits)
        if self.held:
            wanted = np.zeros(6)
        self._velocity += min(dt / _LAG, 1.0) * (wanted - self._velocity)
        self._place = self._place + dt * self._velocity
        place = np.where(self._compliant, self._place, self._coordinates(self._arm.tool(self.q)))
        rotation = pin.exp3(turn @ place[3:]) @ self._start.rotation
        return self._arm.joints(pin.SE3(rotation, self._frame.act(place[:3])), q)


class JointTorque(Motion):
    """Torques on the joints, each for one control period; without a new one the arm brakes, under position control."""

    has_path = False

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model.copy()
        self._model.armature = _SMALL if robot.name.startswith(("ur3", "ur5", "ur7")) else _LARGE
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
