"""Meshes from anywhere.

What has no hull, or harms the library that reads it, is refused by name.
"""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from simbridge.cli.command_line import main
from simbridge.errors import InputFileError
from simbridge.files.reading import MIB
from simbridge.files.reading_process import Limits, ReadingProcess
from simbridge.robot import mesh_files
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.mesh_files import mesh_hull, read_mesh, reading_meshes
from simbridge.robot.urdf_reader import read_urdf
from tests.robot.conftest import INERTIAL, box
from tests.robot.test_urdf_bodies import JOINT

pytestmark = [pytest.mark.usefixtures("kept_mesh_process"), pytest.mark.shares_setup]

LINE = [[[0, 0, 0], [1, 1, 1], [2, 2, 2]]] * 3
POINT = [[[1, 1, 1]] * 3] * 4
TRIANGLE = [[[0, 0, 0], [1, 0, 0], [0, 1, 0]]]
SOLID = [
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
    [[0, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0, 0, 0], [0, 0, 1], [1, 0, 0]],
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]],
]


def stl(triangles):
    """A binary STL of triangles (F, 3, 3)."""
    content = bytes(80) + struct.pack("<I", len(triangles))
    for triangle in triangles:
        content += struct.pack("<12fH", 0, 0, 0, *np.ravel(triangle), 0)
    return content


def arm(folder, content, *, tag="collision", scale="1 1 1", at="0 0 0", name="part.stl"):
    """A URDF of one joint whose link has a mesh with this content."""
    (folder / name).write_bytes(content)
    path = folder / "arm.urdf"
    geometry = f'<origin xyz="{at}"/><geometry><mesh filename="{name}" scale="{scale}"/></geometry>'
    path.write_text(
        '<robot name="a"><link name="base_link"/>'
        f'<link name="l">{INERTIAL}<{tag}>{geometry}</{tag}></link>'
        f"{JOINT.format('j', 'base_link', 'l')}</robot>"
    )
    return path


NO_HULL = {
    "one line": (stl(LINE), {}, "on one line"),
    "one point": (stl(POINT), {}, "in one point"),
    "a small point": (stl(SOLID), {"scale": "1e-9 1e-9 1e-9"}, "in one point"),
    "a needle": (stl(SOLID), {"scale": "1 1e-12 1e-12"}, "on one line"),
    "not a number": (stl([[[0, 0, 0], [1, 0, 0], [0, np.nan, 0]], *SOLID]), {}, "not finite"),
    "infinite": (stl([[[0, 0, 0], [1, 0, 0], [0, np.inf, 0]], *SOLID]), {}, "not finite"),
    "huge": (stl(np.array(SOLID) * 1e30), {}, "at most 1000 m"),
    "huge by its scale": (stl(SOLID), {"scale": "1 1e6 1"}, "at most 1000 m"),
    "infinite by its scale": (
        stl(np.array(SOLID) * 1e30),
        {"scale": "1e300 1e300 1e300"},
        "not finite",
    ),
    "far away": (stl(SOLID), {"at": "1e200 0 0"}, "at most 1000 m"),
}


@pytest.mark.parametrize("tag", ["collision", "visual"])
@pytest.mark.parametrize("name", NO_HULL)
def test_a_mesh_without_a_hull_is_refused(name, tag, tmp_path):
    content, options, reason = NO_HULL[name]

    with pytest.raises(InputFileError, match=reason) as caught:
        read_urdf(arm(tmp_path, content, tag=tag, **options))

    assert "part.stl" in str(caught.value)
    assert caught.value.line == 1


@pytest.mark.parametrize("content", [b"", b"solid nothing\nendsolid", stl([])])
def test_an_empty_collision_mesh_is_refused(content, tmp_path):
    with pytest.raises(
        InputFileError, match=r"the mesh part\.stl cannot take part in collision checks"
    ):
        read_urdf(arm(tmp_path, content))


@pytest.mark.parametrize("scale", ["0 1 1", "0 0 0", "nan 1 1", "inf 1 1"])
def test_a_scale_that_leaves_no_mesh_is_refused(scale, tmp_path):
    with pytest.raises(InputFileError) as caught:
        read_urdf(arm(tmp_path, stl(SOLID), scale=scale))

    assert caught.value.field == "<mesh> scale"


def test_a_negative_scale_mirrors(tmp_path):
    (mesh,) = read_urdf(arm(tmp_path, stl(SOLID), scale="1 1 -1")).links[0].meshes

    assert mesh.hull[:, 2].min() == pytest.approx(-1.0)
    assert mesh.hull[:, 2].max() == pytest.approx(0.0)


def test_a_flat_mesh_is_thickened(tmp_path):
    (mesh,) = read_urdf(arm(tmp_path, stl(TRIANGLE))).links[0].meshes

    assert np.ptp(mesh.hull, axis=0) == pytest.approx([1.0, 1.0, 1e-3])


def test_the_command_refuses_with_status_2(tmp_path, capsys):
    assert main(["check", "circle", "--robot", str(arm(tmp_path, stl(LINE)))]) == 2
    assert "part.stl" in capsys.readouterr().err


def test_a_missing_drawn_mesh_is_a_warning(tmp_path):
    path = arm(tmp_path, stl(np.array(SOLID) * 1e30), tag="visual")
    shape = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    path.write_text(path.read_text().replace("<visual>", f"{shape}<visual>"))
    robot = read_urdf(path)

    with pytest.warns(UserWarning, match=r"part\.stl"):
        drawing = draw_arm(robot)

    assert not drawing.meshes


def hostile_glb():
    """A GLB of a few hundred bytes whose positions are 2**34 zeros."""
    count = 1 << 34
    document = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {
                "componentType": 5126,
                "count": count,
                "type": "VEC3",
                "max": [0, 0, 0],
                "min": [0, 0, 0],
            },
            {"componentType": 5125, "count": count, "type": "SCALAR"},
        ],
    }
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text


HOSTILE = {
    "zeros.glb": hostile_glb(),
    "indices.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 999999999\n",
    "negative.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -1 -2 -99999\n",
    "count.stl": bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(50),
    "laughs.dae": b'<!DOCTYPE c [<!ENTITY a "1 1 1 1 1 1 1 1">'
    + b"".join(
        f'<!ENTITY {x} "{f"&{y};" * 10}">'.encode()
        for x, y in zip("bcdefghij", "abcdefghi", strict=True)
    )
    + b"]><COLLADA>&j;</COLLADA>",
    "header.ply": (
        b"ply\nformat binary_little_endian 1.0\nelement vertex 9999999999\nproperty double x\n"
        b"end_header\n"
    ),
    "nothing.txt": b"",
}


COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_geometries><geometry id="g"><mesh><source id="s">
<float_array id="a" count="9">0 0 0 1 0 0 0 1 NUMBER</float_array>
<technique_common><accessor source="#a" count="3" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices><triangles count="1">
<input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="w">
<node id="nan"><instance_geometry url="#g"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>"""


@pytest.mark.parametrize("number", ["nan", "NaN", "-nan"])
def test_nan_in_collada_is_not_read_as_zero(number, tmp_path):
    with pytest.raises(InputFileError, match="not finite"), reading_meshes():
        read_urdf(arm(tmp_path, COLLADA.replace("NUMBER", number).encode(), name="part.dae"))


def test_collada_of_finite_numbers_is_read(tmp_path):
    with reading_meshes():
        (mesh,) = (
            read_urdf(arm(tmp_path, COLLADA.replace("NUMBER", "0").encode(), name="part.dae"))
            .links[0]
            .meshes
        )

    assert np.ptp(mesh.hull, axis=0) == pytest.approx([1.0, 1.0, 1e-3])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_name(name, tmp_path):
    with pytest.raises(InputFileError, match=name), reading_meshes():
        read_urdf(arm(tmp_path, HOSTILE[name], name=name))


def test_a_refusal_does_not_quote_the_file(tmp_path):
    with pytest.raises(InputFileError) as caught, reading_meshes():
        read_urdf(arm(tmp_path, b"v secret secret secret\nf 1 1 1\n", name="part.obj"))

    assert "secret" not in str(caught.value)


def test_after_a_crash_the_next_mesh_is_read(tmp_path, monkeypatch):
    # A child with too little memory to start its libraries ends without an answer.
    small = ReadingProcess(
        "simbridge.robot.mesh_process", Limits(cpu=60, memory=8 * MIB, output=MIB)
    )
    file = box(tmp_path / "part.stl")
    with monkeypatch.context() as patch, small:
        patch.setattr(mesh_files, "_process", small)

        with pytest.raises(InputFileError, match=r"part\.stl"):
            read_mesh(file)

    with reading_meshes():
        vertices, _ = read_mesh(file)

    assert len(vertices) == 8


def test_a_hull_is_that_of_the_points():
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    points = np.vstack([corners, np.full((1, 3), 0.5)])

    with reading_meshes():
        hull = mesh_hull("box.stl", points)

    assert sorted(hull.tolist()) == sorted(corners.tolist())
