"""One plan several times over: the runs in DIR/01, DIR/02 ..., and what they have in common in DIR."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.backends.backend import Backend
from simbridge.backends.operator_confirmation import Ask
from simbridge.errors import InvalidParameter
from simbridge.evaluation.repeats_summary import summarize_repeats
from simbridge.planning.approach import plan_approach
from simbridge.recording.run_directory import RunDirectory
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
            _summarize(whole, directories, count)
        if isinstance(error, Exception):
            error.run_directory = whole.path  # type: ignore[attr-defined]
        raise
    return Repeats(whole.path, tuple(runs), _summarize(whole, directories, count))


def _summarize(whole: RunDirectory, runs: list[RunDirectory], count: int) -> dict[str, Any]:
    summary = summarize_repeats(whole, runs, count)
    write_repeats_page(whole, summary)
    return summary


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
