"""Repeated runs of one plan: the runs in DIR/01, DIR/02 ..., their common summary and report in DIR."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from simbridge.backends import backend_class
from simbridge.backends.backend import Ask, Facts
from simbridge.errors import InvalidParameter, OutputError
from simbridge.evaluation.repeatability import RepeatsSummary, run_summary, summarize_repeats
from simbridge.evaluation.summary import Summary
from simbridge.files.writing import writing
from simbridge.planning.approach import plan_approach
from simbridge.quoting import shell_quoted
from simbridge.recording.run_directory import RunDirectory, is_of_repeats, repeats_in
from simbridge.recording.run_record import RepeatsRecord
from simbridge.recording.settings_file import as_tables
from simbridge.report.settings_list import flattened
from simbridge.report.several_runs import write_repeats_page
from simbridge.running.run_recording import record_run
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
from simbridge.text import degrees, listed

# Settings that differ are named up to this many.
_SHOWN = 5


@dataclass(frozen=True)
class Repeats:
    """Finished repeats: their common directory, the runs in order, and the content of the common summary.json."""

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
        out: The directory to create; one under runs/ by default. Repeats that are in it are continued: runs that have
            completed are kept, and one that ended early is renamed (`02.ended`) and made again.
        progress, ask: As for `run`.

    Raises:
        InvalidParameter: The count is not positive, or a joint would return by more than half a turn on a controller.
        OutputError: The directory holds something else, or repeats of other settings or of another plan.
        PlanRefused: The return violates a limit or collides; nothing has moved.
        SimbridgeError: What ended a run. That run and those before it are kept, with their common summary.
    """
    if count < 1:
        raise InvalidParameter("number of repeats", count, "at least 1")
    earlier = repeats_in(Path(out)) if out is not None and is_of_repeats(Path(out)) else []
    if earlier and not prepared.options.label:
        # The command that continues may leave the label out.
        label = earlier[0].settings().label or ""
        prepared = replace(prepared, options=replace(prepared.options, label=label))
    found = {run: run_summary(run) for run in earlier}
    directories = [run for run, summary in found.items() if summary["outcome"] == "completed"]
    runs = [Run(run.path, cast(Summary, found[run])) for run in directories]
    missing = count - len(directories)
    arm = open_backend(prepared, more_facts=_return_facts(prepared, missing), ask=ask)
    if earlier:
        whole = RunDirectory(earlier[0].path.parent)
        _check_same(prepared, earlier[0])
        _set_aside([run for run in earlier if run not in directories])
    else:
        whole = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    taken = {int(run.path.name) for run in directories}
    numbers = [number for number in range(1, count + 1) if number not in taken][: max(missing, 0)]
    completed = len(directories)

    def unfinished() -> RunDirectory | None:
        # Between two runs, none is.
        return directories[-1] if completed < len(directories) else None

    try:
        if numbers:
            directories.append(_begin_run(prepared, whole, numbers[0], count))
            with record_early_end(prepared, arm, unfinished), arm:
                for number in numbers:
                    if number != numbers[0]:
                        directories.append(_begin_run(prepared, whole, number, count))
                    stream_plan(prepared, arm, directories[-1], progress)
                    completed += 1
                    runs.append(finish(prepared, arm, directories[-1]))
    except BaseException as error:
        # The error that ended the runs is the one to report, whatever else fails.
        add_aftermath(
            error,
            f"The same command with `--out {shell_quoted(whole.path)}` continues the repeats.",
        )
        try:
            with contextlib.suppress(Exception):
                _summarize(whole, directories, count)
        except KeyboardInterrupt:
            add_aftermath(
                error,
                f"The evaluation was interrupted; `simbridge report {shell_quoted(whole.path)}` finishes it.",
            )
        if isinstance(error, Exception):
            error.run_directory = whole.path  # type: ignore[attr-defined]
        raise
    try:
        ordered = sorted(directories, key=lambda run: int(run.path.name))
        return Repeats(whole.path, tuple(runs), _summarize(whole, ordered, count))
    except KeyboardInterrupt as error:
        raise evaluation_interrupted(error, arm, whole.path, "runs are") from None


def _check_same(prepared: Prepared, earlier: RunDirectory) -> None:
    """Refuse to continue repeats of other settings or of another plan."""
    own, theirs = (
        {name: text for name, text in flattened(settings) if not name.startswith("repeats.")}
        for settings in (as_tables(record_run(prepared)), earlier.settings_tables())
    )
    names = [name for name in own | theirs if own.get(name) != theirs.get(name)]
    shown = [
        f"{name} (there {theirs.get(name, 'none')}, now {own.get(name, 'none')})"
        for name in names[:_SHOWN]
    ]
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    if not names:
        plan, other = prepared.plan.as_arrays(), earlier.plan(dict)
        shown = (
            [] if all(np.array_equal(plan[name], other[name]) for name in plan) else ["their plan"]
        )
    if shown:
        reason = f"its repeats differ in {listed(shown)}; choose another directory with --out"
        raise OutputError(earlier.path.parent, reason)


def _set_aside(ended: Sequence[RunDirectory]) -> None:
    """Rename runs that did not complete: they are kept, and no longer count."""
    for run in ended:
        places = (
            run.path.with_name(f"{run.path.name}.ended{suffix}")
            for suffix in ("", *map(str, range(2, 1000)))
        )
        place = next(place for place in places if not place.exists())
        with writing(place):
            run.path.rename(place)


def _summarize(whole: RunDirectory, runs: list[RunDirectory], count: int) -> RepeatsSummary:
    with whole.needed():
        summary = summarize_repeats(whole, runs, count)
        write_repeats_page(whole, summary)
    return summary


def _begin_run(prepared: Prepared, whole: RunDirectory, number: int, count: int) -> RunDirectory:
    with whole.needed():
        directory = RunDirectory.create(
            whole.path / f"{number:02}", prepared.scenario.name, parents=False
        )
    begin(prepared, directory, repeats=RepeatsRecord(number=number, count=count))
    return directory


def _return_facts(prepared: Prepared, count: int) -> Facts:
    """Plan and check the approach between two runs before anything moves; facts about it, for display."""
    if count <= 1:
        return ()
    plan, robot, backend = prepared.plan, prepared.robot, backend_class(prepared.backend)
    travel = np.abs(plan.setpoints[0] - plan.setpoints[-1])
    joint = int(np.argmax(travel))
    if not backend.capabilities.simulated_time and travel[joint] > math.pi:
        rotation = f"{robot.joint_names[joint]} ends {degrees(float(travel[joint]))} degrees from where it began"
        raise InvalidParameter(
            "return between repeats", rotation, "less than half a turn of every joint"
        )
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
    return (
        ("runs", f"{count}"),
        ("between them", f"straight back to the start, {times}: {farthest}, {seconds:.1f} s"),
    )
