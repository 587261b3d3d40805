"""What can be wrong with a controller, an arm, or the way to it.

Each error says which state was seen and what to do, at the pendant if need be; the same facts are fields.
"""

from __future__ import annotations

import math

from simbridge.errors import SimbridgeError

PORTS = {29999: "dashboard", 30001: "primary", 30002: "secondary", 30003: "real-time", 30004: "RTDE"}


class ControllerError(SimbridgeError, RuntimeError):
    """Root of what a controller can refuse, be or do; nothing is moved by simbridge after one of these.

    Attributes:
        host: The controller's address.
    """

    def __init__(self, host: str, message: str) -> None:
        self.host = host
        super().__init__(message)


class ConnectionLost(ControllerError, ConnectionError):
    """The controller, or one of its ports, does not answer (any more).

    Attributes:
        port: The port that is silent, or None when it is not known which.
        reason: What was seen, as half a sentence ("nothing listens there").
    """

    def __init__(self, host: str, port: int | None, reason: str, hint: str = "") -> None:
        self.port = port
        self.reason = reason
        where = f"{host}" if port is None else f"{host}, port {port} ({PORTS.get(port, 'a port')})"
        advice = (
            hint or "Look at the cable, the address and the controller's screen; `simbridge doctor` tries each port."
        )
        super().__init__(host, f"Lost the controller at {where}: {reason}. {advice}")


class StaleState(ControllerError, TimeoutError):
    """The controller is connected, and no newer state of it comes.

    Attributes:
        timestamp: The controller's last timestamp, s.
        waited: For how long nothing newer came, s.
        said_by: Who should have told it; empty for the controller itself.
    """

    def __init__(self, host: str, timestamp: float, waited: float, said_by: str = "") -> None:
        self.timestamp = timestamp
        self.waited = waited
        self.said_by = said_by
        silent = said_by or f"the controller at {host}"
        look = "the network (cable, not Wi-Fi) and at the load of both computers"
        super().__init__(
            host,
            f"{silent[0].upper()}{silent[1:]} has told no newer state than {timestamp:.3f} s (the "
            f"controller's clock) for {waited * 1e3:.0f} ms, so sending was ended. The controller's watchdog stops the "
            f"arm. Look at {'the load of this computer' if said_by else look} before beginning again.",
        )


class NotURSim(ControllerError):
    """A real arm, or something unknown, answers where URSim was expected.

    Attributes:
        checksum: Of its kinematics; URSim's is all ones.
    """

    def __init__(self, host: str, checksum: tuple[int, ...]) -> None:
        self.checksum = checksum
        shown = " ".join(f"{part:08x}" for part in checksum)
        super().__init__(
            host,
            f"The controller at {host} is not URSim: its kinematics are those of a real arm (checksum {shown}; URSim's "
            f"is all ones). Nothing was switched on or moved. For a real arm say --backend real.",
        )


class UnsupportedController(ControllerError):
    """A controller whose software simbridge cannot drive.

    Attributes:
        version: As it names itself, or "" when it does not.
        reason: What is missing, as a sentence.
    """

    def __init__(self, host: str, version: str, reason: str) -> None:
        self.version = version
        self.reason = reason
        named = f"PolyScope {version}" if version else "its software"
        super().__init__(host, f"The controller at {host} cannot be driven ({named}): {reason}")


class ModelMismatch(ControllerError, ValueError):
    """The arm behind the controller is not the one the plan is for, or not set up as the run or its cell file say.

    Attributes:
        what: "model", "serial number", "TCP", "payload", "period", ...
        found: What the controller says.
        expected: What the run or the cell file says.
    """

    def __init__(self, host: str, what: str, found: object, expected: object, remedy: str) -> None:
        self.what = what
        self.found = found
        self.expected = expected
        super().__init__(
            host, f"The {what} of the controller at {host} is {found}, and {expected} was expected. {remedy}"
        )


class RemoteControlDisabled(ControllerError, PermissionError):
    """The controller takes no programs from outside."""

    def __init__(self, host: str) -> None:
        super().__init__(
            host,
            f"The controller at {host} is in local control, so it ignores programs from outside. At the pendant: "
            f"Settings > System > Remote Control > Enable, then switch from Local to Remote Control at the top right.",
        )


class CommandRefused(ControllerError):
    """The dashboard answered a command with something else than that it does it.

    Attributes:
        command: As sent, "unlock protective stop".
        answer: What came back.
    """

    def __init__(self, host: str, command: str, answer: str) -> None:
        self.command = command
        self.answer = answer
        super().__init__(
            host,
            f"The controller at {host} did not do '{command}'; it answered: {answer or '(nothing)'}. Do it at the "
            f"pendant.",
        )


class RegistersInUse(ControllerError):
    """Another RTDE client writes the registers that the bridge needs.

    Attributes:
        variables: The names that are taken.
    """

    def __init__(self, host: str, variables: tuple[str, ...]) -> None:
        self.variables = variables
        super().__init__(
            host,
            f"Another client of the controller at {host} holds the registers that the bridge writes "
            f"({', '.join(variables)}). End the other program (a second simbridge, a ROS driver, a fieldbus such as "
            f"EtherNet/IP or PROFINET enabled at the pendant) and begin again.",
        )


class ProgramRunning(ControllerError):
    """A program runs on the controller; it is never stopped unasked.

    Attributes:
        runtime_state: 2 playing, 4 paused, ...
        program: Its name, or "" when unknown.
    """

    def __init__(self, host: str, runtime_state: int, program: str = "") -> None:
        self.runtime_state = runtime_state
        self.program = program
        named = f" ({program})" if program else ""
        state = {3: "pausing", 4: "paused", 5: "resuming"}.get(runtime_state, "running")
        super().__init__(
            host,
            f"A program{named} is {state} on the controller at {host}; it was left alone. Stop it at the pendant and "
            f"begin again.",
        )


class StartNotReached(ControllerError):
    """The approach is over and the arm is not where the plan begins.

    Attributes:
        joint: The joint that is farthest off.
        off: By how much, rad.
    """

    def __init__(self, host: str, joint: str, off: float) -> None:
        self.joint = joint
        self.off = off
        super().__init__(
            host,
            f"The arm at {host} did not come to where the plan begins: {joint} is {math.degrees(off):.2f} degrees off, "
            f"1 is allowed. Look for contact, a wrong payload or a speed slider near zero.",
        )


class FullTurn(ControllerError, ValueError):
    """The way to the plan's start would unwind a joint by more than half a turn although it is near.

    Attributes:
        joint: Its name.
        turns: How many full turns it is off.
    """

    def __init__(self, host: str, joint: str, turns: int) -> None:
        self.joint = joint
        self.turns = turns
        super().__init__(
            host,
            f"{joint} of the arm at {host} is off the plan's start by {turns:+d} full turn(s). Nothing was moved: "
            f"cables and hoses decide which way is safe. Unwind the joint at the pendant (Move tab), or plan from "
            f"another posture with --home.",
        )


class ArmStopped(ControllerError):
    """Root of the stops that come from the controller's side; the arm stays until `recover()`.

    Attributes:
        robot_mode, safety_mode, runtime_state: As the controller's state said them.
    """

    what = "The arm was stopped"
    remedy = "Clear it at the pendant."

    def __init__(self, host: str, robot_mode: int, safety_mode: int, runtime_state: int) -> None:
        self.robot_mode, self.safety_mode, self.runtime_state = robot_mode, safety_mode, runtime_state
        super().__init__(
            host,
            f"{self.what} at {host} (robot mode {robot_mode}, safety mode {safety_mode}, runtime state "
            f"{runtime_state}). {self.remedy} Nothing moves again by itself.",
        )


class ProtectiveStop(ArmStopped):
    """The controller stopped the arm to protect it."""

    what = "Protective stop"
    remedy = (
        "The log at the pendant says why (collision, joint speed, force). Wait five seconds, look at the arm, confirm "
        "at the pendant, then begin again."
    )


class EmergencyStop(ArmStopped):
    """Someone pressed an emergency stop."""

    what = "Emergency stop"
    remedy = "Make the cell safe, release the button, power the arm on at the pendant, then begin again."


class SafeguardStop(ArmStopped):
    """A safeguard input (door, light curtain) stopped the arm."""

    what = "Safeguard stop"
    remedy = "Close the safeguard and reset it, then begin again."


class SafetyFault(ArmStopped):
    """The safety system reports a violation, a fault, or that it must be recovered."""

    what = "The safety system stopped the arm"
    remedy = "Read the message at the pendant; the safety system or the controller has to be restarted there."


class ArmNotReady(ArmStopped):
    """The arm is not powered, or its brakes hold it."""

    what = "The arm is not ready to move"
    remedy = "At the pendant: power on and release the brakes; the robot mode must be 7, running."


class ProgramStopped(ArmStopped):
    """The control script was stopped or paused at the pendant, ended by its watchdog, or by an error of its own.

    Attributes:
        unsent: For how long nothing had been sent when it ended, s, if that was long enough for the watchdog; else 0.
    """

    what = "The control script was stopped"
    remedy = "Someone pressed stop or pause at the pendant, or the script ended with the error shown there."

    def __init__(self, host: str, robot_mode: int, safety_mode: int, runtime_state: int, unsent: float = 0.0) -> None:
        self.unsent = unsent
        if unsent:
            self.remedy = (
                f"No setpoint had left for {unsent * 1e3:.0f} ms, and after 100 ms the script's watchdog ends it: this "
                f"computer was held up. Close what else keeps it busy, or run with --realtime-priority."
            )
        super().__init__(host, robot_mode, safety_mode, runtime_state)


class SpeedScaled(ControllerError):
    """The controller slowed the motion down, and the run was to be at full speed or not at all.

    Attributes:
        scaling: What was seen, 0..1.
    """

    def __init__(self, host: str, scaling: float) -> None:
        self.scaling = scaling
        super().__init__(
            host,
            f"The controller at {host} scales the speed to {scaling:.0%} and --on-scaling is stop, so the arm was "
            f"stopped. Move the speed slider to 100 %, or run with --on-scaling follow.",
        )


class TargetsStopped(SimbridgeError, TimeoutError):
    """A live source gave no new target in time; the arm was stopped.

    Attributes:
        waited: s.
    """

    def __init__(self, waited: float) -> None:
        self.waited = waited
        super().__init__(
            f"No new setpoint came for {waited * 1e3:.0f} ms, so the arm was stopped. Call servo() once every period, "
            f"from a loop that nothing holds up; recover() begins anew."
        )


class NotConfirmed(SimbridgeError, PermissionError):
    """A person had to agree before a real arm moves, and has not."""
