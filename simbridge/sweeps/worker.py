"""Makes points in a worker, which needs only their orders and the contents that they share."""

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
from simbridge.sweeps.job import PointOrder
from simbridge.sweeps.results import FAILED, PLANNED, REFUSED, Result

# Number of the first parts of the error that are known before a run: sampling, solver and limiter.
PLANNED_PARTS = 3
# Time after which a task returns, s. Points that it has not begun by then are handed out again.
TASK_DURATION_S = 0.5
# Largest number of contents that a worker keeps; it asks again for those that it has dropped.
MAX_CONTENTS = 256
# Largest size of all pickled contents that a worker keeps, bytes; unpickled they take about as much
# memory again.
MAX_CONTENT_BYTES = 100_000_000

# Contents that were sent to this worker, by their keys, in the order of their last use.
_contents: dict[str, _ReceivedContent] = {}
# Lock for the contents: the threads of a cluster's worker share them.
_contents_lock = threading.Lock()
# Lock for the simulation: PyBullet simulates one run at a time in a process.
_simulation_lock = threading.Lock()


class _ReceivedContent:
    """A content that points share, as it was sent to this worker.

    Args:
        pickled: An arm with its scenario, or a user's function, pickled.
    """

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled

    @functools.cached_property
    def context(self) -> tuple[Robot, Scenario]:
        """The arm and its scenario; they are unpickled once for all points that share them."""
        robot, scenario = pickle.loads(self.pickled)
        return robot, scenario


class WorkItem(NamedTuple):
    """One point of a task.

    Attributes:
        order: The point's `PointOrder`, pickled.
        shared: Keys of the contents that the point needs.
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
        contents: Pickled contents by key that this worker may not have yet.
        versions: Versions of the programs that make the sweep's figures; see `made_by`.

    Returns:
        The results of the first points, at least of one; None if this worker lacks contents of the
        points, which must then be sent along.
    """
    keys = {key for item in items for key in item.shared}
    needed_contents = _keep_contents(keys, contents)
    if needed_contents is None:
        return None

    results: list[Result] = []
    begin = time.perf_counter()
    for item in items:
        results.append(_time_point(item, needed_contents, versions))
        if time.perf_counter() - begin >= TASK_DURATION_S:
            break
    return results


def _keep_contents(keys: set[str], sent: Mapping[str, bytes]) -> dict[str, _ReceivedContent] | None:
    """Keep the contents that were sent, and return those that are needed; None if one is missing.

    Args:
        keys: Keys of the contents that are needed.
        sent: Contents that were sent, pickled, by key.
    """
    with _contents_lock:
        for key in sent.keys() - _contents.keys():
            _contents[key] = _ReceivedContent(sent[key])
        if not keys <= _contents.keys():
            return None

        # Contents that are used now move to the end of the order.
        needed = {key: _contents.pop(key) for key in keys}
        unneeded = list(_contents)
        _contents.update(needed)

        # Contents that were not used for the longest time are dropped, while there is too much.
        size = sum(len(content.pickled) for content in _contents.values())
        for key in unneeded:
            if len(_contents) <= MAX_CONTENTS and size <= MAX_CONTENT_BYTES:
                break
            size -= len(_contents.pop(key).pickled)
    return needed


def _time_point(item: WorkItem, contents: Mapping[str, _ReceivedContent], versions: str) -> Result:
    """Make a point, and return its result with its duration and the name of this computer."""
    with _simulation_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        try:
            result = _make_point(item, contents, versions)
        except Exception as error:
            # Anything else may fail, too: for example, no space may be left for the run's files.
            result = Result(FAILED, _describe(error))
        wall = time.perf_counter() - begin
    return replace(result, wall=wall, host=socket.gethostname())


def _make_point(item: WorkItem, contents: Mapping[str, _ReceivedContent], versions: str) -> Result:
    """Load, prepare and run one point; an error in any of these steps becomes its result."""
    if made_by() != versions:
        reason = f"The worker has different versions ({made_by()}) from the sweep ({versions})."
        return Result(FAILED, reason)

    try:
        order: PointOrder = pickle.loads(item.order)
        robot, scenario = _load_context(contents[order.context])
        function = None
        if order.function:
            # The function may have a state: each point gets a fresh copy.
            function = pickle.loads(contents[order.function].pickled)
    except Exception as error:
        # A user's code may need something that the worker does not have.
        return Result(FAILED, f"The worker cannot load the point: {_describe(error)}")

    try:
        prepared = _prepare(order, robot, scenario, function)
    except SimbridgeError as error:
        return Result(REFUSED, str(error))
    except (Exception, SystemExit) as error:
        # A user's solver may raise anything, and may call `sys.exit`.
        return Result(FAILED, _describe(error))

    if order.plan_only:
        return Result(PLANNED, figures=measure_plan(prepared))
    return _run(prepared, item.out)


def _load_context(content: _ReceivedContent) -> tuple[Robot, Scenario]:
    """Return an arm and its scenario; a fresh copy if the scenario's solver is a function."""
    robot, scenario = content.context
    if callable(scenario.solver):
        # The function may have a state, which the next point must not see.
        robot, scenario = pickle.loads(content.pickled)
    return robot, scenario


def _prepare(
    order: PointOrder, robot: Robot, scenario: Scenario, function: Callable[..., Any] | None
) -> Prepared:
    """Plan the run of a point.

    Args:
        order: Values of the point.
        robot: The arm, without TCP and payload.
        scenario: The scenario.
        function: The user's function that is the solver; None if the order or the scenario names
            the solver.
    """
    # An empty name stands for the scenario's solver.
    solver = function if function is not None else order.solver or None
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
    """Simulate a prepared run, and keep its directory complete or not at all.

    Args:
        prepared: The prepared run.
        out: Directory of the run; None to keep none.
    """
    if out is not None:
        with writing(out.parent):
            out.parent.mkdir(exist_ok=True)

    scratch_parent = None if out is None else out.parent
    with tempfile.TemporaryDirectory(dir=scratch_parent, prefix=".simbridge-") as scratch:
        try:
            run = execute(prepared, out=Path(scratch, "run"), page=out is not None)
        except UnforeseenError as error:
            # The user's solver has raised an error.
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
    """Move a finished run to its final directory.

    An earlier call, which ended before it stored the point's row, may have left a run there.
    """
    if out.is_symlink():
        out.unlink()
    shutil.rmtree(out, ignore_errors=True)
    with writing(out):
        directory.rename(out)


def _describe(error: BaseException) -> str:
    """Return the type and the message of an error."""
    return f"{type(error).__name__}: {error}"


def measure_plan(prepared: Prepared) -> dict[str, float]:
    """Return the figures of a plan by their paths.

    They are the figures that `simbridge check` shows, and the parts of the error that come from
    sampling, solver and limiter.
    """
    plan = prepared.plan
    robot = prepared.robot
    solution_path = tool_path(robot, plan.solution)
    setpoint_path = solution_path
    if plan.setpoints is not plan.solution:
        setpoint_path = tool_path(robot, plan.setpoints)

    # A plan has no measured path: that of the setpoints takes its place.
    reference = plan.trajectory.reference(plan.trajectory_times)
    budget = error_budget(
        reference, plan.targets, solution_path, setpoint=setpoint_path, attained=setpoint_path
    )
    parts: dict[str, Any] = {
        part.key: getattr(budget, part.attribute).statistics()
        for part in ERROR_PARTS[:PLANNED_PARTS]
    }
    # Remarks on the solver, for which its steps would have to be timed, are not figures.
    facts = check_facts(prepared, solver_notes=())
    return figures_of(facts) | figures_of(parts)


def figures_of(tree: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the numbers in a tree of figures by their paths: "tracking_error.position_m.rms".

    The largest absolute value stands for a list of numbers. Truth values and the version of the
    schema are not figures.

    Args:
        tree: Numbers, lists and trees by name, as in summary.json.
        prefix: Text in front of all paths.
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
    """Return a number, or the largest absolute value of a list of numbers; None for the rest."""
    if isinstance(value, (list, tuple)):
        magnitudes = [abs(item) for item in value if isinstance(item, (int, float))]
        if magnitudes and len(magnitudes) == len(value):
            return max(magnitudes)
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None
