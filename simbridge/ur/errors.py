"""Errors of a controller, an arm, or the connection to them.

Each message says what was seen and what to do; the fields hold the same.
"""

from __future__ import annotations

import math

from simbridge.errors import Cause, Refusal, SimbridgeError
from simbridge.quoting import quoted, unquoted
from simbridge.ur.tables import PORT_NAMES, RuntimeState

CONNECTION_HINT = (
    "Look at the cable, the address and the controller's screen; `simbridge doctor` tries each "
    "port."
)


class ControllerError(SimbridgeError, RuntimeError):
    """Root of the errors that come from a controller; simbridge moves nothing after one of these.

    Attributes:
        host: Address of the controller.
    """

    def __init__(self, host: str, message: str) -> None:
        self.host = host
        super().__init__(message)


class ConnectionLost(ControllerError, ConnectionError):
    """The controller, or one of its ports, does not answer, or no longer does.

    Attributes:
        port: The port; None if unknown.
        reason: What happened, as a clause: "it closed the connection", or "Connection refused".
        was_connected: False if no connection was made in the first place.
    """

    cause = "connection_lost"

    def __init__(
        self,
        host: str,
        port: int | None,
        reason: str,
        hint: str = "",
        *,
        was_connected: bool = True,
    ) -> None:
        self.port = port
        self.reason = reason
        self.was_connected = was_connected

        address = host
        if port is not None:
            address = f"{host}, port {port} ({PORT_NAMES.get(port, 'a port')})"
        event = "Lost" if was_connected else "No connection to"
        message = f"{event} the controller at {address}: {reason}. {hint or CONNECTION_HINT}"
        super().__init__(host, message)


class StaleState(ControllerError, TimeoutError):
    """No state newer than the last one came for too long.

    Attributes:
        timestamp: Stamp of the last state, s (the controller's clock).
        waited: How long no newer state came, s.
        source: What should have reported the state; "" for the controller itself.
    """

    cause = "stale_state"

    def __init__(self, host: str, timestamp: float, waited: float, source: str = "") -> None:
        self.timestamp = timestamp
        self.waited = waited
        self.source = source

        reporter = source or f"the controller at {host}"
        subject = f"{reporter[0].upper()}{reporter[1:]}"
        suspect = "the CPU load of this computer"
        if not source:
            suspect = "the network (cable, not Wi-Fi) and the CPU load of both computers"
        super().__init__(
            host,
            f"{subject} has reported no state newer than {timestamp:.3f} s "
            f"(the controller's clock) for {waited * 1e3:.0f} ms, so nothing more was sent. Check "
            f"{suspect} before starting again.",
        )


class LateStates(ControllerError, TimeoutError):
    """The states of a controller came too seldom for setpoints to be sent.

    Attributes:
        fraction: Fraction of the control periods in which nothing could be sent, 0 to 1.
        window: Time over which that was measured, s.
        interval: Mean time between two arrivals of states, s; states that arrive together count
            once.
        longest_interval: Longest time between two arrivals, s.
        period: The control period, s, at which states are sent.
    """

    cause = "late_states"

    def __init__(
        self,
        host: str,
        *,
        fraction: float,
        window: float,
        interval: float,
        longest_interval: float,
        period: float,
    ) -> None:
        self.fraction = fraction
        self.window = window
        self.interval = interval
        self.longest_interval = longest_interval
        self.period = period

        super().__init__(
            host,
            f"In {100.0 * fraction:.0f} % of the control periods of the last {window:g} s nothing "
            f"could be sent to the controller at {host}, because setpoints are sent at most 8 ms "
            "ahead of its newest state. New states arrived every "
            f"{1e3 * interval:.1f} ms on average and up to {1e3 * longest_interval:.1f} ms apart, "
            f"instead of every {1e3 * period:g} ms, so the arm was stopped. Connect this computer "
            "to the controller by a cable (no Wi-Fi, VPN or tunnel); `simbridge doctor` measures "
            "how states arrive.",
        )


class ImplausibleState(ControllerError, ValueError):
    """A state that no arm can have, or that cannot follow the one before; it was not used.

    Attributes:
        field: The variable at fault: "timestamp", "actual_q", ...
        value: Value of the field, as text.
        reason: Why it cannot be, as a clause.
    """

    cause = "implausible_state"

    def __init__(self, host: str, field: str, value: str, reason: str) -> None:
        self.field = field
        self.value = value
        self.reason = reason

        super().__init__(
            host,
            f"The controller at {host} sent an implausible state: its {field} is {value}, "
            f"{reason}. The arm was stopped. If it happens again, check what is between this "
            "computer and the controller (a proxy or a tunnel), and restart the controller.",
        )


class ToolChanged(ControllerError):
    """The TCP or the payload was changed on the controller while the arm was under control.

    Attributes:
        what: "TCP", "payload", "centre of gravity" or "inertia".
        actual: Value now, as text.
        expected: Value when the motion began, as text.
    """

    cause = "tool_changed"

    def __init__(self, host: str, what: str, actual: str, expected: str) -> None:
        self.what = what
        self.actual = actual
        self.expected = expected

        super().__init__(
            host,
            f"The {what} of the controller at {host} was changed from {expected} to {actual} "
            "during the motion, which was planned for the former. The arm was stopped. Find the "
            "program that sets it (the pendant, a gripper driver, or a script on port 30001 or "
            "30002), then start again.",
        )


class ScriptNotStarted(ControllerError, TimeoutError):
    """The control script was sent, and did not run in time.

    Attributes:
        waited: How long it was waited for, s.
        question: What may be the reason and cannot be read from the controller, in sentences.
    """

    def __init__(self, host: str, waited: float, question: str = "") -> None:
        self.waited = waited
        self.question = question

        advice = question or "Look for a message on the pendant, and run `simbridge doctor`."
        super().__init__(
            host,
            f"The control script was sent to the controller at {host}, but did not start within "
            f"{waited:g} s. {advice}",
        )


class ServoProcessLost(ControllerError):
    """The process that sends setpoints has ended by itself, or did not start in time.

    Attributes:
        how: What became of the process, as a clause: "was killed by SIGKILL".
        last: Last output of the process.
    """

    cause = "servo_process_lost"

    def __init__(self, host: str, how: str, last: str = "") -> None:
        self.how = how
        self.last = last

        printed = f" Its last output: {last}" if last else ""
        message = f"The process that sends setpoints to the controller at {host} {how}.{printed}"
        super().__init__(host, message)


class NotURSim(Refusal, ControllerError):
    """A real arm, or something unknown, answers where URSim was expected.

    Attributes:
        checksum: Checksum of the controller's kinematics.
    """

    def __init__(self, host: str, checksum: tuple[int, ...]) -> None:
        self.checksum = checksum

        shown = " ".join(f"{part:08x}" for part in checksum)
        super().__init__(
            host,
            f"The controller at {host} is not URSim: its kinematics are those of a real arm "
            f"(checksum {shown}; URSim's is all ones). Nothing was switched on or moved. For a "
            "real arm, use --backend real.",
        )


class UnsupportedController(Refusal, ControllerError):
    """A controller whose software simbridge cannot drive.

    Attributes:
        version: The version that the controller reports, or "".
        reason: Why simbridge cannot drive it, as a sentence.
    """

    def __init__(self, host: str, version: str, reason: str) -> None:
        self.version = version
        self.reason = reason

        software = f"PolyScope {version}" if version else "its software"
        super().__init__(host, f"The controller at {host} cannot be driven ({software}): {reason}")


class ModelMismatch(Refusal, ControllerError, ValueError):
    """The arm is not the one that the plan is for, or not set up as the run or its cell file says.

    Attributes:
        what: "model", "serial number", "TCP", ...
        actual: Value on the controller, as text.
        expected: What the run or the cell file expects.
    """

    def __init__(
        self, host: str, what: str, *, actual: object, expected: object, remedy: str
    ) -> None:
        self.what = what
        self.actual = actual
        self.expected = expected

        super().__init__(
            host,
            f"The {what} of the controller at {host} is {actual}, but {expected} was expected. "
            f"{remedy}",
        )


class ArmChanged(ModelMismatch):
    """The controller or its arm is no longer the one that was read.

    It was read when the plan was made, or the session connected.
    """

    cause = "arm_changed"


class RemoteControlDisabled(ControllerError, PermissionError):
    """The controller accepts no programs from outside.

    Args:
        remedy: How remote control is switched on at the pendant, as a sentence.
    """

    cause = "remote_control_lost"
    remedy = (
        "At the pendant: Settings > System > Remote Control > Enable, then switch from Local to "
        "Remote Control at the top right."
    )

    def __init__(self, host: str, remedy: str = remedy) -> None:
        self.remedy = remedy

        super().__init__(
            host,
            f"The controller at {host} is in local control, so it ignores programs from outside. "
            f"{remedy}",
        )


class CommandRefused(Refusal, ControllerError):
    """The dashboard refused a command.

    Attributes:
        command: The command that was sent: "unlock protective stop".
        answer: The dashboard's answer.
    """

    def __init__(self, host: str, command: str, answer: str) -> None:
        self.command = command
        self.answer = answer

        super().__init__(
            host,
            f"The controller at {host} did not carry out {quoted(command)}; it answered: "
            f"{unquoted(answer) or '(nothing)'}. Do it at the pendant.",
        )


class RegistersInUse(Refusal, ControllerError):
    """Another RTDE client writes the registers that the bridge needs.

    Attributes:
        variables: Names of the registers in use.
    """

    def __init__(self, host: str, variables: tuple[str, ...]) -> None:
        self.variables = variables

        super().__init__(
            host,
            f"Another client of the controller at {host} uses the registers that simbridge writes "
            f"({', '.join(variables)}). Stop the other program (a second simbridge, a ROS driver, "
            "a fieldbus such as EtherNet/IP or PROFINET enabled at the pendant), or use the other "
            "half of the registers (--registers upper or lower), and start again.",
        )


class ProgramRunning(Refusal, ControllerError):
    """A program is running or paused on the controller; simbridge never stops it unasked.

    Attributes:
        runtime_state: Runtime state by UR's number.
        program: Name of the program, or "".
    """

    def __init__(self, host: str, runtime_state: int, program: str = "") -> None:
        self.runtime_state = runtime_state
        self.program = program

        name = f" ({program})" if program else ""
        between = (RuntimeState.PAUSING, RuntimeState.PAUSED, RuntimeState.RESUMING)
        state = RuntimeState(runtime_state).name.lower() if runtime_state in between else "running"
        super().__init__(
            host,
            f"A program{name} is {state} on the controller at {host}; it was not touched. Stop it "
            "at the pendant and start again.",
        )


class StartNotReached(ControllerError):
    """The approach has ended, but the arm is not at the plan's start.

    Attributes:
        joint: The joint that is farthest from it.
        distance: Distance of the joint from the start, rad.
    """

    def __init__(self, host: str, joint: str, distance: float) -> None:
        self.joint = joint
        self.distance = distance

        super().__init__(
            host,
            f"The arm at {host} did not reach the plan's start: {joint} is "
            f"{math.degrees(distance):.2f} degrees off; at most 1 degree is allowed. Check for "
            "contact, a wrong payload, or a speed slider near zero.",
        )


class FullTurn(Refusal, ControllerError, ValueError):
    """A joint is more than half a turn away from the plan's start.

    The approach might have to unwind it.

    Attributes:
        joint: Name of the joint.
        angle: Angle from the plan's start to the joint, rad.
        turns: The angle in full turns, rounded to the nearest.
    """

    def __init__(self, host: str, joint: str, angle: float) -> None:
        self.joint = joint
        self.angle = angle
        self.turns = round(angle / (2.0 * math.pi))
        super().__init__(
            host,
            f"{joint} of the arm at {host} is {math.degrees(angle):+.1f} degrees away from the "
            "plan's start, more than half a turn. Nothing was moved: which way round is safe "
            "depends on cables and hoses. Move the joint at the pendant (Move tab), or plan from "
            "another posture with --home.",
        )


class ArmStopped(ControllerError):
    """Root of the stops that come from the controller; the arm stays at rest until `recover()`.

    Attributes:
        robot_mode: Robot mode by UR's number.
        safety_mode: Safety mode by UR's number.
        runtime_state: Runtime state by UR's number.
    """

    what = "The arm was stopped"
    remedy = "Clear it at the pendant."

    def __init__(self, host: str, robot_mode: int, safety_mode: int, runtime_state: int) -> None:
        self.robot_mode = robot_mode
        self.safety_mode = safety_mode
        self.runtime_state = runtime_state

        super().__init__(
            host,
            f"{self.what} at {host} (robot mode {robot_mode}, safety mode {safety_mode}, runtime "
            f"state {runtime_state}). {self.remedy} Nothing moves again by itself.",
        )


class ProtectiveStop(ArmStopped):
    """The controller stopped the arm to protect it."""

    cause = "protective_stop"
    what = "Protective stop"
    remedy = (
        "The log on the pendant gives the reason (collision, joint speed, force). Wait five "
        "seconds, check the arm, confirm at the pendant, then start again."
    )


class EmergencyStop(ArmStopped):
    """An emergency stop button was pressed."""

    cause = "emergency_stop"
    what = "Emergency stop"
    remedy = (
        "Make the cell safe, release the button, power the arm on at the pendant, then start again."
    )


class SafeguardStop(ArmStopped):
    """A safeguard input (door, light curtain) stopped the arm."""

    cause = "safeguard_stop"
    what = "Safeguard stop"
    remedy = "Close the safeguard and reset it, then start again."


class SafetyFault(ArmStopped):
    """The safety system reports a violation, a fault, or that it needs recovery."""

    cause = "safety_fault"
    what = "The safety system stopped the arm"
    remedy = (
        "Read the message on the pendant; the safety system or the controller must be restarted "
        "there."
    )


class ArmNotReady(ArmStopped):
    """The arm has no power, or its brakes are closed."""

    cause = "power_off"
    what = "The arm is not ready to move"
    remedy = "At the pendant: power on and release the brakes; the robot mode must be 7, running."


class ProgramPaused(ArmStopped):
    """The program was paused at the pendant.

    The run was set to stop then, or cannot wait because it is live.
    """

    cause = "program_paused"
    what = "The program was paused"
    remedy = (
        "With --on-pause wait, a run waits until its program is resumed; this one was set to stop "
        "on a pause, or is a live session. Start it again."
    )


class ProgramReplaced(ArmStopped):
    """Another program runs on the controller in place of the control script; it was left alone."""

    cause = "program_replaced"
    what = "Another program has replaced the control script"
    remedy = (
        "It was left running and may move the arm: check the pendant, and stop it there before "
        "you start again."
    )


class ProgramStopped(ArmStopped):
    """The control script was stopped at the pendant, by its watchdog, or by an error in it.

    Attributes:
        unsent: How long nothing had been sent when it ended, s, if long enough for the watchdog;
            else 0.
    """

    cause = "program_stopped"
    what = "The control script was stopped"
    remedy = (
        "The log on the pendant gives the reason: stop was pressed, the script's watchdog "
        "received nothing from this computer for 100 ms, or the script had an error."
    )

    def __init__(
        self,
        host: str,
        robot_mode: int,
        safety_mode: int,
        runtime_state: int,
        *,
        unsent: float = 0.0,
    ) -> None:
        self.unsent = unsent
        if unsent:
            self.remedy = (
                f"No setpoint had been sent for {unsent * 1e3:.0f} ms; after 100 ms, the script's "
                "watchdog stops it. If this computer was busy, close other programs, or run with "
                "--realtime-priority."
            )
        super().__init__(host, robot_mode, safety_mode, runtime_state)


class SpeedScaled(ControllerError):
    """The controller reduced the speed, and the run was to be at full speed or not at all.

    Attributes:
        scaling: The speed scaling, 0..1.
        moving: Whether the arm was moving, and was stopped.
    """

    def __init__(self, host: str, scaling: float, *, moving: bool = True) -> None:
        self.scaling = scaling
        self.moving = moving
        # The stop is our own, by a rule of the run, as the guard's are.
        self.cause: Cause = "guard" if moving else "refused"
        result = "the arm was stopped" if moving else "nothing was moved"
        super().__init__(
            host,
            f"The controller at {host} scales the speed to {100.0 * scaling:.0f} %, and "
            f"--on-scaling is set to stop, so {result}. Move the speed slider to 100 %, or run "
            "with --on-scaling follow.",
        )


class ParentLost(SimbridgeError, TimeoutError):
    """The program that started a motion was halted, or its heartbeat stopped; the arm was stopped.

    Attributes:
        waited: How long there was no heartbeat, s.
    """

    cause = "parent_lost"

    def __init__(self, waited: float) -> None:
        self.waited = waited

        super().__init__(
            f"The program that started the motion gave no sign of life for {waited:.1f} s (it was "
            "suspended, halted in a debugger, or not scheduled), so the arm was stopped. Start "
            "again."
        )


class NotConfirmed(Refusal, PermissionError):
    """The operator had to confirm before a real arm moves, and has not."""
