"""An arm as views draw it."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.mesh_files import read_mesh
from simbridge.robot.urdf_reader import read_urdf
from tests.robot.conftest import INERTIAL, box

JOINT = (
    '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" velocity="1" effort="9"/></joint>'
)


def arm(tmp_path, reference, extra=""):
    """An arm of one joint whose link has a mesh."""
    path = tmp_path / "urdf" / "arm.urdf"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'<robot name="a"><link name="base_link"/><link name="l">{INERTIAL}<visual><geometry>'
        f'<mesh filename="{reference}" {extra}/></geometry></visual></link>'
        f"{JOINT.format('j', 'base_link', 'l')}</robot>"
    )
    return path


@pytest.mark.slow
def test_a_lost_mesh_is_drawn_as_its_hull(tmp_path):
    file = box(tmp_path / "urdf" / "part.stl")
    robot = read_urdf(arm(tmp_path, "part.stl"))
    file.unlink()
    read_mesh.cache_clear()

    (mesh,) = draw_arm(robot).meshes

    assert np.ptp(mesh.vertices, axis=0) == pytest.approx([0.1, 0.2, 0.3])
    assert len(mesh.triangles) == 12
