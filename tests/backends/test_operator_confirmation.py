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
from simbridge.ur.robot_api_facts import facts_without_robot_api
from tests.backends.controller_facts import (
    FACTS,
    POLYSCOPE_X,
    SERIAL_NUMBER,
    TCP,
    UR10E,
    facts_with_pendant,
    facts_with_state,
)

CELL = Cell(
    serial_number=SERIAL_NUMBER,
    tcp=TCP,
    payload=1.5,
    payload_cog=(0.0, 0.0, 0.05),
    mounting="floor",
)
# PolyScope 10.7 reports neither the serial number nor Local or Remote.
SILENT_X = replace(
    POLYSCOPE_X,
    state=replace(POLYSCOPE_X.state, version=(10, 7, 0)),
    pendant=facts_without_robot_api((10, 7, 0)),
)
# The elbow turns by 90 degrees.
LONG_APPROACH = np.outer([0.0, 0.5, 1.0], np.pi / 2.0 * np.eye(6)[2])
SHORT_APPROACH = LONG_APPROACH[:2]
PLAN = (("plan", "square, 16.0 s"),)


class Operator:
    """Gives an answer, and keeps what was shown."""

    def __init__(self, answer):
        self.answer = answer
        self.shown = {}
        self.question = ""

    def __call__(self, shown, question):
        self.shown = dict(shown)
        self.question = question
        return self.answer


def confirm(facts=FACTS, *, cell=None, ask=None, cell_confirms=False, more_facts=PLAN):
    """Confirm a motion of the UR10e."""
    confirm_motion(facts, UR10E, cell, more_facts=more_facts, ask=ask, cell_confirms=cell_confirms)


def test_the_operator_sees_arm_tool_mounting_slider_and_plan():
    operator = Operator(True)

    confirm(ask=operator)

    assert "UR10e" in operator.question
    shown = operator.shown
    assert SERIAL_NUMBER in shown["arm"]
    assert "192.0.2.7" in shown["arm"]
    assert shown["PolyScope"] == "5.12.6"
    assert "10.0 150.0 mm" in shown["TCP"]
    assert "1.5 kg" in shown["payload"]
    assert "look at the arm" in shown["mounting"]
    assert shown["speed slider"] == "100 %"
    assert shown["plan"] == "square, 16.0 s"


@pytest.mark.slow
def test_the_operator_sees_that_commands_are_sent_ahead(line):
    operator = Operator(True)

    without = prepare(line, robot="ur10e", options=Options(feedforward="off"))
    confirm(ask=operator, more_facts=plan_facts(without))
    assert "feedforward" not in operator.shown

    ahead = prepare(line, robot="ur10e", options=Options(feedforward="on"))
    confirm(ask=operator, more_facts=plan_facts(ahead))
    assert "lead the arm by up to" in operator.shown["feedforward"]


def test_what_the_software_does_not_report_is_shown_as_such():
    operator = Operator(True)
    unreported = replace(
        facts_with_state(payload=None),
        pendant=replace(FACTS.pendant, serial_number=None),
    )

    confirm(unreported, ask=operator, more_facts=())

    assert "not reported" in operator.shown["payload"]
    assert "unknown" in operator.shown["arm"]


def test_the_operator_compares_what_polyscope_x_does_not_report():
    operator = Operator(True)

    confirm(SILENT_X, cell=CELL, ask=operator)

    assert (
        f"compare the nameplate with that of the cell file, {SERIAL_NUMBER}"
        in (operator.shown["arm"])
    )
    assert "Local or Remote is unknown" in operator.shown["PolyScope"]


def test_a_cell_file_does_not_confirm_an_unknown_serial_number():
    with pytest.raises(
        ModelMismatch, match=r"PolyScope X reports the serial number from 10\.14 on"
    ) as refused:
        confirm(SILENT_X, cell=CELL, cell_confirms=True)

    assert refused.value.what == "serial number"


def test_the_mounting_of_the_cell_is_shown():
    operator = Operator(True)

    confirm(cell=Cell(mounting="ceiling"), ask=operator, more_facts=())

    assert operator.shown["mounting"].startswith("ceiling")


def test_asked_again_the_operator_sees_only_new_facts():
    operator = Operator(True)

    confirm_approach(LONG_APPROACH, UR10E, period=2.0, ask=operator)

    assert operator.shown == {"largest joint motion": "elbow_joint: 90 degrees", "duration": "4 s"}
    with pytest.raises(NotConfirmed, match="Nothing was moved"):
        confirm_approach(LONG_APPROACH, UR10E, period=2.0, ask=Operator(False))


def test_a_short_approach_needs_no_second_confirmation():
    confirm_approach(SHORT_APPROACH, UR10E, period=2.0, ask=None)


def test_without_confirmation_nothing_moves():
    with pytest.raises(NotConfirmed, match="Nothing was moved"):
        confirm(cell=CELL, ask=Operator(False))


def test_without_a_terminal_nothing_is_confirmed():
    with pytest.raises(NotConfirmed, match="--yes and a cell file"):
        confirm(cell=CELL, ask=None)


def test_a_matching_cell_file_confirms_and_the_operator_is_not_asked():
    operator = Operator(False)

    with pytest.warns(UserWarning, match="mounting, floor, was not compared"):
        confirm(cell=CELL, ask=operator, cell_confirms=True)

    assert not operator.question


def test_a_cell_file_does_not_confirm_a_long_approach():
    with pytest.raises(NotConfirmed, match="the cell file cannot") as refused:
        confirm_approach(LONG_APPROACH, UR10E, period=2.0, ask=None)

    assert "elbow_joint: 90 degrees" in str(refused.value)
    assert "--yes" not in str(refused.value)


@pytest.mark.parametrize("name", ["serial_number", "tcp", "payload", "mounting"])
def test_an_incomplete_cell_file_does_not_confirm(name):
    incomplete = replace(CELL, **{"payload_cog": None, name: None})

    with pytest.raises(NotConfirmed, match=name):
        confirm(cell=incomplete, ask=Operator(True), cell_confirms=True)


def test_yes_without_a_cell_file_confirms_nothing():
    with pytest.raises(NotConfirmed, match="serial_number, tcp, payload, mounting"):
        confirm(cell=None, ask=Operator(True), cell_confirms=True)


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
        confirm(cell=replace(CELL, **changes), ask=Operator(True), cell_confirms=True)

    assert refused.value.what == what


def test_a_cell_file_does_not_confirm_what_is_not_reported():
    without_serial_number = facts_with_pendant(serial_number=None)
    without_payload = facts_with_state(payload=None)

    for facts in (without_serial_number, without_payload):
        with pytest.raises(ModelMismatch, match="unknown"):
            confirm(facts, cell=CELL, ask=Operator(True), cell_confirms=True)
