"""A robot's TOML that cannot be used: the error names the file and the field, and the line where it
is known.
"""

# A case a line, however long.
# ruff: noqa: E501

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InputFileError, InvalidHome, UnknownName
from simbridge.resources import robot_files
from simbridge.robot.load import read_toml
from tests.properties import few_examples

GOOD = """\
title = "Two joints"
home = [0.5, -0.5]

[controller]
period = 0.01
series = "none"

[kinematics]
joint_names = ["shoulder", "elbow"]
d = [0.1, 0.0]
a = [0.4, 0.3]
alpha = [1.5707963267948966, 0.0]
base_rpy = [0.0, 0.0, 0.0]

[limits]
position_min = [-3.0, -2.0]
position_max = [
    3.0,
    inf,  # continuous
]
velocity = [2.0, 2.5]
effort = [50.0, 20.0]
velocity_jump = 1.0
acceleration = 20.0
tool_speed = 1.0

[base]
shapes = [{ kind = "cylinder", start = [0.0, 0.0, 0.0], end = [0.0, 0.0, 0.05], radius = 0.1, color = "dark" }]

[[links]]
name = "upper"
mass = 3.0
center_of_mass = [-0.2, 0.0, 0.0]
inertia_rpy = [0.0, 0.0, 0.3]
inertia = { ixx = 0.01, ixy = 0.0, ixz = 0.0, iyy = 0.04, iyz = 0.0, izz = 0.04 }
shapes = [
    { start = [0.0, 0.0, 0.0], end = [-0.4, 0.0, 0.0], radius = 0.05 },
    { start = [0.0, 0.0, 0.0], end = [0.0, 0.0, 0.1], radius = 0.06, kind = "cylinder", solid = false },
]

[[links]]
name = "lower"
mass = 2.0
center_of_mass = [-0.15, 0.0, 0.0]

[links.inertia]
ixx = 0.002
ixy = 0.0
ixz = 0.0
iyy = 0.015
iyz = 0.0
izz = 0.015
"""

# Replaced text, replacement, named field, words on its line, reason.
REFUSED = [
    # missing fields
    ('title = "Two joints"\n', "", "title", None, "the field is missing"),
    ("period = 0.01\n", "", "controller.period", "[controller]", "the field is missing"),
    ("a = [0.4, 0.3]\n", "", "kinematics.a", "[kinematics]", "the field is missing"),
    ("velocity = [2.0, 2.5]\n", "", "limits.velocity", "[limits]", "the field is missing"),
    ("mass = 3.0\n", "", "links[0].mass", "[[links]]", "the field is missing"),
    ("iyz = 0.0\nizz", "izz", "links[1].inertia.iyz", "[links.inertia]", "the field is missing"),
    ("end = [-0.4, 0.0, 0.0], ", "", "links[0].shapes[0].end", "radius = 0.05 }", "the field is missing"),
    # unknown or misspelt fields
    ("velocity = [2.0", "velocty = [2.0", "limits.velocty", "velocty", "unknown field. Did you mean 'velocity'?"),
    ("mass = 2.0", "mass = 2.0\nweight = 2.0", "links[1].weight", "weight", "Available: center_of_mass, inertia"),
    ("[base]", "[stand]", "stand", "[stand]", "unknown field"),
    ("solid = false", "solid = false, wide = 1", "links[0].shapes[1].wide", "wide", "Did you mean"),
    # wrong types
    ("period = 0.01", 'period = "8 ms"', "controller.period", "8 ms", "expected a number, got text"),
    ("mass = 2.0", "mass = true", "links[1].mass", "mass = true", "expected a number, got bool"),
    ("d = [0.1, 0.0]", "d = 0.1", "kinematics.d", "d = 0.1", "expected a list, got a number"),
    ("    inf,  # continuous", "    'inf',", "limits.position_max[1]", "position_max", "expected a number, got text"),
    ('"shoulder", "elbow"', '"shoulder", 2', "kinematics.joint_names[1]", "joint_names", "expected text, got a whole number"),
    ("[0.0, 0.0, 0.05]", "[0.0, 0.05]", "base.shapes[0].end", "0.05", "expected a list of length 3, got 2"),
    ("[controller]\n", "controller = 3\n[controls]\n", "controller", "controller = 3", "expected a table"),
    ('color = "dark"', 'color = "pink"', "base.shapes[0].color", "pink", "'pink' is not one of silver, grey, blue, dark"),
    ('kind = "cylinder", solid', 'kind = "cone", solid', "links[0].shapes[1].kind", "cone", "one of capsule, cylinder"),
    # not one value per joint
    ("home = [0.5, -0.5]", "home = [0.5]", "home", "home =", "2 values are needed, one per joint; got 1"),
    ("alpha = [1.5707963267948966, 0.0]", "alpha = [0, 0, 0]", "kinematics.alpha", "alpha", "got 3"),
    ("effort = [50.0, 20.0]", "effort = []", "limits.effort", "effort", "got 0"),
    ('["shoulder", "elbow"]', "[]", "kinematics.joint_names", "joint_names", "at least one joint"),
    (GOOD[GOOD.index('[[links]]\nname = "lower"') :], "", "links", "[[links]]", "got 1"),
    # names
    ('"shoulder", "elbow"', '"elbow", "elbow"', "kinematics.joint_names[1]", "joint_names", "'elbow' is used twice"),
    ('name = "lower"', 'name = "upper"', "links[1].name", "\"upper\"\nmass = 2", "'upper' is used twice"),
    ('name = "lower"', 'name = "tool0"', "links[1].name", "tool0", "'tool0' is reserved"),
    ('name = "lower"', 'name = " "', "links[1].name", '" "', "' ' is not a valid name"),
    ('"elbow"]', '"el\\nbow"]', "kinematics.joint_names[1]", "joint_names", "is not a valid name"),
    # the model of a UR arm
    ('series = "none"', 'model = "ur10e"', "controller.model", "ur10e", "this must be UR3, UR5, UR10, UR3e"),
    ('series = "none"', 'model = "UR10g-1750"', "controller.model", "UR10g", "or left out for any other arm"),
    ('series = "none"', 'model = "UR10e"', "controller.series", "UR10e", "must be 'e-Series' for the model UR10e; it is ''"),
    # impossible numbers
    ("mass = 3.0", "mass = -3.0", "links[0].mass", "mass = -3.0", "a positive number, not -3.0"),
    ("mass = 3.0", "mass = 0", "links[0].mass", "mass = 0", "a positive number, not 0"),
    ("mass = 2.0", "mass = nan", "links[1].mass", "mass = nan", "a positive number, not nan"),
    ("period = 0.01", "period = inf", "controller.period", "period", "a positive number, not inf"),
    ("period = 0.01", "period = -0.01", "controller.period", "period", "a positive number"),
    ("period = 0.01", "period = " + "9" * 400, "controller.period", "period", "number out of range"),
    ("a = [0.4, 0.3]", "a = [0.4, nan]", "kinematics.a[1]", "a = [0.4", "a finite number, not nan"),
    ("d = [0.1, 0.0]", "d = [inf, 0.0]", "kinematics.d[0]", "d = [inf", "a finite number, not inf"),
    ("base_rpy = [0.0, 0.0, 0.0]", "base_rpy = [0, 0, nan]", "kinematics.base_rpy[2]", "base_rpy", "not nan"),
    ("velocity = [2.0, 2.5]", "velocity = [2.0, 0.0]", "limits.velocity[1]", "velocity = ", "a positive number"),
    ("effort = [50.0, 20.0]", "effort = [-50, 20]", "limits.effort[0]", "effort", "a positive number, not -50"),
    ("velocity_jump = 1.0", "velocity_jump = 0", "limits.velocity_jump", "velocity_jump", "a positive number"),
    ("acceleration = 20.0", "acceleration = nan", "limits.acceleration", "acceleration", "a positive number"),
    ("tool_speed = 1.0", "tool_speed = -1", "limits.tool_speed", "tool_speed", "a positive number"),
    ("radius = 0.05 }", "radius = 0 }", "links[0].shapes[0].radius", "radius = 0 }", "a positive number"),
    ("radius = 0.06", "radius = nan", "links[0].shapes[1].radius", "radius = nan", "a positive number"),
    ("radius = 0.1", "radius = -0.1", "base.shapes[0].radius", "radius = -0.1", "a positive number"),
    ("end = [-0.4, 0.0, 0.0]", "end = [-0.4, nan, 0.0]", "links[0].shapes[0].end[1]", "-0.4, nan", "finite"),
    ("end = [0.0, 0.0, 0.1]", "end = [0.0, 0.0, 0.0]", "links[0].shapes[1].end", "0.06", "must not end where it starts"),
    ("[-0.15, 0.0, 0.0]", "[-0.15, 0.0, inf]", "links[1].center_of_mass[2]", "-0.15", "finite"),
    ("inertia_rpy = [0.0, 0.0, 0.3]", "inertia_rpy = [nan, 0, 0]", "links[0].inertia_rpy[0]", "inertia_rpy", "finite"),
    ("ixx = 0.002", "ixx = nan", "links[1].inertia.ixx", "ixx = nan", "finite"),
    # impossible inertia tensors
    ("ixx = 0.002", "ixx = -0.002", "links[1].inertia", "[links.inertia]", "one is negative"),
    ("ixx = 0.01,", "ixx = 0.0,", "links[0].inertia", "ixx = 0.0,", "not positive definite"),
    ("iyz = 0.0\n", "iyz = 0.02\n", "links[1].inertia", "[links.inertia]", "one is negative"),
    ("izz = 0.04", "izz = 0.06", "links[0].inertia", "izz = 0.06", "one exceeds the others' sum"),
    # ranges
    ("position_min = [-3.0, -2.0]", "position_min = [3.0, -2.0]", "limits.position_min[0]", "position_min", "not below"),
    ("position_min = [-3.0, -2.0]", "position_min = [-3.0, nan]", "limits.position_min[1]", "position_min", "nan is not"),
    ("position_min = [-3.0, -2.0]", "position_min = [-3.0, inf]", "limits.position_min[1]", "position_min", "not below"),
    ("home = [0.5, -0.5]", "home = [3.5, -0.5]", "home[0]", "home", "3.5 rad is outside the range of shoulder, -3.0 to 3.0"),
    ("home = [0.5, -0.5]", "home = [0.5, nan]", "home[1]", "home", "finite"),
    ("home = [0.5, -0.5]", "home = [0.5, inf]", "home[1]", "home", "finite"),
    # not TOML
    ("effort = [50.0, 20.0]", "effort = 50.0, 20.0", None, "effort", "this is not TOML"),
    ("effort = [50.0, 20.0]", "effort = [50.0 20.0]", None, "effort", "this is not TOML"),
    ("mass = 2.0", "mass = 2.0\nmass = 2.0", None, "mass = 2.0\ncenter", "this is not TOML"),
    ("[limits]", "[limits", None, "[limits", "this is not TOML"),
    ("izz = 0.015\n", "last =", None, "last =", "this is not TOML"),
]  # fmt: skip


def line_of(text: str, words: str) -> int:
    return text[: text.index(words)].count("\n") + 1


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_template_of_the_cases_is_valid(tmp_path):
    robot = read_toml(written(tmp_path, GOOD))

    assert robot.name == "arm"
    assert robot.title == "Two joints"
    assert robot.n == 2
    assert robot.period == 0.01
    assert robot.position_max[1] == float("inf")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "field", "words", "reason"), REFUSED, ids=[f"{c[2]}: {c[4]}" for c in REFUSED]
)
def test_the_error_names_no_wrong_line(tmp_path, old, new, field, words, reason):
    assert old in GOOD

    text = GOOD.replace(old, new, 1)
    path = written(tmp_path, text)

    with pytest.raises(InputFileError, match=re.escape(reason)) as caught:
        read_toml(path)

    assert caught.value.path == path
    assert caught.value.field == field

    line = caught.value.line

    assert line in (None, line_of(text, words) if words else None)
    assert str(caught.value).startswith(f"{path}, line {line}" if line else f"{path}")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("period = 0.01", "# period = 1\nperiod = 0", "period = 0"),
        ("position_min = [-3.0, -2.0]", "position_min = [3.0, -2.0]", "position_min"),
        ("velocity = [2.0", "velocty = [2.0", "velocty"),
        ("mass = 3.0", "mass = 0", "mass = 0"),
        ("mass = 2.0", "mass = 0", "mass = 0"),
        ("ixx = 0.002", "ixx = nan", "ixx = nan"),
    ],
)
def test_a_unique_key_has_its_line(tmp_path, old, new, words):
    text = GOOD.replace(old, new, 1)

    with pytest.raises(InputFileError) as caught:
        read_toml(written(tmp_path, text))

    assert caught.value.line == line_of(text, words)


def test_a_missing_field_has_no_line(tmp_path):
    path = written(tmp_path, GOOD.replace("mass = 2.0\n", ""))

    with pytest.raises(InputFileError, match="missing") as caught:
        read_toml(path)

    assert caught.value.field == "links[1].mass"
    assert caught.value.line is None


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="file not found"):
        load_robot(tmp_path / "nowhere.toml")

    (tmp_path / "directory.toml").mkdir()

    with pytest.raises(InputFileError, match="this is a directory"):
        load_robot(tmp_path / "directory.toml")

    (tmp_path / "latin.toml").write_bytes('title = "Größe"'.encode("latin-1"))

    with pytest.raises(InputFileError, match="not a text file in UTF-8"):
        load_robot(tmp_path / "latin.toml")

    (tmp_path / "empty.toml").write_bytes(b"")

    with pytest.raises(InputFileError, match="the field is missing"):
        load_robot(tmp_path / "empty.toml")


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        ([0.0] * 5, "used: 6 joint positions are needed, but 5 were given"),
        (
            [0.0, 0.0, 4.0, 0.0, 0.0, 0.0],
            r"home\[2\]: 4.0 is outside the range of elbow_joint, -3.141592654 to 3.1",
        ),
        ([0.0, 0.0, float("nan"), 0.0, 0.0, 0.0], "nan is outside the range of elbow_joint"),
    ],
)
def test_a_home_is_checked_against_the_limits(home, reason):
    with pytest.raises(InvalidHome, match=reason):
        load_robot("ur10", home=home)


def test_a_home_given_at_loading_replaces_the_files():
    assert list(load_robot("ur10", home=[0.1] * 6).home) == [0.1] * 6


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'ur10e'") as caught:
        load_robot("ur10ee")

    assert caught.value.known == tuple(robot_files())
    assert "./arm.urdf" in str(caught.value)


@pytest.mark.slow
def test_every_robot_is_loaded_by_name_and_path():
    for name, path in robot_files().items():
        robot = load_robot(path)

        assert robot.name == name
        assert robot.checksum == load_robot(name).checksum

    assert load_robot(str(path)).checksum == robot.checksum


@few_examples(25)
@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 30),
    st.sampled_from(["", "nan", "-1", "1e999", "[", "]", "}", "=", '"', "\n", "links", "é", "\0"]),
)
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, begin, length, junk):
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(GOOD[:begin] + junk + GOOD[begin + length :], encoding="utf-8")
    try:
        robot = read_toml(path)
    except InputFileError as error:
        assert error.path == path
        assert error.line is not None or error.field is not None
    else:
        assert robot.n == 2
