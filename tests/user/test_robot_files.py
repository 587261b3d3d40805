"""URDF and xacro files as users have them: placeholders, faults, arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PLACEHOLDER = (
    '<inertial><mass value="1."/><inertia ixx="1E-10" ixy="1E-10" ixz="1E-10" iyy="1E-10" '
    'iyz="1E-10" izz="1E-10"/></inertial>'
)
BODY = (
    '<inertial><mass value="2"/><origin xyz="0.2 0 0"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
)
LIMIT = 'velocity="2" effort="100"'


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


@pytest.mark.parametrize(
    ("body", "pad", "links"),
    [(BODY, PLACEHOLDER, "pad"), (PLACEHOLDER, PLACEHOLDER, "a, b, c and pad")],
)
def test_placeholder_inertia_is_noted_and_used(tmp_path, cli, body, pad, links) -> None:
    path = written(tmp_path, arm_links(body, pad))
    # On the axis of the first joint, a placeholder is all that its link has.
    answer = cli("run", "circle", "--robot", path, "--out", tmp_path / "run", "--json")

    assert answer.status == 0
    assert f"Note: {links}: no body has this inertia tensor" in " ".join(answer.err.split())
    assert json.loads(answer.out)["plant_error"]["position_m"]["max"] < 0.01


def test_every_missing_limit_is_named(tmp_path, cli) -> None:
    path = written(tmp_path, arm_links(limit=""))

    answer = cli("check", "circle", "--robot", path)

    message = " ".join(answer.err.split())
    assert answer.status == 2
    assert "6 things are wrong" in message
    assert message.count("<limit> velocity: this attribute is missing") == 3
    assert message.count("<limit> effort: this attribute is missing") == 3
