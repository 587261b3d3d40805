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
from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.files.writing import write_file
from simbridge.json_output import print_json
from simbridge.judging import wording
from simbridge.judging.column_names import expand_columns
from simbridge.judging.judged_log import JudgedLog, describe
from simbridge.judging.judgement import Examination, LogJudgement, examine
from simbridge.judging.log import ControllerLog, LogSource
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.judging.run_log import arm_of_run
from simbridge.judging.tolerance_wording import has_tolerances
from simbridge.judging.tolerances import Tolerances
from simbridge.resources import robot_files
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.text import fits_terminal, make_table


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
    if flags.page is not None and len(flags.logs) != 1:
        raise InvalidParameter("--page", flags.page, "left out with several logs: a page has one")
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

    # The terminal shows the predictions of one motion.
    shows_all = flags.as_json or flags.page is not None
    console = Terminal()
    judged_logs: list[JudgedLog] = []
    failures: list[UnreadableLog] = []
    for name in flags.logs:
        try:
            log = read_log(name, options)
            examination = examine(log, [*_own_arm(log), *arms], predicts_all=shows_all)
            judged = describe(examination, tolerances)
        except SimbridgeError as error:
            print_error(error)
            failures.append({"log": name, "error": str(error)})
            continue
        judged_logs.append(judged)
        if flags.page is not None:
            _write_page(flags.page, examination, judged)
        if not flags.as_json:
            _show(console, judged, verbose=flags.verbose)

    if flags.as_json:
        _print_json(judged_logs, failures)
    return _exit_status(judged_logs, failures)


def _own_arm(log: ControllerLog) -> list[Robot]:
    """Return the arm of a run, which may be one that is not in robots/; empty for other logs."""
    if log.source not in (LogSource.RUN, LogSource.SESSION):
        return []
    arm = arm_of_run(log.name)
    return [] if arm is None else [arm]


def _exit_status(judged_logs: Sequence[JudgedLog], failures: Sequence[UnreadableLog]) -> int:
    """Return 2 if a log could not be read, 1 if one exceeds a named tolerance, otherwise 0."""
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


def _write_page(path: str, examination: Examination, judged: JudgedLog) -> None:
    """Write the page of a log.

    Raises:
        OutputError: It cannot be written.
    """
    # Matplotlib takes 0.5 s, and most logs are judged without a page.
    from simbridge.judging.judgement_page import judgement_page  # noqa: PLC0415

    write_file(path, judgement_page(examination, judged.findings).encode())


def _show(console: Terminal, judged: JudgedLog, *, verbose: bool) -> None:
    """Print the sentence that says what a log shows, findings, the motions, and remarks.

    Args:
        console: The terminal.
        judged: The log.
        verbose: Whether to print all motions, and what shows their kinds, errors and events.
    """
    say(console, f"{judged.log}: {judged.headline}", style="bold")
    for finding in judged.findings:
        say(console, finding)

    judgement = judged.judgement
    motions = wording.shown_motions(judgement, verbose=verbose)
    rows = [wording.motion_row(motion) for motion in motions]
    _show_table(
        console,
        wording.COLUMNS,
        rows,
        text_columns=wording.TEXT_COLUMNS,
        dispensable=wording.DISPENSABLE_COLUMNS,
    )
    if len(motions) < len(judgement.motions):
        say(console, f"Shown: {wording.shown_selection(motions)}.")
    for remark in wording.remarks(judgement):
        say(console, remark)
    if judgement.notes:
        say(console, f"Notes on reading: {'; '.join(judgement.notes)}.")
    if verbose:
        _show_details(console, judgement)


def _show_details(console: Terminal, judgement: LogJudgement) -> None:
    """Print the arm, what shows the kind of each motion, its error by source, and the events."""
    for name, value in wording.arm_facts(judgement.arm):
        say(console, f"{name}: {value}.")
    for motion in judgement.motions:
        say(console, wording.evidence(motion))

    parts = [wording.part_row(motion, part) for motion, part in wording.motion_parts(judgement)]
    _show_table(
        console,
        wording.PART_COLUMNS,
        parts,
        text_columns=wording.PART_TEXT_COLUMNS,
        dispensable=wording.DISPENSABLE_PART_COLUMNS,
    )
    events = wording.events(judgement)
    _show_table(console, wording.EVENT_COLUMNS, events, text_columns=wording.EVENT_TEXT_COLUMNS)

    for missing in judgement.missing:
        say(console, f"{missing.quantity} would show {missing.would_show}.")


def _show_table(
    console: Terminal,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_columns: Sequence[str],
    dispensable: Sequence[str] = (),
) -> None:
    """Print a table; nothing without rows.

    Columns that a narrow terminal has no room for are left out and named.

    Args:
        console: The terminal.
        columns: Headings of the columns.
        rows: Cells of the rows.
        text_columns: Those of the columns that hold text.
        dispensable: Those that may be left out, the least important first.
    """
    if not rows:
        return
    shown = {name: [escape(row[number]) for row in rows] for number, name in enumerate(columns)}
    missing = []
    table = make_table(columns, list(zip(*shown.values(), strict=True)), left=text_columns)
    for name in dispensable:
        if fits_terminal(table):
            break
        del shown[name]
        missing.append(name.partition(",")[0])
        table = make_table(list(shown), list(zip(*shown.values(), strict=True)), left=text_columns)

    console.print(table)
    if missing:
        say(console, f"Not shown because the terminal is too narrow: {', '.join(missing)}.")
