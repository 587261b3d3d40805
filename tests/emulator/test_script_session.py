"""Clients of the primary interface send words as commands, and are told of programs and stops."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.running import RunningController
from simbridge.emulator.script_session import ScriptSession
from simbridge.emulator.scripts import MAX_SCRIPT
from simbridge.emulator.settings import Settings
from simbridge.emulator.state import profile
from simbridge.robot import load_robot
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.fake_controller import FakeController

ROBOT = load_robot("ur10e")
UNLOCK_DELAY = Settings().unlock_delay
STATE = 16
MESSAGE = 20
SAFETY_MODE = 5
ERROR_CODE = 6
KEY = 7
RUNTIME_EXCEPTION = 10
RUNS = "def moves():\n  while True:\n    sync()\n  end\nend\n"


class Bench:
    """A controller with a client of its primary interface; ticks are called by hand."""

    def __init__(self) -> None:
        self.controller = EmulatedController(ROBOT, profile("5.25"), ScriptProgram)
        running = RunningController(
            self.controller, ports=dict.fromkeys((29999, 30001, 30002, 30003, 30004), 0)
        )
        self._sent: list[bytes] = []
        running.servers.broadcast_message = self._sent.append  # type: ignore[method-assign]
        self.session = ScriptSession(self.controller)
        self.log = running.log
        self.state = self.controller.state

    def send(self, text: str) -> None:
        self.session.receive(text.encode() + b"\n")

    def tick(self, seconds: float = 0.002) -> None:
        for _ in range(round(seconds / 0.002)):
            for program in (self.controller.program, self.controller._secondary._program):
                if program is not None:
                    program.compilation.join()
            self.controller.tick()

    def packages(self) -> list[tuple[int, bytes]]:
        """Type and content of every package so far.

        A message's content begins with its own type.
        """
        stream = b"".join(self._sent)
        texts = []
        while stream:
            size, kind = struct.unpack_from(">iB", stream)
            texts.append((kind, stream[14:size] if kind == MESSAGE else stream[5:size]))
            stream = stream[size:]
        return texts

    def messages(self, kind: int) -> list[bytes]:
        return [
            content[1:]
            for package, content in self.packages()
            if package == MESSAGE and content[0] == kind
        ]

    def keys(self) -> list[tuple[str, str]]:
        """Title and text of the key messages."""
        return [
            (content[9 : 9 + content[8]].decode(), content[9 + content[8] :].decode())
            for content in self.messages(KEY)
        ]


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.state.robot_mode = RobotMode.RUNNING
    return bench


def test_the_speed_slider_is_moved_by_words(bench: Bench) -> None:
    bench.send("set speed 0.5")

    assert bench.state.speed_slider == 0.5
    assert not bench.log


@pytest.mark.parametrize("words", ["set speed 0.5", "power on"])
def test_program_runs_beside_words(bench: Bench, words: str) -> None:
    bench.send(f"{RUNS}{words}")
    bench.tick()

    assert bench.state.runtime_state == RuntimeState.PLAYING
    assert bench.controller.program_name == "moves"


def test_words_act_in_their_order(bench: Bench) -> None:
    bench.send(f"{RUNS}stop program")
    bench.tick()

    assert bench.state.runtime_state == RuntimeState.STOPPED

    bench.send(f"stop program\n{RUNS}")
    bench.tick()

    assert bench.state.runtime_state == RuntimeState.PLAYING


def test_an_output_is_set_as_urx_does(bench: Bench) -> None:
    bench.send("digital_out[3]=True")
    bench.tick(0.1)

    assert bench.state.digital_outputs == 1 << 3
    assert not bench.log


# What is ignored


def test_incomplete_program_is_reported(bench: Bench) -> None:
    bench.session.receive(b"movej([0,0,0,0,0,0])")
    bench.session.close()
    (line,) = bench.log

    assert "line end" in line
    assert "b'movej([0,0,0,0,0,0])'" in line


def test_a_program_that_is_too_long_is_reported_once(bench: Bench) -> None:
    with pytest.raises(ProtocolViolation):
        bench.session.receive(b"def f():\n" + b"x" * MAX_SCRIPT)

    bench.session.close()

    assert not bench.log  # whoever disconnects the client says why


def test_a_program_outside_of_remote_control_is_reported(bench: Bench) -> None:
    bench.controller.remote_control = False
    bench.send("stopj(2)")
    (line,) = bench.log

    assert "remote control" in line
    assert r"b'stopj(2)\n'" in line
    assert bench.state.runtime_state == RuntimeState.STOPPED


# Commands in words


def test_the_arm_is_powered_and_its_brakes_released_by_words() -> None:
    bench = Bench()
    bench.send("power on")
    bench.tick(1.0)

    assert bench.state.robot_mode == RobotMode.IDLE

    bench.send("set robotmode run")
    bench.tick(1.0)

    assert bench.state.robot_mode == RobotMode.RUNNING

    bench.send("power off")

    assert bench.state.robot_mode == RobotMode.POWER_OFF


def test_a_program_is_stopped_by_words(bench: Bench) -> None:
    bench.send(RUNS)
    bench.tick()

    assert bench.state.runtime_state == RuntimeState.PLAYING

    bench.send("stop program")

    assert bench.state.runtime_state == RuntimeState.STOPPED


@pytest.mark.slow
def test_words_unlock_a_protective_stop(bench: Bench) -> None:
    bench.controller.protective_stop()
    bench.send("set unlock protective stop")
    bench.tick(0.01)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP

    bench.tick(UNLOCK_DELAY - 0.1)

    assert bench.state.safety_mode == SafetyMode.NORMAL


def test_words_do_not_unlock_an_emergency_stop(bench: Bench) -> None:
    bench.controller.emergency_stop()
    bench.send("set unlock protective stop")
    bench.tick(UNLOCK_DELAY)

    assert bench.state.safety_mode == SafetyMode.ROBOT_EMERGENCY_STOP


def test_a_stop_after_the_command_is_not_unlocked_by_it(bench: Bench) -> None:
    bench.controller.protective_stop()
    bench.send("set unlock protective stop")
    bench.controller.emergency_stop()
    bench.controller.release_safety()
    bench.controller.protective_stop()
    bench.tick(UNLOCK_DELAY)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP


@pytest.mark.parametrize(("polyscope", "code"), [("5.25", None), ("10.7", 210), ("10.14", 210)])
def test_polyscope_x_answers_a_program_in_local(polyscope, code):
    controller = FakeController(polyscope)
    controller.remote_control = False

    answer = ScriptSession(controller).receive(RUNS.encode())

    assert controller.calls == []
    # Size and type of the package, time stamp, source and type of the message, then the code.
    error = struct.unpack_from(">iBQbBi", answer) if answer else None
    assert (error and (error[1], error[4], error[5])) == (code and (MESSAGE, ERROR_CODE, code))


def test_polyscope_x_can_drop_a_program_in_local_without_an_answer():
    controller = FakeController("10.7")
    controller.remote_control = False
    controller.settings = Settings(answer_in_local="nothing")

    answer = ScriptSession(controller).receive(RUNS.encode())

    assert answer == b""
    assert controller.calls == []
    assert [event.kind for event in controller.events] == ["unknown"]


def test_words_have_no_effect_out_of_remote_control(bench: Bench) -> None:
    bench.controller.remote_control = False
    bench.send("power off")

    assert bench.state.robot_mode == RobotMode.RUNNING


# Messages about programs


def test_begin_and_end_are_reported_with_name(bench: Bench) -> None:
    bench.send("def greet():\n  sync()\nend")
    bench.tick()

    assert bench.keys() == [("PROGRAM_XXX_STARTED", "greet")]

    bench.tick(0.01)

    assert bench.keys()[1:] == [("PROGRAM_XXX_STOPPED", "greet")]


def test_end_of_replaced_program_is_reported(bench: Bench) -> None:
    bench.send(RUNS)
    bench.tick()
    bench.send("def next():\n  sync()\nend")
    bench.tick()
    titles = ["STARTED", "STOPPED", "STARTED"]

    assert bench.keys() == [
        (f"PROGRAM_XXX_{t}", n) for t, n in zip(titles, ["moves", "moves", "next"], strict=True)
    ]


def test_missing_function_is_reported_with_position(bench: Bench) -> None:
    bench.send("def illegal():\n  reticulate()\nend")
    bench.tick()

    (content,) = bench.messages(RUNTIME_EXCEPTION)

    assert struct.unpack_from(">2i", content) == (2, 3)
    assert content[8:] == b"compile_error_name_not_found:reticulate:"


@pytest.mark.parametrize(
    "lines",
    [
        "  movej([0, -1.5, 1.5, -1.5, -1.5, 0])\n  reticulate()",
        "  if False:\n    reticulate()\n  end",
        "  sync()\n  run reticulate()",
        "  thread t():\n    x = reticulate()\n  end",
    ],
)
def test_program_with_missing_function_is_refused(bench: Bench, lines: str) -> None:
    before = bench.controller.state.target_q.copy()
    bench.send(f"def illegal():\n{lines}\nend")
    bench.tick(0.5)

    (content,) = bench.messages(RUNTIME_EXCEPTION)

    assert content[8:] == b"compile_error_name_not_found:reticulate:"
    assert bench.keys() == []
    assert (bench.controller.state.target_q == before).all()


def test_a_fault_of_a_secondary_program_is_called_one(bench: Bench) -> None:
    bench.send("sec s():\n  x = 1 / 0\nend")
    bench.tick(0.006)

    (content,) = bench.messages(RUNTIME_EXCEPTION)

    assert content[8:] == b"SECONDARY_PROGRAM_EXCEPTION_XXXDivision by zero."


def test_syntax_error_is_reported_with_position(
    bench: Bench,
) -> None:
    bench.send("def broken():\n  x = = 1\nend")
    bench.tick()

    (content,) = bench.messages(RUNTIME_EXCEPTION)

    assert struct.unpack_from(">2i", content) == (2, 7)
    assert content[8:].startswith(b"syntax_error_on_line:2:  x = = 1:")
    assert bench.keys() == []


def test_logged_fault_names_its_program(bench: Bench) -> None:
    bench.send(RUNS)
    bench.tick()
    bench.send("sec other():\n  reticulate()\nend")
    bench.tick(0.01)
    bench.controller.protective_stop()
    bench.send("def late():\n  sync()\nend")
    bench.send("stopj(1)")
    fault, stop, late, nameless = bench.log

    assert fault.startswith("fault in other (line 2, column 3): ")
    assert stop == "C209A0: Protective stop"
    assert late.startswith("fault in late: A program was received, but")
    assert nameless.startswith("fault in a program: ")


# Messages about stops


def test_protective_stop_follows_its_state(bench: Bench) -> None:
    bench.controller.protective_stop()
    kinds = [content[0] if kind == MESSAGE else "state" for kind, content in bench.packages()]

    assert kinds == ["state", SAFETY_MODE, ERROR_CODE]
    assert (
        struct.unpack_from(">2iB", bench.messages(SAFETY_MODE)[0])[2] == SafetyMode.PROTECTIVE_STOP
    )

    code, argument, level = struct.unpack_from(">3i", bench.messages(ERROR_CODE)[0])

    assert (code, argument, level) == (209, 0, 2)  # "A protective stop was triggered", a warning

    robot_mode = bench.packages()[0][1]

    assert (
        robot_mode[4] == 0 and robot_mode[5 + 8 + 4] == 1
    )  # isProtectiveStopped, the fifth flag behind the time


def test_changes_of_safety_mode_are_reported(bench: Bench) -> None:
    bench.controller.restart_safety()
    bench.controller.safeguard_stop()
    bench.controller.release_safety()
    bench.controller.emergency_stop()
    bench.controller.emergency_stop()
    bench.controller.restart_safety()

    modes = [struct.unpack_from(">2iB", content)[2] for content in bench.messages(SAFETY_MODE)]

    assert modes == [
        SafetyMode.SAFEGUARD_STOP,
        SafetyMode.NORMAL,
        SafetyMode.ROBOT_EMERGENCY_STOP,
        SafetyMode.NORMAL,
    ]


# protective_stop() in programs


def test_a_secondary_program_can_stop_the_arm(bench: Bench) -> None:
    bench.send(RUNS)
    bench.tick()
    bench.send("sec stops():\n  protective_stop()\nend")
    bench.tick(0.5)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert bench.state.runtime_state == RuntimeState.PAUSED


@pytest.mark.parametrize("mode", [RobotMode.BOOTING, RobotMode.IDLE])
def test_protective_stop_works_while_the_arm_is_not_running(bench: Bench, mode: RobotMode) -> None:
    bench.state.robot_mode = mode
    bench.send("protective_stop()")

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP


def test_a_program_that_only_stops_the_arm_ends(bench: Bench) -> None:
    bench.send("protective_stop()")
    bench.tick(0.01)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert bench.state.runtime_state == RuntimeState.STOPPED


# Moves that cannot be made


@pytest.mark.parametrize("goal", ["[-123, 0, 0, 0, 0, 0]", "p[10, 0, 0, 0, 0, 0]"])
def test_an_unreachable_movej_fails_at_once_and_ends_the_program(bench: Bench, goal: str) -> None:
    bench.send(f"def far():\n  movej({goal})\nend")
    bench.tick(0.1)

    assert len(bench.messages(RUNTIME_EXCEPTION)) == 1
    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert bench.state.safety_mode == SafetyMode.NORMAL
    assert np.array_equal(bench.state.target_q, ROBOT.home)


def test_an_unreachable_movel_stops_protectively_with_an_error_code(bench: Bench) -> None:
    bench.send("def far():\n  movel(p[10, 0, 0, 0, 0, 0], a=5, v=5)\nend")
    bench.tick(3.0)

    assert bench.state.safety_mode == SafetyMode.PROTECTIVE_STOP
    assert len(bench.messages(ERROR_CODE)) == 1
    assert bench.messages(RUNTIME_EXCEPTION) == []


@pytest.mark.slow
def test_unlocked_stop_is_not_repeated(
    bench: Bench,
) -> None:
    bench.send("def far():\n  movel(p[10, 0, 0, 0, 0, 0], a=5, v=5)\nend")
    bench.tick(3.0)
    bench.send("set unlock protective stop")
    bench.tick(2.0)

    assert bench.state.safety_mode == SafetyMode.NORMAL


def test_a_movel_with_too_short_a_time_takes_longer(bench: Bench) -> None:
    bench.send(
        "def fast():\n  movel(pose_add(get_target_tcp_pose(), p[0, 0, 0.2, 0, 0, 0]), t=0.02)\nend"
    )
    begin = bench.state.target_tcp_pose.copy()
    speeds = []
    for _ in range(1500):
        bench.tick()
        speeds.append(np.abs(bench.state.target_qd))

    assert bench.state.safety_mode == SafetyMode.NORMAL
    assert np.allclose(bench.state.target_tcp_pose[:3] - begin[:3], [0.0, 0.0, 0.2], atol=1e-6)
    assert (np.max(speeds, axis=0) <= bench.controller.joint_speed_limits * (1.0 + 1e-6)).all()


@pytest.mark.slow
def test_an_optimovel_is_no_faster_than_the_joints(bench: Bench) -> None:
    turn = "p[0, 0, 0.1, 0, 0, 2.5]"
    bench.send(
        f"def turn():\n  optimovel(pose_trans(get_target_tcp_pose(), {turn}), a=1.0, v=1.0)\nend"
    )
    fastest = np.zeros(6)
    for _ in range(1500):
        bench.tick()
        fastest = np.maximum(fastest, np.abs(bench.state.target_qd))

    assert bench.state.safety_mode == SafetyMode.NORMAL
    assert bench.state.runtime_state == RuntimeState.STOPPED

    limits = bench.controller.joint_speed_limits

    assert (fastest <= limits * (1.0 + 1e-6)).all()
    assert (fastest / limits).max() > 0.9
