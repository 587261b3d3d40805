"""Lets every solver solve single poses in turn, within one budget of time and calls.

A solver is called again and again with the same target, from its own last answer, as in a session.
An attempt ends when the pose is solved, when a call fails, when the joints stand still, or when
half of the budget is used up. Then the next attempt begins from a fixed posture, until the whole
budget is used up. The budget is large enough for solvers that keep velocity limits: the slowest
joint of a UR arm makes a full turn in 3 s, and an attempt may take 5 s of motion.

Nothing but this budget ends the work on a pose, and every solver attempts every pose, so that all
shares are of the same poses.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pinocchio as pin

from simbridge.experiments.suite.entrants import Entrant
from simbridge.experiments.suite.faults import FaultLog
from simbridge.experiments.suite.following import Heartbeat
from simbridge.experiments.suite.results import Budget, PoseSetResult
from simbridge.experiments.suite.suite_motion import PoseSet
from simbridge.experiments.suite.time_limit import CallTimeout, interrupt_after
from simbridge.ik.solver import Solver
from simbridge.ik.targets import residual, wrap_into_limits
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.postures import restart_postures
from simbridge.robot.robot import Robot

# Largest distance of the tool from a pose that is solved, m.
SOLVED_DISTANCE = 1e-3
# Largest angle between the tool and a pose that is solved, rad.
SOLVED_ANGLE = math.radians(0.1)

# Computing time for a pose, s.
POSE_TIME_S = 2.0
# Time in which an arm would make the calls for a pose, one per control period, s.
POSE_MOTION_S = 10.0
# Share of the budget that one attempt may use, so that a solver that wanders about begins again.
ATTEMPT_SHARE = 0.5
# Largest number of fixed postures from which a pose is attempted again.
MAX_RESTARTS = 20

# Largest motion of a joint that stands still over STANDSTILL_CALLS calls, rad or m.
STANDSTILL = 1e-4
# Number of calls over which joints that stand still are recognized.
STANDSTILL_CALLS = 20
# Number of successive calls that leave all joints exactly where they are, after which they count as
# standing still, too: a library that reports no solution will find none from there.
UNMOVED_CALLS = 2


@dataclass
class Attempts:
    """All attempts of a solver at one pose.

    Attributes:
        calls: Number of calls.
        time_s: Computing time, s.
        restarts: Number of attempts after the first.
        is_solved: Whether the last attempt has solved the pose.
        distance: Smallest distance from the pose at the end of an attempt, m.
        angle: Angle from the pose at the end of the same attempt, rad.
        error: Exception of the last call that failed; None if no call failed.
    """

    calls: int = 0
    time_s: float = 0.0
    restarts: int = 0
    is_solved: bool = False
    distance: float = math.inf
    angle: float = math.inf
    error: BaseException | None = None

    def is_within(self, time_s: float, calls: int) -> bool:
        """Return whether less than a time, s, and fewer than a number of calls were used."""
        return self.time_s < time_s and self.calls < calls


@dataclass
class PoseTally:
    """The attempts of a solver at the poses of a set, so far.

    Attributes:
        entrant: The solver.
        attempts: Attempts at each pose.
        faults: Failures of the solver's calls.
    """

    entrant: Entrant
    attempts: list[Attempts] = field(default_factory=list)
    faults: FaultLog = field(default_factory=FaultLog)


def solve_in_turn(
    robot: Robot,
    pose_set: PoseSet,
    entrants: Sequence[Entrant],
    budget: Budget,
    heartbeat: Heartbeat,
) -> list[PoseSetResult]:
    """Let every solver solve the poses of a set, one pose after another.

    Args:
        robot: The arm.
        pose_set: The poses.
        entrants: The solvers.
        budget: Time and number of calls that each solver has for a pose.
        heartbeat: Function that is called after each call.
    """
    # An unreachable pose is attempted once, since a restart could not solve it either.
    postures = restart_postures(robot, MAX_RESTARTS if pose_set.reachable else 0)

    exam = PoseExam(robot, budget, heartbeat)
    tallies = [PoseTally(entrant) for entrant in entrants]
    for index, target in enumerate(pose_set.targets):
        starts = [pose_set.starts[index], *postures]
        for tally in tallies:
            attempts = exam.solve(tally.entrant.solver, target, starts)
            tally.attempts.append(attempts)
            if attempts.error is not None:
                tally.faults.add(index, attempts.error)
    return [summarize_tally(pose_set, tally) for tally in tallies]


@dataclass(frozen=True)
class PoseExam:
    """Lets solvers attempt single poses.

    Attributes:
        robot: The arm.
        budget: Time and number of calls for a pose.
        heartbeat: Function that is called after each call.
    """

    robot: Robot
    budget: Budget
    heartbeat: Heartbeat

    @cached_property
    def data(self) -> pin.Data:
        """The working memory of pinocchio."""
        return self.robot.model.createData()

    def solve(self, solver: Solver, target: Array, starts: Sequence[Array]) -> Attempts:
        """Attempt a pose from each start in turn, until it is solved or the budget is used up.

        Args:
            solver: The solver.
            target: The pose (7,).
            starts: Joint positions (n,), rad, from which attempts begin.
        """
        attempts = Attempts()
        for restarts, start in enumerate(starts):
            if not attempts.is_within(self.budget.pose_time_s, self.budget.pose_calls):
                break
            attempts.restarts = restarts
            time_left = self.budget.pose_time_s - attempts.time_s
            with contextlib.suppress(CallTimeout), interrupt_after(time_left):
                self._attempt(solver, target, start, attempts)
            if attempts.is_solved:
                break
        return attempts

    def _attempt(self, solver: Solver, target: Array, start: Array, attempts: Attempts) -> None:
        """Attempt a pose from one start, and add the calls, the time and the result.

        Args:
            solver: The solver.
            target: The pose (7,).
            start: Joint positions at the start (n,), rad.
            attempts: Attempts at the pose so far, which are changed.
        """
        # This attempt may use a share of the budget, but not more than is left of it.
        max_time = attempts.time_s + ATTEMPT_SHARE * self.budget.pose_time_s
        max_time = min(max_time, self.budget.pose_time_s)
        max_calls = attempts.calls + round(ATTEMPT_SHARE * self.budget.pose_calls)
        max_calls = min(max_calls, self.budget.pose_calls)

        solver.reset(start)
        q = start
        # Joint positions before and after the last calls.
        recent: deque[Array] = deque([start], maxlen=STANDSTILL_CALLS + 1)
        while attempts.is_within(max_time, max_calls):
            begin = time.perf_counter()
            try:
                q = solver.step(target)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # A solver may also raise SystemExit: it ends the attempt, not the suite.
                attempts.error = error
                break
            finally:
                attempts.time_s += time.perf_counter() - begin
                attempts.calls += 1
                self.heartbeat()

            recent.append(q)
            attempts.is_solved = self._is_solved(target, start, q)
            if attempts.is_solved or _stands_still(recent):
                break

        distance, angle = self._residual(target, q)
        if attempts.is_solved or distance < attempts.distance:
            attempts.distance = distance
            attempts.angle = angle

    def _is_solved(self, target: Array, start: Array, q: Array) -> bool:
        """Return whether joint positions attain a pose within the tolerances and the limits.

        Args:
            target: The pose (7,).
            start: Joint positions at the start of the attempt (n,), rad.
            q: Joint positions (n,), rad.
        """
        # Most answers are far away, which pinocchio tells in a twentieth of the time of `residual`.
        pin.framesForwardKinematics(self.robot.model, self.data, q)
        tool = self.data.oMf[self.robot.model.getFrameId("tcp")]
        if np.linalg.norm(tool.translation - target[:3]) > self.budget.tolerance_m:
            return False

        distance, angle = self._residual(target, q)
        is_close = distance <= self.budget.tolerance_m and angle <= self.budget.tolerance_rad
        # Joints may be brought within their limits by whole turns.
        return is_close and wrap_into_limits(self.robot, start, q.copy())

    def _residual(self, target: Array, q: Array) -> tuple[float, float]:
        """Return the distance, m, and the angle, rad, from joint positions (n,) to a pose (7,)."""
        return residual(self.robot.task, target, tool_path(self.robot, q[None])[0])


def _stands_still(recent: Sequence[Array]) -> bool:
    """Return whether the joints have ceased to move.

    Args:
        recent: Joint positions (n,) before and after the recent calls.
    """
    joints = np.array(recent)
    last_joints = joints[-UNMOVED_CALLS - 1 :]
    if len(last_joints) > UNMOVED_CALLS and np.all(last_joints == last_joints[0]):
        return True

    largest_motion = float(np.ptp(joints, axis=0).max())
    return len(joints) > STANDSTILL_CALLS and largest_motion <= STANDSTILL


def summarize_tally(pose_set: PoseSet, tally: PoseTally) -> PoseSetResult:
    """Return the result of one solver on a set of poses."""
    attempts = tally.attempts
    solved = [item for item in attempts if item.is_solved]
    at_once = [item for item in solved if item.restarts == 0]
    times = [item.time_s for item in solved]
    return PoseSetResult(
        pose_set=pose_set.name,
        solver=tally.entrant.name,
        poses=len(pose_set.targets),
        faults=tally.faults.faults,
        solved=len(solved) / len(attempts),
        solved_at_once=len(at_once) / len(attempts),
        median_calls=float(np.median([item.calls for item in solved])) if solved else None,
        median_time_s=float(np.median(times)) if solved else None,
        p99_time_s=float(np.quantile(times, 0.99)) if solved else None,
        median_error_m=float(np.median([item.distance for item in attempts])),
        median_error_rad=float(np.median([item.angle for item in attempts])),
    )
