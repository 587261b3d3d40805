"""URScript's functions of state and outputs, and those that end a program."""

from __future__ import annotations

import pytest

from simbridge.errors import InvalidParameter
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.bench import ROBOT, Bench

SPEED = "speedj([0.5, 0, 0, 0, 0, 0], 2.0, 5)"


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


def test_an_output_integer_register_is_32_bits_wide(controller, call):
    call("write_output_integer_register", 3, 2**31)

    assert call("read_output_integer_register", 3) == -(2**31)


@pytest.mark.parametrize("index", [-1, 48, 1.5, "0"])
def test_a_missing_register_is_refused(call, index):
    with pytest.raises(InvalidParameter, match="register"):
        call("read_input_integer_register", index)


def test_payload_and_outputs_can_be_read_back(controller, call):
    call("set_payload", 2.5, [0.0, 0.01, 0.05])

    assert call("get_target_payload") == 2.5
    assert call("get_target_payload_cog") == [0.0, 0.01, 0.05]

    call("set_digital_out", 2, True)

    assert controller.state.digital_outputs == 1 << 2

    call("set_digital_out", 2, False)

    assert controller.state.digital_outputs == 0


def test_digital_outputs_are_named_by_their_groups(controller, call):
    call("set_standard_digital_out", 1, True)
    call("set_configurable_digital_out", 2, True)
    call("set_tool_digital_out", 1, True)

    assert controller.state.digital_outputs == 1 << 1 | 1 << 10 | 1 << 17
    assert call("get_configurable_digital_out", 2)
    assert not call("get_tool_digital_out", 0)

    controller.state.digital_inputs = 1 << 9

    assert call("get_configurable_digital_in", 1)
    assert call("get_digital_in", 9)


def test_an_analog_output_has_the_level_of_its_domain(controller, call):
    call("set_analog_outputdomain", 0, 0)
    call("set_standard_analog_out", 0, 0.5)

    assert call("get_standard_analog_out", 0) == pytest.approx(0.012)  # A

    call("set_analog_outputdomain", 0, 1)
    call("set_standard_analog_out", 0, 0.5)

    assert call("get_standard_analog_out", 0) == 5.0  # V
    assert controller.state.analog_output_types == 1


def test_flags_and_the_tool_voltage_are_kept(controller, call):
    call("set_flag", 7, True)

    assert call("get_flag", 7)

    call("set_tool_voltage", 24)

    assert call("get_rtde_value", "tool_output_voltage") == 24
    with pytest.raises(InvalidParameter, match="0, 12 or 24"):
        call("set_tool_voltage", 5)


@pytest.mark.parametrize(
    ("call", "setting"), [("powerdown()", "pause"), ("protective_stop()", "stop")]
)
@pytest.mark.parametrize("inside", ["{}", "thread t():\n  {}\nend\nrun t()\nsleep(10)"])
def test_nothing_runs_after_its_end(bench, call, setting, inside):
    bench.controller.set({"on_protective_stop": setting})
    bench.load(inside.format(f"{call}\n{SPEED}\nset_flag(0, True)"))
    bench.tick(0.5)

    assert bench.controller.program is None
    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert [text for kind, text, _ in bench.messages if kind in ("started", "stopped")] == [
        "test",
        "test",
    ]
    assert not bench.state.flags[0]
    assert not bench.texts("error")

    if call == "powerdown()":
        assert bench.state.robot_mode == RobotMode.POWER_OFF
        bench.running()
    else:
        assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
        bench.tick(6.0)
        bench.controller.unlock_protective_stop()
    bench.tick(1.0)

    assert (bench.state.target_q == ROBOT.home).all()


def test_paused_program_continues_after_protective_stop(bench):
    bench.load("protective_stop()", "sync()", "set_flag(0, True)")
    bench.tick(6.0)

    assert bench.state.runtime_state == RuntimeState.PAUSED
    assert not bench.state.flags[0]

    bench.controller.unlock_protective_stop()

    assert bench.controller.play_program()

    bench.finish()

    assert bench.state.flags[0]
