"""Robot descriptions that several tests of this folder use, and a process that reads meshes."""

from __future__ import annotations

import pytest

from simbridge.files.reading_process import ReadingProcess
from simbridge.robot import mesh_files

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    "</inertial>"
)


def box(path, size=(0.1, 0.2, 0.3)):
    """Write the mesh of a box of this size, m, and return its path."""
    # Takes 0.5 s to import, which most workers need not.
    import trimesh

    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box(size).export(path)
    return path


class KeptProcess(ReadingProcess):
    """The process that reads meshes; here it does not end with each arm, for its start takes longer
    than a test.
    """

    def close(self):
        if self._process is not None and self._process.poll() is not None:
            super().close()

    def end(self):
        super().close()


@pytest.fixture(scope="module")
def kept_mesh_process():
    """One process reads the meshes of a file's tests; one that crashes is started again."""
    kept = KeptProcess("simbridge.robot.mesh_process", mesh_files.LIMITS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_files, "_process", kept)
        yield
    kept.end()


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
