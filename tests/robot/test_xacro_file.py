"""xacro files without ROS."""

from __future__ import annotations

import sys

import pytest

from simbridge import load_robot
from simbridge.errors import InputFileError, MissingPackage
from tests.robot.test_urdf_reader import GOOD

pytestmark = pytest.mark.slow

XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
PARTS = f'<robot {XACRO}><xacro:property name="speed" value="${{1 + 1}}"/></robot>'
ARM = GOOD.replace(
    'name="two_joints">',
    f'name="two_joints" {XACRO}><xacro:include filename="$(find parts)/parts.xacro"/>',
)


ARM = ARM.replace('velocity="2" ', 'velocity="${speed}" ')


@pytest.fixture
def xacro_file(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "parts.xacro").write_text(PARTS)
    path = tmp_path / "files" / "arm.urdf.xacro"
    path.parent.mkdir()
    path.write_text(ARM)
    return path


def test_a_xacro_file_is_expanded_with_its_packages(xacro_file, tmp_path):
    robot = load_robot(xacro_file, packages=[f"parts={tmp_path / 'elsewhere'}"])

    assert robot.name == "arm"
    assert robot.max_velocity.tolist() == [2.0, 2.5]
    assert "ament_index_python" not in sys.modules


def test_a_missing_package_is_named_with_its_flag(xacro_file):
    with pytest.raises(
        InputFileError,
        match=r"package 'parts' for \$\(find parts\) not found; give its directory with --package",
    ):
        load_robot(xacro_file)


def test_all_missing_packages_are_named_at_once(tmp_path):
    path = tmp_path / "two.urdf.xacro"
    lines = "".join(
        f'<xacro:include filename="$(find {name})/a.xacro"/>' for name in ("one", "other", "one")
    )
    path.write_text(
        f'<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="x">{lines}<!-- $(find gone) -->'
        "</robot>"
    )

    with pytest.raises(
        InputFileError, match=r"'one' for .*, nor 'other' for .* --package one=DIR,other=DIR$"
    ):
        load_robot(path)


def test_what_xacro_refuses_is_said(tmp_path):
    path = tmp_path / "arm.xacro"
    path.write_text(f'<robot name="a" {XACRO}><link name="${{nothing}}"/></robot>')

    with pytest.raises(
        InputFileError, match=r"(?s)xacro cannot expand it: .*'nothing' is not defined"
    ):
        load_robot(path)


def test_a_fault_in_expanded_text_names_the_element(tmp_path):
    path = tmp_path / "arm.xacro"
    path.write_text(
        GOOD.replace('value="3"', 'value="${-3}"').replace("<robot ", f"<robot {XACRO} ")
    )

    with pytest.raises(InputFileError, match="<link name='upper'> <mass> value: a mass") as caught:
        load_robot(path)

    assert caught.value.line is None


def test_without_xacro_the_extra_is_named(xacro_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)

    with pytest.raises(MissingPackage, match=r"simbridge\[xacro\]"):
        load_robot(xacro_file)
