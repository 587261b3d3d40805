"""Secondary programs run alongside the main program; they can neither move the arm nor wait."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.secondary import MAX_CHARACTERS, MAX_QUEUED
from simbridge.emulator.state import ControllerEvent, profile
from simbridge.robot import load_robot
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.properties import variants

pytestmark = pytest.mark.slow

ROBOT = load_robot("ur10e")
COUNT = "write_output_integer_register(0, read_output_integer_register(0) + 1)"
MOVE = (
    "def main():\n  q = get_target_joint_positions()\n  q[0] = q[0] + 1.0\n  movej(q)\n"
    "  sleep(100)\nend\n"
)


class Bench:
    """A running controller whose ticks are called by hand."""

    def __init__(self) -> None:
        self.controller = EmulatedController(ROBOT, profile("5.12"), ScriptProgram)
        self.state = self.controller.state
        self.state.robot_mode = RobotMode.RUNNING
        self.messages: list[tuple[str, str, int]] = []
        self.controller.on_event = self.hear
        self.q: list[np.ndarray] = []

    def hear(self, event: ControllerEvent) -> None:
        """Keep what is about neither the main program's begin and end nor the safety mode."""
        if event.kind not in ("started", "stopped", "safety mode"):
            self.messages.append((event.kind, event.text, event.line))

    def tick(self, times: int = 1) -> None:
        """Ticks between which everything that is being compiled gets ready."""
        for _ in range(times):
            for program in (self.controller.program, self.controller._secondary._program):
                if program is not None:
                    program.compilation.join()
            self.controller.tick()
            self.q.append(self.state.target_q)

    def move(self) -> None:
        self.controller.load_script(MOVE)
        self.tick(100)
        assert self.state.target_qd.any()

    def faults(self) -> list[tuple[str, int]]:
        return [(text, line) for kind, text, line in self.messages if kind == "error"]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_main_program_and_its_motion_continue(bench: Bench) -> None:
    reference = Bench()
    for candidate in (bench, reference):
        candidate.move()
    bench.controller.load_script("sec s():\n  set_digital_out(3, True)\n  textmsg(1)\nend\n")
    for candidate in (bench, reference):
        candidate.tick(500)

    assert bench.state.runtime_state == RuntimeState.PLAYING
    assert np.array_equal(bench.q, reference.q)
    assert bench.state.digital_outputs == 1 << 3
    assert bench.messages == [("text", "1", 0)]


def test_without_a_program_it_runs_and_nothing_plays(bench: Bench) -> None:
    bench.controller.load_script(f"sec s():\n  {COUNT}\nend\n")
    for _ in range(10):
        bench.tick()
        assert bench.state.runtime_state == RuntimeState.STOPPED

    assert bench.state.output_int[0] == 1


def test_secondary_program_runs_during_a_stop(bench: Bench) -> None:
    bench.move()
    bench.controller.protective_stop("a test")
    bench.controller.load_script(f"sec s():\n  {COUNT}\nend\n")
    bench.tick(10)

    assert bench.state.output_int[0] == 1
    assert (bench.state.runtime_state, bench.state.safety_mode) == (
        RuntimeState.PAUSED,
        SafetyMode.PROTECTIVE_STOP,
    )


def test_several_run_in_the_order_in_which_they_came(bench: Bench) -> None:
    for n in (1, 2, 3):
        bench.controller.load_script(f"sec s():\n  textmsg({n})\nend\n")
    bench.tick(20)

    assert [text for _, text, _ in bench.messages] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "call",
    variants(
        [
            "movej([0, 0, 0, 0, 0, 0])",
            "movel(p[0.1, 0, 0, 0, 0, 0])",
            "servoj([0, 0, 0, 0, 0, 0])",
            "speedj([0.1, 0, 0, 0, 0, 0], 0.5, 0.1)",
            "speedl([0.1, 0, 0, 0, 0, 0], 0.5, 0.1)",
            "stopj(2.0)",
            "stopl(2.0)",
            "sleep(0.1)",
            "sync()",
            'popup("a", blocking=True)',
        ],
        "movej([0, 0, 0, 0, 0, 0])",
        "servoj([0, 0, 0, 0, 0, 0])",
        "speedj([0.1, 0, 0, 0, 0, 0], 0.5, 0.1)",
        "stopj(2.0)",
        "sleep(0.1)",
        'popup("a", blocking=True)',
    ),
)
def test_blocking_call_is_a_fault(bench: Bench, call: str) -> None:
    reference = Bench()
    for candidate in (bench, reference):
        candidate.move()
    bench.controller.load_script(f"sec s():\n  {COUNT}\n  {call}\n  {COUNT}\nend\n")
    for candidate in (bench, reference):
        candidate.tick(20)

    [(text, line)] = bench.faults()

    assert call.partition("(")[0] in text
    assert line == 3
    assert bench.state.output_int[0] == 1
    assert bench.state.runtime_state == RuntimeState.PLAYING
    assert np.array_equal(bench.q, reference.q)


def test_a_popup_that_does_not_block_is_shown(bench: Bench) -> None:
    bench.controller.load_script('sec s():\n  popup("hello")\nend\n')
    bench.tick(5)

    assert bench.controller.popup_text == "hello"
    assert not bench.faults()


def test_secondary_program_may_use_sockets(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        calls = f'socket_open("127.0.0.1", {port})\n  socket_send_line("hello")\n  socket_close()'
        bench.move()
        bench.controller.load_script(f"sec s():\n  {calls}\nend\n")
        bench.tick(20)
        client, _ = server.accept()
        with client:
            assert client.recv(100) == b"hello\n"

    assert not bench.faults()
    assert bench.state.runtime_state == RuntimeState.PLAYING


def test_endless_secondary_program_is_ended(bench: Bench) -> None:
    bench.controller.load_script(f"sec s():\n  {COUNT}\n  while True:\n  end\nend\n")
    bench.controller.load_script('sec t():\n  textmsg("next")\nend\n')
    bench.tick(520)

    assert "must not take time" in bench.faults()[0][0]
    assert bench.messages[-1] == ("text", "next", 0)
    assert bench.state.output_int[0] == 1


def test_a_syntax_error_is_reported_with_its_line(bench: Bench) -> None:
    bench.move()
    bench.controller.load_script("sec s():\n  x = = 1\nend\n")
    bench.tick(10)

    [(text, line)] = bench.faults()

    assert line == 2
    assert "column 7" in text
    assert bench.state.runtime_state == RuntimeState.PLAYING


def test_excessive_program_is_not_run(bench: Bench) -> None:
    bench.controller.load_script("sec s():\n" + "#" * MAX_CHARACTERS + "\nend\n")

    assert f"at most {MAX_CHARACTERS}" in bench.faults()[0][0]

    for _ in range(MAX_QUEUED + 3):
        bench.controller.load_script(f"sec s():\n  {COUNT}\nend\n")

    assert len(bench.faults()) == 1 + 3

    bench.tick(10 * MAX_QUEUED)

    assert bench.state.output_int[0] == MAX_QUEUED
