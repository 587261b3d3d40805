"""An adapter from a function to a solver, so that it runs in every scenario and wherever solvers are compared."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import ForeignSolverError, InvalidParameter, SimbridgeError
from simbridge.ik.joint_wrapping import wrap_into_limits
from simbridge.ik.settings import fallback_solver
from simbridge.ik.solver import START_TOLERANCE, TOLERANCE, Solution, Solver
from simbridge.ik.task import residual, task_of
from simbridge.robot.kinematics import restart_postures, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

StepFunction: TypeAlias = Callable[[Array, pin.SE3], Array | Sequence[float]]

_CALLS, _TRIES = 100, 5


class CallableSolver(Solver):
    """A custom solver, called once per control period.

    Args:
        robot: The arm.
        function: Given the present joint positions (n,) in rad and the target pose of the TCP in base_link, returns the
            next ones (n,). It may keep a state, but then `track` is no longer repeatable.
        name: For the reports.
        task: The part of the target that the function is meant to attain; the robot's own by default.

    Raises:
        InvalidParameter: The function cannot be called; later, it returns something else than n finite numbers.
        ForeignSolverError: Later: it failed; what it raised is the cause.
    """

    def __init__(
        self, robot: Robot, function: StepFunction, *, name: str | None = None, task: str | None = None
    ) -> None:
        super().__init__(robot)
        if not callable(function):
            raise InvalidParameter("solver", function, "a Solver, or a function of joint positions and a target")
        self._function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.task = task_of(robot, task)

    @property
    def iterations(self) -> int:
        return 1

    @property
    def parameters(self) -> dict[str, Any]:
        function = self._function
        place = getattr(function, "__module__", None) or ""
        return {"function": f"{place}.{getattr(function, '__qualname__', type(function).__name__)}", "task": self.task}

    @property
    def reaching(self) -> Solver:
        return fallback_solver(self.robot, self.task)

    def _call(self, q: Array, target: pin.SE3) -> Array:
        try:
            answer = self._function(q.copy(), target)
        except SimbridgeError:
            raise
        except Exception as error:
            raise ForeignSolverError(self.name, f"failed with {_summary(error)}, at the joints {q.tolist()}") from error
        try:
            joints = np.array(answer, dtype=float)
        except (TypeError, ValueError):
            joints = np.empty(0)
        if joints.shape != (self.robot.n,) or not np.all(np.isfinite(joints)):
            raise InvalidParameter(f"answer of the solver {self.name}", answer, f"{self.robot.n} finite numbers")
        return joints

    def _track(self, poses: Array, q0: Array) -> Array:
        out, q = np.empty((len(poses), self.robot.n)), q0
        for t, target in enumerate(poses):
            q = out[t] = self._call(q, pin.XYZQUATToSE3(target))
        return out

    def _solve(self, goal: Array, start: Array) -> Solution:
        """Calls the function repeatedly, at most a hundred times from the start and from each of five fixed
        postures. Joints beyond their limits are turned by whole turns where that helps.
        """
        return self._search(goal, start, START_TOLERANCE)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        found = []
        for goal in poses:
            found.append(self._search(goal, start, TOLERANCE))
            start = found[-1].q if found[-1].converged else start
        residuals = np.array([(solution.distance, solution.angle) for solution in found]).reshape(-1, 2)
        joints = np.array([solution.q for solution in found]).reshape(-1, self.robot.n)
        return joints, residuals, np.all(residuals <= TOLERANCE, axis=1)

    def _search(self, goal: Array, start: Array, tolerance: tuple[float, float]) -> Solution:
        frame = pin.XYZQUATToSE3(goal)
        best, calls, attempt = None, 0, 0
        for attempt, begin in enumerate([start, *restart_postures(self.robot, _TRIES)]):
            q = np.array(begin)
            for _ in range(_CALLS):
                q, calls = self._call(q, frame), calls + 1
                left = residual(self.task, goal, tool_path(self.robot, q[None])[0])
                if left[0] <= tolerance[0] and left[1] <= tolerance[1]:
                    break
            robot = self.robot
            inside = bool(wrap_into_limits(robot.prismatic, robot.position_min, robot.position_max, start, q))
            close = inside and left[0] <= tolerance[0] and left[1] <= tolerance[1]
            if best is None or close or sum(left) < best.distance + best.angle:
                best = Solution(q, close, *left, calls, attempt)
            if close:
                break
        assert best is not None
        return replace(best, iterations=calls, restarts=attempt)


class RecordedSolver(CallableSolver):
    """The custom solver of an earlier run, as its settings.toml records it: a replay calls no solver."""

    def __init__(self, robot: Robot, recorded: Mapping[str, Any]) -> None:
        super().__init__(robot, lambda q, target: q, name=recorded["name"], task=recorded.get("task"))
        self._recorded = recorded

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self._recorded["parameters"])


def _summary(error: Exception) -> str:
    """An exception of custom code: its class, message and place."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error}".rstrip(".: ")
    return f"{text} ({where.filename}, line {where.lineno})"
