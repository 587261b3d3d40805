"""An arm on URSim or a real one, which follows the goal only while a person holds it."""

from __future__ import annotations

import math
import time

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import Ask
from simbridge.browser.setup import StudioSetup
from simbridge.browser.snapshot import Snapshot
from simbridge.browser.studio_arm import MAX_JUMP, StudioArm
from simbridge.ik.settings import is_function
from simbridge.ik.solver import Solver
from simbridge.ik.targets import residual
from simbridge.robot.kinematics import tool_frame
from simbridge.running.arm_and_solver import resolve_arm
from simbridge.sessions.options import STUDIO
from simbridge.sessions.session import LiveSession
from simbridge.sessions.setup import live

# So long after the last sign that a person holds the goal the arm brakes, s.
DEAD_MAN_S = 0.2

# States of a session in which nothing moves the arm.
STATES_AT_REST = ("idle", "engaged", "holding", "ended")


class ControlledArm(StudioArm):
    """An arm that moves only between `engage` and `disengage`, and only while it is driven.

    A goal alone moves nothing. `engage`, `disengage`, `renew` and `end` wait for the arm, and are
    called in the background of the studio's loop.

    Args:
        setup: The settings that it is made from.
        ask: Shows facts and asks before a real arm moves.

    Attributes:
        allowed: Whether a held goal moves the arm. The studio's loop alone sets it: not while
            something in the background waits for the arm.
    """

    def __init__(self, setup: StudioSetup, ask: Ask) -> None:
        self._ask = ask
        # Whether the session was entered.
        self._entered = False
        # Whether the arm was sent towards the goal since it was released.
        self._driven = False
        # Whether it brakes since it was released.
        self._braking = False
        self.allowed = False

        session, solver = _make_session(setup, ask)
        super().__init__(setup, session, solver)
        self.goal: pin.SE3 = tool_frame(self.robot, self.q)
        # When the arm was made, s.
        self._begin = time.monotonic()
        # When a page last moved a goal that it had grasped, s; before all time while none does.
        self._last_drag = -math.inf
        # The page's frame and the goal when it was grasped: the frame may have been drawn a moment
        # ago.
        self._grasped_frame = self.goal
        self._grasped_goal = self.goal

    def engage(self) -> None:
        """Let a driven goal move the arm. On `real` a person is asked first, after every stop too.

        Raises:
            SimbridgeError: Why the arm may not move.
        """
        if self.state == "ended":
            # First of all: the studio's loop reads the state of a session that was entered.
            self._entered = False
            self._session, self.solver = _make_session(self.setup, self._ask)
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
        setup.make_solver(self.robot)
        self.end()
        self.setup = setup

    def end(self) -> None:
        """Brake, end the session, and write its report."""
        if self._entered and self.state != "ended":
            self._session.__exit__(None, None, None)

    def begin(self, speed: float) -> None:
        """Let a held goal move the arm, which was engaged.

        Args:
            speed: Fraction of full speed, at most.
        """
        self.slow_down(speed)
        self.goal = self._session.tool
        self._braking = False
        self._last_drag = -math.inf
        self.allowed = True

    def forbid(self) -> None:
        """Let a held goal move the arm no more, until `begin`."""
        self.release()
        self.allowed = False

    def drag(self, phase: str, frame: pin.SE3) -> None:
        """Move the goal by as much as a page drags its frame.

        A page that was silent must grasp the frame again.

        Args:
            phase: "start", "update" or "end".
            frame: The frame, in base_link.
        """
        now = time.monotonic()
        if phase == "end" or not self.allowed:
            self.release()
        elif phase == "start":
            self._last_drag = now
            self._braking = False
            self._grasped_frame = frame
            self._grasped_goal = self.goal
        elif self._last_drag > now - DEAD_MAN_S:
            self._last_drag = now
            turn = frame.rotation @ self._grasped_frame.rotation.T
            shift = frame.translation - self._grasped_frame.translation
            begin = self._grasped_goal
            self.goal = pin.SE3(turn @ begin.rotation, begin.translation + shift)
            self.drive()

    def drive(self) -> None:
        """Go towards the goal, for `DEAD_MAN_S` at most: repeated while a person holds it."""
        if self.allowed and self.state not in ("idle", "ended"):
            self._driven = True
            self._braking = False
            self._session.pose(self.goal)

    def release(self) -> None:
        """Brake and hold, as nobody holds the goal any longer.

        The goal is then where the arm is: a drag begins there.
        """
        self._last_drag = -math.inf
        if self._driven:
            self._driven = False
            self._braking = True
            self._session.halt("released")

    @property
    def state(self) -> str:
        return super().state if self._entered else "idle"

    @property
    def resting(self) -> bool:
        """True if nothing moves the arm: settings may change, and the studio's loop may sleep."""
        return self.state in STATES_AT_REST

    def advance(self, _seconds: float) -> None:
        """Follow the controller's time, which passes by itself."""
        now = time.monotonic()
        self.time = now - self._begin
        # The page that dragged has fallen silent; after a release there was no drag (-inf).
        if -math.inf < self._last_drag < now - DEAD_MAN_S:
            self.release()

        if self._braking:
            # Asked first: once it rests, the last setpoint is where the arm comes to rest.
            self._braking = not self.resting
            self.goal = self._session.tool

        stop = self._session.status.error if self._entered else None
        if stop is not None:
            self.error = str(stop)

    def snapshot(self) -> Snapshot:
        """Return what is shown now; while no loop runs, the arm where it was seen last."""
        snapshot = super().snapshot()
        if snapshot is not None:
            return snapshot

        tool = pin.SE3ToXYZQUAT(tool_frame(self.robot, self.q))
        goal = pin.SE3ToXYZQUAT(self.goal)
        distance, angle = residual(self.solver.task, goal, tool)
        whole_error = float(np.linalg.norm(goal[:3] - tool[:3]))
        return Snapshot(
            time=self.time,
            q=self.q,
            qd=np.zeros(self.robot.n),
            solution=self.q,
            target=tool,
            errors=(whole_error, 0.0, 0.0, 0.0, 0.0),
            distance=distance,
            angle=angle,
            causes=(),
        )


def _make_session(setup: StudioSetup, ask: Ask) -> tuple[LiveSession, Solver]:
    """Return a session, not yet entered, and a solver for the arm that the controller describes."""
    options = {name: getattr(setup.options, name) for name in STUDIO}
    arm = resolve_arm(setup.backend, setup.bare_arm, None, setup.options)[1]
    solver = setup.make_solver(arm)
    session = live(
        setup.backend,
        robot=arm,
        # A user's solver is made again in the loop's process.
        solver=setup.solver if is_function(setup.solver) else solver,
        timeout=DEAD_MAN_S,
        max_jump=MAX_JUMP,
        ask=ask,
        **options,
    )
    return session, solver
