"""Calls whose types `make lint` checks: the right ones pass, and each wrong one is an error.

mypy reports an `ignore` that ignores nothing: a wrong call that it accepts is thereby found.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

import simbridge
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


def step(q: Array, target: pin.SE3) -> Array:
    """Stay where the arm is."""
    return q


def make(robot: Robot) -> simbridge.Solver:
    """Make a solver for any arm."""
    return simbridge.Pseudoinverse(robot)


def options_by_name() -> None:
    """Give options of a run by name."""
    simbridge.run("circle", solver="damped-least-squares", feedforward="on", plant="plant.toml")
    simbridge.run("circle", solver=step, feedforward=True)
    simbridge.run("circle", solver=make, tolerance=(1e-3, 0.01))
    simbridge.run("circle", feedforward="yes")  # type: ignore[arg-type]
    simbridge.run("circle", servo_gian=300.0)  # type: ignore[call-arg]


def options_of_sessions() -> None:
    """Give options of a live session by name."""
    session = simbridge.live("pybullet", hold="zero-order", host="127.0.0.1", timeout=0.3)
    simbridge.live("pybullet", solver=make, cell="lab.toml")
    simbridge.live("pybullet", hold="zero")  # type: ignore[arg-type]
    simbridge.live("pybullet", speed_scale=0.5)  # type: ignore[call-arg]

    kinds: list[str] = [cause.kind for cause in session.status.causes]
    values: list[float | None] = [cause.value for cause in session.status.causes]
    print(kinds, values, np.pi)
