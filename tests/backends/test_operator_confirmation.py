"""Who may confirm before a real arm moves, and what is shown before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.backends.operator_confirmation import confirm_approach, confirm_motion
from simbridge.planning.options import Options
from simbridge.robot.cell import Cell
from simbridge.running.run_setup import prepare
from simbridge.running.runner import plan_facts
from simbridge.ur.errors import ModelMismatch, NotConfirmed
from tests.backends.test_preflight import FACTS, TCP, UR10E

CELL = Cell(
    serial_number="20261234567",
    tcp=TCP,
    payload=1.5,
    payload_cog=(0.0, 0.0, 0.05),
    mounting="floor",
)
LONG = np.outer([0.0, 0.5, 1.0], np.pi / 2.0 * np.eye(6)[2])
PLAN = (("plan", "square, 16.0 s"),)


class Operator:
    """Gives an answer, and keeps what was shown."""

    def __init__(self, answer):
        self.answer, self.shown, self.question = answer, {}, ""

    def __call__(self, shown, question):
        self.shown, self.question = dict(shown), question
        return self.answer


def test_the_operator_sees_arm_tool_mounting_slider_and_plan():
    operator = Operator(True)
    confirm_motion(FACTS, UR10E, None, more_facts=PLAN, ask=operator, cell_confirms=False)
    assert "UR10e" in operator.question
    shown = operator.shown
    assert "20261234567" in shown["arm"] and "192.0.2.7" in shown["arm"]
    assert shown["PolyScope"] == "5.12.6"
    assert "10.0 150.0 mm" in shown["TCP"] and "1.5 kg" in shown["payload"]
    assert "look at the arm" in shown["mounting"]
    assert shown["speed slider"] == "100 %"
    assert shown["plan"] == "square, 16.0 s"


def test_the_operator_sees_that_commands_are_sent_ahead(line):
    operator = Operator(True)
    for feedforward in ("off", "on"):
        prepared = prepare(line, robot="ur10e", options=Options(feedforward=feedforward))
        confirm_motion(
            FACTS, UR10E, None, more_facts=plan_facts(prepared), ask=operator, cell_confirms=False
        )
        assert ("feedforward" in operator.shown) == (feedforward == "on")
    assert "lead the arm by up to" in operator.shown["feedforward"]


def test_what_the_software_does_not_report_is_shown_as_such():
    operator = Operator(True)
    unreported = replace(
        FACTS,
        state=replace(FACTS.state, payload=None),
        dashboard=replace(FACTS.dashboard, serial_number=None),
    )
    confirm_motion(unreported, UR10E, None, more_facts=(), ask=operator, cell_confirms=False)
    assert "not reported" in operator.shown["payload"] and "unknown" in operator.shown["arm"]


def test_the_mounting_of_the_cell_is_shown():
    operator = Operator(True)
    confirm_motion(
        FACTS, UR10E, Cell(mounting="ceiling"), more_facts=(), ask=operator, cell_confirms=False
    )
    assert operator.shown["mounting"].startswith("ceiling")


def test_asked_again_the_operator_sees_only_new_facts():
    operator = Operator(True)
    confirm_approach(LONG, UR10E, period=2.0, ask=operator)
    assert operator.shown == {"largest joint motion": "elbow_joint: 90 degrees", "duration": "4 s"}
    with pytest.raises(NotConfirmed, match="Nothing was moved"):
        confirm_approach(LONG, UR10E, period=2.0, ask=Operator(False))


def test_a_short_approach_needs_no_second_confirmation():
    confirm_approach(LONG[:2], UR10E, period=2.0, ask=None)


def test_without_confirmation_nothing_moves():
    with pytest.raises(NotConfirmed, match="Nothing was moved"):
        confirm_motion(
            FACTS, UR10E, CELL, more_facts=PLAN, ask=Operator(False), cell_confirms=False
        )


def test_without_a_terminal_nothing_is_confirmed():
    with pytest.raises(NotConfirmed, match="--yes and a cell file"):
        confirm_motion(FACTS, UR10E, CELL, more_facts=PLAN, ask=None, cell_confirms=False)


def test_a_matching_cell_file_confirms_and_the_operator_is_not_asked():
    operator = Operator(False)
    with pytest.warns(UserWarning, match="mounting, floor, was not compared"):
        confirm_motion(FACTS, UR10E, CELL, more_facts=PLAN, ask=operator, cell_confirms=True)
    assert not operator.question


def test_a_cell_file_does_not_confirm_a_long_approach():
    with pytest.raises(NotConfirmed, match="the cell file cannot") as refused:
        confirm_approach(LONG, UR10E, period=2.0, ask=None)
    assert "elbow_joint: 90 degrees" in str(refused.value) and "--yes" not in str(refused.value)


@pytest.mark.parametrize("name", ["serial_number", "tcp", "payload", "mounting"])
def test_an_incomplete_cell_file_does_not_confirm(name):
    with pytest.raises(NotConfirmed, match=name):
        confirm_motion(
            FACTS,
            UR10E,
            replace(CELL, **{"payload_cog": None, name: None}),
            more_facts=PLAN,
            ask=Operator(True),
            cell_confirms=True,
        )


def test_yes_without_a_cell_file_confirms_nothing():
    with pytest.raises(NotConfirmed, match="serial_number, tcp, payload, mounting"):
        confirm_motion(FACTS, UR10E, None, more_facts=PLAN, ask=Operator(True), cell_confirms=True)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"serial_number": "20269999999"}, "serial number"),
        ({"tcp": (0.0, 0.01, 0.16, 0.0, 0.0, 1.5)}, "TCP"),
        ({"payload": 2.0}, "payload"),
        ({"payload_cog": (0.0, 0.02, 0.05)}, "centre of gravity"),
        # At the TCP by default, which is elsewhere.
        ({"payload_cog": None}, "centre of gravity"),
    ],
)
def test_a_cell_file_of_another_arm_or_tool_does_not_confirm(changes, what):
    with pytest.raises(ModelMismatch) as refused:
        confirm_motion(
            FACTS,
            UR10E,
            replace(CELL, **changes),
            more_facts=PLAN,
            ask=Operator(True),
            cell_confirms=True,
        )
    assert refused.value.what == what


def test_a_cell_file_does_not_confirm_what_the_controller_does_not_report():
    silent = replace(FACTS, dashboard=replace(FACTS.dashboard, serial_number=None))
    with pytest.raises(ModelMismatch, match="unknown"):
        confirm_motion(silent, UR10E, CELL, more_facts=PLAN, ask=Operator(True), cell_confirms=True)
    silent = replace(FACTS, state=replace(FACTS.state, payload=None))
    with pytest.raises(ModelMismatch, match="unknown"):
        confirm_motion(silent, UR10E, CELL, more_facts=PLAN, ask=Operator(True), cell_confirms=True)
