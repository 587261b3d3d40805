"""Which arm a name means, and which arms an unknown name may stand for."""

from __future__ import annotations

import importlib.util

import pytest

from simbridge import load_robot
from simbridge.errors import UnknownName
from simbridge.resources import robot_files
from simbridge.robot.robot_names import find_robot, similar_robots, unknown_robot

FILES = robot_files()


@pytest.mark.parametrize(
    ("name", "robot"),
    [
        ("ur10e", "ur10e"),
        ("UR10e", "ur10e"),
        ("UR 10e", "ur10e"),
        ("UR10-e", "ur10e"),
        ("ur10 e", "ur10e"),
        ("ur_5e", "ur5e"),
        ("UR8 Long", "ur8long"),
        ("ur8-long", "ur8long"),
        ("Planar 2R", "planar2r"),
        ("UR 10", "ur10"),
    ],
)
def test_spelling_does_not_matter(name, robot):
    assert find_robot(name, FILES) == FILES[robot]
    assert load_robot(name).name == robot


def test_a_spelling_of_two_files_means_neither(tmp_path):
    files = {"desk_arm": tmp_path / "desk_arm.toml", "deskarm": tmp_path / "deskarm.toml"}

    assert find_robot("desk_arm", files) == files["desk_arm"]
    assert find_robot("Desk-Arm", files) is None


@pytest.mark.parametrize(
    ("name", "robots"),
    [
        # Of another generation.
        ("ur15e", ["ur15"]),
        ("ur18e", ["ur18"]),
        ("ur20e", ["ur20"]),
        ("ur30e", ["ur30"]),
        # Without the letters.
        ("ur16", ["ur16e"]),
        ("ur12", ["ur12e"]),
        ("ur7", ["ur7e"]),
        ("ur8", ["ur8long"]),
        ("ur8e", ["ur8long"]),
        # As in data sheets and on dashboards.
        ("UR8L", ["ur8long"]),
        ("UR8 L", ["ur8long"]),
        ("UR10e e-Series", ["ur10e"]),
        ("UR10 e-Series", ["ur10e"]),
        ("UR10 CB3", ["ur10"]),
        ("UR-5 (CB3)", ["ur5"]),
        ("UR10 CB3.1", ["ur10"]),
        ("UR10 CB2", ["ur10", "ur10e"]),
        ("UR5 robot arm", ["ur5", "ur5e"]),
        ("UR8 Long 1750", ["ur8long"]),
        ("UR10e (1300 mm)", ["ur10e"]),
        ("UR7e 7.5 kg", ["ur7e"]),
        ("UR10 1300 mm", ["ur10", "ur10e"]),
        ("UR18-950", ["ur18"]),
        ("Universal Robot UR12", ["ur12e"]),
        ("UR10e CB3", ["ur10", "ur10e"]),
        ("Universal Robots UR5e", ["ur5e"]),
        ("Universal-Robots UR20", ["ur20"]),
        ("UR20 e-Series", ["ur20"]),
        # Typing errors.
        ("u10e", ["ur10", "ur10e"]),
        ("ur10ee", ["ur10", "ur10e"]),
        ("ru3", ["ur3", "ur3e"]),
        ("planer2r", ["planar2r"]),
        ("planar", ["planar3r"]),
        # Another maker's arm.
        ("panda", []),
    ],
)
def test_the_same_number_is_suggested(name, robots):
    assert find_robot(name, FILES) is None
    assert sorted(similar_robots(name, list(FILES))) == robots


@pytest.mark.parametrize("name", ["panda", "Panda", "PANDA "])
def test_an_arm_of_robot_descriptions_is_suggested(name):
    pytest.importorskip("robot_descriptions")

    assert "Did you mean 'panda_description'?" in str(unknown_robot(name, FILES))


def test_without_robot_descriptions_none_is_suggested(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert "Did you mean" not in str(unknown_robot("panda", FILES))


def test_the_nearest_spelling_comes_first():
    assert similar_robots("ur10ee", list(FILES)) == ["ur10e", "ur10"]
    assert similar_robots("UR5 robot arm", list(FILES)) == ["ur5", "ur5e"]


@pytest.mark.parametrize("name", ["ur6", "ur100e", "ur", "urx", "UR 1", "ur1oe", "UR e-Series"])
def test_no_arm_of_another_payload_is_suggested(name):
    assert similar_robots(name, list(FILES)) == []
    assert "Did you mean" not in str(unknown_robot(name, FILES))
    assert set(unknown_robot(name, FILES).known) == set(FILES)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("ur10g", "UR10g-1750"),
        ("UR10g-1750", "UR10g-1750"),
        ("ur 17g", "UR17g-1300"),
        ("Universal Robots UR18g-950", "UR18g-950"),
        ("Universal Robots, UR10g (1750)", "UR10g-1750"),
        ("UR18 g-Series", "UR18g-950"),
        ("Universal Robot UR10g-1750, 8 kg", "UR10g-1750"),
        # No other arm has the number.
        ("ur17", "UR17g-1300"),
        ("UR17e", "UR17g-1300"),
        ("UR17-1300", "UR17g-1300"),
    ],
)
def test_the_g_series_is_refused_with_the_reason(name, title):
    with pytest.raises(UnknownName) as refused:
        load_robot(name)

    assert f"The {title} is known" in str(refused.value)
    assert "no kinematics and no joint limits" in str(refused.value)
    assert "Did you mean" not in str(refused.value)


def test_a_reach_of_the_g_series_is_explained_beside_the_number():
    answer = str(unknown_robot("UR10-1750", FILES))

    assert "The UR10g-1750 is known" in answer
    assert "Did you mean 'ur10' or 'ur10e'?" in answer


@pytest.mark.parametrize(("name", "number"), [("ur6", 6), ("UR 25e", 25), ("ur100", 100)])
def test_a_number_without_an_arm_is_named(name, number):
    assert f"robots/ has no arm with the number {number}." in str(unknown_robot(name, FILES))


def test_the_answer_names_what_would_work(cli):
    answer = cli("check", "circle", "--robot", "ur12")

    assert answer.status == 2
    assert "Did you mean 'ur12e'?" in answer.message
