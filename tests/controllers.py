"""Emulated controllers for tests: started once for many tests, each of which begins with the same
state.

Where the system grants real-time priorities, controllers and what controls them in tests have them:
then other processes do not keep them from their deadlines.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from simbridge.emulator.errors import EmulatorError
from simbridge.emulator.handle import Emulator
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from tests.patience import PATIENCE

CALIBRATION = Path(__file__).parent / "data" / "ur10e_calibration.toml"
HOME = load_robot("ur10e").home
SPEED_LIMITS = load_robot("ur10e").max_velocity.tolist()
"""Joint speed limits of the data sheet, rad/s: tests of stops set them, for the safety system's own
are higher.
"""
UNLOCK_DELAY = 0.5
"""s after a protective stop until it can be unlocked: five at a controller, for which recoveries
would only wait.
"""
_PORTS = (29999, 30001, 30002, 30003, 30004)
_KINDS = {
    "e-Series": {"robot": "ur10e", "polyscope": "5.12"},
    "CB3": {"robot": "ur10", "polyscope": "3.15"},
    "calibrated": {"robot": "ur10e", "polyscope": "5.12", "calibration": CALIBRATION},
}


NO_TOOL = {
    "payload": 0.0,
    "payload_cog": [0.0] * 3,
    "payload_inertia": [0.0] * 6,
    "tcp_offset": [0.0] * 6,
}


def _realtime_is_granted() -> bool:
    if (child := os.fork()) == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(SERVO_PRIORITY + 1))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


SERVO_PRIORITY = 20
REALTIME = _realtime_is_granted()
"""True if this system grants real-time priorities."""
EMULATOR_PRIORITY = SERVO_PRIORITY + 10 if REALTIME else 0
"""Above the servo process: an emulated controller keeps its own time, as a real one does. 0: none.
"""


def realtime_options() -> dict[str, int]:
    """Fields of `Options` with which the servo process has a real-time priority, where that is
    granted.
    """
    return {"realtime_priority": SERVO_PRIORITY} if REALTIME else {}


REALTIME_FLAGS = ("--realtime-priority", str(SERVO_PRIORITY)) if REALTIME else ()


@contextlib.contextmanager
def realtime() -> Iterator[None]:
    """This thread has a real-time priority within the block, where that is granted."""
    _schedule([0], SERVO_PRIORITY - 1)
    try:
        yield
    finally:
        _schedule([0], 0)


def schedule_all_threads(*, realtime: bool) -> None:
    """Give all present threads of this process a real-time priority, where that is granted, or take
    it from them.

    One alone would wait for another that holds the interpreter's lock and is not given a core.
    """
    _schedule(
        [int(thread) for thread in os.listdir("/proc/self/task")],
        SERVO_PRIORITY - 1 if realtime else 0,
    )


def _schedule(threads: list[int], priority: int) -> None:
    for thread in threads if REALTIME else ():
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setscheduler(
                thread, os.SCHED_FIFO if priority else os.SCHED_OTHER, os.sched_param(priority)
            )


def loopback(number: int) -> str:
    """A loopback address for this process of tests alone."""
    pid = os.getpid()
    return f"127.{1 + pid // 256 % 254}.{pid % 256}.{number}"


class Controllers:
    """Emulated controllers by kind, of which one runs at a time: an idle one takes a part of a
    core.
    """

    def __init__(self) -> None:
        self._kind = ""
        self._running: Emulator | None = None

    def ready(self, kind: str) -> Emulator:
        """A controller of that kind without faults and without tool, with the arm at home."""
        if kind != self._kind or not self._answers():
            self.close()
            host = loopback(60 + list(_KINDS).index(kind))
            emulator = Emulator(
                host=host,
                realtime_priority=EMULATOR_PRIORITY,
                joint_speed_limit=SPEED_LIMITS,
                boot_time=0.05,
                **_KINDS[kind],
            )
            self._kind = kind
            self._running = emulator.__enter__()
        controller = self._running
        assert controller is not None
        for port in _PORTS:
            controller.do("mute", port=port, muted=False)
        for command in ("stop_program", "release_registers", "release_safety"):
            controller.do(command)
        if controller.state()["safety_mode"] == "PROTECTIVE_STOP":
            controller.set(unlock_delay=0.0)
            controller.do("unlock_protective_stop")
        controller.do("slider", fraction=1.0)
        controller.set(on_protective_stop="pause", unlock_delay=UNLOCK_DELAY, **NO_TOOL)
        controller.do("remote_control", on=True)
        if controller.state()["robot_mode"] != "RUNNING":
            controller.do("power_on_and_release")
            controller.wait_for("robot_mode", "RUNNING")
        controller.wait_for("speed_scaling", 1.0)
        move(controller, HOME)
        return controller

    def _answers(self) -> bool:
        try:
            return self._running is not None and bool(self._running.state())
        except EmulatorError:
            return False

    def close(self) -> None:
        """End the running controller."""
        controller = self._running
        self._running = None
        if controller is not None:
            controller.__exit__(None, None, None)


@pytest.fixture(scope="session")
def controllers():
    """The emulated controllers of this worker."""
    shared = Controllers()
    yield shared
    shared.close()


@pytest.fixture
def e_series(controllers):
    """An e-Series controller (500 Hz) with a UR10e."""
    return controllers.ready("e-Series")


@pytest.fixture
def cb3(controllers):
    """A CB3 controller (125 Hz) with a UR10."""
    return controllers.ready("CB3")


@pytest.fixture
def calibrated(controllers):
    """An e-Series controller with a calibrated UR10e, which is therefore taken for a real arm."""
    return controllers.ready("calibrated")


def move(controller: Emulator, q: Array) -> None:
    """Move the arm to q with a program on the controller, as an operator does."""
    if controller.state()["target_q"] != q.tolist():
        controller.do("run_script", source=f"def f():\nmovej({q.tolist()}, a=40, v=2)\nend\n")
        controller.wait_for("target_q", q.tolist())
    controller.wait_for("runtime_state", "STOPPED")
    controller.wait_for("moving", False)


def run_secondary_program(controller: Emulator, call: str) -> None:
    """Run a statement beside the controller's program, as another client does on port 30001."""
    with socket.create_connection((controller.host, 30001), timeout=PATIENCE) as client:
        client.sendall(f"sec beside():\n  {call}\nend\n".encode())
        # A connection that ends at once may take the program with it.
        client.recv(1)


def tick(controller: Emulator) -> int:
    """The controller's current tick."""
    return int(controller.state()["tick"])


def never_moved(controller: Emulator, since: int) -> bool:
    """Return whether the joints have not moved since a tick."""
    q = controller.record(after=since - 1).actual_q
    return bool((q == q[0]).all())
