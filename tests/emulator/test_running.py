"""A running controller, and how a bug in the emulator is reported."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from simbridge.emulator.control import Control
from simbridge.emulator.control_server import ControlServer
from simbridge.emulator.emulate import reach_warning
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.errors import EmulatorBroken, EmulatorError
from simbridge.emulator.handle import READY, Emulator
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.running import RunningController
from simbridge.emulator.servers import MAX_CLIENTS
from simbridge.emulator.state import ControllerEvent, profile
from simbridge.robot import load_robot
from simbridge.ur.tables import DASHBOARD, RTDE
from tests.controllers import REALTIME, loopback
from tests.emulator.fake_controller import ANY_PORTS
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

HOST = loopback(75)


def test_failing_tick_ends_the_emulator() -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    tick = controller.tick

    def failing() -> None:
        tick()
        if controller.state.tick == 10:
            raise KeyError("a mistake")

    controller.tick = failing  # type: ignore[method-assign]
    running = RunningController(controller, HOST, ANY_PORTS)

    with pytest.raises(EmulatorBroken, match=r"tick 10.*a mistake") as caught, running:
        while running.alive:
            time.sleep(0.01)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.tick == 10
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, running.servers.ports[RTDE]))


def test_unsupported_request_is_logged_once() -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    running = RunningController(controller, HOST, ANY_PORTS)
    for data in (b"\x01\xff", b"\x02", b"x" * 1000):
        controller.on_event(ControllerEvent("unknown", "RTDE: this", data=data))
    controller.on_event(ControllerEvent("unknown", "RTDE: that", data=b"y" * 1000))
    first, second = running.log

    assert first == r"RTDE: this: b'\x01\xff'"
    assert (
        second.startswith("RTDE: that: b'yyyy") and second.endswith("' ...") and len(second) < 300
    )


def test_unsupported_requests_are_logged_up_to_1000() -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    running = RunningController(controller, HOST, ANY_PORTS)
    lines = []
    for i in range(2000):
        controller.on_event(ControllerEvent("unknown", f"RTDE: {i} {'x' * 60_000}", data=b"y"))
        lines += running.log
        running.log.clear()

    assert (
        len(lines) == 1001
        and max(map(len, lines)) < 1200
        and lines[999].startswith("RTDE: 999 xxx")
    )
    assert (
        lines[1000]
        == "1000 requests that the emulator does not support were logged; further ones are not"
    )


def test_a_frozen_controller_ends_at_once() -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    begin = time.monotonic()
    with RunningController(controller, HOST, ANY_PORTS) as running:
        running.freeze(3600.0)

    assert time.monotonic() - begin < 600.0


def test_control_client_may_leave_early(monkeypatch) -> None:
    left = threading.Event()
    over = threading.Event()
    errors = []
    monkeypatch.setattr(Control, "answer", lambda self, line: {"ok": left.wait(PATIENCE)})
    monkeypatch.setattr(ControlServer, "handle_error", lambda *_: errors.append(sys.exc_info()[1]))
    monkeypatch.setattr(ControlServer, "shutdown_request", lambda self, request: over.set())
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    with ControlServer(RunningController(controller, HOST, ANY_PORTS), HOST, 0) as server:
        client = socket.create_connection(server.server_address)
        client.sendall(b"{}\n{}\n")
        client.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )  # its end is a reset
        client.close()
        left.set()
        assert over.wait(PATIENCE) and not errors


class Clock:
    """A clock that only sleeping advances; it stops a controller after two seconds."""

    def __init__(self, running: RunningController) -> None:
        self.now = 0.0
        self._running = running

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._running._stopping = self.now >= 2.0


@pytest.mark.parametrize(
    ("polyscope", "speed", "ticks", "sent"),
    [
        ("5.12", 1.0, 1000, 1000),
        ("5.12", 10.0, 10000, 1000),
        ("3.15", 10.0, 2500, 1000),
        ("3.15", 2.0, 500, 500),
    ],
)
def test_faster_time_sends_500_packages_a_second(
    monkeypatch, polyscope: str, speed: float, ticks: int, sent: int
) -> None:
    robot = load_robot("ur10" if polyscope == "3.15" else "ur10e")
    controller = EmulatedController(robot, profile(polyscope), ScriptProgram)
    running = RunningController(controller, HOST, ANY_PORTS, speed=speed)
    passed: list[int] = []
    monkeypatch.setattr(running.servers, "send_due", lambda tick, count: passed.append(count))
    monkeypatch.setattr("simbridge.emulator.running.time", Clock(running))
    running._tick_until_stopped()

    assert controller.state.tick == sum(passed) == pytest.approx(ticks, rel=0.002)
    assert len(passed) == pytest.approx(sent, rel=0.002)
    assert running.speed == pytest.approx(speed, rel=0.01)


@pytest.mark.parametrize(("seconds", "ticks"), [(0.018, 1000), (0.05, 975)])
def test_short_delay_is_caught_up(monkeypatch, seconds: float, ticks: int) -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    running = RunningController(controller, HOST, ANY_PORTS)
    clock = Clock(running)
    tick = controller.tick

    def stand_still_once() -> None:
        tick()
        clock.now += seconds if controller.state.tick == 300 else 0.0

    monkeypatch.setattr(controller, "tick", stand_still_once)
    monkeypatch.setattr("simbridge.emulator.running.time", clock)
    running._tick_until_stopped()

    assert controller.state.tick == pytest.approx(ticks, abs=2)


def test_how_fast_a_program_ran_is_logged(monkeypatch) -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    running = RunningController(controller, HOST, ANY_PORTS, speed=10.0)
    clock = Clock(running)
    monkeypatch.setattr("simbridge.emulator.running.time", clock)
    controller.program_name = "moves"
    controller.on_event(ControllerEvent("started", "moves"))
    controller.state.timestamp = 12.0
    clock.now = 1.5
    controller.on_event(ControllerEvent("stopped", "moves"))

    assert list(running.log) == ["moves took 12.000 s, 8.0 times faster than real time"]


def test_program_reaches_its_controller_on_loopback() -> None:
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    calls = (
        'socket_open("127.0.0.1", 30003)\n  socket_send_line("set speed 0.25")\n  socket_close()'
    )
    with RunningController(controller, HOST, ANY_PORTS) as running:
        with running.lock:
            controller.load_script(f"sec s():\n  {calls}\nend\n")
        deadline = time.monotonic() + PATIENCE
        while controller.state.speed_slider != 0.25:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_broken_process_ends_with_status_1() -> None:
    program = f"""
        import sys
        from simbridge.cli.command_line import main
        from simbridge.emulator.emulated_controller import EmulatedController
        tick = EmulatedController.tick
        def failing(self):
            tick(self)
            if self.state.tick == 100:
                raise KeyError("a mistake")
        EmulatedController.tick = failing
        sys.exit(main(["emulate", "--host", "{HOST}"]))
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("Traceback")
    assert 'raise KeyError("a mistake")' not in ended.stdout

    paragraph = " ".join(ended.stderr.split("KeyError: 'a mistake'\n")[1].split())

    assert paragraph.startswith("The emulated controller stopped in tick 100")


@pytest.mark.skipif(not REALTIME, reason="this system grants no real-time priority")
def test_priority_stays_when_ticks_begin_late() -> None:
    program = f"""
        import os, time
        from simbridge.emulator.emulated_controller import EmulatedController
        from simbridge.emulator.program import ScriptProgram
        from simbridge.emulator.running import RunningController
        from simbridge.emulator.state import profile
        from simbridge.robot import load_robot
        from simbridge.scheduling import ask_for_priority, threads
        run = RunningController._run
        def late(self):
            time.sleep(0.2)
            run(self)
        RunningController._run = late
        controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
        with RunningController(controller, "{HOST}"):
            ask_for_priority(10)
            while not controller.state.tick:
                time.sleep(0.01)
            print({{os.sched_getscheduler(thread) for thread in threads()}} == {{os.SCHED_FIFO}})
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert ended.stdout == "True\n", ended.stderr


def test_idle_client_makes_room(monkeypatch) -> None:
    monkeypatch.setattr("simbridge.emulator.servers.IDLE_S", 0.3)
    controller = EmulatedController(load_robot("ur10e"), profile("5.12"), ScriptProgram)
    with RunningController(controller, HOST, ANY_PORTS) as running, contextlib.ExitStack() as stack:

        def connected() -> socket.socket:
            port = running.servers.ports[DASHBOARD]
            return stack.enter_context(socket.create_connection((HOST, port), timeout=PATIENCE))

        def greeted(client: socket.socket) -> bool:
            return client.recv(9) == b"Connected"

        def answers(client: socket.socket) -> None:
            client.sendall(b"robotmode\n")
            received = b""
            while b"Robotmode" not in received:
                piece = client.recv(4096)
                assert piece, "the connection was closed"
                received += piece

        crowd = [connected() for _ in range(MAX_CLIENTS)]
        assert all(map(greeted, crowd))
        time.sleep(0.4)
        answers(crowd[0])
        assert greeted(connected())
        while crowd[1].recv(4096):
            pass
        answers(crowd[0])


def test_an_address_that_others_can_reach_is_printed() -> None:
    assert reach_warning("127.0.0.1") == reach_warning("127.6.37.75") == ""

    for address in ("0.0.0.0", "192.168.0.5"):
        assert f"Listening on {address}, which other computers can reach" in reach_warning(address)


# The handle


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A fake emulator process.

    It reports that it is ready, prints many lines, and ends with a status.
    """

    def make(status: int, *, ready: str = READY) -> Emulator:
        program = tmp_path / "python"
        program.write_text(
            f"#!{sys.executable}\nimport sys\nprint('{ready}.')\n"
            "for i in range(20000): print('a line of many', i)\nprint('the last words')\n"
            f"sys.exit({status})\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return Emulator(host=HOST, running=False)

    return make


def test_last_lines_are_reported_after_end(
    fake,
) -> None:
    with fake(9) as controller:
        # It could not end if nobody read its output.
        assert controller._process.wait(PATIENCE) == 9
        with pytest.raises(EmulatorError, match=r"status 9.*the last words") as caught:
            controller.state()

    assert "many 0 " not in str(caught.value)


def test_bug_is_reported_on_leaving(fake) -> None:
    with pytest.raises(EmulatorError, match=r"status 1.*the last words"), fake(1) as controller:
        controller._process.wait(PATIENCE)


def test_an_end_before_it_is_ready_is_reported_on_entering(fake) -> None:
    controller = fake(2, ready="Not ready")

    with pytest.raises(EmulatorError, match="the last words"):
        controller.__enter__()

    assert controller._process.wait(PATIENCE) == 2
