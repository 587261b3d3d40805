"""Custom solvers: a user's function as a solver, by itself or by its name `module:function`.

A function with two required parameters is a step, `(q, target) -> q`. A function with one is a
factory: it receives the robot and returns a step or a `Solver`, so that it works with any arm.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import ModuleType
from typing import Any, TypeAlias, cast

import numpy as np
import pinocchio as pin

from simbridge.errors import ForeignSolverError, InvalidParameter, SimbridgeError, UnknownName
from simbridge.ik.faults import check_answer, solver_failure
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import ALL_SOLVERS, check_solver, is_function
from simbridge.ik.solver import Attempt, Solver
from simbridge.ik.targets import residual, task_of
from simbridge.quoting import as_text
from simbridge.resources import importing_from, load_script
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

StepFunction: TypeAlias = Callable[[Array, pin.SE3], Array | Sequence[float]]
SolverFactory: TypeAlias = Callable[[Robot], StepFunction | Solver]
SolverFunction: TypeAlias = StepFunction | SolverFactory
UserSolver: TypeAlias = Solver | SolverParameters | SolverFunction | str
"""The types that a user may pass as the solver of a run, a session or a sweep."""

NEEDED_FUNCTION = "a step (q, target) -> q, or a factory (robot) -> step"

# Largest number of calls of a function in one attempt of `solve`.
MAX_CALLS = 100


class CallableSolver(Solver):
    """A custom solver, called once per control period.

    Args:
        robot: The arm.
        function: Given the present joint positions (n,) in rad and the target pose of the TCP in
            base_link, returns the next ones (n,). It may keep a state, but then `track` is no
            longer repeatable.
        name: Name of the solver in the reports; the function's own by default.
        task: The part of the target that the function is meant to attain; the robot's own by
            default.

    Attributes:
        function: The function that is called.

    Raises:
        InvalidParameter: The function cannot be called; later, it returns anything other than n
            finite numbers of at most 1e6.
        ForeignSolverError: Later: it failed; what it raised is the cause.
    """

    reliable = False
    tries = 5

    def __init__(
        self,
        robot: Robot,
        function: StepFunction,
        *,
        name: str | None = None,
        task: str | None = None,
    ) -> None:
        super().__init__(robot)
        if not callable(function):
            needed = "a Solver, or a function of joint positions and a target"
            raise InvalidParameter("solver", function, needed)
        self.function = function
        self.name = name or name_of(function)
        self.task = task_of(robot, task)

    @property
    def parameters(self) -> dict[str, Any]:
        module = getattr(self.function, "__module__", None) or ""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return {"function": f"{module}.{name}", "task": self.task}

    def _call(self, q: Array, target: pin.SE3) -> Array:
        """Return the function's answer to joint positions (n,) and a target, checked."""
        try:
            answer = self.function(q.copy(), target)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit and the like
            raise solver_failure(self.name, error, q) from error
        return check_answer(self.name, answer, self.robot.n)

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        for t, target in enumerate(poses):
            out[t] = self._call(memory, pin.XYZQUATToSE3(target))
            memory[:] = out[t]

    def _try(self, goal: Array, q: Array, tolerance: tuple[float, float]) -> Attempt:
        target = pin.XYZQUATToSE3(goal)
        calls = 0
        distance = np.inf
        angle = np.inf
        while calls < MAX_CALLS and (distance > tolerance[0] or angle > tolerance[1]):
            q = self._call(q, target)
            calls += 1
            distance, angle = residual(self.task, goal, tool_path(self.robot, q[None])[0])
        return Attempt(q, distance, angle=angle, iterations=calls)


def is_factory(function: SolverFunction, name: str = "") -> bool:
    """Return whether a user's function is a factory, by the number of its required parameters.

    A compiled function that does not show its parameters counts as a step.

    Args:
        function: A step has two required parameters: joint positions and a target. A factory has
            one: the robot. A class counts with the parameters of its constructor.
        name: Name of the function in messages; its own by default.

    Raises:
        InvalidParameter: It cannot be called, or has another number of required parameters.
    """
    if not callable(function):
        raise InvalidParameter("solver", function, f"a Solver, {NEEDED_FUNCTION}, or a name")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False

    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    without_default = [item for item in parameters if item.default is item.empty]
    # *args and **kwargs have no default either, but are not required: they are of other kinds.
    count = sum(item.kind in by_position for item in without_default)
    # A solver is called with positional arguments only.
    needs_keyword = any(item.kind is inspect.Parameter.KEYWORD_ONLY for item in without_default)
    if count not in (1, 2) or needs_keyword:
        shown = f"{name or name_of(function)}{inspect.signature(function)}"
        needed = f"{NEEDED_FUNCTION}: two required parameters, or one"
        raise InvalidParameter("solver", shown, needed)
    return count == 1


def make_custom_solver(robot: Robot, function: SolverFunction, name: str = "") -> Solver:
    """Return the solver of a user's step function, or the one that a user's factory makes.

    Args:
        robot: The arm.
        function: A step or a factory: see `is_factory`.
        name: Name of the solver in the reports; the function's own by default. A `Solver` that a
            factory returns keeps its own.

    Raises:
        InvalidParameter: The function is neither, or the factory returns anything other than a step
            or a solver for this arm.
        ForeignSolverError: The factory failed.
    """
    name = name or name_of(function)
    if not is_factory(function, name):
        return CallableSolver(robot, cast(StepFunction, function), name=name)

    factory = cast(SolverFactory, function)
    try:
        product = factory(robot)
    except (KeyboardInterrupt, SimbridgeError):
        raise
    except BaseException as error:  # also SystemExit and the like
        failure = solver_failure(name, error)
        reason = f"{failure.reason}, when it was called with the robot (it has one parameter)"
        raise ForeignSolverError(name, reason) from error

    if isinstance(product, Solver):
        if product.robot.checksum != robot.checksum:
            needed = f"made for the robot that the factory receives, {robot.name}"
            raise InvalidParameter(f"solver of {name}", f"one for {product.robot.name}", needed)
        return product

    if not callable(product) or is_factory(product, f"the answer of {name}"):
        shown = type(product).__name__
        raise InvalidParameter(f"answer of {name}", shown, "a step (q, target) -> q, or a Solver")
    return CallableSolver(robot, product, name=name)


def name_of(function: object) -> str:
    """Return the name of a function or class; for any other object, that of its class."""
    return str(getattr(function, "__name__", type(function).__name__))


# Name in the place of a solver's name for a plan of recorded joint positions.
RECORDED_JOINTS = "recorded joints"


class RecordedSolver(CallableSolver):
    """The custom solver of an earlier run, as its settings.toml records it.

    A replay calls no solver.
    """

    def __init__(
        self, robot: Robot, name: str, *, task: str | None, parameters: Mapping[str, Any]
    ) -> None:
        super().__init__(robot, lambda q, target: q, name=name, task=task)
        self._parameters = parameters

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self._parameters)


def build_solver(robot: Robot, name: str, settings: Mapping[str, Any] | None = None) -> Solver:
    """Return a solver by its name.

    Args:
        robot: The arm.
        name: A name in `ALL_SOLVERS`, or `module:function` of a step or a factory.
        settings: Settings of a solver of that name, by their names.

    Raises:
        SimbridgeError: No solver has this name, its settings are invalid, or it does not support
            the arm.
    """
    check_solver(name)
    if is_function(name):
        return make_custom_solver(robot, load_function(name), name)
    return ALL_SOLVERS[name](**settings or {}).build(robot)


def load_function(
    name: str, what: str = "solver", takes: str = "joint positions and a target"
) -> Callable[..., Any]:
    """Return the function that `module:function` names; `module:object.method` works too.

    A module is looked up in the working directory and then as Python does; a name that ends in .py
    is a file.

    Args:
        name: The function.
        what: The purpose of the function, in messages.
        takes: The arguments of the function, in messages.

    Raises:
        ForeignSolverError: There is no such module, or it cannot be imported.
        UnknownName: There is no such function in it.
        InvalidParameter: It is not a function, or the name is not of the form module:function.
    """
    if not is_function(name):
        raise InvalidParameter(what, name, "module:function, or ./script.py:function")

    location, _, path = name.rpartition(":")
    module = _import_module(name, location, what)
    try:
        function = reduce(getattr, path.split("."), cast(Any, module))
    except AttributeError:
        known = []
        for attribute, value in vars(module).items():
            if callable(value) and not attribute.startswith("_"):
                known.append(attribute)
        raise UnknownName("function", path, known, where=f"in {location}") from None

    if not callable(function):
        needed = f"a function of {takes}, not {type(function).__name__}"
        raise InvalidParameter(what, name, needed)
    return cast(Callable[..., Any], function)


def _import_module(name: str, location: str, what: str) -> ModuleType:
    """Return the module of a custom function.

    Args:
        name: The function, `module:function`.
        location: The module, or the path of a script.
        what: The purpose of the function, in messages.

    Raises:
        ForeignSolverError: There is no such module, or it cannot be imported.
    """
    try:
        if location.endswith(".py"):
            stem = location.rpartition("/")[2].removesuffix(".py")
            return load_script(location, f"simbridge_solver_{stem}")
        # The empty path is the working directory.
        with importing_from(""):
            return importlib.import_module(location)
    except (KeyboardInterrupt, SimbridgeError):
        raise
    except BaseException as error:  # also SystemExit and the like
        if isinstance(error, FileNotFoundError) and error.filename == location:
            reason = "cannot be used: file not found"
            raise ForeignSolverError(location, reason, what=what) from error
        reason = (
            f"cannot be used: importing {location} failed with "
            f"{type(error).__name__}: {as_text(error)}"
        )
        raise ForeignSolverError(name, reason, what=what) from error
