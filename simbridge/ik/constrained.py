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
from simbridge.ik.arrays import Array
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.iteration import routine, track
from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_parameters import ConstrainedParameters
from simbridge.ik.rows import Rows, SoftRows
from simbridge.ik.solver import Solution, Solver, Target
from simbridge.ik.stepping import state_for, step_for
from simbridge.ik.steps.constrained import independent_rows, step
from simbridge.ik.steps.work import Work, work_for
from simbridge.robot import Robot

# With the task's six, as many rows as the decomposition takes.
_MOST_STRICT = 6


class ConstrainedSettings(NamedTuple):
    """What the compiled step is told.

    Attributes:
        hessian, gradient: 2 A^T W A (n, n) and 2 A^T W b (n,) of the soft rows at q = 0.
        pull: How b falls with A q: of the natural posture b = pull (posture - q), with A = I.
        strict, values: Strict rows (m, n) and what they are to attain (m,), after those of the task.
        cutoff: Of dependent rows.
    """

    hessian: Array
    gradient: Array
    pull: float
    strict: Array
    values: Array
    cutoff: float


@step_for(ConstrainedSettings, drifts=True)
def constrained_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """The whole system in three parts: the task's error, which is to be lessened; own strict rows; and soft rows."""
    s, n, own = settings, q.shape[0], settings.strict.shape[0]
    total = rows + own
    for k in range(total):
        task = k < rows
        work.asked[0, k], work.asked[1, k] = error[k] if task else 0.0, 0.0 if task else s.values[k - rows]
        for j in range(n):
            work.rows[j, k] = jacobian[j, k] if task else s.strict[k - rows, j]
    rank = independent_rows(work.rows, total, s.cutoff, work)
    soft = work.motion
    for i in range(n):
        soft[i] = s.gradient[i]
        for j in range(n):
            soft[i] -= s.hessian[i, j] * s.pull * q[j]
    step(total, rank, s.hessian, soft, work, dq, drift, held)


class Constrained(IterativeSolver):
    """The constrained step. Settings: see `ConstrainedParameters`.

    Args:
        robot: The arm.
        soft: Soft rows of one's own, in place of the natural posture.
        strict: Strict rows of one's own, at most six, beside those of the task. What depends on others is solved in the
            sense of least squares.
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

    def kernel_settings(self) -> ConstrainedSettings:
        s, n = self.settings, self.robot.n
        weights = self.for_each_joint("weights", s.weights)
        hessian, pull = np.diag(2.0 * weights / weights.max()), float(s.pull)
        gradient = hessian @ (pull * self._posture)
        strict, values = np.zeros((0, n)), np.zeros(0)
        if self._soft is not None:
            (hessian, gradient), pull = self._soft.normal_equations(self.robot.home), 0.0
        if self._strict is not None:
            strict, values = (np.array(part) for part in self._strict.at(self.robot.home))
            if len(strict) > _MOST_STRICT:
                raise InvalidParameter("number of a solver's strict rows", len(strict), f"at most {_MOST_STRICT}")
        return ConstrainedSettings(
            hessian,
            gradient,
            pull,
            strict,
            values,
            float(s.cutoff),
        )

    def _has_own_rows(self) -> bool:
        return self._strict is not None

    def _work(self) -> Work:
        return work_for(self.robot.n, 6 + len(self._kernel_arguments[0].strict))

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
        settings, *others = self._kernel_arguments
        at, out = np.array(q), np.empty((1, self.robot.n))
        run, room = routine(track, self.name, self._looks), (state_for(self.robot.n), self._work())
        for _ in range(self.iterations):
            if self._soft is not None:
                hessian, gradient = self._soft.normal_equations(at)
                settings = settings._replace(hessian=np.ascontiguousarray(hessian), gradient=gradient)
            if self._strict is not None:
                strict, values = map(np.ascontiguousarray, self._strict.at(at))
                if strict.shape != settings.strict.shape:
                    raise InvalidParameter("number of a solver's strict rows", len(strict), "the same everywhere")
                settings = settings._replace(strict=strict, values=values)
            run(settings, *others, 1, pose[None], at, *room, out)
        return at

    def _moved(self, q: Array, target: pin.SE3) -> Array:
        return self._iterated(q, np.array(pin.SE3ToXYZQUAT(target)))

    def lag(self, period: float) -> float | None:
        """None to speak of: an iteration is to remove the whole error."""
        return self._lag_of(0.0, period)
