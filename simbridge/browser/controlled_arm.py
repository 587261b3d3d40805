"""An arm behind a controller that follows the goal only while a person holds it there."""

from __future__ import annotations

import math
import time

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import Ask
from simbridge.browser.live_arm import ANYWHERE, LiveArm
from simbridge.browser.setup import StudioSetup
from simbridge.browser.view import Sample
from simbridge.ik.solver import Solver
from simbridge.ik.targets import residual
from simbridge.planning.live.options import STUDIO
from simbridge.robot.kinematics import tool_frame
from simbridge.robot.load import load_robot
from simbridge.running.live_session import LiveSession
from simbridge.running.live_setup import live
from simbridge.running.run_setup import resolve_arm

DEAD_MAN = 0.2
"""So long after the last sign that a person holds the goal the arm brakes, s."""
_AT_REST = ("idle", "engaged", "holding", "ended")


class ControlledArm(LiveArm):
    """An arm on URSim or a real one. It moves only between `engage` and `disengage`, and only while it is driven.

    A goal alone moves nothing. `engage`, `disengage`, `renew` and `end` wait for the arm, and are called
    beside the studio's loop.

    Args:
        setup: What it is made of; its backend is a controller's.
        ask: Shows facts and asks before a real arm moves.

    Attributes:
        allowed: Whether a held goal moves the arm. The studio's loop alone sets it: not while something waits for the
            arm beside the loop.
    """

    def __init__(self, setup: StudioSetup, ask: Ask) -> None:
        self._ask, self._entered, self._driven = ask, False, False
        self.allowed = self._let_go = False
        super().__init__(setup, *_session(setup, ask))
        # When a page last moved a goal that it had grasped.
        self._begun, self._held = time.monotonic(), -math.inf
        self.goal: pin.SE3 = tool_frame(self.robot, self.q)
        # Frame and goal when it was grasped: the frame may have been drawn a moment ago.
        self._grasped = self._from = self.goal

    def engage(self) -> None:
        """Let a driven goal move the arm. On `real` a person is asked first, and after every stop.

        Raises:
            SimbridgeError: Why the arm may not move.
        """
        if self.state == "ended":
            # First of all: the studio's loop reads the state of a session that was entered.
            self._entered = False
            self._session, self.solver = _session(self.setup, self._ask)
        if not self._entered:
            self._session.__enter__()
            self._entered = True
        self._session.engage()
        self.error = ""

    def disengage(self) -> None:
        """Brake; nothing moves until `engage`."""
        if self._entered and self.state != "ended":
            self._session.disengage()

    def renew(self, setup: StudioSetup) -> None:
        """End the session; the next `engage` begins one with another setup.

        Raises:
            SimbridgeError: The setup makes no sense for this arm; the arm keeps the one before.
        """
        setup.solver_settings.build(self.robot)
        self.end()
        self.setup = setup

    def end(self) -> None:
        """Brake, end the session, and write its report."""
        if self._entered and self.state != "ended":
            self._session.__exit__(None, None, None)

    def begin(self, share: float) -> None:
        """It was engaged: from here on a held goal moves it, at most at a share of full speed."""
        self.slow_down(share)
        self.goal, self._let_go, self._held, self.allowed = self._session.tool, False, -math.inf, True

    def forbid(self) -> None:
        """A held goal moves it no more, until `begin`."""
        self.release()
        self.allowed = False

    def drag(self, phase: str, frame: pin.SE3) -> None:
        """A page drags its frame, and by as much the goal; one that was silent must grasp it again: phase "start"."""
        if phase == "end" or not self.allowed:
            self.release()
        elif phase == "start":
            self._held, self._let_go = time.monotonic(), False
            self._grasped, self._from = frame, self.goal
        elif self._held > time.monotonic() - DEAD_MAN:
            self._held = time.monotonic()
            turn = frame.rotation @ self._grasped.rotation.T
            shift = frame.translation - self._grasped.translation
            self.goal = pin.SE3(turn @ self._from.rotation, self._from.translation + shift)
            self.drive()

    def drive(self) -> None:
        """Go towards the goal, for `DEAD_MAN` at most: to be repeated while a person holds it."""
        if self.allowed and self.state not in ("idle", "ended"):
            self._driven, self._let_go = True, False
            self._session.pose(self.goal)

    def release(self) -> None:
        """Nobody holds the goal any more: brake, and hold. The goal is then where the arm is: a drag begins there."""
        self._held = -math.inf
        if self._driven:
            self._driven, self._let_go = False, True
            self._session.halt("released")

    @property
    def state(self) -> str:
        return super().state if self._entered else "idle"

    @property
    def resting(self) -> bool:
        """Whether nothing moves the arm: settings may change, and the studio's loop may sleep."""
        return self.state in _AT_REST

    def advance(self, seconds: float) -> float:
        """The controller's time passes by itself; returns by how much it has, s."""
        self.time = time.monotonic() - self._begun
        if -math.inf < self._held < time.monotonic() - DEAD_MAN:
            self.release()
        if self._let_go:
            # Asked first: once it rests, the last setpoint is where the arm comes to rest.
            self._let_go = not self.resting
            self.goal = self._session.tool
        if self._entered and (stopped := self._session.status.error) is not None:
            self.error = str(stopped)
        return seconds

    def sample(self) -> Sample:
        """What is shown now; while no loop runs, the arm where it was seen last."""
        if (found := super().sample()) is not None:
            return found
        tool = pin.SE3ToXYZQUAT(tool_frame(self.robot, self.q))
        goal = pin.SE3ToXYZQUAT(self.goal)
        left = residual(self.solver.task, goal, tool)
        errors = (float(np.linalg.norm(goal[:3] - tool[:3])), 0.0, 0.0, 0.0, 0.0)
        return Sample(self.time, self.q, np.zeros(self.robot.n), self.q, tool, errors, *left, ())


def _session(setup: StudioSetup, ask: Ask) -> tuple[LiveSession, Solver]:
    """A session, not yet entered, and a solver for the arm that the controller describes."""
    chosen = {name: getattr(setup.options, name) for name in STUDIO}
    arm = resolve_arm(setup.backend, load_robot(setup.robot, **setup.options.links), None, setup.options)[1]
    solver: Solver = setup.solver_settings.build(arm)
    session = live(setup.backend, robot=arm, solver=solver, timeout=DEAD_MAN, max_jump=ANYWHERE, ask=ask, **chosen)
    return session, solver
