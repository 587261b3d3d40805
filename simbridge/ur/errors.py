"""Errors of a controller, an arm, or the connection to them: what was seen, what to do, and the same as fields."""

from __future__ import annotations

import math

from simbridge.errors import Cause, Refusal, SimbridgeError
from simbridge.quoting import quoted, unquoted
from simbridge.ur.tables import PORT_NAMES, RuntimeState

_LOOK_AT_CONNECTION = "Look at the cable, the address and the controller's screen; `simbridge doctor` tries each port."


class ControllerError(SimbridgeError, RuntimeError):
    """Root of the errors that come from a controller at an address; simbridge moves nothing after one of these."""

    def __init__(self, host: str, message: str) -> None:
        self.host = host
        super().__init__(message)


class ConnectionLost(ControllerError, ConnectionError):
    """The controller, or one of its ports (None if unknown), does not answer, or no longer does.

    The reason is half a sentence: "no connection (Connection refused)".
    """

    cause = "connection_lost"

    def __init__(self, host: str, port: int | None, reason: str, hint: str = "") -> None:
        self.port, self.reason = port, reason
        where = host if port is None else f"{host}, port {port} ({PORT_NAMES.get(port, 'a port')})"
        refused = reason.removeprefix("no connection (")
        what, why = (
            ("Lost", reason)
            if refused == reason
            else ("No connection to", refused.removesuffix(")"))
        )
        super().__init__(
            host, f"{what} the controller at {where}: {why}. {hint or _LOOK_AT_CONNECTION}"
        )


class StaleState(ControllerError, TimeoutError):
    """No state newer than a controller's timestamp (s) came for so long (waited, s).

    said_by: Who should have reported it; empty for the controller itself.
    """

    cause = "stale_state"

    def __init__(self, host: str, timestamp: float, waited: float, said_by: str = "") -> None:
        self.timestamp, self.waited, self.said_by = timestamp, waited, said_by
        source = said_by or f"the controller at {host}"
        network = "the network (cable, not Wi-Fi) and the load of both computers"
        super().__init__(
            host,
            f"{source[0].upper()}{source[1:]} has reported no state newer than {timestamp:.3f} s (the controller's "
            f"clock) for {waited * 1e3:.0f} ms, so nothing more was sent. Check "
            f"{'the load of this computer' if said_by else network} before starting again.",
        )


class LateStates(ControllerError, TimeoutError):
    """The states of a controller came too seldom for setpoints to be sent.

    Attributes:
        share: Fraction of the control periods in which nothing could be sent, 0 to 1.
        window: Over how much time that was measured, s.
        interval: Mean time between two arrivals of states, s; states that arrive together count once.
        longest: Longest time between two arrivals, s.
        period: The control period, s, at which states are sent.
    """

    cause = "late_states"

    def __init__(
        self, host: str, share: float, window: float, interval: float, longest: float, period: float
    ) -> None:
        self.share = share
        self.window = window
        self.interval = interval
        self.longest = longest
        self.period = period
        super().__init__(
            host,
            f"In {100.0 * share:.0f} % of the control periods of the last {window:g} s nothing could be sent to the "
            f"controller at {host}, because setpoints are sent at most 8 ms ahead of its newest state. New states "
            f"arrived every {1e3 * interval:.1f} ms on average and up to {1e3 * longest:.1f} ms apart, instead of "
            f"every {1e3 * period:g} ms, so the arm was stopped. Connect this computer to the controller by a cable "
            f"(no Wi-Fi, VPN or tunnel); `simbridge doctor` measures how states arrive.",
        )


class ImplausibleState(ControllerError, ValueError):
    """A state that no arm can have, or that cannot follow the one before; it was not used.

    Attributes:
        field: The variable at fault: "timestamp", "actual_q", ...
        value: What it was, as text.
        reason: Why it cannot be, as a clause.
    """

    cause = "implausible_state"

    def __init__(self, host: str, field: str, value: str, reason: str) -> None:
        self.field = field
        self.value = value
        self.reason = reason
        super().__init__(
            host,
            f"The controller at {host} sent a state that was refused: its {field} is {value}, {reason}. The arm was "
            f"stopped. If it happens again, look at what is between this computer and the controller (a proxy, a "
            f"tunnel), and restart the controller.",
        )


class ToolChanged(ControllerError):
    """The TCP or the payload was changed on the controller while the arm was under control.

    Attributes:
        what: "TCP", "payload", "centre of gravity" or "inertia".
        found: What it is now, as text.
        expected: What it was when the motion began, as text.
    """

    cause = "tool_changed"

    def __init__(self, host: str, what: str, found: str, expected: str) -> None:
        self.what = what
        self.found = found
        self.expected = expected
        super().__init__(
            host,
            f"The {what} of the controller at {host} was changed to {found} during the motion; it was {expected}, and "
            f"the motion was made for that. The arm was stopped. Look for another program that sets it (the pendant, "
            f"a gripper's driver, a script on port 30001 or 30002), and start again.",
        )


class ScriptNotStarted(ControllerError, TimeoutError):
    """The control script was sent, and did not run within a time (waited), s."""

    def __init__(self, host: str, waited: float) -> None:
        self.waited = waited
        super().__init__(
            host,
            f"The control script was sent to the controller at {host} and did not run within {waited:g} s. Look at the "
            f"pendant for a message, and at `simbridge doctor`.",
        )


class ServoProcessLost(ControllerError):
    """The process that sends setpoints has ended by itself: how ("was killed by SIGKILL"), and its last output."""

    cause = "servo_process_lost"

    def __init__(self, host: str, how: str, last: str = "") -> None:
        self.how, self.last = how, last
        printed = f" Its last output: {last}" if last else ""
        super().__init__(
            host, f"The process that sends setpoints to the controller at {host} {how}.{printed}"
        )


class NotURSim(Refusal, ControllerError):
    """A real arm, or something unknown, answers where URSim was expected; checksum: of its kinematics."""

    def __init__(self, host: str, checksum: tuple[int, ...]) -> None:
        self.checksum = checksum
        shown = " ".join(f"{part:08x}" for part in checksum)
        super().__init__(
            host,
            f"The controller at {host} is not URSim: its kinematics are those of a real arm (checksum {shown}; URSim's "
            f"is all ones). Nothing was switched on or moved. For a real arm use --backend real.",
        )


class UnsupportedController(Refusal, ControllerError):
    """A controller whose software simbridge cannot drive; version: as reported, or ""; reason: as a sentence."""

    def __init__(self, host: str, version: str, reason: str) -> None:
        self.version, self.reason = version, reason
        named = f"PolyScope {version}" if version else "its software"
        super().__init__(host, f"The controller at {host} cannot be driven ({named}): {reason}")


class ModelMismatch(Refusal, ControllerError, ValueError):
    """The arm is not the one that the plan is for, or not set up as the run or its cell file says.

    what: "model", "serial number", "TCP", ...; found on the controller, and expected by the run or the cell file.
    """

    def __init__(self, host: str, what: str, found: object, expected: object, remedy: str) -> None:
        self.what, self.found, self.expected = what, found, expected
        super().__init__(
            host,
            f"The {what} of the controller at {host} is {found}, and {expected} was expected. {remedy}",
        )


class ArmChanged(ModelMismatch):
    """The controller or its arm is no longer the one that was read when the plan was made, or the session connected."""

    cause = "arm_changed"


class RemoteControlDisabled(ControllerError, PermissionError):
    """The controller accepts no programs from outside."""

    cause = "remote_control_lost"
    remedy = (
        "At the pendant: Settings > System > Remote Control > Enable, then switch from Local to Remote Control at the "
        "top right."
    )

    def __init__(self, host: str) -> None:
        super().__init__(
            host,
            f"The controller at {host} is in local control, so it ignores programs from outside. {self.remedy}",
        )


class CommandRefused(Refusal, ControllerError):
    """The dashboard refused a command (as sent: "unlock protective stop"); answer: what it answered."""

    def __init__(self, host: str, command: str, answer: str) -> None:
        self.command, self.answer = command, answer
        super().__init__(
            host,
            f"The controller at {host} did not do {quoted(command)}; it answered: "
            f"{unquoted(answer) or '(nothing)'}. Do it at the pendant.",
        )


class RegistersInUse(Refusal, ControllerError):
    """Another RTDE client writes the registers that the bridge needs; variables: names of the registers in use."""

    def __init__(self, host: str, variables: tuple[str, ...]) -> None:
        self.variables = variables
        super().__init__(
            host,
            f"Another client of the controller at {host} uses the registers that the bridge writes "
            f"({', '.join(variables)}). Stop the other program (a second simbridge, a ROS driver, a fieldbus such as "
            f"EtherNet/IP or PROFINET enabled at the pendant) and start again.",
        )


class ProgramRunning(Refusal, ControllerError):
    """A program (its name, or "") is running or paused on the controller; simbridge never stops it unasked."""

    def __init__(self, host: str, runtime_state: int, program: str = "") -> None:
        self.runtime_state, self.program = runtime_state, program
        named = f" ({program})" if program else ""
        between = (RuntimeState.PAUSING, RuntimeState.PAUSED, RuntimeState.RESUMING)
        state = RuntimeState(runtime_state).name.lower() if runtime_state in between else "running"
        super().__init__(
            host,
            f"A program{named} is {state} on the controller at {host}; it was not touched. Stop it at the pendant and "
            f"start again.",
        )


class StartNotReached(ControllerError):
    """The approach has ended, but the arm is not at the plan's start; joint: the farthest; off: by how much, rad."""

    def __init__(self, host: str, joint: str, off: float) -> None:
        self.joint, self.off = joint, off
        super().__init__(
            host,
            f"The arm at {host} did not reach the plan's start: {joint} is {math.degrees(off):.2f} degrees off, at "
            f"most 1 is allowed. Look for contact, a wrong payload or a speed slider near zero.",
        )


class FullTurn(Refusal, ControllerError, ValueError):
    """A joint is more than half a turn away from the plan's start, so that the approach might have to unwind it.

    angle: From the plan's start to the joint, rad; turns: full ones, to the nearest.
    """

    def __init__(self, host: str, joint: str, angle: float) -> None:
        self.joint, self.angle, self.turns = joint, angle, round(angle / (2.0 * math.pi))
        super().__init__(
            host,
            f"{joint} of the arm at {host} is {math.degrees(angle):+.1f} degrees away from the plan's start, more than "
            f"half a turn. Nothing was moved: cables and hoses decide which way is safe. Move the joint at the pendant "
            f"(Move tab), or plan from another posture with --home.",
        )


class ArmStopped(ControllerError):
    """Root of the stops that come from the controller, with its modes; the arm stays at rest until `recover()`."""

    what = "The arm was stopped"
    remedy = "Clear it at the pendant."

    def __init__(self, host: str, robot_mode: int, safety_mode: int, runtime_state: int) -> None:
        self.robot_mode, self.safety_mode, self.runtime_state = (
            robot_mode,
            safety_mode,
            runtime_state,
        )
        super().__init__(
            host,
            f"{self.what} at {host} (robot mode {robot_mode}, safety mode {safety_mode}, runtime state "
            f"{runtime_state}). {self.remedy} Nothing moves again by itself.",
        )


class ProtectiveStop(ArmStopped):
    """The controller stopped the arm to protect it."""

    cause = "protective_stop"
    what = "Protective stop"
    remedy = (
        "The log at the pendant says why (collision, joint speed, force). Wait five seconds, look at the arm, confirm "
        "at the pendant, then start again."
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
    remedy = "Read the message at the pendant; the safety system or the controller must be restarted there."


class ArmNotReady(ArmStopped):
    """The arm has no power, or its brakes are closed."""

    cause = "power_off"
    what = "The arm is not ready to move"
    remedy = "At the pendant: power on and release the brakes; the robot mode must be 7, running."


class ProgramPaused(ArmStopped):
    """The program was paused at the pendant, and the run was set to stop then, or cannot wait because it is live."""

    cause = "program_paused"
    what = "The program was paused"
    remedy = (
        "A replay waits for its program to be resumed, with --on-pause wait; this run was set to stop on a pause (or "
        "is live). Start it again."
    )


class ProgramReplaced(ArmStopped):
    """Another program runs on the controller in place of the control script; it was left alone."""

    cause = "program_replaced"
    what = "Another program has replaced the control script"
    remedy = "It was not touched, and may move the arm: look at the pendant. Stop it there before you start again."


class ProgramStopped(ArmStopped):
    """The control script was stopped at the pendant, by its watchdog, or by an error in it.

    unsent: How long nothing had been sent when it ended, s, if long enough for the watchdog; else 0.
    """

    cause = "program_stopped"
    what = "The control script was stopped"
    remedy = (
        "The log at the pendant says why: stop was pressed, the script's watchdog heard nothing from here for 100 ms, "
        "or the script had an error."
    )

    def __init__(
        self, host: str, robot_mode: int, safety_mode: int, runtime_state: int, unsent: float = 0.0
    ) -> None:
        self.unsent = unsent
        if unsent:
            self.remedy = (
                f"No setpoint had been sent for {unsent * 1e3:.0f} ms, and after 100 ms the script's watchdog ends it. "
                f"If this computer was busy, close other programs, or run with --realtime-priority."
            )
        super().__init__(host, robot_mode, safety_mode, runtime_state)


class SpeedScaled(ControllerError):
    """The controller reduced the speed (scaling, 0..1), and the run was to be at full speed or not at all."""

    def __init__(self, host: str, scaling: float, *, moving: bool = True) -> None:
        self.scaling, self.moving = scaling, moving
        # The stop is our own, by a rule of the run, as the guard's are.
        self.cause: Cause = "guard" if moving else "refused"
        result = "the arm was stopped" if moving else "nothing was moved"
        super().__init__(
            host,
            f"The controller at {host} scales the speed to {100.0 * scaling:.0f} % and --on-scaling is stop, so "
            f"{result}. Move the speed slider to 100 %, or run with --on-scaling follow.",
        )


class ParentLost(SimbridgeError, TimeoutError):
    """The program that started a motion was halted, or its heartbeat stopped; the arm was stopped; waited: s."""

    cause = "parent_lost"

    def __init__(self, waited: float) -> None:
        self.waited = waited
        super().__init__(
            f"The program that started the motion gave no sign of life for {waited:.1f} s (it was suspended, halted in "
            f"a debugger, or did not get to run), so the arm was stopped. Start again."
        )


class NotConfirmed(Refusal, PermissionError):
    """The operator had to confirm before a real arm moves, and has not."""
