"""A point with all that its run needs, so that it can be made in another process or on another computer."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle

from simbridge.errors import InvalidParameter, Refusal
from simbridge.ik.callable_solver import function_named
from simbridge.ik.settings import SOLVERS, is_function, resolved
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.robot.calibration_file import with_kinematics
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.sweeps.grid import Point
from simbridge.sweeps.identity import digest, made_by, modules_of
from simbridge.sweeps.parameters import Choices, choices
from simbridge.trajectory.files import ReadOptions

# Names of users' modules that are sent to workers.
_sent: set[str] = set()


class CannotTravel(Refusal, TypeError):
    """What a point needs (what) cannot be sent to a worker; reason: why not."""

    def __init__(self, what: str, reason: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(
            f"The {what} cannot be sent to other processes ({reason}). Make what cannot be pickled, such as locks and "
            "connections, when it is first used, not when the module is imported."
        )


@dataclass(frozen=True)
class Job:
    """What a point is resolved to. It names no file that a worker would have to have.

    Attributes:
        identity: Hash of all that its figures depend on.
        context: The arm and the scenario, pickled: shared by many points, and unpacked once a worker.
        solver: A name, "" for the scenario's; or a user's function.
        settings: Of the solver, those that are given.
        options: Of the run.
        plan_only: Whether the plan is all that is wanted.
    """

    identity: str
    context: bytes
    solver: str | Callable[..., Any]
    settings: Mapping[str, Any]
    options: Options
    plan_only: bool

    def packed(self) -> bytes:
        """For a worker; a user's functions travel with their modules' code."""
        return _pickled(self, "solver")


def forget_files() -> None:
    """What was read is read anew: between two sweeps of one program a file may have changed."""
    for known in (_robot, _context, _function):
        known.cache_clear()
    while _sent:
        if (module := sys.modules.pop(_sent.pop(), None)) is not None:
            cloudpickle.unregister_pickle_by_value(module)


def job_of(point: Point, *, plan_only: bool = False) -> Job:
    """Resolve a point.

    Raises:
        SimbridgeError: Something does not exist, cannot be read, or does not fit together.
    """
    chosen = choices(point.values)
    options = chosen.options
    robot = _robot(chosen.robot or options.robot, chosen.home, chosen.lengths, **options.links)
    if chosen.options.kinematics_source is not None:
        robot = with_kinematics(robot, chosen.options.kinematics_source)
    carried = _carried(chosen.options)
    context, hashed, scenario = _context(point.scenario, pickle.dumps(robot), pickle.dumps(carried), carried.reading)
    solver, what = _solver(chosen, scenario)
    identity = digest(made_by(), hashed, what, _hashed(carried), plan_only)
    return Job(identity, context, solver, chosen.settings, carried, plan_only)


@functools.cache
def _robot(name: str, home: tuple[float, ...], lengths: tuple[float, ...], **links: Any) -> Robot:
    return load_robot(name, home=home or None, lengths=lengths or None, **links)


def _carried(options: Options) -> Options:
    """The options without the files whose content is in the arm or was read."""
    cell = options.cell and replace(options.cell, calibration=None)
    return replace(options, kinematics=None, cell=cell)


def _hashed(options: Options) -> Mapping[str, Any]:
    """The options; the plant as it is, whether file or flags describe it."""
    described = {"servo_gain": None, "servo_lookahead": None, "plant": None}
    return vars(options) | described | {"plant_model": options.plant_model}


@functools.lru_cache(maxsize=64)
def _context(name: str, robot: bytes, options: bytes, reading: ReadOptions) -> tuple[bytes, str, Scenario]:
    """An arm and the scenario that is loaded for it, pickled; their hash; and the scenario."""
    bare, chosen = pickle.loads(robot), pickle.loads(options)
    arm = chosen.equipped(bare)
    scenario = load_scenario(name, arm, reading)
    if callable(scenario.solver):
        _travels(scenario.solver)
    script = scenario.file.read_text() if scenario.file is not None and scenario.file.suffix == ".py" else ""
    return _pickled((bare, scenario), f"scenario {name}"), digest(arm, scenario, script), scenario


def _solver(chosen: Choices, scenario: Scenario) -> tuple[str | Callable[..., Any], object]:
    """What a worker is given, and what is hashed."""
    if is_function(chosen.solver):
        function, code = _function(chosen.solver)
        if chosen.settings:
            needed = f"left out: {chosen.solver} is a function"
            raise InvalidParameter("solver's settings", ", ".join(chosen.settings), needed)
        return function, (chosen.solver, code)
    settings = scenario.solver
    if chosen.solver and type(settings) is not SOLVERS[chosen.solver]:
        settings = SOLVERS[chosen.solver]()
    if callable(settings):
        if chosen.settings:
            needed = f"left out: the solver of {scenario.name} is a function"
            raise InvalidParameter("solver's settings", ", ".join(chosen.settings), needed)
        return "", ("scenario's",)
    return chosen.solver, resolved(type(settings), settings, chosen.settings)


@functools.cache
def _function(name: str) -> tuple[Callable[..., Any], str]:
    """A user's function, and the hash of its code as it was loaded."""
    function = function_named(name)
    _travels(function)
    return function, digest(function)


def _travels(function: Callable[..., Any]) -> None:
    """Workers need not have the modules of a user's function: their code is sent."""
    for module in modules_of(function):
        if module.__name__ in sys.modules:
            cloudpickle.register_pickle_by_value(module)
            _sent.add(module.__name__)


def _pickled(content: object, what: str) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(content)
    except Exception as error:  # whatever a user's object does when it is pickled
        raise CannotTravel(what, f"{type(error).__name__}: {error}") from None
    return packed
