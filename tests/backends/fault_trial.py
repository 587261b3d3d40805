"""A trial: `simbridge run` in one process, the emulated controller in another, and what must hold when it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.emulator.handle import Emulator, Recorded
from simbridge.recording.log import LogColumns
from simbridge.recording.run_directory import RunDirectory

# From home 0.25 m straight down, in 2.5 s: the arm is where the plan begins, so the approach takes no time.
LINE = """
import numpy as np
from simbridge import Robot, Scenario
from simbridge.kinematics import tool_path
from simbridge.trajectory import Trajectory

def scenario(robot: Robot) -> Scenario:
    times = np.linspace(0.0, 2.5, 251)
    poses = np.tile(tool_path(robot, robot.home[None])[0], (251, 1))
    poses[:, 2] -= 0.1 * times
    return Scenario(Trajectory(times, poses))
"""
# The longest that a test waits for what must happen: no measure of how fast it does.
PATIENCE = 60.0  # s
# A joint slower than this has come to rest.
REST = 1e-3  # rad/s
WELL_ON_ITS_WAY = 0.08  # rad


class Trial:
    """A run of `LINE` on an emulated controller.

    Args:
        controller: Runs already.
        directory: Where the scenario is written, and the run is kept.
        flags: Of `simbridge run`, beside the scenario, --host and --out.
        command: In place of `simbridge run`: a program of one's own.
    """

    def __init__(self, controller: Emulator, directory: Path, *flags: str, command: list[str] | None = None) -> None:
        self.controller, self.out = controller, directory / "run"
        scenario = directory / "line.py"
        scenario.write_text(LINE)
        self._home = np.array(controller.state()["actual_q"])
        run = [sys.executable, "-m", "simbridge", "run", str(scenario), "--host", controller.host]
        self.process = subprocess.Popen(
            command or [*run, "--out", str(self.out), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(directory)},
        )

    def has(self, what: Callable[[], Any], name: str) -> Any:
        """Wait until something is true of the run, which must not end before."""
        deadline = time.monotonic() + PATIENCE
        while not (found := what()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{name} was not seen: {self.process.poll()} {self.process.communicate()}")
            time.sleep(0.005)
        return found

    def servo_process(self) -> int:
        """Wait for the servo process; its id."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(self.has(lambda: children.read_text().split(), "the servo process")[0])

    def streaming(self) -> Trial:
        """Wait until the plan is well on its way."""
        self.servo = self.servo_process()

        def far() -> bool:
            return np.abs(np.array(self.controller.state()["target_q"]) - self._home).max() > WELL_ON_ITS_WAY

        self.has(far, "motion")
        return self

    def tick(self) -> int:
        """The controller's tick now."""
        return int(self.controller.state()["tick"])

    def end(self) -> tuple[int, str]:
        """Wait for the end: exit status, and what was said as one line."""
        _, err = self.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in err, err
        paragraph = " ".join(err.split())
        assert "\n\n" not in err.strip()
        return self.process.returncode, paragraph

    def leaves_nothing_behind(self) -> None:
        """No servo process, no file shared with it."""
        assert gone(self.servo)
        left = [path for path in self.out.parent.rglob("*") if path.name in (".states", ".setpoints")]
        assert left == []

    def log(self) -> LogColumns:
        """What was recorded, whole up to its end."""
        log = RunDirectory.open(self.out).log()
        assert len(log.index) and (np.diff(log.index) >= 1).all()
        return log

    def outcome(self) -> str:
        """What summary.json says how it ended."""
        return str(RunDirectory.open(self.out).summary()["outcome"])

    def reaches(self, record: Recorded, tick: int) -> None:
        """The log goes on to at most half a second before a tick of the controller."""
        # Of two setpoints that arrive in one tick only the later one is in force: so the nearest is looked for.
        off = np.linalg.norm(record.setpoint - self.log().setpoint[-1], axis=1)
        assert record.tick[np.nanargmin(off)] >= tick - 0.5 / period(record, self.controller)


def period(_record: Recorded, controller: Emulator) -> float:
    """The controller's, s."""
    state = controller.state()
    return float(state["timestamp"] / state["tick"])


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


def interrupt(trial: Trial) -> None:
    """Ctrl-C."""
    trial.process.send_signal(signal.SIGINT)
