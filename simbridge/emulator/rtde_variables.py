"""The variables of the real-time data exchange (RTDE): names, types, what they read or write, and since which version.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", tables of controller outputs and inputs, and what
ur_rtde 1.6 asks each version for. Quantities that the emulated arm has no sensor for read as zero or as a healthy
robot's nominal value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from simbridge.emulator.state import LARGEST, ControllerState, Profile

Version = tuple[int, int]
# The first version that has a variable: e-Series, CB3.
ALWAYS: tuple[Version, Version] = ((5, 0), (3, 0))
REGISTERS: tuple[Version, Version] = ((5, 3), (3, 9))
_NO_CB3: Version = (4, 0)
# Missing from the guide of 5.11, present in today's; the guide does not say since when.
_RECENT: tuple[Version, Version] = ((5, 23), _NO_CB3)

# Gets the state, the value, and the last values of all inputs, because masks are variables of their own.
Write: TypeAlias = Callable[[ControllerState, Any, Mapping[str, Any]], None]


@dataclass(frozen=True)
class OutputVariable:
    """An output of the controller.

    Attributes:
        name: As in a recipe.
        type: A key of `ur.tables.RTDE_FORMATS`.
        read: Returns its value: a number, or a list of numbers for a vector.
        since: First e-Series and first CB3 version that has it.
    """

    name: str
    type: str
    read: Callable[[ControllerState], Any]
    since: tuple[Version, Version] = ALWAYS


@dataclass(frozen=True)
class InputVariable:
    """An input of the controller.

    Attributes:
        name, type, since: As in an output.
        write: Applies a value.
    """

    name: str
    type: str
    write: Write
    since: tuple[Version, Version] = ALWAYS


def _no_effect(state: ControllerState, value: Any, inputs: Mapping[str, Any]) -> None:
    """A mask or a type takes effect with its value."""


def _speed_slider(state: ControllerState, value: float, inputs: Mapping[str, Any]) -> None:
    if inputs.get("speed_slider_mask") and math.isfinite(value):
        state.speed_slider = min(max(value, 0.0), 1.0)


def _digital_output(group: str, first: int, width: int) -> Write:
    def write(state: ControllerState, value: int, inputs: Mapping[str, Any]) -> None:
        mask = (inputs.get(f"{group}_digital_output_mask", 0) & ((1 << width) - 1)) << first
        state.digital_outputs = state.digital_outputs & ~mask | value << first & mask

    return write


def _analog_output(i: int) -> Write:
    def write(state: ControllerState, value: float, inputs: Mapping[str, Any]) -> None:
        if not inputs.get("standard_analog_output_mask", 0) >> i & 1 or not math.isfinite(value):
            return
        voltage = inputs.get("standard_analog_output_type", 0) >> i & 1
        ratio = min(max(value, 0.0), 1.0)
        state.analog_output_types = state.analog_output_types & ~(1 << i) | voltage << i
        state.analog_outputs[i] = 10.0 * ratio if voltage else 4.0 + 16.0 * ratio

    return write


def _external_wrench(state: ControllerState, value: tuple[float, ...], inputs: Mapping[str, Any]) -> None:
    if all(abs(number) <= LARGEST for number in value):  # NaN is not; as with the slider, what was there is kept
        state.external_wrench = np.array(value)


def _write_element(name: str, i: int) -> Write:
    def write(state: ControllerState, value: Any, inputs: Mapping[str, Any]) -> None:
        getattr(state, name)[i] = value

    return write


def _write_bits(first: int) -> Write:
    def write(state: ControllerState, value: int, inputs: Mapping[str, Any]) -> None:
        state.input_bit[first : first + 32] = [bool(value >> i & 1) for i in range(32)]

    return write


def _since(register: int) -> tuple[Version, Version]:
    """The first versions that have a numbered register: the upper half came later."""
    return ALWAYS if register < 24 else REGISTERS


_WRITTEN = [
    InputVariable("speed_slider_mask", "UINT32", _no_effect),
    InputVariable("speed_slider_fraction", "DOUBLE", _speed_slider),
    InputVariable("standard_digital_output_mask", "UINT8", _no_effect),
    InputVariable("standard_digital_output", "UINT8", _digital_output("standard", 0, 8)),
    InputVariable("configurable_digital_output_mask", "UINT8", _no_effect),
    InputVariable("configurable_digital_output", "UINT8", _digital_output("configurable", 8, 8)),
    InputVariable("tool_digital_output_mask", "UINT8", _no_effect),
    InputVariable("tool_digital_output", "UINT8", _digital_output("tool", 16, 2)),
    InputVariable("standard_analog_output_mask", "UINT8", _no_effect),
    InputVariable("standard_analog_output_type", "UINT8", _no_effect),
    InputVariable("standard_analog_output_0", "DOUBLE", _analog_output(0)),
    InputVariable("standard_analog_output_1", "DOUBLE", _analog_output(1)),
    InputVariable("external_force_torque", "VECTOR6D", _external_wrench),
    InputVariable("input_bit_registers0_to_31", "UINT32", _write_bits(0)),
    InputVariable("input_bit_registers32_to_63", "UINT32", _write_bits(32)),
    *(
        InputVariable(f"input_bit_register_{i}", "BOOL", _write_element("input_bit", i), REGISTERS)
        for i in range(64, 128)
    ),
    *(InputVariable(f"input_int_register_{i}", "INT32", _write_element("input_int", i), _since(i)) for i in range(48)),
    *(
        InputVariable(f"input_double_register_{i}", "DOUBLE", _write_element("input_double", i), _since(i))
        for i in range(48)
    ),
]


def _vector(name: str) -> Callable[[ControllerState], list[float]]:
    return lambda state: getattr(state, name).tolist()


def _attribute(name: str) -> Callable[[ControllerState], Any]:
    return lambda state: getattr(state, name)


def _constant(value: Any) -> Callable[[ControllerState], Any]:
    return lambda state: value


def _bits(name: str, first: int) -> Callable[[ControllerState], int]:
    def read(state: ControllerState) -> int:
        return sum(1 << i for i, bit in enumerate(getattr(state, name)[first : first + 32]) if bit)

    return read


def _element(name: str, i: int) -> Callable[[ControllerState], Any]:
    return lambda state: getattr(state, name)[i]


_READ = [
    OutputVariable("timestamp", "DOUBLE", _attribute("timestamp")),
    *(
        OutputVariable(name, "VECTOR6D", _vector(name.lower()), since)
        for since, names in (
            (ALWAYS, ("target_q", "target_qd", "target_qdd", "target_current", "target_moment")),
            (ALWAYS, ("actual_q", "actual_qd", "actual_current")),
            (ALWAYS, ("actual_TCP_pose", "actual_TCP_speed", "target_TCP_pose", "target_TCP_speed")),
            (((5, 11), (3, 15)), ("payload_inertia",)),
            (ALWAYS, ("tcp_offset",)),
        )
        for name in names
    ),
    OutputVariable("actual_current_as_torque", "VECTOR6D", _vector("target_moment"), _RECENT),
    OutputVariable("target_gravity", "VECTOR3D", _vector("gravity"), _RECENT),
    OutputVariable("joint_control_output", "VECTOR6D", _vector("target_current")),
    OutputVariable("actual_TCP_force", "VECTOR6D", _vector("tcp_force")),
    OutputVariable("ft_raw_wrench", "VECTOR6D", _vector("tcp_force"), ((5, 9), _NO_CB3)),
    OutputVariable("tcp_force_scalar", "DOUBLE", lambda state: float(np.linalg.norm(state.tcp_force[:3]))),
    OutputVariable("payload", "DOUBLE", _attribute("payload"), ((5, 5), (3, 11))),
    OutputVariable("payload_cog", "VECTOR3D", _vector("payload_cog"), ((5, 5), (3, 11))),
    OutputVariable("control_step", "UINT64", _attribute("tick"), _RECENT),
    OutputVariable("robot_mode", "INT32", _attribute("robot_mode")),
    OutputVariable("joint_mode", "VECTOR6INT32", lambda state: [state.joint_mode] * 6),
    OutputVariable("tool_mode", "UINT32", _attribute("joint_mode")),
    OutputVariable("safety_mode", "INT32", _attribute("safety_mode")),
    # Safety status and mode share their numbers up to 9; the emulator has no others.
    OutputVariable("safety_status", "INT32", _attribute("safety_mode"), ((5, 4), (3, 10))),
    OutputVariable("robot_status_bits", "UINT32", _attribute("robot_status_bits")),
    OutputVariable("safety_status_bits", "UINT32", _attribute("safety_status_bits")),
    OutputVariable("runtime_state", "UINT32", _attribute("runtime_state")),
    OutputVariable("script_control_line", "UINT32", _attribute("script_control_line"), ((5, 9), (3, 14))),
    OutputVariable("speed_scaling", "DOUBLE", _attribute("limiter_scaling")),
    OutputVariable("target_speed_fraction", "DOUBLE", _attribute("speed_scaling")),
    OutputVariable("actual_robot_voltage", "DOUBLE", lambda state: 48.0 * state.powered),
    OutputVariable("actual_joint_voltage", "VECTOR6D", lambda state: [48.0 * state.powered] * 6),
    OutputVariable("actual_digital_input_bits", "UINT64", _attribute("digital_inputs")),
    OutputVariable("actual_digital_output_bits", "UINT64", _attribute("digital_outputs")),
    OutputVariable(
        "actual_configurable_digital_input_bits", "UINT64", lambda state: state.digital_inputs >> 8 & 0xFF, _RECENT
    ),
    OutputVariable(
        "actual_configurable_digital_output_bits", "UINT64", lambda state: state.digital_outputs >> 8 & 0xFF, _RECENT
    ),
    OutputVariable("analog_io_types", "UINT32", lambda state: state.analog_output_types << 2),
    OutputVariable("tool_output_voltage", "INT32", _attribute("tool_voltage")),
    *(OutputVariable(f"standard_analog_input{i}", "DOUBLE", _element("analog_inputs", i)) for i in range(2)),
    *(OutputVariable(f"tool_analog_input{i}", "DOUBLE", _element("analog_inputs", 2 + i)) for i in range(2)),
    OutputVariable("standard_analog_output0", "DOUBLE", _element("analog_outputs", 0)),
    OutputVariable("standard_analog_output1", "DOUBLE", _element("analog_outputs", 1)),
]

# What does not change here: type, value, since when, names.
_CONSTANT: list[tuple[str, Any, tuple[Version, Version], str]] = [
    ("VECTOR6D", [30.0] * 6, ALWAYS, "joint_temperatures"),
    ("VECTOR6D", [0.0] * 6, _RECENT, "actual_current_window actual_TCP_acceleration target_TCP_acceleration"),
    ("VECTOR6D", [0.0] * 6, _RECENT, "wrench_calc_from_currents"),
    ("VECTOR6D", [0.0] * 6, _RECENT, "target_base_acceleration target_base_wrench"),
    ("VECTOR3D", [0.0] * 3, ((5, 0), (3, 5)), "elbow_position elbow_velocity"),
    ("VECTOR3D", [0.0] * 3, ALWAYS, "actual_tool_accelerometer"),
    ("DOUBLE", 48.0, ALWAYS, "actual_main_voltage"),
    ("DOUBLE", 30.0, ALWAYS, "tool_temperature"),
    ("DOUBLE", 0.0, ALWAYS, "actual_momentum actual_execution_time actual_robot_current io_current"),
    ("DOUBLE", 0.0, ALWAYS, "tool_output_current euromap67_24V_voltage euromap67_24V_current"),
    ("DOUBLE", 0.0, _RECENT, "joint_position_deviation_ratio collision_detection_ratio"),
    ("DOUBLE", 0.0, _RECENT, "actual_robot_energy_consumed actual_robot_braking_energy_dissipated"),
    ("INT32", 0, _RECENT, "time_scale_source encoder0_raw encoder1_raw"),
    ("UINT32", 0, ALWAYS, "euromap67_input_bits euromap67_output_bits tool_analog_input_types"),
    ("UINT8", 0, ALWAYS, "tool_output_mode tool_digital_output0_mode tool_digital_output1_mode"),
]


def _registers(direction: str) -> list[OutputVariable]:
    """The registers of one direction, "input" or "output", as clients read them."""
    bit, integer, double = f"{direction}_bit", f"{direction}_int", f"{direction}_double"
    return [
        OutputVariable(f"{bit}_registers0_to_31", "UINT32", _bits(bit, 0)),
        OutputVariable(f"{bit}_registers32_to_63", "UINT32", _bits(bit, 32)),
        *(OutputVariable(f"{bit}_register_{i}", "BOOL", _element(bit, i), REGISTERS) for i in range(64, 128)),
        *(OutputVariable(f"{integer}_register_{i}", "INT32", _element(integer, i), _since(i)) for i in range(48)),
        *(OutputVariable(f"{double}_register_{i}", "DOUBLE", _element(double, i), _since(i)) for i in range(48)),
    ]


@cache
def output_variables(profile: Profile) -> Mapping[str, OutputVariable]:
    """The outputs of this version, by name."""
    constant = [
        OutputVariable(name, kind, _constant(value), since)
        for kind, value, since, names in _CONSTANT
        for name in names.split()
    ]
    period = OutputVariable("target_execution_time", "DOUBLE", _constant(profile.period), _RECENT)
    known = [*_READ, period, *constant, *_registers("output"), *_registers("input")]
    return {variable.name: variable for variable in known if profile.at_least(*variable.since)}


@cache
def input_variables(profile: Profile) -> Mapping[str, InputVariable]:
    """The inputs of this version, by name."""
    return {variable.name: variable for variable in _WRITTEN if profile.at_least(*variable.since)}
