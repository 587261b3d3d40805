"""robots/README.md describes the format that the reader knows."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from simbridge import load_robot
from simbridge.resources import ROBOTS
from simbridge.robot.robot_file import COLORS, LikeFile, RobotFile

README = (ROBOTS / "README.md").read_text(encoding="utf-8")


def field_names(kind):
    """Every key of a table and of the tables in it."""
    for field in msgspec.structs.fields(kind):
        yield field.name
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from field_names(inner)


@pytest.mark.parametrize("field", sorted({*field_names(RobotFile), *field_names(LikeFile)}))
def test_every_field_is_described(field):
    table = README[: README.index("## Adding an arm")]

    assert any(
        f"`{before}{field}{after}`" in table
        for before, after in (("", ""), ("[", "]"), ("[[", "]]"))
    )


@pytest.mark.parametrize("word", ["capsule", "cylinder", *COLORS])
def test_every_word_that_a_field_takes_is_described(word):
    assert f"`{word}`" in README


def test_a_urdf_gets_the_described_limits(tmp_path):
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        "</inertial>"
    )
    path = tmp_path / "arm.urdf"
    path.write_text(
        f'<robot name="r"><link name="a"/><link name="b">{inertial}</link>'
        '<joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><limit velocity="1" effort="1"/></joint></robot>',
        encoding="utf-8",
    )

    robot = load_robot(path)

    assert robot.period == 0.008
    assert "the control period is 8 ms" in README
    assert (robot.max_velocity_jump, robot.max_acceleration, robot.max_tool_speed) == (
        1.0,
        20.0,
        1.0,
    )
    assert "a velocity jump of 1 rad/s, 20 rad/s² and 1 m/s" in " ".join(README.split())
