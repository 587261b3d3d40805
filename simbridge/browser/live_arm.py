"""An arm that follows the goal through a live session: what a simulated and a controlled one share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import ArmState
from simbridge.backends.live_channel import Period
from simbridge.browser.setup import StudioSetup
from simbridge.browser.view import Sample
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.ik.solver import Diagnosis, Solver
from simbridge.ik.targets import residual
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.running.live_session import LiveSession
from simbridge.text import millimetres

# In the studio a goal may be anywhere: how far the arm follows it is what is looked at.
ANYWHERE = (100.0, 6.3)


class Refused(SimbridgeError, RuntimeError):
    """The studio does not do what a page asks for.

    Attributes:
        reason: Why not, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class LiveArm(ABC):
    """An arm and its live session.

    Args:
        setup: What it is made of.
        session: Not yet entered.
        solver: Its settings and names are shown; the loop has its own.

    Attributes:
        setup, solver: As given.
        robot: The arm.
        time: On the session's clock, s.
        error: What stopped the arm last, as a sentence; "" once it goes on.
        goal: Where the arm is sent, in base_link; None before the first.
    """

    def __init__(self, setup: StudioSetup, session: LiveSession, solver: Solver) -> None:
        self.setup, self.solver, self._session = setup, solver, session
        self.robot: Robot = session.robot
        self.time, self.error = 0.0, ""
        self.goal: pin.SE3 | None = None

    @property
    def directory(self) -> Path:
        """Of its session."""
        return self._session.directory

    @property
    @abstractmethod
    def resting(self) -> bool:
        """Whether nothing moves."""

    def follow(self, goal: pin.SE3) -> None:
        """Set the goal, a pose in base_link."""
        self.goal = goal

    @abstractmethod
    def advance(self, seconds: float) -> float:
        """Let time pass, s; returns by how much it did."""

    @abstractmethod
    def end(self) -> None:
        """End the session."""

    @property
    def q(self) -> Array:
        """Joint positions of the arm (n,), rad."""
        state = self._session.state
        return self._session.begins_at if state is None else state.q

    @property
    def state(self) -> str:
        """Of its session, as in `LiveStatus`."""
        return self._session.status.state

    def sample(self) -> Sample | None:
        """What is shown now; None before the first period."""
        last, state = self._session.newest, self._session.state
        if last is None or state is None:
            return None
        goal = last.target if self.goal is None else pin.SE3ToXYZQUAT(self.goal)
        distance, angle = residual(self.solver.task, goal, tool_path(self.robot, state.q[None])[0])
        return Sample(
            time=self.time,
            q=state.q,
            qd=state.qd,
            solution=last.solution,
            target=last.target,
            errors=_errors(self.robot, last, state, goal),
            distance=distance,
            angle=angle,
            causes=tuple(cause.text for cause in last.causes),
        )

    def posture_at(self, pose: pin.SE3, name: str) -> Array:
        """Joint positions (n,), rad, in which the TCP is at a pose in base_link, which the user knows by a name.

        Raises:
            InvalidParameter: It is out of reach.
        """
        left = out_of_reach(self.robot, pose.translation)
        found = None if left > 0.0 else self.solver.solve(pose, self.robot.home)
        left = found.distance if found is not None else left
        if found is None or left > 1e-3:
            raise InvalidParameter(name, f"{millimetres(left)} mm out of reach", "within the arm's reach")
        return found.q

    def slow_down(self, share: float) -> None:
        """Move at most at this share of full speed, 0 to 1."""
        self._session.slow_down(share)


def _errors(robot: Robot, last: Period, state: ArmState, goal: Array) -> tuple[float, ...]:
    """The distances, m, from goal to target, to solution, to setpoint, to the servo law's target, to the arm."""
    law = last.setpoint if state.controller_target is None else state.controller_target
    points = tool_path(robot, np.stack([last.solution, last.setpoint, law, state.q]))[:, :3]
    way = np.vstack([goal[:3], last.target[:3], points])
    return tuple(np.linalg.norm(np.diff(way, axis=0), axis=1).tolist())


def dexterity_at(robot: Robot, q: Array, task: str) -> tuple[float, float]:
    """Condition number and manipulability of a task's Jacobian at joint positions (n,), rad."""
    found = Diagnosis(robot, q, pin.SE3ToXYZQUAT(pin.SE3.Identity()), 0, task)
    return found.condition, found.manipulability


def out_of_reach(robot: Robot, point: Array) -> float:
    """By how much a point in base_link is further from the first joint than the arm is long, m; 0 where it is not."""
    first = robot.placements[0][:3, 3]
    return max(0.0, float(np.linalg.norm(np.asarray(point) - first)) - robot.reach)
