"""Solvers by name, and custom functions as at the command line: `module:function`, or `./script.py:function`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from types import ModuleType
from typing import Any, cast

from simbridge.errors import ForeignSolverError, InvalidParameter, SimbridgeError, UnknownName
from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.settings import SOLVERS, check_solver, is_function
from simbridge.ik.solver import Solver
from simbridge.resources import ScriptLoader
from simbridge.robot.robot import Robot


def named_solver(robot: Robot, name: str, settings: Mapping[str, Any] | None = None) -> Solver:
    """The solver of this name in `SOLVERS` with these settings, or else the function that `module:function` names.

    Raises:
        UnknownName, ForeignSolverError, InvalidParameter: See `check_solver` and `function_named`.
        SimbridgeError: The settings are invalid, or the solver does not support the arm.
    """
    check_solver(name)
    if is_function(name):
        return CallableSolver(robot, function_named(name), name=name)
    return SOLVERS[name](**settings or {}).build(robot)


def function_named(name: str, what: str = "solver", takes: str = "joint positions and a target") -> Callable[..., Any]:
    """The function that `module:function` names; `module:object.method` works too.

    A module is looked up in the working directory and then as Python does; a name that ends in .py is a file.

    Args:
        name: As given.
        what: What it is for, as in messages.
        takes: What it takes, likewise.

    Raises:
        ForeignSolverError: There is no such module, or it cannot be imported.
        UnknownName: There is no such function in it.
        InvalidParameter: It is not a function, or the name is not of the form module:function.
    """
    place, _, path = name.rpartition(":")
    if not is_function(name):
        raise InvalidParameter(what, name, "module:function, or ./script.py:function")
    try:
        module = _script(place, what) if place.endswith(".py") else _module(place)
    except SimbridgeError:
        raise
    except (Exception, SystemExit) as error:
        reason = f"cannot be used: importing {place} failed with {type(error).__name__}: {error}"
        raise ForeignSolverError(name, reason, what=what) from error
    try:
        found = reduce(getattr, path.split("."), cast(Any, module))
    except AttributeError:
        known = [own for own, value in vars(module).items() if callable(value) and not own.startswith("_")]
        raise UnknownName("function", path, known, where=f"in {place}") from None
    if not callable(found):
        kind = type(found).__name__
        raise InvalidParameter(what, name, f"a function of {takes}, not {kind}")
    return cast(Callable[..., Any], found)


def _module(name: str) -> ModuleType:
    # The empty path is the working directory.
    with _importing_from(""):
        return importlib.import_module(name)


def _script(path: str, what: str) -> ModuleType:
    folder, _, file = path.rpartition("/")
    name = f"simbridge_solver_{file.removesuffix('.py')}"
    spec = importlib.util.spec_from_file_location(name, loader=ScriptLoader(name, path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses and the like look for the module that defines them.
    sys.modules[name] = module
    with _importing_from(folder or "/" * path.startswith("/")):
        try:
            spec.loader.exec_module(module)
        except FileNotFoundError as error:
            if error.filename != spec.origin:
                raise
            raise ForeignSolverError(path, "cannot be used: there is no such file", what=what) from error
    return module


@contextlib.contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
