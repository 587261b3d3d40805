"""Meshes of a URDF: what is read of them, and the notes about those that are missing."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.collision import CollisionModel
from simbridge.robot.mesh_files import read_mesh
from simbridge.robot.obstacles import CollisionScene
from simbridge.robot.urdf_reader import read_urdf
from tests.robot.conftest import INERTIAL, box

pytestmark = [pytest.mark.usefixtures("kept_mesh_process"), pytest.mark.shares_setup]

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
@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "glb", "dae"])
def test_meshes_of_these_kinds_are_read_in_metres(tmp_path, kind):
    vertices, triangles = read_mesh(box(tmp_path / f"part.{kind}"))

    assert np.ptp(vertices, axis=0) == pytest.approx([0.1, 0.2, 0.3])
    assert len(vertices) == 8
    assert len(triangles) == 12


@pytest.mark.slow
def test_the_unit_of_a_collada_file_counts(tmp_path):
    file = box(tmp_path / "part.dae", (100.0, 200.0, 300.0))
    text = file.read_text()
    file.write_text(text.replace("<asset>", '<asset><unit name="millimeter" meter="0.001"/>'))

    assert np.ptp(read_mesh(file)[0], axis=0) == pytest.approx([0.1, 0.2, 0.3])


def test_scale_and_origin_apply_to_every_mesh(tmp_path):
    box(tmp_path / "urdf" / "part.stl", (100.0, 200.0, 300.0))
    robot = read_urdf(arm(tmp_path, "part.stl", 'scale="0.001 0.001 0.001"'))
    (mesh,), (drawn,) = robot.links[0].meshes, draw_arm(robot).meshes

    for points in (mesh.hull, drawn.vertices):
        assert np.ptp(points, axis=0) == pytest.approx([0.1, 0.2, 0.3])
    assert not robot.notes


def test_each_missing_package_is_noted(tmp_path):
    path = arm(tmp_path, "package://one/a.stl")
    base = (
        '<link name="base_link"><visual><geometry><mesh filename="package://other/b.stl"/>'
        "</geometry></visual></link>"
    )
    path.write_text(path.read_text().replace('<link name="base_link"/>', base))

    notes = read_urdf(path).notes

    assert [note.partition("with ")[2] for note in notes] == [
        "--package other=DIR.",
        "--package one=DIR.",
    ]


def test_a_missing_mesh_is_one_note(tmp_path):
    (note,) = read_urdf(arm(tmp_path, "package://nowhere/a.stl")).notes

    assert note == (
        "The mesh package://nowhere/a.stl is neither drawn nor part of collision checks: file not "
        "found; give the directory of its package with --package nowhere=DIR."
    )

    (note,) = read_urdf(
        arm(tmp_path, "package://nowhere/a.stl"), packages={"nowhere": tmp_path}
    ).notes

    assert note.endswith(f"file not found in {tmp_path}, the directory given with --package.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"), [("a.stl", b"solid nothing"), ("a.obj", b"v 0 0 0\n"), ("a.txt", b"")]
)
def test_an_unreadable_mesh_is_a_note(tmp_path, name, content):
    path = arm(tmp_path, name)
    (path.parent / name).write_bytes(content)

    robot = read_urdf(path)

    assert not robot.links[0].meshes
    assert f"The mesh {name} is neither drawn" in robot.notes[-1]


@pytest.mark.slow
def test_hulls_are_as_far_apart_as_meshes(tmp_path):
    box(tmp_path / "urdf" / "part.stl", (0.2, 0.2, 0.2))
    text = arm(tmp_path, "part.stl").read_text()
    second = (
        f'<link name="m">{INERTIAL}</link>{JOINT.format("k", "l", "m")}'
        f'<link name="n">{INERTIAL}<visual>'
        f'<origin xyz="0.5 0 0"/><geometry><mesh filename="part.stl"/></geometry></visual></link>'
        f"{JOINT.format('o', 'm', 'n')}</robot>"
    )
    path = tmp_path / "urdf" / "two.urdf"
    path.write_text(text.replace("</robot>", second))

    clearance = CollisionModel(read_urdf(path), CollisionScene(None)).clearance(np.zeros(3))

    assert clearance is not None
    assert clearance.bodies == ("l", "n")
    assert clearance.distance == pytest.approx(0.3)


def test_a_bad_mesh_file_is_named(tmp_path):
    with pytest.raises(InputFileError, match="file not found"):
        read_mesh(tmp_path / "none.stl")


@pytest.mark.slow
def test_a_lost_mesh_is_drawn_as_its_hull(tmp_path):
    file = box(tmp_path / "urdf" / "part.stl")
    robot = read_urdf(arm(tmp_path, "part.stl"))
    file.unlink()
    read_mesh.cache_clear()

    (mesh,) = draw_arm(robot).meshes

    assert np.ptp(mesh.vertices, axis=0) == pytest.approx([0.1, 0.2, 0.3])
    assert len(mesh.triangles) == 12
