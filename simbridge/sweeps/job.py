"""Makes jobs: points of a sweep with everything that their runs need, so workers need no files.

The contents that many points share are kept apart from the rest of a job: an arm with its scenario,
and a user's function.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import cloudpickle

from simbridge.backends import check_engine
from simbridge.errors import InvalidParameter, Refusal
from simbridge.ik.callable_solver import load_function
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import ALL_SOLVERS, change_settings, is_function
from simbridge.planning.options import Options
from simbridge.planning.scenario import load_scenario
from simbridge.resources import AnyPath
from simbridge.robot.cell import Cell
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.load import load_robot
from simbridge.robot.mesh_files import read_mesh
from simbridge.robot.robot import Robot
from simbridge.sweeps.grid import Point
from simbridge.sweeps.identity import digest, made_by, modules_of, real_path
from simbridge.sweeps.parameters import Choices, choices
from simbridge.trajectory.read_options import ReadOptions

# Largest number of arms that are kept in memory; to load one again takes some 10 ms.
MAX_ARMS = 64
# Largest number of contexts, and of shared contents, that are kept in memory.
MAX_CONTEXTS = 1024
# Largest size of the shared contents that are kept, bytes: a long recording has megabytes.
MAX_SHARED_BYTES = 1_000_000_000

# Contents that points share, by their keys.
_shared: dict[str, _Content] = {}

# Names of users' modules whose code is sent to workers.
_sent_modules: set[str] = set()


class CannotTravel(Refusal, TypeError):
    """Something that a point needs cannot be sent to a worker.

    Attributes:
        what: Name of the object that cannot be sent: "solver my_module:solve".
        reason: Why it cannot be sent.
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
class PointOrder:
    """The values of one point, as they are sent to a worker, which may have none of the files.

    Attributes:
        context: Key of the arm with its scenario, among the contents that points share.
        function: Key of the user's function that is the point's solver, among the contents that
            points share; "" if the solver is not such a function.
        solver: Name of the solver; "" for the scenario's solver, and for a user's function.
        solver_name: Name of the user's function, module:function; "" for any other solver.
        settings: Settings of the solver that differ from its defaults or the scenario's.
        options: Options of the run.
        backend: Name of the physics engine that simulates the run.
        plan_only: Whether the point is only planned and checked, not run.
    """

    context: str
    function: str
    solver: str
    solver_name: str
    settings: Mapping[str, Any]
    options: Options
    backend: str
    plan_only: bool


@dataclass(frozen=True)
class Job:
    """A point with everything that its run needs.

    Attributes:
        identity: Identity of the point, a hash of everything on which its figures depend.
        order: The point's `PointOrder`, pickled.
        contents: Contents that the point shares with others, pickled, by their keys: an arm with
            its scenario, and a user's function if it has one. A worker is sent each of them once.
    """

    identity: str
    order: bytes
    contents: Mapping[str, bytes]


class _Content(NamedTuple):
    """An object that many points share.

    Attributes:
        key: Hash of the pickled object.
        pickled: The object, pickled for a worker.
    """

    key: str
    pickled: bytes


class _Context(NamedTuple):
    """An arm and the scenario that was loaded for it.

    Attributes:
        content: Arm and scenario, for a worker.
        identity: Hash of arm and scenario.
        scenario: Name of the scenario.
        solver: Settings of the scenario's solver, or its function.
    """

    content: _Content
    identity: str
    scenario: str
    solver: SolverParameters | Callable[..., Any]


class _ArmChoice(NamedTuple):
    """Everything on which the loading of an arm depends, without TCP, payload and mounting.

    Attributes:
        name: Name or file of the arm.
        home: Home position of the joints (n,), rad; () for that of the arm's file.
        lengths: Link lengths of a planar arm, m; () for those of the arm's file.
        links: Names and values of the options that choose the arm in a URDF or xacro file.
        kinematics: Source of the kinematics; None for the arm's file.
    """

    name: str
    home: tuple[float, ...]
    lengths: tuple[float, ...]
    links: tuple[tuple[str, Any], ...]
    kinematics: AnyPath | None


class _ContextChoice(NamedTuple):
    """Everything on which an arm with its scenario depends, and nothing else.

    Attributes:
        scenario: Name of a scenario, a script, or a file.
        reading: How files of targets are read.
        arm: The arm, without its equipment.
        tcp: TCP of the arm, as in `Options.tcp`.
        payload: Payload of the arm, kg; None for none.
        cell: Cell with the arm's mounting and the centre of its payload; None without a cell.
    """

    scenario: str
    reading: ReadOptions
    arm: _ArmChoice
    tcp: tuple[float, ...]
    payload: float | None
    cell: Cell | None


def forget_files() -> None:
    """Forget what was read from files, and the targets of links.

    Both may change between two sweeps of one program.
    """
    _load_arm.cache_clear()
    _load_context.cache_clear()
    _load_function.cache_clear()
    _shared.clear()
    read_mesh.cache_clear()
    real_path.cache_clear()

    while _sent_modules:
        module = sys.modules.pop(_sent_modules.pop(), None)
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def job_of(point: Point, *, plan_only: bool = False) -> Job:
    """Return the job of a point.

    Args:
        point: Scenario and values.
        plan_only: Whether the point is only planned and checked, not run.

    Raises:
        SimbridgeError: Something does not exist, cannot be read, or does not fit together.
    """
    chosen = choices(point.values)
    options = _drop_files(chosen.options)
    if not plan_only:
        check_engine(chosen.backend)

    # The contents that the point shares with others.
    context = _load_context(_choose_context(point.scenario, chosen))
    hashed_solver = _resolve_solver(chosen, context)
    contents = [context.content]
    is_custom = is_function(chosen.solver)
    function_key = ""
    if is_custom:
        function, _ = _load_function(chosen.solver)
        function_key = function.key
        contents.append(function)

    # The identity is a hash of the programs that make the figures, and of all that the figures
    # depend on. The plant counts as a model, whether a file or flags describe it.
    hashed_options = vars(options) | {
        "servo_gain": None,
        "servo_lookahead": None,
        "plant": None,
        "plant_model": options.plant_model,
    }
    hashed_backend = None if plan_only else chosen.backend
    identity = digest(
        made_by(), context.identity, hashed_solver, hashed_options, hashed_backend, plan_only
    )

    order = PointOrder(
        context=context.content.key,
        function=function_key,
        solver="" if is_custom else chosen.solver,
        solver_name=chosen.solver if is_custom else "",
        settings=chosen.settings,
        options=options,
        backend=chosen.backend,
        plan_only=plan_only,
    )
    return Job(identity, pickle.dumps(order), {item.key: item.pickled for item in contents})


def _drop_files(options: Options) -> Options:
    """Return options without the files of kinematics: the arm has their content."""
    if options.kinematics_source is None:
        return options
    cell = None if options.cell is None else replace(options.cell, calibration=None)
    return replace(options, kinematics=None, cell=cell)


def _choose_context(scenario: str, chosen: Choices) -> _ContextChoice:
    """Return everything on which the arm and the scenario of a point depend.

    Args:
        scenario: Name of a scenario, a script, or a file.
        chosen: What the values of the point choose.
    """
    options = chosen.options
    arm = _ArmChoice(
        name=chosen.robot or options.robot,
        home=chosen.home,
        lengths=chosen.lengths,
        links=tuple(options.links.items()),
        kinematics=options.kinematics_source,
    )
    # Of a cell, only these fields concern the arm: cells that differ otherwise share their arm.
    cell = options.cell
    if cell is not None:
        cell = Cell(
            robot=cell.robot,
            payload=cell.payload,
            payload_cog=cell.payload_cog,
            mounting=cell.mounting,
            source=cell.source,
        )
    return _ContextChoice(
        scenario, options.reading, arm, tcp=tuple(options.tcp), payload=options.payload, cell=cell
    )


@functools.lru_cache(maxsize=MAX_ARMS)
def _load_arm(choice: _ArmChoice) -> Robot:
    """Load an arm, without TCP and payload, once for all points that use it."""
    robot = load_robot(
        choice.name,
        home=choice.home or None,
        lengths=choice.lengths or None,
        **dict(choice.links),
    )
    if choice.kinematics is not None:
        robot = with_kinematics(robot, choice.kinematics)
    return robot


@functools.lru_cache(maxsize=MAX_CONTEXTS)
def _load_context(choice: _ContextChoice) -> _Context:
    """Load an arm and a scenario for it, once for all points that share them.

    Raises:
        SimbridgeError: The arm or the scenario cannot be loaded.
        CannotTravel: The scenario cannot be sent to a worker.
    """
    bare_robot = _load_arm(choice.arm)
    equipment = Options(tcp=choice.tcp, payload=choice.payload, cell=choice.cell)
    robot = equipment.equip(bare_robot)
    scenario = load_scenario(choice.scenario, robot, choice.reading)
    if callable(scenario.solver):
        _send_modules(scenario.solver)

    script = ""
    if scenario.file is not None and scenario.file.suffix == ".py":
        # A script may be in any encoding that its first lines declare.
        script = scenario.file.read_text("utf-8", "surrogateescape")

    content = _share(_pickle((bare_robot, scenario), f"scenario {choice.scenario}"))
    identity = digest(robot, scenario, script)
    return _Context(content, identity, scenario.name, scenario.solver)


def _share(pickled: bytes) -> _Content:
    """Store a pickled object among the shared contents, and return it with its key.

    An equal object is stored only once: the scenario, for example, is often the same for many
    payloads or TCPs, and is then sent once. All contents are dropped, together with the contexts
    that refer to them, before they become too many or too large.
    """
    key = hashlib.sha256(pickled).hexdigest()[:16]
    if key not in _shared:
        size = len(pickled) + sum(len(content.pickled) for content in _shared.values())
        if len(_shared) >= MAX_CONTEXTS or size > MAX_SHARED_BYTES:
            _shared.clear()
            _load_context.cache_clear()
        _shared[key] = _Content(key, pickled)
    return _shared[key]


def _resolve_solver(chosen: Choices, context: _Context) -> object:
    """Return everything of a point's solver on which the point's figures depend, to be hashed.

    Args:
        chosen: What the values of the point choose.
        context: The point's arm and scenario.

    Raises:
        InvalidParameter: Settings are set, but the solver is a function, which has none.
    """
    # The scenario's settings, unless the point names another kind of solver.
    settings = context.solver
    if chosen.solver in ALL_SOLVERS and type(settings) is not ALL_SOLVERS[chosen.solver]:
        settings = ALL_SOLVERS[chosen.solver]()
    is_custom = is_function(chosen.solver)

    if chosen.settings and (is_custom or callable(settings)):
        name = chosen.solver if is_custom else f"the solver of {context.scenario}"
        names = ", ".join(chosen.settings)
        raise InvalidParameter("solver's settings", names, f"left out: {name} is a function")

    if is_custom:
        _, identity = _load_function(chosen.solver)
        return chosen.solver, identity
    if callable(settings):
        # The identity of the context includes the scenario's function.
        return ("scenario's",)
    return chosen.solver, change_settings(type(settings), settings, chosen.settings)


@functools.cache
def _load_function(name: str) -> tuple[_Content, str]:
    """Load a user's function, once for all points that use it.

    Returns:
        The function for a worker, with the code of its modules, and the hash of its code.
    """
    function = load_function(name)
    _send_modules(function)
    return _share(_pickle(function, f"solver {name}")), digest(function)


def _send_modules(function: Callable[..., Any]) -> None:
    """Send the code of a user's modules along with what is pickled: workers may lack them."""
    for module in modules_of(function):
        if module.__name__ in sys.modules:
            cloudpickle.register_pickle_by_value(module)
            _sent_modules.add(module.__name__)


def _pickle(content: object, what: str) -> bytes:
    """Pickle an object for a worker.

    Args:
        content: The object.
        what: Name of the object in an error.

    Raises:
        CannotTravel: It cannot be pickled.
    """
    try:
        pickled: bytes = cloudpickle.dumps(content)
    except Exception as error:
        # A user's object may raise anything when it is pickled.
        raise CannotTravel(what, f"{type(error).__name__}: {error}") from None
    return pickled
