"""The interface of every solver, and what solvers share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.ik import VelocityLimits
from simbridge.ik.diagnosis import Diagnosis
from simbridge.ik.faults import check_path, name_failures
from simbridge.ik.targets import Target, as_joints, as_pose, as_poses, wrap_into_limits
from simbridge.robot.pose import Array
from simbridge.robot.postures import restart_postures
from simbridge.robot.robot import Robot

TOLERANCE = (1e-6, 1e-5)
"""Translation (m) and rotation (rad) within which a target counts as reached."""

START_TOLERANCE = (1e-10, 1e-10)
"""Translation (m) and rotation (rad) within which a plan's first joint positions are solved."""


@dataclass(frozen=True)
class Solution:
    """The outcome of `Solver.solve`.

    Attributes:
        q: Joint positions (n,), rad, of the best try, whether it converged or not.
        converged: Whether they meet the tolerance within the joint limits.
        distance: Remaining translation, m.
        angle: Remaining rotation, rad.
        iterations: The number of iterations of all tries.
        restarts: The number of tries after the first.
    """

    q: Array
    converged: bool
    distance: float
    angle: float
    iterations: int
    restarts: int


class Attempt(NamedTuple):
    """The outcome of a try to attain a target from one posture.

    Attributes:
        q: Joint positions (n,), rad, at which the try ended; they may be beyond the joint limits.
        distance: Remaining translation, m.
        angle: Remaining rotation, rad.
        iterations: The number of iterations.
    """

    q: Array
    distance: float
    angle: float
    iterations: int


class Solver(ABC):
    """A solver turns target poses into joint positions.

    It solves one target per step, from the joint positions of its last step.

    Attributes:
        name: The name that `--solver` takes.
        robot: The arm it solves for.
        task: The part of a target that it is to attain: "pose", "axis" (position and the tool's z
            axis) or "position".
        period: The time between two steps, s, which limits of velocity need: the robot's control
            period, until a plan or a live session sets its own.
    """

    name: str
    task: str = "pose"

    reliable: ClassVar[bool] = True
    """True if `solve` finds every reachable pose, and without too many iterations."""
    tries: ClassVar[int] = 20
    """Fixed postures from which `solve` begins again."""
    velocity_limits: ClassVar[VelocityLimits] = "none"
    """Whether each step keeps the velocity limits of the joints, at the cost of its error."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.period = robot.period
        self._q: Array = robot.home.copy()
        # The memory of `_advance` between targets; None before the first step.
        self._memory: Array | None = None
        # The joint positions (n,), rad, and the target (7,) of the last step; None before the
        # first. `last` diagnoses them on demand: doing so in each step would double its time.
        self._stepped: tuple[Array, Array] | None = None
        # The diagnosis of the last step; None until `last` is read.
        self._last: Diagnosis | None = None

    @property
    def q(self) -> Array:
        """The present joint positions (n,), rad."""
        return self._q.copy()

    @property
    def last(self) -> Diagnosis | None:
        """The diagnosis of the last step: error and singularities; None before the first step."""
        # A step only keeps its joint positions and target. Diagnose them when somebody asks.
        if self._last is None and self._stepped is not None:
            q, target = self._stepped
            self._last = Diagnosis(
                robot=self.robot,
                q=q,
                target=target,
                iterations=self.iterations,
                task=self.task,
                cutoff=self.cutoff,
                strict=self._strict_rows(),
            )
        return self._last

    def _strict_rows(self) -> Array | None:
        """Return strict rows (m, n) besides those of the task, if any."""
        return None

    @property
    def cutoff(self) -> float:
        """Fraction of the Jacobian's largest singular value up to which rows count as dependent."""
        return 1e-6

    @property
    def iterations(self) -> int:
        """Iterations per step."""
        return 1

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """All settings, by the names of their `--solver.NAME` flags: what settings.toml records."""

    @property
    def search_settings(self) -> Any:
        """Everything besides the arm that decides what `solve` and `solve_each` find.

        None where that is not known, as for a function.
        """
        return None

    def reset(self, q: Array | Sequence[float]) -> None:
        """Begin at joint positions q (n,), rad.

        Raises:
            InvalidParameter: They are not n finite numbers.
        """
        self._q = as_joints(q, self.robot.n)
        self._memory = None
        self._stepped = None
        self._last = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy continues from the same memory, with its own arrays.
        state = dict(self.__dict__)
        if self._memory is not None:
            state["_memory"] = self._memory.copy()
        return state

    def step(self, target: Target) -> Array:
        """Return the joint positions (n,), rad, after a control period towards a target.

        Raises:
            InvalidParameter: The target is not a pose (the solver then stays as it is), or the
                answer of a custom solver is not n joint positions.
            ForeignSolverError: A custom solver failed.
        """
        goal = as_pose(target)
        out = np.empty((1, self.robot.n))
        if self._memory is None:
            self._memory = self._memory_at(self._q)
        with name_failures(self):
            self._advance(goal[None], self._memory, out)
        check_path(self, out)

        self._q = out[0]
        self._stepped = (out[0], goal)
        self._last = None
        return out[0].copy()

    def track(self, poses: Array, q0: Array | Sequence[float]) -> Array:
        """Return the joint positions (T, n), rad, of a step for each target, in one compiled call.

        They equal those of T calls of `step` to the last bit; the solver's own state is left alone.

        Args:
            poses: The targets (T, 7).
            q0: Joint positions (n,), rad, to begin with.

        Raises:
            InvalidParameter: The targets are not poses (T, 7), or the start not n finite numbers.
        """
        goals = as_poses(poses)
        start = as_joints(q0, self.robot.n)
        out = np.empty((len(goals), self.robot.n))
        with name_failures(self):
            self._advance(goals, self._memory_at(start), out)
        check_path(self, out)
        return out

    def solve(self, target: Target, q0: Array | Sequence[float] | None = None) -> Solution:
        """Find joint positions for one target, to 1e-10 m and 1e-10 rad.

        Args:
            target: The pose.
            q0: Joint positions (n,), rad, from which it is tried first, the robot's home by
                default; then it is tried from `tries` fixed postures.

        Raises:
            InvalidParameter: The target is not a pose, or the start is not n finite numbers.
        """
        goal = as_pose(target)
        start = as_joints(self.robot.home if q0 is None else q0, self.robot.n)
        with name_failures(self):
            return self._solve(goal, start)

    def solve_each(
        self, poses: Array, q0: Array | Sequence[float]
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Solve many targets, each from the solution of the one before.

        Args:
            poses: The targets (T, 7).
            q0: Joint positions (n,), rad, from which the first is solved.

        Returns:
            Joint positions (T, n), residuals (T, 2) in m and rad, and which attained their target
            (T,). They may be beyond the joint limits, except those of the closed form.

        Raises:
            InvalidParameter: The targets are not poses (T, 7), or the start not n finite numbers.
        """
        goals = as_poses(poses)
        start = as_joints(q0, self.robot.n)
        with name_failures(self):
            return self._solve_each(goals, start)

    def _memory_at(self, q: Array) -> Array:
        """Return the whole memory of an arm at rest at q (n,): a new array."""
        return q.copy()

    @abstractmethod
    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        """Go on to targets, which updates the memory.

        Args:
            poses: Checked targets (T, 7).
            memory: The whole memory of the solver, the joint positions (n,) first; updated.
            out: Result: joint positions (T, n), rad.
        """

    def _solve(self, goal: Array, start: Array) -> Solution:
        """Do what `solve` does, with a checked target (7,) and a copy of the start (n,)."""
        return self._search(goal, start, START_TOLERANCE)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Do what `solve_each` does, with checked targets (T, 7) and a copy of the start (n,)."""
        joints = np.empty((len(poses), self.robot.n))
        residuals = np.empty((len(poses), 2))
        for t, goal in enumerate(poses):
            solution = self._search(goal, start, TOLERANCE)
            joints[t] = solution.q
            residuals[t] = (solution.distance, solution.angle)
            if solution.converged:
                start = solution.q
        return joints, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _search(self, goal: Array, start: Array, tolerance: tuple[float, float]) -> Solution:
        """Try a goal (7,) from the start (n,), then from fixed postures.

        Joints beyond their limits are turned to where they are nearest to the start.

        Returns:
            The first try that attains the goal within the joint limits; else the first that attains
            it at all; else the one that comes nearest.
        """
        best: Solution | None = None
        # The error of the best try, as a multiple of the tolerance. All tries within the tolerance
        # count as 1: of them, the first one is kept unless a later one is within the joint limits.
        least_miss = math.inf
        iterations = 0
        tries = 0
        for posture in [start, *self._restarts]:
            attempt = self._try(goal, np.array(posture), tolerance)
            tries += 1
            iterations += attempt.iterations

            is_inside = wrap_into_limits(self.robot, start, attempt.q)
            miss = max(attempt.distance / tolerance[0], attempt.angle / tolerance[1])
            converged = is_inside and miss <= 1.0
            if best is None or converged or max(miss, 1.0) < least_miss:
                best = Solution(
                    attempt.q,
                    converged,
                    attempt.distance,
                    angle=attempt.angle,
                    iterations=0,
                    restarts=0,
                )
                least_miss = max(miss, 1.0)
            if converged:
                break
        assert best is not None
        return replace(best, iterations=iterations, restarts=tries - 1)

    @cached_property
    def _restarts(self) -> Array:
        """The fixed postures (tries, n), rad."""
        return restart_postures(self.robot, self.tries)

    def _try(self, goal: Array, q: Array, tolerance: tuple[float, float]) -> Attempt:
        """Try a goal (7,) from joint positions q (n,), which may be changed."""
        raise NotImplementedError

    def notes(self, poses: Array, q0: Array) -> tuple[str, ...]:
        """Return remarks on the path that `track` takes along targets; most solvers have none.

        Args:
            poses: The targets (T, 7).
            q0: Joint positions (n,), rad, to begin with.
        """
        return ()

    def lag(self, period: float) -> float | None:
        """Return the lag of the solution behind a target that moves at constant speed, s.

        None if no formula is known.

        Args:
            period: The time between two steps, s.
        """
        return None
