"""The interface of every solver, and what solvers share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.faults import check_path, named_failures
from simbridge.ik.targets import Target, as_joints, as_pose, as_poses, residual, wrap_into_limits
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions, restart_postures
from simbridge.robot.robot import Robot

TOLERANCE = (1e-6, 1e-5)
"""Translation (m) and rotation (rad) within which a target counts as reached."""

START_TOLERANCE = (1e-10, 1e-10)
"""The same for the first joint positions of a plan."""


@dataclass(frozen=True)
class Solution:
    """The outcome of `Solver.solve`.

    Attributes:
        q: Joint positions (n,), rad, of the best try, whether it converged or not.
        converged: Whether they meet the tolerance within the joint limits.
        distance, angle: Remaining translation, m, and rotation, rad.
        iterations: Over all tries.
        restarts: Tries after the first.
    """

    q: Array
    converged: bool
    distance: float
    angle: float
    iterations: int
    restarts: int


@dataclass(frozen=True)
class Diagnosis:
    """The state of a solver after a step, computed on demand.

    Attributes:
        robot: The arm.
        q: Joint positions (n,), rad.
        target: The target (7,) of the last step.
        iterations: Iterations spent on it.
        task: "pose", "axis" or "position": what of the target was to be attained.
        cutoff: See `Solver.cutoff`.
        strict: Strict rows (m, n) that the solver adds to those of the task, if any.
    """

    robot: Robot
    q: Array
    target: Array
    iterations: int
    task: str = "pose"
    cutoff: float = 1e-6
    strict: Array | None = None

    @cached_property
    def residual(self) -> tuple[float, float]:
        """Remaining translation (m) and rotation (rad), in the components that the task constrains."""
        return residual(self.task, self.target, tool_path(self.robot, self.q[None])[0])

    @cached_property
    def _singular_values(self) -> Array:
        """Of the task's Jacobian, as many as there are directions in which the arm can move at all."""
        singular = np.linalg.svd(task_jacobian(self.robot, self.q, self.task), compute_uv=False)
        return np.pad(singular, (0, 6))[
            : movable_directions(self.robot.placements, self.robot.prismatic, self.task)
        ]

    @cached_property
    def dependent_rows(self) -> int:
        """The number of dependent rows among `strict` and what they leave of the task: above 0 the arm is singular, or
        has too few joints. Directions in which the arm never moves are not counted."""
        singular, counted = self._singular_values, len(self._singular_values)
        if self.strict is not None:
            _, sizes, directions = np.linalg.svd(self.strict, full_matrices=False)
            own = directions[sizes > self.cutoff * sizes.max(initial=0.0)]
            task = task_jacobian(self.robot, self.q, self.task)
            left = task - task @ own.T @ own
            singular, counted = (
                np.linalg.svd(np.vstack([left, own]), compute_uv=False),
                counted + len(self.strict),
            )
        return counted - int(np.sum(singular > self.cutoff * singular.max(initial=0.0)))

    @cached_property
    def manipulability(self) -> float:
        """sqrt(det(J J^T)) of the task's rows (Yoshikawa 1985); with fewer joints than rows sqrt(det(J^T J)). Without
        directions in which the arm never moves; where these are all, it is zero."""
        counted = self._singular_values[: self.robot.n]
        return float(np.prod(counted)) if len(counted) else 0.0

    @cached_property
    def condition(self) -> float:
        """The largest singular value of the task's Jacobian over the smallest; infinite where the arm is singular."""
        counted = self._singular_values
        return float(counted[0] / counted[-1]) if len(counted) and counted[-1] > 0.0 else math.inf

    @cached_property
    def nearest_limit(self) -> tuple[str, float]:
        """The joint closest to one of its position limits, and the distance in rad (negative: beyond it)."""
        room = np.minimum(self.q - self.robot.position_min, self.robot.position_max - self.q)
        joint = int(np.argmin(room))
        return self.robot.joint_names[joint], float(room[joint])


class Solver(ABC):
    """Turns target poses into joint positions, one target per step, from its own last joint positions.

    Attributes:
        name: As given to `--solver`.
        robot: The arm it solves for.
        task: "pose", "axis" (position and the tool's z axis) or "position": what of a target it is to attain.
    """

    name: str
    task: str = "pose"
    reliable: ClassVar[bool] = True
    """Whether `solve` finds what can be reached, without too many iterations."""
    tries: ClassVar[int] = 20
    """Fixed postures from which `solve` begins again."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._q: Array = robot.home.copy()
        # What is kept between targets, from the first step on.
        self._memory: Array | None = None
        # Joint positions and target for `last`, which is made on demand: it would double the time of a step.
        self._stepped: tuple[Array, Array] | None = None
        self._last: Diagnosis | None = None

    @property
    def q(self) -> Array:
        """The present joint positions (n,), rad."""
        return self._q.copy()

    @property
    def last(self) -> Diagnosis | None:
        """Residual, iterations, manipulability and nearest limit after the last step; None before the first."""
        if self._last is None and self._stepped is not None:
            self._last = Diagnosis(
                self.robot,
                *self._stepped,
                self.iterations,
                self.task,
                self.cutoff,
                self._strict_rows(),
            )
        return self._last

    def _strict_rows(self) -> Array | None:
        """Strict rows (m, n) besides those of the task."""
        return None

    @property
    def cutoff(self) -> float:
        """Share of the Jacobian's largest singular value up to which rows of the task count as dependent on others."""
        return 1e-6

    @property
    def iterations(self) -> int:
        """Iterations per step."""
        return 1

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """All settings, under the names of their `--solver.NAME` flags: what settings.toml records."""

    def reset(self, q: Array | Sequence[float]) -> None:
        """Begin at joint positions q (n,), rad.

        Raises:
            InvalidParameter: They are not n finite numbers.
        """
        self._q = as_joints(q, self.robot.n)
        self._memory = self._stepped = self._last = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy continues from the same memory, with its own arrays.
        return {**self.__dict__, "_memory": None if self._memory is None else self._memory.copy()}

    def step(self, target: Target) -> Array:
        """One control period towards a target: joint positions (n,), rad.

        Raises:
            InvalidParameter: The target is no pose; the solver stays as it is. Or the answer of a custom one is no
                joint positions.
            ForeignSolverError: A custom solver failed.
        """
        goal, out = as_pose(target), np.empty((1, self.robot.n))
        if self._memory is None:
            self._memory = self._memory_at(self._q)
        with named_failures(self):
            self._advance(goal[None], self._memory, out)
        check_path(self, out)
        self._q, self._stepped, self._last = out[0], (out[0], goal), None
        return out[0].copy()

    def track(self, poses: Array, q0: Array | Sequence[float]) -> Array:
        """A step for each target (T, 7) in turn from q0 (n,), rad, in one compiled call: joint positions (T, n), rad.

        Equal to T calls of `step` to the last bit; the solver's own state is left alone.

        Raises:
            InvalidParameter: The targets are no poses (T, 7), or the start is not n finite numbers.
        """
        checked, begin = as_poses(poses), as_joints(q0, self.robot.n)
        out = np.empty((len(checked), self.robot.n))
        with named_failures(self):
            self._advance(checked, self._memory_at(begin), out)
        check_path(self, out)
        return out

    def solve(self, target: Target, q0: Array | Sequence[float] | None = None) -> Solution:
        """Find joint positions for one target, to `START_TOLERANCE`, first from q0 (n,), rad, the robot's home by
        default, then from `tries` fixed postures; says whether it converged.

        Raises:
            InvalidParameter: The target is no pose, or the start is not n finite numbers.
        """
        goal, start = (
            as_pose(target),
            as_joints(self.robot.home if q0 is None else q0, self.robot.n),
        )
        with named_failures(self):
            return self._solve(goal, start)

    def solve_each(
        self, poses: Array, q0: Array | Sequence[float]
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Solve many targets (T, 7), each from the solution of the one before.

        Returns:
            Joint positions (T, n), residuals (T, 2) in m and rad, and which attained their target (T,). They may be
            beyond the joint limits, except those of the closed form.

        Raises:
            InvalidParameter: The targets are no poses (T, 7), or the start is not n finite numbers.
        """
        checked, start = as_poses(poses), as_joints(q0, self.robot.n)
        with named_failures(self):
            return self._solve_each(checked, start)

    def _memory_at(self, q: Array) -> Array:
        """The whole memory of an arm at rest at q (n,): a new array."""
        return q.copy()

    @abstractmethod
    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        """Go on to checked targets (T, 7), which updates the memory; out: joint positions (T, n)."""

    def _solve(self, goal: Array, start: Array) -> Solution:
        """`solve` of a checked target (7,), from a copy of the start (n,)."""
        return self._search(goal, start, START_TOLERANCE)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """`solve_each` of checked targets (T, 7), from a copy of the start (n,)."""
        joints, residuals = np.empty((len(poses), self.robot.n)), np.empty((len(poses), 2))
        for t, goal in enumerate(poses):
            found = self._search(goal, start, TOLERANCE)
            joints[t], residuals[t] = found.q, (found.distance, found.angle)
            start = found.q if found.converged else start
        return joints, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _search(self, goal: Array, start: Array, tolerance: tuple[float, float]) -> Solution:
        """The first try that attains the goal (7,) within the joint limits; else the first that attains it at all; else
        the one that comes nearest. Joints beyond their limits are turned to where they are nearest to the start."""
        best, least, iterations, restarts = None, math.inf, 0, 0
        for restarts, begin in enumerate([start, *self._restarts]):  # noqa: B007
            q, distance, angle, used = self._try(goal, np.array(begin), tolerance)
            iterations += used
            inside = wrap_into_limits(self.robot, start, q)
            miss = max(distance / tolerance[0], angle / tolerance[1])
            converged = inside and miss <= 1.0
            if best is None or converged or max(miss, 1.0) < least:
                best, least = Solution(q, converged, distance, angle, 0, 0), max(miss, 1.0)
            if converged:
                break
        assert best is not None
        return replace(best, iterations=iterations, restarts=restarts)

    @cached_property
    def _restarts(self) -> Array:
        return restart_postures(self.robot, self.tries)

    def _try(
        self, goal: Array, q: Array, tolerance: tuple[float, float]
    ) -> tuple[Array, float, float, int]:
        """One try of `solve` from q (n,), which it may change: joint positions (n,), what remains in m and rad, and the
        number of iterations."""
        raise NotImplementedError

    def notes(self, poses: Array, q0: Array) -> tuple[str, ...]:
        """Remarks on the path that `track` takes along these targets (T, 7); most solvers have none."""
        return ()

    def lag(self, period: float) -> float | None:
        """The lag of the solution behind a target that moves at constant speed, s, with this time between two steps, s;
        None where no formula is known."""
        return None
