"""What the iterative solvers share: settings from flags, clamps, restarts, and the calls into compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.codegen.routine import Call
from simbridge.ik.forward_dynamics import TOLERANCE, restart_postures
from simbridge.ik.iteration import Found, Rules, routine, solve, state_for, track
from simbridge.ik.iterative_parameters import IterativeParameters
from simbridge.ik.look import chain_of
from simbridge.ik.routine_solver import RoutineSolver
from simbridge.ik.solver import Array, Solution, Solver, Target, as_pose
from simbridge.ik.steps.work import work_for
from simbridge.ik.task import TASKS, task_of
from simbridge.robot import Robot

_START_TOLERANCE = (1e-10, 1e-10)
_TRIES = 20


class IterativeSolver(RoutineSolver):
    """A solver that repeats one step: what it does is in its settings' type and the step declared for that type.

    Args:
        robot: The arm.
        settings: Fields of the solver's `Parameters`, by name. A clamp that is None is no clamp.

    Raises:
        InvalidParameter: A setting makes no sense.
        UnknownName: There is no such task.
    """

    Parameters: ClassVar[type[IterativeParameters]]
    # The most iterations of a try of `solve`.
    patience: ClassVar[int] = 300
    # Whether `solve` converges fast, and to the target itself.
    dependable: ClassVar[bool] = True

    def __init__(self, robot: Robot, **settings: Any) -> None:
        super().__init__(robot)
        for name in ("error_clamp", "step_clamp"):
            if name in settings and settings[name] is None:
                settings[name] = (np.inf, np.inf) if name == "error_clamp" else np.inf
        given = self.Parameters(**settings)
        self.task = task_of(robot, given.task or None)
        self.settings = replace(given, task=self.task)
        self._kernel_arguments = self._arguments()

    def kernel_settings(self) -> tuple[Any, ...]:
        """The tuple whose type names the step, for `iteration.track` and `iteration.solve`."""
        raise TypeError(f"{type(self).__name__} declares no step")

    def rotation_weight(self) -> float:
        """Of a radian against a metre in the cost that the step descends."""
        return 1.0

    def for_each_joint(self, name: str, values: Sequence[float]) -> Array:
        """A number for each joint (n,), from as many or from one.

        Raises:
            InvalidParameter: They are of another number, or not finite.
        """
        given = np.array(values, dtype=float)
        if given.shape not in ((1,), (self.robot.n,)) or not np.all(np.isfinite(given)):
            raise InvalidParameter(f"solver's {name}", values, f"one finite number, or {self.robot.n}")
        return given * np.ones(self.robot.n)

    def _lag_of(self, rho: float, period: float) -> float:
        """The lag behind a steady motion, s, if each of N iterations leaves the part rho of the error."""
        left = float(rho**self.settings.iterations)
        return period * left / (1.0 - left)

    def _arguments(self) -> tuple[Any, ...]:
        chosen = self.settings
        chain, self._looks = chain_of(self.robot, self.task)
        clamps = (float(chosen.error_clamp[0]), float(chosen.error_clamp[1]), float(chosen.step_clamp))
        return self.kernel_settings(), chain, Rules(TASKS[self.task], *clamps, self.rotation_weight())

    @property
    def iterations(self) -> int:
        return self.settings.iterations

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.settings).items()}

    @property
    def reaching(self) -> Solver:
        return self if self.dependable else dependable_solver(self.robot, self.task)

    def _bound(self, poses: Array, q0: Array, out: Array, iterations: int | None = None) -> Call:
        """The call that goes on from q0 to the poses (T, 7), and leaves joint positions in out (T, n)."""
        run = routine(track, self.name, self._looks)
        room = state_for(self.robot.n), work_for(self.robot.n)
        return run.bound(
            *self._kernel_arguments, iterations or self.iterations, poses, np.array(q0, dtype=float), *room, out
        )

    def solve(self, target: Target, q0: Array | None = None) -> Solution:
        """First from q0, then from twenty fixed postures, each for at most `patience` iterations."""
        start = self.robot.home if q0 is None else np.asarray(q0, dtype=float)
        q, residuals, used, tries, inside = self._solve(as_pose(target)[None], start, _START_TOLERANCE)
        close = bool(np.all(residuals[0] <= _START_TOLERANCE))
        distance, angle = map(float, residuals[0])
        return Solution(q[0], close and bool(inside[0]), distance, angle, int(used[0]), int(tries[0]) - 1)

    def solve_each(self, poses: Array, q0: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _, _, _ = self._solve(poses, q0, TOLERANCE)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _solve(self, poses: Array, q0: Array, tolerance: tuple[float, float]) -> Found:
        total, n = len(poses), self.robot.n
        counts = np.empty(total, np.int64), np.empty(total, np.int64)
        found = Found(np.empty((total, n)), np.empty((total, 2)), *counts, np.empty(total, np.bool_))
        routine(solve, self.name, self._looks)(
            *self._kernel_arguments,
            self.patience,
            np.ascontiguousarray(poses, dtype=float),
            np.array(q0, dtype=float),
            restart_postures(self.robot, _TRIES),
            np.array(tolerance),
            state_for(n),
            work_for(n),
            found,
        )
        return found


def dependable_solver(robot: Robot, task: str) -> Solver:
    """A solver that reaches what can be reached: selectively damped, which needs no tuning."""
    from simbridge.ik.selectively_damped import SelectivelyDamped

    return SelectivelyDamped(robot, task=task)
