"""URScript's functions of registers, digital and analog inputs and outputs, flags and the tool connector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simbridge.emulator.builtins import not_negative, number, register
from simbridge.emulator.controller import Controller
from simbridge.emulator.rtde_variables import output_variables
from simbridge.emulator.urscript.library import FunctionGroup
from simbridge.emulator.urscript.values import short, wrap
from simbridge.errors import InvalidParameter


def _reads_register(attribute: str) -> Callable[..., Any]:
    def read(self: IoFunctions, _thread: Any, address: int) -> Any:
        registers = getattr(self._state, attribute)
        return registers[register(address, len(registers))]

    return read


def _writes_register(attribute: str, convert: Callable[[Any], Any]) -> Callable[..., Any]:
    def write(self: IoFunctions, _thread: Any, address: int, value: Any) -> None:
        registers = getattr(self._state, attribute)
        registers[register(address, len(registers))] = convert(value)

    return write


def _reads_bit(attribute: str, first: int = 0, count: int = 18) -> Callable[..., Any]:
    def read(self: IoFunctions, _thread: Any, n: int) -> bool:
        return bool(getattr(self._state, attribute) >> first + register(n, count) & 1)

    return read


def _writes_bit(first: int = 0, count: int = 18) -> Callable[..., Any]:
    def write(self: IoFunctions, _thread: Any, n: int, b: bool) -> None:
        bit = 1 << first + register(n, count)
        outputs = self._state.digital_outputs
        self._state.digital_outputs = outputs | bit if b else outputs & ~bit

    return write


class IoFunctions(FunctionGroup):
    """Functions that read or set registers, inputs, outputs and flags.

    Args:
        controller: The one they act on.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._state = controller.state

    # General-purpose registers, 48 integers and floats and 128 bits in each direction; digital inputs and outputs

    do_read_input_integer_register = _reads_register("input_int")
    do_read_input_float_register = _reads_register("input_double")
    do_read_input_boolean_register = _reads_register("input_bit")
    do_read_output_integer_register = _reads_register("output_int")
    do_read_output_float_register = _reads_register("output_double")
    do_read_output_boolean_register = _reads_register("output_bit")
    do_write_output_integer_register = _writes_register("output_int", lambda value: wrap(int(number("value", value))))
    do_write_output_float_register = _writes_register("output_double", lambda value: number("value", value))
    do_write_output_boolean_register = _writes_register("output_bit", bool)

    do_get_digital_in, do_get_digital_out = _reads_bit("digital_inputs"), _reads_bit("digital_outputs")
    do_set_digital_out = _writes_bit()
    do_get_standard_digital_in, do_get_standard_digital_out = do_get_digital_in, do_get_digital_out
    do_set_standard_digital_out = do_set_digital_out
    do_get_configurable_digital_in = _reads_bit("digital_inputs", 8, 8)
    do_get_configurable_digital_out = _reads_bit("digital_outputs", 8, 8)
    do_set_configurable_digital_out = _writes_bit(8, 8)
    do_get_tool_digital_in = _reads_bit("digital_inputs", 16, 2)
    do_get_tool_digital_out = _reads_bit("digital_outputs", 16, 2)
    do_set_tool_digital_out = _writes_bit(16, 2)

    # Analog inputs and outputs, in A or V

    def do_get_analog_in(self, _thread: Any, n: int) -> float:
        return self._state.analog_inputs[register(n, 4)]

    do_get_standard_analog_in = do_get_analog_in

    def do_get_tool_analog_in(self, _thread: Any, n: int) -> float:
        return self._state.analog_inputs[2 + register(n, 2)]

    def do_get_analog_out(self, _thread: Any, n: int) -> float:
        i = register(n, 2)
        voltage = self._state.analog_output_types >> i & 1
        return self._state.analog_outputs[i] * (1.0 if voltage else 1e-3)

    def do_set_analog_out(self, _thread: Any, n: int, f: float) -> None:
        i, ratio = register(n, 2), min(not_negative("f", f), 1.0)
        voltage = self._state.analog_output_types >> i & 1
        self._state.analog_outputs[i] = 10.0 * ratio if voltage else 4.0 + 16.0 * ratio

    def do_set_analog_outputdomain(self, thread: Any, port: int, domain: int) -> None:
        i = register(port, 2)
        types = self._state.analog_output_types
        self._state.analog_output_types = types & ~(1 << i) | bool(domain) << i

    do_get_standard_analog_out, do_set_standard_analog_out = do_get_analog_out, do_set_analog_out

    def do_set_tool_voltage(self, _thread: Any, voltage: int) -> None:
        if voltage not in (0, 12, 24):
            raise InvalidParameter("voltage", short(voltage), "0, 12 or 24")
        self._state.tool_voltage = int(voltage)

    def do_get_flag(self, _thread: Any, n: int) -> bool:
        return self._state.flags[register(n, len(self._state.flags))]

    def do_set_flag(self, _thread: Any, n: int, b: bool) -> None:
        self._state.flags[register(n, len(self._state.flags))] = bool(b)

    def do_get_rtde_value(self, _thread: Any, key: str) -> Any:
        variables = output_variables(self._controller.profile)
        if key not in variables:
            raise InvalidParameter("key", short(key), "the name of an RTDE output of this version")
        return variables[key].read(self._state)
