"""What every solver offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge import pose
from simbridge.errors import InvalidParameter
from simbridge.kinematics import movable_directions, task_jacobian, tool_path
from simbridge.robot import Robot

Array = NDArray[np.float64]
Target: TypeAlias = pin.SE3 | Array | Sequence[float]


CUTOFF = 1e-6
"""Share of the Jacobian's largest singular value up to which rows count as dependent, unless a solver has its own."""


def as_pose(target: Target) -> Array:
    """A target, given as `pinocchio.SE3` or as [x y z qx qy qz qw], as the latter (7,)."""
    if isinstance(target, pin.SE3):
        return np.array(pin.SE3ToXYZQUAT(target), dtype=float)
    array = np.asarray(target, dtype=float)
    if array.shape == (7,):
        # The usual case, without a dozen calls of numpy: finite, and a unit quaternion already.
        px, py, pz, x, y, z, w = array.tolist()
        if abs(x * x + y * y + z * z + w * w - 1.0) <= pose.ROUNDING and math.isfinite(px + py + pz):
            return array.copy()
    if array.shape != (7,) or not np.all(np.isfinite(array)) or not np.any(array[3:]):
        raise InvalidParameter("target", target, "a pinocchio.SE3 or seven finite numbers x y z qx qy qz qw")
    return np.concatenate([array[:3], pose.normalized(array[3:])])


@dataclass(frozen=True)
class Solution:
    """The outcome of `Solver.solve`.

    Attributes:
        q: Joint positions (n,), rad: those of the best try, whether it converged or not.
        converged: Whether they meet the tolerance within the joint limits.
        distance: What is left of the translation, m.
        angle: What is left of the rotation, rad.
        iterations: Iterations over all tries.
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
    """The state of a solver after a step, each figure computed when it is asked for.

    Attributes:
        robot: The arm.
        q: Joint positions (n,), rad.
        target: The target (7,) of the last step.
        iterations: Iterations spent on it.
        task: "pose", "axis" or "position": what of the target was to be attained.
        cutoff: Share of the largest singular value up to which rows of the task depend on others.
        found: How many the solver's last iteration found to depend on others, if it looks for them.
    """

    robot: Robot
    q: Array
    target: Array
    iterations: int
    task: str = "pose"
    cutoff: float = CUTOFF
    found: int | None = None

    @cached_property
    def residual(self) -> tuple[float, float]:
        """What is left of the translation (m) and of the rotation (rad), as far as the task asks for it."""
        from simbridge.ik.task import residual

        return residual(self.task, self.target, tool_path(self.robot, self.q[None])[0])

    @cached_property
    def _singular_values(self) -> Array:
        """Of the task's Jacobian, as many as there are directions in which the arm can ever move."""
        singular = np.linalg.svd(task_jacobian(self.robot, self.q, self.task), compute_uv=False)
        return np.pad(singular, (0, 6))[: movable_directions(self.robot.placements, self.robot.prismatic, self.task)]

    @cached_property
    def dependent_rows(self) -> int:
        """How many rows of the task depend on others: above 0 the arm is singular, or has too few joints.

        What the solver found in its last iteration, if it looks for them; else those at `q`. Directions in which the
        arm never moves, such as across the plane of a planar arm, are not counted.
        """
        if self.found is not None:
            from simbridge.ik.task import TASKS

            return self.found - (TASKS[self.task] - len(self._singular_values))
        return int(np.sum(self._singular_values <= self.cutoff * self._singular_values[0]))

    @cached_property
    def manipulability(self) -> float:
        """sqrt(det(J J^T)) of the task's rows (Yoshikawa 1985); with fewer joints than rows sqrt(det(J^T J)).

        Directions in which the arm never moves are left out.
        """
        return float(np.prod(self._singular_values[: self.robot.n]))

    @cached_property
    def nearest_limit(self) -> tuple[str, float]:
        """The joint closest to one of its position limits, and the distance in rad (negative: beyond it)."""
        room = np.minimum(self.q - self.robot.position_min, self.robot.position_max - self.q)
        joint = int(np.argmin(room))
        return self.robot.joint_names[joint], float(room[joint])


class Solver(ABC):
    """Turns target poses into joint positions, one target a step, from its own last joint positions.

    Attributes:
        name: As given to `--solver`.
        robot: The arm it solves for.
        task: "pose", "axis" (position and the tool's z axis) or "position": what of a target it is to attain.
    """

    name: str
    task: str = "pose"

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._q: Array = robot.home.copy()
        # What `last` is about: joint positions and target. Made when asked for: it would double the time of a step.
        self._stepped: tuple[Array, Array] | None = None
        self._last: Diagnosis | None = None
        # What the last step found of them, in solvers that look for them.
        self._dependent_rows: int | None = None

    @property
    def q(self) -> Array:
        """The present joint positions (n,), rad."""
        return self._q.copy()

    @property
    def last(self) -> Diagnosis | None:
        """Residual, iterations, manipulability and nearest limit after the last step; None before the first."""
        if self._last is None and self._stepped is not None:
            self._last = Diagnosis(
                self.robot, *self._stepped, self.iterations, self.task, self.cutoff, self._dependent_rows
            )
        return self._last

    @property
    def cutoff(self) -> float:
        """Share of the Jacobian's largest singular value up to which rows of the task count as dependent on others."""
        return CUTOFF

    @property
    @abstractmethod
    def iterations(self) -> int:
        """Iterations per step."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """All settings, under the names of their `--solver.NAME` flags: what settings.toml records."""

    def reset(self, q: Array | Sequence[float]) -> None:
        """Begin at joint positions q (n,), rad."""
        positions = np.array(q, dtype=float)
        if positions.shape != (self.robot.n,) or not np.all(np.isfinite(positions)):
            raise InvalidParameter("joint positions", q, f"{self.robot.n} finite numbers")
        self._q = positions
        self._stepped = self._last = None

    def step(self, target: Target) -> Array:
        """One control period towards a target: joint positions (n,), rad."""
        goal = as_pose(target)
        self._stepped_to(self.track(goal[None], self._q)[0], goal)
        return self._q.copy()

    def _stepped_to(self, q: Array, goal: Array) -> None:
        """Go on from q, where the step towards a goal (7,) has led."""
        self._q, self._stepped, self._last = q, (q, goal), None

    @abstractmethod
    def track(self, poses: Array, q0: Array) -> Array:
        """A step for each target in turn, in one compiled call.

        Args:
            poses: Targets (T, 7).
            q0: Start (n,), rad.

        Returns:
            Joint positions (T, n), rad. Equal to T calls of `step` to the last bit; the solver's own state is left
            alone.
        """

    @abstractmethod
    def solve(self, target: Target, q0: Array | None = None) -> Solution:
        """Find joint positions for one target, to a tolerance, with restarts; says whether it converged.

        Args:
            target: The pose.
            q0: Where to begin (n,), rad; the robot's home by default.
        """

    @abstractmethod
    def solve_each(self, poses: Array, q0: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Solve many targets (T, 7), each from the solution of the one before.

        Returns:
            Joint positions (T, n), residuals (T, 2) in m and rad, and which attained their target (T,). Whether within
            the joint limits is not asked, but for the closed form, which knows no solution beyond them.
        """

    @property
    def reaching(self) -> Solver:
        """Who tells which targets can be reached, and solves the first joints of a plan.

        The solver itself; where it converges too slowly to tell, or to something else than the target, a dependable one
        with the same task.
        """
        return self

    def notes(self, poses: Array, q0: Array) -> tuple[str, ...]:
        """Sentences on what is special about the way that `track` takes; for most solvers there is nothing to say.

        Args:
            poses: Targets (T, 7).
            q0: Start (n,), rad.
        """
        return ()

    def lag(self, period: float) -> float | None:
        """How long the solution trails a target that moves at constant speed, s; None when no formula is known.

        Args:
            period: Time between two steps, s.
        """
        return None
