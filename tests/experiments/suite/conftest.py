"""A suite of two short motions and one set of poses, which takes a second instead of a minute."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simbridge.experiments.suite import suite
from simbridge.experiments.suite.suite_motion import PoseSet, SuiteMotion
from simbridge.robot.kinematics import tool_path

SOLVERS = Path(__file__).with_name("faulty_solvers.py")
STEPS = 61
LAPS = 3


def make_short_motions(robot, seed):
    """Two closed loops of the joints, of which one is out of reach in the end, and two poses."""
    phase = LAPS * 2.0 * np.pi * np.arange(STEPS) / (STEPS - 1)
    loop = robot.home + 0.05 * np.sin(phase)[:, None]
    targets = tool_path(robot, loop)
    in_reach = np.ones(STEPS, dtype=bool)
    closed_loop = SuiteMotion(
        name="loop",
        group="tracking",
        description="A closed loop of the joints.",
        targets=targets,
        start=robot.home,
        in_reach=in_reach,
        loops=LAPS,
    )
    stream = SuiteMotion(
        name="held",
        group="stream",
        description="The same loop, each fifth target held.",
        targets=targets[np.arange(STEPS) // 5 * 5],
        reference=targets,
        start=robot.home,
        in_reach=in_reach,
    )
    poses = PoseSet(
        name="near",
        description="Two poses near home.",
        targets=tool_path(robot, robot.home + np.array([[0.1], [-0.1]])),
        starts=np.tile(robot.home, (2, 1)),
        reachable=True,
    )
    return [closed_loop, stream], [poses], ["A note on the motions."]


@pytest.fixture
def short_suite(monkeypatch):
    """Replaces the motions of the suite by short ones."""
    monkeypatch.setattr(suite, "make_motions", make_short_motions)


@pytest.fixture
def compare(cli, short_suite, tmp_path):
    """Runs the short suite with solvers of `faulty_solvers.py`; returns answer and results."""

    def run(*names, flags=(), out="out"):
        solvers = [f"{SOLVERS}:{name}" for name in names]
        answer = cli("experiment", "solvers", "--solver", *solvers, "--out", tmp_path / out, *flags)
        return answer, read(tmp_path / out)

    return run


def read(directory):
    """The results in a directory; None if there are none."""
    file = directory / "results.json"
    return json.loads(file.read_text()) if file.exists() else None
