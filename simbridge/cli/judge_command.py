"""The command `simbridge judge`: what an arm did in a log, and why it deviated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypedDict

import msgspec
from rich.markup import escape

from simbridge.cli.error_reporting import print_error
from simbridge.cli.flags import JudgeFlags
from simbridge.cli.terminal import say
from simbridge.console import Terminal
from simbridge.errors import SimbridgeError
from simbridge.json_output import print_json
from simbridge.judging import wording
from simbridge.judging.column_names import expand_columns
from simbridge.judging.judged_log import JudgedLog, judge_log
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.judging.tolerance_wording import has_tolerances
from simbridge.judging.tolerances import Tolerances
from simbridge.resources import robot_files
from simbridge.robot.load import load_robot
from simbridge.text import make_table


class UnreadableLog(TypedDict):
    """A log that could not be judged, and why."""

    log: str
    error: str


class JudgeOutput(TypedDict):
    """Output of `simbridge judge --json`: the logs, and those that could not be judged."""

    logs: list[JudgedLog]
    failures: list[UnreadableLog]


def judge(flags: JudgeFlags) -> int:
    """Judge logs, one after another; a log that cannot be read does not keep the others back.

    Returns:
        The exit status: 0; 1 where a tolerance that the user named was exceeded; 2 where a log
        could not be judged.

    Raises:
        UnknownName, InvalidParameter: The robot, a column or a tolerance cannot be used.
    """
    tolerances = Tolerances(flags.path_tolerance, flags.goal_tolerance)
    options = LogOptions(
        columns=() if flags.columns is None else expand_columns(flags.columns),
        robot=None if flags.robot is None else load_robot(flags.robot),
        prefix=flags.prefix,
        goals=flags.goals,
    )
    arms = [robot for robot in map(load_robot, robot_files()) if robot.series]
    if options.robot is not None:
        arms.insert(0, options.robot)

    console = Terminal()
    judged_logs: list[JudgedLog] = []
    failures: list[UnreadableLog] = []
    for name in flags.logs:
        try:
            judged = judge_log(read_log(name, options), arms, tolerances)
        except SimbridgeError as error:
            print_error(error)
            failures.append({"log": name, "error": str(error)})
            continue
        judged_logs.append(judged)
        if not flags.as_json:
            _show(console, judged)

    if flags.as_json:
        _print_json(judged_logs, failures)
    if failures:
        return 2
    return 1 if any(map(_exceeds_tolerance, judged_logs)) else 0


def _exceeds_tolerance(judged: JudgedLog) -> bool:
    """Return whether a log exceeds a tolerance that the user named."""
    return has_tolerances(judged.tolerances) and bool(judged.tolerances.violations)


def _print_json(judged_logs: Sequence[JudgedLog], failures: Sequence[UnreadableLog]) -> None:
    """Print all logs as one JSON object; what is not a finite number is null."""
    encoded = msgspec.json.encode({"logs": judged_logs, "failures": failures})
    print_json(json.loads(encoded))


def _show(console: Terminal, judged: JudgedLog) -> None:
    """Print the sentence that says what a log shows, findings, the motions, and remarks."""
    say(console, f"{judged.log}: {judged.headline}", style="bold")
    for finding in judged.findings:
        say(console, finding)

    judgement = judged.judgement
    motions = wording.shown_motions(judgement)
    if motions:
        rows = [[escape(cell) for cell in wording.motion_row(motion)] for motion in motions]
        console.print(make_table(wording.COLUMNS, rows, left=["kind", "largest part"]))
    if len(motions) < len(judgement.motions):
        say(console, f"Shown: the {len(motions)} motions with the largest errors.")
    for remark in wording.remarks(judgement):
        say(console, remark)
