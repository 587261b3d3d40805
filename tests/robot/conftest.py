"""Robot descriptions that several tests of this folder use."""

from __future__ import annotations

import pytest

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    "</inertial>"
)


@pytest.fixture
def scara(tmp_path):
    """The URDF of a SCARA whose tool points up, and whose third joint slides by 0.2 m."""
    joints = [
        ("revolute", "0 0 0.4", 2.5),
        ("revolute", "0.4 0 0", 2.5),
        ("prismatic", "0.3 0 0", 0.2),
    ]
    text = '<robot name="scara"><link name="base_link"/>'
    parent = "base_link"
    for name, (kind, at, limit) in zip("abcd", [*joints, ("revolute", "0 0 0", 3.0)], strict=True):
        text += (
            f'<link name="{name}">{INERTIAL}</link><joint name="to_{name}" type="{kind}">'
            f'<parent link="{parent}"/>'
            f'<child link="{name}"/><origin xyz="{at}"/><axis xyz="0 0 1"/>'
            f'<limit lower="{-limit}" upper="{limit}" velocity="2" effort="900"/></joint>'
        )
        parent = name
    path = tmp_path / "scara.urdf"
    path.write_text(f"{text}</robot>")
    return path
