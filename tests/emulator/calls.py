"""Calls of URScript's built-in functions, one by one and in programs, without a network."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pinocchio as pin
from hypothesis import strategies as st

from simbridge.emulator.arm import frame_of
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.values import Pose
from simbridge.ur.tables import RobotMode
from tests.emulator.bench import ROBOT

# The pendant's base in base_link.
TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))


# Coordinates of random poses, m and rad.
COORDINATES = st.floats(-1.5, 1.5)
POSES = st.lists(COORDINATES, min_size=6, max_size=6).map(Pose)


def finished(generator: Generator[Any, None, Any]) -> Any:
    """Run a function that may have to wait to its end, and return its value."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


class Thread:
    """The part of a calling thread that a built-in function uses."""

    def charge(self, cost: int) -> None:
        """Without a budget."""

    def work(self, cost: int) -> Iterator[None]:
        return iter(())


def flange(q: np.ndarray) -> pin.SE3:
    """tool0 in the pendant's base, by pinocchio's own forward kinematics of the arm's model."""
    data = ROBOT.model.createData()
    pin.forwardKinematics(ROBOT.model, data, np.asarray(q, dtype=float))
    return TURN * data.oMi[-1] * ROBOT.tool0


def same(pose: object, frame: pin.SE3, tolerance: float = 1e-9) -> bool:
    return bool(np.abs(frame_of(np.array(pose)).homogeneous - frame.homogeneous).max() < tolerance)


def run(source: str, ticks: int) -> EmulatedController:
    controller = EmulatedController(ROBOT, profile("5.25"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    controller.load_script(source)
    controller.program.compilation.join()
    for _ in range(ticks):
        controller.tick()
    return controller


def fault_of(source: str) -> tuple[EmulatedController, list[tuple[str, str, int]]]:
    controller = EmulatedController(ROBOT, profile("5.12"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    messages: list[tuple[str, str, int]] = []
    controller.on_event = lambda event: (
        event.kind == "error" and messages.append((event.kind, event.text, event.line))
    )
    controller.load_script(source)
    controller.program.compilation.join()
    for _ in range(50):
        controller.tick()
    return controller, messages
