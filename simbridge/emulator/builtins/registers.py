"""URScript's functions of registers and of inputs and outputs."""

from __future__ import annotations

from typing import Any

from simbridge.emulator.builtins.arguments import register
from simbridge.emulator.builtins.functions import Functions


class RegisterFunctions(Functions):
    """General-purpose registers, 48 integers and floats and 128 bits each way; digital inputs and outputs."""

    def _write(self, registers: list[Any], index: Any, value: Any) -> None:
        registers[register(index, len(registers))] = value

    def do_read_input_integer_register(self, _thread: Any, address: int) -> int:
        return self._state.input_int[register(address, 48)]

    def do_read_input_float_register(self, _thread: Any, address: int) -> float:
        return self._state.input_double[register(address, 48)]

    def do_read_input_boolean_register(self, _thread: Any, address: int) -> bool:
        return self._state.input_bit[register(address, 128)]

    def do_read_output_integer_register(self, _thread: Any, address: int) -> int:
        return self._state.output_int[register(address, 48)]

    def do_read_output_float_register(self, _thread: Any, address: int) -> float:
        return self._state.output_double[register(address, 48)]

    def do_read_output_boolean_register(self, _thread: Any, address: int) -> bool:
        return self._state.output_bit[register(address, 128)]

    def do_write_output_integer_register(self, _thread: Any, address: int, value: int) -> None:
        # A register is 32 bits wide and wraps.
        self._write(self._state.output_int, address, (int(value) + 2**31) % 2**32 - 2**31)

    def do_write_output_float_register(self, _thread: Any, address: int, value: float) -> None:
        self._write(self._state.output_double, address, float(value))

    def do_write_output_boolean_register(self, _thread: Any, address: int, value: bool) -> None:
        self._write(self._state.output_bit, address, bool(value))

    def do_set_digital_out(self, _thread: Any, n: int, b: bool) -> None:
        bit = 1 << register(n, 18)
        s = self._state
        s.digital_outputs = s.digital_outputs | bit if b else s.digital_outputs & ~bit

    do_set_standard_digital_out = do_set_digital_out

    def do_get_digital_in(self, _thread: Any, n: int) -> bool:
        return bool(self._state.digital_inputs >> register(n, 18) & 1)

    do_get_standard_digital_in = do_get_digital_in
