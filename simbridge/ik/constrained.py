"""The constrained step: the task is strict, soft rows are asked for with what joints are left over.

Lecture "Inverse kinematics" (rrlab, University of Kaiserslautern), from "Underdetermined system" to "Optimization:
Algorithm": Lagrange multipliers lead to one linear system for the step and the multipliers,

    [ 2 A^T W A   J^T ] [  dq    ]   [ 2 A^T W b ]
    [     J        0  ] [ lambda ] = [     e     ]

Rows of J that depend on others ("eliminate redundant parameters", step 3 of the algorithm) are left out;
`Solver.last.dependent_rows` says how many. An arm without joints to spare moves as by its inverse Jacobian.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.iteration import routine, track
from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_settings import ConstrainedParameters
from simbridge.ik.kernels.lazy import compiled
from simbridge.ik.rows import Rows, SoftRows
from simbridge.ik.solver import Solution, Solver, Target
from simbridge.ik.stepping import state_for, step_for
from simbridge.ik.steps.constrained import along, independent_rows, step
from simbridge.ik.steps.work import Work, work_for
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# With the task's six, as many rows as the decomposition takes.
_MAX_STRICT = 6


class ConstrainedSettings(NamedTuple):
    """What the compiled step is told.

    Attributes:
        hessian, gradient: 2 A^T W A (n, n) and 2 A^T W b (n,) of the soft rows at q = 0.
        pull: How b falls with A q: of the natural posture b = pull (posture - q), with A = I.
        cutoff: Of dependent rows.
    """

    hessian: Array
    gradient: Array
    pull: float
    cutoff: float


class OwnRowsSettings(NamedTuple):
    """What the compiled step is told where there are strict rows beside those of the task.

    Attributes:
        strict, values: These rows (m, n), and what they are to attain (m,).
        others: All the rest.
    """

    strict: Array
    values: Array
    others: ConstrainedSettings


@step_for(ConstrainedSettings, drifts=True)
def constrained_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """The lecture's system: strict rows of the task, and soft rows."""
    for k in range(rows):
        work.asked[0, k], work.asked[1, k] = error[k], 0.0
    _obey(settings, jacobian, rows, q, work, dq, drift, held)


@step_for(OwnRowsSettings, drifts=True)
def own_rows_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """Own strict rows come first, and of the task what they leave free: so that where both cannot be, it comes to rest.

    Their motion and what makes up for it at the tool are one: if they need more than the clamp, both are shortened.
    Where both can be, all of it is the lecture's one system, in which no strict row comes before another.
    """
    n, own = q.shape[0], settings.strict.shape[0]
    for k in range(own):
        work.asked[1, k] = settings.values[k]
        for j in range(n):
            work.rows[j, k] = settings.strict[k, j]
    first = independent_rows(work.rows, own, settings.others.cutoff, work)
    for i in range(first):
        work.vector[i] = along(i, 1, own, work)
    for i in range(first):
        work.asked[0, rows + i], work.asked[1, rows + i] = 0.0, work.vector[i]
        for j in range(n):
            work.rows[j, rows + i] = work.joints[i, j]
    for k in range(rows):
        work.asked[0, k], work.asked[1, k] = error[k], 0.0
        whole, left = 0.0, 0.0
        for j in range(n):
            whole += jacobian[j, k] * jacobian[j, k]
        for i in range(first):
            shared = 0.0
            for j in range(n):
                shared += jacobian[j, k] * work.joints[i, j]
            # What the rows move of the tool is made up for where there is room.
            work.asked[1, k] -= shared * work.vector[i]
            for j in range(n):
                jacobian[j, k] -= shared * work.joints[i, j]
        for j in range(n):
            left += jacobian[j, k] * jacobian[j, k]
        for j in range(n):
            # Of what is nearly nothing, the direction is rounding, which no row would keep.
            jacobian[j, k] *= 1.0 if left > settings.others.cutoff * settings.others.cutoff * whole else 0.0
            work.rows[j, k] = jacobian[j, k]
    _obey(settings.others, work.rows, rows + first, q, work, dq, drift, held)


@compiled
def _obey(settings, strict, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """Three motions for the strict rows (n, rows) and what is asked of them, and for the soft rows at q (n,)."""
    rank = independent_rows(strict, rows, settings.cutoff, work)
    soft = work.motion
    for i in range(q.shape[0]):
        soft[i] = settings.gradient[i]
        for j in range(q.shape[0]):
            soft[i] -= settings.hessian[i, j] * settings.pull * q[j]
    step(rows, rank, settings.hessian, soft, work, dq, drift, held)


class Constrained(IterativeSolver):
    """The constrained step. Settings: see `ConstrainedParameters`.

    Args:
        robot: The arm.
        soft: Soft rows of one's own, in place of the natural posture.
        strict: Strict rows of one's own, at most six, beside those of the task. Where not all can be had, they come
            first, and what depends on others is solved in the sense of least squares.
        settings: Of `ConstrainedParameters`, by name.

    Raises:
        InvalidParameter: Rows do not fit the arm, or soft rows are given and settings of the natural posture, too.
    """

    name = "constrained"
    Parameters = ConstrainedParameters
    settings: ConstrainedParameters

    def __init__(
        self, robot: Robot, *, soft: SoftRows | None = None, strict: Rows | None = None, **settings: Any
    ) -> None:
        posture = [name for name in ("posture", "weights", "pull") if name in settings]
        if soft is not None and posture:
            raise InvalidParameter("solver's soft rows", f"given with {' and '.join(posture)}", "given without")
        self._soft, self._strict = soft, strict
        super().__init__(robot, **settings)
        if soft is not None or strict is not None:
            # A run that was made with rows of one's own cannot be made again from what settings.toml says.
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
        return self.robot.home if not self.settings.posture else self.for_each_joint("posture", self.settings.posture)

    def kernel_settings(self) -> ConstrainedSettings | OwnRowsSettings:
        s = self.settings
        weights = self.for_each_joint("weights", s.weights)
        hessian, pull = np.diag(2.0 * weights / weights.max()), float(s.pull)
        gradient = hessian @ (pull * self._posture)
        if self._soft is not None:
            (hessian, gradient), pull = self._soft.normal_equations(self.robot.home), 0.0
        others = ConstrainedSettings(hessian, gradient, pull, float(s.cutoff))
        if self._strict is None:
            return others
        strict, values = (np.array(part) for part in self._strict.at(self.robot.home))
        if len(strict) > _MAX_STRICT:
            raise InvalidParameter("number of a solver's strict rows", len(strict), f"at most {_MAX_STRICT}")
        return OwnRowsSettings(strict, values, others)

    def _work(self) -> Work:
        settings = self._kernel_arguments[0]
        return work_for(self.robot.n, 6 + (len(settings.strict) if isinstance(settings, OwnRowsSettings) else 0))

    def step(self, target: Target) -> Array:
        return super().step(target) if self._varying is None else Solver.step(self, target)

    def _strict_rows(self) -> Array | None:
        return None if self._strict is None else self._strict.at(self._q)[0]

    def _track(self, poses: Array, q0: Array) -> Array:
        if self._varying is None:
            return super()._track(poses, q0)
        out, q = np.empty((len(poses), self.robot.n)), q0
        for t, pose in enumerate(poses):
            q = out[t] = self._iterated(q, pose)
        return out

    def _solve(self, goal: Array, start: Array) -> Solution:
        """As of every iterative solver; with rows that vary as of `CallableSolver`, a call being a whole step."""
        return super()._solve(goal, start) if self._varying is None else self._varying._solve(goal, start)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        return super()._solve_each(poses, start) if self._varying is None else self._varying._solve_each(poses, start)

    def _iterated(self, q: Array, pose: Array) -> Array:
        """The iterations of a step towards a pose (7,), each with the rows as they are where it begins."""
        settings, *arguments = self._kernel_arguments
        soft, own = (settings.others, settings) if isinstance(settings, OwnRowsSettings) else (settings, None)
        at, out = np.array(q), np.empty((1, self.robot.n))
        run, room = routine(track, self.name, self._looks), (state_for(self.robot.n), self._work())
        for _ in range(self.iterations):
            if self._soft is not None:
                hessian, gradient = self._soft.normal_equations(at)
                soft = soft._replace(hessian=np.ascontiguousarray(hessian), gradient=gradient)
            if own is not None and self._strict is not None:
                strict, values = map(np.ascontiguousarray, self._strict.at(at))
                if strict.shape != own.strict.shape:
                    raise InvalidParameter("number of a solver's strict rows", len(strict), "the same everywhere")
                own = OwnRowsSettings(strict, values, soft)
            run(soft if own is None else own, *arguments, 1, pose[None], at, *room, out)
        return at

    def _moved(self, q: Array, target: pin.SE3) -> Array:
        return self._iterated(q, np.array(pin.SE3ToXYZQUAT(target)))

    def lag(self, period: float) -> float | None:
        """None to speak of: an iteration is to remove the whole error."""
        return self._lag_of(0.0, period)
