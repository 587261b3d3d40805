"""The variables of the real-time data exchange (RTDE): names, types, and the software that knows them first.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", tables of controller outputs and inputs, and what
ur_rtde 1.6 asks each version for. What the emulated arm has no sensor for reads as zero or as a healthy robot's
nominal value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from simbridge.emulator.commands import Machine
from simbridge.emulator.profile import Profile
from simbridge.emulator.rtde_inputs import SETTERS, Setter
from simbridge.emulator.state import RobotMode

FORMATS = {
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

Version = tuple[int, int]
# The software that knows a variable first: e-Series, CB3.
ALWAYS: tuple[Version, Version] = ((5, 0), (3, 0))
REGISTERS: tuple[Version, Version] = ((5, 3), (3, 9))
_NO_CB3: Version = (4, 0)
# Missing from the guide of 5.11, present in today's; the guide does not say since when.
_RECENT: tuple[Version, Version] = ((5, 23), _NO_CB3)

JOINT_MODE_RUNNING, JOINT_MODE_IDLE, JOINT_MODE_POWER_OFF = 253, 255, 239


@dataclass(frozen=True)
class OutputVariable:
    """What a controller tells.

    Attributes:
        name: As in a recipe.
        type: A key of FORMATS.
        read: Gives its value: a number, or a list of them for a vector.
        since: First e-Series and first CB3 software that knows it.
    """

    name: str
    type: str
    read: Callable[[Machine], Any]
    since: tuple[Version, Version] = ALWAYS


@dataclass(frozen=True)
class InputVariable:
    """What a controller is told.

    Attributes:
        name, type, since: As of an output.
        write: Applies a value; it gets the last values of all inputs too, because masks are variables of their own.
    """

    name: str
    type: str
    write: Setter
    since: tuple[Version, Version] = ALWAYS


def _vector(name: str) -> Callable[[Machine], list[float]]:
    return lambda machine: getattr(machine.state, name).tolist()


def _attribute(name: str) -> Callable[[Machine], Any]:
    return lambda machine: getattr(machine.state, name)


def _constant(value: Any) -> Callable[[Machine], Any]:
    return lambda machine: value


def _bits(name: str, first: int) -> Callable[[Machine], int]:
    def read(machine: Machine) -> int:
        return sum(1 << i for i, bit in enumerate(getattr(machine.state, name)[first : first + 32]) if bit)

    return read


def _element(name: str, i: int) -> Callable[[Machine], Any]:
    return lambda machine: getattr(machine.state, name)[i]


def joint_mode(machine: Machine) -> int:
    """The mode that all joints, and the tool, are in."""
    if machine.state.robot_mode == RobotMode.RUNNING:
        return JOINT_MODE_RUNNING
    return JOINT_MODE_IDLE if machine.state.powered else JOINT_MODE_POWER_OFF


def _measured() -> list[OutputVariable]:
    v = OutputVariable
    zeros3, zeros6 = [0.0] * 3, [0.0] * 6
    return [
        v("timestamp", "DOUBLE", _attribute("timestamp")),
        v("target_q", "VECTOR6D", _vector("target_q")),
        v("target_qd", "VECTOR6D", _vector("target_qd")),
        v("target_qdd", "VECTOR6D", _vector("target_qdd")),
        v("target_current", "VECTOR6D", _vector("target_current")),
        v("target_moment", "VECTOR6D", _vector("target_moment")),
        v("actual_q", "VECTOR6D", _vector("actual_q")),
        v("actual_qd", "VECTOR6D", _vector("actual_qd")),
        v("actual_current", "VECTOR6D", _vector("actual_current")),
        v("actual_current_window", "VECTOR6D", _constant(zeros6), _RECENT),
        v("actual_current_as_torque", "VECTOR6D", _vector("target_moment"), ((5, 23), _NO_CB3)),
        v("joint_control_output", "VECTOR6D", _vector("target_current")),
        v("actual_TCP_pose", "VECTOR6D", _vector("actual_tcp_pose")),
        v("actual_TCP_speed", "VECTOR6D", _vector("actual_tcp_speed")),
        v("actual_TCP_force", "VECTOR6D", _vector("tcp_force")),
        v("target_TCP_pose", "VECTOR6D", _vector("target_tcp_pose")),
        v("target_TCP_speed", "VECTOR6D", _vector("target_tcp_speed")),
        v("tcp_offset", "VECTOR6D", _vector("tcp_offset"), _RECENT),
        v("actual_TCP_acceleration", "VECTOR6D", _constant(zeros6), _RECENT),
        v("target_TCP_acceleration", "VECTOR6D", _constant(zeros6), _RECENT),
        v("tcp_force_scalar", "DOUBLE", lambda machine: float(np.linalg.norm(machine.state.tcp_force[:3]))),
        v("ft_raw_wrench", "VECTOR6D", _vector("tcp_force"), ((5, 9), _NO_CB3)),
        v("wrench_calc_from_currents", "VECTOR6D", _constant(zeros6), _RECENT),
        v("elbow_position", "VECTOR3D", _constant(zeros3), ((5, 0), (3, 5))),
        v("elbow_velocity", "VECTOR3D", _constant(zeros3), ((5, 0), (3, 5))),
        v("payload", "DOUBLE", _attribute("payload"), ((5, 5), (3, 11))),
        v("payload_cog", "VECTOR3D", _vector("payload_cog"), ((5, 5), (3, 11))),
        v("payload_inertia", "VECTOR6D", _vector("payload_inertia"), ((5, 11), (3, 15))),
        v("actual_momentum", "DOUBLE", _constant(0.0)),
        v("joint_position_deviation_ratio", "DOUBLE", _constant(0.0), _RECENT),
        v("collision_detection_ratio", "DOUBLE", _constant(0.0), _RECENT),
    ]


def _status() -> list[OutputVariable]:
    v = OutputVariable
    return [
        v("robot_mode", "INT32", _attribute("robot_mode")),
        v("joint_mode", "VECTOR6INT32", lambda machine: [joint_mode(machine)] * 6),
        v("safety_mode", "INT32", _attribute("safety_mode")),
        # Safety status and mode share their numbers up to 9; the emulator has no others.
        v("safety_status", "INT32", _attribute("safety_mode"), ((5, 4), (3, 10))),
        v("robot_status_bits", "UINT32", _attribute("robot_status_bits")),
        v("safety_status_bits", "UINT32", _attribute("safety_status_bits")),
        v("runtime_state", "UINT32", _attribute("runtime_state")),
        v("script_control_line", "UINT32", _attribute("script_control_line"), ((5, 9), (3, 14))),
        # The slider in force; the other factor is the trajectory limiter's, which this controller does not have.
        v("speed_scaling", "DOUBLE", _constant(1.0)),
        v("target_speed_fraction", "DOUBLE", _attribute("speed_scaling")),
        v("time_scale_source", "INT32", _constant(0), _RECENT),
        v("actual_execution_time", "DOUBLE", _constant(0.0)),
        v("target_execution_time", "DOUBLE", lambda machine: machine.profile.period, _RECENT),
    ]


def _electrical() -> list[OutputVariable]:
    v = OutputVariable
    return [
        v("joint_temperatures", "VECTOR6D", _constant([30.0] * 6)),
        v("actual_tool_accelerometer", "VECTOR3D", _constant([0.0] * 3)),
        v("actual_main_voltage", "DOUBLE", _constant(48.0)),
        v("actual_robot_voltage", "DOUBLE", lambda machine: 48.0 if machine.state.powered else 0.0),
        v("actual_robot_current", "DOUBLE", _constant(0.0)),
        v("actual_joint_voltage", "VECTOR6D", lambda machine: [48.0 if machine.state.powered else 0.0] * 6),
        v("actual_robot_energy_consumed", "DOUBLE", _constant(0.0), _RECENT),
        v("actual_robot_braking_energy_dissipated", "DOUBLE", _constant(0.0), _RECENT),
        v("encoder0_raw", "INT32", _constant(0), _RECENT),
        v("encoder1_raw", "INT32", _constant(0), _RECENT),
        v("actual_digital_input_bits", "UINT64", _attribute("digital_inputs")),
        v("actual_digital_output_bits", "UINT64", _attribute("digital_outputs")),
        v("actual_configurable_digital_input_bits", "UINT64", lambda m: m.state.digital_inputs >> 8 & 0xFF, _RECENT),
        v("actual_configurable_digital_output_bits", "UINT64", lambda m: m.state.digital_outputs >> 8 & 0xFF, _RECENT),
        v("analog_io_types", "UINT32", lambda machine: machine.state.analog_output_types << 2),
        v("standard_analog_input0", "DOUBLE", _constant(0.0)),
        v("standard_analog_input1", "DOUBLE", _constant(0.0)),
        v("standard_analog_output0", "DOUBLE", _element("analog_outputs", 0)),
        v("standard_analog_output1", "DOUBLE", _element("analog_outputs", 1)),
        v("io_current", "DOUBLE", _constant(0.0)),
        v("euromap67_input_bits", "UINT32", _constant(0)),
        v("euromap67_output_bits", "UINT32", _constant(0)),
        v("euromap67_24V_voltage", "DOUBLE", _constant(0.0)),
        v("euromap67_24V_current", "DOUBLE", _constant(0.0)),
        v("tool_mode", "UINT32", joint_mode),
        v("tool_analog_input_types", "UINT32", _constant(0)),
        v("tool_analog_input0", "DOUBLE", _constant(0.0)),
        v("tool_analog_input1", "DOUBLE", _constant(0.0)),
        v("tool_output_voltage", "INT32", _constant(0)),
        v("tool_output_current", "DOUBLE", _constant(0.0)),
        v("tool_temperature", "DOUBLE", _constant(30.0)),
        v("tool_output_mode", "UINT8", _constant(0)),
        v("tool_digital_output0_mode", "UINT8", _constant(0)),
        v("tool_digital_output1_mode", "UINT8", _constant(0)),
    ]


def _registers() -> list[OutputVariable]:
    v = OutputVariable
    found = []
    for way in ("output", "input"):
        found += [
            v(f"{way}_bit_registers0_to_31", "UINT32", _bits(f"{way}_bit", 0)),
            v(f"{way}_bit_registers32_to_63", "UINT32", _bits(f"{way}_bit", 32)),
        ]
        found += [v(f"{way}_bit_register_{i}", "BOOL", _element(f"{way}_bit", i), REGISTERS) for i in range(64, 128)]
        for i in range(48):
            since = ALWAYS if i < 24 else REGISTERS
            found += [
                v(f"{way}_int_register_{i}", "INT32", _element(f"{way}_int", i), since),
                v(f"{way}_double_register_{i}", "DOUBLE", _element(f"{way}_double", i), since),
            ]
    return found


@cache
def output_variables(profile: Profile) -> Mapping[str, OutputVariable]:
    """The outputs that this software knows, by name."""
    known = _measured() + _status() + _electrical() + _registers()
    return {variable.name: variable for variable in known if profile.at_least(*variable.since)}


@cache
def input_variables(profile: Profile) -> Mapping[str, InputVariable]:
    """The inputs that this software knows, by name."""
    known = [
        InputVariable(name, kind, write, REGISTERS if _is_upper(name) else ALWAYS)
        for name, (kind, write) in SETTERS.items()
    ]
    return {variable.name: variable for variable in known if profile.at_least(*variable.since)}


def _is_upper(name: str) -> bool:
    """Whether a register is one of the upper ranges, which came later."""
    number = name.rpartition("_")[2]
    if not number.isdigit():
        return False
    return name.startswith("input_bit_register_") or ("_register_" in name and int(number) >= 24)
