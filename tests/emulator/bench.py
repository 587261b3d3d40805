"""A controller without its network, on which programs and stops are tried."""

from __future__ import annotations

import numpy as np

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.state import profile
from simbridge.robot import load_robot
from simbridge.robot.parts import DhTable
from simbridge.robot.robot import Robot
from simbridge.ur.tables import RobotMode, RuntimeState

ROBOT = load_robot("ur10e")
# The controller's cycle, s.
DT = 0.002
# How long the arm may take to be powered on and release its brakes, s.
LONGEST_START = 2.0
# In a program, a goal that is 1 rad ahead of `q` in the first joint.
AHEAD = "[q[0] + 1.0, q[1], q[2], q[3], q[4], q[5]]"


class Bench:
    """A controller whose ticks are called directly, and its messages.

    Attributes:
        controller: The controller: by default, an e-Series controller (500 Hz) of a UR10e.
        state: Of the controller.
        messages: Kind, text and line of each event.
        q: Target joint positions (6,), rad, after each tick; a program's begin with those before.
    """

    def __init__(
        self,
        boot_time: float = 0.0,
        dh: DhTable | None = None,
        *,
        robot: Robot = ROBOT,
        polyscope: str = "5.12",
    ) -> None:
        self.controller = EmulatedController(
            robot, profile(polyscope), ScriptProgram, boot_time=boot_time, dh=dh
        )
        self.state = self.controller.state
        self.messages: list[tuple[str, str, int]] = []
        self.controller.on_event = lambda event: self.messages.append(
            (event.kind, event.text, event.line)
        )
        self.q: list[np.ndarray] = []

    def tick(self, seconds: float = DT) -> None:
        """Advance the controller's time, s."""
        for _ in range(max(1, round(seconds / self.controller.period))):
            self.controller.tick()
            self.q.append(self.state.target_q)

    def running(self) -> Bench:
        """Power the arm on, release its brakes, and return this bench."""
        self.controller.brake_release()
        for _ in range(round(LONGEST_START / DT)):
            if self.state.robot_mode == RobotMode.RUNNING:
                return self
            self.tick()
        raise AssertionError(f"the arm does not run within {LONGEST_START} s")

    def load(self, *lines: str) -> None:
        """Load a program and wait until it is compiled; in it, `q` holds the joint positions."""
        body = "\n".join(("q = get_target_joint_positions()", *lines))
        self.controller.load_script(f"def test():\n{body}\nend\n")
        self.controller.program.compilation.join()
        self.q = [self.state.target_q]

    def start_secondary(self) -> None:
        """Start a secondary program that was sent, and wait until it is compiled.

        One that is compiled at once may have ended.
        """
        self.tick()
        program = self.controller._secondary._program
        if program is not None:
            program.compilation.join()

    def finish(self, most: float = 60.0) -> None:
        """Tick until the program has ended."""
        for _ in range(round(most / DT)):
            if self.state.runtime_state == RuntimeState.STOPPED:
                return
            self.tick()
        raise AssertionError(
            f"the program is still running after {most} s; messages: {self.messages}"
        )

    def speeds(self) -> np.ndarray:
        """Return the joint speeds (K, 6), rad/s, from tick to tick."""
        return np.diff(np.array(self.q), axis=0) / DT

    def joint(self, i: int = 0) -> np.ndarray:
        """Return the positions of a joint (K,), rad."""
        return np.array(self.q)[:, i]

    @property
    def at_rest(self) -> bool:
        """True if no joint has a target speed."""
        return not self.state.target_qd.any()

    def texts(self, kind: str) -> str:
        """Return the texts of the messages of a kind, as one."""
        return " ".join(text for event_kind, text, _ in self.messages if event_kind == kind)
