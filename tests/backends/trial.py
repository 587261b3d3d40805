"""A trial: `simbridge run` on an emulated controller while a test interferes, and what must hold when it has ended."""

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
from simbridge.cli import command_line
from simbridge.emulator.handle import Emulator
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.samples import LogColumns
from simbridge.running import run_ending
from tests.controllers import REALTIME_FLAGS

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
# The longest wait for something that must happen; how fast it happens is not tested.
PATIENCE = 180.0  # s
# A joint slower than this is at rest.
REST = 1e-3  # rad/s
WELL_UNDER_WAY = 0.08  # rad

# Processes that run the command line are forked from one that has imported it and compiled its kernels.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.backends.preload"])


def line(directory: Path, duration: float = 2.0) -> Path:
    """Write the scenario."""
    path = directory / "line.py"
    path.write_text(LINE.format(duration=duration))
    return path


def gone(pid: int) -> bool:
    """Wait until a process has ended; it may still have to be reaped."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def servo_process_of(pid: int) -> int | None:
    """The servo process that a process has started, of a replay or of a live session; None without one."""
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
        controller: Running and ready.
        directory: Holds the run when it has ended.
        arguments: Of `simbridge run`, in addition to --host and --out.
    """

    def __init__(self, controller: Emulator, directory: Path, *arguments: str | Path) -> None:
        self.controller, self.directory, self.out = controller, directory, directory / "run"
        state = controller.state()
        self._begin, self._first_tick = np.array(state["target_q"]), state["tick"]
        words = (
            "simbridge",
            "run",
            *arguments,
            *REALTIME_FLAGS,
            "--host",
            controller.host,
            "--out",
            self.out,
        )
        self._arguments = [str(word) for word in words]
        self._start()

    def _start(self) -> None:
        self.pid = os.getpid()
        self._errors = io.StringIO()
        self._thread = threading.Thread(target=self._run_here, daemon=True)
        self._thread.start()

    def _run_here(self) -> None:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(self._errors),
            temporary_files_in(self.directory),
            mock.patch.object(run_ending, "write_report", _no_report),
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

    def _ended(self) -> bool:
        return not self._thread.is_alive()

    def _wait(self) -> tuple[int, str]:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the run did not end"
        return self._status, self._errors.getvalue()

    def _until(self, what: Callable[[], Any], name: str) -> Any:
        deadline = time.monotonic() + PATIENCE
        while not (found := what()):
            if self._ended() or time.monotonic() > deadline:
                raise AssertionError(f"no {name}: {self._wait()}")
            time.sleep(0.005)
        return found

    def connecting(self) -> None:
        """Wait until the servo process exists."""
        self.servo = int(self._until(lambda: servo_process_of(self.pid), "servo process"))

    def moving(self, by: float = 0.01) -> None:
        """Wait until a joint has moved that far, rad."""
        self.connecting()
        self._until(
            lambda: np.abs(np.array(self.controller.state()["target_q"]) - self._begin).max() > by,
            "motion",
        )

    def streaming(self) -> None:
        """Wait until the plan has been streamed for more than half a second."""
        self.moving(WELL_UNDER_WAY)

    def tick(self) -> int:
        """The controller's current tick."""
        return int(self.controller.state()["tick"])

    def end(self) -> tuple[int, str]:
        """Wait for the end: exit status, and the message, which is one paragraph without a traceback."""
        status, errors = self._wait()
        assert "Traceback" not in errors, errors
        assert "\n\n" not in errors.strip()
        return status, " ".join(errors.split())

    def check_nothing_is_left(self) -> None:
        """The servo process, the last to hold the shared memory, has ended; no file is left except the run's."""
        assert gone(self.servo)
        assert list(self.directory.rglob(".*")) == []

    def log(self) -> LogColumns:
        """The log."""
        log = RunDirectory.open(self.out).log()
        assert len(log.index) and (np.diff(log.index) >= 1).all()
        return log

    def summary(self) -> dict[str, Any]:
        """summary.json."""
        return RunDirectory.open(self.out).summary()

    def check_rest(self, tick: int, within: float = 0.5, *, logged: bool = True) -> None:
        """The arm came to rest within a time of the controller's clock (s) after a tick and has stayed at rest; the log
        goes on until half a second before that tick, or later."""
        state = self.controller.state()
        period = state["timestamp"] / state["tick"]
        while self.tick() < tick + (within + 0.3) / period:
            time.sleep(0.01)
        record = self.controller.record(after=self._first_tick)
        speed = np.abs(np.diff(record.actual_q, axis=0)).max(axis=1) / period
        assert record.tick[1:][speed > REST][-1] <= tick + within / period
        if logged:
            # If two setpoints arrive in one tick, only the later is in force: so the nearest is searched.
            distance = np.linalg.norm(record.setpoint - self.log().setpoint[-1], axis=1)
            assert record.tick[np.nanargmin(distance)] >= tick - 0.5 / period


class ProcessTrial(Trial):
    """A run on an emulated controller, in a process of its own, for tests that send it signals.

    Args:
        controller, directory, arguments: As for `Trial`.
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

    def _ended(self) -> bool:
        return not self._process.is_alive()

    def _wait(self) -> tuple[int, str]:
        self._process.join(PATIENCE)
        assert self._process.exitcode is not None, "the run did not end"
        return self._process.exitcode, self._error_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, not to its servo process."""
        os.kill(self.pid, number)


def _no_report(*_: object) -> None:
    """Instead of the page, which takes most of a short run's time."""


def _run_in_process(
    arguments: list[str],
    host: str,
    directory: Path,
    errors: Path,
    program: Callable[[str], int] | None,
) -> None:
    with errors.open("wb") as file:
        os.dup2(file.fileno(), 2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
    os.environ["TMPDIR"] = tempfile.tempdir = str(directory)
    run_ending.write_report = _no_report
    sys.argv = arguments
    sys.exit(main() if program is None else program(host))


@contextlib.contextmanager
def temporary_files_in(directory: Path) -> Iterator[None]:
    """Temporary files of this process and its children are made in a directory."""
    before, tempfile.tempdir = tempfile.tempdir, str(directory)
    os.environ["TMPDIR"] = str(directory)
    try:
        yield
    finally:
        del os.environ["TMPDIR"]
        tempfile.tempdir = before
