"""Solvers that work well for a while, and then do what no solver should."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = """
import os
import time

import numpy as np
import pinocchio as pin

from simbridge.ik.callable_solver import build_solver
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path

robot = load_robot("{robot}")
solver = build_solver(robot, "damped-least-squares")
# The first step compiles.
solver.reset(robot.home)
solver.step(tool_path(robot, robot.home[None])[0])
steps = 0

def step(q, target):
    global steps
    steps += 1
    solver.reset(q)
    solution = solver.step(pin.SE3ToXYZQUAT(target))
    if steps > {good_steps}:
        {fault}
    return solution
"""
NAN = "solver answers nan"
SHORT = "solver answers too few joints"
RAISES = "solver raises"
EXITS = "solver leaves the program"
DIES = "solver kills its process"
HANGS = "solver never returns"
SLOW = "solver is slow"

# What each does in place of its answer, or before it.
_FAULTS = {
    NAN: "return solution * np.nan",
    SHORT: "return solution[:3]",
    RAISES: "raise ValueError('no solution')",
    EXITS: "raise SystemExit(3)",
    DIES: "os._exit(7)",
    HANGS: "time.sleep(1e6)",
    SLOW: "time.sleep({seconds})",
}


def hostile_solver(
    directory: Path, robot: str, fault: str, *, good_steps: int, seconds: float = 0.0
) -> str:
    """Write a script with a solver; returns its name, as for `--solver`.

    Args:
        directory: Takes the script.
        robot: The arm.
        fault: One of the names above.
        good_steps: Steps before the fault, which then comes in each step.
        seconds: How long a step of the slow solver takes, s.
    """
    script = directory / "hostile.py"
    action = _FAULTS[fault].format(seconds=seconds)
    script.write_text(_SCRIPT.format(robot=robot, good_steps=good_steps, fault=action))
    return f"{script}:step"
