"""What the iterative solvers share: settings, clamps, restarts, and the calls of the compiled loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.kernels import descent
from simbridge.ik.setting_checks import Numbers, numbers
from simbridge.ik.settings import IterativeParameters, resolved, without_clamps
from simbridge.ik.solver import START_TOLERANCE, TOLERANCE, Solution, StatefulSolver
from simbridge.ik.task import task_of
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import restart_postures
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

_TRIES = 20


class CompiledStep(NamedTuple):
    """A solver's step, as `kernels/step.py` describes it.

    Attributes:
        function: The step; a plain function in a file.
        settings: What it is called with: a tuple of numbers and arrays.
        drifts: Whether it has a motion within the null space.
        strict_rows: Strict rows that the solver adds to those of the task.
    """

    function: Callable[..., None]
    settings: tuple[Any, ...]
    drifts: bool = False
    strict_rows: int = 0


class IterativeSolver(StatefulSolver):
    """A solver that repeats one step.

    Args:
        robot: The arm.
        settings: Of the class's `Parameters`; the defaults if left out.
        changes: Single settings by name. A clamp that is None is no clamp; elsewhere None is "not given".

    Raises:
        InvalidParameter: A setting makes no sense.
        UnknownName: There is no such setting, or no such task.
    """

    Parameters: ClassVar[type[IterativeParameters]]
    max_start_iterations: ClassVar[int] = 300
    """Largest number of iterations of a try of `solve`."""

    @property
    def description(self) -> str:
        """The solver as the notice about compiling names it."""
        return f"{self.name} solver"

    def __init__(self, robot: Robot, settings: Any = None, **changes: Any) -> None:
        super().__init__(robot)
        given: IterativeParameters = resolved(self.Parameters, settings, without_clamps(changes))
        self.task = task_of(robot, given.task or None)
        self.settings = replace(given, task=self.task)
        step = self.compiled_step()
        translation, rotation = self.settings.error_clamp
        rules = (
            TASK_ROWS[self.task],
            6 + step.strict_rows,
            translation,
            rotation,
            self.settings.step_clamp,
            self.rotation_weight(),
        )
        self._kernels = descent.kernels(
            robot.placements, robot.prismatic, self.task, self.description, step.function, step.drifts
        )
        self._arguments: tuple[Any, ...] = (step.settings, np.array(robot.placements), rules)

    @abstractmethod
    def compiled_step(self) -> CompiledStep:
        """The step and its settings."""

    def rotation_weight(self) -> float:
        """Weight of a radian against a metre in the cost that the step reduces."""
        return 1.0

    def for_each_joint(self, name: str, values: Numbers) -> Array:
        """A number for each joint (n,), from as many or from one.

        Raises:
            InvalidParameter: Their number does not fit, or one is not finite.
        """
        given = np.array(numbers(name, values))
        if len(given) not in (1, self.robot.n) or not np.all(np.isfinite(given)):
            raise InvalidParameter(f"solver's {name}", values, f"one finite number, or {self.robot.n}")
        return given * np.ones(self.robot.n)

    def _lag_of(self, rho: float, period: float) -> float:
        """The lag behind a steady motion, s, if each of N iterations leaves the part rho of the error."""
        left = float(rho**self.settings.iterations)
        return period * left / (1.0 - left)

    @property
    def iterations(self) -> int:
        return self.settings.iterations

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.settings).items()}

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        self._kernels.track(*self._arguments, self.iterations, poses, memory, out)

    def _solve(self, goal: Array, start: Array) -> Solution:
        """First from the start, then from twenty fixed postures, each for at most `max_start_iterations`."""
        q, residuals, used, tries, inside = self._search(goal[None], start, START_TOLERANCE)
        close = bool(np.all(residuals[0] <= START_TOLERANCE))
        distance, angle = map(float, residuals[0])
        return Solution(q[0], close and bool(inside[0]), distance, angle, int(used[0]), int(tries[0]) - 1)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        q, residuals, _, _, _ = self._search(poses, start, TOLERANCE)
        return q, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _search(self, poses: Array, start: Array, tolerance: tuple[float, float]) -> tuple[Array, ...]:
        """Joint positions (T, n), residuals (T, 2), iterations and tries (T,), and whether within limits (T,)."""
        total, robot = len(poses), self.robot
        found: tuple[Any, ...] = (
            np.empty((total, robot.n)),
            np.empty((total, 2)),
            np.empty(total, np.int64),
            np.empty(total, np.int64),
            np.empty(total, np.bool_),
        )
        limits = np.array([robot.position_min, robot.position_max])
        starts, slides = restart_postures(robot, _TRIES), np.array(robot.prismatic)
        self._kernels.solve(
            *self._arguments, self.max_start_iterations, poses, slides, limits, start, starts, tolerance, *found
        )
        return found
