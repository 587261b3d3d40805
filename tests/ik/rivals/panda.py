"""A Panda, an arm with seven joints, without its meshes, which another process would read."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

import pytest

from simbridge.robot.robot import Robot
from simbridge.robot.urdf_reader import read_urdf


@cache
def load_panda() -> Robot:
    """The Panda whose URDF comes with PyBullet; without that, the test is skipped."""
    data = pytest.importorskip("pybullet_data", reason="the URDF of a Panda is PyBullet's")
    text = Path(data.getDataPath(), "franka_panda", "panda.urdf").read_text(encoding="utf-8")
    without_meshes = re.sub(r"<(visual|collision)>.*?</\1>", "", text, flags=re.DOTALL)
    assert "mesh" not in without_meshes
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "panda.urdf")
        file.write_text(without_meshes, encoding="utf-8")
        # Its home is in the middle of its ranges: none is searched for, which takes a second.
        return read_urdf(file, tip="panda_grasptarget")
