"""What is said where a controller cannot confirm that its arm is the chosen one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simbridge.backends.controller_arm import complete_arm
from simbridge.backends.controller_model import unconfirmed_reason
from tests.backends.controller_facts import FACTS, UR10E, facts_with_arm

NEW = (5, 25, 1)
OLD = (5, 12, 6)


@pytest.mark.parametrize(
    ("robot_type", "version", "model", "named"),
    [
        (2, NEW, "UR10e", "UR12e"),
        (2, NEW, "UR12e", "UR10e"),
        (2, OLD, "UR12e", "UR10e"),
        (1, NEW, "UR7e", "UR5e"),
        (10, NEW, "UR15", "robot type 10"),
        (None, OLD, "UR10e", "does not report"),
    ],
)
def test_what_cannot_be_confirmed_is_named(robot_type, version, model, named):
    assert named in unconfirmed_reason(robot_type, version, model)


@pytest.mark.parametrize(
    ("robot_type", "version", "model"),
    [(9, NEW, "UR15"), (2, OLD, "UR10e"), (2, (3, 15, 8), "UR10"), (4, NEW, "UR16e")],
)
def test_what_is_confirmed_needs_no_word(robot_type, version, model):
    assert unconfirmed_reason(robot_type, version, model) is None


def test_a_run_says_which_file_was_taken():
    facts = replace(FACTS, state=replace(FACTS.state, version=NEW))

    with pytest.warns(UserWarning, match="taken for a UR10e, as chosen with --robot") as warned:
        complete_arm(UR10E, facts, chooses_kinematics=False, warns_of_nominal=True)

    assert "UR12e" in str(warned[0].message)


def test_a_run_says_that_the_type_is_unknown():
    facts = facts_with_arm(robot_type=11)

    with pytest.warns(UserWarning, match="robot type 11, which simbridge does not know"):
        complete_arm(UR10E, facts, chooses_kinematics=False, warns_of_nominal=True)
