"""A point with all that its run needs, its identity, and how a worker makes it, which needs nothing but its job.

The identity is a hash of all that a point's figures depend on. Two points of one identity give the same figures, bit
for bit, with the same CPU type and library versions.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
import os
import pickle
import platform
import shutil
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import msgspec
import numpy as np
import pinocchio as pin

import simbridge
from simbridge.errors import InvalidParameter, Refusal, SimbridgeError
from simbridge.evaluation.metrics.tracking import ERROR_PARTS, error_budget
from simbridge.files.writing import writing
from simbridge.ik.callable_solver import function_named
from simbridge.ik.settings import SOLVERS, is_function, resolved
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.robot.calibration_file import with_kinematics
from simbridge.robot.kinematics import tool_path
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import Prepared, check_facts, installed, prepare, versions
from simbridge.running.runner import execute
from simbridge.sweeps.grid import Point
from simbridge.sweeps.parameters import Choices, choices
from simbridge.sweeps.results import FAILED, PLANNED, REFUSED, Result
from simbridge.trajectory.files import ReadOptions

# PyBullet and what it simulates are one a process.
_ONE_AT_A_TIME = threading.Lock()
# Names of users' modules that are sent to workers.
_sent: set[str] = set()
# Where something was read from, which does not matter: what was read is hashed.
_PLACES = ("source", "file", "calibration", "kinematics", "plant", "replaced", "not_simulated")


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
        """For a worker; a user's functions are sent with their modules' code."""
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
    context, hashed, scenario = _context(
        point.scenario, pickle.dumps(robot), pickle.dumps(carried), carried.reading
    )
    solver, what = _solver(chosen, scenario)
    # The plant as it is, whether file or flags describe it.
    described = {
        "servo_gain": None,
        "servo_lookahead": None,
        "plant": None,
        "plant_model": carried.plant_model,
    }
    identity = digest(made_by(), hashed, what, vars(carried) | described, plan_only)
    return Job(identity, context, solver, chosen.settings, carried, plan_only)


@functools.cache
def _robot(name: str, home: tuple[float, ...], lengths: tuple[float, ...], **links: Any) -> Robot:
    return load_robot(name, home=home or None, lengths=lengths or None, **links)


def _carried(options: Options) -> Options:
    """The options without the files whose content is in the arm or was read."""
    cell = options.cell and replace(options.cell, calibration=None)
    return replace(options, kinematics=None, cell=cell)


@functools.lru_cache(maxsize=64)
def _context(
    name: str, robot: bytes, options: bytes, reading: ReadOptions
) -> tuple[bytes, str, Scenario]:
    """An arm and the scenario that is loaded for it, pickled; their hash; and the scenario."""
    bare, chosen = pickle.loads(robot), pickle.loads(options)
    arm = chosen.equipped(bare)
    scenario = load_scenario(name, arm, reading)
    if callable(scenario.solver):
        _travels(scenario.solver)
    script = ""
    if scenario.file is not None and scenario.file.suffix == ".py":
        # A script may be in any encoding that its first lines declare.
        script = scenario.file.read_text("utf-8", "surrogateescape")
    return _pickled((bare, scenario), f"scenario {name}"), digest(arm, scenario, script), scenario


def _solver(chosen: Choices, scenario: Scenario) -> tuple[str | Callable[..., Any], object]:
    """What a worker is given, and what is hashed."""
    settings = scenario.solver
    if chosen.solver in SOLVERS and type(settings) is not SOLVERS[chosen.solver]:
        settings = SOLVERS[chosen.solver]()
    custom = is_function(chosen.solver)
    if chosen.settings and (custom or callable(settings)):
        words = (
            f"{chosen.solver} is a function"
            if custom
            else f"the solver of {scenario.name} is a function"
        )
        raise InvalidParameter(
            "solver's settings", ", ".join(chosen.settings), f"left out: {words}"
        )
    if custom:
        function, code = _function(chosen.solver)
        return function, (chosen.solver, code)
    if callable(settings):
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


def digest(*values: object) -> str:
    """A hash of plain data, arrays, poses, dataclasses and functions: 16 hexadecimal digits."""
    text = json.dumps([_plain(value) for value in values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, np.ndarray):
        return [
            str(value.dtype),
            list(value.shape),
            hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest(),
        ]
    if isinstance(value, pin.SE3):
        return _plain(value.homogeneous)
    if isinstance(value, pin.Inertia):
        return _plain(value.toDynamicParameters())
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, msgspec.Struct):
        parts = msgspec.structs.asdict(value)
        return [
            type(value).__name__,
            _plain({name: part for name, part in parts.items() if name not in _PLACES}),
        ]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            own.name: getattr(value, own.name) for own in fields(value) if own.name not in _PLACES
        }
        return [type(value).__name__, _plain(parts)]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if callable(value):
        # Of an object that is called like a function its state counts, too.
        name = (
            getattr(value, "__qualname__", "")
            or hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
        )
        return [name, *(source for _, source in sorted(_sources_of(value).items()))]
    raise TypeError(f"{type(value).__name__} has no identity")


def _sources_of(function: Callable[..., Any]) -> dict[str, str]:
    """The text of each module of a user's function by its path: of its own, and of those beside it that are loaded."""
    paths = [module.__file__ for module in modules_of(function) if module.__file__]
    with contextlib.suppress(TypeError, OSError):
        paths.append(inspect.getsourcefile(inspect.unwrap(_innermost(function))) or "")
    return {path: Path(path).read_text(encoding="utf-8") for path in paths if Path(path).is_file()}


def modules_of(function: Callable[..., Any]) -> list[ModuleType]:
    """The module of a user's function, and those that are loaded from its directory or below; not installed ones."""
    inner = _innermost(function)
    try:
        own = Path(inspect.getsourcefile(inner) or "").resolve()
    except TypeError:
        own = Path(
            getattr(sys.modules.get(type(inner).__module__), "__file__", None) or ""
        ).resolve()
    if not own.is_file() or _is_installed(own):
        return []
    found = []
    for module in [*sys.modules.values()]:
        path = Path(getattr(module, "__file__", None) or "").resolve()
        if path.suffix == ".py" and own.parent in path.parents and not _is_installed(path):
            found.append(module)
    return found


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_installed(path: Path) -> bool:
    package = Path(simbridge.__file__).parent
    return (
        "site-packages" in path.parts
        or package in path.parents
        or Path(os.__file__).parent in path.parents
    )


@functools.cache
def made_by() -> str:
    """What makes figures here: the versions of simbridge, its libraries and Python, and a hash of simbridge's code."""
    package = Path(simbridge.__file__).parent
    code = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        code.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    libraries = " ".join(
        f"{name} {version}" for name, version in (versions() | installed(["coal"])).items()
    )
    return f"{libraries} ({code.hexdigest()[:8]}) {platform.machine()}"


def work(packed: bytes, versions: str, out: Path | None = None) -> Result:
    """Make one point, in a worker.

    Args:
        packed: Of a `Job`.
        versions: What the sweep's figures are made by.
        out: The run directory to create, with its report; None for none.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        result = _result(packed, versions, out)
        wall = time.perf_counter() - begin
    return replace(result, wall=wall, host=socket.gethostname())


def _result(packed: bytes, versions: str, out: Path | None) -> Result:
    if made_by() != versions:
        return Result(
            FAILED, f"The worker has other versions ({made_by()}) than the sweep ({versions})."
        )
    try:
        job: Job = pickle.loads(packed)
        robot, scenario = _unpacked(job.context)
    except Exception as error:  # a user's code needs what the worker does not have
        return Result(FAILED, f"The worker cannot load the point: {type(error).__name__}: {error}")
    function, name = (job.solver, "") if callable(job.solver) else (None, job.solver)
    try:
        prepared = prepare(
            scenario,
            robot=robot,
            solver=function,
            solver_name=name,
            solver_changes=job.settings,
            options=job.options,
        )
    except SimbridgeError as error:
        return Result(REFUSED, str(error))
    except (Exception, SystemExit) as error:  # a user's solver
        return Result(FAILED, f"{type(error).__name__}: {error}")
    if job.plan_only:
        return Result(PLANNED, figures=planned_figures(prepared))
    if out is not None:
        with writing(out.parent):
            out.parent.mkdir(exist_ok=True)
    # A run is kept whole, or not at all.
    with tempfile.TemporaryDirectory(dir=out and out.parent, prefix=".simbridge-") as scratch:
        try:
            run = execute(prepared, out=Path(scratch, "run"), page=out is not None)
        except (Exception, SystemExit) as error:  # a user's solver
            ours = isinstance(error, SimbridgeError)
            return Result(FAILED, str(error) if ours else f"{type(error).__name__}: {error}")
        if out is not None:
            # Of a call that ended before it had stored the row.
            if out.is_symlink():
                out.unlink()
            shutil.rmtree(out, ignore_errors=True)
            with writing(out):
                run.directory.rename(out)
        return Result(run.summary["outcome"], figures=figures_of(run.summary))


@functools.lru_cache(maxsize=8)
def _unpacked(context: bytes) -> tuple[Robot, Scenario]:
    found: tuple[Robot, Scenario] = pickle.loads(context)
    return found


def planned_figures(prepared: Prepared) -> dict[str, float]:
    """The figures of a plan: those that `check` shows, and what sampling, solver and limiter add to the error."""
    plan, robot = prepared.plan, prepared.robot
    solution = tool_path(robot, plan.solution)
    setpoint = solution if plan.setpoints is plan.solution else tool_path(robot, plan.setpoints)
    reference = plan.trajectory.reference(plan.trajectory_times)
    budget = error_budget(reference, plan.targets, solution, setpoint, setpoint)
    parts: dict[str, Any] = {
        part.key: getattr(budget, part.attribute).statistics() for part in ERROR_PARTS[:3]
    }
    return figures_of(check_facts(prepared)) | figures_of(parts)


def figures_of(tree: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a tree of figures by their paths, "tracking_error.position_m.rms"; of a list the largest.

    What is true or false is a fact, not a figure.
    """
    found: dict[str, float] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= figures_of(value, f"{prefix}{name}.")
        elif isinstance(value, (list, tuple)):
            numbers = [abs(part) for part in value if isinstance(part, (int, float))]
            if numbers and len(numbers) == len(value):
                found[prefix + name] = max(numbers)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[prefix + name] = value
    return found
