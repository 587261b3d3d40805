"""The control script is rendered as text."""

from __future__ import annotations

import re

import pytest

from simbridge.backends.control_script import draw_session_number, render_control_script
from simbridge.backends.registers import REGISTERS


@pytest.mark.parametrize(("half", "first"), [("lower", 0), ("upper", 24)])
def test_the_script_arms_its_watchdog_before_anything_else(half, first):
    tcp = (0.0, 0.0, 0.1, 0.0, 0.0, 0.0)

    script = render_control_script(4711, 0.002, registers=REGISTERS[half], tcp=tcp, payload=2.5)

    first_statement = script.splitlines()[1].strip()
    assert first_statement == f'rtde_set_watchdog("input_int_register_{first}", 10, "stop")'


@pytest.mark.parametrize(("half", "first"), [("lower", 0), ("upper", 24)])
def test_the_script_uses_one_half_of_the_registers(half, first):
    script = render_control_script(4711, 0.002, registers=REGISTERS[half])

    read_numbers = re.findall(r"read_input_float_register\((\d+)\)", script)
    written_numbers = re.findall(r"write_output_integer_register\((\d+)", script)
    assert [int(number) - first for number in read_numbers] == [0, 1, 2, 3, 4, 5, 9, 10]
    assert {int(number) - first for number in written_numbers} == {0, 22, 23}
    assert f"read_input_integer_register({first})" in script


def test_numbers_differ_from_each_other_and_from_unused_registers():
    numbers = [draw_session_number() for _ in range(1000)]

    assert len(set(numbers)) > 990
    assert min(numbers) > 0
