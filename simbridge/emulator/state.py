"""What a controller shows its clients: its software version and its state; the record of its latest ticks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.robot.pose import Array
from simbridge.ur.tables import PROGRAM_RUNS, RobotMode, RuntimeState, SafetyMode, series_and_period

JOINT_MODE_RUNNING, JOINT_MODE_IDLE, JOINT_MODE_POWER_OFF = 253, 255, 239
RECORD_LENGTH = 200_000  # ticks
LARGEST = 1e6  # of any quantity given to a controller, in its SI unit: with 1e300 not even a distance can be computed


@dataclass(frozen=True)
class Profile:
    """A PolyScope version. It decides the control period, the known variables and some answers.

    Attributes:
        polyscope: As given to --polyscope ("5.12").
        version: Major, minor, bugfix, build.
        date: Build date, as the dashboard reports it. That of 5.9 is not known.
    """

    polyscope: str
    version: tuple[int, int, int, int]
    date: str

    @property
    def series(self) -> str:
        return series_and_period(self.version[0])[0]

    @property
    def period(self) -> float:
        """Control period, s."""
        return series_and_period(self.version[0])[1]

    def at_least(self, five: tuple[int, int], three: tuple[int, int]) -> bool:
        """Whether this version is `five` or later (e-Series), or `three` or later (CB3)."""
        return self.version[:2] >= (three if self.version[0] == 3 else five)


@dataclass(frozen=True)
class Event:
    """What the primary interface's clients are to be sent.

    Attributes:
        kind: "error" (a program's, with its place), "text", "started" and "stopped" (a program, by its name),
            "safety" (a protective stop, with UR's code), "safety mode" (it has changed); "unknown" is not for them, but
            for the log: a client asked for something that the emulator does not know or do.
        text: As its clients read it.
        line, column: Place of an error in the script, counted from 1; 0 while unknown.
        code, argument: UR's error code: C209A0 is 209 and 0.
        data: What the client sent, where that is not known.
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
}


def profile(polyscope: str) -> Profile:
    """The profile of that name; else UnknownName."""
    if polyscope not in PROFILES:
        raise UnknownName("PolyScope version", polyscope, PROFILES)
    return PROFILES[polyscope]


def _zeros() -> Array:
    return np.zeros(6)


@dataclass
class ControllerState:
    """The state as of the last tick: written by the controller, read by the servers.

    SI units; joints and wrenches (6,). Poses are UR's: x y z and a rotation vector, in the pendant's base; that of the
    TCP is in the flange (`tcp_offset`).

    Attributes:
        timestamp: Controller clock, s since start.
        tick: Ticks since start.
        speed_slider: As set, 0..1.
        speed_scaling: From the slider, to which it ramps. `target_speed_fraction` in RTDE.
        limiter_scaling: Of the trajectory limiter: 1 while a program plays, 0 without one, between them when it stops.
            `speed_scaling` in RTDE and in the real-time package, which "Client Interfaces" describes in the words of
            the RTDE guide, and in the robot mode data, where it stands next to a target speed fraction, too.
        tcp_force, external_wrench: At the TCP, as measured and as fed in by a client (6,), N and N m.
        digital_inputs, digital_outputs: Bits 0-7 standard, 8-15 configurable, 16-17 tool.
        analog_inputs: The two standard ones, then the tool's, A or V.
        analog_outputs: The two standard outputs, mA or V as the bits of `analog_output_types` say (0 current).
        input_*, output_*: General-purpose registers: 48 integers and doubles and 128 bits in each direction.
        flags: URScript's, which outlive a program.
        tool_voltage: Of the tool connector, V.
    """

    timestamp: float = 0.0
    tick: int = 0
    robot_mode: int = RobotMode.POWER_OFF
    safety_mode: int = SafetyMode.NORMAL
    runtime_state: int = RuntimeState.STOPPED
    speed_slider: float = 1.0
    speed_scaling: float = 1.0
    limiter_scaling: float = 1.0
    target_q: Array = field(default_factory=_zeros)
    target_qd: Array = field(default_factory=_zeros)
    target_qdd: Array = field(default_factory=_zeros)
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
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, 9.82]))
    script_control_line: int = 0
    digital_inputs: int = 0
    digital_outputs: int = 0
    analog_inputs: list[float] = field(default_factory=lambda: [0.0] * 4)
    analog_outputs: list[float] = field(default_factory=lambda: [4.0, 4.0])
    analog_output_types: int = 0
    tcp_force: Array = field(default_factory=_zeros)
    external_wrench: Array = field(default_factory=_zeros)
    input_int: list[int] = field(default_factory=lambda: [0] * 48)
    input_double: list[float] = field(default_factory=lambda: [0.0] * 48)
    input_bit: list[bool] = field(default_factory=lambda: [False] * 128)
    output_int: list[int] = field(default_factory=lambda: [0] * 48)
    output_double: list[float] = field(default_factory=lambda: [0.0] * 48)
    output_bit: list[bool] = field(default_factory=lambda: [False] * 128)
    flags: list[bool] = field(default_factory=lambda: [False] * 33)
    tool_voltage: int = 0

    def change(self, name: str, value: Any) -> None:
        """Set an attribute: a number, an array, or some bits of a number or elements of a list, by their indices."""
        present = getattr(self, name)
        if not isinstance(value, dict):
            setattr(self, name, np.array(value) if isinstance(present, np.ndarray) else value)
            return
        for i, element in value.items():
            if isinstance(present, list):
                present[i] = element
            else:
                present = present | 1 << i if element else present & ~(1 << i)
        setattr(self, name, present)

    def set_analog_output(self, i: int, ratio: float) -> None:
        """Set a standard analog output, by its type, to this part 0..1 of its range."""
        ratio = min(max(ratio, 0.0), 1.0)
        self.analog_outputs[i] = (
            10.0 * ratio if self.analog_output_types >> i & 1 else 4.0 + 16.0 * ratio
        )

    @property
    def powered(self) -> bool:
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
        return self.safety_mode in (
            SafetyMode.SYSTEM_EMERGENCY_STOP,
            SafetyMode.ROBOT_EMERGENCY_STOP,
        )

    @property
    def safety_stop(self) -> bool:
        """Whether the safety system keeps the arm from moving."""
        return self.safety_mode not in (SafetyMode.NORMAL, SafetyMode.REDUCED)

    @property
    def robot_status_bits(self) -> int:
        """Bit 0 power on, bit 1 program running, also while it is paused."""
        return int(self.powered) | int(self.runtime_state in PROGRAM_RUNS) << 1

    @property
    def safety_status_bits(self) -> int:
        """Bits 0 normal, 1 reduced, 2 protective stop, 3 recovery, 4 safeguard, 5 system and 6 robot emergency stop,
        7 emergency stop, 8 violation, 9 fault, 10 stopped due to safety."""
        mode = self.safety_mode
        bits = 1 << (mode - 1) if mode <= SafetyMode.ROBOT_EMERGENCY_STOP else 1 << mode
        return bits | self.emergency_stop << 7 | self.safety_stop << 10


class Watchdog:
    """rtde_set_watchdog: an RTDE input that a client must update often enough; disarmed until a program arms it.

    Attributes:
        action: What follows if it is not updated in time: "pause" or "stop".
    """

    def __init__(self) -> None:
        self._variable = self.action = ""
        self._timeout = 0.0
        self._updates: dict[str, float] = {}

    def set(self, variable: str, frequency: float, action: str, now: float) -> None:
        """Arm it for updates at this frequency, Hz; the action "ignore" disarms it."""
        self.disarm()
        if action.lower() != "ignore" and frequency > 0.0:
            self._variable, self._timeout, self.action = variable, 1.0 / frequency, action.lower()
            # Only this one counts from now on: a program may name others without end.
            self._updates = {variable: now}

    def disarm(self) -> None:
        """No program demands anything any more."""
        self._variable = ""

    def updated(self, names: Iterable[str], now: float) -> None:
        """These inputs were updated, at a time of the controller's clock, s."""
        self._updates.update(dict.fromkeys(names, now))

    def expired(self, now: float) -> str:
        """The variable's name if its last update is too long ago; else empty."""
        late = bool(self._variable) and now - self._updates[self._variable] > self._timeout
        return self._variable if late else ""


class Record:
    """What happened to the arm's n joints; only the latest RECORD_LENGTH ticks and packages are kept.

    Attributes:
        inputs: Every RTDE input package on arrival: tick, names, values.
    """

    def __init__(self, n: int) -> None:
        self.inputs: deque[tuple[int, tuple[str, ...], tuple[object, ...]]] = deque(
            maxlen=RECORD_LENGTH
        )
        self._n, self._count = n, 0
        self._rows = np.zeros((RECORD_LENGTH, 1 + 3 * n))

    def add(self, tick: int, setpoint: Array | None, target_q: Array, actual_q: Array) -> None:
        """A tick: its number, servoj's setpoint in force, target and actual joints (n,), rad."""
        n, row = self._n, self._rows[self._count % RECORD_LENGTH]
        row[0] = tick
        row[1 : n + 1] = np.nan if setpoint is None else setpoint
        row[n + 1 : 2 * n + 1], row[2 * n + 1 :] = target_q, actual_q
        self._count += 1

    def past_q(self, steps: int) -> Array:
        """The actual joints (n,), rad, of an earlier tick: 0 is the latest; InvalidParameter if it is not recorded."""
        most = min(self._count, RECORD_LENGTH) - 1
        if not 0 <= steps <= most:
            raise InvalidParameter(
                "number of steps back", steps, f"from 0 to {most}: as many are recorded"
            )
        past: Array = self._rows[(self._count - 1 - steps) % RECORD_LENGTH, 2 * self._n + 1 :]
        return past

    def ticks(self, after: int = -1) -> dict[str, Array]:
        """The ticks after one: tick (K,), setpoint (nan without servoj), target_q, actual_q (K, n), rad."""
        newest = int(self._rows[(self._count - 1) % RECORD_LENGTH, 0]) if self._count else -1
        wanted = min(self._count, RECORD_LENGTH, max(newest - after, 0))
        rows = self._rows[np.arange(self._count - wanted, self._count) % RECORD_LENGTH]
        setpoint, target_q, actual_q = np.split(rows[:, 1:], 3, axis=1)
        return {
            "tick": rows[:, 0].astype(np.int64),
            "setpoint": setpoint,
            "target_q": target_q,
            "actual_q": actual_q,
        }
