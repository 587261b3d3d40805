"""What moves the joints: the present motion, how fast it may go on, and the limits at which the arm is stopped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.emulator.arm import Arm
from simbridge.emulator.forces import Contact, ForceMode, Freedrive
from simbridge.emulator.motion import Hold, Motion
from simbridge.emulator.moves import PathMove
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import ControllerState
from simbridge.errors import SimbridgeError
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.plant import JOINT_LAG
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode

PAUSE_RATE = 4.0  # 1/s: a paused motion comes to rest along its path within a quarter second
STOPPING_RATE = 6.25  # 1/s: one whose program is stopped, as in URSim (0.0125 in each cycle)
STOP_RATE = 10.0  # 1/s: one stopped by a safeguard or in an emergency, within a tenth
PROTECTIVE_STOP_RATE = 384.0  # 1/s: in a protective stop; a recording of URSim has 1, 0.232, 0 in successive cycles
STOP_ACCELERATION = 30.0  # rad/s^2, to stop a motion that has no path
# Rounding must not count as a joint that is too fast.
_SLACK = 1.0 + 1e-6
# UR's error codes (PolyScope's service manual, "Error codes"): C150 position close to joint limits; C153A0 to A5
# position deviates from path, by joint; C157A0 to A5 collision detected by joint; C204A1 sudden change in target
# position; C204A5 program resulted in an invalid setpoint
_NEAR_LIMITS, _DEVIATES, _COLLISION, _PATH = 150, 153, 157, 204
_SUDDEN, _INVALID = 1, 5


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
            rate = PROTECTIVE_STOP_RATE if s.safety_mode == SafetyMode.PROTECTIVE_STOP else STOP_RATE
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
            if stop.code == _NEAR_LIMITS:  # The brakes hold a joint at its limit, whatever its speed.
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
            return Stop(f"{robot.joint_names[i]} would leave its range, at {target[i]:.3f} rad", _NEAR_LIMITS)
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
            return Stop(f"the force on the tool is {force:.0f} N, its limit is {limit:.0f}", _COLLISION, i)
        return None

    def _set_target(self, q: Array, speed: Array | None = None) -> None:
        s, dt = self._state, self._period
        if not (s.target_qd.any() or s.target_qdd.any()) and (q is s.target_q or np.array_equal(q, s.target_q)):
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
