"""Names of robot_descriptions, from a cache that is there already."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from simbridge import load_robot
from simbridge.errors import InputFileError, UnknownName
from tests.robot.test_urdf_reader import GOOD

pytestmark = pytest.mark.slow


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """robot_descriptions' cache with a repository of ours at the commit that it is given."""
    if shutil.which("git") is None:
        pytest.skip("robot_descriptions needs git")

    def git(*words, at=tmp_path):
        identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        return subprocess.run(
            ["git", *identity, *words], cwd=at, check=True, capture_output=True, text=True
        ).stdout

    source = tmp_path / "source"
    urdf = source / "robots" / "panda_description" / "urdf" / "panda.urdf"
    urdf.parent.mkdir(parents=True)
    urdf.write_text(GOOD)
    git("init", "-q", at=source)
    git("add", ".", at=source)
    git("commit", "-qm", "arm", at=source)
    commit = git("rev-parse", "HEAD", at=source).strip()
    repository = tmp_path / "cache" / f"example-robot-data-{commit}" / "example-robot-data"
    repository.parent.mkdir(parents=True)
    shutil.move(source, repository)
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ROBOT_DESCRIPTION_COMMIT", commit)
    # Nothing may be downloaded.
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")
    monkeypatch.delitem(sys.modules, "robot_descriptions.panda_description", raising=False)
    yield tmp_path / "cache"
    sys.modules.pop("robot_descriptions.panda_description", None)


def test_a_cached_description_is_read_with_a_note(cache):
    with pytest.warns(UserWarning, match=f"unless it is already in {cache}, it is downloaded now"):
        robot = load_robot("panda_description")

    assert robot.name == "panda"
    assert robot.joint_names == ("shoulder", "elbow")


def test_arguments_of_a_description_are_used(tmp_path, monkeypatch):
    pytest.importorskip("xacro")
    text = GOOD.replace('velocity="2"', 'velocity="$(arg speed)"').replace(
        'name="two_joints">',
        'name="$(arg name)" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:arg name="name" default="x"/><xacro:arg name="speed" default="2"/>',
    )
    file = tmp_path / "panda.urdf.xacro"
    file.write_text(text)
    module = ModuleType("robot_descriptions.panda_description")
    module.__spec__ = ModuleSpec(module.__name__, None)
    module.REPOSITORY_PATH = str(tmp_path)
    module.XACRO_PATH = str(file)
    module.XACRO_ARGS = {"name": "panda", "speed": "1.5"}
    monkeypatch.setitem(sys.modules, module.__name__, module)

    described = load_robot("panda_description")
    chosen = load_robot("panda_description", xacro_args=["speed=1"])

    assert (described.title, described.max_velocity[0]) == ("panda", 1.5)
    assert (chosen.title, chosen.max_velocity[0]) == ("panda", 1.0)
    assert chosen.xacro_args == ("name=panda", "speed=1")


def test_a_failed_download_names_the_reason(cache, monkeypatch):
    monkeypatch.setenv("ROBOT_DESCRIPTION_COMMIT", "0" * 40)

    with pytest.raises(
        InputFileError, match=r"could not get it: GitCommandError(.|\n)*the path of a URDF"
    ):
        load_robot("panda_description")


def test_unknown_descriptions_and_packages_are_refused():
    with pytest.raises(UnknownName, match="no robot 'pandora_description' in robot_descriptions"):
        load_robot("pandora_description")

    with pytest.raises(UnknownName, match="Did you mean 'ur5e'"):
        load_robot("ur5ee")
