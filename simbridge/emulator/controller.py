"""The controller itself: a clock, a state machine, a program and an arm. It has no sockets and no threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simbridge.emulator.arm import Arm
from simbridge.emulator.motion import Hold, Motion, Servo
from simbridge.emulator.record import Record
from simbridge.emulator.scripts import Program, SecondaryPrograms, is_secondary
from simbridge.emulator.state import ControllerState, Power, Profile
from simbridge.errors import SimbridgeError
from simbridge.robot.calibration import nominal_dh, with_dh
from simbridge.robot.parts import DhTable
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.plant import JOINT_LAG
from simbridge.ur.tables import ROBOT_TYPES, URSIM_CHECKSUM, RobotMode, RuntimeState, SafetyMode

UNLOCK_DELAY = 5.0  # s after a protective stop until it can be unlocked
SLIDER_RATE = 2.0  # 1/s, at which the speed scaling follows the slider
PAUSE_RATE = 4.0  # 1/s: a paused motion comes to rest along its path within a quarter second
STOP_RATE = 10.0  # 1/s: one stopped by the safety system, within a tenth
STOP_ACCELERATION = 30.0  # rad/s^2, to stop a motion that has no path
# Rounding must not count as a joint that is too fast.
_SLACK = 1.0 + 1e-6

_ROBOT_TYPES = {model.lower(): (model, number) for number, model in ROBOT_TYPES.items()}


class Controller:
    """A UR controller without its network. Nothing here blocks: `tick` is called once per control period.

    Args:
        robot: Which arm.
        profile: Which software.
        make_program: Makes a program from a script's source and a callback for its fault (message, line).
        boot_time: From power on to idle, s.
        serial_number: Digits.
        dh: Of this individual arm; the robot's nominal table by default.
        checksum: Of its calibration; all ones by default, as on URSim.

    Attributes:
        state: As of the last tick; the servers read it, and RTDE inputs write it.
        model_name: As the dashboard's `get robot model` answers: "UR10".
        robot_type: As in the primary interface's configuration data (`ur.tables.ROBOT_TYPES`).
        remote_control: Whether an e-Series accepts commands from outside.
        dh: theta, a, d, alpha, each of n numbers, as in the kinematics info and the configuration data.
        on_message: Called with what the primary interface's clients are to be sent: kind, text, line.
    """

    def __init__(
        self,
        robot: Robot,
        profile: Profile,
        make_program: Callable[[Controller, str, Callable[[str, int], None]], Program],
        *,
        boot_time: float = 0.5,
        serial_number: str = "20261234567",
        dh: DhTable | None = None,
        checksum: tuple[int, ...] | None = None,
    ) -> None:
        self.robot, self.profile, self.boot_time = robot, profile, boot_time
        self.serial_number, self.remote_control = serial_number, True
        self.model_name, self.robot_type = _ROBOT_TYPES.get(robot.name.removesuffix("e"), ("UR10", 2))
        table = dh or nominal_dh(robot)
        self.dh = (table.theta, table.a, table.d, table.alpha)
        self.kinematics_checksum = checksum or URSIM_CHECKSUM
        self.period = profile.period
        self.state = ControllerState()
        self.arm = Arm(robot if dh is None else with_dh(robot, dh))
        self.record = Record(robot.n)
        self.on_message: Callable[[str, str, int], None] = lambda kind, text, line: None
        self.popup_text = ""
        self.motion: Motion = Hold()
        self.program: Program | None = None
        self.power = Power(self.state, boot_time)
        self._make_program = make_program
        self._secondary = SecondaryPrograms(
            lambda source: self._make_program(self, source, self._fault),
            lambda reason: self._fault(reason, 0),
            self.period,
        )
        self._rate = 1.0
        self._stopped_at = -np.inf
        self._watchdog: Watchdog | None = None
        self._updated: dict[str, float] = {}
        s = self.state
        s.target_q, s.actual_q = robot.home.copy(), robot.home.copy()
        s.target_tcp_pose = s.actual_tcp_pose = self.arm.pose(robot.home)

    def warm_up(self) -> None:
        """Call what is compiled on its first call, so that no tick waits for the compiler."""
        q = self.state.target_q
        self.arm.joints(self.arm.tool(q), q + 0.01)
        self.arm.jacobian(q)

    # The clock

    def tick(self) -> None:
        """One control period."""
        s = self.state
        s.tick += 1
        s.timestamp = s.tick * self.period
        self.power.tick(self.period)
        step = SLIDER_RATE * self.period
        s.speed_scaling += min(max(s.speed_slider - s.speed_scaling, -step), step)
        self._check_watchdog()
        if s.runtime_state == RuntimeState.PLAYING and self.program is not None:
            self.program.tick()
            s.script_control_line = self.program.line
            if not self.program.running:
                self._end_program()
        self._secondary.tick()
        self._move()
        setpoint = self.motion.setpoint if isinstance(self.motion, Servo) else None
        self.record.add(s.tick, setpoint, s.target_q, s.actual_q)

    def _halted(self) -> bool:
        s = self.state
        return s.safety_stop or s.runtime_state == RuntimeState.PAUSED

    def _move(self) -> None:
        s, dt = self.state, self.period
        halted = self._halted()
        rate = STOP_RATE if s.safety_mode != SafetyMode.NORMAL else PAUSE_RATE
        self._rate = min(max(self._rate + (-rate if halted else rate) * dt, 0.0), 1.0)
        if s.robot_mode != RobotMode.RUNNING:
            self._set_target(s.target_q)
            return
        try:
            target = self._next_target(halted)
        except SimbridgeError as error:
            self.protective_stop(f"{error}")
            target = Hold(STOP_ACCELERATION).step(s.target_q, s.target_qd, dt, 1.0)
        reason = self._limit_violation(target)
        if reason:
            self.protective_stop(reason)
            target = Hold(STOP_ACCELERATION).step(s.target_q, s.target_qd, dt, 1.0)
            # The brakes hold a joint at its limit, whatever its speed.
            target = np.clip(target, self.robot.position_min, self.robot.position_max)
        self._set_target(target)

    def _next_target(self, halted: bool) -> Array:
        s, dt = self.state, self.period
        if not self.motion.has_path and (halted or self._rate < 1.0):
            rest = Hold(STOP_ACCELERATION).step(s.target_q, s.target_qd, dt, 1.0)
            self.motion.moved(rest, (rest - s.target_q) / dt)
            return rest
        return self.motion.step(s.target_q, s.target_qd, dt, s.speed_scaling * self._rate)

    def _limit_violation(self, target: Array) -> str:
        s, robot = self.state, self.robot
        speed = np.abs(target - s.target_q) / self.period
        if self.state.safety_mode == SafetyMode.NORMAL and (speed > robot.max_velocity * _SLACK).any():
            i = int(np.argmax(speed / robot.max_velocity))
            return (
                f"{robot.joint_names[i]} would move at {speed[i]:.2f} rad/s, its limit is {robot.max_velocity[i]:.2f}"
            )
        if (target < robot.position_min - 1e-9).any() or (target > robot.position_max + 1e-9).any():
            i = int(np.argmax(np.maximum(robot.position_min - target, target - robot.position_max)))
            return f"{robot.joint_names[i]} would leave its range, at {target[i]:.3f} rad"
        return ""

    def _set_target(self, q: Array) -> None:
        s, dt = self.state, self.period
        if not (s.target_qd.any() or s.target_qdd.any()) and (q is s.target_q or np.array_equal(q, s.target_q)):
            return  # at rest: the kinematics below would take most of an idle controller's tick
        velocity = (q - s.target_q) / dt
        s.target_qdd = (velocity - s.target_qd) / dt
        s.target_q, s.target_qd = q, velocity
        s.target_tcp_pose = self.arm.pose(q)
        s.target_tcp_speed = self.arm.jacobian(q) @ velocity
        # The joints are where their targets were a joint lag ago.
        s.actual_q, s.actual_qd = q - JOINT_LAG * velocity, velocity
        s.actual_tcp_pose, s.actual_tcp_speed = self.arm.pose(s.actual_q), s.target_tcp_speed

    # The program

    def load_script(self, source: str) -> None:
        """Stop the running program and run this one. A secondary program runs alongside instead."""
        if is_secondary(source):
            self._secondary.add(source)
            return
        self._end_program()
        if self.state.robot_mode != RobotMode.RUNNING or self._halted():
            self.on_message("error", "A program was received, but the robot is not running: it was not started.", 0)
            return
        try:
            self.program = self._make_program(self, source, self._fault)
        except SimbridgeError as error:
            self.on_message("error", str(error), getattr(error, "line", 0) or 0)
            return
        self.state.runtime_state = RuntimeState.PLAYING

    def _fault(self, message: str, line: int) -> None:
        self.on_message("error", message, line)

    def _end_program(self) -> None:
        if self.program is not None:
            self.program.stop()
            self.program = None
            self.motion = Hold()
        self._watchdog = None
        self.state.runtime_state = RuntimeState.STOPPED
        self.state.script_control_line = 0

    def stop_program(self) -> bool:
        """Stop the program; the arm comes to rest."""
        self._end_program()
        return True

    def pause_program(self) -> bool:
        """Pause the program; the arm comes to rest on its path."""
        if self.state.runtime_state != RuntimeState.PLAYING:
            return False
        self.state.runtime_state = RuntimeState.PAUSED
        return True

    def play_program(self) -> bool:
        """Resume a paused program."""
        s = self.state
        if s.runtime_state != RuntimeState.PAUSED or s.safety_stop or s.robot_mode != RobotMode.RUNNING:
            return False
        s.runtime_state = RuntimeState.PLAYING
        return True

    # Safety

    def protective_stop(self, reason: str = "") -> None:
        """The safety system stops the arm; the program pauses."""
        if self.state.safety_mode != SafetyMode.NORMAL:
            return
        self._safety_stop(SafetyMode.PROTECTIVE_STOP)
        self.on_message("safety", f"Protective stop{': ' + reason if reason else ''}", 0)

    def emergency_stop(self) -> None:
        """The emergency button is pressed: the program pauses, the arm stops and loses power."""
        self._safety_stop(SafetyMode.ROBOT_EMERGENCY_STOP)
        self.power.off()

    def safeguard_stop(self) -> None:
        """A safeguard is opened: the program pauses until it is closed and the operator resumes."""
        if not self.state.safety_stop:
            self._safety_stop(SafetyMode.SAFEGUARD_STOP)

    def _safety_stop(self, mode: SafetyMode) -> None:
        s = self.state
        s.safety_mode = mode
        self._stopped_at = s.timestamp
        if s.runtime_state == RuntimeState.PLAYING:
            s.runtime_state = RuntimeState.PAUSED

    def release_safety(self) -> None:
        """The emergency button is released, or the safeguard is closed."""
        if self.state.emergency_stop or self.state.safety_mode == SafetyMode.SAFEGUARD_STOP:
            self.state.safety_mode = SafetyMode.NORMAL

    def unlock_protective_stop(self) -> str:
        """Return the dashboard's answer; refused for the first 5 s."""
        s = self.state
        if s.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return "Protective stop releasing"
        if s.timestamp - self._stopped_at < UNLOCK_DELAY:
            return (
                "Cannot unlock protective stop until 5s after occurrence. "
                "Always inspect cause of protective stop before unlocking"
            )
        s.safety_mode = SafetyMode.NORMAL
        return "Protective stop releasing"

    def restart_safety(self) -> str:
        """Reset the safety system after a fault or violation; the arm is powered off."""
        self.state.safety_mode = SafetyMode.NORMAL
        self.power.off()
        return "Restarting safety"

    # Settings from the dashboard and from programs

    def power_on(self) -> None:
        if not self.state.emergency_stop:
            self.power.on()

    def power_off(self) -> None:
        self._end_program()
        self.power.off()

    def brake_release(self) -> None:
        if not self.state.emergency_stop:
            self.power.release_brakes()

    def set_speed_slider(self, fraction: float) -> None:
        """0..1."""
        self.state.speed_slider = min(max(float(fraction), 0.0), 1.0)

    def popup(self, text: str) -> None:
        self.popup_text = text

    def close_popup(self) -> None:
        self.popup_text = ""

    def set_tcp(self, pose: Array) -> None:
        """x y z rx ry rz (6,) in the flange."""
        s = self.state
        self.arm.set_tcp(pose)
        s.tcp_offset = self.arm.tcp
        s.target_tcp_pose, s.actual_tcp_pose = self.arm.pose(s.target_q), self.arm.pose(s.actual_q)
        s.target_tcp_speed = self.arm.jacobian(s.target_q) @ s.target_qd
        s.actual_tcp_speed = self.arm.jacobian(s.actual_q) @ s.actual_qd

    def servo(self, setpoint: Array, duration: float, lookahead: float, gain: float) -> None:
        """servoj: a call with a setpoint (n,), rad, that lasts `duration` s."""
        s = self.state
        if not isinstance(self.motion, Servo):
            self.motion = Servo(s.target_q, s.target_qd, self.period)
        self.motion.aim(setpoint, duration, lookahead, gain)

    # Inputs and their watchdog

    def record_input(self, names: tuple[str, ...], values: tuple[object, ...]) -> None:
        """An RTDE input package has arrived."""
        s = self.state
        self.record.inputs.append((s.tick, names, values))
        for name in names:
            self._updated[name] = s.timestamp

    def set_watchdog(self, variable: str, frequency: float, action: str) -> None:
        """rtde_set_watchdog: the action ("ignore", "pause", "stop") if the variable is updated less often."""
        action = action.lower()
        if action == "ignore" or frequency <= 0.0:
            self._watchdog = None
            return
        self._watchdog = Watchdog(variable, 1.0 / frequency, action)
        self._updated[variable] = self.state.timestamp

    def _check_watchdog(self) -> None:
        w, s = self._watchdog, self.state
        if w is None or s.runtime_state != RuntimeState.PLAYING:
            return
        if s.timestamp - self._updated.get(w.variable, s.timestamp) > w.timeout:
            self.on_message("error", f"RTDE watchdog: {w.variable} was not updated in time", 0)
            if w.action == "pause":
                self.pause_program()
            else:
                self.stop_program()


@dataclass(frozen=True)
class Watchdog:
    """An RTDE input that must be updated at least every `timeout` s, or `action` follows."""

    variable: str
    timeout: float
    action: str
