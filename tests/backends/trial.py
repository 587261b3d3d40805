"""A run on an emulated controller while a test interferes, and what must hold when it has ended."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest import mock

import numpy as np

from simbridge.__main__ import main
from simbridge.cli import command_line, run_command
from simbridge.emulator.handle import Emulator
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import LogColumns
from simbridge.running import run_ending
from tests.controllers import REALTIME_FLAGS
from tests.optional_packages import LINK_FLAGS
from tests.patience import PATIENCE

# From home straight down at 0.1 m/s. The arm starts at home, so the approach takes no time.
LINE = """
import numpy as np
from simbridge import Robot, Scenario
from simbridge.robot.kinematics import tool_path
from simbridge.trajectory import Trajectory

def scenario(robot: Robot) -> Scenario:
    times = np.linspace(0.0, {duration}, 201)
    poses = np.tile(tool_path(robot, robot.home[None])[0], (201, 1))
    poses[:, 2] -= 0.1 * times
    return Scenario(Trajectory(times, poses))
"""
# A joint slower than this is at rest.
REST = 1e-3  # rad/s
# A joint that has moved this far has done so for more than half a second.
WELL_UNDER_WAY = 0.08  # rad
# By how much a log may end before the arm is stopped.
LOG_LATENESS = 0.5  # s

# Processes that run the command line are forked from one that has imported it and compiled its
# kernels.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.backends.preload"])


def write_line(directory: Path, duration: float = 2.0) -> Path:
    """Write the scenario of a straight line, and return its file.

    Args:
        directory: Its directory.
        duration: Duration of the motion, s.
    """
    path = directory / "line.py"
    path.write_text(LINE.format(duration=duration))
    return path


def process_ends(pid: int) -> bool:
    """Wait until a process has ended, and return whether it has; it may still have to be reaped."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        # The state follows the name, which is in parentheses: Z is a zombie, X is dead.
        state = status.rpartition(")")[2].split()[0]
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


def find_servo_process(pid: int) -> int | None:
    """Return the servo process that a process has started, of a replay or of a live session.

    Returns:
        Its id; None without one.
    """
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                command = Path(f"/proc/{child}/cmdline").read_text()
                if "backends.servo_process" in command or "sessions.process\0servo" in command:
                    return int(child)
    return None


class Trial:
    """A run on an emulated controller, in a thread of this process.

    Args:
        controller: A running controller that is ready.
        directory: Holds the run when it has ended.
        arguments: Arguments of `simbridge run` in addition to --host and --out.
        names_link: Whether the link is named where ur_rtde is not installed, of which the run would
            otherwise print a note.

    Attributes:
        controller: The controller.
        directory: The directory.
        out: The run directory.
        pid: The process that runs.
        servo: Its servo process, from `wait_until_connecting` on.
    """

    servo: int

    def __init__(
        self,
        controller: Emulator,
        directory: Path,
        *arguments: str | Path,
        names_link: bool = True,
    ) -> None:
        self.controller = controller
        self.directory = directory
        self.out = directory / "run"

        # Where the arm's targets were at the beginning (n,), rad, and at which tick.
        state = controller.state()
        self._begin = np.array(state["target_q"])
        self._first_tick = state["tick"]

        command = ("simbridge", "run", *arguments, *REALTIME_FLAGS)
        if names_link and "--link" not in arguments:
            command += LINK_FLAGS
        destination = ("--host", controller.host, "--out", self.out)
        self._arguments = [str(argument) for argument in (*command, *destination)]
        self._start()

    def _start(self) -> None:
        """Start the run."""
        self.pid = os.getpid()
        self._errors = io.StringIO()
        self._thread = threading.Thread(target=self._run_here, daemon=True)
        self._thread.start()

    def _run_here(self) -> None:
        """Run the command line in this thread, and keep its status and what it prints."""
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(self._errors),
            temporary_files_in(self.directory),
            mock.patch.object(run_ending, "write_report", _write_no_report),
        ):
            self._status = command_line.main(self._arguments[1:])

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.join(PATIENCE)

    @property
    def has_ended(self) -> bool:
        """True if the run has ended."""
        return not self._thread.is_alive()

    def _wait(self) -> tuple[int, str]:
        """Wait for the end of the run, and return its exit status and what it wrote to stderr."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the run did not end"
        return self._status, self._errors.getvalue()

    def _wait_for(self, read: Callable[[], Any], name: str) -> Any:
        """Wait until a value is true, and return it.

        Args:
            read: Returns the value.
            name: Its name, if it never is.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            value = read()
            if value:
                return value
            if self.has_ended or time.monotonic() > deadline:
                raise AssertionError(f"no {name}: {self._wait()}")
            time.sleep(0.005)

    def joint_travel(self) -> float:
        """Return how far the joint targets are from where they began, rad: the largest."""
        target = np.array(self.controller.state()["target_q"])
        return float(np.abs(target - self._begin).max())

    def wait_until_connecting(self) -> None:
        """Wait until the servo process exists."""
        self.servo = int(self._wait_for(lambda: find_servo_process(self.pid), "servo process"))

    def wait_until_moving(self, by: float = 0.01) -> None:
        """Wait until a joint has moved that far, rad."""
        self.wait_until_connecting()
        self._wait_for(lambda: self.joint_travel() > by, "motion")

    def wait_until_streaming(self) -> None:
        """Wait until the plan has been streamed for more than half a second."""
        self.wait_until_moving(WELL_UNDER_WAY)

    def wait_until_logged(self) -> None:
        """Wait until the first chunk of samples is in the log's file."""
        self._wait_for(lambda: len(RunDirectory.open(self.out).log().index), "logged sample")

    def tick(self) -> int:
        """Return the controller's current tick."""
        return int(self.controller.state()["tick"])

    def wait_for_end(self) -> tuple[int, str]:
        """Wait for the end of the run, whose message is one paragraph without a traceback.

        Returns:
            The exit status, and the message as one line.
        """
        status, errors = self._wait()
        assert "Traceback" not in errors, errors
        assert "\n\n" not in errors.strip()
        return status, " ".join(errors.split())

    def check_nothing_is_left(self) -> None:
        """Check that the servo process has ended and that no file is left except the run's.

        The servo process is the last to hold the shared memory.
        """
        assert process_ends(self.servo)
        assert list(self.directory.rglob(".*")) == []

    def log(self) -> LogColumns:
        """Return the log, whose samples are in order."""
        log = RunDirectory.open(self.out).log()
        assert len(log.index)
        assert (np.diff(log.index) >= 1).all()
        return log

    def summary(self) -> dict[str, Any]:
        """Return the contents of summary.json."""
        return RunDirectory.open(self.out).summary()

    def check_rest(self, tick: int, within: float = 0.5, *, logged: bool = True) -> None:
        """Check that the arm has come to rest soon after a tick and has stayed at rest.

        Args:
            tick: The tick.
            within: The longest time from the tick until the arm is at rest, s of the controller's
                clock.
            logged: If the log must go on until half a second before the tick, or later.
        """
        state = self.controller.state()
        period = state["timestamp"] / state["tick"]
        while self.tick() < tick + (within + 0.3) / period:
            time.sleep(0.01)

        record = self.controller.record(after=self._first_tick)
        speed = np.abs(np.diff(record.actual_q, axis=0)).max(axis=1) / period
        moving_ticks = record.tick[1:][speed > REST]
        assert moving_ticks[-1] <= tick + within / period

        if logged:
            # If two setpoints arrive in one tick, only the later is in force: so the nearest is
            # searched.
            distance = np.linalg.norm(record.setpoint - self.log().setpoint[-1], axis=1)
            last_logged_tick = record.tick[np.nanargmin(distance)]
            assert last_logged_tick >= tick - LOG_LATENESS / period


class ProcessTrial(Trial):
    """A run on an emulated controller, in a process of its own, for tests that send it signals.

    Args:
        controller: A running controller that is ready.
        directory: Holds the run when it has ended.
        arguments: Arguments of `simbridge run` in addition to --host and --out.
        program: Called with the controller's address in the process, instead of `simbridge run`.
    """

    def __init__(
        self,
        controller: Emulator,
        directory: Path,
        *arguments: str | Path,
        program: Callable[[str], int] | None = None,
    ) -> None:
        self._program = program
        super().__init__(controller, directory, *arguments)

    def _start(self) -> None:
        self._error_file = self.directory.parent / f"{self.directory.name}.stderr"
        # It exists even if the process is killed before it has opened it.
        self._error_file.touch()
        self._process = _PROCESSES.Process(
            target=_run_in_process,
            args=(
                self._arguments,
                self.controller.host,
                self.directory,
                self._error_file,
                self._program,
            ),
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    @property
    def has_ended(self) -> bool:
        return not self._process.is_alive()

    def _wait(self) -> tuple[int, str]:
        self._process.join(PATIENCE)
        assert self._process.exitcode is not None, "the run did not end"
        return self._process.exitcode, self._error_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, not to its servo process."""
        os.kill(self.pid, number)


def _write_no_report(*_: object) -> None:
    """Do nothing, instead of writing the page, which takes most of a short run's time."""


def _run_in_process(
    arguments: list[str],
    host: str,
    directory: Path,
    errors: Path,
    program: Callable[[str], int] | None,
) -> None:
    """Run the command line, or a program, in this process and end it.

    Args:
        arguments: The command line.
        host: The controller's address.
        directory: Holds its temporary files.
        errors: Takes what is written to stderr.
        program: Called with the address instead of the command line.
    """
    with errors.open("wb") as file:
        os.dup2(file.fileno(), 2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)

    os.environ["TMPDIR"] = str(directory)
    tempfile.tempdir = str(directory)
    run_ending.write_report = _write_no_report
    # There is no terminal to ask at: a real arm is confirmed here.
    run_command._operator = lambda _line: lambda _facts, _question: True

    sys.argv = arguments
    sys.exit(main() if program is None else program(host))


@contextlib.contextmanager
def temporary_files_in(directory: Path) -> Iterator[None]:
    """Make the temporary files of this process and its children in a directory."""
    before = tempfile.tempdir
    tempfile.tempdir = str(directory)
    os.environ["TMPDIR"] = str(directory)
    try:
        yield
    finally:
        del os.environ["TMPDIR"]
        tempfile.tempdir = before
