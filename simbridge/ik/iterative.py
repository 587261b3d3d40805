"""What the iterative solvers share: settings from flags, clamps, restarts, and the calls into compiled loops."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.forward_dynamics import TOLERANCE, restart_postures
from simbridge.ik.iteration import Found, routine, solve, track
from simbridge.ik.iterative_settings import IterativeParameters
from simbridge.ik.kernels.routine import Call
from simbridge.ik.linearization import chain_of
from simbridge.ik.routine_solver import RoutineSolver
from simbridge.ik.setting_checks import Numbers, numbers
from simbridge.ik.solver import Solution, Solver
from simbridge.ik.stepping import Rules, state_for
from simbridge.ik.steps.work import Work, work_for
from simbridge.ik.task import TASKS, task_of
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

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

    def __getstate__(self) -> dict[str, Any]:
        # The chain's class is made when it is needed, and so is not found by its name.
        return {name: value for name, value in super().__getstate__().items() if name != "_kernel_arguments"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._kernel_arguments = self._arguments()

    def kernel_settings(self) -> tuple[Any, ...]:
        """The tuple whose type names the step, for `iteration.track` and `iteration.solve`."""
        raise TypeError(f"{type(self).__name__} declares no step")

    def rotation_weight(self) -> float:
        """Of a radian against a metre in the cost that the step descends."""
        return 1.0

    def _work(self) -> Work:
        """Room for a step."""
        return work_for(self.robot.n)

    def for_each_joint(self, name: str, values: Numbers) -> Array:
        """A number for each joint (n,), from as many or from one.

        Raises:
            InvalidParameter: They are of another number, or not finite.
        """
        given = np.array(numbers(name, values))
        if len(given) not in (1, self.robot.n) or not np.all(np.isfinite(given)):
            raise InvalidParameter(f"solver's {name}", values, f"one finite number, or {self.robot.n}")
        return given * np.ones(self.robot.n)

    def _lag_of(self, rho: float, period: float) -> float:
        """The lag behind a steady motion, s, if each of N iterations leaves the part rho of the error."""
        left = float(rho**self.settings.iterations)
        return period * left / (1.0 - left)

    def _arguments(self) -> tuple[Any, ...]:
        chosen = self.settings
        chain, self._looks = chain_of(self.robot, self.task)
        translation, rotation = chosen.error_clamp
        rules = Rules(TASKS[self.task], translation, rotation, chosen.step_clamp, self.rotation_weight())
        return self.kernel_settings(), chain, rules

    @property
    def iterations(self) -> int:
        return self.settings.iterations

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.settings).items()}

    @property
    def reaching(self) -> Solver:
        return self if self.dependable else fallback_solver(self.robot, self.task)

    def _bound(self, poses: Array, memory: Array, out: Array) -> Call:
        """The call that goes on from `memory`, joint positions (n,), which go along."""
        run = routine(track, self.name, self._looks)
        room = state_for(self.robot.n), self._work()
        return run.bound(*self._kernel_arguments, self.iterations, poses, memory, *room, out)

    def _solve(self, goal: Array, start: Array) -> Solution:
        """First from the start, then from twenty fixed postures, each for at most `patience` iterations."""
        q, residuals, used, tries, inside = self._search(goal[None], start, _START_TOLERANCE)
        close = bool(np.all(residuals[0] <= _START_TOLERANCE))
        distance, angle = map(float, residuals[0])
        return Solution(q[0], close and bool(inside[0]), distance, angle, int(used[0]), int(tries[0]) - 1)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _, _, _ = self._search(poses, start, TOLERANCE)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _search(self, poses: Array, start: Array, tolerance: tuple[float, float]) -> Found:
        total, n = len(poses), self.robot.n
        counts = np.empty(total, np.int64), np.empty(total, np.int64)
        found = Found(np.empty((total, n)), np.empty((total, 2)), *counts, np.empty(total, np.bool_))
        routine(solve, self.name, self._looks)(
            *self._kernel_arguments,
            self.patience,
            poses,
            start,
            restart_postures(self.robot, _TRIES),
            np.array(tolerance),
            state_for(n),
            self._work(),
            found,
        )
        return found


def fallback_solver(robot: Robot, task: str) -> Solver:
    """A solver that reaches what can be reached: selectively damped, which needs no tuning."""
    from simbridge.ik.selectively_damped import SelectivelyDamped

    return SelectivelyDamped(robot, task=task)
