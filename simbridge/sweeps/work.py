"""What a worker does: one point, from its plan to its figures. A worker needs nothing but simbridge and its job."""

from __future__ import annotations

import functools
import pickle
import shutil
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simbridge.errors import SimbridgeError
from simbridge.evaluation.metrics.tracking import ERROR_PARTS, error_budget
from simbridge.planning.scenario import Scenario
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import Prepared, check_facts, prepare
from simbridge.running.runner import execute
from simbridge.sweeps.identity import made_by
from simbridge.sweeps.job import Job

FAILED, REFUSED, PLANNED = "failed", "refused", "planned"
"""Outcomes of points besides those of runs. What has failed is tried again when the sweep goes on."""

# PyBullet and what it simulates are one a process.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Result:
    """What became of a point.

    Attributes:
        outcome: "completed", "planned", "refused", "failed", or what ended the run.
        reason: Why there are no figures, as a sentence.
        figures: By their paths in summary.json, in SI units: "tracking_error.position_m.rms".
        wall: How long it took, s.
        host: Where.
    """

    outcome: str
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    wall: float = 0.0
    host: str = ""


def work(packed: bytes, versions: str, out: Path | None = None) -> Result:
    """Make one point.

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
    return Result(result.outcome, result.reason, result.figures, wall, socket.gethostname())


def _result(packed: bytes, versions: str, out: Path | None) -> Result:
    if made_by() != versions:
        return Result(FAILED, f"The worker has other versions ({made_by()}) than the sweep ({versions}).")
    try:
        job: Job = pickle.loads(packed)
        robot, scenario = _unpacked(job.context)
    except Exception as error:  # a user's code needs what the worker does not have
        return Result(FAILED, f"The worker cannot load the point: {type(error).__name__}: {error}")
    function = job.solver if callable(job.solver) else None
    try:
        prepared = prepare(
            scenario, robot=robot, solver=function, solver_name="" if callable(job.solver) else job.solver,
            solver_changes=job.settings, options=job.options,
        )  # fmt: skip
    except SimbridgeError as error:
        return Result(REFUSED, str(error))
    except (Exception, SystemExit) as error:  # a user's solver
        return Result(FAILED, f"{type(error).__name__}: {error}")
    if job.plan_only:
        return Result(PLANNED, figures=planned_figures(prepared))
    if out is not None:
        out.parent.mkdir(exist_ok=True)
    # A run is kept whole, or not at all.
    with tempfile.TemporaryDirectory(dir=out and out.parent, prefix=".simbridge-") as scratch:
        try:
            run = execute(prepared, out=Path(scratch, "run"), page=out is not None)
        except SimbridgeError as error:
            return Result(FAILED, str(error))
        except (Exception, SystemExit) as error:  # a user's solver
            return Result(FAILED, f"{type(error).__name__}: {error}")
        if out is not None:
            # Of a call that ended before it had stored the row.
            shutil.rmtree(out, ignore_errors=True)
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
    parts: dict[str, Any] = {part.key: getattr(budget, part.attribute).statistics() for part in ERROR_PARTS[:3]}
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
