"""The control script that the installed ur_rtde uploads, for three versions of PolyScope."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.state import profile
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.library import describe
from simbridge.emulator.urscript.runtime import Interpreter
from simbridge.robot import load_robot
from simbridge.ur.tables import RobotMode
from tests.properties import variants
from tests.user.ur_rtde_upload import VERSIONS, catch_script

pytest.importorskip("rtde_control")


@pytest.fixture(scope="session")
def control_scripts() -> dict[str, str]:
    """Return the script that the installed ur_rtde uploads, for each version of controllers."""
    return {name: catch_script(version) for name, version in VERSIONS.items()}


class Registers:
    """The functions that the script needs for its handshake and for servoJ.

    Each call is recorded.
    """

    def __init__(self) -> None:
        self.input_int = [0] * 48
        self.input_float = [0.0] * 48
        self.output_int = [0] * 48
        self.output_float = [0.0] * 48
        self.servoed: list[tuple[tuple[float, ...], float, float]] = []
        self.syncs = 0
        self.faults: list[RuntimeFault] = []

    def start(self, source: str) -> Interpreter:
        functions = {
            "read_input_integer_register": lambda _thread, address: self.input_int[address],
            "read_input_float_register": lambda _thread, address: self.input_float[address],
            "write_output_integer_register": lambda _thread, address, value: self._write(
                address, value
            ),
            "write_output_float_register": lambda _thread, address, value: self._write_float(
                address, value
            ),
            "textmsg": lambda _thread, s1, s2="": None,
            "force_mode_set_gain_scaling": lambda _thread, scaling: None,
            "force_mode_set_damping": lambda _thread, damping: None,
            "servoj": self.servoj,
            "stopj": self.stop,
            "stopl": self.stop,
            "sync": self.sync,
        }
        return Interpreter(
            compile_script(source, describe(functions)), functions, self.faults.append
        )

    def _write(self, address: int, value: int) -> None:
        self.output_int[address] = value

    def _write_float(self, address: int, value: float) -> None:
        self.output_float[address] = value

    def servoj(
        self,
        _thread: Any,
        q: Any,
        a: float = 0,
        v: float = 0,
        t: float = 0.002,
        lookahead_time: float = 0.1,
        gain: float = 300,
    ) -> Generator[None, None, None]:
        self.servoed.append((tuple(q), lookahead_time, gain))
        yield

    def stop(self, _thread: Any, a: float) -> Generator[None, None, None]:
        yield

    def sync(self, _thread: Any) -> Generator[None, None, None]:
        self.syncs += 1
        yield


# The newest is below, with what it computes, and in test_ur_rtde_client.
@pytest.fixture(params=variants(VERSIONS, "3.15", "5.12"))
def source(request: pytest.FixtureRequest, control_scripts: dict[str, str]) -> str:
    return control_scripts[request.param]


def test_control_script_idles_at_one_sync(source: str) -> None:
    registers = Registers()
    program = registers.start(source)
    program.tick()

    assert registers.faults == []
    assert registers.output_int[0] == 1

    before = registers.syncs
    for _ in range(100):
        program.tick()

    assert registers.syncs - before == 100
    assert program.running
    assert "sync()" in source.splitlines()[program.line - 1]


def test_the_script_leaves_more_than_nine_tenths_of_the_budget(source: str) -> None:
    registers = Registers()
    program = registers.start(source)
    registers.input_int[0] = 11
    program.tick()
    program.tick()

    assert program.threads == 2
    assert program.budget_left[0] > 0.9 * program.budget / program.threads


def test_servoj_takes_registers_every_tick(source: str) -> None:
    registers = Registers()
    program = registers.start(source)
    program.tick()
    registers.input_int[0] = 11
    for k in range(1, 20):
        registers.input_float[:11] = [
            0.1 * k,
            0.2,
            0.3,
            0.4,
            0.5,
            0.6,
            0.0,
            0.0,
            0.008,
            0.03,
            2000.0,
        ]
        program.tick()
        assert registers.servoed[-1] == ((0.1 * k, 0.2, 0.3, 0.4, 0.5, 0.6), 0.03, 2000.0)

    assert len(registers.servoed) == 19
    assert registers.faults == []


def test_the_stop_command_ends_the_script(source: str) -> None:
    registers = Registers()
    program = registers.start(source)
    program.tick()
    registers.input_int[0] = 255
    for _ in range(3):
        program.tick()

    assert not program.running
    assert registers.faults == []


def test_missing_function_is_named_at_the_end(source: str) -> None:
    registers = Registers()
    program = registers.start(source)
    program.tick()
    registers.input_int[0] = 1
    for _ in range(3):
        program.tick()
    (fault,) = registers.faults

    assert "'movej'" in fault.reason
    assert "movej(" in source.splitlines()[fault.line - 1]


def test_jacobian_and_dynamics_come_in_registers(
    control_scripts: dict[str, str],
) -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.25"), ScriptProgram)
    controller.state.robot_mode = RobotMode.RUNNING
    faults: list[str] = []
    controller.on_event = lambda event: faults.append(event.text) if event.kind == "error" else None
    controller.load_script(control_scripts["5.25"])
    controller.program.compilation.join()
    state = controller.state
    robot = controller.robot

    def answer(command: int) -> np.ndarray:
        state.output_double[:] = [np.nan] * 48
        state.input_int[0] = command
        for _ in range(4):
            controller.tick()
        return np.array(state.output_double)

    def matrix(command: int) -> np.ndarray:
        """36 numbers, column by column, around the registers of a client with an offset."""
        registers = answer(command)
        return np.concatenate([registers[:24], registers[36:]]).reshape(6, 6).T

    assert np.allclose(matrix(70), controller.arm.jacobian(state.actual_q), atol=1e-9)

    mass = pin.crba(robot.model, robot.model.createData(), state.actual_q)

    assert np.allclose(np.triu(matrix(67)), np.triu(mass), atol=1e-9)
    assert np.allclose(matrix(67), matrix(67).T)
    assert np.allclose(matrix(71), 0.0) and np.allclose(answer(68)[:6], 0.0)  # at rest
    assert np.allclose(answer(69)[:6], 0.0)
    assert answer(26)[0] == controller.period
    assert not faults
