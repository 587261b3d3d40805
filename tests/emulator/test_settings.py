"""`controller.set(...)`: settings of the emulated controller by name."""

from __future__ import annotations

import json

import pytest

from simbridge.emulator.controller import Controller
from simbridge.emulator.emulate import Control
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.running import RunningController
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import profile
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.robot import load_robot


@pytest.fixture(scope="module")
def control() -> Control:
    return Control(RunningController(Controller(load_robot("ur10e"), profile("5.12"), ScriptProgram)))


def ask(control: Control, **request: object) -> dict:
    return control.answer(json.dumps(request).encode())


def test_a_setting_is_changed_by_name_and_read_in_the_state(control):
    assert ask(control, do="state")["value"]["settings"]["on_protective_stop"] == "pause"
    assert ask(control, do="set", on_protective_stop="stop") == {"ok": True, "value": None}
    assert ask(control, do="state")["value"]["settings"]["on_protective_stop"] == "stop"


def test_an_unknown_setting_is_refused_with_the_names_of_all():
    with pytest.raises(UnknownName, match=r"protective_stops.*on_protective_stop"):
        Settings().changed({"protective_stops": "stop"})


def test_a_value_of_another_kind_is_refused_with_those_that_are_possible():
    with pytest.raises(InvalidParameter, match=r"on_protective_stop is 'explode'.*'pause', 'stop'"):
        Settings().changed({"on_protective_stop": "explode"})


def test_nothing_is_changed_when_one_of_several_is_refused(control):
    before = ask(control, do="state")["value"]["settings"]
    other = "pause" if before["on_protective_stop"] == "stop" else "stop"
    assert not ask(control, do="set", on_protective_stop=other, colour="red")["ok"]
    assert ask(control, do="state")["value"]["settings"] == before


@pytest.mark.parametrize("value", [[1.0] * 5, [1.0] * 5 + [0.0], [float("nan")] * 6, 3.0])
def test_joint_speed_limits_are_six_positive_numbers(value):
    with pytest.raises(InvalidParameter, match="joint_speed_limit"):
        Settings().changed({"joint_speed_limit": value})
