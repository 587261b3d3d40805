"""URDF and xacro files as users have them: placeholders, faults, arguments."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from simbridge import load_robot
from simbridge.errors import InputFileError
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeat_command import repeat_command

PLACEHOLDER = (
    '<inertial><mass value="1."/><inertia ixx="1E-10" ixy="1E-10" ixz="1E-10" iyy="1E-10" '
    'iyz="1E-10" izz="1E-10"/></inertial>'
)
BODY = (
    '<inertial><mass value="2"/><origin xyz="0.2 0 0"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
)
POINT_MASS = re.sub('i([xyz]{2})="[^"]*"', r'i\1="0"', PLACEHOLDER)
MASSLESS = BODY.replace('<mass value="2"/>', '<mass value="0"/>')
LIMIT = 'velocity="2" effort="100"'
SOAK = pytest.mark.soak


def arm_links(body: str = BODY, pad: str = "", limit: str = LIMIT) -> str:
    """Return the links and joints of an arm of three joints, with a pad beside its tool."""
    return f"""
  <link name="base_link"/>
  <link name="a">{body}</link>
  <link name="b">{body}</link>
  <link name="c">{body}</link>
  <link name="tool0"/>
  <link name="pad">{pad}</link>
  <joint name="j1" type="revolute"><parent link="base_link"/><child link="a"/>
    <origin xyz="0 0 0.2"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" {limit}/></joint>
  <joint name="j2" type="revolute"><parent link="a"/><child link="b"/>
    <origin xyz="0 0 0.1"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" {limit}/></joint>
  <joint name="j3" type="revolute"><parent link="b"/><child link="c"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 1 0"/><limit lower="-2.5" upper="2.5" {limit}/></joint>
  <joint name="jt" type="fixed"><parent link="c"/><child link="tool0"/>
    <origin xyz="0.4 0 0"/></joint>
  <joint name="jp" type="fixed"><parent link="c"/><child link="pad"/>
    <origin xyz="0.4 0.02 0"/></joint>
"""


def written(folder: Path, links: str) -> Path:
    """Write the URDF of an arm, and return its path."""
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="arm">{links}</robot>')
    return path


# test_urdf_reader has each note.
@pytest.mark.usefixtures("without_pages")
@pytest.mark.parametrize(
    ("body", "pad", "note"),
    [
        pytest.param(BODY, PLACEHOLDER, "pad: no body has this inertia tensor", marks=SOAK),
        (PLACEHOLDER, PLACEHOLDER, "a, b, c and pad: no body has this inertia tensor"),
        pytest.param(BODY, POINT_MASS, "pad: its moments of inertia are all zero", marks=SOAK),
        pytest.param(
            MASSLESS, BODY, "a, b and c: it has moments of inertia without a mass", marks=SOAK
        ),
    ],
)
def test_placeholder_inertia_is_noted_and_used(tmp_path, cli, line, body, pad, note) -> None:
    path = written(tmp_path, arm_links(body, pad))
    # On the axis of the first joint, a placeholder is all that its link has.
    answer = cli(
        "run", line, "--anchor", "start", "--robot", path, "--out", tmp_path / "run", "--json"
    )

    assert answer.status == 0
    assert f"Note: {note}" in " ".join(answer.err.split())
    assert json.loads(answer.out)["plant_error"]["position_m"]["max"] < 0.01


def test_every_missing_limit_is_named(tmp_path, cli) -> None:
    path = written(tmp_path, arm_links(limit=""))

    answer = cli("check", "circle", "--robot", path)

    message = " ".join(answer.err.split())
    assert answer.status == 2
    assert "6 errors" in message
    assert message.count("<limit> velocity: the attribute is missing") == 3
    assert message.count("<limit> effort: the attribute is missing") == 3


def xacro_package(folder: Path) -> Path:
    """Write a package as UR's own: the robot's name is an argument that is declared below it."""
    package = folder / "my_arm"
    (package / "urdf").mkdir(parents=True)
    (package / "package.xml").write_text('<package format="3"><name>my_arm</name></package>')
    path = package / "urdf" / "arm.urdf.xacro"
    path.write_text(
        '<robot xmlns:xacro="http://wiki.ros.org/xacro" name="$(arg name)">'
        '<xacro:arg name="name" default="arm"/><xacro:arg name="speed" default="2"/>'
        '<xacro:include filename="$(find my_arm)/urdf/links.xacro"/></robot>'
    )
    links = arm_links(limit='velocity="$(arg speed)" effort="100"')
    (package / "urdf" / "links.xacro").write_text(
        f'<robot xmlns:xacro="http://wiki.ros.org/xacro">{links}</robot>'
    )
    return path


def test_declared_defaults_hold_before_their_declaration(tmp_path) -> None:
    pytest.importorskip("xacro")

    robot = load_robot(xacro_package(tmp_path))

    assert robot.title == "arm"
    assert robot.max_velocity.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.usefixtures("without_pages")
@pytest.mark.parametrize(
    "form",
    # A file is read with the second form in test_required_arguments_are_used.
    ["{}={}", pytest.param("{}:={}", marks=SOAK)],
)
def test_arguments_of_a_xacro_file_are_kept(tmp_path, cli, line, form) -> None:
    pytest.importorskip("xacro")
    path = xacro_package(tmp_path)
    flags = ("--xacro-arg", form.format("name", "left, arm"))
    flags += ("--xacro-arg", form.format("speed", "1.5"))
    flags += ("--anchor", "start")

    answer = cli("run", line, "--robot", path, *flags, "--out", tmp_path / "run")

    assert answer.status == 0
    record = RunDirectory.open(tmp_path / "run").settings()
    assert record.robot.title == "left, arm"
    assert record.robot.max_velocity == [1.5, 1.5, 1.5]
    assert record.robot.xacro_arg == ["name=left, arm", "speed=1.5"]
    # The command that the page shows repeats them.
    command = shlex.split(repeat_command(record, tmp_path / "run"))
    assert cli(*command[1:], "--out", tmp_path / "again").status == 0
    again = RunDirectory.open(tmp_path / "again").settings()
    assert again.robot == record.robot


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("speeed=1",), "it has no argument 'speeed' for --xacro-arg (did you mean 'speed'?)"),
        (("speed",), "The xacro argument must be NAME=VALUE; got speed"),
        (("speed=1", "speed=2"), "given once for each name"),
        (("speed=fast",), "'fast' is not a finite number"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, cli, flags, message) -> None:
    pytest.importorskip("xacro")
    path = xacro_package(tmp_path)
    words = [word for flag in flags for word in ("--xacro-arg", flag)]

    answer = cli("check", "circle", "--robot", path, *words)

    assert answer.status == 2
    assert message in " ".join(answer.err.split())


def test_a_file_without_arguments_takes_none(tmp_path, cli) -> None:
    path = written(tmp_path, arm_links())

    answer = cli("check", "circle", "--robot", path, "--xacro-arg", "name=arm")

    assert answer.status == 2
    message = " ".join(answer.err.split())
    assert "not a xacro file, so it has no arguments: omit --xacro-arg name=arm" in message


def required_arguments(folder: Path) -> Path:
    """Write a xacro file with two arguments that have no default, and one that has."""
    path = folder / "arm.urdf.xacro"
    links = arm_links(limit='velocity="$(arg speed)" effort="${$(arg strength) * 10}"')
    path.write_text(
        '<robot xmlns:xacro="http://wiki.ros.org/xacro" name="arm">'
        '<xacro:arg name="speed" default="2"/><xacro:arg name="strength"/>'
        f"{links.replace('0 0 0.2', '0 0 $(arg height)')}</robot>"
    )
    return path


def test_arguments_without_a_value_are_all_named(tmp_path) -> None:
    pytest.importorskip("xacro")

    with pytest.raises(InputFileError) as caught:
        load_robot(required_arguments(tmp_path), xacro_args=["stregth=3"])

    assert caught.value.reason == (
        "it has no argument 'stregth' for --xacro-arg (did you mean 'strength'?); the arguments "
        "strength and height have no value: add --xacro-arg strength=VALUE --xacro-arg "
        "height=VALUE. Its arguments with defaults (--xacro-arg NAME=VALUE): speed=2"
    )


def test_required_arguments_are_used(tmp_path) -> None:
    pytest.importorskip("xacro")
    path = required_arguments(tmp_path)

    robot = load_robot(path, xacro_args=["strength:=3", "height=0.5"])

    assert [joint.max_effort for joint in robot.joints] == [30.0, 30.0, 30.0]
    assert robot.placements[0, 2, 3] == 0.5


def test_missing_values_explain_a_failed_expansion(tmp_path) -> None:
    pytest.importorskip("xacro")
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(
        '<robot xmlns:xacro="http://wiki.ros.org/xacro" name="arm">'
        '<xacro:include filename="$(arg model).xacro"/><link name="$(arg prefix)base"/></robot>'
    )

    with pytest.raises(InputFileError) as caught:
        load_robot(path)

    assert caught.value.reason == (
        "the arguments model and prefix have no value: add --xacro-arg model=VALUE --xacro-arg "
        "prefix=VALUE"
    )


def test_ross_form_of_arguments_names_the_flag(cli) -> None:
    answer = cli("check", "circle", "--robot", "./arm.urdf.xacro", "reach:=0.9")

    assert answer.status == 2
    assert "given as --xacro-arg reach=0.9" in " ".join(answer.err.split())


def test_flags_of_a_urdf_are_refused_by_name(cli) -> None:
    answer = cli("check", "circle", "--robot", "ur5e", "--xacro-arg", "reach=1")

    assert answer.status == 2
    assert (
        "a URDF or xacro file with --xacro-arg reach=1 (got ur5e): ur5e is defined by a TOML"
        in " ".join(answer.err.split())
    )
