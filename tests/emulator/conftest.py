"""Fixtures that call URScript's built-in functions one by one."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram, builtin_functions
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.library import LIBRARY
from simbridge.ur.tables import RobotMode
from tests.emulator.bench import ROBOT
from tests.emulator.calls import Thread, finished


@pytest.fixture(scope="module")
def controller() -> EmulatedController:
    controller = EmulatedController(ROBOT, profile("5.12"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    return controller


@pytest.fixture(scope="module")
def call(controller):
    table = {**LIBRARY, **builtin_functions(controller)}

    def call(name: str, *arguments: Any, thread: Any = None) -> Any:
        result = table[name](thread or Thread(), *arguments)
        return finished(result) if isinstance(result, Generator) else result

    return call
