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
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from simbridge.emulator.state import LARGEST, ControllerState, Profile

Since: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
# The first versions that have a variable: e-Series, CB3.
ALWAYS: Since = ((5, 0), (3, 0))
REGISTERS: Since = ((5, 3), (3, 9))
_NO_CB3 = (4, 0)
# Missing from the guide of 5.11, present in today's; the guide does not say since when.
_RECENT: Since = ((5, 23), _NO_CB3)

# Returns a value of the state: a number, or a list of numbers for a vector.
Read: TypeAlias = Callable[[ControllerState], Any]
# Applies a value; gets the last values of all inputs, too, because masks are variables of their own.
Write: TypeAlias = Callable[[ControllerState, Any, Mapping[str, Any]], None]
AccessT = TypeVar("AccessT")


@dataclass(frozen=True)
class Variable(Generic[AccessT]):
    """An output of the controller, whose access is a `Read`, or an input, whose access is a `Write`.

    Attributes:
        name: As in a recipe.
        type: A key of `ur.tables.RTDE_FORMATS`.
        since: First e-Series and first CB3 version that has it.
    """

    name: str
    type: str
    access: AccessT
    since: Since = ALWAYS


def _since(register: int) -> Since:
    """The first versions that have a numbered register: the upper half came later."""
    return ALWAYS if register < 24 else REGISTERS


# Inputs


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
        state.analog_output_types = state.analog_output_types & ~(1 << i) | voltage << i
        state.set_analog_output(i, value)

    return write


def _external_wrench(
    state: ControllerState, value: tuple[float, ...], inputs: Mapping[str, Any]
) -> None:
    if all(
        abs(number) <= LARGEST for number in value
    ):  # NaN is not; as with the slider, what was there is kept
        state.external_wrench = np.array(value)


def _write_element(name: str, i: int) -> Write:
    def write(state: ControllerState, value: Any, inputs: Mapping[str, Any]) -> None:
        getattr(state, name)[i] = value

    return write


def _write_bits(first: int) -> Write:
    def write(state: ControllerState, value: int, inputs: Mapping[str, Any]) -> None:
        state.input_bit[first : first + 32] = [bool(value >> i & 1) for i in range(32)]

    return write


_INPUTS: list[Variable[Write]] = [
    Variable("speed_slider_mask", "UINT32", _no_effect),
    Variable("speed_slider_fraction", "DOUBLE", _speed_slider),
    Variable("standard_digital_output_mask", "UINT8", _no_effect),
    Variable("standard_digital_output", "UINT8", _digital_output("standard", 0, 8)),
    Variable("configurable_digital_output_mask", "UINT8", _no_effect),
    Variable("configurable_digital_output", "UINT8", _digital_output("configurable", 8, 8)),
    Variable("tool_digital_output_mask", "UINT8", _no_effect),
    Variable("tool_digital_output", "UINT8", _digital_output("tool", 16, 2)),
    Variable("standard_analog_output_mask", "UINT8", _no_effect),
    Variable("standard_analog_output_type", "UINT8", _no_effect),
    Variable("standard_analog_output_0", "DOUBLE", _analog_output(0)),
    Variable("standard_analog_output_1", "DOUBLE", _analog_output(1)),
    Variable("external_force_torque", "VECTOR6D", _external_wrench),
    Variable("input_bit_registers0_to_31", "UINT32", _write_bits(0)),
    Variable("input_bit_registers32_to_63", "UINT32", _write_bits(32)),
    *(
        Variable(f"input_bit_register_{i}", "BOOL", _write_element("input_bit", i), REGISTERS)
        for i in range(64, 128)
    ),
    *(
        Variable(f"input_int_register_{i}", "INT32", _write_element("input_int", i), _since(i))
        for i in range(48)
    ),
    *(
        Variable(
            f"input_double_register_{i}", "DOUBLE", _write_element("input_double", i), _since(i)
        )
        for i in range(48)
    ),
]

# Outputs: those that are attributes of the state. Type, since when, names; an attribute of another name after a colon.
_ATTRIBUTES: list[tuple[str, Since, str]] = [
    (
        "DOUBLE",
        ALWAYS,
        "timestamp speed_scaling:limiter_scaling target_speed_fraction:speed_scaling",
    ),
    (
        "VECTOR6D",
        ALWAYS,
        "target_q target_qd target_qdd target_current target_moment actual_q actual_qd actual_current",
    ),
    (
        "VECTOR6D",
        ALWAYS,
        "actual_TCP_pose actual_TCP_speed target_TCP_pose target_TCP_speed tcp_offset",
    ),
    ("VECTOR6D", ALWAYS, "actual_TCP_force:tcp_force joint_control_output:target_current"),
    ("VECTOR6D", ((5, 9), _NO_CB3), "ft_raw_wrench:tcp_force"),
    ("VECTOR6D", ((5, 11), (3, 15)), "payload_inertia"),
    ("VECTOR6D", _RECENT, "actual_current_as_torque:target_moment"),
    ("VECTOR3D", _RECENT, "target_gravity:gravity"),
    ("VECTOR3D", ((5, 5), (3, 11)), "payload_cog"),
    ("DOUBLE", ((5, 5), (3, 11)), "payload"),
    ("UINT64", _RECENT, "control_step:tick"),
    (
        "UINT64",
        ALWAYS,
        "actual_digital_input_bits:digital_inputs actual_digital_output_bits:digital_outputs",
    ),
    ("INT32", ALWAYS, "robot_mode safety_mode tool_output_voltage:tool_voltage"),
    # Safety status and mode share their numbers up to 9; the emulator has no others.
    ("INT32", ((5, 4), (3, 10)), "safety_status:safety_mode"),
    ("UINT32", ALWAYS, "tool_mode:joint_mode robot_status_bits safety_status_bits runtime_state"),
    ("UINT32", ((5, 9), (3, 14)), "script_control_line"),
]
# Those that do not change here: type, value, since when, names.
_CONSTANT: list[tuple[str, Any, Since, str]] = [
    ("VECTOR6D", [30.0] * 6, ALWAYS, "joint_temperatures"),
    (
        "VECTOR6D",
        [0.0] * 6,
        _RECENT,
        "actual_current_window actual_TCP_acceleration target_TCP_acceleration",
    ),
    ("VECTOR6D", [0.0] * 6, _RECENT, "wrench_calc_from_currents"),
    ("VECTOR6D", [0.0] * 6, _RECENT, "target_base_acceleration target_base_wrench"),
    ("VECTOR3D", [0.0] * 3, ((5, 0), (3, 5)), "elbow_position elbow_velocity"),
    ("VECTOR3D", [0.0] * 3, ALWAYS, "actual_tool_accelerometer"),
    ("DOUBLE", 48.0, ALWAYS, "actual_main_voltage"),
    ("DOUBLE", 30.0, ALWAYS, "tool_temperature"),
    (
        "DOUBLE",
        0.0,
        ALWAYS,
        "actual_momentum actual_execution_time actual_robot_current io_current",
    ),
    ("DOUBLE", 0.0, ALWAYS, "tool_output_current euromap67_24V_voltage euromap67_24V_current"),
    ("DOUBLE", 0.0, _RECENT, "joint_position_deviation_ratio collision_detection_ratio"),
    ("DOUBLE", 0.0, _RECENT, "actual_robot_energy_consumed actual_robot_braking_energy_dissipated"),
    ("INT32", 0, _RECENT, "time_scale_source encoder0_raw encoder1_raw"),
    ("UINT32", 0, ALWAYS, "euromap67_input_bits euromap67_output_bits tool_analog_input_types"),
    ("UINT8", 0, ALWAYS, "tool_output_mode tool_digital_output0_mode tool_digital_output1_mode"),
]
_OTHERS: list[Variable[Read]] = [
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


def _attribute(name: str, kind: str) -> Read:
    if kind.startswith("VECTOR"):
        return lambda state: getattr(state, name).tolist()
    return lambda state: getattr(state, name)


def _constant(value: Any) -> Read:
    return lambda state: value


def _bits(name: str, first: int) -> Read:
    return lambda state: sum(
        1 << i for i, bit in enumerate(getattr(state, name)[first : first + 32]) if bit
    )


def _element(name: str, i: int) -> Read:
    return lambda state: getattr(state, name)[i]


def _outputs(period: float) -> list[Variable[Read]]:
    found = [Variable("target_execution_time", "DOUBLE", _constant(period), _RECENT), *_OTHERS]
    for kind, since, names in _ATTRIBUTES:
        for name, _, attribute in (each.partition(":") for each in names.split()):
            found.append(Variable(name, kind, _attribute(attribute or name.lower(), kind), since))
    for kind, value, since, names in _CONSTANT:
        found += [Variable(name, kind, _constant(value), since) for name in names.split()]
    for i in range(2):
        found.append(Variable(f"standard_analog_input{i}", "DOUBLE", _element("analog_inputs", i)))
        found.append(Variable(f"tool_analog_input{i}", "DOUBLE", _element("analog_inputs", 2 + i)))
        found.append(
            Variable(f"standard_analog_output{i}", "DOUBLE", _element("analog_outputs", i))
        )
    for way in ("output", "input"):  # the registers of both directions, as clients read them
        found += [
            Variable(f"{way}_bit_registers0_to_31", "UINT32", _bits(f"{way}_bit", 0)),
            Variable(f"{way}_bit_registers32_to_63", "UINT32", _bits(f"{way}_bit", 32)),
            *(
                Variable(f"{way}_bit_register_{i}", "BOOL", _element(f"{way}_bit", i), REGISTERS)
                for i in range(64, 128)
            ),
            *(
                Variable(f"{way}_int_register_{i}", "INT32", _element(f"{way}_int", i), _since(i))
                for i in range(48)
            ),
            *(
                Variable(
                    f"{way}_double_register_{i}", "DOUBLE", _element(f"{way}_double", i), _since(i)
                )
                for i in range(48)
            ),
        ]
    return found


@cache
def output_variables(profile: Profile) -> Mapping[str, Variable[Read]]:
    """The outputs of this version, by name."""
    return {
        variable.name: variable
        for variable in _outputs(profile.period)
        if profile.at_least(*variable.since)
    }


@cache
def input_variables(profile: Profile) -> Mapping[str, Variable[Write]]:
    """The inputs of this version, by name."""
    return {variable.name: variable for variable in _INPUTS if profile.at_least(*variable.since)}
