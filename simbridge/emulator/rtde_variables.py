"""The variables of the real-time data exchange (RTDE).

A variable has a name, a type, the versions that have it, and what it reads or writes in the
controller's state. Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", tables of
controller outputs and inputs, and what ur_rtde 1.6 asks each version for. Quantities that the
emulated arm has no sensor for read as zero or as a healthy robot's nominal value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from simbridge.emulator.state import LARGEST, ControllerState, Profile

# The first versions that have a variable: e-Series, CB3.
Since: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
# A version that no CB3 has.
_NO_CB3 = (4, 0)

ALWAYS: Since = ((5, 0), (3, 0))
# The upper half of the registers.
REGISTERS: Since = ((5, 3), (3, 9))
# Missing from the guide of 5.11, present in today's; the guide does not say since when.
_RECENT: Since = ((5, 23), _NO_CB3)

# Bits of the digital inputs and outputs, the first one and their number.
_STANDARD_BITS = (0, 8)
_CONFIGURABLE_BITS = (8, 8)
_TOOL_BITS = (16, 2)

# Registers of integers and of doubles in each direction, and bits.
REGISTER_COUNT = 48
FIRST_SINGLE_BIT = 64
BIT_COUNT = 128

# Returns a value of the state: a number, or a list of numbers for a vector.
Read: TypeAlias = Callable[[ControllerState], Any]
# Applies a value; gets the last values of all inputs, too, because masks are variables of their
# own.
Write: TypeAlias = Callable[[ControllerState, Any, Mapping[str, Any]], None]
AccessT = TypeVar("AccessT")


@dataclass(frozen=True)
class Variable(Generic[AccessT]):
    """An output of the controller or an input; its access is a `Read` or a `Write`.

    Attributes:
        name: As in a recipe.
        type: A key of `ur.tables.RTDE_FORMATS`.
        access: Reads or writes it.
        since: First e-Series and first CB3 version that has it.
    """

    name: str
    type: str
    access: AccessT
    since: Since = ALWAYS


def _register_since(register: int) -> Since:
    """Return the first versions that have a numbered register: the upper half came later."""
    return ALWAYS if register < REGISTER_COUNT // 2 else REGISTERS


# Inputs


def _no_effect(state: ControllerState, value: Any, inputs: Mapping[str, Any]) -> None:
    """Write a mask or a type: it takes effect with its value."""


def _write_speed_slider(state: ControllerState, value: float, inputs: Mapping[str, Any]) -> None:
    """Move the speed slider, if its mask allows it."""
    if inputs.get("speed_slider_mask") and math.isfinite(value):
        state.speed_slider = min(max(value, 0.0), 1.0)


def _write_digital_outputs(group: str, bits: tuple[int, int]) -> Write:
    """Return what writes the digital outputs of a group that its mask has."""
    first, width = bits

    def write(state: ControllerState, value: int, inputs: Mapping[str, Any]) -> None:
        group_mask = inputs.get(f"{group}_digital_output_mask", 0) & ((1 << width) - 1)
        mask = group_mask << first
        state.digital_outputs = state.digital_outputs & ~mask | value << first & mask

    return write


def _write_analog_output(i: int) -> Write:
    """Return what writes a standard analog output, if the mask has it."""

    def write(state: ControllerState, value: float, inputs: Mapping[str, Any]) -> None:
        is_masked = inputs.get("standard_analog_output_mask", 0) >> i & 1
        if not is_masked or not math.isfinite(value):
            return
        voltage = inputs.get("standard_analog_output_type", 0) >> i & 1
        state.analog_output_types = state.analog_output_types & ~(1 << i) | voltage << i
        state.set_analog_output(i, value)

    return write


def _write_external_wrench(
    state: ControllerState, value: tuple[float, ...], inputs: Mapping[str, Any]
) -> None:
    """Write the wrench that a client measures; one with a number that is not finite is ignored."""
    if all(abs(number) <= LARGEST for number in value):
        state.external_wrench = np.array(value)


def _write_element(name: str, i: int) -> Write:
    """Return what writes an element of a list of the state."""

    def write(state: ControllerState, value: Any, inputs: Mapping[str, Any]) -> None:
        getattr(state, name)[i] = value

    return write


def _write_bits(first: int) -> Write:
    """Return what writes 32 of the input bits."""

    def write(state: ControllerState, value: int, inputs: Mapping[str, Any]) -> None:
        state.input_bit[first : first + 32] = [bool(value >> i & 1) for i in range(32)]

    return write


def _input_registers() -> list[Variable[Write]]:
    """Return the registers that clients write."""
    variables: list[Variable[Write]] = [
        Variable("input_bit_registers0_to_31", "UINT32", _write_bits(0)),
        Variable("input_bit_registers32_to_63", "UINT32", _write_bits(32)),
    ]
    for i in range(FIRST_SINGLE_BIT, BIT_COUNT):
        write = _write_element("input_bit", i)
        variables.append(Variable(f"input_bit_register_{i}", "BOOL", write, REGISTERS))
    for i in range(REGISTER_COUNT):
        write = _write_element("input_int", i)
        variables.append(Variable(f"input_int_register_{i}", "INT32", write, _register_since(i)))
    for i in range(REGISTER_COUNT):
        write = _write_element("input_double", i)
        variables.append(
            Variable(f"input_double_register_{i}", "DOUBLE", write, _register_since(i))
        )
    return variables


_INPUTS: list[Variable[Write]] = [
    Variable("speed_slider_mask", "UINT32", _no_effect),
    Variable("speed_slider_fraction", "DOUBLE", _write_speed_slider),
    Variable("standard_digital_output_mask", "UINT8", _no_effect),
    Variable(
        "standard_digital_output", "UINT8", _write_digital_outputs("standard", _STANDARD_BITS)
    ),
    Variable("configurable_digital_output_mask", "UINT8", _no_effect),
    Variable(
        "configurable_digital_output",
        "UINT8",
        _write_digital_outputs("configurable", _CONFIGURABLE_BITS),
    ),
    Variable("tool_digital_output_mask", "UINT8", _no_effect),
    Variable("tool_digital_output", "UINT8", _write_digital_outputs("tool", _TOOL_BITS)),
    Variable("standard_analog_output_mask", "UINT8", _no_effect),
    Variable("standard_analog_output_type", "UINT8", _no_effect),
    Variable("standard_analog_output_0", "DOUBLE", _write_analog_output(0)),
    Variable("standard_analog_output_1", "DOUBLE", _write_analog_output(1)),
    Variable("external_force_torque", "VECTOR6D", _write_external_wrench),
    *_input_registers(),
]


@cache
def input_variables(profile: Profile) -> Mapping[str, Variable[Write]]:
    """Return the inputs of a version, by name."""
    return {variable.name: variable for variable in _INPUTS if profile.at_least(*variable.since)}


# Outputs


def _attribute(
    name: str, type: str, since: Since = ALWAYS, *, attribute: str = ""
) -> Variable[Read]:
    """Return an output that is an attribute of the state.

    Args:
        name: Of the output.
        type: Of the output; the attribute of a vector is an array.
        since: The first versions that have it.
        attribute: Of the state; by default the output's name in lower case.
    """
    attribute = attribute or name.lower()
    if type.startswith("VECTOR"):
        return Variable(name, type, lambda state: getattr(state, attribute).tolist(), since)
    return Variable(name, type, lambda state: getattr(state, attribute), since)


def _constant(name: str, type: str, value: Any, since: Since = ALWAYS) -> Variable[Read]:
    """Return an output that does not change here."""
    return Variable(name, type, lambda state: value, since)


def _element(
    name: str, type: str, since: Since = ALWAYS, *, attribute: str, i: int
) -> Variable[Read]:
    """Return an output that is an element of a list of the state."""
    return Variable(name, type, lambda state: getattr(state, attribute)[i], since)


def _bits(name: str, attribute: str, first: int) -> Variable[Read]:
    """Return an output that is 32 elements of a list of booleans of the state."""

    def read(state: ControllerState) -> int:
        flags = getattr(state, attribute)[first : first + 32]
        return sum(1 << i for i, flag in enumerate(flags) if flag)

    return Variable(name, "UINT32", read)


_SIX_ZEROS = [0.0] * 6
_THREE_ZEROS = [0.0] * 3

_COMPUTED: list[Variable[Read]] = [
    Variable(
        "tcp_force_scalar", "DOUBLE", lambda state: float(np.linalg.norm(state.tcp_force[:3]))
    ),
    Variable("joint_mode", "VECTOR6INT32", lambda state: [state.joint_mode] * 6),
    Variable("actual_robot_voltage", "DOUBLE", lambda state: 48.0 * state.powered),
    Variable("actual_joint_voltage", "VECTOR6D", lambda state: [48.0 * state.powered] * 6),
    Variable(
        "actual_configurable_digital_input_bits",
        "UINT64",
        lambda state: state.digital_inputs >> 8 & 0xFF,
        _RECENT,
    ),
    Variable(
        "actual_configurable_digital_output_bits",
        "UINT64",
        lambda state: state.digital_outputs >> 8 & 0xFF,
        _RECENT,
    ),
    Variable("analog_io_types", "UINT32", lambda state: state.analog_output_types << 2),
]

_ATTRIBUTES: list[Variable[Read]] = [
    _attribute("timestamp", "DOUBLE"),
    _attribute("speed_scaling", "DOUBLE", attribute="limiter_scaling"),
    _attribute("target_speed_fraction", "DOUBLE", attribute="speed_scaling"),
    _attribute("target_q", "VECTOR6D"),
    _attribute("target_qd", "VECTOR6D"),
    _attribute("target_qdd", "VECTOR6D"),
    _attribute("target_current", "VECTOR6D"),
    _attribute("target_moment", "VECTOR6D"),
    _attribute("actual_q", "VECTOR6D"),
    _attribute("actual_qd", "VECTOR6D"),
    _attribute("actual_current", "VECTOR6D"),
    _attribute("actual_TCP_pose", "VECTOR6D"),
    _attribute("actual_TCP_speed", "VECTOR6D"),
    _attribute("target_TCP_pose", "VECTOR6D"),
    _attribute("target_TCP_speed", "VECTOR6D"),
    _attribute("tcp_offset", "VECTOR6D"),
    _attribute("actual_TCP_force", "VECTOR6D", attribute="tcp_force"),
    _attribute("joint_control_output", "VECTOR6D", attribute="target_current"),
    _attribute("ft_raw_wrench", "VECTOR6D", ((5, 9), _NO_CB3), attribute="tcp_force"),
    _attribute("payload_inertia", "VECTOR6D", ((5, 11), (3, 15))),
    _attribute("actual_current_as_torque", "VECTOR6D", _RECENT, attribute="target_moment"),
    _attribute("target_gravity", "VECTOR3D", _RECENT, attribute="gravity"),
    _attribute("payload_cog", "VECTOR3D", ((5, 5), (3, 11))),
    _attribute("payload", "DOUBLE", ((5, 5), (3, 11))),
    _attribute("control_step", "UINT64", _RECENT, attribute="tick"),
    _attribute("actual_digital_input_bits", "UINT64", attribute="digital_inputs"),
    _attribute("actual_digital_output_bits", "UINT64", attribute="digital_outputs"),
    _attribute("robot_mode", "INT32"),
    _attribute("safety_mode", "INT32"),
    _attribute("tool_output_voltage", "INT32", attribute="tool_voltage"),
    # Safety status and mode share their numbers up to 9; the emulator has no others.
    _attribute("safety_status", "INT32", ((5, 4), (3, 10)), attribute="safety_mode"),
    _attribute("tool_mode", "UINT32", attribute="joint_mode"),
    _attribute("robot_status_bits", "UINT32"),
    _attribute("safety_status_bits", "UINT32"),
    _attribute("runtime_state", "UINT32"),
    _attribute("script_control_line", "UINT32", ((5, 9), (3, 14))),
]

_CONSTANTS: list[Variable[Read]] = [
    _constant("joint_temperatures", "VECTOR6D", [30.0] * 6),
    _constant("actual_current_window", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("actual_TCP_acceleration", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("target_TCP_acceleration", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("wrench_calc_from_currents", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("target_base_acceleration", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("target_base_wrench", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("elbow_position", "VECTOR3D", _THREE_ZEROS, ((5, 0), (3, 5))),
    _constant("elbow_velocity", "VECTOR3D", _THREE_ZEROS, ((5, 0), (3, 5))),
    _constant("actual_tool_accelerometer", "VECTOR3D", _THREE_ZEROS),
    _constant("actual_main_voltage", "DOUBLE", 48.0),
    _constant("tool_temperature", "DOUBLE", 30.0),
    _constant("actual_momentum", "DOUBLE", 0.0),
    _constant("actual_execution_time", "DOUBLE", 0.0),
    _constant("actual_robot_current", "DOUBLE", 0.0),
    _constant("io_current", "DOUBLE", 0.0),
    _constant("tool_output_current", "DOUBLE", 0.0),
    _constant("euromap67_24V_voltage", "DOUBLE", 0.0),
    _constant("euromap67_24V_current", "DOUBLE", 0.0),
    _constant("joint_position_deviation_ratio", "DOUBLE", 0.0, _RECENT),
    _constant("collision_detection_ratio", "DOUBLE", 0.0, _RECENT),
    _constant("actual_robot_energy_consumed", "DOUBLE", 0.0, _RECENT),
    _constant("actual_robot_braking_energy_dissipated", "DOUBLE", 0.0, _RECENT),
    _constant("time_scale_source", "INT32", 0, _RECENT),
    _constant("encoder0_raw", "INT32", 0, _RECENT),
    _constant("encoder1_raw", "INT32", 0, _RECENT),
    _constant("euromap67_input_bits", "UINT32", 0),
    _constant("euromap67_output_bits", "UINT32", 0),
    _constant("tool_analog_input_types", "UINT32", 0),
    _constant("tool_output_mode", "UINT8", 0),
    _constant("tool_digital_output0_mode", "UINT8", 0),
    _constant("tool_digital_output1_mode", "UINT8", 0),
]


def _analog_values() -> list[Variable[Read]]:
    """Return the analog inputs, the tool's two after the two standard ones, and outputs."""
    variables = []
    for i in range(2):
        variables += [
            _element(f"standard_analog_input{i}", "DOUBLE", attribute="analog_inputs", i=i),
            _element(f"tool_analog_input{i}", "DOUBLE", attribute="analog_inputs", i=2 + i),
            _element(f"standard_analog_output{i}", "DOUBLE", attribute="analog_outputs", i=i),
        ]
    return variables


def _output_registers(direction: str) -> list[Variable[Read]]:
    """Return the registers of a direction, "output" or "input": clients read both."""
    bits = f"{direction}_bit"
    integers = f"{direction}_int"
    doubles = f"{direction}_double"

    variables = [
        _bits(f"{bits}_registers0_to_31", bits, 0),
        _bits(f"{bits}_registers32_to_63", bits, 32),
    ]
    for i in range(FIRST_SINGLE_BIT, BIT_COUNT):
        name = f"{bits}_register_{i}"
        variables.append(_element(name, "BOOL", REGISTERS, attribute=bits, i=i))
    for i in range(REGISTER_COUNT):
        name = f"{integers}_register_{i}"
        variables.append(_element(name, "INT32", _register_since(i), attribute=integers, i=i))
    for i in range(REGISTER_COUNT):
        name = f"{doubles}_register_{i}"
        variables.append(_element(name, "DOUBLE", _register_since(i), attribute=doubles, i=i))
    return variables


@cache
def output_variables(profile: Profile) -> Mapping[str, Variable[Read]]:
    """Return the outputs of a version, by name."""
    variables = [
        _constant("target_execution_time", "DOUBLE", profile.period, _RECENT),
        *_COMPUTED,
        *_ATTRIBUTES,
        *_CONSTANTS,
        *_analog_values(),
        *_output_registers("output"),
        *_output_registers("input"),
    ]
    return {variable.name: variable for variable in variables if profile.at_least(*variable.since)}
