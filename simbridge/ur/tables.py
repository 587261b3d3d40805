"""The constants of UR's interfaces: ports, package types, data types and modes.

Both sides use them: the clients in `ur/` and the emulated controller.

Sources: Universal Robots, "Real-Time Data Exchange (RTDE) Guide" and "Client Interfaces"; the
safety modes from 12 as in UR's own client library.
"""

from __future__ import annotations

import struct
from enum import IntEnum

# Ports of a controller; the Robot API (REST) is that of PolyScope X.
REST = 80
DASHBOARD = 29999
PRIMARY = 30001
SECONDARY = 30002
REALTIME = 30003
RTDE = 30004
PORT_NAMES = {
    REST: "Robot API",
    DASHBOARD: "dashboard",
    PRIMARY: "primary",
    SECONDARY: "secondary",
    REALTIME: "real-time",
    RTDE: "RTDE",
}
# The ports that simbridge needs on CB3 and e-Series.
BRIDGE_PORTS = (DASHBOARD, PRIMARY, REALTIME, RTDE)
# The emulator's own port: faults and questions.
CONTROL = 30020
# The serial number by which a run is recognised as the emulator's, and the build of its software by
# which it is where no serial number can be read, as on PolyScope X before 10.14.
EMULATOR_SERIAL_NUMBER = "20261234567"
EMULATOR_BUILD = 2026123456

# Checksum of URSim's kinematics; a real arm's is another.
URSIM_CHECKSUM = (0xFFFFFFFF,) * 6


def is_emulator(serial_number: str | None, build: int = 0) -> bool:
    """Return whether a controller is the emulator's, by what it reports.

    Args:
        serial_number: Serial number that the controller reports; None if it reports none.
        build: The build of its software; 0 if unknown.
    """
    return serial_number == EMULATOR_SERIAL_NUMBER or build == EMULATOR_BUILD


def controller_kind(*, emulated: bool, ursim: bool) -> str:
    """Return what a controller is, in the words of every message and page.

    Args:
        emulated: Whether it is the emulator.
        ursim: Whether its kinematics have URSim's checksum.
    """
    if emulated:
        return "emulator"
    return "URSim" if ursim else "real arm"


def series_and_period(major: int) -> tuple[str, float]:
    """Return the series and the control period of controllers with a major version.

    Returns:
        The series, as in robots/*.toml, and the period, s.
    """
    return ("CB3", 0.008) if major <= 3 else ("e-Series", 0.002)


class RobotMode(IntEnum):
    """The state of the arm's power and brakes."""

    NO_CONTROLLER = -1
    DISCONNECTED = 0
    CONFIRM_SAFETY = 1
    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    BACKDRIVE = 6
    RUNNING = 7
    UPDATING_FIRMWARE = 8


class SafetyMode(IntEnum):
    """The state of the safety system."""

    NORMAL = 1
    REDUCED = 2
    PROTECTIVE_STOP = 3
    RECOVERY = 4
    SAFEGUARD_STOP = 5
    SYSTEM_EMERGENCY_STOP = 6
    ROBOT_EMERGENCY_STOP = 7
    VIOLATION = 8
    FAULT = 9
    VALIDATE_JOINT_ID = 10
    UNDEFINED = 11
    AUTOMATIC_MODE_SAFEGUARD_STOP = 12
    SYSTEM_THREE_POSITION_ENABLING_STOP = 13
    PENDANT_THREE_POSITION_ENABLING_STOP = 14
    IMMI_EMERGENCY_STOP = 15
    IMMI_SAFEGUARD_STOP = 16
    PROFISAFE_WAITING_FOR_PARAMETERS = 17
    PROFISAFE_AUTOMATIC_MODE_SAFEGUARD_STOP = 18
    PROFISAFE_SAFEGUARD_STOP = 19
    PROFISAFE_EMERGENCY_STOP = 20
    SAFETY_API_SAFEGUARD_STOP = 22


class RuntimeState(IntEnum):
    """The state of the controller's program."""

    STOPPING = 0
    STOPPED = 1
    PLAYING = 2
    PAUSING = 3
    PAUSED = 4
    RESUMING = 5


# States in which there is a program that runs, or may go on.
PROGRAM_RUNS = (
    RuntimeState.PLAYING,
    RuntimeState.PAUSING,
    RuntimeState.PAUSED,
    RuntimeState.RESUMING,
)

# How parts of names are spelt.
_SPELLING = {
    "immi": "IMMI",
    "profisafe": "PROFIsafe",
    "safety api": "safety API",
    "three position": "three-position",
}


def mode_label(number: int, modes: type[IntEnum]) -> str:
    """Return the name and the number of a robot mode, safety mode or runtime state.

    Such as "power off (3)".
    """
    names = {int(mode): mode.name.lower().replace("_", " ") for mode in modes}
    name = names.get(number, "unknown")
    for plain, proper in _SPELLING.items():
        name = name.replace(plain, proper)
    return f"{name} ({number})"


# RTDE: the header of a package (size, type), data types as in `struct`, and the types of packages.
RTDE_HEADER = struct.Struct(">HB")
RTDE_FORMATS = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}


class RtdePackage(IntEnum):
    """The letter that stands for each type of RTDE package, as a number."""

    PROTOCOL_VERSION = ord("V")
    CONTROLLER_VERSION = ord("v")
    TEXT = ord("M")
    OUTPUTS = ord("O")
    INPUTS = ord("I")
    START = ord("S")
    PAUSE = ord("P")
    DATA = ord("U")


# UR's error code on the primary interface for a script that is refused in local control: C210.
READ_ONLY_CODE = 210


class PrimaryPackage(IntEnum):
    """Types of packages on the primary and secondary interface."""

    ROBOT_STATE = 16
    ROBOT_MESSAGE = 20


class StatePart(IntEnum):
    """Types of the sub-packages of a robot state."""

    ROBOT_MODE = 0
    JOINTS = 1
    TOOL = 2
    MASTERBOARD = 3
    CARTESIAN = 4
    KINEMATICS = 5
    CONFIGURATION = 6


class Message(IntEnum):
    """Types of robot messages."""

    TEXT = 0
    POPUP = 2
    VERSION = 3
    SAFETY_MODE = 5
    ERROR_CODE = 6
    KEY = 7
    RUNTIME_EXCEPTION = 10
