"""A module of solvers that only the directory of a test has."""

from __future__ import annotations

import sys

import pytest

MINE = """
import os, signal
import simbridge
solver = None
def mine(q, target):
    global solver
    if solver is None:
        solver = simbridge.ForwardDynamics(simbridge.load_robot("ur10"))
    solver.reset(q)
    return solver.step(target)
def mine_too(q, target):
    return mine(q, target)
def deadly(q, target):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def my_solvers(tmp_path, monkeypatch):
    (tmp_path / "my_ik_of_sweeps.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    yield "my_ik_of_sweeps"
    sys.modules.pop("my_ik_of_sweeps", None)
