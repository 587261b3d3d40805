"""A job: a point of a sweep with all that its run needs, so that a worker needs no files."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import cloudpickle

from simbridge.backends import check_engine
from simbridge.errors import InvalidParameter, Refusal
from simbridge.ik.callable_solver import load_function
from simbridge.ik.settings import ALL_SOLVERS, change_settings, is_function
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.sweeps.grid import Point
from simbridge.sweeps.identity import digest, made_by, modules_of
from simbridge.sweeps.parameters import Choices, choices
from simbridge.trajectory.read_options import ReadOptions

# Names of users' modules whose code is sent to workers.
_sent_modules: set[str] = set()


class CannotTravel(Refusal, TypeError):
    """Something that a point needs cannot be sent to a worker.

    Attributes:
        what: What cannot be sent.
        reason: Why not.
    """

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        self.reason = reason
        super().__init__(
            f"The {what} cannot be sent to other processes ({reason}). Create objects that cannot "
            "be pickled, such as locks and connections, on first use rather than when the module "
            "is imported."
        )


@dataclass(frozen=True)
class Job:
    """A resolved point. It names no file that a worker would have to have.

    Attributes:
        identity: Hash of all that its figures depend on.
        context: The arm and the scenario, pickled: many points share them, and a worker unpickles
            them once.
        solver: A solver's name, "" for the scenario's; or a user's function.
        solver_name: The name by which the user gave that function; "" for none.
        settings: Settings of the solver that differ from its defaults or the scenario's.
        options: Options of the run.
        backend: The physics engine that simulates it.
        plan_only: Whether to plan and check only, without a run.
    """

    identity: str
    context: bytes
    solver: str | Callable[..., Any]
    solver_name: str
    settings: Mapping[str, Any]
    options: Options
    backend: str
    plan_only: bool

    def pack(self) -> bytes:
        """Return the job for a worker; a user's functions are sent with their modules' code."""
        return _pickle(self, "solver")


class _Context(NamedTuple):
    """An arm and the scenario that was loaded for it.

    Attributes:
        pickled: Both, for a worker.
        identity: Their hash.
        scenario: The scenario.
    """

    pickled: bytes
    identity: str
    scenario: Scenario


def forget_files() -> None:
    """Read all files anew from now on: between two sweeps of one program they may have changed."""
    _load_robot.cache_clear()
    _load_context.cache_clear()
    _load_function.cache_clear()

    while _sent_modules:
        module = sys.modules.pop(_sent_modules.pop(), None)
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def job_of(point: Point, *, plan_only: bool = False) -> Job:
    """Resolve a point.

    Args:
        point: Scenario and values.
        plan_only: Whether to plan and check only, without a run.

    Raises:
        SimbridgeError: Something does not exist, cannot be read, or does not fit together.
    """
    chosen = choices(point.values)
    options = _without_files(chosen.options)
    if not plan_only:
        check_engine(chosen.backend)

    name = chosen.robot or chosen.options.robot
    robot = _load_robot(name, chosen.home, chosen.lengths, **chosen.options.links)
    if chosen.options.kinematics_source is not None:
        robot = with_kinematics(robot, chosen.options.kinematics_source)

    context = _load_context(
        point.scenario, pickle.dumps(robot), pickle.dumps(options), reading=options.reading
    )
    solver, solver_content = _resolve_solver(chosen, context.scenario)

    # The plant counts as it is, whether a file or flags describe it.
    option_content = vars(options) | {
        "servo_gain": None,
        "servo_lookahead": None,
        "plant": None,
        "plant_model": options.plant_model,
    }
    run_content = None if plan_only else chosen.backend
    identity = digest(
        made_by(), context.identity, solver_content, option_content, run_content, plan_only
    )
    return Job(
        identity=identity,
        context=context.pickled,
        solver=solver,
        solver_name=chosen.solver if is_function(chosen.solver) else "",
        settings=chosen.settings,
        options=options,
        backend=chosen.backend,
        plan_only=plan_only,
    )


@functools.cache
def _load_robot(
    name: str, home: tuple[float, ...], lengths: tuple[float, ...], **links: Any
) -> Robot:
    """Load an arm once for all points that use it.

    Args:
        name: A name or a file.
        home: Joint positions (n,), rad; () for the robot's.
        lengths: Link lengths of a planar arm, m; () for the robot's.
        links: Names of the base and tool links.
    """
    return load_robot(name, home=home or None, lengths=lengths or None, **links)


def _without_files(options: Options) -> Options:
    """Return options without the files whose content the arm holds, or that were read."""
    cell = options.cell and replace(options.cell, calibration=None)
    return replace(options, kinematics=None, cell=cell)


@functools.lru_cache(maxsize=64)
def _load_context(
    name: str, pickled_robot: bytes, pickled_options: bytes, *, reading: ReadOptions
) -> _Context:
    """Load a scenario for an arm, once for all points that share them.

    Args:
        name: The scenario.
        pickled_robot: The arm without its tool and cell; pickled, since robots cannot be hashed.
        pickled_options: The options that equip it, likewise.
        reading: How files of targets are read.

    Raises:
        SimbridgeError: The scenario cannot be loaded.
        CannotTravel: It cannot be sent to a worker.
    """
    bare_robot = pickle.loads(pickled_robot)
    options = pickle.loads(pickled_options)
    robot = options.equip(bare_robot)
    scenario = load_scenario(name, robot, reading)
    if callable(scenario.solver):
        _send_modules(scenario.solver)

    script = ""
    if scenario.file is not None and scenario.file.suffix == ".py":
        # A script may be in any encoding that its first lines declare.
        script = scenario.file.read_text("utf-8", "surrogateescape")

    pickled = _pickle((bare_robot, scenario), f"scenario {name}")
    return _Context(pickled, digest(robot, scenario, script), scenario)


def _resolve_solver(chosen: Choices, scenario: Scenario) -> tuple[str | Callable[..., Any], object]:
    """Resolve which solver a point uses.

    Returns:
        The solver for the worker, and what is hashed of it.

    Raises:
        InvalidParameter: The solver is a function, which has no settings.
    """
    settings = scenario.solver
    if chosen.solver in ALL_SOLVERS and type(settings) is not ALL_SOLVERS[chosen.solver]:
        settings = ALL_SOLVERS[chosen.solver]()
    is_custom = is_function(chosen.solver)

    if chosen.settings and (is_custom or callable(settings)):
        name = chosen.solver if is_custom else f"the solver of {scenario.name}"
        names = ", ".join(chosen.settings)
        raise InvalidParameter("solver's settings", names, f"left out: {name} is a function")

    if is_custom:
        function, function_identity = _load_function(chosen.solver)
        return function, (chosen.solver, function_identity)
    if callable(settings):
        return "", ("scenario's",)
    return chosen.solver, change_settings(type(settings), settings, chosen.settings)


@functools.cache
def _load_function(name: str) -> tuple[Callable[..., Any], str]:
    """Load a user's function once; return it and the hash of its code as it was loaded."""
    function = load_function(name)
    _send_modules(function)
    return function, digest(function)


def _send_modules(function: Callable[..., Any]) -> None:
    """Have the code of a user's modules sent: workers need not have them."""
    for module in modules_of(function):
        if module.__name__ in sys.modules:
            cloudpickle.register_pickle_by_value(module)
            _sent_modules.add(module.__name__)


def _pickle(content: object, what: str) -> bytes:
    """Pickle an object for a worker.

    Args:
        content: The object.
        what: What it is called in an error.

    Raises:
        CannotTravel: It cannot be pickled.
    """
    try:
        pickled: bytes = cloudpickle.dumps(content)
    except Exception as error:  # whatever a user's object does when it is pickled
        raise CannotTravel(what, f"{type(error).__name__}: {error}") from None
    return pickled
