"""Packages of a URDF: where they are looked for."""

from __future__ import annotations

import pytest

from simbridge.errors import InvalidParameter
from simbridge.robot.packages import Packages, parse_packages, read_packages
from tests.robot.conftest import box

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("where", ["named", "ros", "ament", "neighbour", "package.xml"])
def test_packages_are_found(tmp_path, monkeypatch, where):
    folder = {
        "named": tmp_path / "anywhere",
        "ros": tmp_path / "ros" / "parts",
        "ament": tmp_path / "ament" / "share" / "parts",
        "neighbour": tmp_path / "parts",
        "package.xml": tmp_path / "urdf",
    }[where]
    file = box(folder / "meshes" / "a.stl")
    if where == "package.xml":
        (folder / "package.xml").write_text("<package><name>parts</name></package>")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ament"))
    given = parse_packages((f"parts={folder}",)) if where == "named" else {}

    mesh = Packages(tmp_path / "urdf" / "arm.urdf", given).mesh("package://parts/meshes/a.stl")

    assert mesh is not None
    assert mesh.samefile(file)


def test_a_package_that_is_no_directory_is_refused(tmp_path):
    assert read_packages(f"a={tmp_path}, b={tmp_path}") == (f"a={tmp_path}", f"b={tmp_path}")

    for wrong in ("parts", "=x", f"parts={tmp_path / 'nowhere'}"):
        with pytest.raises(InvalidParameter, match="NAME=DIR"):
            read_packages(wrong)
