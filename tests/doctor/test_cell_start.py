"""The arm that a cell file names when it begins with what a controller says."""

from __future__ import annotations

import pytest

from simbridge import load_robot
from simbridge.doctor.cell_start import start_cell
from simbridge.robot.cell_file import load_cell
from tests.backends.controller_facts import URSIM, facts_with_arm


@pytest.mark.parametrize(
    ("chosen", "named"), [("ur10e", "ur10e"), ("ur12e", "ur12e"), ("ur5", "ur10e")]
)
def test_a_cell_names_the_arm_of_the_controller(tmp_path, chosen, named):
    path = tmp_path / "lab.toml"

    start_cell(path, URSIM, load_robot(chosen))

    assert load_cell(path).robot == named


def test_a_users_file_is_left_to_the_flag(tmp_path):
    arm = tmp_path / "desk.toml"
    arm.write_text('title = "Desk arm"\nlike = "ur10e"\n', encoding="utf-8")
    path = tmp_path / "lab.toml"

    start_cell(path, URSIM, load_robot(arm))

    assert load_cell(path).robot is None


def test_an_unknown_type_names_no_arm(tmp_path):
    path = tmp_path / "lab.toml"

    start_cell(path, facts_with_arm(robot_type=11), load_robot("ur10e"))

    assert load_cell(path).robot is None
