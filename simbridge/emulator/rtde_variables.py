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
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from simbridge.emulator.state import MAX_QUANTITY, ControllerState, Profile


class Since(NamedTuple):
    """The first versions that have a variable, major and minor.

    Attributes:
        five: First version of PolyScope 5 that has the variable.
        cb3: Of CB3.
        x: First version of PolyScope X that has the variable; by default all of them have it.
    """

    five: tuple[int, int]
    cb3: tuple[int, int]
    x: tuple[int, int] = (10, 0)


# A version that no CB3 has.
_NO_CB3 = (4, 0)

ALWAYS = Since((5, 0), (3, 0))
# The upper half of the registers.
REGISTERS = Since((5, 3), (3, 9))
# Missing from the guide of 5.11, present in today's; the guide does not say since when. Of some of
# them UR's client library says since which PolyScope X: the others are taken to be as old as the
# oldest of those.
_RECENT = Since((5, 23), _NO_CB3, (10, 11))
_WITH_GRAVITY = Since((5, 23), _NO_CB3, (10, 12))
_WITH_STEP = Since((5, 23), _NO_CB3, (10, 13))
_WITH_BASE_WRENCH = Since((5, 23), _NO_CB3, (10, 14))

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
# Returns a list of the state, such as one of registers.
ListOf: TypeAlias = Callable[[ControllerState], list[Any]]
AccessT = TypeVar("AccessT")


@dataclass(frozen=True)
class Variable(Generic[AccessT]):
    """An output of the controller or an input; its access is a `Read` or a `Write`.

    Attributes:
        name: The variable's name in a recipe.
        type: A key of `ur.tables.RTDE_FORMATS`.
        access: Function that reads or writes it.
        since: First versions of PolyScope 5, CB3 and PolyScope X that have it.
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
    """Return a function that writes those digital outputs of a group that its mask selects."""
    first, width = bits

    def write(state: ControllerState, value: int, inputs: Mapping[str, Any]) -> None:
        group_mask = inputs.get(f"{group}_digital_output_mask", 0) & ((1 << width) - 1)
        mask = group_mask << first
        state.digital_outputs = state.digital_outputs & ~mask | value << first & mask

    return write


def _write_analog_output(i: int) -> Write:
    """Return a function that writes a standard analog output, if the mask selects it."""

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
    if all(abs(number) <= MAX_QUANTITY for number in value):
        state.external_wrench = np.array(value)


def _write_element(list_of: ListOf, i: int) -> Write:
    """Return a function that writes an element of a list of the state."""

    def write(state: ControllerState, value: Any, inputs: Mapping[str, Any]) -> None:
        list_of(state)[i] = value

    return write


def _write_bits(first: int) -> Write:
    """Return a function that writes 32 of the input bits."""

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
        write = _write_element(lambda state: state.input_bit, i)
        variables.append(Variable(f"input_bit_register_{i}", "BOOL", write, REGISTERS))
    for i in range(REGISTER_COUNT):
        write = _write_element(lambda state: state.input_int, i)
        variables.append(Variable(f"input_int_register_{i}", "INT32", write, _register_since(i)))
    for i in range(REGISTER_COUNT):
        write = _write_element(lambda state: state.input_double, i)
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


def _constant(name: str, type: str, value: Any, since: Since = ALWAYS) -> Variable[Read]:
    """Return an output that does not change here."""
    return Variable(name, type, lambda state: value, since)


def _read_element(list_of: ListOf, i: int) -> Read:
    """Return a function that reads an element of a list of the state."""
    return lambda state: list_of(state)[i]


def _read_bits(list_of: ListOf, first: int) -> Read:
    """Return a function that reads 32 booleans of a list of the state as bits of a number."""

    def read(state: ControllerState) -> int:
        flags = list_of(state)[first : first + 32]
        return sum(1 << i for i, flag in enumerate(flags) if flag)

    return read


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
    Variable("timestamp", "DOUBLE", lambda state: state.timestamp),
    Variable("speed_scaling", "DOUBLE", lambda state: state.limiter_scaling),
    Variable("target_speed_fraction", "DOUBLE", lambda state: state.speed_scaling),
    Variable("target_q", "VECTOR6D", lambda state: state.target_q.tolist()),
    Variable("target_qd", "VECTOR6D", lambda state: state.target_qd.tolist()),
    Variable("target_qdd", "VECTOR6D", lambda state: state.target_qdd.tolist()),
    Variable("target_current", "VECTOR6D", lambda state: state.target_current.tolist()),
    Variable("target_moment", "VECTOR6D", lambda state: state.target_moment.tolist()),
    Variable("actual_q", "VECTOR6D", lambda state: state.actual_q.tolist()),
    Variable("actual_qd", "VECTOR6D", lambda state: state.actual_qd.tolist()),
    Variable("actual_current", "VECTOR6D", lambda state: state.actual_current.tolist()),
    Variable("actual_TCP_pose", "VECTOR6D", lambda state: state.actual_tcp_pose.tolist()),
    Variable("actual_TCP_speed", "VECTOR6D", lambda state: state.actual_tcp_speed.tolist()),
    Variable("target_TCP_pose", "VECTOR6D", lambda state: state.target_tcp_pose.tolist()),
    Variable("target_TCP_speed", "VECTOR6D", lambda state: state.target_tcp_speed.tolist()),
    Variable("tcp_offset", "VECTOR6D", lambda state: state.tcp_offset.tolist()),
    Variable("actual_TCP_force", "VECTOR6D", lambda state: state.tcp_force.tolist()),
    Variable("joint_control_output", "VECTOR6D", lambda state: state.target_current.tolist()),
    Variable(
        "ft_raw_wrench", "VECTOR6D", lambda state: state.tcp_force.tolist(), Since((5, 9), _NO_CB3)
    ),
    Variable(
        "payload_inertia",
        "VECTOR6D",
        lambda state: state.payload_inertia.tolist(),
        Since((5, 11), (3, 15)),
    ),
    Variable(
        "actual_current_as_torque", "VECTOR6D", lambda state: state.target_moment.tolist(), _RECENT
    ),
    Variable("target_gravity", "VECTOR3D", lambda state: state.gravity.tolist(), _WITH_GRAVITY),
    Variable(
        "payload_cog", "VECTOR3D", lambda state: state.payload_cog.tolist(), Since((5, 5), (3, 11))
    ),
    Variable("payload", "DOUBLE", lambda state: state.payload, Since((5, 5), (3, 11))),
    Variable("control_step", "UINT64", lambda state: state.tick, _WITH_STEP),
    Variable("actual_digital_input_bits", "UINT64", lambda state: state.digital_inputs),
    Variable("actual_digital_output_bits", "UINT64", lambda state: state.digital_outputs),
    Variable("robot_mode", "INT32", lambda state: state.robot_mode),
    Variable("safety_mode", "INT32", lambda state: state.safety_mode),
    Variable("tool_output_voltage", "INT32", lambda state: state.tool_voltage),
    # Safety status and mode share their numbers up to 9; the emulator has no others.
    Variable("safety_status", "INT32", lambda state: state.safety_mode, Since((5, 4), (3, 10))),
    Variable("tool_mode", "UINT32", lambda state: state.joint_mode),
    Variable("robot_status_bits", "UINT32", lambda state: state.robot_status_bits),
    Variable("safety_status_bits", "UINT32", lambda state: state.safety_status_bits),
    Variable("runtime_state", "UINT32", lambda state: state.runtime_state),
    Variable(
        "script_control_line",
        "UINT32",
        lambda state: state.script_control_line,
        Since((5, 9), (3, 14)),
    ),
]

_CONSTANTS: list[Variable[Read]] = [
    _constant("joint_temperatures", "VECTOR6D", [30.0] * 6),
    _constant("actual_current_window", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("actual_TCP_acceleration", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("target_TCP_acceleration", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("wrench_calc_from_currents", "VECTOR6D", _SIX_ZEROS, _RECENT),
    _constant("target_base_acceleration", "VECTOR6D", _SIX_ZEROS, _WITH_GRAVITY),
    _constant("target_base_wrench", "VECTOR6D", _SIX_ZEROS, _WITH_BASE_WRENCH),
    _constant("elbow_position", "VECTOR3D", _THREE_ZEROS, Since((5, 0), (3, 5))),
    _constant("elbow_velocity", "VECTOR3D", _THREE_ZEROS, Since((5, 0), (3, 5))),
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
        standard_input = _read_element(lambda state: state.analog_inputs, i)
        tool_input = _read_element(lambda state: state.analog_inputs, 2 + i)
        standard_output = _read_element(lambda state: state.analog_outputs, i)
        variables += [
            Variable(f"standard_analog_input{i}", "DOUBLE", standard_input),
            Variable(f"tool_analog_input{i}", "DOUBLE", tool_input),
            Variable(f"standard_analog_output{i}", "DOUBLE", standard_output),
        ]
    return variables


def _registers(
    direction: str, *, bits_of: ListOf, integers_of: ListOf, doubles_of: ListOf
) -> list[Variable[Read]]:
    """Return the registers of a direction: clients read those that they write, too.

    Args:
        direction: "output" or "input".
        bits_of: Returns the registers of bits.
        integers_of: Returns those of integers.
        doubles_of: Returns those of doubles.
    """
    variables = [
        Variable(f"{direction}_bit_registers0_to_31", "UINT32", _read_bits(bits_of, 0)),
        Variable(f"{direction}_bit_registers32_to_63", "UINT32", _read_bits(bits_of, 32)),
    ]
    for i in range(FIRST_SINGLE_BIT, BIT_COUNT):
        name = f"{direction}_bit_register_{i}"
        variables.append(Variable(name, "BOOL", _read_element(bits_of, i), REGISTERS))
    for i in range(REGISTER_COUNT):
        name = f"{direction}_int_register_{i}"
        read = _read_element(integers_of, i)
        variables.append(Variable(name, "INT32", read, _register_since(i)))
    for i in range(REGISTER_COUNT):
        name = f"{direction}_double_register_{i}"
        read = _read_element(doubles_of, i)
        variables.append(Variable(name, "DOUBLE", read, _register_since(i)))
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
        *_registers(
            "output",
            bits_of=lambda state: state.output_bit,
            integers_of=lambda state: state.output_int,
            doubles_of=lambda state: state.output_double,
        ),
        *_registers(
            "input",
            bits_of=lambda state: state.input_bit,
            integers_of=lambda state: state.input_int,
            doubles_of=lambda state: state.input_double,
        ),
    ]
    return {variable.name: variable for variable in variables if profile.at_least(*variable.since)}
