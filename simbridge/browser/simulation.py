"""A simulated arm that follows the goal through a live session, on the studio's clock."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.live_channel import Period
from simbridge.browser.sample import Sample
from simbridge.browser.setup import StudioSetup
from simbridge.errors import SimbridgeError
from simbridge.ik.solver import Diagnosis
from simbridge.ik.task import residual
from simbridge.planning.live.options import SIMULATED
from simbridge.planning.live.phase import Phase
from simbridge.robot.kinematics import tool_path
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.running.live_begin import live
from simbridge.running.live_session import LiveSession

# In a simulation a goal may be anywhere: how far the arm follows it is what is looked at.
_ANYWHERE = (100.0, 2.0 * math.pi)
# A target is stale after so many intervals between two, and not before this, s.
_STALE, _SHORTEST = 3.0, 0.5
# Where nothing changes by more than this for this time, the clock stands: rad, m, s.
_STILL, _RESTS = 1e-7, 0.3


class Simulation:
    """A simulated arm that follows a goal. A context manager, to be used from one thread.

    Args:
        setup: What it is made of.
        out: The run directory of its session.
        start: Joint positions (n,), rad, at which it begins; home by default.

    Attributes:
        setup: What it is made of.
        robot: The arm.
        solver: Its settings and names are shown; the loop has its own.
        time: On the session's clock, s.
        error: What stopped the arm last, as a sentence; "" once it goes on.
        goal: Where the arm is sent, in base_link; None before the first.
    """

    def __init__(self, setup: StudioSetup, out: Path, start: Array | None = None) -> None:
        self.setup, self.robot, self.solver = setup, setup.arm, setup.build_solver()
        self._session = _session(setup, out, start)
        self._start = self.robot.home if start is None else np.asarray(start, dtype=float)
        self.time, self.error = 0.0, ""
        self.goal: pin.SE3 | None = None
        self._chance = np.random.default_rng(0)
        self._due = self._still = 0.0
        self._before: Array | None = None
        self._sent: pin.SE3 | None = None

    def __enter__(self) -> Simulation:
        self._session.__enter__()
        try:
            self._engage()
        except BaseException:
            self._session.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._session.__exit__(None, None, None)

    def _engage(self) -> None:
        self._session.engage()
        self._advance(1)

    @property
    def directory(self) -> Path:
        """Of its session."""
        return self._session.directory

    def keep(self) -> None:
        """Write the summary and the report of its session, which has ended."""
        self._session.report()

    @property
    def q(self) -> Array:
        """Joint positions of the arm (n,), rad."""
        state = self._session.state
        return self._start if state is None else state.q

    @property
    def resting(self) -> bool:
        """Whether nothing has changed for a while, so that the clock stands."""
        return self._still > _RESTS and self._sent == self.goal and not any(self.setup.noise)

    def follow(self, goal: pin.SE3) -> None:
        """Send the arm to a pose in base_link."""
        self.goal = goal

    def advance(self, seconds: float) -> float:
        """Move the clock by whole periods, at most so far; returns by how much it moved, s."""
        if self.resting:
            return 0.0
        count = int(seconds / self._session.period + 1e-9)
        for _ in range(count):
            if self.goal is not None and self.time >= self._due:
                self._give(self.goal)
            self._advance(1)
        return count * self._session.period

    def _give(self, goal: pin.SE3) -> None:
        self._due = max(self._due + 1.0 / self.setup.target_rate, self.time)
        target, (distance, angle) = goal, self.setup.noise
        if distance or angle:
            shift, turn = self._chance.normal(0.0, 1.0, 3), self._chance.normal(0.0, 1.0, 3)
            target = pin.SE3(goal.rotation @ pin.exp3(angle * turn), goal.translation + distance * shift)
        if self._session.status.state == "idle":
            self._engage()
        self._session.pose(target)
        self._sent = goal

    def _advance(self, periods: int) -> None:
        try:
            self._session.advance(periods * self._session.period)
        except SimbridgeError as error:
            self.error = str(error)
        self.time += periods * self._session.period
        if (stopped := self._session.status.error) is not None:
            self.error = str(stopped)
        last = self._session.newest
        if last is None:
            return
        now = np.concatenate([last.setpoint, self.q])
        moved = self._before is None or np.abs(now - self._before).max() > _STILL
        self._before, self._still = now, 0.0 if moved else self._still + periods * self._session.period
        if last.phase is Phase.TRACKING and stopped is None:
            self.error = ""

    def sample(self) -> Sample | None:
        """What is shown now; None before the first period."""
        last, state = self._session.newest, self._session.state
        if last is None or state is None:
            return None
        errors = _errors(self.robot, last, state.controller_target, state.q, self.goal)
        goal = last.target if self.goal is None else pin.SE3ToXYZQUAT(self.goal)
        distance, angle = residual(self.solver.task, goal, tool_path(self.robot, state.q[None])[0])
        return Sample(
            time=self.time,
            q=state.q,
            qd=state.qd,
            solution=last.solution,
            target=last.target,
            errors=errors,
            distance=distance,
            angle=angle,
            causes=tuple(cause.text for cause in last.causes),
        )

    @property
    def dexterity(self) -> tuple[float, float]:
        """Condition number and manipulability of the task's Jacobian where the arm is."""
        found = Diagnosis(self.robot, self.q, pin.SE3ToXYZQUAT(pin.SE3.Identity()), 0, self.solver.task)
        return found.condition, found.manipulability

    def slow_down(self, share: float) -> None:
        """Move at most at this share of full speed, 0 to 1."""
        self._session.slow_down(share)


def _session(setup: StudioSetup, out: Path, start: Array | None) -> LiveSession:
    """A live session on the caller's clock, not yet entered."""
    options = setup.options
    return live(
        robot=load_robot(setup.robot, lengths=setup.values.get("link_lengths")),
        solver=setup.build_solver(),
        out=out,
        realtime=False,
        start=start,
        report=False,
        hold="zero-order" if options.hold == "zero-order" else "continue",
        timeout=max(_SHORTEST, _STALE / setup.target_rate),
        max_jump=_ANYWHERE,
        lead=options.feedforward == "on",
        **{name: getattr(options, name) for name in SIMULATED},
    )


def _errors(
    robot: Robot, last: Period, controller_target: Array | None, attained: Array, goal: pin.SE3 | None
) -> tuple[float, ...]:
    """The distances, m, from goal to target, to solution, to setpoint, to the servo law's target, to the arm."""
    law = last.setpoint if controller_target is None else controller_target
    points = tool_path(robot, np.stack([last.solution, last.setpoint, law, attained]))[:, :3]
    wanted = last.target[:3] if goal is None else goal.translation
    way = np.vstack([wanted, last.target[:3], points])
    return tuple(np.linalg.norm(np.diff(way, axis=0), axis=1).tolist())


def out_of_reach(robot: Robot, point: Array) -> float:
    """By how much a point in base_link is further from the first joint than the arm is long, m; 0 where it is not."""
    first = robot.placements[0][:3, 3]
    return max(0.0, float(np.linalg.norm(np.asarray(point) - first)) - robot.reach)
