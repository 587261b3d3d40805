"""What slows a live arm down, as data and in words."""

from __future__ import annotations

import msgspec
import pytest

from simbridge.sessions.causes import KINDS, LiveCause, cause_of_row, cause_rows

CAUSE = LiveCause.of("joint_limit", "elbow_joint", 0.00123)


def test_a_cause_is_kind_subject_value_and_unit():
    kind, subject, value, unit = CAUSE

    assert (kind, subject, value, unit) == ("joint_limit", "elbow_joint", 0.00123, "rad")


def test_a_cause_in_words_is_short():
    assert str(CAUSE) == "joint_limit elbow 0.001 rad"


def test_the_value_is_in_si_units_and_shown_in_millimetres():
    cause = LiveCause.of("obstacle", "table", 0.012)

    assert (cause.value, cause.unit) == (0.012, "m")
    assert cause.number == "12 mm"


def test_a_cause_without_a_number_has_no_value():
    assert LiveCause.of("halted").value is None
    assert str(LiveCause.of("halted")) == "halted"


def test_a_cause_contains_its_kind():
    assert "joint_limit" in CAUSE
    assert "joint" not in CAUSE


def test_the_record_of_a_cause_has_its_words():
    record = msgspec.json.decode(msgspec.json.encode(CAUSE.record()))

    assert record == {**CAUSE._asdict(), "text": str(CAUSE)}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_comes_back_from_its_row(kind):
    cause = LiveCause.of(kind, "wall", 0.25)

    rows = cause_rows([cause], {"wall": 0})

    assert cause_of_row(rows[0], ("wall",)) == cause
