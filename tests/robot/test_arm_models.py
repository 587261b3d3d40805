"""Robot types of UR's controllers, and the PolyScope versions that drive an arm."""

from __future__ import annotations

import pytest

from simbridge import load_robot
from simbridge.resources import robot_files
from simbridge.robot.arm_models import ARM_MODELS, describe_versions, find_model, models_of_type


def test_every_arm_in_robots_has_a_model():
    driven = [model.name for model in ARM_MODELS if model.oldest_polyscope is not None]
    loaded = [load_robot(name).ur_model for name in robot_files() if name.startswith("ur")]

    assert sorted(driven) == sorted(loaded)


@pytest.mark.parametrize(
    ("robot_type", "major", "models"),
    [
        (1, 3, ("UR5",)),
        (2, 3, ("UR10",)),
        (3, 3, ("UR3",)),
        (1, 5, ("UR5e", "UR7e")),
        (2, 5, ("UR10e", "UR12e")),
        (3, 5, ("UR3e",)),
        (4, 5, ("UR16e",)),
        (5, 5, ("UR18",)),
        (6, 5, ("UR8 Long",)),
        (7, 5, ("UR20",)),
        (8, 5, ("UR30",)),
        (9, 5, ("UR15",)),
        (9, 3, ()),
        (12, 10, ("UR10g-1750",)),
        (13, 10, ("UR17g-1300",)),
        (14, 10, ("UR18g-950",)),
        (10, 5, ()),
        (11, 10, ()),
        (77, 5, ()),
        (None, 5, ()),
    ],
)
def test_a_type_and_version_name_the_arms(robot_type, major, models):
    assert models_of_type(robot_type, major) == models


@pytest.mark.parametrize(
    ("model", "version", "runs"),
    [
        ("UR15", (5, 21), False),
        ("UR15", (5, 22), True),
        ("UR15", (10, 7), False),
        ("UR15", (10, 8), True),
        ("UR10", (3, 15), True),
        ("UR10", (5, 12), False),
        ("UR10e", (5, 9), True),
        ("UR10e", (3, 15), False),
        ("UR18g-950", (5, 25), False),
    ],
)
def test_an_arm_needs_its_polyscope(model, version, runs):
    assert find_model(model).runs_on(version) == runs


def test_the_versions_of_an_arm_are_described():
    assert describe_versions(find_model("UR15")) == "PolyScope 5.22 (or X 10.8) or later"
    assert describe_versions(find_model("UR18g-950")) == "PolyScope X 10.15 or later"
    assert describe_versions(find_model("UR3")) == "PolyScope 3"
