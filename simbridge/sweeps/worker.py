"""Makes points in a worker, which needs nothing but their orders and what these share."""

from __future__ import annotations

import functools
import pickle
import shutil
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from simbridge.errors import SimbridgeError, UnforeseenError
from simbridge.evaluation.metrics.tracking import ERROR_PARTS, error_budget
from simbridge.files.writing import writing
from simbridge.planning.scenario import Scenario
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import Prepared, check_facts, prepare
from simbridge.running.runner import execute
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.job import Order
from simbridge.sweeps.results import FAILED, PLANNED, REFUSED, Result

# Parts of a plan's error that are known before a run: of sampling, solver and limiter.
PLANNED_PARTS = 3
# A task returns once it has taken this long, s. Points that it has not begun are handed out again.
TASK_DURATION_S = 0.5
# Contents that a worker keeps: their number, and their size altogether, bytes; unpickled they take
# about as much again. It asks again for those that it has dropped.
MAX_CONTENTS = 256
MAX_CONTENT_BYTES = 100_000_000

# Contents that this worker has been sent, by their keys, in the order of their last use.
_contents: dict[str, _Content] = {}
_contents_lock = threading.Lock()

# PyBullet simulates one run at a time in a process.
_simulation_lock = threading.Lock()


class _Content:
    """Something that points share.

    Args:
        pickled: An arm and its scenario, or a user's function.
    """

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled

    @functools.cached_property
    def context(self) -> tuple[Robot, Scenario]:
        """The arm and its scenario, unpickled once for all points that share them."""
        robot, scenario = pickle.loads(self.pickled)
        return robot, scenario


class WorkItem(NamedTuple):
    """One point of a task.

    Attributes:
        order: The point's `Order`, pickled.
        shared: Keys of the contents that it needs.
        out: The run directory to create, with its report; None for none.
    """

    order: bytes
    shared: tuple[str, ...]
    out: Path | None = None


def work(
    items: Sequence[WorkItem], contents: Mapping[str, bytes], versions: str
) -> list[Result] | None:
    """Make points one after another, in a worker, until they have taken TASK_DURATION_S.

    Args:
        items: The points.
        contents: Contents of which this worker may not know yet.
        versions: What makes the sweep's figures; see `made_by`.

    Returns:
        The results of the first points, at least of one; None where this worker lacks contents that
        the points share: it must be sent them.
    """
    keys = {key for item in items for key in item.shared}
    known = _keep_contents(keys, contents)
    if known is None:
        return None

    results: list[Result] = []
    begin = time.perf_counter()
    for item in items:
        results.append(_time_point(item, known, versions))
        if time.perf_counter() - begin >= TASK_DURATION_S:
            break
    return results


def _keep_contents(keys: set[str], sent: Mapping[str, bytes]) -> dict[str, _Content] | None:
    """Keep the contents that were sent, and return those that are needed; None if one is missing.

    Args:
        keys: Keys of those that are needed.
        sent: Those that were sent, pickled.
    """
    with _contents_lock:
        for key in sent.keys() - _contents.keys():
            _contents[key] = _Content(sent[key])
        if not keys <= _contents.keys():
            return None

        # What is used now moves to the end, and what was not used for longest is dropped.
        needed = {key: _contents.pop(key) for key in keys}
        unneeded = list(_contents)
        _contents.update(needed)
        size = sum(len(content.pickled) for content in _contents.values())
        for key in unneeded:
            if len(_contents) <= MAX_CONTENTS and size <= MAX_CONTENT_BYTES:
                break
            size -= len(_contents.pop(key).pickled)
    return needed


def _time_point(item: WorkItem, contents: Mapping[str, _Content], versions: str) -> Result:
    """Make a point, and return its result with the time that it took, and where."""
    with _simulation_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        try:
            result = _make_point(item, contents, versions)
        except Exception as error:  # whatever else fails, as where no space is left for its files
            result = Result(FAILED, _describe(error))
        wall = time.perf_counter() - begin
    return replace(result, wall=wall, host=socket.gethostname())


def _make_point(item: WorkItem, contents: Mapping[str, _Content], versions: str) -> Result:
    """Load, prepare and run one point; what may go wrong in each step becomes its result."""
    if made_by() != versions:
        reason = f"The worker has different versions ({made_by()}) from the sweep ({versions})."
        return Result(FAILED, reason)

    try:
        order: Order = pickle.loads(item.order)
        robot, scenario = _load_context(contents[order.context])
        function = None
        if order.function:
            # It may have a state: each point gets a copy of its own.
            function = pickle.loads(contents[order.function].pickled)
    except Exception as error:  # a user's code needs what the worker does not have
        return Result(FAILED, f"The worker cannot load the point: {_describe(error)}")

    try:
        prepared = _prepare(order, robot, scenario, function)
    except SimbridgeError as error:
        return Result(REFUSED, str(error))
    except (Exception, SystemExit) as error:  # a user's solver
        return Result(FAILED, _describe(error))

    if order.plan_only:
        return Result(PLANNED, figures=measure_plan(prepared))
    return _run(prepared, item.out)


def _load_context(content: _Content) -> tuple[Robot, Scenario]:
    """Return an arm and its scenario, a fresh copy where the scenario has a function of its own."""
    robot, scenario = content.context
    if callable(scenario.solver):
        # The function may have a state.
        robot, scenario = pickle.loads(content.pickled)
    return robot, scenario


def _prepare(
    order: Order, robot: Robot, scenario: Scenario, function: Callable[..., Any] | None
) -> Prepared:
    """Plan the run of a point.

    Args:
        order: What is told of the point.
        robot: Its arm, without TCP and payload.
        scenario: Its scenario.
        function: Its user's function; None where the order or the scenario names the solver.
    """
    solver = order.solver or None if function is None else function
    return prepare(
        scenario,
        robot=robot,
        solver=solver,
        solver_name=order.solver_name,
        solver_changes=order.settings,
        options=order.options,
        backend=order.backend,
    )


def _run(prepared: Prepared, out: Path | None) -> Result:
    """Simulate a prepared run, and keep its directory whole or not at all."""
    if out is not None:
        with writing(out.parent):
            out.parent.mkdir(exist_ok=True)

    scratch_parent = None if out is None else out.parent
    with tempfile.TemporaryDirectory(dir=scratch_parent, prefix=".simbridge-") as scratch:
        try:
            run = execute(prepared, out=Path(scratch, "run"), page=out is not None)
        except UnforeseenError as error:
            # A user's solver failed.
            return Result(FAILED, error.error)
        except SimbridgeError as error:
            return Result(FAILED, str(error))
        except (Exception, SystemExit) as error:
            # A user's solver may raise anything, and may call `sys.exit`.
            return Result(FAILED, _describe(error))

        if out is not None:
            _replace_directory(run.directory, out)
        return Result(run.summary["outcome"], figures=figures_of(run.summary))


def _replace_directory(directory: Path, out: Path) -> None:
    """Move a finished run to its place.

    A call that ended before it had stored the point's row may have left a run there.
    """
    if out.is_symlink():
        out.unlink()
    shutil.rmtree(out, ignore_errors=True)
    with writing(out):
        directory.rename(out)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def measure_plan(prepared: Prepared) -> dict[str, float]:
    """Return the figures of a plan.

    They are those that `simbridge check` shows, and what sampling, solver and limiter add to the
    error.
    """
    plan = prepared.plan
    robot = prepared.robot
    solution = tool_path(robot, plan.solution)
    setpoint = solution
    if plan.setpoints is not plan.solution:
        setpoint = tool_path(robot, plan.setpoints)

    # There is no measured path: the setpoints stand for it.
    reference = plan.trajectory.reference(plan.trajectory_times)
    budget = error_budget(reference, plan.targets, solution, setpoint, setpoint)
    parts: dict[str, Any] = {
        part.key: getattr(budget, part.attribute).statistics()
        for part in ERROR_PARTS[:PLANNED_PARTS]
    }
    # Remarks are no figures, and the solver's steps are not timed for them.
    facts = check_facts(prepared, solver_notes=())
    return figures_of(facts) | figures_of(parts)


def figures_of(tree: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the numbers of a tree of figures by their paths: "tracking_error.position_m.rms".

    A list counts as its largest absolute value. What is true or false is a fact, not a figure, and
    so is the version of the schema.

    Args:
        tree: Numbers, lists and trees by name, as in summary.json.
        prefix: In front of all paths.
    """
    figures: dict[str, float] = {}
    for name, value in tree.items():
        if name == "schema_version":
            continue
        path = prefix + name
        if isinstance(value, Mapping):
            figures |= figures_of(value, f"{path}.")
            continue
        figure = _figure_of(value)
        if figure is not None:
            figures[path] = figure
    return figures


def _figure_of(value: Any) -> float | None:
    """Return a number, or the largest absolute value of a list of numbers; None for all else."""
    if isinstance(value, (list, tuple)):
        magnitudes = [abs(item) for item in value if isinstance(item, (int, float))]
        if magnitudes and len(magnitudes) == len(value):
            return max(magnitudes)
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None
