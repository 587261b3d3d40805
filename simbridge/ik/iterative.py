"""What the iterative solvers share: settings, clamps, restarts, and the calls of the compiled loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.ik.checks import Numbers, as_numbers
from simbridge.ik.kernels import descent
from simbridge.ik.kernels.mathematics import structure_of
from simbridge.ik.parameters import IterativeParameters
from simbridge.ik.settings import resolved, without_clamps
from simbridge.ik.solver import Solver
from simbridge.ik.targets import task_of
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


class CompiledStep(NamedTuple):
    """A solver's step, a plain function as `kernels/descent.py` describes it, and the settings that it is called with;
    drifts: whether it has a motion within the null space."""

    function: Callable[..., None]
    settings: tuple[Any, ...]
    drifts: bool = False


class IterativeSolver(Solver):
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
        self._buffers: Any = descent.allocate_buffers(robot.n)
        self._buffers["placements"] = robot.placements
        self._buffers["rows"] = TASK_ROWS[self.task]
        self._buffers["translation_clamp"], self._buffers["rotation_clamp"] = (
            self.settings.error_clamp
        )
        self._buffers["step_clamp"] = self.settings.step_clamp
        self._buffers["rotation_weight"] = self.rotation_weight()
        self._buffers["difference_step"] = self.settings.difference_step
        self._track_compiled = descent.compiled_loop(
            structure_of(robot.placements, robot.prismatic),
            self.task,
            self.description,
            step.function,
            drifts=step.drifts,
            differences=self.settings.jacobian == "difference",
        )
        self._step_settings = step.settings

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
        given = np.array(as_numbers(name, values))
        if len(given) not in (1, self.robot.n) or not np.all(np.isfinite(given)):
            raise InvalidParameter(
                f"solver's {name}", values, f"one finite number, or {self.robot.n}"
            )
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
        return {
            name: list(v) if isinstance(v, tuple) else v
            for name, v in asdict(self.settings).items()
        }

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        self._loop(self._step_settings, self.iterations, poses, memory, out)

    def _loop(
        self,
        settings: tuple[Any, ...],
        iterations: int,
        poses: Array,
        q: Array,
        out: Array,
        tolerance: tuple[float, float] = (-1.0, -1.0),
    ) -> list[float]:
        """The compiled loop: see `descent.track`. Returns distance, angle and iterations at the last pose."""
        last = np.zeros(3)
        self._track_compiled(
            settings, self._buffers.copy(), iterations, tolerance, poses, q, out, last
        )
        return last.tolist()

    def _try(
        self, goal: Array, q: Array, tolerance: tuple[float, float]
    ) -> tuple[Array, float, float, int]:
        out = np.empty((1, self.robot.n))
        most = self.max_start_iterations
        distance, angle, used = self._loop(self._step_settings, most, goal[None], q, out, tolerance)
        return q, distance, angle, int(used)
