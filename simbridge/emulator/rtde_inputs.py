"""What the RTDE input variables do: each has a type and a setter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from simbridge.emulator.commands import Machine

# Machine, value, the last values of all inputs.
Setter: TypeAlias = Callable[[Machine, Any, Mapping[str, Any]], None]


def _nothing(machine: Machine, value: Any, inputs: Mapping[str, Any]) -> None:
    """A mask or a type acts through the value it belongs to."""


def _speed_slider(machine: Machine, value: float, inputs: Mapping[str, Any]) -> None:
    if inputs.get("speed_slider_mask") and math.isfinite(value):
        machine.set_speed_slider(min(max(value, 0.0), 1.0))


def _digital_output(group: str, first: int, width: int) -> Setter:
    def write(machine: Machine, value: int, inputs: Mapping[str, Any]) -> None:
        mask = (inputs.get(f"{group}_digital_output_mask", 0) & ((1 << width) - 1)) << first
        state = machine.state
        state.digital_outputs = state.digital_outputs & ~mask | value << first & mask

    return write


def _analog_output(i: int) -> Setter:
    def write(machine: Machine, value: float, inputs: Mapping[str, Any]) -> None:
        if not inputs.get("standard_analog_output_mask", 0) >> i & 1 or not math.isfinite(value):
            return
        voltage = inputs.get("standard_analog_output_type", 0) >> i & 1
        ratio = min(max(value, 0.0), 1.0)
        state = machine.state
        state.analog_output_types = state.analog_output_types & ~(1 << i) | voltage << i
        state.analog_outputs[i] = 10.0 * ratio if voltage else 4.0 + 16.0 * ratio

    return write


def _external_wrench(machine: Machine, value: tuple[float, ...], inputs: Mapping[str, Any]) -> None:
    machine.state.external_wrench = np.array(value)


def _element(name: str, i: int) -> Setter:
    def write(machine: Machine, value: Any, inputs: Mapping[str, Any]) -> None:
        getattr(machine.state, name)[i] = value

    return write


def _bits(first: int) -> Setter:
    def write(machine: Machine, value: int, inputs: Mapping[str, Any]) -> None:
        machine.state.input_bit[first : first + 32] = [bool(value >> i & 1) for i in range(32)]

    return write


SETTERS: dict[str, tuple[str, Setter]] = {
    "speed_slider_mask": ("UINT32", _nothing),
    "speed_slider_fraction": ("DOUBLE", _speed_slider),
    "standard_digital_output_mask": ("UINT8", _nothing),
    "standard_digital_output": ("UINT8", _digital_output("standard", 0, 8)),
    "configurable_digital_output_mask": ("UINT8", _nothing),
    "configurable_digital_output": ("UINT8", _digital_output("configurable", 8, 8)),
    "tool_digital_output_mask": ("UINT8", _nothing),
    "tool_digital_output": ("UINT8", _digital_output("tool", 16, 2)),
    "standard_analog_output_mask": ("UINT8", _nothing),
    "standard_analog_output_type": ("UINT8", _nothing),
    "standard_analog_output_0": ("DOUBLE", _analog_output(0)),
    "standard_analog_output_1": ("DOUBLE", _analog_output(1)),
    "external_force_torque": ("VECTOR6D", _external_wrench),
    "input_bit_registers0_to_31": ("UINT32", _bits(0)),
    "input_bit_registers32_to_63": ("UINT32", _bits(32)),
    **{f"input_bit_register_{i}": ("BOOL", _element("input_bit", i)) for i in range(64, 128)},
    **{f"input_int_register_{i}": ("INT32", _element("input_int", i)) for i in range(48)},
    **{f"input_double_register_{i}": ("DOUBLE", _element("input_double", i)) for i in range(48)},
}
