"""Advice of a refusal, followed to the letter."""

from __future__ import annotations

import re

import pytest

from simbridge.errors import InputFileError
from simbridge.planning.scenario import load_scenario
from simbridge.trajectory import Trajectory
from simbridge.trajectory.read_options import ReadOptions
from tests.trajectory.tables.joint_tables import ROBOT

FLAGS = re.compile(r"--(?:columns|topic) [^\s;]+(?: --rate HZ)?")
# The rate of the tables of `motions.py` and `joint_tables.py`, samples per s.
RATE = 50.0


def follow_advice(path, robot=ROBOT) -> list[Trajectory]:
    """Return what is read with each of the flags that the refusal of a file offers."""
    with pytest.raises(InputFileError) as refusal:
        load_scenario(path, robot)
    assert "NAME" not in str(refusal.value)

    motions = []
    for flags in FLAGS.findall(str(refusal.value)):
        option, value, *rate = flags.split()
        options = {option.removeprefix("--"): value}
        if rate:
            options["rate"] = RATE
        motions.append(load_scenario(path, robot, ReadOptions(**options)).trajectory)
    return motions
