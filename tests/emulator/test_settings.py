"""`controller.set(...)`: settings of the emulated controller by name."""

from __future__ import annotations

import json

import pytest

from simbridge.emulator.control import Control
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram, builtin_functions
from simbridge.emulator.rtde_variables import output_variables
from simbridge.emulator.running import RunningController
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import profile
from simbridge.errors import InvalidChoice, InvalidParameter, UnknownName
from simbridge.robot import load_robot


@pytest.fixture(scope="module")
def control() -> Control:
    return Control(
        RunningController(EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram))
    )


def ask(control: Control, **request: object) -> dict:
    return control.answer(json.dumps(request).encode())


def test_setting_is_changed_by_name(control):
    assert ask(control, do="state")["value"]["settings"]["on_protective_stop"] == "pause"
    assert ask(control, do="set", on_protective_stop="stop") == {"ok": True, "value": None}
    assert ask(control, do="state")["value"]["settings"]["on_protective_stop"] == "stop"


def test_an_unknown_setting_is_refused_with_the_names_of_all():
    with pytest.raises(UnknownName, match=r"protective_stops.*on_protective_stop"):
        Settings().changed({"protective_stops": "stop"})


def test_impossible_value_is_refused_with_choices():
    with pytest.raises(InvalidChoice, match="must be pause or stop; got 'explode'"):
        Settings().changed({"on_protective_stop": "explode"})


def test_nothing_is_changed_when_one_of_several_is_refused(control):
    before = ask(control, do="state")["value"]["settings"]
    changed = "pause" if before["on_protective_stop"] == "stop" else "stop"

    assert not ask(control, do="set", on_protective_stop=changed, colour="red")["ok"]
    assert ask(control, do="state")["value"]["settings"] == before


@pytest.mark.parametrize("value", [[1.0] * 5, [1.0] * 5 + [0.0], [float("nan")] * 6, 3.0])
def test_joint_speed_limits_are_six_positive_numbers(value):
    with pytest.raises(InvalidParameter, match="joint_speed_limit"):
        Settings().changed({"joint_speed_limit": value})


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan"), "5 s"])
def test_the_delay_of_unlocking_is_a_number_from_zero(value):
    with pytest.raises(InvalidParameter, match="unlock_delay"):
        Settings().changed({"unlock_delay": value})


# Parts of the state


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"payload": 2.5, "payload_cog": [0.0, 0.1, 0.2]},
            {"payload": 2.5, "payload_cog": [0.0, 0.1, 0.2]},
        ),
        (
            {"payload_inertia": [1, 2, 3, 4, 5, 6]},
            {"payload_inertia": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        ),
        ({"tcp_offset": [0, 0, 0.1, 0, 0, 0]}, {"tcp_offset": [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]}),
    ],
)
def test_payload_and_tcp_are_set_and_read(control, values, expected):
    assert ask(control, do="set", **values)["ok"]

    state = ask(control, do="state")["value"]

    assert {name: state[name] for name in expected} == expected


def test_single_inputs_and_outputs_are_set(control):
    state = control._controller.state
    controller = control._controller
    state.digital_inputs = 0b101

    assert ask(
        control,
        do="set",
        digital_inputs={"0": False, "17": True},
        analog_inputs={"1": 0.004, "2": 5.5},
    )["ok"]
    assert [
        i for i, on in enumerate(ask(control, do="state")["value"]["digital_inputs"]) if on
    ] == [2, 17]

    functions = builtin_functions(controller)

    assert functions["get_digital_in"](None, 2) and functions["get_tool_digital_in"](None, 1)
    assert (
        functions["get_standard_analog_in"](None, 1) == 0.004
        and functions["get_tool_analog_in"](None, 0) == 5.5
    )

    variables = output_variables(controller.profile)

    assert variables["actual_digital_input_bits"].access(state) == 0b100 | 1 << 17
    assert variables["standard_analog_input1"].access(state) == 0.004
    assert variables["tool_analog_input0"].access(state) == 5.5


@pytest.mark.parametrize(
    "values",
    [
        {"payload": -1.0},
        {"payload": float("nan")},
        {"payload": "heavy"},
        {"tcp_offset": [0.0] * 5},
        {"tcp_offset": [float("inf")] * 6},
        {"tcp_offset": [1e300] * 6},
        {"table": 1e300},
        {"digital_inputs": {"18": True}},
        {"digital_inputs": {"x": True}},
        {"analog_inputs": {"4": 1.0}},
        {"analog_inputs": {"0": float("nan")}},
    ],
)
def test_refused_state_changes_nothing(control, values):
    before = ask(control, do="state")["value"]
    answer = ask(control, do="set", digital_outputs={"5": True}, **values)

    assert (
        not answer["ok"]
        and next(iter(values)) in answer["error"]
        and "Expected" not in answer["error"]
    )
    assert ask(control, do="state")["value"] == before
