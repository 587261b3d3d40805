"""What moves the joints: the present motion, forces on the tool, and the limits at which the arm is stopped.

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
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Arm, Hold, Motion, joint_speeds, ramped
from simbridge.emulator.moves import PathMove
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import LARGEST, ControllerState
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.plant import JOINT_LAG
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode

PAUSE_RATE = 4.0  # 1/s: a paused motion comes to rest along its path within a quarter second
STOPPING_RATE = 6.25  # 1/s: one whose program is stopped, as in URSim (0.0125 in each cycle)
STOP_RATE = 10.0  # 1/s: one stopped by a safeguard or in an emergency, within a tenth
PROTECTIVE_STOP_RATE = (
    384.0  # 1/s: in a protective stop; a recording of URSim has 1, 0.232, 0 in successive cycles
)
STOP_ACCELERATION = 30.0  # rad/s^2, to stop a motion that has no path
# Rounding must not count as a joint that is too fast.
_SLACK = 1.0 + 1e-6
# UR's error codes (PolyScope's service manual, "Error codes"): C150 position close to joint limits; C153A0 to A5
# position deviates from path, by joint; C157A0 to A5 collision detected by joint; C204A1 sudden change in target
# position; C204A5 program resulted in an invalid setpoint
_NEAR_LIMITS, _DEVIATES, _COLLISION, _PATH = 150, 153, 157, 204
_SUDDEN, _INVALID = 1, 5
STIFFNESS = 20e3  # N/m, of the table
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


@dataclass(frozen=True)
class Stop:
    """Why the arm must stop: a clause, and UR's error code; C204A1 is 204 and 1."""

    reason: str
    code: int
    argument: int = 0


class Drive:
    """Moves the joints, tick by tick: writes their targets and measured positions into the state.

    Attributes:
        motion: What the program moves the arm by.
        rate: The part of its speed that a motion has, 0..1: it falls while the arm is halted.
        contact: The forces on the tool.
        force_mode: Where it is on.
    """

    def __init__(self, state: ControllerState, robot: Robot, arm: Arm, period: float) -> None:
        self._state, self._robot, self._arm, self._period = state, robot, arm, period
        self.motion: Motion = Hold()
        self.rate = 1.0
        self.contact = Contact(state)
        self.force_mode: ForceMode | None = None

    @property
    def halted(self) -> bool:
        """Whether motions may not go on."""
        s = self._state
        return s.safety_stop or s.runtime_state in (RuntimeState.PAUSED, RuntimeState.STOPPING)

    @property
    def at_rest(self) -> bool:
        """Whether a halt has come to its end."""
        s = self._state
        going_on = self.rate > 0.0 and not self.motion.done
        return s.robot_mode != RobotMode.RUNNING or not (going_on or s.target_qd.any())

    def end_force_mode(self) -> None:
        """The arm stays where it is, and a motion of the program ends there."""
        if self.force_mode is not None:
            self.force_mode, self.motion = None, Hold()

    def release_force_mode(self) -> None:
        """End force mode, but not the program's motion: a move continues, with its compliant axes where they are."""
        if self.motion.done:
            self.end_force_mode()
        elif self.force_mode is not None and isinstance(self.motion, PathMove):
            self.force_mode.held = True
        elif self.force_mode is not None:
            self.force_mode = None
            self.motion.moved(self._state.target_q, self._state.target_qd)

    def step(self, settings: Settings, limits: Array) -> Stop | None:
        """One tick, with these joint speed limits (n,), rad/s. Returns why the arm has to stop; it brakes already."""
        s, dt = self._state, self._period
        rate = PAUSE_RATE if s.runtime_state != RuntimeState.STOPPING else STOPPING_RATE
        if s.safety_stop:
            rate = (
                PROTECTIVE_STOP_RATE if s.safety_mode == SafetyMode.PROTECTIVE_STOP else STOP_RATE
            )
        # Rounded, so that eighty steps of an eightieth end at zero.
        self.rate = min(max(round(self.rate + (-rate if self.halted else rate) * dt, 9), 0.0), 1.0)
        if s.robot_mode != RobotMode.RUNNING:
            self._set_target(s.target_q)
            self.contact.update(settings.table, dt)
            return None
        try:
            target, speed = self._next_target()
            stop = self._limit_violation(target, limits)
        except SimbridgeError as error:
            target, stop = s.target_q, Stop(f"{error}", _PATH, _INVALID)
        if stop is not None:
            target, speed = Hold(STOP_ACCELERATION).step(s.target_q, s.target_qd, dt, 1.0), None
            if (
                stop.code == _NEAR_LIMITS
            ):  # The brakes hold a joint at its limit, whatever its speed.
                target = np.clip(target, self._robot.position_min, self._robot.position_max)
        self._set_target(target, speed)
        self.contact.update(settings.table, dt)
        return stop or self._excessive_force(settings.tool_force_limit)

    def _next_target(self) -> tuple[Array, Array | None]:
        """The joints' target (n,), rad, and their speed (n,), rad/s, where the motion knows it."""
        if self.force_mode is not None and self.force_mode.held and self.motion.done:
            self.end_force_mode()
        s, dt, force = self._state, self._period, self.force_mode
        if self.halted and self.rate == 0.0 and not s.target_qd.any():
            self.motion.moved(s.target_q, s.target_qd)
            return s.target_q, None  # a motion that cannot go on is not tried until it is resumed
        if force is None:
            return self._advance(s.target_q, s.target_qd)
        before = force.q
        force.q, speed = self._advance(before, force.qd)
        force.qd = (force.q - before) / dt if speed is None else speed
        return force.step(s.target_q, s.tcp_force, dt * self.rate), None

    def _advance(self, q: Array, qd: Array) -> tuple[Array, Array | None]:
        s, dt, motion = self._state, self._period, self.motion
        if not motion.has_path and (self.halted or self.rate < 1.0):
            rest = Hold(STOP_ACCELERATION).step(q, qd, dt, 1.0)
            motion.moved(rest, (rest - q) / dt)
            return rest, None
        return motion.step(q, qd, dt, s.speed_scaling * self.rate), motion.speed

    def _limit_violation(self, target: Array, limits: Array) -> Stop | None:
        s, robot = self._state, self._robot
        if not np.isfinite(target).all():
            return Stop("the joints' next target is not a number", _PATH, _INVALID)
        speed = np.abs(target - s.target_q) / self._period
        if s.safety_mode == SafetyMode.NORMAL and (speed > limits * _SLACK).any():
            i = int(np.argmax(speed / limits))
            reason = f"{robot.joint_names[i]} would move at {speed[i]:.2f} rad/s, its limit is {limits[i]:.2f}"
            return Stop(reason, _PATH, _SUDDEN)
        if (target < robot.position_min - 1e-9).any() or (target > robot.position_max + 1e-9).any():
            i = int(np.argmax(np.maximum(robot.position_min - target, target - robot.position_max)))
            return Stop(
                f"{robot.joint_names[i]} would leave its range, at {target[i]:.3f} rad",
                _NEAR_LIMITS,
            )
        return None

    def _excessive_force(self, limit: float) -> Stop | None:
        """Whether the arm is pushed too hard: at the tool, or at a joint, which then cannot keep to its path."""
        wrench = self.contact.wrench
        if not wrench.any() or isinstance(self.motion, Freedrive) or self._state.safety_stop:
            return None
        names, most = self._robot.joint_names, self._robot.max_effort
        torque = np.abs(self._arm.jacobian(self._state.actual_q).T @ wrench)
        i = int(np.argmax(torque / most))
        if torque[i] > most[i]:
            reason = f"{names[i]} is pushed with {torque[i]:.0f} N m, it can hold {most[i]:.0f}"
            return Stop(reason, _DEVIATES, i)
        force = float(np.linalg.norm(wrench[:3]))
        if force > limit:
            return Stop(
                f"the force on the tool is {force:.0f} N, its limit is {limit:.0f}", _COLLISION, i
            )
        return None

    def _set_target(self, q: Array, speed: Array | None = None) -> None:
        s, dt = self._state, self._period
        if not (s.target_qd.any() or s.target_qdd.any()) and (
            q is s.target_q or np.array_equal(q, s.target_q)
        ):
            return  # at rest: the kinematics below would take most of an idle controller's tick
        mean = (q - s.target_q) / dt
        velocity = mean if speed is None else speed
        s.target_qdd = (velocity - s.target_qd) / dt
        s.target_q, s.target_qd = q, velocity
        s.target_tcp_pose = self._arm.pose(q)
        s.target_tcp_speed = self._arm.jacobian(q) @ velocity
        # The joints are where their targets were a joint lag ago.
        s.actual_q, s.actual_qd = q - JOINT_LAG * mean, velocity
        s.actual_tcp_pose, s.actual_tcp_speed = self._arm.pose(s.actual_q), s.target_tcp_speed


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
            raise InvalidParameter(
                "wrench", list(wrench), f"six numbers from {-LARGEST:g} to {LARGEST:g}, N and N m"
            )
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

    def aim(
        self, q: Array, frame: pin.SE3, axes: Array, wrench: Array, limits: Array, gain: float
    ) -> None:
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
        if (
            self._frame is None
            or not self._frame.isApprox(frame)
            or (compliant != self._compliant).any()
        ):
            self._frame, self._compliant, self._start = frame, compliant, self._arm.tool(q)
            self._place, self._velocity = self._coordinates(self._start), np.zeros(6)
        self._wrench, self._limits, self._gain = wrench, np.abs(limits), gain

    def _coordinates(self, tool: pin.SE3) -> Array:
        """Position and rotation since the start (6,) of a TCP, along the axes of the task frame."""
        assert self._frame is not None
        turned = pin.log3(tool.rotation @ self._start.rotation.T)
        return np.concatenate(
            [self._frame.actInv(tool.translation), self._frame.rotation.T @ turned]
        )

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
