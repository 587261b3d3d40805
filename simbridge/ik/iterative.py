"""The base of iterative solvers: settings, clamps, restarts, and calls of the compiled loop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.ik.checks import Numbers, as_numbers
from simbridge.ik.kernels.descent import compiled_loop
from simbridge.ik.kernels.generation import structure_of
from simbridge.ik.kernels.records import Descent, allocate_descent
from simbridge.ik.parameters import IterativeParameters
from simbridge.ik.settings import change_settings, without_clamps
from simbridge.ik.solver import Attempt, Solver
from simbridge.ik.targets import task_of
from simbridge.kernels.records import copy_records, with_attributes
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Tolerances that are never met, so that all iterations are made.
NO_TOLERANCE = (-1.0, -1.0)


class CompiledStep(NamedTuple):
    """A solver's step.

    Attributes:
        function: A plain function as `kernels/descent.py` describes it.
        settings: The numbers and arrays that it is called with. A plain tuple, since numba takes a
            microsecond of each call to recognize the type of a named one.
        drifts: True if it fills in `descent.iterate.drift`, a motion within the null space. The
            loop is then compiled with a search along it.
    """

    function: Callable[..., None]
    settings: tuple[Any, ...]
    drifts: bool = False


class IterativeSolver(Solver):
    """A solver that repeats one step.

    Args:
        robot: The arm.
        settings: Settings of the class's `Parameters`; the defaults if left out.
        changes: Single settings by name. A clamp of None is infinite; other settings of None are
            not given.

    Raises:
        InvalidParameter: A setting makes no sense.
        UnknownName: There is no such setting, or no such task.
    """

    Parameters: ClassVar[type[IterativeParameters]]
    max_start_iterations: ClassVar[int] = 300
    """Maximum number of iterations in each attempt of `solve`."""

    @property
    def description(self) -> str:
        """The solver as the notice about compiling names it."""
        return f"{self.name} solver"

    def __init__(self, robot: Robot, settings: Any = None, **changes: Any) -> None:
        super().__init__(robot)

        # The settings, with the robot's own task where none is named ("").
        chosen: IterativeParameters = change_settings(
            self.Parameters, settings, without_clamps(changes)
        )
        self.task = task_of(robot, chosen.task or None)
        self.settings = replace(chosen, task=self.task)

        # The step of the subclass, which reads the settings above.
        step = self.compiled_step()
        self._step_settings = step.settings

        # The record that the compiled loop works on: an array with one element, since compiled code
        # takes no record by itself. `descent` is this element, the same memory, and fills in all
        # that stays constant.
        self._descents = allocate_descent(robot.n)
        descent: Descent = with_attributes(self._descents)[0]
        descent.iterate.rows = TASK_ROWS[self.task]
        search = descent.search
        search.placements = robot.placements
        search.translation_clamp, search.rotation_clamp = self.settings.error_clamp
        search.step_clamp = self.settings.step_clamp
        search.rotation_weight = self.rotation_weight()
        search.difference_step = self.settings.difference_step

        # The loop around the step, for the chain's structure: which of its numbers are zero or one.
        self._track_compiled = compiled_loop(
            structure_of(robot.placements, robot.prismatic),
            self.task,
            self.description,
            step=step.function,
            drifts=step.drifts,
            differences=self.settings.jacobian == "difference",
        )

    @abstractmethod
    def compiled_step(self) -> CompiledStep:
        """Return the step and its settings."""

    def rotation_weight(self) -> float:
        """Return the weight of a radian against a metre in the cost that the step reduces."""
        return 1.0

    def for_each_joint(self, name: str, values: Numbers) -> Array:
        """Return a number for each joint (n,).

        Args:
            name: The setting.
            values: A number for each joint, or a single one for all.

        Raises:
            InvalidParameter: Their number does not fit, or one is not finite.
        """
        numbers = np.array(as_numbers(name, values))
        if len(numbers) not in (1, self.robot.n) or not np.all(np.isfinite(numbers)):
            needed = f"one finite number, or {self.robot.n}"
            raise InvalidParameter(f"solver's {name}", values, needed)
        return numbers * np.ones(self.robot.n)

    @property
    def iterations(self) -> int:
        return self.settings.iterations

    @property
    def search_settings(self) -> Any:
        # The number of iterations is that of a step; `solve` makes as many as it needs.
        return self.name, replace(self.settings, iterations=1)

    @property
    def parameters(self) -> dict[str, Any]:
        parameters = asdict(self.settings)
        for name, value in parameters.items():
            if isinstance(value, tuple):
                parameters[name] = list(value)
        return parameters

    def _lag_of(self, rho: float, period: float) -> float:
        """Return the lag behind a steady motion, s.

        Args:
            rho: The fraction of the error that each of N iterations leaves.
            period: Control period, s.
        """
        remaining = float(rho**self.settings.iterations)
        return period * remaining / (1.0 - remaining)

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        self._iterate(self._step_settings, self.iterations, poses, q=memory, out=out)

    def _iterate(
        self,
        settings: tuple[Any, ...],
        iterations: int,
        poses: Array,
        *,
        q: Array,
        out: Array,
        tolerance: tuple[float, float] = NO_TOLERANCE,
    ) -> tuple[float, float, int]:
        """Run the compiled loop: see `kernels.descent.track`.

        Args:
            settings: Settings of the step.
            iterations: The largest number of iterations per target.
            poses: The targets (T, 7).
            q: Joint positions (n,), rad, to begin with. They are changed to the last ones.
            out: Result: the joint positions (T, n), rad, at which each target was left.
            tolerance: Translation (m) and rotation (rad) at which the iterations end.

        Returns:
            Remaining translation (m) and rotation (rad), and iterations, at the last pose.
        """
        last = np.zeros(3)
        descents = copy_records(self._descents)
        self._track_compiled(settings, descents, iterations, tolerance, poses, q, out, last)
        distance, angle, used = last.tolist()
        return distance, angle, int(used)

    def _try(self, goal: Array, q: Array, tolerance: tuple[float, float]) -> Attempt:
        out = np.empty((1, self.robot.n))
        distance, angle, used = self._iterate(
            self._step_settings,
            self.max_start_iterations,
            goal[None],
            q=q,
            out=out,
            tolerance=tolerance,
        )
        return Attempt(q, distance, angle=angle, iterations=used)
