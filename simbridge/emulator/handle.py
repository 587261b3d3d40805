"""The emulator for tests: a separate process, started and ended by `with`, and its control socket as methods."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from simbridge.emulator.errors import EmulatorError
from simbridge.lifeline import lifeline_environment
from simbridge.robot.pose import Array
from simbridge.ur.tables import CONTROL

READY = "Ctrl-C ends it"  # in the line that `simbridge emulate` prints when it is ready
START_TIMEOUT = 180.0  # s; a second is enough, but the machine may be busy
_LINES = 40  # of output that are shown
_BUG = 1  # exit status after a bug in the emulator


@dataclass(frozen=True)
class Recorded:
    """The emulator's record of ticks (K,) and of RTDE input packages (M).

    Attributes:
        setpoint: servoj's setpoint in force (K, n), rad; nan without one.
        target_q, actual_q: Joints at each tick (K, n), rad.
        input_tick: The tick in which each package arrived (M,).
        inputs: Names and values of each package (M).
    """

    tick: Array
    setpoint: Array
    target_q: Array
    actual_q: Array
    input_tick: Array
    inputs: list[tuple[list[str], list[Any]]]


class Emulator:
    """`with Emulator("ur10e") as controller:` runs an emulated controller on loopback until the block ends.

    It is a separate process because ur_rtde holds Python's lock while it waits for an answer.

    Args:
        robot: Name or file, as for `load_robot`.
        polyscope: "3.15", "5.9", "5.12" or "5.25".
        host: The address. Several controllers can run on different addresses of 127.0.0.0/8.
        calibration: Kinematic calibration file of an individual arm.
        boot_time: From power on to idle, s.
        joint_speed_limit: The safety system's (6,), rad/s; UR's own by default.
        running: Power on and release the brakes on entering.
        realtime_priority: Real-time priority of its ticks; 0 for none.
        speed: How many times faster than real time its clock may run: for programs and moves, not for streams.
        programs: The folder of its programs (*.urp), which the dashboard loads.
        start_pose: Where the arm stands at the start: "home", "ursim" or joint positions (6,), rad.
        traffic: A new file for all traffic with its clients (`record()` is something else: what the arm did).
    """

    def __init__(
        self,
        robot: str = "ur10e",
        *,
        polyscope: str = "5.12",
        host: str = "127.0.0.1",
        calibration: str | Path | None = None,
        boot_time: float = 0.5,
        joint_speed_limit: Sequence[float] | None = None,
        running: bool = True,
        control_port: int = CONTROL,
        realtime_priority: int = 0,
        speed: float = 1.0,
        programs: str | Path | None = None,
        start_pose: str | Sequence[float] = "home",
        traffic: str | Path | None = None,
    ) -> None:
        self.host, self._control_port, self._running = host, control_port, running
        self._arguments = [
            "--robot",
            robot,
            "--polyscope",
            polyscope,
            "--host",
            host,
            "--boot-time",
            str(boot_time),
        ]
        self._arguments += [
            "--control-port",
            str(control_port),
            "--realtime-priority",
            str(realtime_priority),
        ]
        if joint_speed_limit is not None:
            self._arguments += ["--joint-speed-limit", ",".join(map(str, joint_speed_limit))]
        start = start_pose if isinstance(start_pose, str) else ",".join(map(str, start_pose))
        self._arguments += ["--speed", str(speed), "--start-pose", start]
        for flag, file in (
            ("--calibration", calibration),
            ("--programs", programs),
            ("--record", traffic),
        ):
            self._arguments += [] if file is None else [flag, str(file)]
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Emulator:
        command = [sys.executable, "-m", "simbridge", "emulate", *self._arguments]
        # Into a new file: the process never waits for somebody to read what it prints.
        self._log = tempfile.TemporaryFile()
        environment = {**os.environ, **lifeline_environment()}
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            self._await_ready()
            if self._running:
                self.do("power_on_and_release")
                self.wait_for("robot_mode", "RUNNING")
        except BaseException:
            self.__exit__(None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        process = self._process
        assert process is not None
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if kind is None and process.returncode == _BUG:
            raise EmulatorError(self.exit_message())

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _await_ready(self) -> None:
        """Wait for its own report that it is ready: a port might be answered by another emulator."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        ended = False
        while READY not in self.log:
            if ended:
                raise EmulatorError(f"The emulator did not start: {self._last_lines()}")
            if time.monotonic() > deadline:
                raise EmulatorError(f"The emulator did not start within {START_TIMEOUT:g} s.")
            time.sleep(0.01)
            # Asked before its output is read once more: it may report that it is ready and then end.
            ended = self._process.poll() is not None

    @property
    def log(self) -> str:
        """What the process has printed so far: errors of programs, and requests that the emulator does not support."""
        if self._log is None:
            return ""
        file = self._log.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def _last_lines(self) -> str:
        """The last lines that the process has printed, as one paragraph."""
        return " ".join(" ".join(self.log.splitlines()[-_LINES:]).split()) or "nothing"

    def exit_message(self) -> str:
        """How the process has ended, with its last lines of output."""
        assert self._process is not None
        return f"The emulator has ended with status {self._process.returncode}. Its last output: {self._last_lines()}"

    def do(self, command: str, **arguments: Any) -> Any:
        """Carry out a command of the control socket (docs/emulator.md lists them).

        Raises:
            EmulatorError: The command could not be carried out, or the process has ended.
            OSError: The process is running but does not answer.
        """
        try:
            line = self._exchange(json.dumps({"do": command, **arguments}).encode() + b"\n")
        except OSError:
            assert self._process is not None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)  # its connections are cut a moment before it ends
                raise EmulatorError(self.exit_message()) from None
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
            raise ConnectionResetError("the emulator closed the connection")
        return line

    def state(self) -> dict[str, Any]:
        """The controller's present state."""
        found: dict[str, Any] = self.do("state")
        return found

    def set(self, **settings: Any) -> None:
        """Change settings of the controller by name, all or none (docs/emulator.md lists them).

        Raises:
            EmulatorError: There is no such setting, or it cannot have this value.
        """
        self.do("set", **settings)

    def wait_for(self, name: str, value: Any, timeout: float = 30.0) -> dict[str, Any]:
        """The state, once a field of it has a value; an EmulatorError after the timeout."""
        deadline = time.monotonic() + timeout
        while True:
            state = self.state()
            if state[name] == value:
                return state
            if time.monotonic() > deadline:
                raise EmulatorError(
                    f"{name} is {state[name]!r} and did not become {value!r} within {timeout:g} s."
                )
            time.sleep(0.01)

    def record(self, after: int = -1) -> Recorded:
        """The record after a tick."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "record.npz"
            self.do("save_record", path=str(path), after=after)
            with np.load(path) as data:
                inputs = [
                    (names, values)
                    for names, values in json.loads(b"[%b]" % data["inputs"].tobytes())
                ]
                arrays = {
                    name: data[name]
                    for name in ("tick", "setpoint", "target_q", "actual_q", "input_tick")
                }
        return Recorded(**arrays, inputs=inputs)

    def kill(self) -> None:
        """End the process at once, as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
