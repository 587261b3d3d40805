"""The arms that follow the goal, each through a live session: a simulated one, and one behind a controller."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.backends.backend import Ask
from simbridge.browser.setup import TARGET_RATE, StudioSetup
from simbridge.browser.view import Sample, Shown, out_of_reach, sentence_of
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.ik.solver import Solver
from simbridge.ik.targets import residual
from simbridge.robot.kinematics import tool_frame, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import resolve_arm
from simbridge.sessions.inputs import Phase
from simbridge.sessions.options import SIMULATED, STUDIO
from simbridge.sessions.session import LiveSession
from simbridge.sessions.setup import live
from simbridge.text import millimetres

# In the studio a goal may be anywhere: how far the arm follows it is what is looked at.
_ANYWHERE = (100.0, 6.3)
# A simulated target is stale after so many intervals between two, and not before this, s.
_STALE, _SHORTEST = 3.0, 0.5
# Where nothing changes by more than this for this time, the simulation's clock stands: rad, m, s.
_STILL, _RESTS = 1e-7, 0.3
# So long after the last sign that a person holds the goal a controller's arm brakes, s.
_DEAD_MAN = 0.2
_AT_REST = ("idle", "engaged", "holding", "ended")


class LiveArm:
    """An arm and its live session, which is not yet entered: what both kinds share.

    Attributes:
        setup: What it is made of.
        solver: Its settings and names are shown; the session's loop has its own.
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
        law = last.setpoint if state.controller_target is None else state.controller_target
        tools = tool_path(self.robot, np.stack([last.solution, last.setpoint, law, state.q]))
        way = np.vstack([goal[:3], last.target[:3], tools[:, :3]])
        errors = tuple(np.linalg.norm(np.diff(way, axis=0), axis=1).tolist())
        left = residual(self.solver.task, goal, tools[-1])
        causes = tuple(cause.text for cause in last.causes)
        return Sample(
            self.time, state.q, state.qd, last.solution, last.target, errors, *left, causes
        )

    def describe(self, sample: Sample, goal: pin.SE3, shown: Shown) -> None:
        """Describe a sample of it, on the way to a goal in base_link."""
        reach = out_of_reach(self.robot, goal.translation)
        shown.sentence = self.error or sentence_of(sample, reach, self.solver.task)
        shown.describe(self.robot, self.solver.task, sample)
        if (iterations := getattr(self.setup.solver_settings, "iterations", None)) is not None:
            shown.figures.append(("iterations a period", str(iterations)))
        if self.setup.options.servo == "servoj":
            # By so much the servo law trails a steady motion.
            shown.figures.append(
                ("servo delay", f"{1e3 * self.setup.options.plant_model.lookahead:.0f} ms")
            )

    def posture_at(self, pose: pin.SE3, name: str) -> Array:
        """Joint positions (n,), rad, in which the TCP is at a pose in base_link, which the user knows by a name.

        Raises:
            InvalidParameter: It is out of reach.
        """
        left = out_of_reach(self.robot, pose.translation)
        if left == 0.0:
            found = self.solver.solve(pose, self.robot.home)
            if found.distance <= 1e-3:
                return found.q
            left = found.distance
        raise InvalidParameter(
            name, f"{millimetres(left)} mm out of reach", "within the arm's reach"
        )

    def slow_down(self, share: float) -> None:
        """Move at most at this share of full speed, 0 to 1."""
        self._session.slow_down(share)

    def report(self) -> Path:
        """Write the report of its session, which has ended; returns its directory."""
        self._session.report()
        return self._session.directory


class Simulation(LiveArm):
    """A simulated arm that follows its goal on the studio's clock. A context manager, to be used from one thread.

    Args:
        setup: What it is made of.
        out: The run directory of its session.
        start: Joint positions (n,), rad, at which it begins; home by default.
    """

    def __init__(self, setup: StudioSetup, out: Path, start: Array | None = None) -> None:
        options, rate = setup.options, setup.values.get("sample_rate", TARGET_RATE)
        solver: Solver = setup.solver_settings.build(setup.arm)
        session = live(
            robot=setup.bare_arm,
            solver=solver,
            out=out,
            realtime=False,
            start=start,
            report=False,
            hold="zero-order" if options.hold == "zero-order" else "continue",
            timeout=max(_SHORTEST, _STALE / rate),
            max_jump=_ANYWHERE,
            lead=options.feedforward == "on",
            **{name: getattr(options, name) for name in SIMULATED},
        )
        super().__init__(setup, session, solver)
        # How often the goal becomes the session's target, s, and its noise along and about each axis, m and rad.
        self._interval, self._noise = 1.0 / rate, setup.values.get("sample_noise", (0.0, 0.0))
        self._chance = np.random.default_rng(0)
        # When the next target is given, how long nothing has changed, and the time that was no whole period, s.
        self._due = self._still = self._left = 0.0
        self._before: Array | None = None
        self._sent: pin.SE3 | None = None

    def __enter__(self) -> Simulation:
        self._session.__enter__()
        try:
            self._engage()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End its session."""
        self._session.__exit__(None, None, None)

    @property
    def resting(self) -> bool:
        """Whether nothing has changed for a while, so that the clock stands."""
        return self._still > _RESTS and self._sent == self.goal and not any(self._noise)

    def advance(self, seconds: float) -> None:
        """Move the clock by whole periods, s; what is left counts the next time."""
        if self.resting:
            self._left = 0.0
            return
        self._left += seconds
        count = int(self._left / self._session.period + 1e-9)
        self._left -= count * self._session.period
        for _ in range(count):
            if self.goal is not None and self.time >= self._due:
                self._give(self.goal)
            self._advance()

    def _engage(self) -> None:
        self._session.engage()
        self._advance()

    def _give(self, goal: pin.SE3) -> None:
        self._due = max(self._due + self._interval, self.time)
        target, (distance, angle) = goal, self._noise
        if distance or angle:
            shift, turn = self._chance.normal(0.0, 1.0, 3), self._chance.normal(0.0, 1.0, 3)
            target = pin.SE3(
                goal.rotation @ pin.exp3(angle * turn), goal.translation + distance * shift
            )
        self._sent = goal
        try:
            if self.state == "idle":
                self._engage()
            self._session.pose(target)
        except SimbridgeError as error:
            self.error = str(error)

    def _advance(self) -> None:
        """One period."""
        period = self._session.period
        try:
            self._session.advance(period)
        except SimbridgeError as error:
            self.error = str(error)
        self.time += period
        if (stopped := self._session.status.error) is not None:
            self.error = str(stopped)
        if (last := self._session.newest) is None:
            return
        now = np.concatenate([last.setpoint, self.q])
        moved = self._before is None or np.abs(now - self._before).max() > _STILL
        self._before, self._still = now, 0.0 if moved else self._still + period
        if last.phase is Phase.TRACKING and stopped is None:
            self.error = ""


class ControlledArm(LiveArm):
    """An arm on URSim or a real one. It moves only between `engage` and `disengage`, and only while it is driven.

    A goal alone moves nothing. `engage`, `disengage`, `renew` and `end` wait for the arm, and are called
    beside the studio's loop. `ask` shows facts and asks before a real arm moves.

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
        self.goal, self._let_go, self._held, self.allowed = (
            self._session.tool,
            False,
            -math.inf,
            True,
        )

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
        elif self._held > time.monotonic() - _DEAD_MAN:
            self._held = time.monotonic()
            turn = frame.rotation @ self._grasped.rotation.T
            shift = frame.translation - self._grasped.translation
            self.goal = pin.SE3(turn @ self._from.rotation, self._from.translation + shift)
            self.drive()

    def drive(self) -> None:
        """Go towards the goal, for `_DEAD_MAN` at most: to be repeated while a person holds it."""
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

    def advance(self, _seconds: float) -> None:
        """The controller's time passes by itself."""
        self.time = time.monotonic() - self._begun
        if -math.inf < self._held < time.monotonic() - _DEAD_MAN:
            self.release()
        if self._let_go:
            # Asked first: once it rests, the last setpoint is where the arm comes to rest.
            self._let_go = not self.resting
            self.goal = self._session.tool
        if self._entered and (stopped := self._session.status.error) is not None:
            self.error = str(stopped)

    def sample(self) -> Sample:
        """What is shown now; while no loop runs, the arm where it was seen last."""
        if (found := super().sample()) is not None:
            return found
        tool, goal = (
            pin.SE3ToXYZQUAT(pose) for pose in (tool_frame(self.robot, self.q), self.goal)
        )
        left = residual(self.solver.task, goal, tool)
        errors = (float(np.linalg.norm(goal[:3] - tool[:3])), 0.0, 0.0, 0.0, 0.0)
        return Sample(self.time, self.q, np.zeros(self.robot.n), self.q, tool, errors, *left, ())


def _session(setup: StudioSetup, ask: Ask) -> tuple[LiveSession, Solver]:
    """A session, not yet entered, and a solver for the arm that the controller describes."""
    chosen = {name: getattr(setup.options, name) for name in STUDIO}
    arm = resolve_arm(setup.backend, setup.bare_arm, None, setup.options)[1]
    solver: Solver = setup.solver_settings.build(arm)
    session = live(
        setup.backend,
        robot=arm,
        solver=solver,
        timeout=_DEAD_MAN,
        max_jump=_ANYWHERE,
        ask=ask,
        **chosen,
    )
    return session, solver
