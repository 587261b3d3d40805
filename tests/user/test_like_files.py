"""Files of arms that have the body of another arm: `like` in a robot's TOML."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.backends.preflight import check_identity
from simbridge.errors import InputFileError
from simbridge.resources import robot_files
from simbridge.robot.robot_file import robot_facts
from tests.backends.controller_facts import FACTS


def write_arm(folder, text, name="mine.toml"):
    """Write a robot's TOML, and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def assert_same_body(arm, other):
    """Assert that two arms have equal chains, masses and shapes."""
    assert np.array_equal(arm.placements, other.placements)
    assert arm.joint_names == other.joint_names
    assert arm.base_shapes == other.base_shapes
    for link, other_link in zip(arm.links, other.links, strict=True):
        assert link.inertia == other_link.inertia
        assert link.shapes == other_link.shapes


@pytest.mark.parametrize(("name", "other"), [("ur7e", "ur5e"), ("ur12e", "ur10e")])
def test_arms_share_their_data_by_reference(name, other):
    arm = load_robot(name)

    assert arm.name == name
    assert_same_body(arm, load_robot(other))
    assert 'like = "' in robot_files()[name].read_text(encoding="utf-8")


def test_a_users_file_changes_single_fields(tmp_path):
    path = write_arm(
        tmp_path,
        'title = "Slow"\nlike = "ur10e"\nhome = [0.1, -1.3, 1.9, -2.1, -1.5, 0.0]\n'
        "[limits]\nacceleration = 5.0\n[controller]\nperiod = 0.004\n",
    )

    arm = load_robot(path)

    other = load_robot("ur10e")
    assert (arm.name, arm.title, arm.source) == ("mine", "Slow", path)
    assert (arm.max_acceleration, arm.period) == (5.0, 0.004)
    assert arm.home[0] == 0.1
    assert arm.max_velocity_jump == other.max_velocity_jump
    assert arm.series == other.series
    assert_same_body(arm, other)


def test_a_path_is_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "arms").mkdir()
    text = robot_files()["ur3"].read_text(encoding="utf-8")
    write_arm(tmp_path, text, "base.toml")
    path = write_arm(tmp_path / "arms", 'title = "Mine"\nlike = "../base.toml"\n')
    monkeypatch.chdir("/")

    arm = load_robot(path)

    assert_same_body(arm, load_robot("ur3"))


def test_what_was_inferred_is_not_inherited(tmp_path):
    path = write_arm(tmp_path, 'title = "Mine"\nlike = "ur8long"\n')

    assert robot_facts(robot_files()["ur8long"])["inferred"]
    assert robot_facts(path)["inferred"] == []


def test_an_arm_with_another_title_has_the_others_model(tmp_path):
    path = write_arm(tmp_path, 'title = "Desk arm"\nlike = "ur10e"\n')

    arm = load_robot(path)

    assert (arm.title, arm.ur_model) == ("Desk arm", "UR10e")
    check_identity(FACTS, arm, None, ursim=False)


def test_a_file_states_the_model_that_differs(tmp_path):
    text = 'title = "Desk arm"\nlike = "ur10e"\n[controller]\nmodel = "UR12e"\n'

    arm = load_robot(write_arm(tmp_path, text))

    assert arm.ur_model == "UR12e"
    assert_same_body(arm, load_robot("ur10e"))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('title = "A"\nlike = "ur10e"\n[kinematics]\nd = [1.0]\n', "kinematics"),
        ('title = "A"\nlike = "ur10e"\n[[links]]\nname = "a"\n', "links"),
        ('title = "A"\nlike = "ur99"\n', "like"),
        ('title = "A"\nlike = "./missing.toml"\n', "like"),
        ('title = "A"\nlike = "ur7e"\n', "like"),
        ('title = "A"\nlike = "mine.toml"\n', "like"),
        ('like = "ur10e"\n', "title"),
        ('title = "A"\nlike = "ur10e"\n[controller]\nmodel = "UR11e"\n', "controller.model"),
        ('title = "A"\nlike = "ur10e"\n[controller]\nmodel = "UR10"\n', "controller.series"),
        ('title = "A"\nlike = 5\n', "like"),
        ('title = "A"\nlike = "ur10e"\ncolor = "red"\n', "color"),
        ('title = "A"\nlike = "ur10e"\nhome = [9.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n', "home[0]"),
        ('title = "A"\nlike = "ur10e"\n[limits]\nvelocity = [1.0]\n', "limits.velocity"),
        (
            'title = "A"\nlike = "ur10e"\n[limits]\neffort = [0, 1, 1, 1, 1, 1]\n',
            "limits.effort[0]",
        ),
    ],
)
def test_what_is_not_clear_is_refused_by_field(tmp_path, text, field):
    path = write_arm(tmp_path, text)

    with pytest.raises(InputFileError) as refused:
        load_robot(path)

    assert refused.value.path == path
    assert refused.value.field == field


def test_an_unknown_arm_is_answered_with_the_nearest(tmp_path):
    path = write_arm(tmp_path, 'title = "A"\nlike = "ur16"\n')

    with pytest.raises(InputFileError, match=r"it is 'ur16'\. Did you mean 'ur16e'\?"):
        load_robot(path)


def test_a_fault_of_the_other_arm_is_found_there(tmp_path):
    text = robot_files()["ur3"].read_text(encoding="utf-8").replace("mass = 3.42", "mass = -1.0")
    other = write_arm(tmp_path, text, "base.toml")
    path = write_arm(tmp_path, 'title = "A"\nlike = "base.toml"\n')

    with pytest.raises(InputFileError) as refused:
        load_robot(path)

    assert refused.value.path == other
    assert refused.value.field == "links[1].mass"


def test_the_list_says_what_was_inferred(cli):
    text = " ".join(cli("robots").out.split())

    assert "ur7e: kinematics and joint limits: those of the UR5e" in text
    assert "ur8long: joint limits: those of the UR15 and UR18" in text
