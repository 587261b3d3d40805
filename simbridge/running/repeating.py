"""One plan several times over: the runs in DIR/01, DIR/02 ..., and what they have in common in DIR."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.backends.backend import Backend
from simbridge.backends.operator_confirmation import Ask
from simbridge.errors import InvalidParameter, LogReadError, NotARun, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation, judged
from simbridge.evaluation.repeats import IsoFigures, iso_figures
from simbridge.planning.approach import plan_approach
from simbridge.recording.run_directory import RunDirectory, repeats_in
from simbridge.report.repeats_page import write_repeats_page
from simbridge.running.runner import (
    Prepared,
    Progress,
    Run,
    begin,
    drive,
    finalize,
    open_backend,
    plan_facts,
    record_early_end,
)
from simbridge.text import degrees

# What the common summary takes over of each run's.
_OF_A_RUN = ("outcome", "samples", "duration_s", "tracking_error", "contour_error", "delay_s", "loop", "passed")


@dataclass(frozen=True)
class Repeats:
    """Finished repeats.

    Attributes:
        directory: Where they are.
        runs: Each of them.
        summary: What the common summary.json holds.
    """

    directory: Path
    runs: tuple[Run, ...]
    summary: dict[str, Any]


def repeat(
    prepared: Prepared,
    count: int,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    ask: Ask | None = None,
) -> Repeats:
    """Execute what `prepare` made several times; between two runs the arm goes back to the start by a checked approach.

    A real arm's person is asked once and told of the way back; where that way is far, the backend asks again before it.

    Args:
        prepared: See `prepare`.
        count: How many times.
        out: The directory to make; one under runs/ by default.
        progress, ask: As for `run`.

    Raises:
        InvalidParameter: The count is not positive, or the way back is a full turn on a controller.
        PlanRefused: The way back breaks a limit or touches something; nothing has moved.
        SimbridgeError: What ended a run. That run and those before it are kept, and so is what they have in common.
    """
    if count < 1:
        raise InvalidParameter("number of repeats", count, "at least 1")
    facts = (*plan_facts(prepared), *_way_back(prepared, count))
    arm = open_backend(prepared.backend, prepared.robot, prepared.options, plan_facts=facts, ask=ask)
    whole = RunDirectory.create(None if out is None else Path(out), prepared.scenario.name)
    directories: list[RunDirectory] = []
    runs: list[Run] = []
    try:
        directories.append(_begun(prepared, arm, whole, 1, count))
        with record_early_end(prepared, arm, lambda: directories[-1]), arm:
            for number in range(1, count + 1):
                if number > 1:
                    directories.append(_begun(prepared, arm, whole, number, count))
                drive(prepared, arm, directories[-1], progress)
                summary = finalize(directories[-1], "completed", prepared.options.tolerance, arm.loop)
                runs.append(Run(directories[-1].path, summary))
    except BaseException as error:
        # What ended them is the one to tell of, whatever else goes wrong.
        with contextlib.suppress(Exception):
            summarise_repeats(whole, directories, count)
        if isinstance(error, Exception):
            error.run_directory = whole.path  # type: ignore[attr-defined]
        raise
    return Repeats(whole.path, tuple(runs), summarise_repeats(whole, directories, count))


def _begun(prepared: Prepared, arm: Backend, whole: RunDirectory, number: int, count: int) -> RunDirectory:
    directory = RunDirectory.create(whole.path / f"{number:02}", prepared.scenario.name)
    begin(prepared, arm, directory, repeats={"number": number, "count": count})
    return directory


def _way_back(prepared: Prepared, count: int) -> tuple[tuple[str, str], ...]:
    """The approach between two runs, checked before anything moves, as a person is told of it."""
    if count == 1:
        return ()
    plan, robot = prepared.plan, prepared.robot
    if prepared.backend == "pybullet":
        from simbridge.backends.pybullet import APPROACH_JOINT_SPEED as joint_speed
        from simbridge.backends.pybullet import APPROACH_TOOL_SPEED as tool_speed
    else:
        from simbridge.backends.profiles import PROFILES

        profile = PROFILES[prepared.backend]
        joint_speed, tool_speed = profile.approach_joint_speed, profile.approach_tool_speed
    travel = np.abs(plan.setpoints[0] - plan.setpoints[-1])
    joint = int(np.argmax(travel))
    if prepared.backend != "pybullet" and travel[joint] > math.pi:
        turned = f"{robot.joint_names[joint]} ends {degrees(float(travel[joint]))} degrees from where it began"
        raise InvalidParameter("way back between repeats", turned, "less than half a turn of every joint")
    way = plan_approach(
        robot,
        plan.setpoints[-1],
        plan.setpoints[0],
        plan.period,
        max_joint_speed=joint_speed,
        max_tool_speed=tool_speed,
        collision_scene=prepared.options.collision_scene,
    )
    seconds = (len(way) - 1) * plan.period
    times = "once" if count == 2 else f"{count - 1} times"
    farthest = f"{robot.joint_names[joint]} by {degrees(float(travel[joint]))} degrees"
    return (("runs", f"{count}"), ("between them", f"straight back to the start, {times}: {farthest}, {seconds:.1f} s"))


def summarise_repeats(whole: RunDirectory, runs: Sequence[RunDirectory], count: int) -> dict[str, Any]:
    """Measure runs of one plan together, from their directories; write the common summary.json and report.html.

    A run without a summary was killed: it is measured from its log, as far as that goes.

    Args:
        whole: Where they are written.
        runs: The runs, in order.
        count: How many there were to be.

    Returns:
        `scenario`, `robot`, `solver`, `backend`; `outcome`, "completed" or that of the last run; `repeats` asked for,
        and `completed`; `runs`, of each its name and the main parts of its summary; `iso_9283_style`: `witness`
        ("self-reported"), `figures` (`symbol`, `value`, `unit`, `cycles` used, `asked` by the standard, and the number
        of the `stop`, None for the path), `stops_m`, `limit_band_m`, and what is `missing` and why; `passed`, whether
        all were made and passed, None without a tolerance.
    """
    settings = runs[0].settings()
    summaries = [_summary_of(run) for run in runs]
    completed = [run for run, summary in zip(runs, summaries, strict=True) if summary["outcome"] == "completed"]
    outcome = summaries[-1]["outcome"]
    if outcome == "completed" and len(runs) < count:
        outcome = "no further run was begun: they were killed, or still go on"
    try:
        # One at a time: of a long run only what the figures need stays in memory.
        iso = iso_figures(Evaluation.of(run) for run in completed)
    except UnusableSamples as error:
        iso = IsoFigures("self-reported", (), (), None, (str(error),))
    judged = [summary["passed"] for summary in summaries]
    common = {
        **{name: settings[name]["name"] for name in ("scenario", "robot", "solver", "backend")},
        "tolerance": settings.get("tolerance"),
        "outcome": outcome,
        "repeats": count,
        "completed": len(completed),
        "runs": [
            {"run": run.path.name, **{name: summary.get(name) for name in _OF_A_RUN}}
            for run, summary in zip(runs, summaries, strict=True)
        ],
        "iso_9283_style": iso.as_dict(),
        "passed": None if None in judged else all(judged) and len(completed) == count,
    }
    whole.write_summary(common)
    write_repeats_page(whole, common)
    return common


def _summary_of(run: RunDirectory) -> dict[str, Any]:
    """A run's summary.json, or what it would hold."""
    try:
        return run.summary()
    except NotARun:
        pass
    try:
        evaluation = Evaluation.of(run)
        summary = evaluation.summary(evaluation.outcome)
    except (NotARun, LogReadError) as error:
        summary = {"outcome": str(error).rstrip(".")}
    return summary | judged(summary, run.settings().get("tolerance"))


def common_summary(path: Path) -> dict[str, Any]:
    """What the summary.json of repeats holds; if they were killed before it was written, it is made up for, with
    report.html.

    Args:
        path: The directory of the repeats.

    Raises:
        NotARun: summary.json or the first run's settings.toml is broken.
        OutputDirectoryError: Something cannot be written.
    """
    whole, runs = RunDirectory(path), repeats_in(path)
    # What was made up for while the repeats went on is no longer true: a run without a summary may have got further.
    if whole.summary_file.is_file() and all(run.summary_file.is_file() for run in runs):
        summary = whole.summary()
        if len(summary["runs"]) == len(runs):
            return summary
    # Settings of an earlier version do not tell how many there were to be.
    return summarise_repeats(whole, runs, runs[0].settings().get("repeats", {}).get("count", len(runs)))
