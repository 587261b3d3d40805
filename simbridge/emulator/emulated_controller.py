"""The controller itself: a clock, a state machine, a safety system, a program and an arm. It has no sockets and no
threads."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from simbridge.emulator.arm import EmulatedArm
from simbridge.emulator.drive import STOPPING_RATE, Drive
from simbridge.emulator.motions import Hold, Servo
from simbridge.emulator.scripts import is_secondary, program_name
from simbridge.emulator.secondary import Program, SecondaryPrograms
from simbridge.emulator.settings import Settings, state_values
from simbridge.emulator.state import ControllerState, Event, Profile, Record, Watchdog
from simbridge.robot.calibration import nominal_dh, with_dh
from simbridge.robot.parts import DhTable
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur.tables import (
    EMULATOR_SERIAL_NUMBER,
    ROBOT_TYPES,
    URSIM_CHECKSUM,
    RobotMode,
    RuntimeState,
    SafetyMode,
)

_LOG = logging.getLogger(__name__)
BRAKE_RELEASE_TIME = 0.3  # s
SLIDER_RATE = 2.0  # 1/s, at which the speed scaling follows the slider
# rad/s, by which the safety system's default limits exceed the speeds of the data sheet: the configuration data that UR
# recorded of a UR5e (test_primary_parser.cpp of its client library) has 3.3416 rad/s where the data sheet has pi.
SPEED_MARGIN = 0.2
# A client that waits for just that delay by its own clock, as a test of UR's library does, may come so much early, s.
_EARLY = 0.02
RELEASE_TIME = (
    0.5  # s from the primary interface's command to unlock it until the arm may move again
)
PROTECTIVE_STOP_CODE = 209  # UR's error code: C209A0 is 209 and 0
_ROBOT_TYPES = {model.lower(): (model, number) for number, model in ROBOT_TYPES.items()}


class Controller:
    """A UR controller without its network. Nothing here blocks: `tick` is called once per control period.

    Args:
        make_program: Makes a program from a script's source and a callback for its fault (message, line, column).
        boot_time: From power on to idle, s.
        dh: Of this individual arm; the robot's nominal table by default.
        checksum: Of its calibration; all ones by default, as on URSim.
        q: Joint positions at the start (n,), rad; the robot's home by default.

    Attributes:
        state: As of the last tick; the servers read it, and RTDE inputs write it.
        model_name: As the dashboard's `get robot model` answers: "UR10".
        robot_type: As in the primary interface's configuration data (`ur.tables.ROBOT_TYPES`).
        programs: The folder of its programs (*.urp); None has none.
        settings: As changed by `controller.set(...)`.
        drive: What moves the joints.
        own_ports: Its ports as a program of its own sees them (127.0.0.1, 30003), and where they are.
        remote_control: Whether an e-Series accepts commands from outside.
        dh: theta, a, d, alpha, each of n numbers, as in the kinematics info and the configuration data.
        watchdog: Of an RTDE input.
        on_event: Called with what the primary interface's clients are to be sent.
    """

    def __init__(
        self,
        robot: Robot,
        profile: Profile,
        make_program: Callable[[Controller, str, Callable[[str, int, int], None]], Program],
        *,
        boot_time: float = 0.5,
        serial_number: str = EMULATOR_SERIAL_NUMBER,
        dh: DhTable | None = None,
        checksum: tuple[int, ...] | None = None,
        q: Array | None = None,
    ) -> None:
        self.robot, self.profile, self.boot_time = robot, profile, boot_time
        self.serial_number, self.remote_control = serial_number, True
        self.programs: Path | None = None
        self.own_ports: dict[tuple[str, int], tuple[str, int]] = {}
        self.model_name, self.robot_type = _ROBOT_TYPES.get(
            robot.name.removesuffix("e"), ("UR10", 2)
        )
        table = dh or nominal_dh(robot)
        self.dh = (table.theta, table.a, table.d, table.alpha)
        self.kinematics_checksum = checksum or URSIM_CHECKSUM
        self.period = profile.period
        self.state = ControllerState()
        self.settings = Settings()
        self._speed_limits = robot.max_velocity + SPEED_MARGIN
        self.arm = EmulatedArm(robot if dh is None else with_dh(robot, dh))
        self.drive = Drive(self.state, robot, self.arm, period=self.period)
        self.record = Record(robot.n)
        self.on_event: Callable[[Event], None] = lambda event: None
        self.popup_text = ""
        self._said: set[str] = set()
        self.program: Program | None = None
        self._booted_in, self._release_requested = (
            0.0,
            False,
        )  # s until the next robot mode; whether it is to run
        self._make_program = make_program
        self._secondary = SecondaryPrograms(self._start, self._fault, self.period)
        self.program_name = ""
        self._announced = self._was_stopped = False
        self._stopped_at, self._released_at = -math.inf, math.inf  # of the safety system, s
        self.watchdog = Watchdog()
        s = self.state
        start = robot.home if q is None else q
        s.target_q, s.actual_q = start.copy(), start.copy()
        s.target_tcp_pose = s.actual_tcp_pose = self.arm.pose(start)

    @property
    def joint_speed_limits(self) -> Array:
        """The safety system's (n,), rad/s: those set, else the arm's own speeds with UR's margin."""
        limits = self.settings.joint_speed_limit
        return self._speed_limits if limits is None else np.array(limits)

    # The clock

    def tick(self) -> None:
        """One control period."""
        s = self.state
        s.tick += 1
        s.timestamp = s.tick * self.period
        self._tick_power()
        if s.timestamp >= self._released_at:
            self._unlock()
        step = SLIDER_RATE * self.period
        s.speed_scaling += min(max(s.speed_slider - s.speed_scaling, -step), step)
        self._check_watchdog()
        program = self.program
        if s.runtime_state == RuntimeState.PLAYING and program is not None:
            if program.ready and not self._announced:
                self._announced = True
                self.on_event(Event("started", self.program_name))
            program.tick()
            if (
                self.program is program
            ):  # otherwise it has ended itself: powerdown(), a protective stop
                s.script_control_line = program.line
                if not program.running and not self.drive.motion.blending:
                    self._end_program(stopped=False)
        self._secondary.tick()
        stop = self.drive.step(self.settings, self.joint_speed_limits)
        if stop is not None:
            self.protective_stop(stop.reason, stop.code, stop.argument)
        self._settle()
        motion = self.drive.motion
        setpoint = motion.setpoint if isinstance(motion, Servo) else None
        self.record.add(s.tick, setpoint, s.target_q, s.actual_q)

    def _settle(self) -> None:
        """End a stop once the arm is at rest, and report the limiter's scaling as UR's controllers do."""
        s, drive = self.state, self.drive
        if s.runtime_state == RuntimeState.PLAYING:
            s.limiter_scaling = 1.0
        elif s.runtime_state == RuntimeState.STOPPED:
            fall = STOPPING_RATE * self.period if self._was_stopped else 1.0
            s.limiter_scaling = max(round(s.limiter_scaling - fall, 9), 0.0)
        else:
            s.limiter_scaling = drive.rate
        if s.runtime_state == RuntimeState.STOPPING and drive.at_rest:
            drive.motion, drive.rate = Hold(), 1.0
            waiting = RuntimeState.PAUSED if s.safety_stop else RuntimeState.PLAYING
            s.runtime_state = RuntimeState.STOPPED if self.program is None else waiting

    # The program

    def load_script(self, source: str) -> None:
        """Stop the running program and run this one. A secondary program runs alongside instead."""
        if is_secondary(source):
            self._secondary.add(source)
            return
        self._end_program()
        if self.state.robot_mode != RobotMode.RUNNING and source.strip() == "protective_stop()":
            self.protective_stop("a client asked for it")
            return
        name = program_name(source)
        if self.state.robot_mode != RobotMode.RUNNING or self.state.safety_stop:
            text = "A program was received, but the robot is not running: it was not started."
            self._fault(text, program=name)
            return
        self.program, self.program_name = self._start(source), name
        if self.state.runtime_state != RuntimeState.STOPPING:
            self.state.runtime_state, self.drive.rate = RuntimeState.PLAYING, 1.0

    def _fault(self, message: str, line: int = 0, column: int = 0, program: str = "") -> None:
        self.on_event(Event("error", message, line, column, program=program))

    def _start(self, source: str) -> Program:
        return self._make_program(
            self, source, functools.partial(self._fault, program=program_name(source))
        )

    def _end_program(self, *, stopped: bool = True) -> None:
        """End the program, because it is stopped or at its own end. A moving arm first comes to rest along its path."""
        s = self.state
        self.drive.end_force_mode()
        motion = self.drive.motion
        if self.program is not None:
            self.program.stop()
            self.program = None
            if self._announced:
                self._announced = False
                self.on_event(Event("stopped", self.program_name))
        self.watchdog.disarm()
        s.script_control_line = 0
        if s.runtime_state == RuntimeState.STOPPED:
            return
        self._was_stopped = stopped
        stops = not motion.done and s.target_qd.any()
        s.runtime_state = RuntimeState.STOPPING if stops else RuntimeState.STOPPED
        # The functions of the program have let go of its motion, but it slows down along its path.
        self.drive.motion = motion if motion.done or (stops and motion.has_path) else Hold()

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
        if (
            s.runtime_state != RuntimeState.PAUSED
            or s.safety_stop
            or s.robot_mode != RobotMode.RUNNING
        ):
            return False
        s.runtime_state = RuntimeState.PLAYING
        return True

    # The safety system

    def protective_stop(
        self, reason: str = "", code: int = PROTECTIVE_STOP_CODE, argument: int = 0
    ) -> None:
        """The safety system stops the arm; the program pauses or stops (`settings`). Its code: C209A0 is 209 and 0."""
        if self.state.safety_mode != SafetyMode.NORMAL:
            return
        self._safety_stop(SafetyMode.PROTECTIVE_STOP)
        text = f"Protective stop{': ' + reason if reason else ''}"
        self.on_event(Event("safety", text, code=code, argument=argument))

    def emergency_stop(self) -> None:
        """The emergency button is pressed: the program pauses, the arm stops and loses power."""
        self._safety_stop(SafetyMode.ROBOT_EMERGENCY_STOP)
        self._cut_power()

    def safeguard_stop(self) -> None:
        """A safeguard is opened: the program pauses until it is closed and the operator resumes."""
        if not self.state.safety_stop:
            self._safety_stop(SafetyMode.SAFEGUARD_STOP)

    def _set_safety_mode(self, mode: SafetyMode) -> None:
        self._released_at = math.inf
        if self.state.safety_mode == mode:
            return
        self.state.safety_mode = mode
        self.on_event(Event("safety mode", mode.name))

    def _safety_stop(self, mode: SafetyMode) -> None:
        s = self.state
        self._set_safety_mode(mode)
        self._stopped_at = s.timestamp
        if mode == SafetyMode.PROTECTIVE_STOP and self.settings.on_protective_stop == "stop":
            self._end_program()
        elif s.runtime_state == RuntimeState.PLAYING:
            s.runtime_state = RuntimeState.PAUSED

    def release_safety(self) -> None:
        """The emergency button is released, or the safeguard is closed."""
        if self.state.emergency_stop or self.state.safety_mode == SafetyMode.SAFEGUARD_STOP:
            self._set_safety_mode(SafetyMode.NORMAL)

    def unlock_protective_stop(self) -> str:
        """Return the dashboard's answer; refused for the first 5 s (`Settings.unlock_delay`)."""
        s = self.state
        if s.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return "Protective stop releasing"
        if s.timestamp - self._stopped_at < self.settings.unlock_delay - _EARLY:
            return (
                f"Cannot unlock protective stop until {self.settings.unlock_delay:g}s after occurrence. "
                "Always inspect cause of protective stop before unlocking"
            )
        self._unlock()
        return "Protective stop releasing"

    def release_protective_stop(self) -> None:
        """Unlock it by command of the primary interface: at any time, and it takes a moment."""
        if self.state.safety_mode == SafetyMode.PROTECTIVE_STOP and self._released_at == math.inf:
            self._released_at = self.state.timestamp + RELEASE_TIME

    def _unlock(self) -> None:
        if self.state.safety_mode == SafetyMode.PROTECTIVE_STOP:
            self._set_safety_mode(SafetyMode.NORMAL)

    def restart_safety(self) -> str:
        """Reset the safety system after a fault or violation; the arm is powered off."""
        self._set_safety_mode(SafetyMode.NORMAL)
        self._cut_power()
        return "Restarting safety"

    # Power: the robot modes from power off to running, as URSim goes through them

    def power_on(self) -> None:
        """No effect when it is on."""
        if not self.state.emergency_stop and self.state.robot_mode == RobotMode.POWER_OFF:
            self.state.robot_mode, self._booted_in = RobotMode.BOOTING, self.boot_time

    def power_off(self) -> None:
        self._end_program()
        self._cut_power()
        self._settle()

    def brake_release(self) -> None:
        """At once when idle, else after booting; powers on if needed."""
        s = self.state
        if s.emergency_stop or s.robot_mode == RobotMode.RUNNING:
            return
        self.power_on()
        self._release_requested = True
        if s.robot_mode == RobotMode.IDLE:
            self._booted_in = BRAKE_RELEASE_TIME

    def _cut_power(self) -> None:
        self.state.robot_mode, self._release_requested = RobotMode.POWER_OFF, False

    def _tick_power(self) -> None:
        s = self.state
        self._booted_in -= self.period
        if self._booted_in > 0.0:
            return
        if s.robot_mode == RobotMode.BOOTING:
            s.robot_mode, self._booted_in = RobotMode.IDLE, BRAKE_RELEASE_TIME
        elif s.robot_mode == RobotMode.IDLE and self._release_requested:
            s.robot_mode, self._release_requested = RobotMode.RUNNING, False

    # Settings from tests, from the dashboard and from programs

    def set(self, values: Mapping[str, object]) -> None:
        """Change settings (`Settings`) and parts of the state (`STATE`) by name, all or none.

        Raises:
            UnknownName, InvalidParameter: There is no such setting, or it cannot have this value.
        """
        changes = state_values(values)
        self.settings = self.settings.changed(
            {name: values[name] for name in values if name not in changes}
        )
        for name, value in changes.items():
            if name == "tcp_offset":
                self.set_tcp(np.array(value))
            else:
                self.state.change(name, value)

    def set_speed_slider(self, fraction: float) -> None:
        """0..1."""
        self.state.speed_slider = min(max(float(fraction), 0.0), 1.0)

    def without_effect(self, what: str) -> None:
        """Log once that a function of URScript, or an argument, has no effect."""
        if what not in self._said:
            self._said.add(what)
            _LOG.warning(
                "URScript: %s is accepted without effect: the emulator does not model it.", what
            )

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

    def servo(self, setpoint: Array, duration: float, *, lookahead: float, gain: float) -> None:
        """Begin a call of servoj.

        Args:
            setpoint: Joint positions (n,), rad.
            duration: Of the call, s.
            lookahead: s.
            gain: 1/s^2.
        """
        motion = self.drive.motion
        if not isinstance(motion, Servo):
            motion = Servo(
                self.state.target_q,
                self.state.target_qd,
                self.period,
                follows_slider=self.settings.servoj_follows_slider,
            )
            self.drive.motion = motion
        motion.aim(setpoint, duration, lookahead=lookahead, gain=gain)

    def record_input(self, names: tuple[str, ...], values: tuple[object, ...]) -> None:
        """An RTDE input package has arrived."""
        s = self.state
        self.record.inputs.append((s.tick, names, values))
        self.watchdog.updated(names, s.timestamp)

    def _check_watchdog(self) -> None:
        s = self.state
        if s.runtime_state == RuntimeState.PLAYING and (
            variable := self.watchdog.expired(s.timestamp)
        ):
            self._fault(
                f"RTDE watchdog: {variable} was not updated in time", program=self.program_name
            )
            if self.watchdog.action == "pause":
                self.pause_program()
            else:
                self.stop_program()
