"""What the iterative solvers share: settings, clamps, restarts, and the calls of the compiled loops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.joint_wrapping import wrap_into_limits
from simbridge.ik.kernels import descent
from simbridge.ik.kernels.step import allocate_buffers
from simbridge.ik.setting_checks import Numbers, numbers
from simbridge.ik.settings import IterativeParameters, resolved, without_clamps
from simbridge.ik.solver import START_TOLERANCE, TOLERANCE, Solution, StatefulSolver
from simbridge.ik.task import task_of
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import restart_postures
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

_TRIES = 20
# Fields of the record of `step.allocate_buffers` that stay as they are.
_RULES = ("rows", "translation_clamp", "rotation_clamp", "step_clamp", "rotation_weight", "difference_step")


class CompiledStep(NamedTuple):
    """A solver's step, as `kernels/step.py` describes it.

    Attributes:
        function: The step; a plain function in a file.
        settings: What it is called with: a tuple of numbers and arrays.
        drifts: Whether it has a motion within the null space.
    """

    function: Callable[..., None]
    settings: tuple[Any, ...]
    drifts: bool = False


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
        self._buffers: Any = allocate_buffers(robot.n)
        rules = (
            *(TASK_ROWS[self.task], *self.settings.error_clamp, self.settings.step_clamp),
            *(self.rotation_weight(), self.settings.difference_step),
        )
        self._buffers["placements"] = robot.placements
        for name, value in zip(_RULES, rules, strict=True):
            self._buffers[name] = value
        self._track_compiled = descent.compiled_loop(
            robot.placements,
            robot.prismatic,
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
        self._track_compiled(settings, self._buffers.copy(), iterations, tolerance, poses, q, out, last)
        return last.tolist()

    def _solve(self, goal: Array, start: Array) -> Solution:
        """First from the start, then from twenty fixed postures, each for at most `max_start_iterations`."""
        return self._search(goal, [start, *restart_postures(self.robot, _TRIES)], START_TOLERANCE)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        joints, residuals = np.empty((len(poses), self.robot.n)), np.empty((len(poses), 2))
        others = restart_postures(self.robot, _TRIES)
        for t, goal in enumerate(poses):
            found = self._search(goal, [start, *others], TOLERANCE)
            joints[t], residuals[t] = found.q, (found.distance, found.angle)
            start = found.q if found.converged else start
        return joints, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _search(self, goal: Array, starts: list[Array], tolerance: tuple[float, float]) -> Solution:
        """The best try: one that attains the goal (7,) within the joint limits, then one that attains it, then that of
        the least residual.

        Joints beyond their limits are turned to where they are nearest to the first of `starts`.
        """
        robot, out, iterations, best, found = self.robot, np.empty((1, self.robot.n)), 0, np.inf, None
        for attempt, begin in enumerate(starts):  # noqa: B007
            q = np.array(begin)
            distance, angle, used = self._loop(
                self._step_settings, self.max_start_iterations, goal[None], q, out, tolerance
            )
            iterations += int(used)
            inside = bool(wrap_into_limits(robot.prismatic, robot.position_min, robot.position_max, starts[0], q))
            miss = max(distance / tolerance[0], angle / tolerance[1])
            converged = inside and miss <= 1.0
            # A posture that attains the target outside the limits is better than one that does not attain it.
            rank = miss if inside or miss > 1.0 else 1.0 + 1e-9
            if found is None or rank < best:
                best, found = rank, Solution(q, converged, distance, angle, 0, 0)
            if converged:
                break
        assert found is not None
        return replace(found, iterations=iterations, restarts=attempt)
