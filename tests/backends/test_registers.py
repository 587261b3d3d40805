"""Which registers carry a session's commands."""

from __future__ import annotations

import pytest

from simbridge.backends.registers import REGISTERS


@pytest.mark.parametrize(("half", "first"), [("lower", 0), ("upper", 24)])
def test_simbridges_own_link_claims_nine_inputs(half, first):
    inputs = REGISTERS[half].inputs_of("rtde")

    doubles = [first + offset for offset in (0, 1, 2, 3, 4, 5, 9, 10)]
    assert inputs == (
        f"input_int_register_{first}",
        *(f"input_double_register_{number}" for number in doubles),
    )


@pytest.mark.parametrize(("half", "numbers"), [("lower", (22, 23)), ("upper", (46, 47))])
def test_the_script_is_recognized_by_two_outputs(half, numbers):
    registers = REGISTERS[half]

    outputs = (registers.number_output, registers.counter_output)
    assert outputs == tuple(f"output_int_register_{number}" for number in numbers)
