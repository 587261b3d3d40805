"""The control script is rendered as text."""

from __future__ import annotations

from simbridge.backends.control_script import draw_session_number, render_control_script


def test_the_script_arms_its_watchdog_before_anything_else():
    tcp = (0.0, 0.0, 0.1, 0.0, 0.0, 0.0)

    script = render_control_script(4711, 0.002, tcp=tcp, payload=2.5)

    first_statement = script.splitlines()[1].strip()
    assert first_statement == 'rtde_set_watchdog("input_int_register_0", 10, "stop")'


def test_numbers_differ_from_each_other_and_from_unused_registers():
    numbers = [draw_session_number() for _ in range(1000)]

    assert len(set(numbers)) > 990
    assert min(numbers) > 0
