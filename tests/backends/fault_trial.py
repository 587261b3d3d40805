"""A trial: a run in one process, the emulated controller in another, and what must hold when it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from simbridge.emulator.errors import EmulatorError
from simbridge.emulator.handle import Emulator
from simbridge.recording.log import LogColumns
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.robot.pose import Array

# From home straight down at 0.1 m/s. The arm begins at home, so the approach is over at once.
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
HOME = load_robot("ur10e").home
# The longest that a test waits for what must happen: no measure of how fast it does.
PATIENCE = 60.0  # s
# A joint slower than this has come to rest.
REST = 1e-3  # rad/s
WELL_ON_ITS_WAY = 0.08  # rad
_PORTS = (29999, 30001, 30002, 30003, 30004)


def line(directory: Path, duration: float = 2.0) -> Path:
    """Write the scenario."""
    path = directory / "line.py"
    path.write_text(LINE.format(duration=duration))
    return path


class Bench:
    """`with Bench("ur10e", "5.12", host) as bench:` keeps an emulator for many trials; `ready()` before each."""

    def __init__(self, robot: str, polyscope: str, host: str, **more: Any) -> None:
        self._new = lambda: Emulator(robot, polyscope=polyscope, host=host, **more)
        self._emulator: Emulator | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._emulator is not None:
            self._emulator.__exit__(kind, error, trace)

    def ready(self) -> Emulator:
        """The emulator without faults, the arm at home; a new one where that is quicker."""
        emulator = self._emulator
        if emulator is not None:
            try:
                usable = emulator.state()["safety_mode"] != "PROTECTIVE_STOP"
            except EmulatorError:
                usable = False
            if not usable:
                self._emulator = None
                emulator.__exit__(None, None, None)
        if self._emulator is None:
            self._emulator = self._new().__enter__()
        emulator = self._emulator
        for port in _PORTS:
            emulator.do("mute", port=port, muted=False)
        for command in ("stop_program", "release_registers", "release_safety"):
            emulator.do(command)
        emulator.do("slider", fraction=1.0)
        emulator.do("remote_control", on=True)
        if emulator.state()["robot_mode"] != "RUNNING":
            emulator.do("power_on_and_release")
            emulator.wait_for("robot_mode", "RUNNING")
        emulator.wait_for("speed_scaling", 1.0)
        move(emulator, HOME)
        return emulator


def move(controller: Emulator, q: Array) -> None:
    """Have the arm stand at q, as somebody at the pendant does."""
    if controller.state()["target_q"] != q.tolist():
        controller.do("run_script", source=f"def f():\nmovej({q.tolist()}, a=8, v=2)\nend\n")
        controller.wait_for("target_q", q.tolist())
    controller.wait_for("runtime_state", "STOPPED")
    controller.wait_for("moving", False)


class Trial:
    """A run on an emulated controller.

    Args:
        controller: Runs already.
        directory: Holds the run when it has ended.
        arguments: Of `simbridge run`, beside --host and --out.
        command: In place of `simbridge run`: a program of one's own.
    """

    def __init__(
        self, controller: Emulator, directory: Path, *arguments: str | Path, command: list[str] | None = None
    ) -> None:
        self.controller, self.directory, self.out = controller, directory, directory / "run"
        state = controller.state()
        self._begin, self._first_tick = np.array(state["target_q"]), state["tick"]
        run = [sys.executable, "-m", "simbridge", "run", *arguments, "--host", controller.host, "--out", self.out]
        self.process = subprocess.Popen(
            command or [str(word) for word in run],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(directory)},
        )

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def _until(self, what: Callable[[], Any], name: str) -> Any:
        deadline = time.monotonic() + PATIENCE
        while not (found := what()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {name}: status {self.process.poll()}, {self.process.communicate()}")
            time.sleep(0.005)
        return found

    def connecting(self) -> None:
        """Wait for the servo process to be there."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.servo = int(self._until(lambda: children.read_text().split(), "servo process")[0])

    def moving(self, by: float = 0.01) -> None:
        """Wait until a joint is that far from where it was, rad."""
        self.connecting()
        self._until(
            lambda: np.abs(np.array(self.controller.state()["target_q"]) - self._begin).max() > by, "motion so far"
        )

    def streaming(self) -> None:
        """Wait until the plan has been streamed for more than half a second."""
        self.moving(WELL_ON_ITS_WAY)

    def tick(self) -> int:
        """The controller's tick now."""
        return int(self.controller.state()["tick"])

    def signal(self, number: signal.Signals) -> None:
        """To the parent alone."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for the end: exit status, and what was said, one paragraph without a traceback."""
        _, err = self.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in err, err
        assert "\n\n" not in err.strip()
        return self.process.returncode, " ".join(err.split())

    def check_nothing_is_left(self) -> None:
        """No servo process, which had the last hold of the memory they shared, and no file but the run's."""
        assert gone(self.servo)
        assert list(self.directory.rglob(".*")) == []

    def log(self) -> LogColumns:
        """What was recorded."""
        log = RunDirectory.open(self.out).log()
        assert len(log.index) and (np.diff(log.index) >= 1).all()
        return log

    def summary(self) -> dict[str, Any]:
        """summary.json."""
        return RunDirectory.open(self.out).summary()

    def check_rest(self, tick: int, within: float = 0.5, *, logged: bool = True) -> None:
        """The arm has come to rest within a time of the controller's clock (s) after a tick, and has stayed since; the
        log goes on until half a second before that tick, or later."""
        state = self.controller.state()
        period = state["timestamp"] / state["tick"]
        while self.tick() < tick + (within + 0.3) / period:
            time.sleep(0.01)
        record = self.controller.record()
        speed = np.abs(np.diff(record.actual_q, axis=0)).max(axis=1) / period
        assert record.tick[1:][speed > REST][-1] <= tick + within / period
        if logged:
            # Of two setpoints that arrive in one tick only the later is in force: so the nearest is looked for.
            mine = record.tick > self._first_tick
            off = np.linalg.norm(record.setpoint[mine] - self.log().setpoint[-1], axis=1)
            assert record.tick[mine][np.nanargmin(off)] >= tick - 0.5 / period


def never_moved(controller: Emulator, tick: int) -> bool:
    """Whether the joints have stood since a tick."""
    record = controller.record()
    since = record.actual_q[record.tick >= tick]
    return bool((since == since[0]).all())


def gone(pid: int) -> bool:
    """Wait until a process is no more, or only waits to be reaped."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
