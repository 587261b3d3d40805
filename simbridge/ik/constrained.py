"""The constrained step: the task is strict, and soft rows use the remaining freedom of the joints.

Lecture "Inverse kinematics" (rrlab, University of Kaiserslautern), from "Underdetermined system" to "Optimization:
Algorithm": Lagrange multipliers lead to one linear system for the step and the multipliers,

    [ 2 A^T W A   J^T ] [  dq    ]   [ 2 A^T W b ]
    [     J        0  ] [ lambda ] = [     e     ]

Rows of J that depend on others ("eliminate redundant parameters", step 3 of the algorithm) are left out;
`Solver.last.dependent_rows` says how many. An arm without redundant joints moves as by its inverse Jacobian. The
lecture has the weights W of the soft rows for joints only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.checks import NUMBERS, POSITIVE, Check, are_positive, as_number, as_numbers
from simbridge.ik.iterative import CompiledStep, IterativeSolver
from simbridge.ik.kernels.dense import decompose, solve_rank_revealing
from simbridge.ik.kernels.descent import MAX_STRICT, Buffers
from simbridge.ik.parameters import IterativeParameters, setting
from simbridge.ik.solver import Solution
from simbridge.ik.targets import as_pose, numbers
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

Given: TypeAlias = ArrayLike | Callable[[Array], ArrayLike]

# Singular values up to this share of the largest count as zero.
_FREE = 1e-12
# Beyond it squares, and products of them and weights, may overflow.
_LARGEST = 1e60


@dataclass(frozen=True, eq=False)
class Rows:
    """Conditions A dq = b on the motion dq (n,) of one iteration, rad (of sliding joints m).

    Attributes:
        matrix: A (k, n), or a function of the joint positions q (n,) that returns it.
        values: b (k,), or such a function: pull * (wanted - A @ q) goes part of the way to A q = wanted.
    """

    matrix: Given
    values: Given

    @property
    def vary(self) -> bool:
        """Whether they depend on the joint positions."""
        return callable(self.matrix) or callable(self.values)

    def at(self, q: Array) -> tuple[Array, Array]:
        """A (k, n) and b (k,) at joint positions q (n,).

        Raises:
            InvalidParameter: They are not of these shapes, or not finite.
        """
        matrix, values = (
            numbers("solver's rows", given(q.copy()) if callable(given) else given, "numbers")
            for given in (self.matrix, self.values)
        )
        if matrix.ndim != 2 or matrix.shape[1] != len(q) or values.shape != matrix.shape[:1]:
            shapes = f"{matrix.shape} and {values.shape}"
            raise InvalidParameter("shape of a solver's rows", shapes, f"(k, {len(q)}) and (k,)")
        largest = np.concatenate([np.abs(matrix).ravel(), np.abs(values)]).max(initial=0.0)
        if not largest <= _LARGEST:
            raise InvalidParameter(
                "largest number in a solver's rows", largest, f"finite, and at most {_LARGEST:g}"
            )
        return matrix, values


@dataclass(frozen=True, eq=False)
class SoftRows(Rows):
    """Conditions that are met as far as the strict ones allow, in weighted least squares.

    Attributes:
        weights: Of each row (k,), positive; equal by default.
    """

    weights: ArrayLike = 1.0

    def normal_equations(self, q: Array) -> tuple[Array, Array]:
        """2 A^T W A (n, n) and 2 A^T W b (n,) at joint positions q (n,), scaled so that the largest diagonal entry is
        two. The joints rest in directions that the rows leave free.

        Raises:
            InvalidParameter: Shapes do not fit, or a number is not finite, or a weight not positive.
        """
        matrix, values = self.at(q)
        weights = numbers("weights of a solver's rows", self.weights, "numbers")
        if (
            weights.shape not in ((), values.shape)
            or not ((weights > 0.0) & (weights <= _LARGEST)).all()
        ):
            needed = f"one positive number, at most {_LARGEST:g}, or {len(values)}"
            raise InvalidParameter("weights of a solver's rows", self.weights, needed)
        root = np.sqrt(weights * np.ones(len(values)))
        rows, wanted = root[:, None] * matrix, root * values
        _, singular, directions = np.linalg.svd(rows)
        free = directions[int(np.sum(singular > _FREE * singular.max(initial=0.0))) :]
        hessian = rows.T @ rows
        scale = max(float(hessian.diagonal().max()), 1e-290)
        return 2.0 * (hessian / scale + free.T @ free), 2.0 * (rows.T @ wanted) / scale


@dataclass(frozen=True)
class ConstrainedParameters(IterativeParameters):
    """Settings of the constrained step."""

    posture: tuple[float, ...] = setting((), NUMBERS, "the robot's home", unit="rad")
    """The natural posture, rad."""
    weights: tuple[float, ...] = setting(
        (1.0,), Check(as_numbers, "positive numbers", are_positive)
    )
    """Weights of the joints' distances from the natural posture: one number, or one per joint; positive."""
    pull: float = setting(
        0.05, Check(as_number, "from 0 to 1", lambda pull: 0.0 <= pull <= 1.0), slider=(0.0, 1.0)
    )
    """Fraction of that distance that an iteration covers where no strict row prevents it, 0 to 1."""
    cutoff: float = setting(1e-6, POSITIVE)
    """Rows whose singular value is up to this fraction of the largest count as dependent."""

    def build(self, robot: Robot) -> Constrained:
        """Return the solver with these settings."""
        return Constrained(robot, self)


class Constrained(IterativeSolver):
    """The constrained step. Settings: see `ConstrainedParameters`.

    Args:
        soft: Custom soft rows, which replace the natural posture.
        strict: Custom strict rows, at most six, in addition to those of the task. Where not all can be satisfied, they
            come first, and dependent rows are solved in least squares.

    Raises:
        InvalidParameter: Rows do not fit the arm, or soft rows are given and settings of the natural posture, too.
    """

    name = "constrained"
    Parameters = ConstrainedParameters
    settings: ConstrainedParameters

    def __init__(
        self,
        robot: Robot,
        settings: ConstrainedParameters | None = None,
        *,
        soft: SoftRows | None = None,
        strict: Rows | None = None,
        **changes: Any,
    ) -> None:
        posture = [name for name in ("posture", "weights", "pull") if changes.get(name) is not None]
        if soft is not None and posture:
            raise InvalidParameter(
                "solver's soft rows", f"given with {' and '.join(posture)}", "given without"
            )
        self._soft, self._strict = soft, strict
        super().__init__(robot, settings, **changes)
        if soft is not None or strict is not None:
            # settings.toml is not enough to repeat a run with custom rows.
            self.name = "constrained with own rows"
        self._varying: CallableSolver | None = None
        if any(rows is not None and rows.vary for rows in (soft, strict)):
            self._varying = CallableSolver(robot, self._moved, name=self.name, task=self.task)

    @property
    def cutoff(self) -> float:
        return self.settings.cutoff

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"posture": self._posture.tolist()}

    @property
    def _posture(self) -> Array:
        return (
            self.for_each_joint("posture", self.settings.posture)
            if self.settings.posture
            else self.robot.home
        )

    def compiled_step(self) -> CompiledStep:
        s = self.settings
        weights = self.for_each_joint("weights", s.weights)
        hessian, pull = np.diag(2.0 * weights / weights.max()), s.pull
        gradient = hessian @ (pull * self._posture)
        if self._soft is not None:
            (hessian, gradient), pull = self._soft.normal_equations(self.robot.home), 0.0
        soft = (np.ascontiguousarray(hessian), gradient, pull, s.cutoff)
        if self._strict is None:
            return CompiledStep(constrained_step, soft, drifts=True)
        strict, values = (np.array(part) for part in self._strict.at(self.robot.home))
        if len(strict) > MAX_STRICT:
            raise InvalidParameter(
                "number of a solver's strict rows", len(strict), f"at most {MAX_STRICT}"
            )
        return CompiledStep(strict_rows_step, (strict, values, *soft), drifts=True)

    def _strict_rows(self) -> Array | None:
        return None if self._strict is None else self._strict.at(self._q)[0]

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        if self._varying is None:
            super()._advance(poses, memory, out)
        else:
            for t, pose in enumerate(poses):
                memory[:] = out[t] = self._iterated(memory, pose)

    def _search(self, goal: Array, start: Array, tolerance: tuple[float, float]) -> Solution:
        """With rows that vary as `CallableSolver`, where a call is a whole step."""
        if self._varying is None:
            return super()._search(goal, start, tolerance)
        return self._varying._search(goal, start, tolerance)

    def _iterated(self, q: Array, pose: Array) -> Array:
        """The iterations of a step towards a pose (7,), each with the rows at its joint positions."""
        at, out = np.array(q), np.empty((1, self.robot.n))
        strict, soft = self._step_settings[:-4], self._step_settings[-4:]
        for _ in range(self.iterations):
            if self._soft is not None:
                hessian, gradient = self._soft.normal_equations(at)
                soft = (np.ascontiguousarray(hessian), gradient, *soft[2:])
            if self._strict is not None:
                rows, values = (np.array(part) for part in self._strict.at(at))
                if rows.shape != strict[0].shape:
                    raise InvalidParameter(
                        "number of a solver's strict rows", len(rows), "the same everywhere"
                    )
                strict = (rows, values)
            self._loop((*strict, *soft), 1, pose[None], at, out)
        return at

    def _moved(self, q: Array, target: pin.SE3) -> Array:
        return self._iterated(q, as_pose(target))

    def lag(self, period: float) -> float | None:
        """Next to none: an iteration removes the whole error."""
        return self._lag_of(0.0, period)


def constrained_step(settings: tuple[Array, Array, float, float], buffers: Buffers) -> None:
    """The lecture's system: strict rows of the task, and soft rows.

    Settings: 2 A^T W A (n, n) and 2 A^T W b (n,) of the soft rows at q = 0; how b falls with A q (for the natural
    posture b = pull (posture - q), with A = I); the cutoff of dependent rows.
    """
    hessian, gradient, pull, cutoff = settings
    for k in range(buffers.rows):
        buffers.wanted[0, k], buffers.wanted[1, k] = buffers.error[k], 0.0
    rank = independent_rows(buffers.jacobian, buffers.rows, cutoff, buffers)
    soft_gradient(hessian, gradient, pull, buffers)
    solve_constraints(buffers.rows, rank, hessian, buffers.motion, buffers)


def strict_rows_step(
    settings: tuple[Array, Array, Array, Array, float, float], buffers: Buffers
) -> None:
    """Custom strict rows come first; of the task remains what they leave free, so the arm comes to rest in conflicts.

    Their motion and what compensates for it at the tool belong together: if they exceed the clamp, both are shortened.
    Where everything can be satisfied this is the lecture's one system, in which no strict row comes before another.
    Settings: the custom rows (m, n) and what they are to attain (m,), then those of `constrained_step`.
    """
    strict, values, hessian, gradient, pull, cutoff = settings
    jacobian, rows, n, own = buffers.jacobian, buffers.rows, buffers.n, strict.shape[0]
    for k in range(own):
        buffers.wanted[1, k] = values[k]
        for j in range(n):
            buffers.strict[j, k] = strict[k, j]
    first = independent_rows(buffers.strict, own, cutoff, buffers)
    for i in range(first):
        buffers.vector[i] = along(i, 1, own, buffers)
    for i in range(first):
        buffers.wanted[0, rows + i], buffers.wanted[1, rows + i] = 0.0, buffers.vector[i]
        for j in range(n):
            buffers.strict[j, rows + i] = buffers.joints[i, j]
    for k in range(rows):
        buffers.wanted[0, k], buffers.wanted[1, k] = buffers.error[k], 0.0
        whole, left = 0.0, 0.0
        for j in range(n):
            whole += jacobian[j, k] * jacobian[j, k]
        for i in range(first):
            shared = 0.0
            for j in range(n):
                shared += jacobian[j, k] * buffers.joints[i, j]
            # The tool motion of the custom rows is compensated where there is freedom left.
            buffers.wanted[1, k] -= shared * buffers.vector[i]
            for j in range(n):
                jacobian[j, k] -= shared * buffers.joints[i, j]
        for j in range(n):
            left += jacobian[j, k] * jacobian[j, k]
        for j in range(n):
            # The direction of a remainder that is nearly zero is rounding, and would violate the rows.
            jacobian[j, k] *= 1.0 if left > cutoff * cutoff * whole else 0.0
            buffers.strict[j, k] = jacobian[j, k]
    rank = independent_rows(buffers.strict, rows + first, cutoff, buffers)
    soft_gradient(hessian, gradient, pull, buffers)
    solve_constraints(rows + first, rank, hessian, buffers.motion, buffers)


def soft_gradient(hessian: Array, gradient: Array, pull: float, buffers: Buffers) -> None:
    """2 A^T W b of the soft rows at `buffers.q`, into `buffers.motion`."""
    q, soft = buffers.q, buffers.motion
    for i in range(buffers.n):
        soft[i] = gradient[i]
        for j in range(buffers.n):
            soft[i] -= hessian[i, j] * pull * q[j]


def independent_rows(jacobian: Array, rows: int, cutoff: float, buffers: Buffers) -> int:
    """J = U S V^T into `buffers`, and its numerical rank: V^T dq = S^-1 U^T e are the independent strict rows.

    They are equivalent to all rows if none depends on others; otherwise they solve J dq = e in least squares. The
    Jacobian is transposed (n, rows or more); rows whose singular value is up to the share `cutoff` of the largest count
    as dependent.
    """
    count = decompose(jacobian, buffers.n, rows, buffers.joints, buffers.singular, buffers.tool)
    rank = 0
    while rank < count and buffers.singular[rank] > cutoff * buffers.singular[0]:
        rank += 1
    return rank


def solve_constraints(
    rows: int, rank: int, hessian: Array, gradient: Array, buffers: Buffers
) -> None:
    """Three motions whose sum satisfies the strict rows and, of those that do, has the smallest soft cost.

    `dq` attains one part of what the rows demand and `held` the other, each without any motion in the null space;
    `drift` reduces the soft cost in the null space. Where as many strict rows as joints are independent they determine
    the motion alone, and no system is solved.

    Args:
        rows, rank: Of the strict rows, as `independent_rows` left them; their e, in two parts, is in `buffers.wanted`.
        hessian: 2 A^T W A (n, n), its largest entry about one, so that the strict rows are not lost in rounding.
        gradient: 2 A^T W b (n,), on the same scale.
    """
    dq, drift, held, n = buffers.dq, buffers.drift, buffers.held, hessian.shape[0]
    if rank == n:
        for j in range(n):
            dq[j], drift[j], held[j] = 0.0, 0.0, 0.0
        for i in range(rank):
            wanted, other = along(i, 0, rows, buffers), along(i, 1, rows, buffers)
            for j in range(n):
                dq[j] += wanted * buffers.joints[i, j]
                held[j] += other * buffers.joints[i, j]
        return
    kkt, sides, size = buffers.matrix, buffers.sides, n + rank
    for a in range(size):
        for b in range(size):
            kkt[a, b] = hessian[a, b] if a < n and b < n else 0.0
    for j in range(n):
        sides[0, j], sides[1, j], sides[2, j] = 0.0, gradient[j], 0.0
    for i in range(rank):
        sides[0, n + i], sides[1, n + i], sides[2, n + i] = (
            along(i, 0, rows, buffers),
            0.0,
            along(i, 1, rows, buffers),
        )
        for j in range(n):
            kkt[n + i, j] = buffers.joints[i, j]
            kkt[j, n + i] = buffers.joints[i, j]
    solve_rank_revealing(kkt, sides, size, buffers.order)
    for j in range(n):
        dq[j], drift[j], held[j] = sides[0, j], sides[1, j], sides[2, j]


def along(i: int, part: int, rows: int, buffers: Buffers) -> float:
    """The motion, rad, along the i-th singular vector for one part of `buffers.wanted`."""
    motion = 0.0
    for k in range(rows):
        motion += buffers.tool[i, k] * buffers.wanted[part, k]
    return motion / buffers.singular[i]
