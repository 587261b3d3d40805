"""The emulator for tests: a separate process, started and ended by `with`.

The commands of its control socket are methods.
"""

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
from pathlib import Path
from typing import IO, Any

from simbridge.emulator.errors import EmulatorError
from simbridge.emulator.options import EmulatorOptions
from simbridge.emulator.record_file import Recorded, read_record
from simbridge.lifeline import lifeline_environment

# A part of the line that `simbridge emulate` prints when it is ready.
READY = "Press Ctrl-C to stop"
# Longest start of the process, s. A second is enough, but the machine may be busy.
START_TIMEOUT_S = 180.0
# Time from SIGTERM until a process that has not ended is killed, s.
END_TIMEOUT_S = 5.0
# Longest time until a command is answered, s.
ANSWER_TIMEOUT_S = 30.0
# The connections of a process are cut a moment before it ends, s.
EXIT_TIMEOUT_S = 1.0
POLL_S = 0.01
# Lines of output that an error shows.
MAX_SHOWN_LINES = 40
# Exit status after a bug in the emulator.
BUG_STATUS = 1


class Emulator:
    """An emulated controller on loopback: `with Emulator("ur10e") as controller:`.

    It runs until the block ends. It is a separate process because ur_rtde holds Python's lock while
    it waits for an answer. Arguments that are not described here are the flags of `simbridge
    emulate`, which `simbridge emulate --help` explains.

    Args:
        robot: Name or file, as for `load_robot`.
        polyscope: "3.15", "5.9", "5.12", "5.25"; "10.7", "10.12" or "10.14" (PolyScope X).
        host: The address. Several controllers can run on different addresses of 127.0.0.0/8.
        calibration: Kinematic calibration file of an individual arm.
        joint_speed_limit: The safety system's limits (6,), rad/s; UR's own by default.
        running: Power on and release the brakes on entering.
        start_pose: Joint positions at the start: "home", "ursim", or six numbers, rad.
        traffic: A new file for all traffic with its clients (`record()` is something else: what the
            arm did).

    Attributes:
        host: The address.
        robot: Name or file of the arm, as it was given.

    Raises:
        EmulatorError: On entering: it cannot start. On leaving: it has ended because of a bug.
    """

    def __init__(  # noqa: PLR0913 (a public call, by keyword)
        self,
        robot: str = EmulatorOptions.robot,
        *,
        polyscope: str = EmulatorOptions.polyscope,
        host: str = EmulatorOptions.host,
        calibration: str | Path | None = None,
        boot_time: float = EmulatorOptions.boot_time,
        joint_speed_limit: Sequence[float] | None = None,
        running: bool = True,
        control_port: int = EmulatorOptions.control_port,
        rest_port: int = EmulatorOptions.rest_port,
        services: str | None = None,
        realtime_priority: int = EmulatorOptions.realtime_priority,
        speed: float = EmulatorOptions.speed,
        programs: str | Path | None = None,
        start_pose: str | Sequence[float] = EmulatorOptions.start_pose,
        traffic: str | Path | None = None,
    ) -> None:
        self.host = host
        self.robot = str(robot)
        self._control_port = control_port
        self._running = running
        self._options = EmulatorOptions(
            robot=str(robot),
            polyscope=polyscope,
            host=host,
            calibration=_path_text(calibration),
            boot_time=boot_time,
            programs=_path_text(programs),
            start_pose=start_pose if isinstance(start_pose, str) else _list_text(start_pose),
            joint_speed_limit=None if joint_speed_limit is None else _list_text(joint_speed_limit),
            control_port=control_port,
            rest_port=rest_port,
            services=services,
            realtime_priority=realtime_priority,
            speed=speed,
            record=_path_text(traffic),
        )

        # The process, and the file into which it prints; None before it is started.
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Emulator:
        command = [sys.executable, "-m", "simbridge", "emulate", *self._options.flags()]
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
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

        if kind is None and process.returncode == BUG_STATUS:
            raise EmulatorError(self.exit_message())

    @property
    def pid(self) -> int:
        """Id of the process."""
        assert self._process is not None
        return self._process.pid

    def _await_ready(self) -> None:
        """Wait until the process itself reports that it is ready.

        That a port answers would not show it: another emulator might be there.

        Raises:
            EmulatorError: The process has ended, or did not report in time.
        """
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S

        has_ended = False
        while READY not in self.log:
            if has_ended:
                raise EmulatorError(f"The emulator did not start: {self._last_lines()}")
            if time.monotonic() > deadline:
                raise EmulatorError(f"The emulator did not start within {START_TIMEOUT_S:g} s.")

            time.sleep(POLL_S)
            # Check this before reading the output once more: the process may report that it is
            # ready and then end.
            has_ended = self._process.poll() is not None

    @property
    def log(self) -> str:
        """The text that the process has printed so far.

        It consists of errors of programs, and requests that the emulator does not support.
        """
        if self._log is None:
            return ""
        file = self._log.fileno()
        size = os.fstat(file).st_size
        return os.pread(file, size, 0).decode(errors="replace")

    def _last_lines(self) -> str:
        """Return the last lines that the process has printed, as one paragraph."""
        lines = self.log.splitlines()[-MAX_SHOWN_LINES:]
        # Line breaks and indentation become single blanks.
        paragraph = " ".join(" ".join(lines).split())
        return paragraph or "nothing"

    def exit_message(self) -> str:
        """Return a sentence about the end of the process, with its last lines of output."""
        assert self._process is not None
        status = self._process.returncode
        return f"The emulator exited with status {status}. Its last output: {self._last_lines()}"

    def do(self, command: str, **arguments: Any) -> Any:
        """Carry out a command of the control socket, and return its value.

        Args:
            command: The command's name (docs/emulator_reference.md lists them).
            arguments: The command's arguments, as JSON has them.

        Raises:
            EmulatorError: The command could not be carried out, or the process has ended.
            OSError: The process is running but does not answer.
        """
        request = json.dumps({"do": command, **arguments}).encode() + b"\n"
        try:
            line = self._exchange(request)
        except OSError:
            assert self._process is not None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_TIMEOUT_S)
                raise EmulatorError(self.exit_message()) from None
            raise

        answer = json.loads(line)
        if not answer["ok"]:
            raise EmulatorError(f"The emulator refused {command}: {answer['error']}")
        return answer["value"]

    def _exchange(self, request: bytes) -> bytes:
        """Send a line to the control socket, and return the line that answers it."""
        address = (self.host, self._control_port)
        with socket.create_connection(address, timeout=ANSWER_TIMEOUT_S) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as file:
                line = file.readline()
        if not line:
            raise ConnectionResetError("the emulator closed the connection")
        return line

    def state(self) -> dict[str, Any]:
        """Return the controller's present state (docs/emulator_reference.md lists its parts)."""
        state: dict[str, Any] = self.do("state")
        return state

    def set(self, **settings: Any) -> None:
        """Change settings of the controller by name, all or none.

        Args:
            settings: The new values (docs/emulator_reference.md lists the names).

        Raises:
            EmulatorError: There is no such setting, or it cannot have this value.
        """
        self.do("set", **settings)

    def wait_for(self, name: str, value: Any, timeout: float = 30.0) -> dict[str, Any]:
        """Return the state, once a field of it has a value.

        Args:
            name: The field.
            value: The value, as JSON has it.
            timeout: Longest time to wait, s.

        Raises:
            EmulatorError: The field has not had this value in time.
        """
        deadline = time.monotonic() + timeout
        while True:
            state = self.state()
            if state[name] == value:
                return state
            if time.monotonic() > deadline:
                raise EmulatorError(
                    f"{name} is {state[name]!r} and did not become {value!r} within {timeout:g} s."
                )
            time.sleep(POLL_S)

    def record(self, after: int = -1) -> Recorded:
        """Return the record after a tick.

        Args:
            after: Number of the tick; the whole record by default.
        """
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "record.npz"
            self.do("save_record", path=str(path), after=after)
            return read_record(path)

    def kill(self) -> None:
        """End the process at once, as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def _path_text(path: str | Path | None) -> str | None:
    """Return a path as the value of a flag; None if there is none."""
    return None if path is None else str(path)


def _list_text(numbers: Sequence[float]) -> str:
    """Return numbers as the value of a flag, separated by commas."""
    return ",".join(map(str, numbers))
