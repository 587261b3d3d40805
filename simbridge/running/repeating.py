"""Repeated runs of one plan: in DIR/01, DIR/02 ..., their common summary and report in DIR."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from simbridge.backends import backend_class
from simbridge.backends.backend import Ask, Backend, Facts
from simbridge.errors import InvalidParameter, OutputError, SimbridgeError
from simbridge.evaluation.repeats_summary import RepeatsSummary, run_summary, summarize_repeats
from simbridge.evaluation.summary import Summary
from simbridge.files.writing import writing
from simbridge.planning.approach import plan_approach
from simbridge.quoting import shell_quoted
from simbridge.recording.run_directory import RunDirectory, is_of_repeats, repeats_in
from simbridge.recording.run_record import RepeatsRecord
from simbridge.recording.settings_file import as_tables
from simbridge.recording.settings_text import flatten
from simbridge.report.repeats_page import write_repeats_page
from simbridge.running.run_ending import (
    add_aftermath,
    explain_interrupted_evaluation,
    record_early_end,
    reportable_error,
)
from simbridge.running.run_recording import record_run
from simbridge.running.run_setup import Prepared
from simbridge.running.runner import Progress, Run, begin, finish, open_backend, stream_plan
from simbridge.running.signals import end_on_signals
from simbridge.text import degrees, join_words

# The most settings that are named where they differ.
MAX_NAMED_SETTINGS = 5
# Number of names that are tried for a run that is set aside: 02.ended, 02.ended2, ...
MAX_SET_ASIDE = 1000


@dataclass(frozen=True)
class Repeats:
    """Finished repeats.

    Attributes:
        directory: Directory of all repeats.
        runs: The runs: first those that an earlier command has made, then the new ones.
        summary: The content of the common summary.json.
    """

    directory: Path
    runs: tuple[Run, ...]
    summary: RepeatsSummary


@dataclass
class _RepeatsSoFar:
    """How far the repeats have come.

    Attributes:
        whole: Directory of all repeats.
        count: Number of runs that are wanted.
        directories: Directories of the runs so far, in the order in which they were made.
        runs: The runs that have completed and were evaluated.
        completed: Number of runs that need no more than their evaluation.
    """

    whole: RunDirectory
    count: int
    directories: list[RunDirectory]
    runs: list[Run]
    completed: int

    def unfinished(self) -> RunDirectory | None:
        """Return the directory of the run that goes on; between two runs, none does."""
        return self.directories[-1] if self.completed < len(self.directories) else None

    def missing_numbers(self) -> list[int]:
        """Return the numbers of the runs that are still to be made."""
        existing = {int(run.path.name) for run in self.directories}
        free = [number for number in range(1, self.count + 1) if number not in existing]
        return free[: max(self.count - len(self.directories), 0)]


@end_on_signals()
def repeat(
    prepared: Prepared,
    count: int,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> Repeats:
    """Execute a prepared run several times.

    Between two runs the arm returns to the start by a checked approach. On a real arm, the operator
    confirms once and is informed of the return; before a long one, the backend asks again.

    Args:
        prepared: The run.
        count: How often the run is made.
        out: The directory to create; one under runs/ by default. Repeats in an existing directory
            are continued: runs that have completed are kept, and a run that ended early is renamed
            (`02.ended`) and made again.
        progress: Function that is called with the arm's state once per period.
        ask: Function that displays facts and asks for confirmation before a real arm moves; without
            it, only a cell file can confirm.

    Raises:
        InvalidParameter: The count is not positive, or a joint would return by more than half a
            turn on a controller.
        OutputError: The directory holds something else, or repeats of other settings or of another
            plan.
        PlanRefused: The return violates a limit or collides; nothing has moved.
        SimbridgeError: What ended a run. That run and those before it are kept, with their common
            summary.
    """
    if count < 1:
        raise InvalidParameter("number of repeats", count, "at least 1")

    # The runs that an earlier command has left, whose label this command may leave out.
    earlier = _find_earlier(out)
    if earlier and not prepared.options.label:
        label = earlier[0].settings().label or ""
        prepared = replace(prepared, options=replace(prepared.options, label=label))
    summaries = {run: run_summary(run) for run in earlier}
    kept = [run for run, summary in summaries.items() if summary["outcome"] == "completed"]

    # The arm and the directory.
    more_facts = _return_facts(prepared, count - len(kept))
    arm = open_backend(prepared, more_facts=more_facts, ask=ask)
    whole = _prepare_directory(prepared, earlier, kept=kept, out=out)
    repeats = _RepeatsSoFar(
        whole=whole,
        count=count,
        directories=list(kept),
        runs=[Run(run.path, cast(Summary, summaries[run])) for run in kept],
        completed=len(kept),
    )

    # Make the runs. Where one ends early, those so far are summarized.
    try:
        _make_missing_runs(prepared, arm, repeats, progress)
    except BaseException as error:
        reported = reportable_error(error, "run") if isinstance(error, Exception) else None
        _summarize_early_end(repeats, reported)
        if reported is None or reported is error:
            raise
        raise reported from error

    # Summarize the runs.
    try:
        ordered = sorted(repeats.directories, key=lambda run: int(run.path.name))
        return Repeats(whole.path, tuple(repeats.runs), _summarize(whole, ordered, count))
    except KeyboardInterrupt as error:
        raise explain_interrupted_evaluation(error, arm, whole.path, "runs are") from None


def _find_earlier(out: str | os.PathLike[str] | None) -> list[RunDirectory]:
    """Return the runs that an earlier command has left in a directory, if there is one."""
    if out is None or not is_of_repeats(Path(out)):
        return []
    return repeats_in(Path(out))


def _prepare_directory(
    prepared: Prepared,
    earlier: Sequence[RunDirectory],
    *,
    kept: Sequence[RunDirectory],
    out: str | os.PathLike[str] | None,
) -> RunDirectory:
    """Return the common directory: a new one, or that of earlier runs, of which some are kept.

    Args:
        prepared: The run.
        earlier: The runs that are in the directory.
        kept: The earlier runs that need not be made again.
        out: The directory to create where there are none; None for one under runs/.

    Raises:
        OutputError: The earlier runs are of other settings or of another plan, or the directory
            cannot be made.
    """
    if not earlier:
        return RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)

    _check_same(prepared, earlier[0])
    _set_aside([run for run in earlier if run not in kept])
    return RunDirectory(earlier[0].path.parent)


def _make_missing_runs(
    prepared: Prepared, arm: Backend, repeats: _RepeatsSoFar, progress: Progress | None
) -> None:
    """Make the missing runs, each in its own directory, with the arm opened once for all."""
    numbers = repeats.missing_numbers()
    if not numbers:
        return

    # Make the first directory before the arm is opened: if that fails, nothing has moved.
    repeats.directories.append(_begin_run(prepared, repeats, numbers[0]))
    tolerance = prepared.options.tolerance
    with record_early_end(arm, repeats.unfinished, tolerance), arm:
        for number in numbers:
            if number != numbers[0]:
                repeats.directories.append(_begin_run(prepared, repeats, number))
            directory = repeats.directories[-1]
            stream_plan(prepared, arm, directory, progress)
            repeats.completed += 1
            repeats.runs.append(finish(prepared, arm, directory))


def _summarize_early_end(repeats: _RepeatsSoFar, reported: SimbridgeError | None) -> None:
    """Summarize the runs so far, and say in the error how to continue.

    The error that ended the runs is the one to report, whatever else fails.

    Args:
        repeats: How far the repeats have come.
        reported: The error that ended them; None if the program is being ended.
    """
    directory = shell_quoted(repeats.whole.path)
    if reported is not None:
        reported.run_directory = repeats.whole.path
        add_aftermath(reported, f"The same command with `--out {directory}` continues the repeats.")
    try:
        with contextlib.suppress(Exception):
            _summarize(repeats.whole, repeats.directories, repeats.count)
    except KeyboardInterrupt:
        if reported is not None:
            add_aftermath(
                reported,
                f"The evaluation was interrupted; `simbridge report {directory}` completes it.",
            )


def _check_same(prepared: Prepared, earlier: RunDirectory) -> None:
    """Refuse to continue repeats of other settings or of another plan."""
    # The settings that differ.
    settings = _comparable_settings(as_tables(record_run(prepared)))
    earlier_settings = _comparable_settings(earlier.settings_tables())
    differing_names = []
    for name in settings | earlier_settings:
        if settings.get(name) != earlier_settings.get(name):
            differing_names.append(name)

    # Describe them, or else the plans if these differ in spite of equal settings.
    differences = []
    for name in differing_names[:MAX_NAMED_SETTINGS]:
        value = settings.get(name, "none")
        earlier_value = earlier_settings.get(name, "none")
        differences.append(f"{name} (there {earlier_value}, now {value})")
    if len(differing_names) > MAX_NAMED_SETTINGS:
        differences.append(f"{len(differing_names) - MAX_NAMED_SETTINGS} more")

    if not differing_names:
        plan = prepared.plan.as_arrays()
        earlier_plan = earlier.plan(dict)
        if not all(np.array_equal(plan[name], earlier_plan[name]) for name in plan):
            differences = ["their plan"]
    if differences:
        reason = (
            f"its repeats differ in {join_words(differences)}; choose another directory with --out"
        )
        raise OutputError(earlier.path.parent, reason)


def _comparable_settings(tables: dict[str, Any]) -> dict[str, str]:
    """Return settings as texts by name, without the number of the run and what is measured."""
    settings = {}
    for name, text in flatten(tables):
        if not name.startswith("repeats.") and name != "solver.host_step_time_s":
            settings[name] = text
    return settings


def _set_aside(ended: Sequence[RunDirectory]) -> None:
    """Rename runs that did not complete: they are kept, and no longer count."""
    for run in ended:
        suffixes = ("", *map(str, range(2, MAX_SET_ASIDE)))
        names = (run.path.with_name(f"{run.path.name}.ended{suffix}") for suffix in suffixes)
        new_path = next(path for path in names if not path.exists())
        with writing(new_path):
            run.path.rename(new_path)


def _summarize(whole: RunDirectory, runs: list[RunDirectory], count: int) -> RepeatsSummary:
    """Write the common summary.json and report.html, and return the former's content."""
    with whole.needed():
        summary = summarize_repeats(whole, runs, count)
        write_repeats_page(whole, summary)
    return summary


def _begin_run(prepared: Prepared, repeats: _RepeatsSoFar, number: int) -> RunDirectory:
    """Make the directory of one run, with its settings and plan."""
    path = repeats.whole.path / f"{number:02}"
    with repeats.whole.needed():
        directory = RunDirectory.create(path, prepared.scenario.name, parents=False)
    begin(prepared, directory, repeats=RepeatsRecord(number=number, count=repeats.count))
    return directory


def _return_facts(prepared: Prepared, count: int) -> Facts:
    """Plan and check the approach between two runs before anything moves.

    Args:
        prepared: The run.
        count: How many runs will be made.

    Returns:
        Facts about it, for display.
    """
    if count <= 1:
        return ()

    plan = prepared.plan
    robot = prepared.robot
    backend = backend_class(prepared.backend)
    travel = np.abs(plan.setpoints[0] - plan.setpoints[-1])
    joint = int(np.argmax(travel))
    joint_travel = f"{degrees(float(travel[joint]))} degrees"
    if not backend.capabilities.simulated_time and travel[joint] > math.pi:
        raise InvalidParameter(
            "return between repeats",
            f"{robot.joint_names[joint]} ends {joint_travel} from where it started",
            "less than half a turn of every joint",
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
    duration = (len(path) - 1) * plan.period
    times = "once" if count == 2 else f"{count - 1} times"
    farthest = f"{robot.joint_names[joint]} by {joint_travel}"
    return (
        ("runs", f"{count}"),
        ("between them", f"straight back to the start, {times}: {farthest}, {duration:.1f} s"),
    )
