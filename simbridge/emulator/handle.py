"""The emulator for tests: a process of its own, started and ended by `with`, and its control socket as methods."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from simbridge.emulator.control import CONTROL_PORT
from simbridge.emulator.errors import EmulatorError
from simbridge.robot.pose import Array

READY = "Ctrl-C ends it"  # ends what `simbridge emulate` prints when it serves
START_TIMEOUT = 60.0  # s; the first start on a machine compiles kernels
_LINES = 40  # that are kept of what it says
_BROKEN = 1  # its status when it ended because of a mistake of its own


@dataclass(frozen=True)
class Recorded:
    """What the emulator recorded.

    Attributes:
        tick: Numbers of the ticks (K,).
        setpoint: servoj's setpoint in force (K, n), rad; nan without one.
        target_q, actual_q: Joints at each tick (K, n), rad.
        input_tick: On which tick each RTDE input package arrived (M,).
        inputs: Names and values of each of them (M).
    """

    tick: Array
    setpoint: Array
    target_q: Array
    actual_q: Array
    input_tick: Array
    inputs: list[tuple[list[str], list[Any]]]


class Emulator:
    """`with Emulator("ur10e") as controller:` runs an emulated controller on loopback until the block ends.

    A process of its own: ur_rtde holds Python's lock while it waits, so nothing that answers it may share its process.

    Args:
        robot: A name or a file, as for `load_robot`.
        polyscope: "3.15", "5.12" or "5.25".
        host: The address; another one of 127.0.0.0/8 runs beside the first.
        calibration: A file with the arm's own kinematics.
        boot_time: From power on to idle, s.
        running: Power on and release the brakes at once.
        realtime_priority: Of its ticks, as a real controller's are; 0 for none.
    """

    def __init__(
        self,
        robot: str = "ur10e",
        *,
        polyscope: str = "5.12",
        host: str = "127.0.0.1",
        calibration: str | Path | None = None,
        boot_time: float = 0.5,
        running: bool = True,
        control_port: int = CONTROL_PORT,
        realtime_priority: int = 0,
    ) -> None:
        self.host, self._control_port, self._running = host, control_port, running
        self._arguments = ["--robot", robot, "--polyscope", polyscope, "--host", host, "--boot-time", str(boot_time)]
        self._arguments += ["--control-port", str(control_port), "--realtime-priority", str(realtime_priority)]
        if calibration is not None:
            self._arguments += ["--calibration", str(calibration)]
        self._process: subprocess.Popen[str] | None = None
        self._said: Said | None = None

    def __enter__(self) -> Emulator:
        command = [sys.executable, "-m", "simbridge", "emulate", *self._arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout is not None
        self._said = Said(self._process.stdout)
        self._await_ready()
        try:
            if self._running:
                self.do("power_on_and_release")
                self.wait_for("robot_mode", "RUNNING")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if kind is None and process.returncode == _BROKEN:
            raise EmulatorError(self._epitaph())

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None
        return self._process.pid

    def _await_ready(self) -> None:
        """Wait until it says that it serves; an answer on the port might be another emulator's."""
        process, said = self._process, self._said
        assert process is not None and said is not None
        said.ready.wait(START_TIMEOUT)
        if not said.ready.is_set():
            process.kill()
            process.wait()
            raise EmulatorError(f"The emulator did not start within {START_TIMEOUT:g} s.")
        if not said.serves:
            process.wait()
            raise EmulatorError(f"The emulator did not start: {said.text()}")

    def _epitaph(self) -> str:
        assert self._process is not None and self._said is not None
        self._said.all_read.wait(1.0)
        return f"The emulator has ended with status {self._process.returncode}. Last it said: {self._said.text()}"

    def do(self, command: str, **arguments: Any) -> Any:
        """Carry out a command of the control socket (docs/emulator.md lists them).

        Raises:
            EmulatorError: The command could not be carried out, or the process has ended.
            OSError: The process lives, and does not answer.
        """
        try:
            line = self._exchange(json.dumps({"do": command, **arguments}).encode() + b"\n")
        except OSError:
            if self._has_ended():
                raise EmulatorError(self._epitaph()) from None
            raise
        answer = json.loads(line)
        if not answer["ok"]:
            raise EmulatorError(f"The emulator refused {command}: {answer['error']}")
        return answer["value"]

    def _exchange(self, request: bytes) -> bytes:
        with socket.create_connection((self.host, self._control_port), timeout=30.0) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as file:
                line = file.readline()
        if not line:
            raise ConnectionResetError("the emulator hung up")
        return line

    def _has_ended(self) -> bool:
        """Whether the process is gone; its connections are cut a moment before it is."""
        assert self._process is not None
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return False
        return True

    def state(self) -> dict[str, Any]:
        """The controller as it is now."""
        found: dict[str, Any] = self.do("state")
        return found

    def wait_for(self, name: str, value: Any, timeout: float = 10.0) -> dict[str, Any]:
        """Wait until a field of `state()` has a value.

        Raises:
            EmulatorError: It had not within the timeout.
        """
        deadline = time.monotonic() + timeout
        while True:
            state = self.state()
            if state[name] == value:
                return state
            if time.monotonic() > deadline:
                raise EmulatorError(f"{name} is {state[name]!r} and did not become {value!r} within {timeout:g} s.")
            time.sleep(0.01)

    def record(self) -> Recorded:
        """What happened so far."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "record.npz"
            self.do("save_record", path=str(path))
            with np.load(path) as data:
                inputs = [(names, values) for names, values in json.loads(str(data["inputs"]))]
                arrays = {name: data[name] for name in ("tick", "setpoint", "target_q", "actual_q", "input_tick")}
        return Recorded(**arrays, inputs=inputs)

    def kill(self) -> None:
        """End the process at once, as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


class Said:
    """What a process says, read as it says it, so that it never waits for somebody to listen.

    Args:
        lines: Its output; read in a thread until it ends.

    Attributes:
        last: Its last lines.
        serves: Whether it has said that it serves.
        ready: Set when it has said that it serves, or says no more.
        all_read: Set when it says no more.
    """

    def __init__(self, lines: IO[str]) -> None:
        self.last: deque[str] = deque(maxlen=_LINES)
        self.serves = False
        self.ready, self.all_read = threading.Event(), threading.Event()
        threading.Thread(target=self._read, args=(lines,), name="simbridge-emulator-output", daemon=True).start()

    def _read(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                self.last.append(line)
                if READY in line:
                    self.serves = True
                    self.ready.set()
        self.all_read.set()
        self.ready.set()

    def text(self) -> str:
        """The last lines, as one paragraph."""
        return " ".join(" ".join(self.last).split()) or "nothing"
