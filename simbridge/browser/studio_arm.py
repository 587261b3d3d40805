"""An arm that follows the goal through a live session, simulated or behind a controller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.browser.explanation import explain_motion
from simbridge.browser.setup import StudioSetup
from simbridge.browser.snapshot import Snapshot, out_of_reach
from simbridge.browser.view import PageView
from simbridge.errors import InvalidParameter
from simbridge.ik.solver import Solver
from simbridge.ik.targets import residual
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.sessions.session import LiveSession
from simbridge.text import millimetres

# In the studio a goal may be anywhere, m and rad from the last one: how far the arm follows it is
# what is looked at.
MAX_JUMP = (100.0, 6.3)

# A posture whose tool is nearer to a pose than this, m, attains it.
MAX_POSTURE_ERROR_M = 1e-3


class StudioArm:
    """An arm and its live session, which is not yet entered.

    Attributes:
        setup: The settings that it is made from.
        solver: A solver, whose settings and names are shown; the session's loop has its own.
        robot: The arm.
        time: Instant on the session's clock, s.
        error: What stopped the arm last, as a sentence; "" once it goes on.
        goal: Pose that the arm is sent to, in base_link; None before the first.
    """

    def __init__(self, setup: StudioSetup, session: LiveSession, solver: Solver) -> None:
        self.setup = setup
        self.solver = solver
        self._session = session
        self.robot: Robot = session.robot
        self.time = 0.0
        self.error = ""
        self.goal: pin.SE3 | None = None

    @property
    def q(self) -> Array:
        """Joint positions of the arm (n,), rad."""
        state = self._session.state
        return self._session.begins_at if state is None else state.q

    @property
    def state(self) -> str:
        """The state of its session, as in `LiveStatus`."""
        return self._session.status.state

    def snapshot(self) -> Snapshot | None:
        """Return what is shown now; None before the first period."""
        period = self._session.newest
        state = self._session.state
        if period is None or state is None:
            return None

        # The way from the goal to the arm, whose steps are the sources of the error.
        goal = period.target if self.goal is None else pin.SE3ToXYZQUAT(self.goal)
        law = period.setpoint if state.controller_target is None else state.controller_target
        postures = np.stack([period.solution, period.setpoint, law, state.q])
        tools = tool_path(self.robot, postures)
        positions = np.vstack([goal[:3], period.target[:3], tools[:, :3]])
        errors = np.linalg.norm(np.diff(positions, axis=0), axis=1)

        distance, angle = residual(self.solver.task, goal, tools[-1])
        return Snapshot(
            time=self.time,
            q=state.q,
            qd=state.qd,
            solution=period.solution,
            target=period.target,
            errors=tuple(errors.tolist()),
            distance=distance,
            angle=angle,
            causes=period.causes,
        )

    def describe(self, snapshot: Snapshot, goal: pin.SE3, view: PageView) -> None:
        """Describe an instant of the arm.

        Args:
            snapshot: The instant.
            goal: Pose that the arm goes to, in base_link.
            view: Takes the sentence and the figures.
        """
        task = self.solver.task
        excess = out_of_reach(self.robot, goal.translation)
        view.sentence = self.error or explain_motion(snapshot, excess, task)

        view.describe(self.robot, task, snapshot)
        # Only solvers that iterate have this setting.
        iterations = getattr(self.setup.solver_settings, "iterations", None)
        if iterations is not None:
            view.figures.append(("iterations a period", str(iterations)))
        options = self.setup.options
        if options.servo_of(self.robot) == "servoj":
            # The joint targets of servoj trail a steady motion by about its lookahead.
            delay = 1e3 * options.plant_model.lookahead
            view.figures.append(("servo delay", f"{delay:.0f} ms"))
        view.extrapolation = self._session.servo_extrapolation

    def posture_at(self, pose: pin.SE3, name: str) -> Array:
        """Return joint positions (n,), rad, in which the TCP is at a pose.

        Args:
            pose: The pose, in base_link.
            name: Name by which the user knows the pose.

        Raises:
            InvalidParameter: The pose is out of reach.
        """
        excess = out_of_reach(self.robot, pose.translation)
        if excess == 0.0:
            solution = self.solver.solve(pose, self.robot.home)
            if solution.distance <= MAX_POSTURE_ERROR_M:
                return solution.q
            excess = solution.distance
        distance = f"{millimetres(excess)} mm out of reach"
        raise InvalidParameter(name, distance, "within the arm's reach")

    def slow_down(self, fraction: float) -> None:
        """Move at most at a fraction of full speed, 0 to 1."""
        self._session.slow_down(fraction)

    def report(self) -> Path:
        """Write the report of its session, which has ended; returns its directory."""
        self._session.report()
        return self._session.directory
