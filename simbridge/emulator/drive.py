"""Moves the joints along the present motion, within limits at which the arm is stopped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.emulator.arm import EmulatedArm
from simbridge.emulator.compliance import ForceMode, Freedrive
from simbridge.emulator.contact import Contact
from simbridge.emulator.motions import ArmMotion, HoldMotion
from simbridge.emulator.moves import PathMove
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import ControllerState
from simbridge.errors import SimbridgeError
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.plant import JOINT_LAG
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode

# Change per second of the rate of a motion (1 is its full speed), which falls while it is halted
# and rises when it is resumed.
# A paused motion comes to rest along its path within a quarter of a second.
PAUSE_RATE = 4.0
# A motion whose program is stopped slows down as in URSim, by 0.0125 in each cycle.
STOPPING_RATE = 6.25
# A motion that a safeguard or an emergency stops comes to rest within a tenth of a second.
STOP_RATE = 10.0
# A protective stop is nearly immediate: a recording of URSim has 1, 0.232, 0 in successive cycles.
PROTECTIVE_STOP_RATE = 384.0
# Decimals to which rates are rounded, so that eighty steps of an eightieth end at zero.
RATE_DECIMALS = 9

# Deceleration of the joints in a motion without a path, rad/s^2.
STOP_ACCELERATION = 30.0
# Factor of a joint's speed limit, and rad beyond its range, that count as rounding.
SPEED_SLACK = 1.0 + 1e-6
RANGE_SLACK = 1e-9

# UR's error codes (PolyScope's service manual, "Error codes").
# C150: position close to joint limits.
NEAR_LIMITS = 150
# C153A0 to A5: position deviates from path, by joint.
DEVIATES_FROM_PATH = 153
# C157A0 to A5: collision detected by joint.
COLLISION = 157
# C204A1: sudden change in target position. C204A5: program resulted in an invalid setpoint.
INVALID_PATH = 204
SUDDEN_CHANGE = 1
INVALID_SETPOINT = 5


@dataclass(frozen=True)
class StopReason:
    """The reason why the arm must stop.

    Attributes:
        reason: A clause.
        code: Number of UR's error; that of C204A1 is 204.
        argument: Argument of UR's error; that of C204A1 is 1.
    """

    reason: str
    code: int
    argument: int = 0


class Drive:
    """Moves the joints, tick by tick: writes their targets and measured positions into the state.

    Args:
        state: State of the controller.
        robot: The arm, with the limits of its joints.
        arm: The arm, with the present TCP.
        period: Control period, s.

    Attributes:
        motion: The motion by which the program moves the arm.
        rate: The part of its speed that a motion has, 0..1: it falls while the arm is halted.
        contact: The forces on the tool.
        force_mode: Force mode, while it is on; else None.
    """

    def __init__(
        self, state: ControllerState, robot: Robot, arm: EmulatedArm, *, period: float
    ) -> None:
        self._state = state
        self._robot = robot
        self._arm = arm
        self._period = period
        self.motion: ArmMotion = HoldMotion()
        self.rate = 1.0
        self.contact = Contact(state)
        self.force_mode: ForceMode | None = None

    @property
    def is_halted(self) -> bool:
        """True while motions may not go on: the arm is paused, stopping or stopped for safety."""
        state = self._state
        is_held = state.runtime_state in (RuntimeState.PAUSED, RuntimeState.STOPPING)
        return state.safety_stop or is_held

    @property
    def at_rest(self) -> bool:
        """True if no motion goes on and the joints have stopped, or if the arm is not running."""
        state = self._state
        if state.robot_mode != RobotMode.RUNNING:
            return True
        goes_on = self.rate > 0.0 and not self.motion.done
        return not (goes_on or state.target_qd.any())

    def end_force_mode(self) -> None:
        """End force mode and the program's motion: the arm stays where it is."""
        if self.force_mode is not None:
            self.force_mode = None
            self.motion = HoldMotion()

    def release_force_mode(self) -> None:
        """End force mode, but not the program's motion.

        A move continues, with its compliant axes where they are.
        """
        if self.motion.done:
            self.end_force_mode()
        elif self.force_mode is not None and isinstance(self.motion, PathMove):
            self.force_mode.held = True
        elif self.force_mode is not None:
            self.force_mode = None
            self.motion.resume_from(self._state.target_q, self._state.target_qd)

    def step(self, settings: Settings, limits: Array) -> StopReason | None:
        """Move the joints by one tick.

        Args:
            settings: Settings of the controller.
            limits: Joint speed limits (n,), rad/s.

        Returns:
            Why the arm has to stop, for which it is already braking; None if it need not stop.
        """
        state = self._state
        self._update_rate()
        if state.robot_mode != RobotMode.RUNNING:
            self._set_target(state.target_q)
            self.contact.update(settings.table, self._period)
            return None

        speed: Array | None = None
        try:
            target, speed = self._next_target()
            stop = self._limit_violation(target, limits)
        except SimbridgeError as error:
            stop = StopReason(f"{error}", INVALID_PATH, INVALID_SETPOINT)
        if stop is not None:
            speed = None
            target = self._braked_joints(state.target_q, state.target_qd)
            if stop.code == NEAR_LIMITS:
                # The brakes hold a joint at its limit, whatever its speed.
                target = np.clip(target, self._robot.position_min, self._robot.position_max)

        self._set_target(target, speed)
        self.contact.update(settings.table, self._period)
        return stop or self._excessive_force(settings.tool_force_limit)

    def _update_rate(self) -> None:
        """Lower the rate while motions may not go on; otherwise raise it."""
        state = self._state
        if state.safety_stop:
            is_protective = state.safety_mode == SafetyMode.PROTECTIVE_STOP
            slope = PROTECTIVE_STOP_RATE if is_protective else STOP_RATE
        elif state.runtime_state == RuntimeState.STOPPING:
            slope = STOPPING_RATE
        else:
            slope = PAUSE_RATE

        signed_slope = -slope if self.is_halted else slope
        rate = round(self.rate + signed_slope * self._period, RATE_DECIMALS)
        self.rate = min(max(rate, 0.0), 1.0)

    def _braked_joints(self, q: Array, qd: Array) -> Array:
        """Return the next targets (n,), rad, of joints that brake without a path."""
        return HoldMotion(STOP_ACCELERATION).step(q, qd, dt=self._period, scaling=1.0)

    def _next_target(self) -> tuple[Array, Array | None]:
        """Return the joints' target (n,), rad, and their speed (n,), rad/s, if it is known."""
        state = self._state
        if self.force_mode is not None and self.force_mode.held and self.motion.done:
            self.end_force_mode()

        # A motion that cannot go on is not tried until it is resumed.
        if self.is_halted and self.rate == 0.0 and not state.target_qd.any():
            self.motion.resume_from(state.target_q, state.target_qd)
            return state.target_q, None

        force_mode = self.force_mode
        if force_mode is None:
            return self._advance(state.target_q, state.target_qd)

        # The program's motion continues from the joints to which it alone would have led.
        before = force_mode.q
        force_mode.q, speed = self._advance(before, force_mode.qd)
        force_mode.qd = (force_mode.q - before) / self._period if speed is None else speed
        target = force_mode.step(state.target_q, state.tcp_force, self._period * self.rate)
        return target, None

    def _advance(self, q: Array, qd: Array) -> tuple[Array, Array | None]:
        """Return the motion's next target (n,), rad, and its speed (n,), rad/s, if it knows it.

        Args:
            q: Present targets (n,), rad.
            qd: Velocities of the joints (n,), rad/s.
        """
        motion = self.motion
        if not motion.has_path and (self.is_halted or self.rate < 1.0):
            target = self._braked_joints(q, qd)
            motion.resume_from(target, (target - q) / self._period)
            return target, None

        scaling = self._state.speed_scaling * self.rate
        target = motion.step(q, qd, dt=self._period, scaling=scaling)
        return target, motion.speed

    def _limit_violation(self, target: Array, limits: Array) -> StopReason | None:
        """Return the reason why joints must not go to a target (n,), rad; None if they may."""
        state = self._state
        robot = self._robot
        if not np.isfinite(target).all():
            reason = "the joints' next target is not a number"
            return StopReason(reason, INVALID_PATH, INVALID_SETPOINT)

        speed = np.abs(target - state.target_q) / self._period
        is_normal = state.safety_mode == SafetyMode.NORMAL
        if is_normal and (speed > limits * SPEED_SLACK).any():
            i = int(np.argmax(speed / limits))
            reason = (
                f"{robot.joint_names[i]} would move at {speed[i]:.2f} rad/s; its limit is "
                f"{limits[i]:.2f} rad/s"
            )
            return StopReason(reason, INVALID_PATH, SUDDEN_CHANGE)

        is_below = (target < robot.position_min - RANGE_SLACK).any()
        is_above = (target > robot.position_max + RANGE_SLACK).any()
        if is_below or is_above:
            outside = np.maximum(robot.position_min - target, target - robot.position_max)
            i = int(np.argmax(outside))
            reason = f"{robot.joint_names[i]} would leave its range, at {target[i]:.3f} rad"
            return StopReason(reason, NEAR_LIMITS)
        return None

    def _excessive_force(self, limit: float) -> StopReason | None:
        """Return the reason why a pushed arm must stop; None if it need not.

        It must if the force on the tool exceeds a limit, N, or if a joint is too weak to keep to
        its path.
        """
        wrench = self.contact.wrench
        if not wrench.any() or isinstance(self.motion, Freedrive) or self._state.safety_stop:
            return None

        names = self._robot.joint_names
        strength = self._robot.max_effort
        torque = np.abs(self._arm.jacobian(self._state.actual_q).T @ wrench)
        i = int(np.argmax(torque / strength))
        if torque[i] > strength[i]:
            reason = (
                f"{names[i]} is loaded with {torque[i]:.0f} N m; it can hold {strength[i]:.0f} N m"
            )
            return StopReason(reason, DEVIATES_FROM_PATH, i)

        force = float(np.linalg.norm(wrench[:3]))
        if force > limit:
            reason = f"the force on the tool is {force:.0f} N; the limit is {limit:.0f} N"
            return StopReason(reason, COLLISION, i)
        return None

    def _set_target(self, q: Array, speed: Array | None = None) -> None:
        """Set the state of the joints and of the tool.

        Args:
            q: The joints' target (n,), rad.
            speed: Speed of the joints (n,), rad/s; their mean speed in this tick by default.
        """
        state = self._state
        is_at_rest = not (state.target_qd.any() or state.target_qdd.any())
        if is_at_rest and (q is state.target_q or np.array_equal(q, state.target_q)):
            # The kinematics below would take most of an idle controller's tick.
            return

        mean = (q - state.target_q) / self._period
        velocity = mean if speed is None else speed
        state.target_qdd = (velocity - state.target_qd) / self._period
        state.target_q = q
        state.target_qd = velocity
        state.target_tcp_pose = self._arm.pose(q)
        state.target_tcp_speed = self._arm.jacobian(q) @ velocity

        # The joints are where their targets were a joint lag ago.
        state.actual_q = q - JOINT_LAG * mean
        state.actual_qd = velocity
        state.actual_tcp_pose = self._arm.pose(state.actual_q)
        state.actual_tcp_speed = state.target_tcp_speed
