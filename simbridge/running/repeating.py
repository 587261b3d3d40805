"""Repeated runs of one plan: the runs in DIR/01, DIR/02 ..., their common summary and report in DIR."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.backends.backend import Ask, Backend, Facts
from simbridge.backends.registry import backend_class
from simbridge.errors import InvalidParameter
from simbridge.evaluation.repeats import RepeatsSummary, summarize_repeats
from simbridge.planning.approach import plan_approach
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeats_page import write_repeats_page
from simbridge.running.run_setup import Prepared
from simbridge.running.runner import (
    Progress,
    Run,
    add_aftermath,
    begin,
    evaluation_interrupted,
    finish,
    open_backend,
    record_early_end,
    stream_plan,
)
from simbridge.running.signals import ended_by_signals
from simbridge.text import degrees


@dataclass(frozen=True)
class Repeats:
    """Finished repeats.

    Attributes:
        directory: The common directory.
        runs: The runs, in order.
        summary: The content of the common summary.json.
    """

    directory: Path
    runs: tuple[Run, ...]
    summary: RepeatsSummary


@ended_by_signals()
def repeat(
    prepared: Prepared,
    count: int,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> Repeats:
    """Execute a prepared run several times; between two runs the arm returns to the start by a checked approach.

    On a real arm, the operator confirms once and is informed of the return; before a long one, the backend asks again.

    Args:
        prepared: See `prepare`.
        count: Number of runs.
        out: The directory to create; one under runs/ by default.
        progress, ask: As for `run`.

    Raises:
        InvalidParameter: The count is not positive, or a joint would return by more than half a turn on a controller.
        PlanRefused: The return violates a limit or collides; nothing has moved.
        SimbridgeError: What ended a run. That run and those before it are kept, with their common summary.
    """
    if count < 1:
        raise InvalidParameter("number of repeats", count, "at least 1")
    arm = open_backend(prepared, more_facts=_return_facts(prepared, count), ask=ask)
    whole = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    directories: list[RunDirectory] = []
    runs: list[Run] = []
    completed = 0
    try:
        directories.append(_begin_run(prepared, arm, whole, 1, count))
        # Between two runs, none is unfinished.
        with record_early_end(prepared, arm, lambda: directories[-1] if completed < len(directories) else None), arm:
            for number in range(1, count + 1):
                if number > 1:
                    directories.append(_begin_run(prepared, arm, whole, number, count))
                stream_plan(prepared, arm, directories[-1], progress)
                completed += 1
                runs.append(finish(prepared, arm, directories[-1]))
    except BaseException as error:
        # The error that ended the runs is the one to report, whatever else fails.
        try:
            with contextlib.suppress(Exception):
                _summarize(whole, directories, count)
        except KeyboardInterrupt:
            add_aftermath(error, f"The evaluation was interrupted; `simbridge report {whole.path}` finishes it.")
        if isinstance(error, Exception):
            error.run_directory = whole.path  # type: ignore[attr-defined]
        raise
    try:
        return Repeats(whole.path, tuple(runs), _summarize(whole, directories, count))
    except KeyboardInterrupt as error:
        raise evaluation_interrupted(error, arm, whole.path, "runs are") from None


def _summarize(whole: RunDirectory, runs: list[RunDirectory], count: int) -> RepeatsSummary:
    with whole.needed():
        summary = summarize_repeats(whole, runs, count)
        write_repeats_page(whole, summary)
    return summary


def _begin_run(prepared: Prepared, arm: Backend, whole: RunDirectory, number: int, count: int) -> RunDirectory:
    with whole.needed():
        directory = RunDirectory.create(whole.path / f"{number:02}", prepared.scenario.name, parents=False)
    begin(prepared, arm, directory, repeats={"number": number, "count": count})
    return directory


def _return_facts(prepared: Prepared, count: int) -> Facts:
    """Plan and check the approach between two runs before anything moves; facts about it, for display."""
    if count == 1:
        return ()
    plan, robot, backend = prepared.plan, prepared.robot, backend_class(prepared.backend)
    travel = np.abs(plan.setpoints[0] - plan.setpoints[-1])
    joint = int(np.argmax(travel))
    if not backend.capabilities.simulated_time and travel[joint] > math.pi:
        rotation = f"{robot.joint_names[joint]} ends {degrees(float(travel[joint]))} degrees from where it began"
        raise InvalidParameter("return between repeats", rotation, "less than half a turn of every joint")
    path = plan_approach(
        robot,
        plan.setpoints[-1],
        plan.setpoints[0],
        plan.period,
        max_joint_speed=backend.approach_joint_speed,
        max_tool_speed=backend.approach_tool_speed,
        collision_scene=prepared.options.collision_scene,
    )
    seconds = (len(path) - 1) * plan.period
    times = "once" if count == 2 else f"{count - 1} times"
    farthest = f"{robot.joint_names[joint]} by {degrees(float(travel[joint]))} degrees"
    return (("runs", f"{count}"), ("between them", f"straight back to the start, {times}: {farthest}, {seconds:.1f} s"))
