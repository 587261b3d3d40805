"""All that a controller's interfaces show, as of the last tick. Written by the controller, read by the servers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from simbridge.robot.pose import Array


class RobotMode(IntEnum):
    NO_CONTROLLER = -1
    DISCONNECTED = 0
    CONFIRM_SAFETY = 1
    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    BACKDRIVE = 6
    RUNNING = 7


class SafetyMode(IntEnum):
    NORMAL = 1
    REDUCED = 2
    PROTECTIVE_STOP = 3
    RECOVERY = 4
    SAFEGUARD_STOP = 5
    SYSTEM_EMERGENCY_STOP = 6
    ROBOT_EMERGENCY_STOP = 7
    VIOLATION = 8
    FAULT = 9


class RuntimeState(IntEnum):
    STOPPING = 0
    STOPPED = 1
    PLAYING = 2
    PAUSING = 3
    PAUSED = 4
    RESUMING = 5


@dataclass
class ControllerState:
    """Numbers in SI units; poses as UR gives them: x y z and a rotation vector, in the pendant's base.

    Attributes:
        timestamp: The controller's clock, s since it started.
        tick: Ticks since it started.
        target_q ... target_qdd: What the controller asks of the joints (6,).
        actual_q ...: What the joints do.
        actual_tcp_pose, target_tcp_pose: (6,).
        actual_tcp_speed, target_tcp_speed: (6,).
        tcp_offset: Of the TCP in the flange (6,).
        speed_slider: As set, 0..1.
        speed_scaling: The slider as in force now, which ramps to it; `target_speed_fraction` in RTDE.
        tcp_force, external_wrench: At the TCP, as measured and as fed in by a client (6,), N and N m.
        digital_inputs, digital_outputs: Bits 0-7 standard, 8-15 configurable, 16-17 tool.
        analog_outputs: The standard two, mA or V as the bits of `analog_output_types` say (0 current, 1 voltage).
        input_*, output_*: The general-purpose registers: 48 integers and doubles, 128 bits (0..127 by number) each way.
    """

    timestamp: float = 0.0
    tick: int = 0
    robot_mode: int = RobotMode.POWER_OFF
    safety_mode: int = SafetyMode.NORMAL
    runtime_state: int = RuntimeState.STOPPED
    speed_slider: float = 1.0
    speed_scaling: float = 1.0
    target_q: Array = field(default_factory=lambda: np.zeros(6))
    target_qd: Array = field(default_factory=lambda: np.zeros(6))
    target_qdd: Array = field(default_factory=lambda: np.zeros(6))
    actual_q: Array = field(default_factory=lambda: np.zeros(6))
    actual_qd: Array = field(default_factory=lambda: np.zeros(6))
    target_current: Array = field(default_factory=lambda: np.zeros(6))
    actual_current: Array = field(default_factory=lambda: np.zeros(6))
    target_moment: Array = field(default_factory=lambda: np.zeros(6))
    actual_tcp_pose: Array = field(default_factory=lambda: np.zeros(6))
    target_tcp_pose: Array = field(default_factory=lambda: np.zeros(6))
    actual_tcp_speed: Array = field(default_factory=lambda: np.zeros(6))
    target_tcp_speed: Array = field(default_factory=lambda: np.zeros(6))
    tcp_offset: Array = field(default_factory=lambda: np.zeros(6))
    payload: float = 0.0
    payload_cog: Array = field(default_factory=lambda: np.zeros(3))
    payload_inertia: Array = field(default_factory=lambda: np.zeros(6))
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, 9.82]))
    script_control_line: int = 0
    digital_inputs: int = 0
    digital_outputs: int = 0
    analog_outputs: list[float] = field(default_factory=lambda: [4.0, 4.0])
    analog_output_types: int = 0
    tcp_force: Array = field(default_factory=lambda: np.zeros(6))
    external_wrench: Array = field(default_factory=lambda: np.zeros(6))
    input_int: list[int] = field(default_factory=lambda: [0] * 48)
    input_double: list[float] = field(default_factory=lambda: [0.0] * 48)
    input_bit: list[bool] = field(default_factory=lambda: [False] * 128)
    output_int: list[int] = field(default_factory=lambda: [0] * 48)
    output_double: list[float] = field(default_factory=lambda: [0.0] * 48)
    output_bit: list[bool] = field(default_factory=lambda: [False] * 128)

    @property
    def powered(self) -> bool:
        return self.robot_mode in (RobotMode.POWER_ON, RobotMode.IDLE, RobotMode.BACKDRIVE, RobotMode.RUNNING)

    @property
    def program_running(self) -> bool:
        """As UR's status bits count it: also while the program is paused."""
        return self.runtime_state != RuntimeState.STOPPED

    @property
    def robot_status_bits(self) -> int:
        """Bit 0 power on, bit 1 program running."""
        return int(self.powered) | int(self.program_running) << 1

    @property
    def safety_status_bits(self) -> int:
        """Bits 0 normal, 1 reduced, 2 protective stop, 3 recovery, 4 safeguard, 5 system and 6 robot emergency stop,
        7 emergency stop, 8 violation, 9 fault, 10 stopped due to safety."""
        mode = self.safety_mode
        bits = 1 << (mode - 1) if mode <= SafetyMode.ROBOT_EMERGENCY_STOP else 1 << mode
        if mode in (SafetyMode.SYSTEM_EMERGENCY_STOP, SafetyMode.ROBOT_EMERGENCY_STOP):
            bits |= 1 << 7
        if mode not in (SafetyMode.NORMAL, SafetyMode.REDUCED):
            bits |= 1 << 10
        return bits
