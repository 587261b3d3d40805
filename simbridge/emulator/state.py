"""The software version, state and events that a controller shows its clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simbridge.errors import UnknownName
from simbridge.robot.pose import Array
from simbridge.ur.polyscope_x import OLDEST_DRIVEN, is_polyscope_x
from simbridge.ur.tables import (
    EMULATOR_BUILD,
    PROGRAM_RUNS,
    RobotMode,
    RuntimeState,
    SafetyMode,
    series_and_period,
)

# UR's joint modes.
JOINT_MODE_RUNNING = 253
JOINT_MODE_IDLE = 255
JOINT_MODE_POWER_OFF = 239

# Largest value that a controller takes for any quantity, in its SI unit: with 1e300 not even a
# distance can be computed.
MAX_QUANTITY = 1e6

# General-purpose registers in each direction, and URScript's flags.
NUMBER_REGISTERS = 48
BIT_REGISTERS = 128
SCRIPT_FLAGS = 33


@dataclass(frozen=True)
class Profile:
    """A PolyScope version. It decides the control period, the known variables and some answers.

    Attributes:
        polyscope: The version as given to --polyscope ("5.12").
        version: Major, minor, bugfix, build.
        date: Build date, as the dashboard reports it. Those of 5.9 and of PolyScope X are not
            known.
        api_version: Version of the Robot API (REST); "" without one.
    """

    polyscope: str
    version: tuple[int, int, int, int]
    date: str
    api_version: str = ""

    @property
    def is_polyscope_x(self) -> bool:
        """True if it is PolyScope X, which has no dashboard."""
        return is_polyscope_x(self.version)

    @property
    def series(self) -> str:
        """Series of the controller, as in robots/*.toml."""
        return series_and_period(self.version[0])[0]

    @property
    def period(self) -> float:
        """Control period, s."""
        return series_and_period(self.version[0])[1]

    def at_least(
        self, five: tuple[int, int], three: tuple[int, int], x: tuple[int, int] = OLDEST_DRIVEN
    ) -> bool:
        """Return whether this version is at least a given one.

        Args:
            five: Major and minor version of PolyScope 5.
            three: Major and minor version of PolyScope 3 (CB3).
            x: Major and minor version of PolyScope X.
        """
        if self.is_polyscope_x:
            earliest = x
        else:
            earliest = three if self.version[0] == 3 else five
        return self.version[:2] >= earliest


@dataclass(frozen=True)
class ControllerEvent:
    """An event that is sent to the clients of the primary interface.

    Attributes:
        kind: "error" (a program's, with its line and column), "text", "started" and "stopped" (a
            program, by its name), "safety" (a protective stop, with UR's code), "safety mode" (it
            has changed); "unknown" is not for them, but for the log: a client asked for something
            that the emulator does not know or do.
        text: The text that its clients read.
        line: Line of an error in the script, counted from 1; 0 while unknown.
        column: Column of that error, counted from 1; 0 while unknown.
        code: Number of UR's error; that of C209A0 is 209.
        argument: Argument of UR's error; that of C209A0 is 0.
        data: The unknown bytes that the client sent.
        program: The name of the program that an error is of, where it has one.
    """

    kind: str
    text: str = ""
    line: int = 0
    column: int = 0
    code: int = 0
    argument: int = 0
    data: bytes = b""
    program: str = ""


PROFILES = {
    "3.15": Profile("3.15", (3, 15, 8, 106339), "May 14 2021"),
    "5.9": Profile("5.9", (5, 9, 4, 1031232), "Feb 15 2021"),
    "5.12": Profile("5.12", (5, 12, 6, 1102099), "Sep 21 2023"),
    "5.25": Profile("5.25", (5, 25, 1, 1103299), "Nov 14 2025"),
    # The builds and dates of PolyScope X are invented: a build is the emulator's mark.
    "10.7": Profile("10.7", (10, 7, 0, EMULATOR_BUILD), "Jan 1 2025"),
    "10.12": Profile("10.12", (10, 12, 0, EMULATOR_BUILD), "Jan 1 2026", api_version="3.1.4"),
    "10.14": Profile("10.14", (10, 14, 0, EMULATOR_BUILD), "Jan 1 2026", api_version="5.0.107"),
}


def profile(polyscope: str) -> Profile:
    """Return the profile of a PolyScope version.

    Raises:
        UnknownName: No such version is emulated.
    """
    if polyscope not in PROFILES:
        raise UnknownName("PolyScope version", polyscope, PROFILES)
    return PROFILES[polyscope]


def _zeros() -> Array:
    """Return zeros for the joints, or for a pose or a wrench (6,)."""
    return np.zeros(6)


@dataclass
class ControllerState:
    """The state as of the last tick: written by the controller, read by the servers.

    SI units; joints and wrenches (6,). Poses are UR's: x y z and a rotation vector, in the
    pendant's base; that of the TCP is in the flange (`tcp_offset`).

    Attributes:
        timestamp: Time on the controller's clock since its start, s.
        tick: Ticks since start.
        speed_slider: Position of the speed slider, 0..1.
        speed_scaling: Speed factor that ramps to the slider. `target_speed_fraction` in RTDE.
        limiter_scaling: Speed factor of the trajectory limiter: 1 while a program plays, 0 without
            one, between them when it stops. `speed_scaling` in RTDE and in the real-time package,
            which "Client Interfaces" describes in the words of the RTDE guide, and in the robot
            mode data, where it stands next to a target speed fraction, too.
        still_ticks: Ticks for which the target speed of every joint has been zero.
        tcp_force: Force and torque at the TCP, as measured (6,), N and N m.
        external_wrench: Force and torque at the TCP, as fed in by a client (6,), N and N m.
        cog_follows_tcp: Whether the payload's centre of gravity is at the TCP, wherever that is
            moved: its mass was set without a centre of gravity.
        digital_inputs: Bits 0-7 standard, 8-15 configurable, 16-17 tool.
        digital_outputs: Bits as those of the inputs.
        analog_inputs: The two standard ones, then the tool's, A or V.
        analog_outputs: The two standard outputs, mA or V as the bits of `analog_output_types` say
            (0 current).
        input_int: General-purpose registers; so are the others named input_* and output_*.
        enabling_input: Whether the three-position enabling input is reported as active: in versions
            that report it, also without such a device.
        flags: URScript's flags, which outlive a program.
        tool_voltage: Voltage of the tool connector, V.
    """

    timestamp: float = 0.0
    tick: int = 0
    robot_mode: int = RobotMode.POWER_OFF
    safety_mode: int = SafetyMode.NORMAL
    enabling_input: bool = False
    runtime_state: int = RuntimeState.STOPPED
    speed_slider: float = 1.0
    speed_scaling: float = 1.0
    limiter_scaling: float = 1.0
    target_q: Array = field(default_factory=_zeros)
    target_qd: Array = field(default_factory=_zeros)
    target_qdd: Array = field(default_factory=_zeros)
    still_ticks: int = 0
    actual_q: Array = field(default_factory=_zeros)
    actual_qd: Array = field(default_factory=_zeros)
    target_current: Array = field(default_factory=_zeros)
    actual_current: Array = field(default_factory=_zeros)
    target_moment: Array = field(default_factory=_zeros)
    actual_tcp_pose: Array = field(default_factory=_zeros)
    target_tcp_pose: Array = field(default_factory=_zeros)
    actual_tcp_speed: Array = field(default_factory=_zeros)
    target_tcp_speed: Array = field(default_factory=_zeros)
    tcp_offset: Array = field(default_factory=_zeros)
    payload: float = 0.0
    payload_cog: Array = field(default_factory=lambda: np.zeros(3))
    payload_inertia: Array = field(default_factory=_zeros)
    cog_follows_tcp: bool = False
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, 9.82]))
    script_control_line: int = 0
    digital_inputs: int = 0
    digital_outputs: int = 0
    analog_inputs: list[float] = field(default_factory=lambda: [0.0] * 4)
    analog_outputs: list[float] = field(default_factory=lambda: [4.0, 4.0])
    analog_output_types: int = 0
    tcp_force: Array = field(default_factory=_zeros)
    external_wrench: Array = field(default_factory=_zeros)
    input_int: list[int] = field(default_factory=lambda: [0] * NUMBER_REGISTERS)
    input_double: list[float] = field(default_factory=lambda: [0.0] * NUMBER_REGISTERS)
    input_bit: list[bool] = field(default_factory=lambda: [False] * BIT_REGISTERS)
    output_int: list[int] = field(default_factory=lambda: [0] * NUMBER_REGISTERS)
    output_double: list[float] = field(default_factory=lambda: [0.0] * NUMBER_REGISTERS)
    output_bit: list[bool] = field(default_factory=lambda: [False] * BIT_REGISTERS)
    flags: list[bool] = field(default_factory=lambda: [False] * SCRIPT_FLAGS)
    tool_voltage: int = 0

    def change(self, name: str, value: Any) -> None:
        """Set an attribute, or parts of it.

        Args:
            name: Name of the attribute.
            value: A number or an array; or new values by index, for bits of a number or elements of
                a list.
        """
        present = getattr(self, name)
        if not isinstance(value, dict):
            is_array = isinstance(present, np.ndarray)
            setattr(self, name, np.array(value) if is_array else value)
            return

        if isinstance(present, list):
            for index, element in value.items():
                present[index] = element
            return

        for bit, is_set in value.items():
            mask = 1 << bit
            present = present | mask if is_set else present & ~mask
        setattr(self, name, present)

    def set_analog_output(self, i: int, ratio: float) -> None:
        """Set a standard analog output, by its type, to a part of its range.

        Args:
            i: 0 or 1.
            ratio: 0..1.
        """
        ratio = min(max(ratio, 0.0), 1.0)
        is_voltage = self.analog_output_types >> i & 1
        self.analog_outputs[i] = 10.0 * ratio if is_voltage else 4.0 + 16.0 * ratio

    @property
    def powered(self) -> bool:
        """True if the arm has power."""
        return self.robot_mode in (
            RobotMode.POWER_ON,
            RobotMode.IDLE,
            RobotMode.BACKDRIVE,
            RobotMode.RUNNING,
        )

    @property
    def joint_mode(self) -> int:
        """The mode that all joints, and the tool, are in."""
        if self.robot_mode == RobotMode.RUNNING:
            return JOINT_MODE_RUNNING
        return JOINT_MODE_IDLE if self.powered else JOINT_MODE_POWER_OFF

    @property
    def emergency_stop(self) -> bool:
        """True if an emergency button is pressed."""
        return self.safety_mode in (
            SafetyMode.SYSTEM_EMERGENCY_STOP,
            SafetyMode.ROBOT_EMERGENCY_STOP,
        )

    @property
    def safety_stop(self) -> bool:
        """True if the safety system keeps the arm from moving."""
        return self.safety_mode not in (SafetyMode.NORMAL, SafetyMode.REDUCED)

    @property
    def robot_status_bits(self) -> int:
        """Bit 0 power on, bit 1 program running, also while it is paused."""
        return int(self.powered) | int(self.runtime_state in PROGRAM_RUNS) << 1

    @property
    def safety_status_bits(self) -> int:
        """Bit for each safety mode, and for emergency stop (7) and stopped due to safety (10).

        Bits 0 normal, 1 reduced, 2 protective stop, 3 recovery, 4 safeguard, 5 system and 6 robot
        emergency stop, 8 violation, 9 fault, 11 three-position enabling input.
        """
        mode = self.safety_mode
        mode_bit = mode - 1 if mode <= SafetyMode.ROBOT_EMERGENCY_STOP else mode
        bits = 1 << mode_bit | self.emergency_stop << 7 | self.safety_stop << 10
        return bits | self.enabling_input << 11
