"""The controller itself: a clock, a state machine, a safety system, a program and an arm.

It has no sockets and no threads.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from simbridge.emulator.arm import EmulatedArm
from simbridge.emulator.drive import STOPPING_RATE, Drive
from simbridge.emulator.handover import Handover
from simbridge.emulator.motions import HoldMotion, ServojMotion
from simbridge.emulator.record import TickRecord
from simbridge.emulator.scripts import is_secondary, program_name
from simbridge.emulator.secondary import EmulatedProgram, SecondaryPrograms
from simbridge.emulator.settings import Settings, state_values
from simbridge.emulator.state import ControllerEvent, ControllerState, Profile
from simbridge.emulator.watchdog import Watchdog
from simbridge.robot.arm_models import UR10, find_model
from simbridge.robot.calibration import nominal_dh, with_dh
from simbridge.robot.parts import DhTable
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.law import LOOKAHEAD_RANGE
from simbridge.ur.tables import (
    EMULATOR_SERIAL_NUMBER,
    URSIM_CHECKSUM,
    RobotMode,
    RuntimeState,
    SafetyMode,
)

_LOG = logging.getLogger(__name__)

# Time from idle to running, s.
BRAKE_RELEASE_TIME = 0.3
# Change per second of the speed scaling while it follows the slider, 1/s.
SLIDER_RATE = 2.0
# Target speed below which a joint stands still, rad/s. Servoj only approaches its setpoint: without
# a threshold its speed would be zero only after a minute.
STILL_SPEED = 1e-6
# Decimals to which scalings are rounded, so that eighty steps of an eightieth end at zero.
SCALING_DECIMALS = 9
# Excess of the safety system's default limits over the speeds of the data sheet, rad/s: the
# configuration data that UR recorded of a UR5e (test_primary_parser.cpp of its client library) has
# 3.3416 rad/s where the data sheet has pi.
SPEED_MARGIN = 0.2
# Time by which a client may unlock too early, s: one that waits for just the delay by its own
# clock, as a test of UR's library does, must not be refused.
UNLOCK_TOLERANCE_S = 0.02
# Time from the primary interface's command to unlock until the arm may move again, s.
RELEASE_TIME = 0.5
# UR's error code: C209A0 is 209 and 0.
PROTECTIVE_STOP_CODE = 209

# The first versions of PolyScope 5 and X that report the three-position enabling input, major and
# minor; no version of CB3 does.
ENABLING_INPUT_SINCE = (5, 25)
ENABLING_INPUT_SINCE_X = (10, 12)
NO_CB3_VERSION = (4, 0)
# The model that a controller reports for an arm that is not one of UR's.
DEFAULT_MODEL = UR10

# Makes a program from its controller, a script's source, and a callback for its fault (message,
# line, column).
ProgramFactory = Callable[
    ["EmulatedController", str, Callable[[str, int, int], None]], EmulatedProgram
]


class EmulatedController:
    """A UR controller without its network.

    Nothing here blocks: `tick` is called once per control period.

    Args:
        robot: A UR arm.
        profile: Version of its software.
        make_program: Function that makes a program of a script: see `ProgramFactory`.
        boot_time: Time from power on to idle, s.
        dh: Table of this individual arm; the robot's nominal one by default.
        checksum: Checksum of its calibration; all ones by default, as on URSim.
        q: Joint positions at the start (n,), rad; the robot's home by default.

    Attributes:
        state: State as of the last tick; the servers read it, and RTDE inputs write it.
        serial_number: Serial number of the arm.
        model_name: Answer to the dashboard's `get robot model`: "UR10".
        robot_type: Type of the arm in the primary interface's configuration data
            (`robot.arm_models`).
        programs: The folder of its programs (*.urp); None has none.
        program: The program that is loaded and has not ended; None without one.
        program_name: Name of the latest program.
        settings: Settings as changed by `controller.set(...)`.
        arm: The kinematics of the arm, with the present TCP.
        drive: Moves the joints.
        record: Record of the latest ticks.
        own_ports: Addresses and ports of its servers, by those that its own programs use
            (127.0.0.1, 30003).
        remote_control: Whether an e-Series accepts commands from outside.
        popup_text: Text of the popup that is shown, or "".
        dh: theta, a, d, alpha, each of n numbers, as in the kinematics info and the configuration
            data.
        kinematics_checksum: Checksum of the arm's calibration.
        watchdog: Watchdog of an RTDE input.
        on_event: Called with each event that is sent to the clients of the primary interface.
    """

    def __init__(
        self,
        robot: Robot,
        profile: Profile,
        make_program: ProgramFactory,
        *,
        boot_time: float = 0.5,
        dh: DhTable | None = None,
        checksum: tuple[int, ...] | None = None,
        q: Array | None = None,
    ) -> None:
        # The controller and its arm.
        self.robot = robot
        self.profile = profile
        self.period = profile.period
        self.boot_time = boot_time
        self.serial_number = EMULATOR_SERIAL_NUMBER
        model = find_model(robot.ur_model) or DEFAULT_MODEL
        self.model_name = model.dashboard_name
        self.robot_type = model.robot_type
        table = dh or nominal_dh(robot)
        self.dh = (table.theta, table.a, table.d, table.alpha)
        self.kinematics_checksum = checksum or URSIM_CHECKSUM
        self._speed_limits = robot.max_velocity + SPEED_MARGIN

        # Settings, by users and servers.
        self.settings = Settings()
        self.remote_control = True
        self.programs: Path | None = None
        self.own_ports: dict[tuple[str, int], tuple[str, int]] = {}
        self.on_event: Callable[[ControllerEvent], None] = lambda event: None

        # The parts of the emulation.
        self.state = ControllerState(
            enabling_input=profile.at_least(
                ENABLING_INPUT_SINCE, NO_CB3_VERSION, ENABLING_INPUT_SINCE_X
            )
        )
        self.arm = EmulatedArm(robot if dh is None else with_dh(robot, dh))
        self.drive = Drive(self.state, robot, self.arm, period=self.period)
        self._handover = Handover(self.drive, self.period)
        self.record = TickRecord(robot.n)
        self.watchdog = Watchdog()
        self.popup_text = ""
        # Functions without an effect that have been logged, which happens once.
        self._logged: set[str] = set()

        # Power: time until the next robot mode, s.
        self._booted_in = 0.0
        # Whether the brakes are to be released once the arm has booted.
        self._release_requested = False

        # The program.
        self.program: EmulatedProgram | None = None
        self.program_name = ""
        self._make_program = make_program
        # Whether its start was announced.
        self._is_announced = False
        # Whether the last program was stopped; otherwise it ended by itself.
        self._was_stopped = False
        # Whether the arm, while it is stopping, may be taken over at its speed by the next program.
        self._may_take_over = False
        # Whether the last program was replaced before it had begun; the next one is not.
        self._has_dropped_program = False
        # The newest script that waits for the program to begin; "" if none does.
        self._next_script = ""
        self._secondary = SecondaryPrograms(self._start, self._fault, self.period)

        # When the safety system stopped the arm, s of the controller's clock.
        self._stopped_at = -math.inf
        # When its stop is to be released, s of the controller's clock.
        self._released_at = math.inf

        start = robot.home if q is None else q
        self.state.target_q = start.copy()
        self.state.actual_q = start.copy()
        pose = self.arm.pose(start)
        self.state.target_tcp_pose = pose
        self.state.actual_tcp_pose = pose

    @property
    def joint_speed_limits(self) -> Array:
        """Speed limits of the safety system (n,), rad/s; by default the arm's plus UR's margin."""
        limits = self.settings.joint_speed_limit
        return self._speed_limits if limits is None else np.array(limits)

    # The clock

    def tick(self) -> None:
        """Advance by one control period."""
        state = self.state
        state.tick += 1
        state.timestamp = state.tick * self.period

        # Power, safety, the speed slider, the watchdog.
        self._tick_power()
        if state.timestamp >= self._released_at:
            self._unlock()
        largest_change = SLIDER_RATE * self.period
        change = state.speed_slider - state.speed_scaling
        state.speed_scaling += min(max(change, -largest_change), largest_change)
        self._check_watchdog()

        # The programs.
        self._resume_from_stop()
        if state.runtime_state == RuntimeState.PLAYING and self.program is not None:
            self._tick_program(self.program)
        self._handover.tick()
        self._secondary.tick()

        # The arm.
        stop = self.drive.step(self.settings, self.joint_speed_limits)
        if stop is not None:
            self.protective_stop(stop.reason, stop.code, stop.argument)
        is_still = np.abs(state.target_qd).max() < STILL_SPEED
        state.still_ticks = state.still_ticks + 1 if is_still else 0
        self._settle()

        motion = self.drive.motion
        setpoint = motion.setpoint if isinstance(motion, ServojMotion) else None
        self.record.add(state.tick, setpoint, target_q=state.target_q, actual_q=state.actual_q)

    def _tick_program(self, program: EmulatedProgram) -> None:
        """Run the program for a tick, announce its start, and end it at its own end."""
        if program.ready and not self._is_announced:
            self._is_announced = True
            self._has_dropped_program = False
            self.on_event(ControllerEvent("started", self.program_name))

        program.tick()
        if self.program is not program:
            # It has ended itself: powerdown(), a protective stop.
            return

        self.state.script_control_line = program.line
        if self._next_script and (self._is_announced or not program.running):
            self.load_script(self._next_script)
        elif not program.running and not self.drive.motion.blending:
            self._end_program(stopped=False)

    def _resume_from_stop(self) -> None:
        """Start a program while the arm still slows down from speedj, speedl or servoj.

        Other programs wait until the arm is at rest.
        """
        state = self.state
        is_stopping = state.runtime_state == RuntimeState.STOPPING and not state.safety_stop
        program = self.program
        if is_stopping and self._may_take_over and program is not None and program.ready:
            self.drive.motion = HoldMotion()
            self.drive.rate = 1.0
            state.runtime_state = RuntimeState.PLAYING

    def _settle(self) -> None:
        """End a stop once the arm is at rest, and report the limiter's scaling as UR does."""
        state = self.state
        drive = self.drive

        # The limiter's scaling falls tick by tick after a program was stopped, and at once after
        # one has ended by itself.
        if state.runtime_state == RuntimeState.PLAYING:
            state.limiter_scaling = 1.0
        elif state.runtime_state == RuntimeState.STOPPED:
            fall = STOPPING_RATE * self.period if self._was_stopped else 1.0
            scaling = round(state.limiter_scaling - fall, SCALING_DECIMALS)
            state.limiter_scaling = max(scaling, 0.0)
        else:
            state.limiter_scaling = drive.rate

        # The end of a stop: a program that was loaded meanwhile may start now.
        if state.runtime_state == RuntimeState.STOPPING and drive.at_rest:
            drive.motion = HoldMotion()
            drive.rate = 1.0
            if self.program is None:
                state.runtime_state = RuntimeState.STOPPED
            elif state.safety_stop:
                state.runtime_state = RuntimeState.PAUSED
            else:
                state.runtime_state = RuntimeState.PLAYING

    # The program

    def load_script(self, source: str) -> None:
        """Stop the running program and run this one. A secondary program runs alongside instead.

        Args:
            source: URScript.
        """
        state = self.state
        if is_secondary(source):
            self._secondary.add(source)
            return

        program = self.program
        is_beginning = program is not None and program.running and not self._is_announced
        if is_beginning and self._has_dropped_program:
            # Let this one begin: if scripts arrive faster than they compile, replacing each would
            # mean that none ever starts.
            self._next_script = source
            return

        self._end_program(replaced=True)
        self._has_dropped_program = is_beginning
        # No program starts unless the robot is running, but this request is still honoured.
        is_running = state.robot_mode == RobotMode.RUNNING
        if not is_running and source.strip() == "protective_stop()":
            self.protective_stop("a client asked for it")
            return

        name = program_name(source)
        if not is_running or state.safety_stop:
            text = "A program was received, but the robot is not running: it was not started."
            self._fault(text, program=name)
            return

        self.program = self._start(source)
        self.program_name = name
        if state.runtime_state != RuntimeState.STOPPING:
            state.runtime_state = RuntimeState.PLAYING
            self.drive.rate = 1.0

    def _fault(self, message: str, line: int = 0, column: int = 0, *, program: str = "") -> None:
        """Report the fault of a program.

        Args:
            message: A sentence.
            line: Line of the script, counted from 1; 0 while unknown.
            column: Column, counted from 1; 0 while unknown.
            program: Name of the program.
        """
        self.on_event(ControllerEvent("error", message, line, column, program=program))

    def _start(self, source: str) -> EmulatedProgram:
        """Return a program of a script."""
        on_fault = functools.partial(self._fault, program=program_name(source))
        return self._make_program(self, source, on_fault)

    def _end_program(self, *, stopped: bool = True, replaced: bool = False) -> None:
        """End the program. A moving arm first comes to rest along its path.

        Args:
            stopped: Whether something has stopped it; otherwise it is at its own end.
            replaced: Whether another program follows at once.
        """
        state = self.state
        self._next_script = ""
        self._handover.end()
        self.drive.end_force_mode()
        motion = self.drive.motion
        if self.program is not None:
            self.program.stop()
            self.program = None
            if self._is_announced:
                self._is_announced = False
                self.on_event(ControllerEvent("stopped", self.program_name))

        self.watchdog.disarm()
        state.script_control_line = 0
        if state.runtime_state == RuntimeState.STOPPED:
            return

        is_playing = state.runtime_state == RuntimeState.PLAYING
        if replaced and is_playing and motion.carries_over and not state.safety_stop:
            self._handover.begin()
            return
        if state.runtime_state != RuntimeState.STOPPING or not replaced:
            self._may_take_over = motion.carries_over and not stopped

        self._was_stopped = stopped
        is_moving = not motion.done and state.target_qd.any()
        state.runtime_state = RuntimeState.STOPPING if is_moving else RuntimeState.STOPPED
        # The functions of the program have let go of its motion, but it slows down along its path.
        goes_on = motion.done or (is_moving and motion.has_path)
        self.drive.motion = motion if goes_on else HoldMotion()

    def stop_program(self) -> bool:
        """Stop the program; the arm comes to rest.

        Returns:
            Whether that was possible: True.
        """
        self._end_program()
        return True

    def pause_program(self) -> bool:
        """Pause the program; the arm comes to rest on its path.

        Returns:
            Whether a program was playing.
        """
        if self.state.runtime_state != RuntimeState.PLAYING:
            return False
        self.state.runtime_state = RuntimeState.PAUSED
        return True

    def play_program(self) -> bool:
        """Resume a paused program.

        Returns:
            Whether there is one, and the arm may move.
        """
        state = self.state
        is_paused = state.runtime_state == RuntimeState.PAUSED
        may_move = state.robot_mode == RobotMode.RUNNING and not state.safety_stop
        if not (is_paused and may_move):
            return False
        state.runtime_state = RuntimeState.PLAYING
        return True

    # The safety system

    def protective_stop(
        self, reason: str = "", code: int = PROTECTIVE_STOP_CODE, argument: int = 0
    ) -> None:
        """Stop the arm by the safety system; the program pauses or stops (`settings`).

        Args:
            reason: A clause, or "".
            code: Number of UR's error; that of C209A0 is 209.
            argument: Argument of UR's error; that of C209A0 is 0.
        """
        if self.state.safety_mode != SafetyMode.NORMAL:
            return
        self._safety_stop(SafetyMode.PROTECTIVE_STOP)
        text = f"Protective stop: {reason}" if reason else "Protective stop"
        self.on_event(ControllerEvent("safety", text, code=code, argument=argument))

    def emergency_stop(self) -> None:
        """Press the emergency button: the program pauses, the arm stops and loses power."""
        self._safety_stop(SafetyMode.ROBOT_EMERGENCY_STOP)
        self._cut_power()

    def safeguard_stop(self) -> None:
        """Open a safeguard: the program pauses until it is closed and the operator resumes."""
        if not self.state.safety_stop:
            self._safety_stop(SafetyMode.SAFEGUARD_STOP)

    def _set_safety_mode(self, mode: SafetyMode) -> None:
        """Enter a safety mode, and announce it if it has changed."""
        self._released_at = math.inf
        if self.state.safety_mode == mode:
            return
        self.state.safety_mode = mode
        self.on_event(ControllerEvent("safety mode", mode.name))

    def _safety_stop(self, mode: SafetyMode) -> None:
        """Stop the arm, and pause or stop the program."""
        state = self.state
        self._set_safety_mode(mode)
        self._stopped_at = state.timestamp

        is_protective = mode == SafetyMode.PROTECTIVE_STOP
        if is_protective and self.settings.on_protective_stop == "stop":
            self._end_program()
        elif state.runtime_state == RuntimeState.PLAYING:
            state.runtime_state = RuntimeState.PAUSED

    def release_safety(self) -> None:
        """Release the emergency button, or close the safeguard."""
        if self.state.emergency_stop or self.state.safety_mode == SafetyMode.SAFEGUARD_STOP:
            self._set_safety_mode(SafetyMode.NORMAL)

    def unlock_protective_stop(self) -> str:
        """Unlock a protective stop, but not in its first 5 s (`Settings.unlock_delay`).

        Returns:
            The dashboard's answer.
        """
        state = self.state
        if state.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return "Protective stop releasing"

        delay = self.settings.unlock_delay
        if state.timestamp - self._stopped_at < delay - UNLOCK_TOLERANCE_S:
            return (
                f"Cannot unlock protective stop until {delay:g}s after occurrence. "
                "Always inspect cause of protective stop before unlocking"
            )
        self._unlock()
        return "Protective stop releasing"

    def release_protective_stop(self) -> None:
        """Unlock a protective stop as the primary interface does: at any time, after a moment."""
        is_stopped = self.state.safety_mode == SafetyMode.PROTECTIVE_STOP
        if is_stopped and self._released_at == math.inf:
            self._released_at = self.state.timestamp + RELEASE_TIME

    def _unlock(self) -> None:
        """End a protective stop."""
        if self.state.safety_mode == SafetyMode.PROTECTIVE_STOP:
            self._set_safety_mode(SafetyMode.NORMAL)

    def restart_safety(self) -> str:
        """Reset the safety system after a fault or violation; the arm is powered off.

        Returns:
            The dashboard's answer.
        """
        self._set_safety_mode(SafetyMode.NORMAL)
        self._cut_power()
        return "Restarting safety"

    # Power: the robot modes from power off to running, as URSim goes through them

    def power_on(self) -> None:
        """Switch the power on. No effect when it is on."""
        state = self.state
        if not state.emergency_stop and state.robot_mode == RobotMode.POWER_OFF:
            state.robot_mode = RobotMode.BOOTING
            self._booted_in = self.boot_time

    def power_off(self) -> None:
        """End the program and switch the power off."""
        self._end_program()
        self._cut_power()
        self._settle()

    def brake_release(self) -> None:
        """Release the brakes: at once when idle, else after booting; powers on if needed."""
        state = self.state
        if state.emergency_stop or state.robot_mode == RobotMode.RUNNING:
            return
        self.power_on()
        self._release_requested = True
        if state.robot_mode == RobotMode.IDLE:
            self._booted_in = BRAKE_RELEASE_TIME

    def _cut_power(self) -> None:
        """Switch the power off, whatever the program does."""
        self.state.robot_mode = RobotMode.POWER_OFF
        self._release_requested = False

    def _tick_power(self) -> None:
        """Enter the next robot mode when it is time."""
        state = self.state
        self._booted_in -= self.period
        if self._booted_in > 0.0:
            return

        if state.robot_mode == RobotMode.BOOTING:
            state.robot_mode = RobotMode.IDLE
            self._booted_in = BRAKE_RELEASE_TIME
        elif state.robot_mode == RobotMode.IDLE and self._release_requested:
            state.robot_mode = RobotMode.RUNNING
            self._release_requested = False

    # Settings from tests, from the dashboard and from programs

    def set(self, values: Mapping[str, object]) -> None:
        """Change settings (`Settings`) and parts of the state (`STATE`) by name, all or none.

        Raises:
            UnknownName, InvalidParameter: There is no such setting, or it cannot have this value.
        """
        parts = state_values(values)
        settings = {name: value for name, value in values.items() if name not in parts}
        self.settings = self.settings.changed(settings)

        for name, value in parts.items():
            if name == "tcp_offset":
                self.set_tcp(np.array(value))
                continue
            self.state.change(name, value)
            if name == "payload_cog":
                self.state.cog_follows_tcp = False

    def set_speed_slider(self, fraction: float) -> None:
        """Move the speed slider to a fraction, which is clamped to 0..1."""
        self.state.speed_slider = min(max(float(fraction), 0.0), 1.0)

    def without_effect(self, subject: str) -> None:
        """Log once that a function of URScript, or an argument, has no effect."""
        self.warn_once(
            f"URScript: {subject} is accepted without effect: the emulator does not model it."
        )

    def warn_once(self, text: str) -> None:
        """Log a sentence as a warning, once."""
        if text in self._logged:
            return
        self._logged.add(text)
        _LOG.warning("%s", text)

    def popup(self, text: str) -> None:
        """Show a popup."""
        self.popup_text = text

    def close_popup(self) -> None:
        """Close the popup, if one is shown."""
        self.popup_text = ""

    def set_tcp(self, pose: Array) -> None:
        """Put the TCP at x y z rx ry rz (6,) in the flange, m and rad."""
        state = self.state
        arm = self.arm
        arm.set_tcp(pose)
        state.tcp_offset = arm.tcp
        if state.cog_follows_tcp:
            state.payload_cog = arm.tcp[:3].copy()
        state.target_tcp_pose = arm.pose(state.target_q)
        state.actual_tcp_pose = arm.pose(state.actual_q)
        state.target_tcp_speed = arm.jacobian(state.target_q) @ state.target_qd
        state.actual_tcp_speed = arm.jacobian(state.actual_q) @ state.actual_qd

    def servo(self, setpoint: Array, duration: float, *, lookahead: float, gain: float) -> None:
        """Begin a call of servoj.

        Args:
            setpoint: Joint positions (n,), rad.
            duration: Duration of the call, s.
            lookahead: Lookahead of servoj, s; a CB3 clips it to UR's range.
            gain: Gain of servoj, 1/s^2.
        """
        self._handover.end()
        if self.profile.series == "CB3":
            lookahead = self._clip_lookahead(lookahead)
        motion = self.drive.motion
        if not isinstance(motion, ServojMotion):
            motion = ServojMotion(
                self.state.target_q,
                self.state.target_qd,
                self.period,
                follows_slider=self.settings.servoj_follows_slider,
            )
            self.drive.motion = motion
        motion.aim(setpoint, duration, lookahead=lookahead, gain=gain)

    def _clip_lookahead(self, lookahead: float) -> float:
        """Return a lookahead of servoj within UR's range, s, as a CB3 seems to use it.

        ur_modern_driver asks for 1 s, and a CB3 that it drove moved as with 0.2 s
        (docs/validation.md).
        """
        shortest, longest = LOOKAHEAD_RANGE
        clipped = min(max(lookahead, shortest), longest)
        if clipped != lookahead:
            self.warn_once(
                f"URScript: servoj's lookahead_time of {lookahead:g} s is outside UR's range "
                f"({shortest:g} to {longest:g} s): {clipped:g} s is used, as a CB3 seems to do."
            )
        return clipped

    def record_input(self, names: tuple[str, ...], values: tuple[object, ...]) -> None:
        """Record an RTDE input package that has arrived."""
        state = self.state
        self.record.inputs.append((state.tick, names, values))
        self.watchdog.note_updates(names, state.timestamp)

    def _check_watchdog(self) -> None:
        """Pause or stop the program if an RTDE input was not updated in time."""
        state = self.state
        if state.runtime_state != RuntimeState.PLAYING:
            return
        variable = self.watchdog.expired(state.timestamp)
        if not variable:
            return

        text = f"RTDE watchdog: {variable} was not updated in time"
        self._fault(text, program=self.program_name)
        if self.watchdog.action == "pause":
            self.pause_program()
        else:
            self.stop_program()
