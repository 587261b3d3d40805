"""The state of a solver after a step: what remains of the error, and how near a singularity is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simbridge.ik.targets import residual
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class Diagnosis:
    """The state of a solver after a step, computed on demand.

    Attributes:
        robot: The arm.
        q: Joint positions (n,), rad.
        target: The target (7,) of the last step.
        iterations: Iterations spent on it.
        task: The part of the target that was to be attained: "pose", "axis" or "position".
        cutoff: Singular values below this fraction of the largest count as zero.
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
        """Remaining translation (m) and rotation (rad) of what the task constrains."""
        return residual(self.task, self.target, tool_path(self.robot, self.q[None])[0])

    @cached_property
    def dependent_rows(self) -> int:
        """The number of rows that depend on others, so that they cannot be satisfied by themselves.

        The rows of `strict` and those of the task are counted. The strict rows come first: the
        motions that they determine are no longer available to the task. Above 0 the arm is
        singular, or has too few joints. Directions in which the arm never moves are not counted.
        """
        task_values = self._singular_values
        row_count = len(task_values)
        singular_values = task_values

        if self.strict is not None:
            row_count += len(self.strict)

            # An orthonormal basis of the motions that the strict rows determine.
            _, sizes, directions = np.linalg.svd(self.strict, full_matrices=False)
            is_independent = sizes > self.cutoff * sizes.max(initial=0.0)
            basis = directions[is_independent]

            # The task's rows without their components along that basis.
            task = task_jacobian(self.robot, self.q, self.task)
            remaining = task - task @ basis.T @ basis
            independent_rows = np.vstack([remaining, basis])
            singular_values = np.linalg.svd(independent_rows, compute_uv=False)

        rank = int(np.sum(singular_values > self.cutoff * singular_values.max(initial=0.0)))
        return row_count - rank

    @cached_property
    def manipulability(self) -> float:
        """sqrt(det(J J^T)) of the task's rows (Yoshikawa 1985).

        With fewer joints than rows it is sqrt(det(J^T J)). Directions in which the arm never moves
        are left out; where these are all, it is zero.
        """
        singular = self._singular_values[: self.robot.n]
        return float(np.prod(singular)) if len(singular) else 0.0

    @cached_property
    def condition(self) -> float:
        """The largest singular value of the task's Jacobian over the smallest.

        Infinite where the arm is singular.
        """
        singular = self._singular_values
        if len(singular) == 0 or not singular[-1] > 0.0:
            return math.inf
        return float(singular[0] / singular[-1])

    @cached_property
    def nearest_limit(self) -> tuple[str, float]:
        """The joint closest to one of its position limits, and the distance, rad.

        The distance is negative beyond the limit.
        """
        room = np.minimum(self.q - self.robot.position_min, self.robot.position_max - self.q)
        joint = int(np.argmin(room))
        return self.robot.joint_names[joint], float(room[joint])

    @cached_property
    def _singular_values(self) -> Array:
        """The task's singular values, as many as there are directions that the arm can move in."""
        singular = np.linalg.svd(task_jacobian(self.robot, self.q, self.task), compute_uv=False)
        directions = movable_directions(self.robot.placements, self.robot.prismatic, self.task)
        return np.pad(singular, (0, 6))[:directions]
