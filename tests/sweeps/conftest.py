"""Sweeps in the process of a test, and a module of solvers that only its directory has."""

from __future__ import annotations

import sys

import pytest

from simbridge.sweeps import engine
from tests.sweeps.executors import InThisProcess

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
def deadly(q, target):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def at_once(monkeypatch):
    """Make points in this process: starting others takes seconds."""
    monkeypatch.setattr(engine.Cores, "open", lambda self: InThisProcess())


@pytest.fixture
def my_solvers(tmp_path, monkeypatch):
    (tmp_path / "my_ik_of_sweeps.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    yield "my_ik_of_sweeps"
    sys.modules.pop("my_ik_of_sweeps", None)
