"""Who may say yes before a real arm moves, and what they have seen by then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simbridge.backends.operator_confirmation import confirm
from simbridge.robot.cell import Cell
from simbridge.ur.errors import ModelMismatch, NotConfirmed
from tests.backends.test_preflight import FACTS, TCP, UR10E

CELL = Cell(serial_number="20261234567", tcp=TCP, payload=1.5, payload_cog=(0.0, 0.0, 0.05), mounting="floor")
PLAN = (("plan", "square, 16.0 s"),)


class Person:
    """Answers, and remembers what was shown."""

    def __init__(self, answer):
        self.answer, self.shown, self.question = answer, {}, ""

    def __call__(self, shown, question):
        self.shown, self.question = dict(shown), question
        return self.answer


def test_a_person_who_says_yes_has_seen_the_arm_the_tool_the_mounting_the_slider_and_the_plan():
    person = Person(True)
    confirm(FACTS, UR10E, None, PLAN, person, yes=False)
    assert "UR10e" in person.question
    shown = person.shown
    assert "20261234567" in shown["arm"] and "192.0.2.7" in shown["arm"]
    assert shown["PolyScope"] == "5.12.6"
    assert "10.0 150.0 mm" in shown["TCP"] and "1.5 kg" in shown["payload"]
    assert "look at the arm" in shown["mounting"]
    assert shown["speed slider"] == "100%"
    assert shown["plan"] == "square, 16.0 s"


def test_what_the_software_does_not_tell_is_said_to_be_untold():
    person = Person(True)
    untold = replace(
        FACTS, state=replace(FACTS.state, payload=None), dashboard=replace(FACTS.dashboard, serial_number=None)
    )
    confirm(untold, UR10E, None, (), person, yes=False)
    assert "not reported" in person.shown["payload"] and "unknown" in person.shown["arm"]


def test_the_mounting_of_the_cell_is_shown():
    person = Person(True)
    confirm(FACTS, UR10E, Cell(mounting="ceiling"), (), person, yes=False)
    assert person.shown["mounting"].startswith("ceiling")


def test_asked_again_a_person_sees_only_what_is_new():
    person = Person(True)
    confirm(None, UR10E, None, (("longest way", "elbow: 90 degrees"),), person, yes=False)
    assert person.shown == {"longest way": "elbow: 90 degrees"}


def test_no_is_no():
    with pytest.raises(NotConfirmed, match="Nothing was moved"):
        confirm(FACTS, UR10E, CELL, PLAN, Person(False), yes=False)


def test_without_a_terminal_nobody_has_said_yes():
    with pytest.raises(NotConfirmed, match="--yes and a cell file"):
        confirm(FACTS, UR10E, CELL, PLAN, None, yes=False)


def test_a_matching_cell_file_answers_and_nobody_is_asked():
    person = Person(False)
    with pytest.warns(UserWarning, match="mounting, floor, was not compared"):
        confirm(FACTS, UR10E, CELL, PLAN, person, yes=True)
    assert not person.question


def test_a_cell_file_does_not_answer_what_comes_up_later():
    with pytest.raises(NotConfirmed, match="the cell file cannot") as refused:
        confirm(None, UR10E, CELL, (("longest way", "elbow: 90 degrees"),), None, yes=True)
    assert "elbow: 90 degrees" in str(refused.value) and "--yes" not in str(refused.value)


@pytest.mark.parametrize("name", ["serial_number", "tcp", "payload", "mounting"])
def test_a_cell_file_that_leaves_something_out_does_not_answer(name):
    with pytest.raises(NotConfirmed, match=name):
        confirm(FACTS, UR10E, replace(CELL, **{"payload_cog": None, name: None}), PLAN, Person(True), yes=True)


def test_yes_without_a_cell_file_answers_nothing():
    with pytest.raises(NotConfirmed, match="serial_number, tcp, payload, mounting"):
        confirm(FACTS, UR10E, None, PLAN, Person(True), yes=True)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"serial_number": "20269999999"}, "serial number"),
        ({"tcp": (0.0, 0.01, 0.16, 0.0, 0.0, 1.5)}, "TCP"),
        ({"payload": 2.0}, "payload"),
        ({"payload_cog": (0.0, 0.02, 0.05)}, "centre of gravity"),
        # At the TCP, which is elsewhere.
        ({"payload_cog": None}, "centre of gravity"),
    ],
)
def test_a_cell_file_of_another_arm_or_tool_does_not_answer(changes, what):
    with pytest.raises(ModelMismatch) as refused:
        confirm(FACTS, UR10E, replace(CELL, **changes), PLAN, Person(True), yes=True)
    assert refused.value.what == what


def test_a_controller_that_tells_less_than_the_cell_file_says_cannot_be_answered_for():
    silent = replace(FACTS, dashboard=replace(FACTS.dashboard, serial_number=None))
    with pytest.raises(ModelMismatch, match="unknown"):
        confirm(silent, UR10E, CELL, PLAN, Person(True), yes=True)
    silent = replace(FACTS, state=replace(FACTS.state, payload=None))
    with pytest.raises(ModelMismatch, match="unknown"):
        confirm(silent, UR10E, CELL, PLAN, Person(True), yes=True)
