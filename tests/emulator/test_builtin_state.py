"""URScript's functions of state and outputs, and those that end a program."""

from __future__ import annotations

import pytest

from simbridge.emulator.program import builtin_functions
from simbridge.errors import InvalidParameter
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.bench import ROBOT, Bench

pytestmark = pytest.mark.slow

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


def test_mass_alone_puts_the_centre_at_the_tcp(controller, call):
    call("set_tcp", [0, 0, 0.15, 0, 0, 0])
    call("set_payload", 2.0)

    assert call("get_target_payload_cog") == [0.0, 0.0, 0.15]

    call("set_tcp", [0.01, 0, 0.2, 0, 0, 0], "nozzle")
    call("set_payload_mass", 3.0)

    assert call("get_target_payload_cog") == [0.01, 0.0, 0.2]
    assert call("get_rtde_value", "payload_cog") == [0.01, 0.0, 0.2]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("set_payload", (2.0, [0, 0, 0.1])),
        ("set_payload_cog", ([0, 0, 0.1],)),
        ("set_target_payload", (2.0, [0, 0, 0.1])),
    ],
)
def test_a_given_centre_stays_where_it_is(call, function, arguments):
    call("set_payload", 1.0)
    call(function, *arguments)

    call("set_tcp", [0, 0, 0.3, 0, 0, 0])

    assert call("get_target_payload_cog") == [0.0, 0.0, 0.1]


def test_a_centre_from_outside_stays_where_it_is(controller, call):
    call("set_payload", 1.0)
    controller.set({"payload_cog": [0.0, 0.0, 0.1]})

    call("set_tcp", [0, 0, 0.3, 0, 0, 0])

    assert call("get_target_payload_cog") == [0.0, 0.0, 0.1]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("set_payload", (2.0, [0, 0, 0])),
        ("set_payload_mass", (2.0,)),
        ("set_payload_cog", ([0, 0, 0],)),
        ("set_target_payload", (2.0, [0, 0, 0])),
    ],
)
def test_other_payload_functions_reset_the_inertia(call, function, arguments):
    call("set_target_payload", 1.0, [0, 0, 0], [1, 2, 3, 0, 0, 0])
    assert call("get_target_payload_inertia") == [1, 2, 3, 0, 0, 0]

    call(function, *arguments)

    assert call("get_target_payload_inertia") == [0] * 6


@pytest.mark.parametrize("inertia", [[-1, 0, 0, 0, 0, 0], [134, 0, 0, 0, 0, 0], [1, 2, 3]])
def test_an_impossible_inertia_is_refused(call, inertia):
    with pytest.raises(InvalidParameter, match="inertia"):
        call("set_target_payload", 1.0, [0, 0, 0], inertia)


@pytest.mark.parametrize(
    "motion",
    [
        "movej([q[0] + 0.1, q[1], q[2], q[3], q[4], q[5]])",
        "movel(pose_add(get_target_tcp_pose(), p[0, 0, 0.02, 0, 0, 0]))",
        "speedj([0.2, 0, 0, 0, 0, 0], 1.0, 0.3)\nstopj(2.0)",
        "speedl([0, 0, 0.05, 0, 0, 0], 1.0, 0.3)\nstopl(2.0)",
        "servoj([q[0] + 0.1, q[1], q[2], q[3], q[4], q[5]], t=0.1)\nstopj(5.0)",
    ],
)
def test_arm_is_steady_half_a_second_after_a_motion(bench, motion):
    bench.load(
        motion,
        "set_flag(0, is_steady())",
        "sleep(0.48)",
        "set_flag(1, is_steady())",
        "sleep(0.04)",
        "set_flag(2, is_steady())",
        "set_flag(3, True)",
    )
    bench.finish()

    assert bench.state.flags[:4] == [False, False, True, True]


def test_a_moving_arm_is_never_steady(bench):
    bench.load("speedj([0.1, 0, 0, 0, 0, 0], 1.0, 1.0)", "set_flag(0, is_steady())", "sync()")
    bench.tick(1.1)

    assert not bench.state.flags[0]


def test_a_paused_arm_becomes_steady(bench):
    is_steady = builtin_functions(bench.controller)["is_steady"]
    bench.load(SPEED)
    bench.tick(1.0)
    bench.controller.pause_program()

    bench.tick(0.5)
    assert not is_steady(None)

    bench.tick(0.4)
    assert is_steady(None)


def test_a_protective_stop_ends_in_steadiness(bench):
    is_steady = builtin_functions(bench.controller)["is_steady"]
    bench.load(SPEED)
    bench.tick(1.0)
    bench.controller.protective_stop()

    bench.tick(0.4)
    assert not is_steady(None)

    bench.tick(0.2)
    assert is_steady(None)


def test_servoj_that_holds_becomes_steady(bench):
    bench.load(
        "while not is_steady():",
        "  servoj([q[0] + 0.1, q[1], q[2], q[3], q[4], q[5]])",
        "end",
    )

    bench.finish(5.0)


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
    bench.controller.set({"on_protective_stop": setting, "unlock_delay": 0.5})
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
        bench.tick(0.6)
        bench.controller.unlock_protective_stop()
    bench.tick(1.0)

    assert (bench.state.target_q == ROBOT.home).all()


def test_paused_program_continues_after_protective_stop(bench):
    bench.controller.set({"unlock_delay": 0.5})
    bench.load("protective_stop()", "sync()", "set_flag(0, True)")
    bench.tick(1.0)

    assert bench.state.runtime_state == RuntimeState.PAUSED
    assert not bench.state.flags[0]

    bench.controller.unlock_protective_stop()

    assert bench.controller.play_program()

    bench.finish()

    assert bench.state.flags[0]
