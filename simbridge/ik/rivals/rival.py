"""Defines the base of the rivals: a call of another library once per control period."""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter, optional_package
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.parameters import TASKS, SolverParameters, setting
from simbridge.ik.settings import RIVALS, change_settings
from simbridge.ik.solver import Attempt
from simbridge.ik.targets import adopt_free_rotation, task_of
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import join_words


@dataclass(frozen=True)
class RivalParameters(SolverParameters):
    """Settings that the rivals share."""

    packages: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The modules that the library needs, each with the name of its package."""
    extra: ClassVar[str] = "rivals"
    """simbridge's extra that contains these packages; "" for none."""
    command: ClassVar[str] = ""
    """The command that installs these packages; "" for that of pip."""

    task: str = setting("", unset="the robot's", choices=TASKS)
    """Part of the target to attain: pose, axis (position and the tool's z axis) or position."""


class Rival(CallableSolver):
    """A solver of another library.

    If the library reports that it has not found a solution, the arm stays where it is for that
    control period. The answers of a library that reports nothing are all commanded.

    Args:
        robot: The arm.
        settings: Settings of the class's `Parameters`; the defaults if left out.
        changes: Single settings by name; a setting of None does not change anything.

    Raises:
        MissingPackage: The library is not installed.
        InvalidParameter: A setting makes no sense, or the library has no such task.
        UnknownName: There is no such setting.
    """

    Parameters: ClassVar[type[RivalParameters]]
    settings: Any
    tasks: ClassVar[tuple[str, ...]] = ("pose", "axis", "position")
    """The tasks that the library has."""

    def __init__(self, robot: Robot, settings: Any = None, **changes: Any) -> None:
        # The settings, with the task of the robot if they name none.
        chosen: RivalParameters = change_settings(self.Parameters, settings, changes)
        task = task_of(robot, chosen.task)
        if task not in self.tasks:
            raise InvalidParameter(f"task of {self.name}", task, join_words(self.tasks, "or"))
        self.settings = replace(chosen, task=task)

        super().__init__(robot, self._command, name=self.name, task=task)

        # The working memory of pinocchio's kinematics.
        self._kinematics = robot.model.createData()
        # Joint positions (n,), rad, at which the present motion began.
        self.start = robot.home
        # Modules of the library, by their names.
        self.modules = {
            module: optional_package(
                module,
                package,
                purpose=f"--solver {self.name}",
                extra=chosen.extra,
                command=chosen.command,
            )
            for module, package in chosen.packages
        }
        self.load_arm()

    @property
    def parameters(self) -> dict[str, Any]:
        return asdict(self.settings)

    def _memory_at(self, q: Array) -> Array:
        # The memory has the present joint positions, then those at which the motion began.
        return np.concatenate([q, q])

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        n = self.robot.n
        self.start = memory[n:]
        super()._advance(poses, memory[:n], out)

    def _try(self, goal: Array, q: Array, tolerance: tuple[float, float]) -> Attempt:
        self.start = q.copy()
        return super()._try(goal, q, tolerance)

    def _call(self, q: Array, target: pin.SE3) -> Array:
        if self.task != "pose":
            # The rotation that the task leaves free is that of the present pose, so that no library
            # counts it as an error.
            target = adopt_free_rotation(self.task, target, self._tool_pose(q))
        return super()._call(q, target)

    def _tool_pose(self, q: Array) -> pin.SE3:
        """Return the pose of the TCP in base_link at joint positions q (n,), rad.

        By pinocchio, since `tool_path` takes far longer for one posture.
        """
        model = self.robot.model
        pin.forwardKinematics(model, self._kinematics, q)
        return pin.updateFramePlacement(model, self._kinematics, model.getFrameId("tcp"))

    def _command(self, q: Array, target: pin.SE3) -> Array:
        """Return the joint positions (n,) to command, rad: the present ones without a solution."""
        solution = self.next_joints(q, target)
        return q if solution is None else solution

    @abstractmethod
    def load_arm(self) -> None:
        """Load `robot` into the library."""

    @abstractmethod
    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        """Return the next joint positions (n,), rad, by the library.

        They are None if the library reports that it has not found a solution. `start` has the joint
        positions at which the present motion began.

        Args:
            q: Present joint positions (n,), rad.
            target: Pose of the TCP in base_link.
        """

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, also in another process, loads the arm again, and goes on from the same joints.
        state = self.__getstate__()
        names = ("period", "_q", "_memory", "_stepped", "_last")
        return type(self), (self.robot, self.settings), {name: state[name] for name in names}


def installed_rivals() -> list[str]:
    """Return the names of the rivals whose libraries are installed; none is imported."""
    names = []
    for name in RIVALS:
        parameters = RIVALS[name]
        assert issubclass(parameters, RivalParameters)
        # A submodule cannot be looked for without importing its package, so the package is.
        modules = {module.partition(".")[0] for module, _ in parameters.packages}
        if all(importlib.util.find_spec(module) is not None for module in modules):
            names.append(name)
    return names
